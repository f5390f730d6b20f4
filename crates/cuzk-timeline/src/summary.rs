//! A timeline in numbers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use cuzk_units::show_bytes;
use serde::{Deserialize, Serialize};

use crate::{
    Activity, Dropped, JobEvent, JobId, Nanos, Outcome, Pool, Span, Stage, StageClass, Timeline, UNEXPLAINED,
    device_activity,
};

/// Lengths of time, in numbers. Of nothing, all are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: Nanos,
    /// Their mean, rounded down.
    pub mean: Nanos,
    /// The smallest of them that at least 95 % do not exceed (nearest rank, no interpolation).
    pub p95: Nanos,
    /// The largest.
    pub max: Nanos,
}

impl Distribution {
    /// Of these lengths.
    pub fn of(mut lengths: Vec<Nanos>) -> Self {
        lengths.sort_unstable();
        let count = lengths.len() as u64;
        let total: Nanos = lengths.iter().copied().sum();
        let rank = lengths.len() - lengths.len() / 20; // ⌈0.95 n⌉ = n − ⌊n/20⌋
        let at = |place: usize| lengths.get(place.wrapping_sub(1)).copied().unwrap_or_default();
        Self {
            count,
            total,
            mean: Nanos(total.0.checked_div(count).unwrap_or(0)),
            p95: at(rank),
            max: at(lengths.len()),
        }
    }
}

/// A stage in numbers: of the spans that ended within the timeline, with their whole lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageSummary {
    /// Which stage.
    pub stage: Stage,
    /// Its name.
    pub label: String,
    /// What it keeps busy.
    pub class: StageClass,
    /// How long its spans took, whatever their outcome.
    pub time: Distribution,
    /// Bytes of all of them.
    pub bytes: u64,
    /// How many did not end well.
    pub not_ok: u64,
}

/// The idle time of a device that has one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTime {
    /// The [label](crate::IdleReason::label) of the reason, or [`UNEXPLAINED`].
    pub reason: String,
    /// Its gaps: how many, how long.
    pub time: Distribution,
}

/// A device in numbers. `busy` and the totals of `idle` add up to the length of the timeline, to the nanosecond.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Its name.
    pub name: String,
    /// Length of the union of its compute spans.
    pub busy: Nanos,
    /// `busy` as a part of the timeline, from 0 to 1.
    pub utilization: f64,
    /// Its idle time by reason, longest first.
    pub idle: Vec<IdleTime>,
}

/// A memory pool in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolSummary {
    /// Which pool.
    pub pool: Pool,
    /// The most bytes in use.
    pub peak: u64,
    /// Bytes in use on average over the timeline, from the first sample on.
    pub mean: f64,
    /// What it holds; 0: unknown.
    pub capacity: u64,
}

/// Jobs in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobsSummary {
    /// Submitted within the timeline.
    pub submitted: u64,
    /// Completed within it.
    pub completed: u64,
    /// Failed within it.
    pub failed: u64,
    /// Cancelled within it.
    pub cancelled: u64,
    /// Partitions finished within it: whose span of [`Stage::Finish`] ended well.
    pub partitions: u64,
    /// From submission to completion, of those for which both are in the record.
    pub latency: Distribution,
    /// Completed jobs an hour.
    pub per_hour: f64,
    /// Length of the timeline over the number of completed jobs; `None` if there are none.
    pub wall_per_job: Option<Nanos>,
}

/// What a timeline says in numbers. Its `Display` is a table for people; times are in nanoseconds when serialized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The machine or the run.
    pub title: String,
    /// Length of the timeline.
    pub wall: Nanos,
    /// Jobs and throughput.
    pub jobs: JobsSummary,
    /// Devices, in the order of their tracks.
    pub devices: Vec<DeviceSummary>,
    /// Stages that occur, in the order of a partition's way.
    pub stages: Vec<StageSummary>,
    /// Memory pools.
    pub pools: Vec<PoolSummary>,
    /// What was recorded but is not in the timeline.
    pub dropped: Dropped,
}

