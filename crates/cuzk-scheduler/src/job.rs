//! Jobs and their partitions: where each is, and what it holds.

use std::{fmt, sync::Arc};

use crate::{
    DeviceId, FailureCause, Fault, HostBytes, JobRequest, KeyBytes, OnDevice, PartitionBytes, PartitionId, Priority,
    Reservation, Ticket,
};

/// Where a partition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Not admitted: holds nothing.
    Pending,
    /// Its witness is being made.
    Synthesizing,
    /// Its witness waits for room in the device queue.
    Synthesized,
    /// On its way into the device queue.
    Sending,
    /// In the device queue.
    Queued,
    /// Assigned to a device that loads the key.
    AwaitingKey(DeviceId),
    /// Being brought to its device.
    Preparing(DeviceId),
    /// Waiting for its device's compute lock.
    Prepared(DeviceId),
    /// Computing.
    Running(DeviceId),
    /// Its kernels are done; the host finishes it.
    Finishing(DeviceId),
    /// Aborted, at no device, not yet stopped.
    Stopping,
    /// Its proof is there.
    Done,
    /// Aborted and stopped.
    Dropped,
}

impl Stage {
    /// The device whose worker slot it takes.
    pub fn device_slot(self) -> Option<DeviceId> {
        match self {
            Self::AwaitingKey(d) | Self::Preparing(d) | Self::Prepared(d) | Self::Running(d) => Some(d),
            _ => None,
        }
    }

    /// The device that it belongs to.
    pub fn device(self) -> Option<DeviceId> {
        match self {
            Self::Finishing(d) => Some(d),
            other => other.device_slot(),
        }
    }

    /// Whether nothing will happen to it any more.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Dropped)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Pending => "waiting for admission",
            Self::Synthesizing => "being synthesized",
            Self::Synthesized => "waiting for the queue",
            Self::Sending => "being sent",
            Self::Queued => "in the queue",
            Self::AwaitingKey(_) => "waiting for a key",
            Self::Preparing(_) => "being prepared",
            Self::Prepared(_) => "waiting for the compute lock",
            Self::Running(_) => "computing",
            Self::Finishing(_) => "being finished",
            Self::Stopping => "being stopped",
            Self::Done => "done",
            Self::Dropped => "dropped",
        };
        f.write_str(text)?;
        self.device().map_or(Ok(()), |d| write!(f, " on {d}"))
    }
}

/// The strict order of all work: more urgent first, then what arrived first, then the lower partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) priority: Priority,
    /// Number of jobs that were accepted before.
    pub(crate) arrival: u64,
    pub(crate) index: u32,
}

/// A partition and its place in the order.
pub(crate) type Ranked = (Rank, PartitionId);

/// A failure of an attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Where; `None`: on the host.
    pub(crate) device: Option<DeviceId>,
    pub(crate) fault: Fault,
}

impl Failure {
    fn is_wrong_proof(&self) -> bool {
        matches!(self.fault, Fault::WrongProof { .. })
    }
}

/// How often an attempt at a partition may fail: at first it goes to any device, then to another one, then the job
/// fails.
pub(crate) const MAX_FAILURES: usize = 3;

/// A partition and all that it holds. What it holds is written here and nowhere else.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) stage: Stage,
    pub(crate) attempt: u32,
    /// Told to stop, has not stopped yet.
    pub(crate) aborting: bool,
    /// Holds a permit.
    pub(crate) permit: bool,
    /// Takes one of the queue's places.
    pub(crate) place: bool,
    /// Holds references to its key in the host's pools.
    pub(crate) shared_key: bool,
    /// Holds a reference to its key on that device.
    pub(crate) device_key: Option<DeviceId>,
    /// What it costs, as of its admission.
    pub(crate) bytes: PartitionBytes,
    /// What its key costs, as of its admission.
    pub(crate) key: KeyBytes,
    /// What differs on single devices, as of its admission.
    pub(crate) exceptions: Arc<[OnDevice]>,
    pub(crate) host: Option<Reservation>,
    pub(crate) pinned: Option<Reservation>,
    pub(crate) device: Option<Reservation>,
    pub(crate) failures: Vec<Failure>,
    /// Ran out of memory: is tried with nothing beside it.
    pub(crate) alone: bool,
    /// How often later ones went first since it holds a permit.
    pub(crate) overtaken: u32,
    /// When its witness came, as a count of witnesses.
    pub(crate) ready: u64,
}

