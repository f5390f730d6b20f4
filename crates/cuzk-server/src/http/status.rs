//! The JSON of `/status`: what the status page shows, for programs.
//!
//! The schema is stable: fields are added, none is renamed or removed without a new number in
//! [`Status::schema`]. Times of day are in milliseconds since 1970 UTC, lengths of time in seconds, memory is in bytes;
//! what is not known is `null`. Counters count from the start of the process. Texts of failures have no paths: the log
//! has them.

use std::time::Duration;

use serde::Serialize;

use super::{
    About,
    health::Readiness,
    metrics::{kind_name, priority_name},
    process::Resident,
};
use crate::{
    jobs::{ErrorLook, JobLook, JobsLook},
    prover::{DeviceLook, KeyLook, Look, PoolLook, Times},
};

/// A running server at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Version of this schema: 1.
    pub schema: u32,
    /// Name of the machine.
    pub title: String,
    /// Version of the program.
    pub version: String,
    /// The commit that it was built from; empty if that is unknown.
    pub commit: String,
    /// `running` or `draining`.
    pub state: &'static str,
    /// Whether new work is taken and can be done.
    pub ready: bool,
    /// Why not.
    pub not_ready_because: Option<String>,
    /// The start of the process. Another value means another process.
    pub started_unix_ms: u64,
    /// Since then.
    pub uptime_seconds: f64,
    /// Jobs that ended.
    pub proofs: Proofs,
    /// Jobs that did not.
    pub queue: Queue,
    /// How many partitions are worked on at a time.
    pub workers: Workers,
    /// In the order of their numbers.
    pub devices: Vec<DeviceLook>,
    /// Memory, by pool.
    pub pools: Vec<PoolLook>,
    /// Keys that take memory.
    pub keys: Vec<KeyLook>,
    /// Jobs that have not ended: those under way, then those that wait; not all, if there are many.
    pub unfinished: Vec<Job>,
    /// Jobs that ended, newest first.
    pub recent: Vec<Job>,
    /// What went wrong, newest first.
    pub errors: Vec<ErrorLook>,
    /// The journal on disk.
    pub journal: Journal,
    /// The memory of the process, where the system tells it.
    pub process: Option<Process>,
}

/// Jobs that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Proofs {
    /// With a verified proof.
    pub completed: u64,
    /// Without one.
    pub failed: u64,
    /// Because they were not wanted any more.
    pub cancelled: u64,
    /// Proofs that failed their verification and were not released.
    pub verification_failures: u64,
    /// The same by kind.
    pub by_kind: Vec<EndedByKind>,
}

/// Jobs of a kind that ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedByKind {
    /// `porep_seal_commit`, `snap_deals_update`, `window_post_partition` or `winning_post`.
    pub kind: &'static str,
    /// With a verified proof.
    pub completed: u64,
    /// Without one.
    pub failed: u64,
    /// Because they were not wanted any more.
    pub cancelled: u64,
}

/// Jobs that did not end yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// They have not begun.
    pub pending: u32,
    /// They have.
    pub in_progress: u32,
    /// The same by kind.
    pub by_kind: Vec<QueueOfKind>,
    /// Those that have not begun by priority, most urgent first.
    pub by_priority: Vec<QueueOfPriority>,
}

/// Jobs of a kind that did not end yet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueOfKind {
    /// As in [`EndedByKind::kind`].
    pub kind: &'static str,
    /// They have not begun.
    pub pending: u32,
    /// They have.
    pub in_progress: u32,
}

/// Jobs of a priority that have not begun.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueOfPriority {
    /// `critical`, `high`, `normal` or `low`.
    pub priority: &'static str,
    /// How many.
    pub pending: u32,
    /// How long the oldest has been waiting.
    pub oldest_seconds: Option<f64>,
}

/// How many partitions are worked on at a time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workers {
    /// Partitions that may be in flight.
    pub partition_workers: u32,
    /// Threads that prepare work on devices.
    pub gpu_workers: u32,
    /// Why so many partitions, in words.
    pub because: String,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Job {
    /// Its id.
    pub job: String,
    /// The caller's name for it; may be empty.
    pub request_id: String,
    /// As in [`EndedByKind::kind`].
    pub kind: &'static str,
    /// Name of the circuit.
    pub circuit: String,
    /// As in [`QueueOfPriority::priority`].
    pub priority: &'static str,
    /// `queued`, `running`, `completed`, `failed` or `cancelled`.
    pub state: &'static str,
    /// How many partitions it has.
    pub partitions: u32,
    /// How many of them are proved.
    pub partitions_done: u32,
    /// What happened last, in words; may be empty.
    pub news: String,
    /// Jobs that are served before it.
    pub position: u32,
    /// When it was accepted.
    pub accepted_unix_ms: u64,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// Where its time went, if it has a proof.
    pub times: Option<StageTimes>,
    /// Backend and name of its device; may be empty.
    pub device: String,
    /// Why it failed; may be empty.
    pub error: String,
}