impl Summary {
    /// Of a timeline. O(n log n).
    pub fn of(timeline: &Timeline) -> Self {
        Self {
            title: timeline.title.clone(),
            wall: timeline.wall(),
            jobs: jobs(timeline),
            devices: timeline.devices().map(|(id, track)| device(timeline, id, &track.name)).collect(),
            stages: stages(timeline),
            pools: timeline.pools.iter().map(|p| pool(timeline, p)).collect(),
            dropped: timeline.dropped,
        }
    }

    /// Utilization of all devices together: the mean of theirs. `None` if there are none.
    pub fn utilization(&self) -> Option<f64> {
        let sum: f64 = self.devices.iter().map(|d| d.utilization).sum();
        (!self.devices.is_empty()).then(|| sum / self.devices.len() as f64)
    }
}

fn device(timeline: &Timeline, id: crate::TrackId, name: &str) -> DeviceSummary {
    let mut busy = Nanos::ZERO;
    let mut idle: BTreeMap<&str, Vec<Nanos>> = BTreeMap::new();
    for segment in device_activity(timeline, id) {
        let reason = match segment.activity {
            Activity::Busy => {
                busy += segment.duration();
                continue;
            }
            Activity::Idle(gap) => gap.reason.label(),
            Activity::Unexplained => UNEXPLAINED,
        };
        idle.entry(reason).or_default().push(segment.duration());
    }
    let sum =
        |(reason, lengths): (&str, Vec<Nanos>)| IdleTime { reason: reason.to_owned(), time: Distribution::of(lengths) };
    let mut idle: Vec<IdleTime> = idle.into_iter().map(sum).collect();
    idle.sort_by_key(|i| std::cmp::Reverse(i.time.total));
    DeviceSummary { name: name.to_owned(), busy, utilization: busy.share_of(timeline.wall()), idle }
}

fn stages(timeline: &Timeline) -> Vec<StageSummary> {
    let mut stages: BTreeMap<Stage, (Vec<Nanos>, u64, u64)> = BTreeMap::new();
    let ended = |s: &&Span| s.outcome != Outcome::Running && (timeline.start..=timeline.end).contains(&s.end);
    for span in timeline.spans.iter().filter(ended) {
        let (lengths, bytes, not_ok) = stages.entry(span.stage).or_default();
        lengths.push(span.duration());
        *bytes = bytes.saturating_add(span.bytes);
        *not_ok += u64::from(span.outcome != Outcome::Ok);
    }
    let sum = |(stage, (lengths, bytes, not_ok))| StageSummary {
        stage,
        label: timeline.stage_label(stage).to_owned(),
        class: timeline.stage_class(stage),
        time: Distribution::of(lengths),
        bytes,
        not_ok,
    };
    stages.into_iter().map(sum).collect()
}

fn pool(timeline: &Timeline, pool: &crate::PoolUse) -> PoolSummary {
    let until = pool.samples.iter().skip(1).map(|s| s.at).chain([timeline.end]);
    let (mut peak, mut area, mut length) = (0, 0_f64, 0_f64);
    for (sample, until) in pool.samples.iter().zip(until) {
        let lasts = (until.min(timeline.end) - sample.at.max(timeline.start)).as_secs_f64();
        // A value that is replaced at the same moment was reached nevertheless.
        if sample.at <= timeline.end && until >= timeline.start {
            peak = peak.max(sample.in_use);
        }
        area += lasts * sample.in_use as f64;
        length += lasts;
    }
    let mean = if length > 0.0 { area / length } else { 0.0 };
    PoolSummary { pool: pool.pool, peak, mean, capacity: pool.capacity }
}

