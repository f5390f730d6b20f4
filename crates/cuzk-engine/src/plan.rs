//! What a circuit is going to cost, before anything of it is loaded.

use cuzk_backend::{AssignmentShape, Device, Operation};
use cuzk_curve::Curve;
use cuzk_groth16::{Budget, CircuitShape, Placement, ProveError, ResidencyError, ResidencyPlan, Stage};
use cuzk_scheduler::{CircuitProfile, HostBytes, KeyBytes, PartitionBytes};

use crate::workload::{CircuitSource, SourceError};

/// Why a circuit is not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Its matrices or its key cannot be had.
    #[error("circuit {name}: {cause}")]
    Source {
        /// The circuit's name.
        name: String,
        /// What its source says.
        #[source]
        cause: SourceError,
    },
    /// The key is another circuit's.
    #[error("circuit {name}: {cause}")]
    Key {
        /// The circuit's name.
        name: String,
        /// The numbers that differ.
        #[source]
        cause: Box<ProveError>,
    },
    /// A proof of it does not fit a device.
    #[error("circuit {name} on device {device}: {cause}")]
    Residency {
        /// The circuit's name.
        name: String,
        /// The device.
        device: String,
        /// The numbers.
        #[source]
        cause: Box<ResidencyError>,
    },
    /// All devices are fenced or retired, so there is none to ask what the circuit costs.
    #[error("circuit {name}: no device is in use now")]
    NoDevice {
        /// The circuit's name.
        name: String,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

/// A circuit's costs, and all that it takes to say where its key goes on a device.
pub(crate) struct Plan {
    /// For the scheduler.
    pub(crate) profile: CircuitProfile,
    /// Bytes of device memory at each step of a proof, for a timeline.
    pub(crate) steps: Vec<(Stage, u64)>,
    pub(crate) request: PlanRequest,
}

/// What a residency plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanRequest {
    budget: Budget,
    circuit: CircuitShape,
    /// What no assignment exceeds.
    pub(crate) assignment: AssignmentShape,
}

impl PlanRequest {
    /// The plan for a device. The same for the same kind of device.
    pub(crate) fn plan_for(&self, device: &Device) -> Result<ResidencyPlan, ResidencyError> {
        ResidencyPlan::new(device, &self.budget, &self.circuit, &self.assignment)
    }
}

/// What of the configuration plans go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanOptions {
    pub(crate) multiples: bool,
    pub(crate) threads_per_synthesis: usize,
    pub(crate) spare_witnesses: u32,
}

/// Devices to plan for: those that are open now, and what the engine may take of the smallest of all.
pub(crate) struct Devices {
    pub(crate) open: Vec<Device>,
    /// How many there are, open or not.
    pub(crate) count: usize,
    /// Bytes of its own memory.
    pub(crate) device_bytes: u64,
    /// Bytes of its pinned memory.
    pub(crate) pinned_bytes: u64,
}

impl Plan {
    /// Plans for a circuit on devices. The scheduler knows one size of a key for all devices, so all are planned for
    /// the smallest.
    pub(crate) fn new<C: Curve>(
        source: &dyn CircuitSource<C>,
        devices: impl FnOnce() -> Devices,
        options: &PlanOptions,
    ) -> Result<Self, RegisterError> {
        let name = source.name().to_owned();
        let (circuit, matrix_bytes) = {
            let cause = |cause| RegisterError::Source { name: name.clone(), cause };
            let r1cs = source.r1cs().map_err(cause)?;
            let counts = source.key().map_err(cause)?.counts();
            let circuit = CircuitShape::of(&*r1cs);
            let mismatch = |e| RegisterError::Key { name: name.clone(), cause: Box::new(e) };
            circuit.check_counts(&counts).map_err(mismatch)?;
            (circuit, r1cs.bytes() as u64)
        };
        let assignment = source.assignment(&circuit);

        // Only from here on is a device kept open, for nothing that takes long.
        let devices = devices();
        let Devices { device_bytes, pinned_bytes, .. } = devices;
        let budget = Budget { device_bytes, pinned_bytes, multiples: options.multiples };
        let request = PlanRequest { budget, circuit, assignment };
        let (mut key, mut streamed, mut running, mut results) = (0, 0, 0, 0);
        let mut steps = Vec::new();
        for device in &devices.open {
            let refused = |cause| {
                let device = device.info().uuid.clone();
                RegisterError::Residency { name: name.clone(), device, cause: Box::new(cause) }
            };
            let plan = request.plan_for(device).map_err(refused)?;
            let upload = plan.stages().iter().find(|(stage, _)| *stage == Stage::Upload).map_or(0, |(_, bytes)| *bytes);
            let witness = device.workspace(&Operation::Assignment(assignment), u64::MAX);
            let resident = upload.saturating_sub(witness.map_err(|e| refused(e.into()))?.best);
            key = key.max(resident);
            running = running.max(plan.predicted_peak().saturating_sub(resident));
            streamed = streamed.max(streamed_bytes(&plan));
            results = results.max(plan.pinned_bytes().saturating_sub(streamed_bytes(&plan)));
            tracing::info!(circuit = name, device = device.info().uuid, "{plan}");
            steps = plan.stages().to_vec();
        }
        if devices.open.is_empty() {
            return Err(RegisterError::NoDevice { name });
        }
        // Each device has pinned memory of its own, and a copy of the streamed sections there.
        let key_pinned = streamed.saturating_mul(devices.count as u64);

        let witness = assignment.bytes();
        let inputs = circuit.n_inputs * assignment.curve.scalar_bytes() as u64;
        let host = |host, pinned| HostBytes { host, pinned };
        let profile = CircuitProfile {
            name,
            key: KeyBytes {
                host: Some(matrix_bytes.saturating_add(witness.saturating_mul(options.spare_witnesses.into()))),
                pinned: (key_pinned > 0).then_some(key_pinned),
                device: Some(key),
            },
            partition: PartitionBytes {
                synthesis: host(source.synthesis_bytes(witness).max(witness), 0),
                synthesized: host(witness, results),
                finishing: host(inputs, results),
                device_prepared: 0,
                device_running: running,
                device_finishing: 0,
            },
            synthesis_cores: options.threads_per_synthesis as f64,
            expected: None,
        };
        Ok(Self { profile, steps, request })
    }
}

/// Bytes of pinned memory that the streamed sections of a key take.
fn streamed_bytes(plan: &ResidencyPlan) -> u64 {
    let streamed = plan.sections().iter().filter(|s| s.placement == Placement::Streamed);
    streamed.map(|s| s.bytes).sum()
}
