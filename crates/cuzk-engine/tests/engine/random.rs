//! Random schedules: jobs, cancellations, faults and shutdowns in any order. Every proof that comes out is of what
//! was asked for, every job ends, nothing leaks.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use blstrs::Scalar;
use cuzk_conformance::faults::{Fault, Trigger};
use cuzk_curve::Bls12;
use cuzk_engine::{
    CircuitSource, EngineConfig, JobError, JobHandle, JobOptions, Shutdown, SourceError, WitnessContext, Workload,
};
use cuzk_keys::KeySource;
use cuzk_r1cs::{Assignment, R1cs, WitnessCs};
use cuzk_scheduler::Priority;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::*;

const SEED: u64 = 0x5eed_0001;
/// As many run in every test; `CUZK_ENGINE_SCHEDULES` asks for another number.
const SCHEDULES: u64 = 1000;
const STEPS: [usize; 2] = [2, 9];

/// The circuits, made once.
fn circuits() -> &'static [SharedCircuit; 2] {
    static CIRCUITS: OnceLock<[SharedCircuit; 2]> = OnceLock::new();
    CIRCUITS.get_or_init(|| STEPS.map(SharedCircuit::hollow))
}

struct Flaky(SharedCircuit, bool);

impl CircuitSource<Bls12> for Flaky {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn r1cs(&self) -> Result<Arc<R1cs<Scalar>>, SourceError> {
        self.0.r1cs()
    }

    fn key(&self) -> Result<Arc<dyn KeySource<Bls12>>, SourceError> {
        self.0.key()
    }

    fn synthesis_bytes(&self, finished: u64) -> u64 {
        finished * if self.1 { 3 } else { 1 }
    }
}

/// What the witness of a partition does beside being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    None,
    Slow,
    Error,
    Panic,
}

#[derive(Clone, Debug)]
struct RandomJob {
    x: u64,
    steps: usize,
    tricks: Vec<Trick>,
}

impl Workload<Bls12> for RandomJob {
    fn partitions(&self) -> u32 {
        self.tricks.len() as u32
    }

    fn witness(&self, k: u32, context: &mut WitnessContext<Scalar>) -> Result<Assignment<Scalar>, SourceError> {
        match self.tricks[k as usize] {
            Trick::None => {}
            Trick::Slow => std::thread::sleep(Duration::from_micros(300)),
            Trick::Error => return Err("a trick".into()),
            Trick::Panic => panic!("a trick"),
        }
        drop(context.take_used());
        Ok(WitnessCs::generate(Squares::new(self.x + u64::from(k), self.steps))?)
    }
}

struct Submitted {
    job: JobHandle<Bls12>,
    what: RandomJob,
    cancelled: bool,
    deadline: bool,
}

impl Submitted {
    /// A proof of each partition, or an error that something in this schedule explains.
    fn check(&self, any_fault: bool, stopped: bool) {
        let Self { job, what, cancelled, deadline } = self;
        match wait(job) {
            Ok(proofs) => {
                assert!(what.tricks.iter().all(|t| matches!(t, Trick::None | Trick::Slow)), "{what:?}");
                let of = |k: usize| Squares::new(what.x + k as u64, what.steps).public();
                for (k, proof) in proofs.iter().enumerate() {
                    assert_eq!(proof.inputs, [of(k)]);
                }
                assert_eq!(proofs.len(), what.tricks.len());
            }
            Err(JobError::Cancelled) => assert!(*cancelled || stopped, "{what:?}"),
            Err(JobError::Failed(cause)) => {
                let tricked = what.tricks.iter().any(|t| matches!(t, Trick::Error | Trick::Panic));
                assert!(tricked || any_fault || *deadline, "{what:?}: {cause}");
            }
            Err(error) => panic!("{what:?}: {error}"),
        }
    }
}

fn random_config(rng: &mut ChaCha8Rng) -> EngineConfig {
    let mut config = config(rng.gen_range(1..4));
    config.scheduler.gpu_workers_per_device = rng.gen_range(1..3);
    config.scheduler.max_batch = rng.gen_range(1..3);
    config.scheduler.eviction_min_idle = Duration::ZERO;
    config.scheduler.self_test_interval = Duration::from_millis(1);
    config.scheduler.max_self_tests = 100;
    config.memory.spare_witnesses = rng.gen_range(0..2);
    config
}