fn jobs(timeline: &Timeline) -> JobsSummary {
    let mut summary = JobsSummary::default();
    let mut submitted: BTreeMap<JobId, Nanos> = BTreeMap::new();
    let mut latencies = Vec::new();
    let mut marks: Vec<_> = timeline.marks.iter().collect();
    marks.sort_by_key(|m| m.at);
    for mark in marks {
        let within = u64::from((timeline.start..=timeline.end).contains(&mark.at));
        match mark.event {
            JobEvent::Submitted { .. } => {
                summary.submitted += within;
                submitted.insert(mark.job, mark.at);
            }
            JobEvent::Completed => {
                summary.completed += within;
                latencies.extend(submitted.get(&mark.job).filter(|_| within > 0).map(|at| mark.at - *at));
            }
            JobEvent::Failed { .. } => summary.failed += within,
            JobEvent::Cancelled => summary.cancelled += within,
        }
    }
    let finished = timeline.spans.iter().filter(|s| {
        s.stage == Stage::Finish && s.outcome == Outcome::Ok && (timeline.start..=timeline.end).contains(&s.end)
    });
    let finished: BTreeSet<_> = finished.filter_map(|s| s.partition.map(|p| (p.job, p.index))).collect();
    summary.partitions = finished.len() as u64;
    summary.latency = Distribution::of(latencies);
    let hours = timeline.wall().as_secs_f64() / 3600.0;
    summary.per_hour = if hours > 0.0 { summary.completed as f64 / hours } else { 0.0 };
    summary.wall_per_job = timeline.wall().0.checked_div(summary.completed).map(Nanos);
    summary
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = &self.jobs;
        writeln!(f, "{}: {}", self.title, self.wall)?;
        let JobsSummary { submitted, completed, failed, cancelled, partitions, latency, per_hour, wall_per_job } = jobs;
        writeln!(f, "jobs: {submitted} submitted, {completed} completed, {failed} failed, {cancelled} cancelled")?;
        write!(f, "partitions: {partitions} finished")?;
        if let Some(wall) = wall_per_job {
            write!(f, "\nthroughput: {wall} a job, {per_hour:.1} jobs an hour")?;
            write!(f, "\nlatency: mean {}, p95 {}, max {}", latency.mean, latency.p95, latency.max)?;
        }
        writeln!(f)?;
        for device in &self.devices {
            writeln!(f, "\n{}: busy {:.1} % ({})", device.name, 100.0 * device.utilization, device.busy)?;
            for IdleTime { reason, time } in &device.idle {
                let share = 100.0 * time.total.share_of(self.wall);
                let (gaps, longest) = (time.count, time.max);
                writeln!(f, "  {reason:<26}{share:>6.1} %{:>14} in {gaps} gaps, longest {longest}", time.total)?;
            }
        }
        if !self.stages.is_empty() {
            writeln!(f, "\n{:<18}{:>8}{:>14}{:>14}{:>14}{:>12}", "stage", "count", "mean", "p95", "max", "bytes")?;
        }
        for StageSummary { label, time, bytes, not_ok, .. } in &self.stages {
            let Distribution { count, mean, p95, max, .. } = time;
            let bytes = if *bytes > 0 { show_bytes(*bytes) } else { String::new() };
            write!(f, "{label:<18}{count:>8}{mean:>14}{p95:>14}{max:>14}{bytes:>12}")?;
            if *not_ok > 0 { writeln!(f, "  {not_ok} failed or cancelled")? } else { writeln!(f)? }
        }
        if !self.pools.is_empty() {
            writeln!(f, "\n{:<18}{:>12}{:>12}{:>12}", "memory", "peak", "mean", "capacity")?;
        }
        for PoolSummary { pool, peak, mean, capacity } in &self.pools {
            let capacity = if *capacity > 0 { show_bytes(*capacity) } else { "unknown".to_owned() };
            writeln!(f, "{pool:<18}{:>12}{:>12}{capacity:>12}", show_bytes(*peak), show_bytes(*mean as u64))?;
        }
        if self.dropped.total() > 0 {
            let Dropped { spans, gaps, samples, marks } = self.dropped;
            writeln!(
                f,
                "\nnot kept: {spans} spans, {gaps} idle gaps, {samples} samples, {marks} marks that were older"
            )?;
        }
        Ok(())
    }
}
