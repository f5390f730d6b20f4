//! What came out.

use std::{collections::BTreeMap, fmt};

use crate::{DeviceId, FailureCause, JobId, Pool, PoolUsage, Refusal, Ticket, autotune::Choice, units::show_bytes};

/// The result of a simulation. Times are seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// From the first arrival to the end of the last job.
    pub seconds: f64,
    /// One for each stream of the plan.
    pub streams: Vec<StreamReport>,
    /// One for each device.
    pub devices: Vec<DeviceReport>,
    /// The largest resident set, in bytes: of the process, keys, and what partitions have touched of what is reserved
    /// for them.
    pub peak_resident: u64,
    /// The pools at the end; `high_water` is what the budget needed.
    pub pools: Vec<(Pool, PoolUsage)>,
    /// The resident set over time, linear between two points.
    pub memory: Vec<MemoryPoint>,
    /// Every stage of every partition, in the order of their ends.
    pub spans: Vec<Span>,
    /// Jobs that failed.
    pub failed: Vec<(JobId, FailureCause)>,
    /// Jobs that were not accepted.
    pub refused: Vec<(JobId, Refusal)>,
    /// The number of workers from each moment on, and why.
    pub choices: Vec<(f64, Choice)>,
}

/// How a stream's jobs fared.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReport {
    /// Jobs that were completed.
    pub completed: usize,
    /// Seconds a job: the time of all of them divided by their number.
    pub seconds_per_job: f64,
    /// Seconds from arrival to proof, sorted.
    pub latencies: Vec<f64>,
}

impl StreamReport {
    /// The latency that `fraction` of the jobs do not exceed; `None` if there are no jobs.
    pub fn quantile(&self, fraction: f64) -> Option<f64> {
        let last = self.latencies.len().checked_sub(1)?;
        let index = (fraction.clamp(0.0, 1.0) * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(index.saturating_sub(1).min(last)).copied()
    }
}

/// How a device spent its time.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Seconds under the compute lock.
    pub busy: f64,
    /// Seconds idle, by [`IdleReason::label`](crate::IdleReason::label).
    pub gaps: BTreeMap<&'static str, f64>,
}

impl DeviceReport {
    /// Busy time as a part of all.
    pub fn utilization(&self) -> f64 {
        let all = self.busy + self.gaps.values().sum::<f64>();
        if all > 0.0 { self.busy / all } else { 0.0 }
    }
}

/// The resident set at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryPoint {
    /// When.
    pub seconds: f64,
    /// Bytes.
    pub resident: u64,
}

/// A stage of a partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Which.
    pub ticket: Ticket,
    /// What.
    pub kind: SpanKind,
    /// Where, if it is at a device.
    pub device: Option<DeviceId>,
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
}

/// What a partition does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Its witness is made.
    Synthesis,
    /// It is brought to its device.
    Prepare,
    /// It computes.
    Compute,
    /// It is finished.
    Finish,
}

impl Report {
    /// Peak of a pool's reservations, in bytes.
    pub fn peak_reserved(&self, pool: Pool) -> u64 {
        self.pools.iter().find(|(p, _)| *p == pool).map_or(0, |(_, u)| u.high_water)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:.1} s", self.seconds)?;
        for (seconds, choice) in &self.choices {
            writeln!(f, "from {seconds:.1} s: {choice}")?;
        }
        for (index, s) in self.streams.iter().enumerate() {
            let at = |q| s.quantile(q).unwrap_or(0.0);
            let (done, each) = (s.completed, s.seconds_per_job);
            writeln!(
                f,
                "stream {index}: {done} jobs, {each:.2} s a job, latency {:.2} s median, {:.2} s p95",
                at(0.5),
                at(0.95)
            )?;
        }
        for d in &self.devices {
            write!(f, "{}: busy {:.1} %", d.name, 100.0 * d.utilization())?;
            for (label, seconds) in &d.gaps {
                write!(f, ", {label} {seconds:.1} s")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "peak resident {}", show_bytes(self.peak_resident))?;
        for (pool, usage) in &self.pools {
            writeln!(
                f,
                "{pool} memory: peak {} of {} reserved",
                show_bytes(usage.high_water),
                show_bytes(usage.capacity)
            )?;
        }
        for (job, cause) in &self.failed {
            writeln!(f, "{job} failed: {cause}")?;
        }
        for (job, refusal) in &self.refused {
            writeln!(f, "{job} refused: {refusal}")?;
        }
        Ok(())
    }
}
