//! The lessons of pipelined proving that are the engine's to keep. (Those of bytes and order are also tests of the
//! scheduler; lesson 6 has a binary of its own, because it counts what is allocated.)

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cuzk_conformance::faults::{Call, Fault, Trigger};
use cuzk_curve::Bls12;
use cuzk_engine::{
    DeviceSpec, Engine, EngineConfig, JobError, JobHandle, JobOptions, Shutdown, ThreadConfig, Witnesses,
};
use cuzk_r1cs::WitnessCs;
use cuzk_scheduler::{Blocked, DeviceId, FailureCause, Fault as Failure, Pool, Stage as Place, TotalBudget};
use cuzk_timeline::{Limits, Outcome, Recorder, Stage, StageClass, Summary};

use crate::common::*;

const STEPS: usize = 3;

#[test]
fn lesson_4_one_compute_lock_a_device() {
    let toys = [Toy::new(), Toy::new()];
    let engine = engine(config(3), toys.iter().map(Toy::spec).collect());
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let jobs: Vec<_> = (0..4).map(|x| engine.submit(circuit, squares(x, STEPS, 5), JobOptions::default())).collect();
    jobs.iter().enumerate().for_each(|(x, job)| expect_squares(job, x as u64, STEPS, 5));
    for (index, toy) in toys.iter().enumerate() {
        let only_on = |name: String, calls: &[Call]| {
            for call in calls {
                let (threads, allowed) = (toy.faults.threads(*call), BTreeSet::from([name.clone()]));
                assert!(threads.is_subset(&allowed), "{call:?}: {threads:?}");
            }
        };
        only_on(format!("cuzk-device-{index}"), &[Call::BufferCreate, Call::Evaluate, Call::Quotient, Call::Msm]);
        only_on(format!("cuzk-prep-{index}"), &[Call::AssignmentCreate, Call::StreamCreate]);
    }
    assert!(toys.iter().any(|t| t.faults.count(Call::Msm) > 0));
}

/// Bytes that are reserved on the device for the key of the circuit, for one partition, and for a further one while it
/// is prepared.
fn sizes() -> (u64, u64, u64) {
    let toy = Toy::new();
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    expect_preloaded(&engine, circuit);
    let on_device = || reserved(&engine.status().unwrap(), Pool::Device(DeviceId(0)));
    let key = on_device();
    toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::Pause);
    let jobs: [_; 2] = std::array::from_fn(|_| {
        let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
        until(&engine, "a partition at the device", |_| {
            let at = engine.job_status(job.id()).unwrap().partitions[0].0;
            at == Place::Prepared(DeviceId(0)) || at == Place::Running(DeviceId(0)) && toy.faults.hanging() == 1
        });
        (job, on_device())
    });
    toy.faults.release();
    jobs.iter().for_each(|(job, _)| expect_squares(job, 1, STEPS, 1));
    (key, jobs[0].1 - key, jobs[1].1 - jobs[0].1)
}

#[test]
fn lesson_4_the_next_is_prepared_while_the_present_computes() {
    let recorder = Arc::new(Recorder::new("lesson 4", Limits::default()));
    let toy = Toy::new();
    let engine: Engine<Bls12> = Engine::start_recorded(config(2), vec![toy.spec()], Arc::clone(&recorder)).unwrap();
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::Pause);
    let present = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    until(&engine, "kernels", |_| toy.faults.hanging() == 1);
    let next = engine.submit(circuit, squares(2, STEPS, 1), JobOptions::default());
    let prepared = Place::Prepared(DeviceId(0));
    until(&engine, "one that is prepared", |_| engine.job_status(next.id()).unwrap().partitions[0].0 == prepared);
    assert_eq!(toy.faults.count(Call::AssignmentCreate), 2, "its assignment is there");
    thread::sleep(Duration::from_millis(5));
    toy.faults.release();
    expect_squares(&present, 1, STEPS, 1);
    expect_squares(&next, 2, STEPS, 1);
    engine.shutdown(Shutdown::Drain);
    let timeline = recorder.snapshot(recorder.now());
    let span = |stage: Stage, job: &JobHandle<Bls12>| {
        let of = |s: &&cuzk_timeline::Span| s.stage == stage && s.partition.is_some_and(|p| p.job.0 == job.id().0);
        timeline.spans.iter().find(of).unwrap()
    };
    let computing = span(Stage::Evaluate, &present).start..span(Stage::Finish, &present).start;
    let upload = span(Stage::Upload, &next);
    assert!(computing.contains(&upload.start) && computing.contains(&upload.end), "{computing:?} {upload:?}");
}