/// Where the time of a job went. All but `queue_seconds` are sums over partitions, which overlap: their sum exceeds the
/// elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StageTimes {
    /// Until the first partition began.
    pub queue_seconds: f64,
    /// Waiting for the key.
    pub key_seconds: f64,
    /// Making witnesses.
    pub synthesis_seconds: f64,
    /// A device's kernels.
    pub device_seconds: f64,
    /// Assembling and verifying.
    pub finish_seconds: f64,
}

/// The journal on disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Journal {
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes above which no new job is taken.
    pub limit_bytes: u64,
    /// Jobs in it that have not ended.
    pub unfinished: u64,
    /// Ended jobs that are kept.
    pub ended: u64,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Process {
    /// What is resident.
    pub resident_bytes: u64,
    /// The most that ever was.
    pub peak_resident_bytes: u64,
}

impl Status {
    /// Of these.
    pub(super) fn of(jobs: &JobsLook, unfinished: &[JobLook], prover: &Look, about: &About) -> Self {
        let readiness = Readiness::of(jobs, prover);
        Self {
            schema: 1,
            title: about.title.clone(),
            version: about.version.clone(),
            commit: about.commit.clone(),
            state: jobs.state.name(),
            ready: readiness.is_ready(),
            not_ready_because: (!readiness.is_ready()).then(|| readiness.to_string()),
            started_unix_ms: about.started_unix_ms(),
            uptime_seconds: about.uptime().as_secs_f64(),
            proofs: Proofs::of(jobs, prover),
            queue: Queue::of(jobs),
            workers: Workers {
                partition_workers: prover.partition_workers,
                gpu_workers: prover.gpu_workers,
                because: prover.workers.clone(),
            },
            devices: prover.devices.clone(),
            pools: prover.pools.clone(),
            keys: prover.keys.clone(),
            unfinished: unfinished.iter().map(Job::of).collect(),
            recent: jobs.recent.iter().map(Job::of).collect(),
            errors: jobs.errors.clone(),
            journal: Journal {
                bytes: jobs.journal.database_bytes.saturating_add(jobs.journal.request_bytes),
                limit_bytes: jobs.journal.max_bytes,
                unfinished: jobs.journal.unfinished,
                ended: jobs.journal.ended,
            },
            process: Resident::read().map(|r| Process { resident_bytes: r.now, peak_resident_bytes: r.peak }),
        }
    }
}

impl Proofs {
    fn of(jobs: &JobsLook, prover: &Look) -> Self {
        let by_kind = jobs.kinds.iter().map(|k| EndedByKind {
            kind: kind_name(k.kind),
            completed: k.completed,
            failed: k.failed,
            cancelled: k.cancelled,
        });
        Self {
            completed: jobs.completed(),
            failed: jobs.failed(),
            cancelled: jobs.cancelled(),
            verification_failures: prover.verification_failures,
            by_kind: by_kind.collect(),
        }
    }
}

impl Queue {
    fn of(jobs: &JobsLook) -> Self {
        let by_kind = jobs.kinds.iter().map(|k| QueueOfKind {
            kind: kind_name(k.kind),
            pending: k.pending,
            in_progress: k.in_progress,
        });
        let by_priority = jobs.queues.iter().map(|q| QueueOfPriority {
            priority: priority_name(q.priority),
            pending: q.pending,
            oldest_seconds: (q.pending > 0).then_some(q.oldest.as_secs_f64()),
        });
        Self {
            pending: jobs.pending(),
            in_progress: jobs.in_progress(),
            by_kind: by_kind.collect(),
            by_priority: by_priority.collect(),
        }
    }
}

impl Job {
    fn of(look: &JobLook) -> Self {
        Self {
            job: look.job.clone(),
            request_id: look.request_id.clone(),
            kind: kind_name(look.kind),
            circuit: look.circuit.clone(),
            priority: priority_name(look.priority),
            state: look.state.name(),
            partitions: look.partitions,
            partitions_done: look.partitions_done,
            news: look.news.clone(),
            position: look.position,
            accepted_unix_ms: look.accepted_at_ms,
            ended_unix_ms: look.ended_at_ms,
            times: look.times.map(StageTimes::of),
            device: look.device.clone(),
            error: look.error.clone(),
        }
    }
}

impl StageTimes {
    fn of(times: Times) -> Self {
        let [queue_seconds, key_seconds, synthesis_seconds, device_seconds, finish_seconds] =
            [times.queue, times.key, times.synthesis, times.device, times.finish].map(|t: Duration| t.as_secs_f64());
        Self { queue_seconds, key_seconds, synthesis_seconds, device_seconds, finish_seconds }
    }
}
