//! Every fault that a device or a circuit can have: no proof is lost or wrong, nothing leaks, and the next proof works.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cuzk_backend::{BackendError, noop::Noop, self_test};
use cuzk_conformance::faults::{Call, Fault, Faults, Trigger};
use cuzk_curve::{Bls12, CurveId};
use cuzk_engine::{
    DeviceSpec, EngineConfig, JobError, JobOptions, ReplayConfig, Shutdown, SourceError, WitnessContext, Witnesses,
    Workload,
};
use cuzk_r1cs::{Assignment, WitnessCs, WitnessError};
use cuzk_scheduler::{DeviceId, FailureCause, Fault as Failure, Health, Pool};

use crate::common::*;

const STEPS: usize = 3;

/// A cold run of two partitions with a fault in it: the proofs come all the same, and then everything is as if
/// nothing had been.
fn survives(trigger: Trigger, fault: Fault, config: EngineConfig) {
    let toy = Toy::new();
    let engine = engine(config, vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(trigger, fault);
    let job = engine.submit(circuit, squares(1, STEPS, 2), JobOptions::default());
    let proofs = wait(&job).unwrap_or_else(|e| panic!("{fault:?} at {trigger:?}: {e}"));
    assert_eq!(proofs[1].inputs, [Squares::new(2, STEPS).public()]);
    assert_eq!(toy.faults.fired().len(), 1, "{fault:?} at {trigger:?} has happened");
    toy.faults.release();
    expect_next(&engine, circuit, STEPS);
    let status = engine.status().unwrap();
    let key = status.keys.iter().find(|k| k.pool == Pool::Device(DeviceId(0))).map_or(0, |k| k.bytes);
    assert_eq!(toy.in_use(), (key, 0), "{fault:?} at {trigger:?}: only the key is on the device");
    engine.shutdown(Shutdown::Drain);
    assert_eq!(toy.in_use(), (0, 0));
}

/// How often each method is called by a cold run of two partitions, and how often memory is allocated.
fn cold_run() -> (Vec<(Call, u64)>, u64) {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    // Those of the engine's start do not count: faults come later.
    let before: Vec<_> = Call::ALL.iter().map(|c| toy.faults.count(*c)).collect();
    expect_squares(&engine.submit(circuit, squares(1, STEPS, 2), JobOptions::default()), 1, STEPS, 2);
    let counts = Call::ALL.iter().zip(before).map(|(c, n)| (*c, toy.faults.count(*c) - n));
    (counts.filter(|(_, n)| *n > 0).collect(), toy.faults.allocations())
}

#[test]
fn out_of_memory_at_every_allocation() {
    let (_, allocations) = cold_run();
    assert!(allocations > 20, "{allocations}");
    for n in 0..allocations {
        survives(Trigger::Allocation(n), Fault::OutOfMemory, config(2));
    }
}

#[test]
fn device_lost_in_every_operation() {
    let (calls, _) = cold_run();
    assert!(calls.len() > 10, "{calls:?}");
    for (call, count) in calls {
        survives(Trigger::Call(call, 0), Fault::Lost, config(1));
        survives(Trigger::Call(call, count - 1), Fault::Lost, config(2));
    }
}

#[test]
fn a_panic_in_every_operation() {
    for (call, count) in cold_run().0 {
        survives(Trigger::Call(call, count / 2), Fault::Panic, config(1));
    }
}

/// Long enough for a busy machine, short enough for a test.
const PATIENCE: Duration = Duration::from_millis(1500);

#[test]
fn a_hang_while_a_key_is_loaded() {
    survives(Trigger::Call(Call::BasesWrite, 2), Fault::Hang, EngineConfig { watchdog: PATIENCE, ..config(1) });
}

#[test]
fn a_hang_in_preparation() {
    survives(Trigger::Call(Call::StreamCreate, 0), Fault::Hang, EngineConfig { watchdog: PATIENCE, ..config(2) });
}

#[test]
fn a_hang_in_the_kernels() {
    survives(Trigger::Call(Call::EventWait, 3), Fault::Hang, EngineConfig { watchdog: PATIENCE, ..config(1) });
}

#[test]
fn a_hang_while_a_proof_is_finished() {
    survives(Trigger::Call(Call::PendingWait, 1), Fault::Hang, EngineConfig { watchdog: PATIENCE, ..config(1) });
}

#[test]
fn a_device_that_cannot_be_opened_anew_waits_until_what_hangs_has_returned() {
    let toy = Toy::new();
    let mut config = EngineConfig { watchdog: PATIENCE, ..config(1) };
    config.scheduler.max_self_tests = 1000;
    let engine = engine(config, vec![toy.fixed()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::EventWait, 0), Fault::Hang);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    let failed_one = |h: &Health| matches!(h, Health::Quarantined { failed_tests: 1.., .. });
    until(&engine, "a failed self-test", |s| s.devices.iter().any(|d| failed_one(&d.health)));
    assert!(job.try_result().is_none());
    toy.faults.release();
    expect_squares(&job, 1, STEPS, 1);
    expect_next(&engine, circuit, STEPS);
}

#[test]
fn a_device_is_closed_before_it_is_opened_anew() {
    let faults = Faults::new();
    let (hand, opened) = (faults.clone(), Arc::<AtomicUsize>::default());
    let count = Arc::clone(&opened);
    let open = move || {
        count.fetch_add(1, Ordering::SeqCst);
        hand.heal();
        let device = hand.around(Noop::new(NOOP_BYTES));
        match hand.open_devices() {
            1 => Ok(device),
            n => Err(BackendError::Driver { operation: "open".to_owned(), message: format!("{n} are open") }),
        }
    };
    let spec = DeviceSpec::reopening(open).with_self_test(bytes_come_back);
    let engine = engine(config(2), vec![spec]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    faults.inject(Trigger::Call(Call::Quotient, 1), Fault::Lost);
    let job = engine.submit(circuit, squares(1, STEPS, 4), JobOptions::default());
    expect_squares(&job, 1, STEPS, 4);
    assert_eq!(opened.load(Ordering::SeqCst), 2, "at the start, and after the loss");
    expect_next(&engine, circuit, STEPS);
    engine.shutdown(Shutdown::Drain);
    assert_eq!(faults.open_devices(), 0);
}

#[test]
fn a_shutdown_does_not_wait_for_what_hangs() {
    let toy = Toy::new();
    let engine = engine(EngineConfig { watchdog: PATIENCE, ..config(1) }, vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::EventWait, 0), Fault::Hang);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    while toy.faults.hanging() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    engine.shutdown(Shutdown::Cancel);
    assert_eq!(expect_error(&job), JobError::Cancelled);
    assert_eq!(toy.faults.hanging(), 1);
    toy.faults.release();
}

#[test]
fn a_wrong_sum_goes_to_another_device() {
    let toys = [Toy::new(), Toy::new()];
    let engine = engine(config(1), toys.iter().map(Toy::spec).collect());
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    for toy in &toys {
        toy.faults.inject(Trigger::Call(Call::PendingWait, 0), Fault::WrongResult);
    }
    let news = engine.subscribe(100);
    let first = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    // Both devices are wrong about the first one: it must fail rather than come out.
    assert!(matches!(
        expect_error(&first),
        JobError::Failed(FailureCause::Partition { fault: Failure::WrongProof { .. }, failures: 2, .. })
    ));
    expect_next(&engine, circuit, STEPS);
    toys[0].faults.inject(Trigger::Call(Call::PendingWait, 0), Fault::WrongResult);
    toys[1].faults.inject(Trigger::Call(Call::PendingWait, 40), Fault::WrongResult);
    let second = engine.submit(circuit, squares(5, STEPS, 4), JobOptions::default());
    expect_squares(&second, 5, STEPS, 4);
    toys.iter().for_each(|t| t.faults.clear());
    expect_next(&engine, circuit, STEPS);
    engine.shutdown(Shutdown::Drain);
    let failures = news.iter().filter(|p| matches!(p.stage, cuzk_engine::ProgressStage::Failed { .. })).count();
    assert!(failures >= 2, "{failures}");
    assert_eq!(toys.map(|t| t.in_use()), [(0, 0); 2]);
}

#[test]
fn one_device_alone_that_is_wrong_fails_the_job_and_is_used_again() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::PendingWait, 2), Fault::WrongResult);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    let JobError::Failed(FailureCause::Partition { device, fault, .. }) = expect_error(&job) else {
        panic!("{job:?}");
    };
    assert_eq!(device, Some(DeviceId(0)));
    assert!(matches!(fault, Failure::WrongProof { .. }));
    expect_next(&engine, circuit, STEPS);
}