#[test]
fn lesson_4_what_prepares_holds_device_memory_only_when_it_is_admitted() {
    let (key, partition, prepared) = sizes();
    // Room for the key, what one partition takes, and nearly for what the next one takes to be prepared.
    let toy = Toy::with_pools(key + partition + prepared - 1, NOOP_BYTES);
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::Pause);
    let job = engine.submit(circuit, squares(1, STEPS, 2), JobOptions::default());
    until(&engine, "kernels, and one in the queue", |s| toy.faults.hanging() == 1 && s.counts.queued == 1);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(toy.faults.count(Call::AssignmentCreate), 1, "the other one has touched nothing");
    let partitions = engine.job_status(job.id()).unwrap().partitions;
    let waits = partitions.iter().find(|(at, _)| *at == Place::Queued).and_then(|(_, reason)| reason.clone());
    assert!(
        matches!(&waits, Some(Blocked::Memory(refused)) if refused.pool == Pool::Device(DeviceId(0))),
        "it says what it waits for: {waits:?}"
    );
    toy.faults.release();
    expect_squares(&job, 1, STEPS, 2);
    expect_clean(&engine);
}

#[test]
fn lesson_4_what_is_needed_under_the_lock_is_there_once() {
    let (key, partition, prepared) = sizes();
    // Two partitions at the device, with memory to compute for one of them.
    let toy = Toy::with_pools(key + partition + prepared, NOOP_BYTES);
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::Pause);
    let job = engine.submit(circuit, squares(1, STEPS, 6), JobOptions::default());
    let at = |place| engine.job_status(job.id()).unwrap().partitions.iter().filter(|(at, _)| *at == place).count();
    until(&engine, "kernels, and one that is prepared", |_| {
        toy.faults.hanging() == 1 && at(Place::Prepared(DeviceId(0))) == 1
    });
    let status = engine.status().unwrap();
    assert_eq!(reserved(&status, Pool::Device(DeviceId(0))), key + partition + prepared, "all that there is");
    toy.faults.release();
    expect_squares(&job, 1, STEPS, 6);
    let status = engine.status().unwrap();
    assert_eq!((status.totals.out_of_memory, status.totals.failed_attempts), (0, 0), "and it is enough");
    expect_clean(&engine);
}

#[test]
fn lesson_5_no_device_wide_call_on_the_proving_path() {
    let toy = Toy::new();
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    expect_next(&engine, circuit, STEPS);
    let counts = || Call::ALL.iter().map(|c| (*c, toy.faults.count(*c))).collect::<Vec<_>>();
    let before = counts();
    let job = engine.submit(circuit, squares(1, STEPS, 10), JobOptions::default());
    expect_squares(&job, 1, STEPS, 10);
    let called: BTreeSet<_> = counts()
        .into_iter()
        .zip(before)
        .filter(|(after, before)| after.1 > before.1)
        .map(|(after, _)| after.0)
        .collect();
    // A stream's own work and waits. No memory query or trim, no wait of one stream for another, no download into
    // pageable memory.
    let streams_own = BTreeSet::from([
        Call::StreamCreate,
        Call::EventRecord,
        Call::EventQuery,
        Call::EventWait,
        Call::EventElapsed,
        Call::AssignmentCreate,
        Call::BufferCreate,
        Call::Evaluate,
        Call::Quotient,
        Call::Msm,
        Call::PendingWait,
    ]);
    assert!(called.is_subset(&streams_own) && called.contains(&Call::Msm), "{called:?}");
}

