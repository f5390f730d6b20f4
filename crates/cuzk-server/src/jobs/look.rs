//! What jobs look like from outside: plain data, taken at one moment.

use std::time::Duration;

use cuzk_proto::v1::{Priority, ProofKind};
use serde::Serialize;

use crate::prover::Times;

/// The kinds of proof, in the order of every list by kind.
pub const KINDS: [ProofKind; 4] =
    [ProofKind::PorepSealCommit, ProofKind::SnapDealsUpdate, ProofKind::WindowPostPartition, ProofKind::WinningPost];

/// The priorities, most urgent first: the order of every list by priority.
pub const PRIORITIES: [Priority; 4] = [Priority::Critical, Priority::High, Priority::Normal, Priority::Low];

/// All jobs at one moment.
#[derive(Clone, Debug)]
pub struct JobsLook {
    /// Whether new work is taken.
    pub state: ServiceState,
    /// One a kind, in the order of [`KINDS`].
    pub kinds: Vec<KindLook>,
    /// One a priority, in the order of [`PRIORITIES`].
    pub queues: Vec<QueueLook>,
    /// Jobs that ended since the start, newest first; at most [`JobsOptions::recent`](super::JobsOptions::recent).
    pub recent: Vec<JobLook>,
    /// What went wrong since the start, newest first; at most [`JobsOptions::recent`](super::JobsOptions::recent).
    pub errors: Vec<ErrorLook>,
    /// The journal on disk.
    pub journal: cuzk_journal::Usage,
    /// Jobs that were found unfinished at the start and started again.
    pub resumed: u64,
    /// Submissions that joined work that was there.
    pub joined: u64,
    /// Submissions that were refused, by reason.
    pub refused: RefusedLook,
    /// Callers that wait for a job or watch one.
    pub waiting: u64,
    /// Jobs that have not begun, with those that are about to be accepted.
    pub queued: usize,
    /// [`JobsLimits::max_queued`](super::JobsLimits::max_queued): as many, and no new job is taken.
    pub max_queued: usize,
    /// Entries in memory that jobs which have not ended account for; none if there are no such jobs.
    pub retained: usize,
}

impl JobsLook {
    /// Jobs that ended with a proof since the start.
    pub fn completed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.completed).sum()
    }

    /// Jobs that failed since the start.
    pub fn failed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.failed).sum()
    }

    /// Jobs that were cancelled since the start.
    pub fn cancelled(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.cancelled).sum()
    }

    /// Jobs that have not begun.
    pub fn pending(&self) -> u32 {
        self.kinds.iter().map(|kind| kind.pending).sum()
    }

    /// Jobs that have begun and not ended.
    pub fn in_progress(&self) -> u32 {
        self.kinds.iter().map(|kind| kind.in_progress).sum()
    }
}

/// Whether new work is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceState {
    /// It is.
    Running,
    /// It is not: what is there is finished, then the process ends.
    Draining,
}

impl ServiceState {
    /// "running" or "draining".
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
        }
    }
}

/// Jobs of one kind. Counters count from the start of the process.
#[derive(Clone, Debug)]
pub struct KindLook {
    /// The kind.
    pub kind: ProofKind,
    /// Jobs that have not begun.
    pub pending: u32,
    /// Jobs that have begun and not ended.
    pub in_progress: u32,
    /// Jobs that ended with a proof.
    pub completed: u64,
    /// Jobs that failed, or ran out of time.
    pub failed: u64,
    /// Jobs that were cancelled.
    pub cancelled: u64,
    /// Durations of the jobs that ended with a proof, one a stage, in the order of [`Stage::ALL`].
    pub durations: Vec<(Stage, Histogram)>,
}

/// Jobs of one priority that have not begun.
#[derive(Clone, Debug)]
pub struct QueueLook {
    /// The priority.
    pub priority: Priority,
    /// How many there are.
    pub pending: u32,
    /// Since its acceptance, for the oldest; zero if there is none.
    pub oldest: Duration,
}

/// Submissions that were refused since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedLook {
    /// Wrong requests.
    pub invalid: u64,
    /// Right ones that this machine cannot do.
    pub unable: u64,
    /// The queue or the client's share was full.
    pub limited: u64,
    /// The service was draining.
    pub draining: u64,
    /// The journal did not take them, or taking them ended in a panic.
    pub journal: u64,
}

/// A part of a job's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From acceptance to the first synthesis.
    Queue,
    /// Waiting for the key.
    Key,
    /// Making witnesses, summed over partitions.
    Synthesis,
    /// A device's kernels, summed over partitions.
    Device,
    /// Assembling and verifying, summed over partitions.
    Finish,
    /// From acceptance to the end.
    Total,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Queue, Self::Key, Self::Synthesis, Self::Device, Self::Finish, Self::Total];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Key => "key",
            Self::Synthesis => "synthesis",
            Self::Device => "device",
            Self::Finish => "finish",
            Self::Total => "total",
        }
    }
}

/// Durations, counted in buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// How many durations there are up to each of [`Histogram::BOUNDS`] (inclusive) and above the bound before it; the
    /// last counts those above all bounds.
    pub counts: [u64; Histogram::BOUNDS.len() + 1],
    /// Their sum in seconds.
    pub sum: f64,
}

impl Histogram {
    /// Upper bounds of the buckets in seconds: a WinningPoSt on a device takes tens of milliseconds, a PoRep on a
    /// processor hours.
    pub const BOUNDS: [f64; 16] =
        [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1200.0, 7200.0];

    /// No durations.
    pub fn new() -> Self {
        Self { counts: [0; Self::BOUNDS.len() + 1], sum: 0.0 }
    }

    /// Counts a duration.
    pub fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.counts[Self::BOUNDS.partition_point(|bound| *bound < seconds)] += 1;
        self.sum += seconds;
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// A job at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct JobLook {
    /// Its id.
    pub job: String,
    /// The caller's name for it; may be empty.
    pub request_id: String,
    /// Who submitted it.
    pub client: String,
    /// The kind of proof.
    pub kind: ProofKind,
    /// Name of the circuit.
    pub circuit: String,
    /// Its priority.
    pub priority: Priority,
    /// Where it is.
    pub state: JobState,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many of them are proved.
    pub partitions_done: u32,
    /// The last change in words, if there was one since the start.
    pub news: String,
    /// Jobs that are served before it.
    pub position: u32,
    /// Acceptance in milliseconds since 1970.
    pub accepted_at_ms: u64,
    /// The end in milliseconds since 1970, if it has ended.
    pub ended_at_ms: Option<u64>,
    /// Where its time went, if it ended with a proof.
    pub times: Option<Times>,
    /// Backend and name of its device, if it ended with a proof.
    pub device: String,
    /// Why it failed, if it did.
    pub error: String,
    /// How often it was started, which is more than once after a restart.
    pub attempts: u32,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It has not begun.
    Queued,
    /// It has begun.
    Running,
    /// It ended with a proof.
    Completed,
    /// It ended without one.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl JobState {
    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether it has ended.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Something that went wrong; as JSON, what `/status` has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorLook {
    /// When, in milliseconds since 1970.
    #[serde(rename = "at_unix_ms")]
    pub at_ms: u64,
    /// The job; empty if there is none.
    pub job: String,
    /// What, in words.
    pub text: String,
}
