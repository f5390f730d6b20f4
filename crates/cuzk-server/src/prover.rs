//! What a server needs of whatever proves: the one interface between the two.
//!
//! A server knows jobs, clients and disks; a [`Prover`] knows circuits, keys and devices.

use std::{
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_proto::v1::{Priority, SubmitProofRequest};
use cuzk_timeline::Timeline;
use serde::Serialize;

/// Proves what requests ask for. All methods may be called from several threads; those that say so take long and are
/// called where that does no harm.
pub trait Prover: Send + Sync + 'static {
    /// Checks a request completely, short of proving it. Takes as long as parsing its input does.
    ///
    /// # Errors
    /// [`Rejection`]: it can never be proved, or not here.
    fn check(&self, request: &SubmitProofRequest) -> Result<Summary, Rejection>;

    /// Starts the proof of a request that [`check`](Self::check) accepted, now or in an earlier life of the process,
    /// and returns at once. The observer hears of everything from any thread and, exactly once and last, of the end.
    fn start(&self, order: Order, observer: Arc<dyn Observer>) -> Arc<dyn Running>;

    /// A look at devices, memory and keys.
    fn look(&self) -> Look;

    /// What was done in the last `minutes`. A job is called there by the name that it was [ordered](Order::job) with,
    /// which is the one that callers know.
    fn timeline(&self, minutes: f64) -> Timeline;

    /// Brings a circuit's key to the devices. Takes as long as that takes.
    ///
    /// # Errors
    /// [`KeyError`].
    fn preload(&self, circuit: &str) -> Result<Preloaded, KeyError>;

    /// Frees a circuit's key unless it is in use. Takes as long as that takes.
    ///
    /// # Errors
    /// [`KeyError`].
    fn evict(&self, circuit: &str) -> Result<Evicted, KeyError>;

    /// Ends all threads and frees all devices, after the jobs under way are cancelled. Returns when that is done.
    fn stop(&self);
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Name of the circuit, such as `porep-32g`.
    pub circuit: String,
    /// Proofs that it consists of.
    pub partitions: u32,
}

/// Why a request is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// It is wrong, and will always be. The text names the field.
    #[error("{0}")]
    Invalid(String),
    /// It is right, but this machine cannot do it as it is: a key is missing, a device is too small.
    #[error("{0}")]
    Unable(String),
}

/// A proof that is to be made.
pub struct Order {
    /// The job's name, for logs and timelines.
    pub job: String,
    /// What [`Prover::check`] said.
    pub summary: Summary,
    /// Never [`Priority::Unspecified`].
    pub priority: Priority,
    /// When it is of no use any more.
    pub deadline: Option<Instant>,
    /// Where the request is. It is read when the proof's turn comes, so that what waits takes no memory.
    pub request: Arc<dyn RequestSource>,
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Order({}, {}, {:?})", self.job, self.summary.circuit, self.priority)
    }
}

/// Where a request is kept.
pub trait RequestSource: Send + Sync {
    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self) -> io::Result<SubmitProofRequest>;
}

/// A proof under way.
pub trait Running: Send + Sync {
    /// It is not wanted any more. The observer still hears of the end.
    fn cancel(&self);
}

/// Hears what becomes of a proof.
pub trait Observer: Send + Sync {
    /// Something happened to a partition.
    fn news(&self, news: News);

    /// It has ended; called exactly once, after all news.
    fn ended(&self, outcome: Outcome);
}

/// What happened to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Its number.
    pub partition: u32,
    /// What happened.
    pub step: Step,
}

/// A step of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its witness is being made.
    Synthesizing,
    /// It waits for a device.
    Waiting,
    /// It is brought to the device with this number.
    Preparing(u32),
    /// A device computes it.
    Proving(u32),
    /// Its proof is assembled and verified.
    Finishing,
    /// Its proof is there.
    Proved,
    /// An attempt failed; it is tried again, or the end follows.
    Failed(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthesizing => f.write_str("synthesizing"),
            Self::Waiting => f.write_str("waiting for a device"),
            Self::Preparing(device) => write!(f, "preparing on device {device}"),
            Self::Proving(device) => write!(f, "proving on device {device}"),
            Self::Finishing => f.write_str("assembling and verifying"),
            Self::Proved => f.write_str("proved"),
            Self::Failed(cause) => write!(f, "failed: {cause}"),
        }
    }
}

