//! A recorded run as plain data.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{CustomStage, IdleReason, Nanos, Pool, Stage, StageClass};

/// One proof that somebody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

/// A circuit together with its proving key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CircuitId(pub u32);

/// A track: its place in [`Timeline::tracks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TrackId(pub u32);

/// One attempt at a part of a job that has a witness and a Groth16 proof of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionRef {
    /// The job.
    pub job: JobId,
    /// Which of its partitions, from 0.
    pub index: u32,
    /// Which attempt, from 0.
    pub attempt: u32,
}

impl fmt::Display for PartitionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of job {}", self.index, self.job.0)?;
        if self.attempt > 0 { write!(f, " (attempt {})", self.attempt) } else { Ok(()) }
    }
}

/// What a track stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// What a device computes. The device is busy while a span of class [`StageClass::Compute`] lies here.
    Device,
    /// Transfers to and from devices, and keys being loaded.
    Transfer,
    /// A worker of synthesis.
    Synthesis,
    /// A worker that finishes proofs.
    Finish,
    /// Where partitions wait: nobody's, and any number at a time.
    Waiting,
}

/// A row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Its name, for people.
    pub name: String,
    /// What it stands for.
    pub kind: TrackKind,
}

/// How a span ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should.
    #[default]
    Ok,
    /// With a fault.
    Failed,
    /// It was not wanted any more.
    Cancelled,
    /// It had not ended when the timeline was taken, which is where it is cut.
    Running,
}

/// A stage of a partition (or a key on its way), from when to when and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Where.
    pub track: TrackId,
    /// What.
    pub stage: Stage,
    /// Of which partition; `None`: of a key.
    pub partition: Option<PartitionRef>,
    /// Of which circuit.
    pub circuit: Option<CircuitId>,
    /// Begin.
    pub start: Nanos,
    /// End, not before the begin.
    pub end: Nanos,
    /// Bytes that were moved, or that it held, as the stage has it; 0: not stated.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
}

impl Span {
    /// A span of nothing in particular that ended well: set the other fields as they are known.
    pub fn new(track: TrackId, stage: Stage, start: Nanos, end: Nanos) -> Self {
        Self { track, stage, partition: None, circuit: None, start, end, bytes: 0, outcome: Outcome::Ok }
    }

    /// Its length.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }
}

/// Time in which a device did not compute, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleGap {
    /// The device's track.
    pub track: TrackId,
    /// Begin.
    pub start: Nanos,
    /// End, not before the begin.
    pub end: Nanos,
    /// Why.
    pub reason: IdleReason,
}

/// Bytes in use of a pool from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// From when on.
    pub at: Nanos,
    /// Bytes in use.
    pub in_use: u64,
}

/// A pool and how full it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolUse {
    /// Which pool.
    pub pool: Pool,
    /// What it holds at most, in bytes.
    pub capacity: u64,
    /// Bytes in use, ascending in time; each value holds until the next one.
    #[serde(default, skip_serializing)]
    pub samples: Vec<Sample>,
}

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEvent {
    /// It arrived.
    Submitted {
        /// Its name, for people.
        name: String,
        /// Its circuit.
        circuit: Option<CircuitId>,
        /// How many partitions it has.
        partitions: u32,
    },
    /// All its proofs are there and verified.
    Completed,
    /// It failed.
    Failed {
        /// Why.
        cause: String,
    },
    /// It was not wanted any more.
    Cancelled,
}

/// Something that happened to a job, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobMark {
    /// The job.
    pub job: JobId,
    /// When.
    pub at: Nanos,
    /// What.
    pub event: JobEvent,
}

/// What was recorded but is not in a timeline any more, because memory is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Spans.
    pub spans: u64,
    /// Idle gaps.
    pub gaps: u64,
    /// Samples of pools.
    pub samples: u64,
    /// Marks of jobs.
    pub marks: u64,
}

impl Dropped {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.spans, self.gaps, self.samples, self.marks].iter().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// A recorded run.
///
/// Everything refers to tracks, circuits and custom stages by number. What a [`Recorder`](crate::Recorder) gives and
/// what [`Timeline::read`] accepts is consistent; in one that was put together otherwise, a number that refers to
/// nothing is shown as such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The machine or the run, for people.
    pub title: String,
    /// When the recorder started: milliseconds since 1970 UTC; `None` if time is simulated.
    pub started_unix_ms: Option<u64>,
    /// From when on the timeline is complete.
    pub start: Nanos,
    /// Until when.
    pub end: Nanos,
    /// The rows.
    pub tracks: Vec<Track>,
    /// Names of circuits.
    pub circuits: BTreeMap<CircuitId, String>,
    /// Stages that the caller named.
    pub custom_stages: Vec<CustomStage>,
    /// Memory over time.
    pub pools: Vec<PoolUse>,
    /// What was done.
    pub spans: Vec<Span>,
    /// Why devices were idle.
    pub gaps: Vec<IdleGap>,
    /// What happened to jobs.
    pub marks: Vec<JobMark>,
    /// What is missing.
    pub dropped: Dropped,
}

impl Timeline {
    /// Its length.
    pub fn wall(&self) -> Nanos {
        self.end - self.start
    }

    /// The tracks with their numbers.
    pub fn tracks(&self) -> impl Iterator<Item = (TrackId, &Track)> {
        (0..).map(TrackId).zip(&self.tracks)
    }

    /// The name of a stage.
    pub fn stage_label(&self, stage: Stage) -> &str {
        stage.label(&self.custom_stages)
    }

    /// What a stage keeps busy.
    pub fn stage_class(&self, stage: Stage) -> StageClass {
        stage.class(&self.custom_stages)
    }

    /// Names of the jobs that were submitted within the record.
    pub fn job_names(&self) -> BTreeMap<JobId, &str> {
        let submitted = self.marks.iter().filter_map(|mark| match &mark.event {
            JobEvent::Submitted { name, .. } => Some((mark.job, name.as_str())),
            _ => None,
        });
        submitted.collect()
    }

    /// The part from `start` to `end` (clipped to what there is): all spans and gaps that reach into it, whole; the
    /// marks in it; and the marks of submission of all jobs, which name them.
    pub fn between(&self, start: Nanos, end: Nanos) -> Self {
        let start = start.clamp(self.start, self.end);
        let end = end.clamp(start, self.end);
        let reaches_in =
            |from: Nanos, to: Nanos| from < end && to > start || from == to && from >= start && from <= end;
        let clip = |pool: &PoolUse| {
            let first = pool.samples.partition_point(|s| s.at <= start).saturating_sub(1);
            let samples = pool.samples[first..].iter().filter(|s| s.at <= end);
            PoolUse { samples: samples.map(|s| Sample { at: s.at.max(start), ..*s }).collect(), ..pool.clone() }
        };
        let keep = |mark: &&JobMark| {
            (start..=end).contains(&mark.at) || matches!(mark.event, JobEvent::Submitted { .. }) && mark.at <= end
        };
        Self {
            start,
            end,
            pools: self.pools.iter().map(clip).collect(),
            spans: self.spans.iter().filter(|s| reaches_in(s.start, s.end)).copied().collect(),
            gaps: self.gaps.iter().filter(|g| reaches_in(g.start, g.end)).cloned().collect(),
            marks: self.marks.iter().filter(keep).cloned().collect(),
            title: self.title.clone(),
            started_unix_ms: self.started_unix_ms,
            tracks: self.tracks.clone(),
            circuits: self.circuits.clone(),
            custom_stages: self.custom_stages.clone(),
            dropped: self.dropped,
        }
    }
}
