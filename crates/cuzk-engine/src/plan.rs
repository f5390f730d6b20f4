//! What a circuit is going to cost, before anything of it is loaded.

use std::sync::Arc;

use cuzk_backend::{AssignmentShape, Device, Operation};
use cuzk_curve::Curve;
use cuzk_groth16::{Budget, CircuitShape, Placement, ProveError, ResidencyError, ResidencyPlan, Sizing, Stage};
use cuzk_scheduler::{CircuitProfile, DeviceId, HostBytes, KeyBytes, OnDevice, PartitionBytes};

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
    /// A proof of it fits none of the devices: the first of them, and what is lacking there.
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
    /// For each device the bytes of its memory at each step of a proof, for a timeline.
    pub(crate) steps: Vec<Vec<(Stage, u64)>>,
    pub(crate) request: PlanRequest,
}

/// What a residency plan is made from.
#[derive(Clone, Debug)]
pub(crate) struct PlanRequest {
    /// One a device.
    budgets: Arc<[Budget]>,
    circuit: CircuitShape,
    /// What no assignment exceeds.
    pub(crate) assignment: AssignmentShape,
}

impl PlanRequest {
    pub(crate) fn new(budgets: Arc<[Budget]>, circuit: CircuitShape, assignment: AssignmentShape) -> Self {
        Self { budgets, circuit, assignment }
    }

    /// The plan for a device. The same whenever it is asked for.
    pub(crate) fn plan_for(&self, id: DeviceId, device: &dyn Sizing) -> Result<ResidencyPlan, ResidencyError> {
        let none = Budget { device_bytes: 0, pinned_bytes: 0, multiples: false };
        let budget = self.budgets.get(usize::from(id.0)).unwrap_or(&none);
        ResidencyPlan::new(device, budget, &self.circuit, &self.assignment)
    }
}

/// What of the configuration plans go by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanOptions {
    pub(crate) multiples: bool,
    pub(crate) threads_per_synthesis: usize,
    pub(crate) spare_witnesses: u32,
}

/// A device to plan for.
pub(crate) struct Target {
    /// `None` while it is fenced, or for ever.
    pub(crate) device: Option<Device>,
    /// Bytes of its own memory that the engine may take.
    pub(crate) device_bytes: u64,
    /// Bytes of its pinned memory.
    pub(crate) pinned_bytes: u64,
}

/// What was planned for a device.
#[derive(Clone)]
pub(crate) struct Planned {
    on_device: OnDevice,
    streamed: u64,
    results: u64,
    steps: Vec<(Stage, u64)>,
}

/// Bytes of a circuit in the host's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostSide {
    pub(crate) matrices: u64,
    /// While a witness is made, at the peak.
    pub(crate) synthesis: u64,
}

impl Plan {
    /// Plans for a circuit on each device by itself: a small one streams what a large one keeps, and one that cannot
    /// prove the circuit at all is passed over, as long as another one can. One that is fenced now is planned as its
    /// like, or passed over if there is none.
    pub(crate) fn new<C: Curve>(
        source: &dyn CircuitSource<C>,
        targets: impl FnOnce() -> Vec<Target>,
        options: &PlanOptions,
    ) -> Result<Self, RegisterError> {
        let name = source.name().to_owned();
        let (circuit, matrices) = {
            let cause = |cause| RegisterError::Source { name: name.clone(), cause };
            let r1cs = source.r1cs().map_err(cause)?;
            let counts = source.key().map_err(cause)?.counts();
            let circuit = CircuitShape::of(&*r1cs);
            let mismatch = |e| RegisterError::Key { name: name.clone(), cause: Box::new(e) };
            circuit.check_counts(&counts).map_err(mismatch)?;
            (circuit, r1cs.bytes() as u64)
        };
        let assignment = source.assignment(&circuit);
        let synthesis = source.synthesis_bytes(assignment.bytes());

        // Only from here on is a device kept open, for nothing that takes long.
        let targets = targets();
        let multiples = options.multiples;
        let budget = |t: &Target| Budget { device_bytes: t.device_bytes, pinned_bytes: t.pinned_bytes, multiples };
        let request = PlanRequest::new(targets.iter().map(budget).collect(), circuit, assignment);
        let mut planned: Vec<Option<Planned>> = Vec::new();
        let mut refused = None;
        for (index, target) in (0u16..).zip(&targets) {
            let Some(device) = &target.device else {
                planned.push(None);
                continue;
            };
            let uuid = &device.info().uuid;
            match plan_on(&request, DeviceId(index), device) {
                Ok((plan, numbers)) => {
                    tracing::info!(
                        circuit = name,
                        device = uuid,
                        "{}",
                        plan.to_string().trim_end().replace('\n', "; ")
                    );
                    planned.push(Some(numbers));
                }
                Err(cause) => {
                    tracing::warn!(circuit = name, device = uuid, "not on this device: {cause}");
                    planned.push(None);
                    let (name, device) = (name.clone(), uuid.clone());
                    refused.get_or_insert(RegisterError::Residency { name, device, cause: Box::new(cause) });
                }
            }
        }
        for index in 0..targets.len() {
            let size = |t: &Target| (t.device_bytes, t.pinned_bytes);
            let like = |i: &usize| targets[*i].device.is_some() && size(&targets[*i]) == size(&targets[index]);
            if targets[index].device.is_none()
                && let Some(other) = (0..targets.len()).find(like)
            {
                planned[index] = planned[other].clone();
            }
        }
        if planned.iter().all(Option::is_none) {
            return Err(refused.unwrap_or(RegisterError::NoDevice { name }));
        }

        let host = HostSide { matrices, synthesis };
        let profile = profile(name, &request, host, &planned, options);
        let steps = planned.into_iter().map(|p| p.map_or_else(Vec::new, |p| p.steps)).collect();
        Ok(Self { profile, steps, request })
    }
}

