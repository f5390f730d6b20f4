//! What the scheduler decides. The engine performs the actions in the order given.

use std::fmt;

use crate::{
    CircuitId, DeviceId, Fault, JobId, OutOfMemory, PartitionId, Pool, Shortage, Ticket, Time, autotune::Choice,
    units::show_bytes,
};

/// Something to do. Each says which event answers it.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make the witness; the memory is reserved. Answer: `WitnessReady` or `Failed`.
    StartSynthesis {
        /// The attempt.
        ticket: Ticket,
    },
    /// Put it into the device queue, which has room. Answer: `SendDone` or `Failed`.
    Send {
        /// The attempt.
        ticket: Ticket,
    },
    /// The key of the device that it is assigned to is on its way there, and `Prepare` follows. To be taken note of. No
    /// answer.
    AwaitKey {
        /// The attempt.
        ticket: Ticket,
        /// The device.
        device: DeviceId,
    },
    /// Bring it to the device, beside whatever computes there; the device's memory is reserved. Answer:
    /// `DevicePrepared` or `Failed`.
    Prepare {
        /// The attempt.
        ticket: Ticket,
        /// The device, until it is finished.
        device: DeviceId,
    },
    /// Compute: the device's lock is theirs. Answer: `StartReturned` or `Failed`, for each.
    Start {
        /// The device.
        device: DeviceId,
        /// Partitions of one circuit. One, unless batching is configured.
        batch: Vec<Ticket>,
    },
    /// Join what is left on the host's side, verify, release. Answer: `FinishDone` or `Failed`.
    Finish {
        /// The attempt.
        ticket: Ticket,
    },
    /// Stop it wherever it is and free all it has. Answer: `Stopped` (or `Failed`), as soon as its kernel or synthesis
    /// step ends.
    AbortPartition {
        /// The attempt.
        ticket: Ticket,
    },
    /// The attempt is void because its device is fenced: stop it if you can, and free what it has on the device. The
    /// witness stays, and goes on under the next attempt's number. No answer.
    Abandon {
        /// The attempt that is void.
        ticket: Ticket,
        /// The device.
        device: DeviceId,
    },

    /// Load a key; the memory is reserved. Answer: `KeyLoaded` or `KeyLoadFailed`.
    LoadKey {
        /// Whose key.
        circuit: CircuitId,
        /// Where to.
        pool: Pool,
    },
    /// Nobody uses that key: free it. Answer: `KeyEvicted`.
    EvictKey {
        /// Whose key.
        circuit: CircuitId,
        /// Where from.
        pool: Pool,
    },
    /// A preload does not fit beside what is there. Nothing further happens about it.
    PreloadRefused {
        /// Whose key.
        circuit: CircuitId,
        /// What is missing.
        cause: OutOfMemory,
    },
    /// A key that should have been evicted is in use there.
    EvictRefused {
        /// Whose key.
        circuit: CircuitId,
        /// Where it stays.
        pool: Pool,
        /// By how many partitions.
        users: u32,
    },

    /// The device is fenced: wait until nothing runs there any more, discard all that is on it, and compute its known
    /// answers. Answer: `DeviceSelfTest`.
    RunSelfTest {
        /// The device.
        device: DeviceId,
    },
    /// The device has failed its last self-test and is not used again.
    RetireDevice {
        /// The device.
        device: DeviceId,
        /// How many it failed.
        self_tests: u32,
    },
    /// The number of workers changes. To be logged.
    SetPartitionWorkers {
        /// The number and why.
        choice: Choice,
    },

    /// The job is not accepted.
    RefuseJob {
        /// The job.
        job: JobId,
        /// Why.
        refusal: Refusal,
    },
    /// All its proofs are there. It holds nothing any more.
    CompleteJob {
        /// The job.
        job: JobId,
    },
    /// It cannot be done. It holds nothing any more.
    FailJob {
        /// The job.
        job: JobId,
        /// Why.
        cause: FailureCause,
    },
    /// It was cancelled. It holds nothing any more.
    CancelledJob {
        /// The job.
        job: JobId,
    },
    /// After a shutdown: the last job has ended.
    ShutDown,
}

/// Why a job is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// One partition and its key do not fit the empty machine. All pools that are too small; a device is one only if no
    /// device fits.
    TooLarge {
        /// The pools.
        shortages: Vec<Shortage>,
    },
    /// All devices are retired.
    NoDevice,
    /// No more jobs are taken.
    ShuttingDown,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { shortages } => {
                f.write_str("one partition and its key do not fit:")?;
                for Shortage { pool, requested, capacity } in shortages {
                    write!(f, " {pool} {} of {};", show_bytes(*requested), show_bytes(*capacity))?;
                }
                Ok(())
            }
            Self::NoDevice => f.write_str("no device is left"),
            Self::ShuttingDown => f.write_str("the engine shuts down"),
        }
    }
}

/// Why a job failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureCause {
    /// A partition failed, and again on retries where those made sense.
    #[error("{partition}: {fault} (failure {failures}{})", device.map_or(String::new(), |d| format!(", {d}")))]
    Partition {
        /// Which partition.
        partition: PartitionId,
        /// Where it failed last; `None`: on the host.
        device: Option<DeviceId>,
        /// How often it failed.
        failures: usize,
        /// What happened last.
        fault: Fault,
    },
    /// Its key cannot be loaded.
    #[error("the key of {circuit} cannot be loaded to {pool} memory ({attempts} attempts): {cause}")]
    KeyLoad {
        /// Whose key.
        circuit: CircuitId,
        /// Where to.
        pool: Pool,
        /// How often it was tried.
        attempts: u32,
        /// What happened last.
        cause: String,
    },
    /// It was not done in time.
    #[error("the deadline {} s has passed at {} s", deadline.as_secs_f64(), now.as_secs_f64())]
    Deadline {
        /// When it had to be done.
        deadline: Time,
        /// When that was noticed.
        now: Time,
    },
    /// What was possible at submission is so no more: a device is retired, or the circuit has become larger.
    #[error("{0}")]
    Unplaceable(Refusal),
}
