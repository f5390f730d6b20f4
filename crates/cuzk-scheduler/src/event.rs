//! What the scheduler is told while it runs.

use std::time::Duration;

use crate::{
    CircuitId, CircuitProfile, DeviceId, JobId, OutOfMemory, PartitionId, Pool, Priority, Stage, Ticket, Time,
};

/// A job as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    /// Its name, not used before.
    pub job: JobId,
    /// Its circuit, introduced by [`Event::CircuitKnown`] before.
    pub circuit: CircuitId,
    /// How many partitions it has, at least one.
    pub partitions: u32,
    /// How urgent it is.
    pub priority: Priority,
    /// When it fails if it is not done by then.
    pub deadline: Option<Time>,
}

/// Everything that can happen. What a [`Ticket`] is in must fit the event: see each one's *Answers*, the action it
/// follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// What a circuit and its key cost. A later one replaces it for partitions that are not admitted yet.
    CircuitKnown {
        /// The circuit.
        circuit: CircuitId,
        /// Its cost.
        profile: CircuitProfile,
    },
    /// A job arrives.
    JobSubmitted(JobRequest),
    /// Whoever submitted the job does not want it any more.
    Cancelled {
        /// The job.
        job: JobId,
    },

    /// The witness is made. Answers [`StartSynthesis`](crate::Action::StartSynthesis).
    WitnessReady {
        /// The attempt.
        ticket: Ticket,
    },
    /// It lies in the device queue. Answers [`Send`](crate::Action::Send).
    SendDone {
        /// The attempt.
        ticket: Ticket,
    },
    /// It is ready to compute on its device. Answers [`Prepare`](crate::Action::Prepare).
    DevicePrepared {
        /// The attempt.
        ticket: Ticket,
    },
    /// `prove_start` returned: the kernels are done, and everything but what finishing needs **is freed**. Answers
    /// [`Start`](crate::Action::Start), once for each partition of the batch.
    StartReturned {
        /// The attempt.
        ticket: Ticket,
    },
    /// `prove_finish` returned a verified proof, and all is freed. Answers [`Finish`](crate::Action::Finish).
    FinishDone {
        /// The attempt.
        ticket: Ticket,
    },
    /// The attempt failed and does not touch anything any more. Answers any action with a ticket in place of its usual
    /// answer. What it held on the device is freed; its witness is intact if it was at a device and `prove_start` had
    /// not returned.
    Failed {
        /// The attempt.
        ticket: Ticket,
        /// What happened.
        fault: Fault,
    },
    /// The attempt does not touch anything any more, and all is freed. Answers
    /// [`AbortPartition`](crate::Action::AbortPartition).
    Stopped {
        /// The attempt.
        ticket: Ticket,
    },

    /// Answers [`LoadKey`](crate::Action::LoadKey).
    KeyLoaded {
        /// Whose key.
        circuit: CircuitId,
        /// Where it lies now.
        pool: Pool,
    },
    /// Answers [`LoadKey`](crate::Action::LoadKey). Nothing is allocated.
    KeyLoadFailed {
        /// Whose key.
        circuit: CircuitId,
        /// Where it should have gone.
        pool: Pool,
        /// Why it did not.
        cause: String,
    },
    /// Its memory is free. Answers [`EvictKey`](crate::Action::EvictKey).
    KeyEvicted {
        /// Whose key.
        circuit: CircuitId,
        /// Where it was.
        pool: Pool,
    },
    /// Somebody wants a key to be hot before a job needs it.
    PreloadRequested {
        /// Whose key.
        circuit: CircuitId,
    },
    /// Somebody wants a key to be cold, at once wherever nobody uses it.
    EvictRequested {
        /// Whose key.
        circuit: CircuitId,
    },

    /// A device does not answer any more, and the engine has given it up: threads that still hang in it only read their
    /// witnesses, and what they report later carries an old ticket. All its memory counts as gone. An attempt there
    /// that was told to stop is answered with [`Stopped`](Self::Stopped) all the same.
    DeviceLost {
        /// The device.
        device: DeviceId,
        /// What the driver or the watchdog said.
        cause: String,
    },
    /// Answers [`RunSelfTest`](crate::Action::RunSelfTest).
    DeviceSelfTest {
        /// The device.
        device: DeviceId,
        /// Whether all its known answers came out.
        passed: bool,
    },

    /// How long a stage of a partition took.
    Measured {
        /// The circuit.
        circuit: CircuitId,
        /// The stage.
        stage: MeasuredStage,
        /// How long.
        took: Duration,
    },
    /// How much host memory making a witness really took, at its peak. From then on so much is reserved for this
    /// circuit's syntheses, and a sixteenth more, whether that is more or less than was thought.
    SynthesisMeasured {
        /// The circuit.
        circuit: CircuitId,
        /// Bytes, the finished witness included.
        bytes: u64,
    },
    /// How many bytes of a pool are really in use. What exceeds the reservations is not given to anybody until the next
    /// measurement, so this is to be sent regularly or not at all: a job may wait for the next one.
    MemoryMeasured {
        /// The pool.
        pool: Pool,
        /// As the system sees it.
        bytes: u64,
    },
    /// Time has passed: to be sent at [`Scheduler::next_wakeup`](crate::Scheduler::next_wakeup).
    Tick,
    /// No more jobs. Those that are there end first, or are cancelled.
    Shutdown {
        /// Whether to cancel what is there.
        cancel: bool,
    },
}

