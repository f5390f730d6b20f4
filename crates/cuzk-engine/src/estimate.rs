//! What an engine would choose on a machine that is described, not present.
//!
//! The same code plans as in an engine, and the same scheduler decides, which is told of one job on an empty machine.
//! Only the sizes of operations come from the caller: a [`Sizing`], which is a backend's arithmetic for its kernels.
//! (The engine names no backend. The alternative, figures recorded from one device, would go out of date with every
//! kernel.)

use std::{fmt, time::Duration};

use cuzk_backend::AssignmentShape;
use cuzk_groth16::{Budget, CircuitShape, Placement, ResidencyError, ResidencyPlan, Sizing};
use cuzk_scheduler::{
    Action, CircuitId, CircuitProfile, ConfigError, DeviceId, DeviceResources, Event, JobId, JobRequest, Pool,
    Priority, Refusal, Resources, Scheduler, StageTimes, Time, autotune::Choice, units::show_bytes,
};

use crate::{
    EngineConfig, Machine, ThreadPlan,
    plan::{self, HostSide, PlanOptions, PlanRequest},
};

/// A device that is described.
#[derive(Clone)]
pub struct DescribedDevice<'a> {
    /// For people.
    pub name: String,
    /// Bytes of its own memory that the engine may take.
    pub device_bytes: u64,
    /// Bytes of its pinned memory.
    pub pinned_bytes: u64,
    /// Takes only what no other device can take.
    pub last_resort: bool,
    /// What operations take on it.
    pub sizing: &'a dyn Sizing,
}

/// A circuit that is described.
#[derive(Clone, Debug)]
pub struct DescribedCircuit {
    /// For people.
    pub name: String,
    /// The sizes of its constraint system; those of its key follow.
    pub shape: CircuitShape,
    /// Bytes of its matrices in the host's memory.
    pub matrix_bytes: u64,
    /// What no assignment exceeds.
    pub assignment: AssignmentShape,
    /// Bytes of host memory that making a witness takes at its peak; `None`: twice the finished one.
    pub synthesis_bytes: Option<u64>,
    /// Partitions of a proof.
    pub partitions: u32,
    /// How long the stages of a partition take, on such a device and with the cores of one worker, if that is known.
    pub times: Option<StageTimes>,
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// Nothing could ever run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// None of the devices can prove the circuit: the first of them, and what is lacking there.
    #[error("circuit {circuit} on device {device}: {cause}")]
    Residency {
        /// The circuit's name.
        circuit: String,
        /// The device's name.
        device: String,
        /// The numbers.
        #[source]
        cause: Box<ResidencyError>,
    },
}

/// What would be chosen for a device.
#[derive(Clone, Debug)]
pub struct DeviceEstimate {
    /// Its name.
    pub name: String,
    /// Where each section of the key would lie, why, and bytes at each stage; or why it cannot prove the circuit.
    pub plan: Result<ResidencyPlan, ResidencyError>,
}

/// A pool as it would be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolEstimate {
    /// Which pool.
    pub pool: Pool,
    /// Bytes that there are.
    pub capacity: u64,
    /// Bytes of key and matrices, which stay.
    pub key: u64,
    /// Bytes that one partition takes at its peak there.
    pub partition: u64,
    /// The most bytes that are reserved when as many proofs are wanted as can be made, and the threads that finish them
    /// keep up with the devices. (If they do not, proofs pile up before them, never beyond the capacity.)
    pub peak: u64,
}

/// What an engine would choose.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Sizes of the thread pools.
    pub threads: ThreadPlan,
    /// The number of partition workers, and why.
    pub workers: Choice,
    /// What the scheduler knows of the circuit: bytes at each stage.
    pub profile: CircuitProfile,
    /// One for each device.
    pub devices: Vec<DeviceEstimate>,
    /// One for each pool.
    pub pools: Vec<PoolEstimate>,
    /// Why a job would not be accepted, if it would not.
    pub refusal: Option<Refusal>,
    /// From one partition's proof to the next one's when there is enough to do, if stage times are known: the slower of
    /// synthesis and devices.
    pub partition_interval: Option<Duration>,
    /// From submission to the end of one proof alone on the machine with the key loaded, if stage times are known;
    /// without what the host takes to finish it.
    pub proof_latency: Option<Duration>,
}

