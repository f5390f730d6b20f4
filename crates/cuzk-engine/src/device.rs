//! A device as the engine holds it, and the work on it. What is here runs on threads, not on the owner's.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
};

use cuzk_backend::{BackendError, Device, Stream, self_test};
use cuzk_curve::Curve;
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, FinishedProof, PendingProof, PreparedProof, ProveError, Randomness, prove_prepare,
    prove_prepared,
};
use cuzk_r1cs::{Assignment, R1cs};
use cuzk_scheduler::{DeviceId, Fault, OutOfMemory, Pool};

use crate::{
    calls::panic_text,
    message::KeyFault,
    plan::PlanRequest,
    workload::{CircuitSource, Workload},
};

type Opener = Arc<dyn Fn() -> Result<Device, BackendError> + Send + Sync>;
/// The devices that are in use now, for planning: the owner takes one out when it is fenced, so that nobody keeps it
/// open.
pub(crate) type InUse = Arc<Mutex<Vec<Option<Device>>>>;

type SelfTest = Arc<dyn Fn(&Device) -> Result<(), BackendError> + Send + Sync>;

/// A device that an engine is given.
#[derive(Clone)]
pub struct DeviceSpec {
    open: Opener,
    reopens: bool,
    self_test: Option<SelfTest>,
    last_resort: bool,
}

impl fmt::Debug for DeviceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSpec")
            .field("reopens", &self.reopens)
            .field("last_resort", &self.last_resort)
            .finish_non_exhaustive()
    }
}

impl DeviceSpec {
    /// A device that is open. Once it is lost or a call to it hangs, it stays out of use until that has passed.
    pub fn opened(device: Device) -> Self {
        Self { open: Arc::new(move || Ok(device.clone())), reopens: false, self_test: None, last_resort: false }
    }

    /// A device that is opened when the engine starts, and anew after each fault, when nothing of the engine's runs
    /// there any more (calls that hang excepted).
    pub fn reopening(open: impl Fn() -> Result<Device, BackendError> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), reopens: true, self_test: None, last_resort: false }
    }

    /// Takes only what no other device can take: the CPU, where falling back to it is allowed.
    #[must_use]
    pub fn last_resort(self) -> Self {
        Self { last_resort: true, ..self }
    }

    /// Another self-test than [`cuzk_backend::self_test::run`] for the engine's curve: for devices that compute
    /// nothing.
    #[must_use]
    pub fn with_self_test(self, test: impl Fn(&Device) -> Result<(), BackendError> + Send + Sync + 'static) -> Self {
        Self { self_test: Some(Arc::new(test)), ..self }
    }

    pub(crate) fn is_last_resort(&self) -> bool {
        self.last_resort
    }

    /// Whether opening it gives a device that calls which hang in the old one do not touch.
    pub(crate) fn reopens(&self) -> bool {
        self.reopens
    }

    pub(crate) fn open(&self) -> Result<Device, BackendError> {
        (self.open)()
    }

    /// Opens it and computes its known answers.
    pub(crate) fn open_and_test<C: Curve>(&self) -> Result<Device, BackendError> {
        let device = self.open()?;
        match &self.self_test {
            Some(test) => test(&device)?,
            None => self_test::run(&device, C::ID)?,
        }
        Ok(device)
    }
}

/// A circuit and its key on a device.
pub(crate) struct LoadedKey<C: Curve> {
    circuit: DeviceCircuit,
    key: DeviceKey<C>,
}

/// A partition that is ready to compute. Of the device's memory it holds its assignment; everything else is taken under
/// the compute lock.
pub(crate) struct Prepared<C: Curve> {
    proof: PreparedProof<C>,
    key: Arc<LoadedKey<C>>,
    randomness: Randomness<C::Fr>,
    /// Last, because what is on it goes first.
    stream: Stream,
}