/// What the scheduler is told of a circuit that was planned for each device, or cannot be proved there.
pub(crate) fn profile(
    name: String,
    request: &PlanRequest,
    host: HostSide,
    planned: &[Option<Planned>],
    options: &PlanOptions,
) -> CircuitProfile {
    let most = |of: fn(&Planned) -> u64| planned.iter().flatten().map(of).max().unwrap_or(0);
    // Each device has pinned memory of its own, and a copy of the streamed sections there.
    let key_pinned = planned.iter().flatten().fold(0u64, |sum, p| sum.saturating_add(p.streamed));
    let results = most(|p| p.results);
    let devices = (0u16..).zip(planned).map(|(device, planned)| match planned {
        Some(planned) => OnDevice { device, ..planned.on_device },
        // No device has that much.
        None => OnDevice { device, key: None, prepared: 0, running: u64::MAX, finishing: 0 },
    });
    let witness = request.assignment.bytes();
    let inputs = request.circuit.n_inputs * request.assignment.curve.scalar_bytes() as u64;
    let both = |host, pinned| HostBytes { host, pinned };
    let spare = witness.saturating_mul(options.spare_witnesses.into());
    CircuitProfile {
        name,
        key: KeyBytes {
            host: Some(host.matrices.saturating_add(spare)),
            pinned: (key_pinned > 0).then_some(key_pinned),
            device: Some(most(|p| p.on_device.key.unwrap_or(0))),
        },
        partition: PartitionBytes {
            synthesis: both(host.synthesis.max(witness), 0),
            synthesized: both(witness, results),
            finishing: both(inputs, results),
            device_prepared: most(|p| p.on_device.prepared),
            device_running: most(|p| p.on_device.running),
            device_finishing: 0,
        },
        devices: devices.collect(),
        synthesis_cores: options.threads_per_synthesis as f64,
        expected: None,
    }
}

/// The plan for a device, and its numbers for the scheduler.
pub(crate) fn plan_on(
    request: &PlanRequest,
    id: DeviceId,
    device: &dyn Sizing,
) -> Result<(ResidencyPlan, Planned), ResidencyError> {
    let plan = request.plan_for(id, device)?;
    let upload = plan.stages().iter().find(|(stage, _)| *stage == Stage::Upload).map_or(0, |(_, bytes)| *bytes);
    let witness = device.workspace(&Operation::Assignment(request.assignment), u64::MAX)?.best;
    let resident = upload.saturating_sub(witness);
    let running = plan.predicted_peak().saturating_sub(resident);
    let streamed = streamed_bytes(&plan);
    let on_device = OnDevice { device: id.0, key: Some(resident), prepared: witness, running, finishing: 0 };
    let (results, steps) = (plan.pinned_bytes().saturating_sub(streamed), plan.stages().to_vec());
    Ok((plan, Planned { on_device, streamed, results, steps }))
}

/// Bytes of pinned memory that the streamed sections of a key take.
fn streamed_bytes(plan: &ResidencyPlan) -> u64 {
    let streamed = plan.sections().iter().filter(|s| s.placement == Placement::Streamed);
    streamed.map(|s| s.bytes).sum()
}