/// How a proof ended.
pub type Outcome = Result<Proved, Failure>;

/// A verified proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proved {
    /// Its bytes, partition after partition.
    pub proof: Vec<u8>,
    /// Backend and name of the device that computed (the last of) it.
    pub device: String,
    /// Where the time went.
    pub times: Times,
}

/// Where the time of a proof went. Sums over partitions, so they exceed the elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From [`Prover::start`] to the first synthesis (elapsed).
    pub queue: Duration,
    /// Waiting for the key.
    pub key: Duration,
    /// Making witnesses.
    pub synthesis: Duration,
    /// A device's kernels.
    pub device: Duration,
    /// Assembling and verifying.
    pub finish: Duration,
}

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Its deadline has passed.
    #[error("the deadline has passed")]
    Deadline,
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// The prover stopped before its end. The job is as it was.
    #[error("the prover has stopped")]
    Stopped,
}

/// Why a key is not brought or freed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No circuit has this name.
    #[error("no circuit is called {0:?}")]
    UnknownCircuit(String),
    /// Partitions under way use it.
    #[error("the key of {0} is in use")]
    InUse(String),
    /// It cannot be done.
    #[error("{0}")]
    Unable(String),
}

/// A key was brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preloaded {
    /// Whether it was there.
    pub already_loaded: bool,
    /// How long it took.
    pub took: Duration,
}

/// A key was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Whether it was there.
    pub was_loaded: bool,
    /// Bytes of all pools.
    pub freed_bytes: u64,
}

/// A prover at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Its devices.
    pub devices: Vec<DeviceLook>,
    /// Its memory.
    pub pools: Vec<PoolLook>,
    /// Keys that take memory.
    pub keys: Vec<KeyLook>,
    /// Partitions that may be in flight, and why so many, in words.
    pub workers: String,
    /// The number of these.
    pub partition_workers: u32,
    /// Threads that prepare work on devices.
    pub gpu_workers: u32,
    /// Proofs that failed their verification and were not released.
    pub verification_failures: u64,
    /// Why nothing that it knows of can be proved on healthy devices either, and what would help: no circuit fits its
    /// memory. For everybody, so without paths. `None`: something can be, or nothing is known yet.
    pub unable: Option<String>,
}

/// A device at one moment; as JSON, what `/status` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceLook {
    /// Its number here.
    pub index: u32,
    /// Name of the backend, such as `cuda`.
    pub backend: String,
    /// The model.
    pub name: String,
    /// It is the same as long as the hardware is.
    pub uuid: String,
    /// Version of the driver; empty if there is none.
    pub driver: String,
    /// "healthy", "fenced", "testing" or "retired".
    pub health: String,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of it that are free.
    pub memory_free_bytes: u64,
    /// The job whose partition it computes.
    pub job: Option<String>,
    /// Why it does not compute, if it does not.
    pub idle_reason: Option<String>,
    /// How much of the time since the start it computed, from 0 to 1.
    pub busy: f64,
}

/// A pool of memory at one moment, in bytes; as JSON, what `/status` has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolLook {
    /// `host`, `pinned` or `device 0`.
    pub name: String,
    /// Reserved now.
    #[serde(rename = "reserved_bytes")]
    pub reserved: u64,
    /// The most that was ever reserved.
    #[serde(rename = "peak_bytes")]
    pub peak: u64,
    /// What may be reserved.
    #[serde(rename = "capacity_bytes")]
    pub capacity: u64,
}

/// A key that takes memory; as JSON, what `/status` has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyLook {
    /// Name of the circuit.
    pub circuit: String,
    /// Where it is.
    pub tier: Tier,
    /// Bytes that it takes of all pools.
    pub bytes: u64,
    /// Partitions that use it.
    pub users: u32,
    /// Digest of the key's file as `cuzk key inspect` shows it, once it is known.
    pub digest: Option<String>,
}

/// How near to a device a key is; as JSON, its name in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// On a device.
    Hot,
    /// In the host's memory.
    Warm,
    /// On disk.
    Cold,
}