/// Says what an engine with this configuration would choose for a circuit on a machine.
///
/// ```
/// use cuzk_backend::{AssignmentShape, Device, MatrixShape, noop::Noop};
/// use cuzk_curve::CurveId;
/// use cuzk_engine::{DescribedCircuit, DescribedDevice, EngineConfig, Machine, estimate};
/// use cuzk_groth16::CircuitShape;
///
/// // A million constraints, of whose variables a tenth is neither 0 nor 1.
/// let curve = CurveId::Bls12_381;
/// let matrix = MatrixShape {
///     curve,
///     n_rows: 1_000_000,
///     n_nonzeros: 3_000_000,
///     n_coefficients: 100,
///     row_offset_bytes: 4,
///     coefficient_bytes: 1,
/// };
/// let n = 1_000_000;
/// let circuit = DescribedCircuit {
///     name: "a million".to_owned(),
///     shape: CircuitShape {
///         a: matrix,
///         b: matrix,
///         n_inputs: 10,
///         n_variables: n,
///         log_n: 20,
///         a_dense: n,
///         b_dense: n / 2,
///     },
///     matrix_bytes: 3 * matrix.bytes(),
///     assignment: AssignmentShape { curve, n_variables: n, n_ones: n / 2, n_wide: n / 10 },
///     synthesis_bytes: None,
///     partitions: 10,
///     times: None,
/// };
/// // The sizes of a device that computes nothing; a real one's come from its backend.
/// let sizing = Device::new(Noop::new(1));
/// let name = "imagined".to_owned();
/// let (device_bytes, pinned_bytes) = (24 << 30, 1 << 30);
/// let device = DescribedDevice { name, device_bytes, pinned_bytes, last_resort: false, sizing: &sizing };
/// let machine = Machine { cores: 16, memory_bytes: 64 << 30 };
/// let estimate = estimate(&EngineConfig::default(), &machine, &[device], &circuit)?;
/// assert_eq!(estimate.workers.workers, 16);
/// println!("{estimate}");
/// # Ok::<(), cuzk_engine::EstimateError>(())
/// ```
///
/// # Errors
/// [`EstimateError`].
pub fn estimate(
    config: &EngineConfig,
    machine: &Machine,
    devices: &[DescribedDevice<'_>],
    circuit: &DescribedCircuit,
) -> Result<Estimate, EstimateError> {
    let threads = ThreadPlan::new(config, machine);
    let resources = Resources {
        cores: threads.cores,
        host: config.memory.total_budget.resolve(machine.memory_bytes, config.memory.safety_margin),
        pinned: devices.iter().fold(0u64, |sum, d| sum.saturating_add(d.pinned_bytes)),
        devices: devices
            .iter()
            .map(|d| DeviceResources { memory: d.device_bytes, last_resort: d.last_resort })
            .collect(),
    };
    let mut scheduler = Scheduler::new(config.scheduler.clone(), resources.clone())?;

    let multiples = config.multiples;
    let budget =
        |d: &DescribedDevice<'_>| Budget { device_bytes: d.device_bytes, pinned_bytes: d.pinned_bytes, multiples };
    let request = PlanRequest::new(devices.iter().map(budget).collect(), circuit.shape, circuit.assignment);
    let plans: Vec<_> =
        (0u16..).zip(devices).map(|(id, device)| plan::plan_on(&request, DeviceId(id), device.sizing)).collect();
    if let Some(Err(cause)) = plans.first()
        && plans.iter().all(Result::is_err)
    {
        let device = devices.first().map_or_else(String::new, |d| d.name.clone());
        return Err(EstimateError::Residency { circuit: circuit.name.clone(), device, cause: Box::new(cause.clone()) });
    }
    let planned: Vec<_> = plans.iter().map(|p| p.as_ref().ok().map(|(_, numbers)| numbers.clone())).collect();
    let options = PlanOptions {
        multiples,
        threads_per_synthesis: threads.per_synthesis,
        spare_witnesses: config.memory.spare_witnesses,
    };
    let synthesis = circuit.synthesis_bytes.unwrap_or_else(|| circuit.assignment.bytes().saturating_mul(2));
    let host = HostSide { matrices: circuit.matrix_bytes, synthesis };
    let mut profile = plan::profile(circuit.name.clone(), &request, host, &planned, &options);
    profile.expected = circuit.times;

    let refusal = refusal(&mut scheduler, &profile, circuit.partitions.max(1));
    let workers = scheduler.choice().clone();
    let pools = pools(config, &resources, &profile, workers.workers, threads.finish);
    let usable: Vec<_> = plans.iter().zip(devices).filter(|(plan, d)| plan.is_ok() && !d.last_resort).collect();
    let (partition_interval, proof_latency) = match circuit.times {
        Some(times) => {
            let (interval, latency) = times_of(times, workers.workers, usable.len().max(1), circuit.partitions.max(1));
            (Some(interval), Some(latency))
        }
        None => (None, None),
    };
    let named = plans
        .into_iter()
        .zip(devices)
        .map(|(plan, device)| DeviceEstimate { name: device.name.clone(), plan: plan.map(|(plan, _)| plan) });
    let devices = named.collect();
    Ok(Estimate { threads, workers, profile, devices, pools, refusal, partition_interval, proof_latency })
}

/// Tells the scheduler of one job, and what it says of it.
fn refusal(scheduler: &mut Scheduler, profile: &CircuitProfile, partitions: u32) -> Option<Refusal> {
    let (circuit, job, priority) = (CircuitId(0), JobId(0), Priority::Normal);
    let profile = profile.clone();
    let request = JobRequest { job, circuit, partitions, priority, deadline: None };
    [Event::CircuitKnown { circuit, profile }, Event::JobSubmitted(request)]
        .into_iter()
        // Neither contradicts anything: the circuit and the job are the first ones.
        .filter_map(|event| scheduler.apply(Time::ZERO, event).ok())
        .flatten()
        .find_map(|action| match action {
            Action::RefuseJob { refusal, .. } => Some(refusal),
            _ => None,
        })
}

/// The most that can be reserved of each pool.
fn pools(
    config: &EngineConfig,
    resources: &Resources,
    profile: &CircuitProfile,
    workers: usize,
    finish: usize,
) -> Vec<PoolEstimate> {
    let policy = &config.scheduler;
    let places = policy.lookahead.max(workers) + policy.critical_permits;
    let workers = workers + policy.critical_permits;
    let at_devices = (policy.gpu_workers_per_device + 1) * resources.devices.len();
    let finishing = finish + resources.devices.len();
    let times = |n: usize, bytes: u64| bytes.saturating_mul(n as u64);
    let estimate = |pool, key: Option<u64>, partition: u64, all: u64| {
        let (capacity, key) = (resources.capacity(pool), key.unwrap_or(0));
        PoolEstimate { pool, capacity, key, partition, peak: key.saturating_add(all).min(capacity) }
    };
    let bytes = &profile.partition;
    let (first, held, last) = (bytes.to_synthesize(), bytes.held_synthesized(), bytes.held_finishing());
    let all = |first, held, last| {
        let before = times(workers, first).saturating_add(times(places + at_devices, held));
        before.saturating_add(times(finishing, last))
    };
    let mut pools = vec![
        estimate(Pool::Host, profile.key.host, first.host, all(first.host, held.host, last.host)),
        estimate(Pool::Pinned, profile.key.pinned, first.pinned, all(first.pinned, held.pinned, last.pinned)),
    ];
    for device in resources.device_ids() {
        let needs = profile.on_device(device);
        let fits = needs.partition() <= resources.capacity(Pool::Device(device));
        let key = needs.key.filter(|_| fits);
        let (own, under_lock) = if fits { (needs.own(), needs.under_lock()) } else { (0, 0) };
        let all = times(policy.gpu_workers_per_device + 1, own).saturating_add(under_lock);
        pools.push(estimate(Pool::Device(device), key, own.saturating_add(under_lock), all));
    }
    pools
}

/// The time between two partitions' proofs, and of one proof alone.
fn times_of(times: StageTimes, workers: usize, devices: usize, partitions: u32) -> (Duration, Duration) {
    let parts = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
    let interval = (times.synthesis / parts(workers)).max(times.device / parts(devices));
    // As many witnesses at a time as there are workers; the last of them goes through a device afterwards.
    let rounds = partitions.div_ceil(parts(workers));
    let by_synthesis = times.synthesis * rounds + times.device;
    let by_devices = times.synthesis + times.device * partitions.div_ceil(parts(devices));
    (interval, by_synthesis.max(by_devices))
}

impl Estimate {
    /// Whether a device streams sections of the key, rather than keep all of them.
    pub fn streams(&self, device: DeviceId) -> bool {
        let plan = self.devices.get(usize::from(device.0)).and_then(|d| d.plan.as_ref().ok());
        plan.is_some_and(|p| p.sections().iter().any(|s| s.placement == Placement::Streamed))
    }
}

impl fmt::Display for Estimate {
    /// A few lines for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.profile.name)?;
        match &self.refusal {
            Some(refusal) => writeln!(f, "would be refused: {refusal}")?,
            None => writeln!(f, "{}", self.workers)?,
        }
        writeln!(f, "{}", self.threads)?;
        for (index, device) in self.devices.iter().enumerate() {
            writeln!(f, "device {index}, {}:", device.name)?;
            match &device.plan {
                Ok(plan) => {
                    for line in plan.to_string().lines() {
                        writeln!(f, "  {line}")?;
                    }
                }
                Err(cause) => writeln!(f, "  cannot prove it: {cause}")?,
            }
        }
        for PoolEstimate { pool, capacity, key, partition, peak } in &self.pools {
            let [capacity, key, partition, peak] = [capacity, key, partition, peak].map(|b| show_bytes(*b));
            writeln!(f, "{pool} memory: at most {peak} of {capacity} (key {key}, each partition {partition})")?;
        }
        if let (Some(interval), Some(latency)) = (self.partition_interval, self.proof_latency) {
            let (interval, latency) = (interval.as_secs_f64(), latency.as_secs_f64());
            writeln!(f, "a partition every {interval:.2} s; one proof alone {latency:.2} s")?;
        }
        Ok(())
    }
}