#[test]
fn lesson_7_pools_are_sized_and_separate() {
    let toy = Toy::new();
    let mut config = config(3);
    config.scheduler.critical_permits = 0;
    config.threads = ThreadConfig { synthesis: 6, per_synthesis: 2, gpu_threads: 1 };
    let engine = engine(config, vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let (now, most, seen) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<Mutex<BTreeSet<_>>>::default());
    let witness = {
        let (now, most, seen) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&seen));
        move |_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let names = rayon::broadcast(|_| thread::current().name().unwrap_or("?").to_owned());
            seen.lock().unwrap().extend(names.iter().cloned().map(|name| (name, names.len())));
            // Until all workers have met once, on a busy machine, too.
            let end = Instant::now() + Duration::from_secs(20);
            while most.load(Ordering::SeqCst) < 3 && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
            now.fetch_sub(1, Ordering::SeqCst);
            WitnessCs::generate(Squares::new(1, STEPS))
        }
    };
    let job = engine.submit(circuit, Witnesses::new(12, witness), JobOptions::default());
    wait(&job).unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 3, "as many witnesses at a time as there are workers");
    let synthesis = BTreeSet::from([("cuzk-synthesis".to_owned(), 2)]);
    assert_eq!(*seen.lock().unwrap(), synthesis, "what a witness does in parallel stays in its pool of two");
    let threads = |call| toy.faults.threads(call).into_iter().collect::<Vec<_>>();
    assert_eq!(threads(Call::PendingWait), ["cuzk-finish"]);
    assert_eq!(threads(Call::Msm), ["cuzk-device-0"]);
    assert_eq!(threads(Call::BasesWrite), ["cuzk-prep-0"]);
    assert_eq!(threads(Call::StreamCreate), ["cuzk-prep-0"]);
}

