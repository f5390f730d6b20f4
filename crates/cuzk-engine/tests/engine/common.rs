//! Toy circuits, keys under which a device that computes nothing proves them, and engines on such devices.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use cuzk_backend::{BackendError, Device, DeviceOptions, noop::Noop};
use cuzk_conformance::faults::Faults;
use cuzk_curve::Bls12;
use cuzk_engine::{
    CircuitSource, DeviceSpec, Engine, EngineConfig, JobError, JobHandle, JobOptions, LoadedCircuit, MemoryConfig,
    Preloaded, SourceError, Status, ThreadConfig, WitnessContext, Witnesses, Workload,
};
use cuzk_groth16::{CircuitShape, setup_deterministic};
use cuzk_keys::{KeySource, Provenance, ProvingKey, Section, VerifyingKey};
use cuzk_r1cs::{Assignment, R1cs, RecordingCs, WitnessCs};
use cuzk_scheduler::{CircuitId, Pool, TotalBudget, Workers};
use ff::Field;
use group::{Curve as _, Group, prime::PrimeCurveAffine};

/// I know a number that, squared `steps` times, is a public one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Squares {
    pub(crate) x: u64,
    pub(crate) steps: usize,
    /// The witness is wrong by this.
    pub(crate) error: u64,
}

impl Squares {
    pub(crate) fn new(x: u64, steps: usize) -> Self {
        Self { x, steps, error: 0 }
    }

    pub(crate) fn public(&self) -> Scalar {
        (0..self.steps).fold(Scalar::from(self.x), |x, _| x.square())
    }
}

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(Scalar::from(self.x)))?;
        for step in 0..self.steps {
            let value = x.get_value().map(|v| v.square() + Scalar::from(if step == 0 { self.error } else { 0 }));
            let value = value.ok_or(SynthesisError::AssignmentMissing);
            let square = AllocatedNum::alloc(cs.namespace(|| format!("square {step}")), || value)?;
            let (a, b) = (x.get_variable(), square.get_variable());
            cs.enforce(|| format!("step {step}"), |lc| lc + a, |lc| lc + a, |lc| lc + b);
            x = square;
        }
        x.inputize(cs.namespace(|| "public"))
    }
}

pub(crate) fn record(steps: usize) -> R1cs<Scalar> {
    RecordingCs::record(Squares::new(0, steps)).unwrap()
}

/// Public inputs stand for nothing under this key: all its points for them are infinity. So α·β = α·β + C·δ with
/// nothing from the sums is a proof, and a device whose sums are all infinity proves everything; one wrong bit in a
/// sum and it does not.
pub(crate) fn hollow_key(r1cs: &R1cs<Scalar>) -> ProvingKey<Bls12> {
    let shape = CircuitShape::of(r1cs);
    let (one, two) = (G1Affine::generator(), G2Affine::generator());
    let g1 = |n: u64| (G1Projective::generator() * Scalar::from(n)).to_affine();
    let g2 = |n: u64| (G2Projective::generator() * Scalar::from(n)).to_affine();
    let points = |section| vec![one; shape.points(section) as usize];
    ProvingKey {
        vk: VerifyingKey {
            alpha_g1: g1(3),
            beta_g1: g1(5),
            beta_g2: g2(5),
            gamma_g2: g2(7),
            delta_g1: g1(11),
            delta_g2: g2(11),
            ic: vec![G1Affine::identity(); shape.n_inputs as usize],
        },
        h: points(Section::H),
        l: points(Section::L),
        a: points(Section::A),
        b_g1: points(Section::BG1),
        b_g2: vec![two; shape.points(Section::BG2) as usize],
        provenance: Provenance::LocalSetup,
    }
}

/// Matrices and key that several engines share.
#[derive(Clone)]
pub(crate) struct SharedCircuit {
    r1cs: Arc<R1cs<Scalar>>,
    key: Arc<ProvingKey<Bls12>>,
}

impl SharedCircuit {
    pub(crate) fn hollow(steps: usize) -> Self {
        let r1cs = record(steps);
        let key = Arc::new(hollow_key(&r1cs));
        Self { r1cs: Arc::new(r1cs), key }
    }
}

impl CircuitSource<Bls12> for SharedCircuit {
    fn name(&self) -> &str {
        "shared"
    }

    fn r1cs(&self) -> Result<Arc<R1cs<Scalar>>, SourceError> {
        Ok(Arc::clone(&self.r1cs))
    }