/// Loads a circuit and its key. `progress` is called after each chunk.
pub(crate) fn load_key<C: Curve>(
    device: &Device,
    r1cs: &R1cs<C::Fr>,
    source: &dyn CircuitSource<C>,
    (request, id): (&PlanRequest, DeviceId),
    progress: &dyn Fn(),
) -> Result<Arc<LoadedKey<C>>, KeyFault> {
    // Code of the circuit's, not of the device's.
    let own_fault = |cause| KeyFault { cause, device: false };
    let key_source = match catch_unwind(AssertUnwindSafe(|| source.key())) {
        Ok(key) => key.map_err(|e| own_fault(e.to_string()))?,
        Err(payload) => return Err(own_fault(format!("opening the key panicked: {}", panic_text(&*payload)))),
    };
    let plan = request.plan_for(id, device).map_err(|e| own_fault(e.to_string()))?;
    let load = || -> Result<LoadedKey<C>, ProveError> {
        let circuit = DeviceCircuit::load(device, r1cs)?;
        let key = DeviceKey::load_with(device, &*key_source, &plan, &mut |_, _| progress())?;
        key.check_fits(&circuit)?;
        Ok(LoadedKey { circuit, key })
    };
    let fault = |e: ProveError| {
        let device = matches!(&e, ProveError::Backend(b) if b.is_device_fault());
        KeyFault { cause: e.to_string(), device }
    };
    load().map(Arc::new).map_err(fault)
}

/// Makes a partition ready to compute: its assignment travels to the device, beside what computes there.
pub(crate) fn prepare<C: Curve>(
    id: DeviceId,
    device: &Device,
    key: Arc<LoadedKey<C>>,
    (workload, partition): (&dyn Workload<C>, u32),
    witness: &Assignment<C::Fr>,
) -> Result<Prepared<C>, Fault> {
    let prepare = || -> Result<_, ProveError> {
        let (stream, randomness) = (device.stream()?, workload.randomness(partition)?);
        let proof = prove_prepare(&stream, &key.circuit, witness)?;
        proof.wait()?;
        Ok((stream, randomness, proof))
    };
    let (stream, randomness, proof) = prepare().map_err(|e| fault(e, id))?;
    Ok(Prepared { proof, key, randomness, stream })
}

/// Computes. All that was prepared is freed when this returns. `None` if it was cancelled meanwhile.
pub(crate) fn prove<C: Curve>(
    id: DeviceId,
    prepared: Prepared<C>,
    cancelled: &dyn Fn() -> bool,
) -> Option<Result<Box<PendingProof<C>>, Fault>> {
    let Prepared { proof, key, randomness, stream } = prepared;
    match prove_prepared(&stream, &key.circuit, &key.key, proof, randomness, Some(cancelled)) {
        Ok(pending) => Some(Ok(Box::new(pending))),
        Err(ProveError::Cancelled) => None,
        Err(error) => Some(Err(fault(error, id))),
    }
}

/// Assembles and verifies.
pub(crate) fn finish<C: Curve>(id: DeviceId, pending: PendingProof<C>) -> Result<Box<FinishedProof<C>>, Fault> {
    pending.finish().map(Box::new).map_err(|e| fault(e, id))
}

/// What an error means for scheduling.
fn fault(error: ProveError, device: DeviceId) -> Fault {
    match error {
        ProveError::Backend(BackendError::OutOfMemory { pool, requested, in_use, capacity }) => {
            let pool = match pool {
                cuzk_backend::Pool::Device => Pool::Device(device),
                cuzk_backend::Pool::Pinned => Pool::Pinned,
            };
            Fault::OutOfMemory(OutOfMemory { pool, requested, in_use, held_back: 0, capacity })
        }
        ProveError::SelfCheck(e) => Fault::WrongProof { cause: e.to_string() },
        // The witness is another circuit's: no device would take it.
        error @ ProveError::AssignmentMismatch { .. } => Fault::Synthesis { cause: error.to_string() },
        error => Fault::Device { cause: error.to_string() },
    }
}