impl Partition {
    fn new() -> Self {
        Self {
            stage: Stage::Pending,
            attempt: 0,
            aborting: false,
            permit: false,
            place: false,
            shared_key: false,
            device_key: None,
            bytes: PartitionBytes::default(),
            key: KeyBytes::default(),
            exceptions: Arc::default(),
            host: None,
            pinned: None,
            device: None,
            failures: Vec::new(),
            alone: false,
            overtaken: 0,
            ready: 0,
        }
    }

    /// What it and its key take on a device.
    pub(crate) fn on_device(&self, device: DeviceId) -> OnDevice {
        OnDevice::of(device, &self.key, &self.bytes, &self.exceptions)
    }

    /// Gives back what it holds on the host's side beyond `held`.
    pub(crate) fn shrink_host(&mut self, held: HostBytes) {
        if let Some(r) = &mut self.host {
            r.shrink_to(held.host);
        }
        if let Some(r) = &mut self.pinned {
            r.shrink_to(held.pinned);
        }
    }

    /// Whether it must not go to `device`: a wrong proof came from there, or a second chance is used up there.
    pub(crate) fn excludes(&self, device: DeviceId) -> bool {
        let second = self.failures.len() >= 2;
        self.failures.iter().any(|f| f.device == Some(device) && (second || f.is_wrong_proof()))
    }

    /// Whether it has failed too often to be tried again.
    pub(crate) fn is_hopeless(&self) -> bool {
        let count = |wanted: fn(&Failure) -> bool| self.failures.iter().filter(|f| wanted(f)).count();
        self.failures.len() >= MAX_FAILURES || count(|f| f.device.is_none()) >= 2 || count(Failure::is_wrong_proof) >= 2
    }

    /// Takes note of a failure.
    pub(crate) fn failed(&mut self, device: Option<DeviceId>, fault: Fault) {
        self.alone |= matches!(fault, Fault::OutOfMemory(_));
        self.failures.push(Failure { device, fault });
    }
}

/// How a job ends that is not completed.
#[derive(Debug)]
pub(crate) enum Ending {
    Failed(FailureCause),
    Cancelled,
}

/// A job that has not ended.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: JobRequest,
    pub(crate) arrival: u64,
    pub(crate) partitions: Vec<Partition>,
    /// Set when it fails or is cancelled; it ends when its last partition has stopped.
    pub(crate) ending: Option<Ending>,
    /// How often jobs of the current circuit were admitted before it.
    pub(crate) overtaken: u32,
}

impl Job {
    pub(crate) fn new(request: JobRequest, arrival: u64) -> Self {
        let partitions = (0..request.partitions).map(|_| Partition::new()).collect();
        Self { request, arrival, partitions, ending: None, overtaken: 0 }
    }

    pub(crate) fn rank(&self, index: u32) -> Rank {
        Rank { priority: self.request.priority, arrival: self.arrival, index }
    }

    /// Its first partition that is not admitted.
    pub(crate) fn first_pending(&self) -> Option<u32> {
        self.partitions.iter().position(|p| p.stage == Stage::Pending).map(|i| i as u32)
    }

    pub(crate) fn ticket(&self, index: u32) -> Option<Ticket> {
        let attempt = self.partitions.get(index as usize)?.attempt;
        Some(Ticket { partition: PartitionId { job: self.request.job, index }, attempt })
    }
}