    fn key(&self) -> Result<Arc<dyn KeySource<Bls12>>, SourceError> {
        Ok(self.key.clone())
    }
}

/// A circuit for devices that compute nothing.
pub(crate) fn hollow_circuit(steps: usize) -> LoadedCircuit<Bls12> {
    let r1cs = record(steps);
    let key = hollow_key(&r1cs);
    LoadedCircuit::new(&format!("hollow {steps}"), r1cs, key)
}

/// A circuit with a real key.
pub(crate) fn real_circuit(steps: usize) -> (LoadedCircuit<Bls12>, VerifyingKey<Bls12>) {
    let r1cs = record(steps);
    let key = setup_deterministic::<Bls12>(&cpu().stream().unwrap(), &r1cs, [7; 32]).unwrap();
    let vk = key.vk.clone();
    (LoadedCircuit::new(&format!("squares {steps}"), r1cs, key), vk)
}

pub(crate) fn cpu() -> Device {
    let options = DeviceOptions { device_memory_limit: 64 << 20, pinned_bytes: 1 << 20, threads: 1 };
    Device::open(&cuzk_backend_cpu::CpuBackend, 0, &options).unwrap()
}

/// Bytes of each pool of a device that computes nothing.
pub(crate) const NOOP_BYTES: u64 = 4 << 20;

/// What a device that computes nothing can be tested for: bytes come back.
pub(crate) fn bytes_come_back(device: &Device) -> Result<(), BackendError> {
    let stream = device.stream()?;
    let buffer = device.alloc(32)?;
    stream.upload_bytes(&[9; 32], &buffer, 0)?;
    let mut back = [0; 32];
    stream.download_bytes(&buffer, 0, &mut back)?;
    if back == [9; 32] {
        return Ok(());
    }
    Err(BackendError::SelfTest { device: device.info().uuid.clone(), check: "bytes".to_owned() })
}

/// A device that computes nothing and fails when it is told to. Opening it anew heals it.
pub(crate) struct Toy {
    pub(crate) faults: Faults,
    pub(crate) device: Device,
}

impl Toy {
    pub(crate) fn new() -> Self {
        Self::with_bytes(NOOP_BYTES)
    }

    pub(crate) fn with_bytes(bytes: u64) -> Self {
        Self::with_pools(bytes, bytes)
    }

    pub(crate) fn with_pools(device_bytes: u64, pinned_bytes: u64) -> Self {
        let faults = Faults::new();
        let device = faults.around(Noop::with_pools(0, device_bytes, pinned_bytes));
        Self { faults, device }
    }

    pub(crate) fn spec(&self) -> DeviceSpec {
        let (faults, device) = (self.faults.clone(), self.device.clone());
        let open = move || {
            faults.heal();
            Ok(device.clone())
        };
        DeviceSpec::reopening(open).with_self_test(bytes_come_back)
    }

    /// As one that cannot be opened anew.
    pub(crate) fn fixed(&self) -> DeviceSpec {
        DeviceSpec::opened(self.device.clone()).with_self_test(bytes_come_back)
    }

    /// Bytes that live objects hold, device and pinned.
    pub(crate) fn in_use(&self) -> (u64, u64) {
        let usage = self.device.memory().unwrap();
        (usage.device.in_use, usage.pinned.in_use)
    }
}

pub(crate) fn config(workers: usize) -> EngineConfig {
    let mut config = EngineConfig {
        memory: MemoryConfig { total_budget: TotalBudget::Bytes(64 << 20), safety_margin: 0, spare_witnesses: 1 },
        threads: ThreadConfig { synthesis: 2, per_synthesis: 1, gpu_threads: 1 },
        watchdog: Duration::from_secs(60),
        ..EngineConfig::default()
    };
    config.scheduler.partition_workers = Workers::Fixed(workers);
    config.scheduler.self_test_interval = Duration::from_millis(5);
    config
}

pub(crate) fn engine(config: EngineConfig, devices: Vec<DeviceSpec>) -> Engine<Bls12> {
    Engine::start(config, devices).unwrap()
}

/// Partition k proves that it knows the root of (x + k) squared again and again.
pub(crate) fn squares(x: u64, steps: usize, partitions: u32) -> impl Workload<Bls12> {
    Witnesses::new(partitions, move |k| WitnessCs::generate(Squares::new(x + u64::from(k), steps)))
}