#[test]
fn lesson_9_admission_is_by_bytes_before_allocating() {
    let toy = Toy::new();
    let mut config = config(4);
    // The matrices and two witnesses, not four.
    config.memory.total_budget = TotalBudget::Bytes(8_000);
    let engine = engine(config, vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let jobs: Vec<_> = (0..3).map(|x| engine.submit(circuit, squares(x, STEPS, 4), JobOptions::default())).collect();
    jobs.iter().enumerate().for_each(|(x, job)| expect_squares(job, x as u64, STEPS, 4));
    let status = engine.status().unwrap();
    let used = toy.device.memory().unwrap();
    let most = |pool| status.memory.iter().find(|(p, _)| *p == pool).map(|(_, u)| (u.high_water, u.capacity)).unwrap();
    for (pool, peak) in [(Pool::Device(DeviceId(0)), used.device.peak), (Pool::Pinned, used.pinned.peak)] {
        let (reserved, capacity) = most(pool);
        assert!(0 < peak && peak <= reserved && reserved <= capacity, "{pool}: {peak} of {reserved} of {capacity}");
    }
    assert!(most(Pool::Host).0 <= 8_000);

    // Out of memory in spite of that is an event with numbers, again and again, never a crash.
    for _ in 0..2 {
        toy.faults.inject(Trigger::Call(Call::Quotient, 0), Fault::OutOfMemory);
    }
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    let JobError::Failed(FailureCause::Partition { fault: Failure::OutOfMemory(refused), failures: 2, .. }) =
        expect_error(&job)
    else {
        panic!("{job:?}");
    };
    assert_eq!((refused.pool, refused.capacity), (Pool::Device(DeviceId(0)), NOOP_BYTES));
    assert!(refused.requested + refused.in_use > refused.capacity);
    toy.faults.clear();
    expect_next(&engine, circuit, STEPS);
}

#[test]
fn lesson_10_every_stage_of_every_partition_leaves_a_span() {
    let recorder = Arc::new(Recorder::new("lesson 10", Limits::default()));
    let engine: Engine<Bls12> =
        Engine::start_recorded(config(2), vec![DeviceSpec::opened(cpu())], Arc::clone(&recorder)).unwrap();
    let (circuit, _) = real_circuit(40);
    let circuit = engine.register(circuit).unwrap();
    let jobs: Vec<_> = (0..3).map(|x| engine.submit(circuit, squares(x, 40, 2), JobOptions::default())).collect();
    jobs.iter().enumerate().for_each(|(x, job)| expect_squares(job, x as u64, 40, 2));
    engine.shutdown(Shutdown::Drain);
    let timeline = recorder.snapshot(recorder.now());
    let stages = [
        Stage::Witness,
        Stage::Send,
        Stage::DeviceQueue,
        Stage::Upload,
        Stage::LockWait,
        Stage::Evaluate,
        Stage::Quotient,
        Stage::MsmH,
        Stage::MsmL,
        Stage::MsmA,
        Stage::MsmBG1,
        Stage::MsmBG2,
        Stage::Finish,
        Stage::Verify,
    ];
    for job in &jobs {
        for index in 0..2 {
            let of = |stage| {
                let whose = |s: &&cuzk_timeline::Span| {
                    s.partition.is_some_and(|p| p.job.0 == job.id().0 && p.index == index) && s.stage == stage
                };
                timeline.spans.iter().filter(whose).collect::<Vec<_>>()
            };
            let (queued, permit) = (of(Stage::Queue), of(Stage::PermitWait));
            assert!((1..3).contains(&(queued.len() + permit.len())), "{queued:?} {permit:?}");
            let mut last = cuzk_timeline::Nanos::ZERO;
            for stage in stages {
                let spans = of(stage);
                assert_eq!(spans.len(), 1, "{stage:?} of partition {index} of {:?}", job.id());
                assert!(spans[0].start >= last, "{stage:?} begins when the one before ends");
                assert_eq!(spans[0].outcome, Outcome::Ok);
                assert!(
                    spans[0].bytes > 0 || matches!(timeline.stage_class(stage), StageClass::Wait | StageClass::Host)
                );
                last = spans[0].end;
            }
        }
    }
    assert!(timeline.spans.iter().any(|s| s.stage == Stage::KeyLoad && s.bytes > 0));
    assert!(timeline.spans.iter().any(|s| s.stage == Stage::PermitWait), "six partitions, two permits");
    let summary = Summary::of(&timeline);
    let device = &summary.devices[0];
    assert!(0.0 < device.utilization && device.utilization < 1.0, "{device:?}");
    let reasons: BTreeSet<_> = device.idle.iter().map(|i| i.reason.as_str()).collect();
    for reason in ["no work", "no synthesized partition", "transfer"] {
        assert!(reasons.contains(reason), "{reason} is not among {reasons:?}");
    }
    assert!(timeline.pools.iter().all(|p| p.capacity > 0 && !p.samples.is_empty()));
}

#[test]
fn a_failed_attempt_leaves_spans_too() {
    let recorder = Arc::new(Recorder::new("failures", Limits::default()));
    let toy = Toy::new();
    let engine: Engine<Bls12> =
        Engine::start_recorded(EngineConfig::clone(&config(1)), vec![toy.spec()], Arc::clone(&recorder)).unwrap();
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    toy.faults.inject(Trigger::Call(Call::Msm, 2), Fault::Lost);
    let job = engine.submit(circuit, squares(1, STEPS, 1), JobOptions::default());
    expect_squares(&job, 1, STEPS, 1);
    engine.shutdown(Shutdown::Drain);
    let timeline = recorder.snapshot(recorder.now());
    let failed: Vec<_> = timeline.spans.iter().filter(|s| s.outcome == Outcome::Failed).collect();
    assert_eq!(failed.iter().map(|s| s.stage).collect::<Vec<_>>(), [Stage::Kernels]);
    assert!(timeline.gaps.iter().any(|g| g.reason.label() == "quarantined"));
}
