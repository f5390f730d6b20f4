//! How many partitions to synthesize at a time: a pure function of memory, cores and stage times.
//!
//! More workers than keep the devices busy only hold memory; more than the memory or the cores carry only slow each
//! other down. So the choice is the smallest of three bounds:
//! * **devices**: `⌈devices · T_synthesis / T_device⌉ + 1`, the number that keeps the queue from running dry (by
//!   Little's law), and one for the unevenness of real times. `T_synthesis` is as measured at the concurrency in use,
//!   so contention is part of it, and the choice moves until it meets itself. Where permits are held until proved,
//!   those at the devices come on top.
//! * **memory**: how many syntheses the host's and the pinned budget hold beside the key, one partition at a device and
//!   one that is being finished. (What waits in the queue needs memory too; but it only waits where the devices are the
//!   limit, and then fewer syntheses suffice. Admission is by bytes in any case.)
//! * **cores**: all of them divided by the cores of one synthesis, rounded up.

use std::{fmt, time::Duration};

use crate::{
    CircuitProfile, Config, HostBytes, MeasuredStage, PermitScope, Pool, Priority, Resources, StageTimes, Workers,
    units::show_bytes,
};

/// What limits a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// More would not keep the devices any busier.
    Devices,
    /// More would not fit this pool.
    Memory(Pool),
    /// More would only share cores.
    Cores,
    /// The configuration says so.
    Configured,
    /// There has been no job to choose for.
    NoJob,
}

/// A number of workers, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Partitions to synthesize at a time.
    pub workers: usize,
    /// The bound that decided.
    pub limit: Limit,
    /// Bound by the devices; `None` before anything was measured.
    pub by_devices: Option<usize>,
    /// Bound by memory, and the pool; `None` if a partition holds none.
    pub by_memory: Option<(usize, Pool)>,
    /// Bytes of host memory that one synthesis takes.
    pub synthesis_bytes: u64,
    /// Whether they were measured, not only declared.
    pub bytes_are_measured: bool,
    /// Bound by cores.
    pub by_cores: usize,
    /// The stage times that it was computed from.
    pub times: Option<StageTimes>,
}

impl Choice {
    /// A number that follows from the configuration alone.
    pub(crate) fn given(workers: Workers) -> Self {
        let (workers, limit) = match workers {
            Workers::Fixed(n) => (n, Limit::Configured),
            Workers::Auto => (1, Limit::NoJob),
        };
        Self {
            workers,
            limit,
            by_devices: None,
            by_memory: None,
            synthesis_bytes: 0,
            bytes_are_measured: false,
            by_cores: workers,
            times: None,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} partition workers, ", self.workers)?;
        match self.limit {
            Limit::Devices => f.write_str("enough to keep the devices busy")?,
            Limit::Memory(pool) => write!(f, "as many as {pool} memory holds")?,
            Limit::Cores => f.write_str("as many as there are cores for")?,
            Limit::Configured => return f.write_str("as configured"),
            Limit::NoJob => return f.write_str("before the first job"),
        }
        f.write_str(" (devices: ")?;
        match (self.by_devices, self.times) {
            (Some(n), Some(StageTimes { synthesis, device })) => {
                write!(
                    f,
                    "{n} at {:.2} s synthesis and {:.2} s device",
                    synthesis.as_secs_f64(),
                    device.as_secs_f64()
                )?;
            }
            _ => f.write_str("not measured")?,
        }
        if let Some((n, pool)) = self.by_memory {
            write!(f, "; {pool} memory: {n}")?;
        }
        let known = if self.bytes_are_measured { "measured" } else { "declared" };
        write!(f, "; {} a synthesis, as {known}; cores: {})", show_bytes(self.synthesis_bytes), self.by_cores)
    }
}

/// The number of workers for one circuit on a machine. `devices` is how many of them are usable.
pub fn choose(
    config: &Config,
    resources: &Resources,
    devices: usize,
    profile: &CircuitProfile,
    times: Option<StageTimes>,
) -> Choice {
    let by_devices = times.and_then(|t| {
        let ratio = t.synthesis.as_secs_f64() / t.device.max(Duration::from_nanos(1)).as_secs_f64();
        // Beyond a million workers the number says nothing.
        let needed = (ratio * devices as f64).ceil().clamp(1.0, 1e6) as usize;
        let at_devices = match config.permit {
            PermitScope::Proved => devices.saturating_mul(config.gpu_workers_per_device),
            PermitScope::Send | PermitScope::Synthesis => 0,
        };
        (devices > 0).then_some(needed.saturating_add(at_devices).saturating_add(1))
    });
    let by_memory = [Pool::Host, Pool::Pinned]
        .into_iter()
        .filter_map(|pool| Some((memory_bound(config, resources, profile, pool)?, pool)))
        .min_by_key(|(n, _)| *n);
    let by_cores = (resources.cores as f64 / profile.synthesis_cores.max(0.01)).ceil().clamp(1.0, 1e6) as usize;

    let mut best = (by_cores, Limit::Cores);
    let bounds = by_memory.map(|(n, pool)| (n, Limit::Memory(pool))).into_iter();
    for bound in bounds.chain(by_devices.map(|n| (n, Limit::Devices))) {
        if bound.0 <= best.0 {
            best = bound;
        }
    }
    Choice {
        workers: best.0.max(1),
        limit: best.1,
        by_devices,
        by_memory,
        synthesis_bytes: profile.partition.to_synthesize().host,
        bytes_are_measured: false,
        by_cores,
        times,
    }
}

/// How many syntheses a pool carries; `None` if a partition holds nothing of it.
fn memory_bound(config: &Config, resources: &Resources, profile: &CircuitProfile, pool: Pool) -> Option<usize> {
    let of = |bytes: HostBytes| if pool == Pool::Pinned { bytes.pinned } else { bytes.host };
    let bytes = &profile.partition;
    let key = profile.key.in_pool(pool).unwrap_or(0);
    let beside =
        [key, of(bytes.held_synthesized()), of(bytes.finishing), config.critical_reserve.leave(pool, Priority::Normal)];
    let free = beside.into_iter().fold(resources.capacity(pool), u64::saturating_sub);
    Some(usize::try_from(free.checked_div(of(bytes.to_synthesize()))?).unwrap_or(usize::MAX))
}

/// Measured times of a circuit's stages, smoothed: each new one counts a quarter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measurements {
    synthesis: Option<Duration>,
    device: Option<Duration>,
}

impl Measurements {
    pub(crate) fn start(times: Option<StageTimes>) -> Self {
        Self { synthesis: times.map(|t| t.synthesis), device: times.map(|t| t.device) }
    }

    pub(crate) fn note(&mut self, stage: MeasuredStage, took: Duration) {
        let smoothed = match stage {
            MeasuredStage::Synthesis => &mut self.synthesis,
            MeasuredStage::Device => &mut self.device,
        };
        *smoothed = Some(smoothed.map_or(took, |s| s.mul_f64(0.75).saturating_add(took.mul_f64(0.25))));
    }

    pub(crate) fn times(&self) -> Option<StageTimes> {
        Some(StageTimes { synthesis: self.synthesis?, device: self.device? })
    }
}