/// What its proofs must be of.
pub(crate) fn expect_squares(job: &JobHandle<Bls12>, x: u64, steps: usize, partitions: u32) {
    let proofs = wait(job).unwrap_or_else(|e| panic!("{job:?}: {e}"));
    let inputs: Vec<_> = proofs.iter().map(|p| p.inputs.clone()).collect();
    let expected: Vec<_> = (0..partitions).map(|k| vec![Squares::new(x + u64::from(k), steps).public()]).collect();
    assert_eq!(inputs, expected, "each proof is of its own partition");
}

/// Waits for a job, but not for ever.
pub(crate) fn wait(job: &JobHandle<Bls12>) -> cuzk_engine::JobResult<Bls12> {
    job.wait_timeout(Duration::from_secs(120)).unwrap_or_else(|| panic!("{job:?} does not end"))
}

pub(crate) fn expect_error(job: &JobHandle<Bls12>) -> JobError {
    match wait(job) {
        Err(error) => error,
        Ok(_) => panic!("{job:?} has proofs"),
    }
}

/// Waits until something holds of the engine.
pub(crate) fn until(engine: &Engine<Bls12>, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let status = engine.status().unwrap();
        if holds(&status) {
            return status;
        }
        assert!(Instant::now() < end, "{what} does not come: {status:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Brings a key to the devices.
pub(crate) fn expect_preloaded(engine: &Engine<Bls12>, circuit: CircuitId) -> Preloaded {
    let preloaded = engine.preload(circuit).wait_timeout(Duration::from_secs(60)).expect("an answer").unwrap();
    assert!(preloaded.is_complete(), "{preloaded:?}");
    preloaded
}

/// Bytes reserved of a pool.
pub(crate) fn reserved(status: &Status, pool: Pool) -> u64 {
    status.memory.iter().find(|(p, _)| *p == pool).map_or(0, |(_, usage)| usage.in_use)
}

/// No job is left, the account is right, and nothing is reserved but keys.
pub(crate) fn expect_clean(engine: &Engine<Bls12>) {
    let status = until(engine, "rest", |s| s.counts.jobs == 0 && s.keys.iter().all(|k| k.loaded));
    status.audit.clone().unwrap();
    for (pool, usage) in &status.memory {
        let keys: u64 = status.keys.iter().filter(|k| k.pool == *pool).map(|k| k.bytes).sum();
        assert_eq!(usage.in_use, keys, "{pool} memory holds keys only: {status:?}");
    }
    assert!(status.keys.iter().all(|k| k.users == 0), "{status:?}");
    assert_eq!((status.counts.permits, status.counts.places), (0, 0));
}

/// The next proof works, and leaves the device with its keys alone.
pub(crate) fn expect_next(engine: &Engine<Bls12>, circuit: CircuitId, steps: usize) {
    let job = engine.submit(circuit, squares(1000, steps, 2), JobOptions::default());
    expect_squares(&job, 1000, steps, 2);
    expect_clean(engine);
}

/// A job whose witnesses wait for a word.
pub(crate) struct Gated {
    pub(crate) steps: usize,
    pub(crate) partitions: u32,
    gate: std::sync::Mutex<mpsc::Receiver<()>>,
    began: std::sync::Mutex<mpsc::Sender<u32>>,
}

impl Gated {
    /// The job, the sender of words, and news of witnesses that have begun.
    pub(crate) fn new(steps: usize, partitions: u32) -> (Self, mpsc::Sender<()>, mpsc::Receiver<u32>) {
        let (open, gate) = mpsc::channel();
        let (began, news) = mpsc::channel();
        let (gate, began) = (std::sync::Mutex::new(gate), std::sync::Mutex::new(began));
        (Self { steps, partitions, gate, began }, open, news)
    }
}

impl Workload<Bls12> for Gated {
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn witness(&self, k: u32, context: &mut WitnessContext<Scalar>) -> Result<Assignment<Scalar>, SourceError> {
        // Nobody may listen.
        let _unheard = self.began.lock().unwrap().send(k);
        while !context.is_cancelled() {
            if self.gate.lock().unwrap().recv_timeout(Duration::from_millis(2)).is_ok() {
                break;
            }
        }
        Ok(WitnessCs::generate(Squares::new(1 + u64::from(k), self.steps))?)
    }
}
