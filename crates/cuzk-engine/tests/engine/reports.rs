//! What the engine says of itself: of a job, of keys that were asked for, of its devices.

use std::time::{Duration, Instant};

use blstrs::Scalar;
use cuzk_conformance::faults::{Call, Fault, Trigger};
use cuzk_curve::Bls12;
use cuzk_engine::{
    EvictOutcome, JobOptions, KeyRequestError, Phase, PreloadOutcome, Shutdown, SourceError, Totals, WitnessContext,
    Witnesses, Workload,
};
use cuzk_r1cs::{Assignment, WitnessCs};
use cuzk_scheduler::{CircuitId, DeviceId, JobId, KeyTier, Pool, Stage, TotalBudget, Workers};

use crate::common::*;

const STEPS: usize = 3;
const DEVICE: DeviceId = DeviceId(0);

#[test]
fn the_phases_of_a_partition_add_up_to_its_time() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let slow = |_| {
        std::thread::sleep(Duration::from_millis(30));
        WitnessCs::generate(Squares::new(1, STEPS))
    };
    // Of the second attempt's times nothing is lost.
    toy.faults.inject(Trigger::Call(Call::Msm, 1), Fault::Lost);
    let began = Instant::now();
    let job = engine.submit(circuit, Witnesses::new(2, slow), JobOptions::default());
    assert!(job.report().is_none());
    wait(&job).unwrap();
    let (report, most) = (job.report().unwrap(), began.elapsed());
    assert_eq!((report.job, report.circuit), (job.id(), circuit));
    assert!(report.duration() <= most, "{report:?}");
    let last = report.partitions.iter().map(|p| p.times.total()).max().unwrap();
    assert!(last <= report.duration() && report.duration() < last + Duration::from_millis(20), "{report:?}");
    let of = |index: usize, phase| report.partitions[index].times.of(phase);
    assert!(of(0, Phase::Synthesis) >= Duration::from_millis(30), "{report:?}");
    assert!(of(1, Phase::Admission) >= of(0, Phase::Synthesis), "one worker: {report:?}");
    assert!(of(0, Phase::Device) > Duration::ZERO && of(0, Phase::Finish) > Duration::ZERO);
    assert!(report.partitions.iter().all(|p| p.proved && p.device == Some(DEVICE) && p.syntheses == 1));
    assert_eq!(report.partitions.iter().map(|p| p.failures).sum::<u32>(), 1);
    assert_eq!(report.times().total(), report.partitions.iter().map(|p| p.times.total()).sum());
}

#[test]
fn a_job_that_waits_for_a_key_says_so() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::BasesWrite, 0), Fault::Pause);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    until(&engine, "a key on its way", |s| toy.faults.hanging() == 1 && s.counts.queued == 0 && s.counts.permits == 0);
    std::thread::sleep(Duration::from_millis(20));
    toy.faults.release();
    expect_squares(&job, 1, STEPS, 1);
    let times = job.report().unwrap().partitions[0].times;
    assert!(times.of(Phase::Key) >= Duration::from_millis(20), "{times:?}");
    // The key is there: nobody waits.
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    expect_squares(&job, 1, STEPS, 1);
    assert_eq!(job.report().unwrap().partitions[0].times.of(Phase::Key), Duration::ZERO);
}

#[test]
fn a_cancelled_job_has_a_report_and_one_that_waits_a_status() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let (gated, _open, began) = Gated::new(STEPS, 2);
    let job = engine.submit(circuit, gated, JobOptions::default());
    let later = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    assert_eq!(began.recv(), Ok(0));
    let status = engine.job_status(later.id()).unwrap();
    assert_eq!((status.circuit, status.position, status.partitions[0].0), (circuit, 1, Stage::Pending));
    assert!(status.partitions[0].1.is_some(), "it waits for a permit: {status:?}");
    assert_eq!(engine.job_status(job.id()).unwrap().partitions[0].0, Stage::Synthesizing);
    assert_eq!(engine.job_status(JobId(99)), None);
    job.cancel();
    expect_error(&job);
    let report = job.report().unwrap();
    assert_eq!(report.partitions.iter().map(|p| (p.syntheses, p.proved)).collect::<Vec<_>>(), [(1, false), (0, false)]);
    expect_squares(&later, 1, STEPS, 1);
    let totals = engine.status().unwrap().totals;
    assert_eq!(totals, Totals { jobs_completed: 1, jobs_cancelled: 1, proofs: 1, ..Totals::default() });
}