#[test]
fn a_witness_that_is_wrong_is_told_from_a_device_that_is() {
    let test =
        |device: &cuzk_backend::Device| -> Result<(), BackendError> { self_test::run(device, CurveId::Bls12_381) };
    let spec = || DeviceSpec::opened(cpu()).with_self_test(test);
    let engine = engine(config(1), vec![spec(), spec()]);
    let (circuit, _) = real_circuit(STEPS);
    let circuit = engine.register(circuit).unwrap();
    let wrong = Witnesses::new(1, |_| WitnessCs::generate(Squares { error: 1, ..Squares::new(3, STEPS) }));
    let job = engine.submit(circuit, wrong, JobOptions::default());
    let JobError::Failed(FailureCause::Partition { fault: Failure::Synthesis { cause }, failures, .. }) =
        expect_error(&job)
    else {
        panic!("{job:?}");
    };
    assert_eq!((cause.as_str(), failures), ("the witness does not satisfy constraint 0", 2));
    expect_next(&engine, circuit, STEPS);
}

#[test]
fn a_lost_device_is_retired_and_another_one_goes_on() {
    let toys = [Toy::new(), Toy::new()];
    let engine = engine(config(2), vec![toys[0].fixed(), toys[1].spec().last_resort()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toys[0].faults.inject(Trigger::Call(Call::Msm, 3), Fault::Lost);
    let job = engine.submit(circuit, squares(1, STEPS, 3), JobOptions::default());
    expect_squares(&job, 1, STEPS, 3);
    let status = engine.status().unwrap();
    assert_eq!(status.devices[0].health, Health::Retired);
    expect_next(&engine, circuit, STEPS);
}

#[test]
fn a_witness_that_cannot_be_made_fails_its_job_alone() {
    let toy = Toy::new();
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let options = JobOptions::default();
    let beside = engine.submit(circuit, squares(3, STEPS, 4), options);
    let error =
        engine.submit(circuit, Witnesses::new(2, |k| if k == 1 { Err("no such sector") } else { good() }), options);
    let panics =
        engine.submit(circuit, Witnesses::new(1, |_| -> Result<_, WitnessError> { panic!("oh dear") }), options);
    for (job, text) in [(error, "no such sector"), (panics, "oh dear")] {
        let JobError::Failed(FailureCause::Partition { fault: Failure::Synthesis { cause }, .. }) = expect_error(&job)
        else {
            panic!("{job:?}");
        };
        assert!(cause.contains(text), "{cause}");
    }
    expect_squares(&beside, 3, STEPS, 4);
    expect_next(&engine, circuit, STEPS);
}

fn good() -> Result<Assignment<blstrs::Scalar>, &'static str> {
    WitnessCs::generate(Squares::new(1, STEPS)).map_err(|_| "impossible")
}

/// A job with inputs that may be written down.
struct Replayable;

impl Workload<Bls12> for Replayable {
    fn partitions(&self) -> u32 {
        1
    }

    fn witness(
        &self,
        _: u32,
        _: &mut WitnessContext<blstrs::Scalar>,
    ) -> Result<Assignment<blstrs::Scalar>, SourceError> {
        Ok(good()?)
    }

    fn replay_inputs(&self) -> Option<Vec<u8>> {
        Some(b"vanilla proof".to_vec())
    }
}

#[test]
fn failed_attempts_are_written_down() {
    let directory = tempfile::tempdir().unwrap();
    for inputs in [true, false] {
        let place = directory.path().join(inputs.to_string());
        let replay = ReplayConfig { directory: place.clone(), inputs, max_bundles: 5 };
        let toy = Toy::new();
        let engine = engine(EngineConfig { replay: Some(replay), ..config(1) }, vec![toy.spec()]);
        let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
        toy.faults.inject(Trigger::Call(Call::PendingWait, 0), Fault::WrongResult);
        let job = engine.submit(circuit, Replayable, JobOptions::default());
        expect_error(&job);
        engine.shutdown(Shutdown::Drain);
        let bundles: Vec<_> = fs::read_dir(&place).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(bundles.len(), 1, "{bundles:?}");
        let text = fs::read_to_string(bundles[0].join("bundle.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["device"]["uuid"], "noop-0");
        assert_eq!(json["circuit"], "hollow 3");
        assert!(json["error"].as_str().unwrap().contains("did not verify"));
        assert_eq!(json["circuit_digest"].as_str().unwrap().len(), 64);
        assert_eq!(json["key_digest"].as_str().unwrap().len(), 64);
        assert_eq!(json["inputs"], inputs);
        assert_eq!(fs::read(bundles[0].join("inputs.bin")).ok(), inputs.then(|| b"vanilla proof".to_vec()));
    }
}

#[test]
fn a_callback_that_panics_harms_nobody() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let (gated, open, _) = Gated::new(STEPS, 1);
    let job = engine.submit(circuit, gated, JobOptions::default());
    let called = Arc::new(());
    let inside = Arc::clone(&called);
    job.on_end(move |_| {
        let _inside = inside;
        panic!("expected by a test")
    });
    open.send(()).unwrap();
    wait(&job).unwrap();
    expect_next(&engine, circuit, STEPS);
    engine.shutdown(Shutdown::Drain);
    assert_eq!(Arc::strong_count(&called), 1, "it was called");
}