fn random_job(rng: &mut ChaCha8Rng, circuit: usize) -> RandomJob {
    let tricks = (0..rng.gen_range(1..4)).map(|_| match rng.gen_range(0..40) {
        0 => Trick::Error,
        1 => Trick::Panic,
        2..=9 => Trick::Slow,
        _ => Trick::None,
    });
    let tricks = tricks.collect();
    RandomJob { x: rng.gen_range(0..1000), steps: STEPS[circuit], tricks }
}

fn run(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // Sometimes one key and a partition fit a device, and not two keys.
    let bytes = if rng.gen_bool(0.3) { 40_000 } else { NOOP_BYTES };
    let toys: Vec<_> = (0..rng.gen_range(1..3)).map(|_| Toy::with_bytes(bytes)).collect();
    let mut config = random_config(&mut rng);
    let hang = rng.gen_bool(0.01);
    if hang {
        config.watchdog = Duration::from_millis(300);
        toys[0].faults.inject(Trigger::Any(rng.gen_range(0..100)), Fault::Hang);
    }
    let engine = engine(config, toys.iter().map(Toy::spec).collect());
    let ids: Vec<_> =
        circuits().iter().map(|c| engine.register(Flaky(c.clone(), rng.gen_bool(0.5))).unwrap()).collect();
    let mut any_fault = hang;
    for toy in &toys {
        for _ in 0..rng.gen_range(0..3) {
            let fault = match rng.gen_range(0..4) {
                0 => Fault::OutOfMemory,
                1 => Fault::Lost,
                2 => Fault::Panic,
                _ => Fault::WrongResult,
            };
            toy.faults.inject(Trigger::Any(rng.gen_range(0..150)), fault);
            any_fault = true;
        }
    }
    let mut jobs = Vec::new();
    for _ in 0..rng.gen_range(1..5) {
        let circuit = rng.gen_range(0..ids.len());
        let what = random_job(&mut rng, circuit);
        let priority = [Priority::Critical, Priority::High, Priority::Normal, Priority::Low][rng.gen_range(0..4)];
        let deadline = rng.gen_bool(0.05).then(|| Duration::from_millis(rng.gen_range(0..10)));
        let job = engine.submit(ids[circuit], what.clone(), JobOptions { priority, deadline });
        jobs.push(Submitted { job, what, cancelled: false, deadline: deadline.is_some() });
        match rng.gen_range(0..12) {
            0 => drop(engine.preload(ids[rng.gen_range(0..ids.len())])),
            1 => drop(engine.evict(ids[rng.gen_range(0..ids.len())])),
            2..=4 => {
                std::thread::sleep(Duration::from_micros(rng.gen_range(0..3000)));
                let victim = rng.gen_range(0..jobs.len());
                jobs[victim].job.cancel();
                jobs[victim].cancelled = true;
            }
            _ => {}
        }
    }
    let stop_early = rng.gen_bool(0.3);
    if !stop_early {
        jobs.iter().for_each(|job| job.check(any_fault, false));
        toys.iter().for_each(|toy| toy.faults.clear());
        toys.iter().for_each(|toy| toy.faults.release());
        expect_clean(&engine);
        expect_next(&engine, ids[0], STEPS[0]);
    }
    let how = if rng.gen_bool(0.5) { Shutdown::Drain } else { Shutdown::Cancel };
    engine.shutdown(how);
    jobs.iter().for_each(|job| job.check(any_fault, stop_early && how == Shutdown::Cancel));
    for toy in &toys {
        toy.faults.clear();
        toy.faults.release();
        toy.faults.heal();
        let end = Instant::now() + Duration::from_secs(60);
        while toy.in_use() != (0, 0) {
            // A call that hung frees what it had when it returns, which nobody waits for.
            assert!(hang && Instant::now() < end, "{:?} bytes are left on the device", toy.in_use());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn random_schedules() {
    let schedules = std::env::var("CUZK_ENGINE_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(SCHEDULES);
    println!("{schedules} schedules from seed {SEED:#x} on");
    for n in 0..schedules {
        let seed = SEED + n;
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            println!("the schedule of seed {seed:#x} fails");
            std::panic::resume_unwind(panic);
        }
    }
}