#[test]
fn whoever_asks_for_a_key_hears_what_was_done() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let tier = || engine.status().unwrap().circuits[0].tier;
    assert_eq!(tier(), KeyTier::Cold);
    let first = expect_preloaded(&engine, circuit);
    let pools: Vec<_> = first.pools.iter().map(|(pool, _, outcome)| (*pool, outcome.clone())).collect();
    let loaded = |outcome: PreloadOutcome| [(Pool::Host, outcome.clone()), (Pool::Device(DEVICE), outcome)];
    assert_eq!(pools, loaded(PreloadOutcome::Loaded));
    assert_eq!(tier(), KeyTier::Hot);
    assert!(first.pools.iter().any(|(pool, bytes, _)| *pool == Pool::Device(DEVICE) && *bytes == toy.in_use().0));
    let again = expect_preloaded(&engine, circuit);
    assert!(again.pools.iter().all(|(.., outcome)| *outcome == PreloadOutcome::AlreadyThere));
    assert_eq!((again.bytes_loaded(), again.pools.len()), (0, 2));

    // In use in the host's memory (the matrices), not on the device.
    let (gated, open, began) = Gated::new(STEPS, 1);
    let job = engine.submit(circuit, gated, JobOptions::default());
    assert_eq!(began.recv(), Ok(0));
    let evicted = engine.evict(circuit).wait().unwrap();
    let outcome = |pool| evicted.pools.iter().find(|(p, ..)| *p == pool).map(|(_, _, outcome)| *outcome);
    assert_eq!(outcome(Pool::Host), Some(EvictOutcome::InUse { users: 1 }));
    assert_eq!(outcome(Pool::Device(DEVICE)), Some(EvictOutcome::Freed));
    assert_eq!(toy.in_use(), (0, 0), "the answer comes when it is free");
    open.send(()).unwrap();
    wait(&job).unwrap();
    let evicted = engine.evict(circuit).wait().unwrap();
    assert_eq!(evicted.bytes_freed(), first.bytes_loaded());
    assert_eq!(engine.evict(circuit).wait().unwrap().pools, []);

    let circuit = CircuitId(7);
    assert_eq!(engine.preload(circuit).wait(), Err(KeyRequestError::UnknownCircuit { circuit }));
    assert_eq!(engine.evict(circuit).wait(), Err(KeyRequestError::UnknownCircuit { circuit }));
}

#[test]
fn a_key_that_does_not_fit_is_refused_with_numbers() {
    let toy = Toy::new();
    let mut config = config(1);
    config.scheduler.eviction_min_idle = Duration::from_secs(3600);
    let one = {
        let engine = engine(config.clone(), vec![toy.spec()]);
        expect_preloaded(&engine, engine.register(hollow_circuit(100)).unwrap()).pools[0].1
    };
    // The matrices of one of the two circuits.
    config.memory.total_budget = TotalBudget::Bytes(one * 3 / 2);
    let engine = engine(config, vec![toy.spec()]);
    let [first, second] = [100, 101].map(|steps| engine.register(hollow_circuit(steps)).unwrap());
    expect_preloaded(&engine, first);
    let refused = engine.preload(second).wait().unwrap();
    assert!(!refused.is_complete());
    let (_, bytes, PreloadOutcome::Refused(cause)) = &refused.pools[0] else { panic!("{refused:?}") };
    assert_eq!((cause.pool, cause.requested, cause.capacity), (Pool::Host, *bytes, one * 3 / 2));
    assert!(cause.in_use + cause.requested > cause.capacity);
}

/// A workload that knows what it takes.
struct Frugal;

impl Workload<Bls12> for Frugal {
    fn partitions(&self) -> u32 {
        3
    }

    fn witness(&self, _: u32, context: &mut WitnessContext<Scalar>) -> Result<Assignment<Scalar>, SourceError> {
        context.report_bytes(640);
        context.report_bytes(600);
        Ok(WitnessCs::generate_reusing(Squares::new(1, STEPS), context.take_used())?)
    }
}

#[test]
fn the_number_of_workers_goes_by_what_a_synthesis_really_takes() {
    let toy = Toy::new();
    let mut config = config(1);
    config.scheduler.partition_workers = Workers::Auto;
    let engine = engine(config, vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    expect_squares(&job, 1, STEPS, 1);
    let said = engine.status().unwrap().workers;
    assert!(said.contains("a synthesis, as declared"), "{said}");
    wait(&engine.submit(circuit, Frugal, JobOptions::default())).unwrap();
    let said = engine.status().unwrap().workers;
    assert!(said.contains(&format!("{} B a synthesis, as measured", 640 + 640 / 16)), "{said}");
}

#[test]
fn devices_say_how_long_they_have_worked() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::Pause);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    let status = until(&engine, "kernels", |_| toy.faults.hanging() == 1);
    assert_eq!(status.devices[0].current.map(|t| t.partition.job), Some(job.id()));
    assert_eq!(status.devices[0].idle, None);
    std::thread::sleep(Duration::from_millis(60));
    toy.faults.release();
    expect_squares(&job, 1, STEPS, 1);
    let status = engine.status().unwrap();
    let device = &status.devices[0];
    assert!(device.busy >= Duration::from_millis(60) && device.busy <= status.at, "{device:?}");
    assert_eq!((device.proofs, device.failures, device.current), (1, 0, None));
    let busy = device.busy;
    assert_eq!(engine.status().unwrap().devices[0].busy, busy, "it rests");

    // A proof that does not verify is counted.
    toy.faults.inject(Trigger::Call(Call::PendingWait, 0), Fault::WrongResult);
    let other = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    expect_error(&other);
    let status = engine.status().unwrap();
    assert_eq!((status.totals.failed_verifications, status.devices[0].failures), (1, 1));
    assert_eq!((status.totals.proofs, status.totals.jobs_failed), (1, 1));
    engine.shutdown(Shutdown::Cancel);
}