/// A stage whose time matters for the number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredStage {
    /// Making the witness.
    Synthesis,
    /// Under the compute lock.
    Device,
}

/// What can go wrong with an attempt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An allocation failed although the budget had admitted it. It is tried again with nothing beside it.
    #[error("{0}")]
    OutOfMemory(OutOfMemory),
    /// The device failed or reported an error. It is fenced until its self-test passes.
    #[error("device fault: {cause}")]
    Device {
        /// What it said.
        cause: String,
    },
    /// The proof did not verify. The device is fenced, and another one tries.
    #[error("the proof did not verify: {cause}")]
    WrongProof {
        /// Which check said so.
        cause: String,
    },
    /// The witness cannot be made: trying again would not help.
    #[error("synthesis failed: {cause}")]
    Synthesis {
        /// Why.
        cause: String,
    },
}

/// An event that contradicts what the scheduler knows. Its state is as before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// News of an attempt that was given up, or of a job that has ended. Harmless: it came too late.
    #[error("{ticket} is not under way any more")]
    Stale {
        /// The attempt.
        ticket: Ticket,
    },
    /// The attempt is at a stage where this cannot happen.
    #[error("{event} for {ticket}, which is {stage}")]
    UnexpectedStage {
        /// The attempt.
        ticket: Ticket,
        /// Where it is.
        stage: Stage,
        /// What was reported.
        event: &'static str,
    },
    /// There is no such job (any more).
    #[error("{job} is not known or has ended")]
    UnknownJob {
        /// The job.
        job: JobId,
    },
    /// There is a job of that name.
    #[error("{job} was submitted before")]
    DuplicateJob {
        /// The job.
        job: JobId,
    },
    /// A job without partitions.
    #[error("{job} has no partitions")]
    NoPartitions {
        /// The job.
        job: JobId,
    },
    /// The circuit was not introduced.
    #[error("{circuit} is not known")]
    UnknownCircuit {
        /// The circuit.
        circuit: CircuitId,
    },
    /// There is no such device.
    #[error("{device} is not known")]
    UnknownDevice {
        /// The device.
        device: DeviceId,
    },
    /// The device was not asked for a self-test.
    #[error("{device} was not asked for a self-test")]
    UnexpectedSelfTest {
        /// The device.
        device: DeviceId,
    },
    /// Nobody asked for that key to be loaded there, or to leave. Harmless after the loss of the device.
    #[error("{event} for the key of {circuit} in {pool} memory, which was not asked for")]
    UnexpectedKey {
        /// Whose key.
        circuit: CircuitId,
        /// Where.
        pool: Pool,
        /// What was reported.
        event: &'static str,
    },
    /// There is no such pool.
    #[error("there is no {pool} pool")]
    UnknownPool {
        /// The pool.
        pool: Pool,
    },
}

impl Event {
    /// The partition that it is about, and its attempt.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            Self::WitnessReady { ticket }
            | Self::SendDone { ticket }
            | Self::DevicePrepared { ticket }
            | Self::StartReturned { ticket }
            | Self::FinishDone { ticket }
            | Self::Failed { ticket, .. }
            | Self::Stopped { ticket } => Some(*ticket),
            _ => None,
        }
    }
}

impl Ticket {
    /// The first attempt at a partition.
    pub fn first(partition: PartitionId) -> Self {
        Self { partition, attempt: 0 }
    }
}
