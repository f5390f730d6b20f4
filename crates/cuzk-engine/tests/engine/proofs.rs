//! Proofs on the CPU backend, and the ways to wait for them.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use blstrs::Scalar;
use cuzk_curve::Bls12;
use cuzk_engine::{
    CircuitSource, DeviceSpec, JobError, JobOptions, LoadedCircuit, ProgressStage, Shutdown, SourceError,
    WitnessContext, Witnesses, Workload,
};
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, PreparedVerifyingKey, ProveError, Randomness, prove_start, setup_deterministic,
};
use cuzk_r1cs::{Assignment, WitnessCs, WitnessError};
use cuzk_scheduler::{CircuitId, EventError, FailureCause, Pool, Priority, Refusal};

use crate::common::*;

#[test]
fn many_jobs_of_two_circuits_are_proved() {
    let engine = engine(config(2), vec![DeviceSpec::opened(cpu())]);
    let (small, small_vk) = real_circuit(3);
    let (large, large_vk) = real_circuit(40);
    let (small, large) = (engine.register(small).unwrap(), engine.register(large).unwrap());
    let jobs: Vec<_> = (0..6)
        .map(|i| {
            let (circuit, steps) = if i % 2 == 0 { (small, 3) } else { (large, 40) };
            (i, steps, engine.submit(circuit, squares(i, steps, 3), JobOptions::default()))
        })
        .collect();
    for (x, steps, job) in &jobs {
        expect_squares(job, *x, *steps, 3);
        let vk = PreparedVerifyingKey::new(if *steps == 3 { &small_vk } else { &large_vk }).unwrap();
        for finished in wait(job).unwrap().iter() {
            vk.verify(&finished.proof, &finished.inputs).unwrap();
        }
    }
    expect_clean(&engine);
    engine.shutdown(Shutdown::Drain);
}

/// Wakes a thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

#[test]
fn a_handle_is_waited_for_in_every_way() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    let (gated, open, _) = Gated::new(3, 1);
    let job = engine.submit(circuit, gated, JobOptions::default());
    assert!(job.try_result().is_none());
    assert!(job.wait_timeout(Duration::from_millis(5)).is_none());
    let (sender, receiver) = mpsc::channel();
    let early = sender.clone();
    job.on_end(move |result| early.send(result.map(|p| p.len())).unwrap());
    let awaited = std::thread::spawn({
        let job = job.clone();
        move || block_on(job).unwrap().len()
    });
    open.send(()).unwrap();
    assert_eq!(job.wait().unwrap().len(), 1);
    assert_eq!(awaited.join().unwrap(), 1);
    assert_eq!(receiver.recv().unwrap(), Ok(1));
    job.on_end(move |result| sender.send(result.map(|p| p.len())).unwrap());
    assert_eq!(receiver.recv().unwrap(), Ok(1));
}

#[test]
fn progress_is_told_for_each_partition() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    let news = engine.subscribe(100);
    // One that does not read slows nobody down.
    let _idle = engine.subscribe(0);
    let job = engine.submit(circuit, squares(1, 3, 2), JobOptions::default());
    job.wait().unwrap();
    engine.shutdown(Shutdown::Drain);
    let all: Vec<_> = news.iter().collect();
    for index in 0..2 {
        let of = all.iter().filter(|p| p.ticket.partition.index == index);
        let stages: Vec<_> = of.map(|p| p.stage.clone()).collect();
        let device = cuzk_scheduler::DeviceId(0);
        let expected = [
            ProgressStage::Synthesizing,
            ProgressStage::Synthesized,
            ProgressStage::Preparing(device),
            ProgressStage::Proving(device),
            ProgressStage::Finishing(device),
            ProgressStage::Proved,
        ];
        assert_eq!(stages, expected);
    }
}

#[test]
fn what_cannot_be_done_is_said_with_its_reason() {
    let toy = Toy::with_bytes(1 << 19);
    let mut config = config(1);
    config.memory.total_budget = cuzk_scheduler::TotalBudget::Bytes(1 << 15);
    let engine = engine(config, vec![toy.spec()]);
    let options = JobOptions::default();
    let unknown = engine.submit(CircuitId(77), squares(1, 3, 1), options);
    assert_eq!(expect_error(&unknown), JobError::Invalid(EventError::UnknownCircuit { circuit: CircuitId(77) }));
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    let endless = engine.submit(circuit, squares(1, 3, u32::MAX), options);
    assert_eq!(expect_error(&endless), JobError::TooManyPartitions { given: u32::MAX, limit: 1 << 16 });
    let empty = engine.submit(circuit, squares(1, 3, 0), options);
    assert!(matches!(expect_error(&empty), JobError::Invalid(EventError::NoPartitions { .. })));
    let too_large = engine.register(hollow_circuit(400)).unwrap();
    let refused = engine.submit(too_large, squares(1, 400, 1), options);
    assert!(matches!(expect_error(&refused), JobError::Refused(Refusal::TooLarge { .. })));
    let misfit = engine.register(hollow_circuit(100_000)).unwrap_err().to_string();
    assert!(misfit.contains("noop-0") && misfit.contains("MiB"), "{misfit}");
    let r1cs = record(4);
    let foreign = engine.register(cuzk_engine::LoadedCircuit::new("mixed up", r1cs, hollow_key(&record(5))));
    assert!(foreign.unwrap_err().to_string().contains("another circuit's key"));
    // A witness of another circuit.
    let job = engine.submit(circuit, squares(1, 9, 1), options);
    let cause = expect_error(&job).to_string();
    assert!(cause.contains("variables"), "{cause}");
    expect_next(&engine, circuit, 3);
}

#[test]
fn a_deadline_that_passes_fails_the_job_and_frees_all() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    let (gated, _open, _) = Gated::new(3, 2);
    let options = JobOptions { deadline: Some(Duration::from_millis(20)), ..JobOptions::default() };
    let job = engine.submit(circuit, gated, options);
    assert!(matches!(expect_error(&job), JobError::Failed(FailureCause::Deadline { .. })));
    expect_next(&engine, circuit, 3);
}

#[test]
fn lesson_8_strict_order_a_critical_job_goes_first() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    let (gated, open, began) = Gated::new(3, 1);
    let first = engine.submit(circuit, gated, JobOptions { priority: Priority::Critical, ..JobOptions::default() });
    began.recv().unwrap();
    let (gated, open_second, began_second) = Gated::new(3, 1);
    let _second = engine.submit(circuit, gated, JobOptions { priority: Priority::Critical, ..JobOptions::default() });
    began_second.recv().unwrap();
    // Both permits are taken: these three wait.
    let (sender, order) = mpsc::channel();
    for (name, priority) in [("low", Priority::Low), ("normal", Priority::Normal), ("critical", Priority::Critical)] {
        let sender = sender.clone();
        let witness = move |_| {
            sender.send(name).unwrap();
            WitnessCs::generate(Squares::new(1, 3))
        };
        let _job = engine.submit(circuit, Witnesses::new(1, witness), JobOptions { priority, ..JobOptions::default() });
    }
    until(&engine, "five jobs", |s| s.counts.jobs == 5);
    open.send(()).unwrap();
    open_second.send(()).unwrap();
    wait(&first).unwrap();
    drop(sender);
    assert_eq!(order.iter().collect::<Vec<_>>(), ["critical", "normal", "low"]);
}

#[test]
fn keys_are_preloaded_and_evicted() {
    let toy = Toy::new();
    let engine = engine(config(1), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(3)).unwrap();
    expect_preloaded(&engine, circuit);
    assert!(toy.in_use().0 > 0);
    engine.evict(circuit).wait().unwrap();
    assert!(engine.status().unwrap().keys.is_empty());
    assert_eq!(toy.in_use(), (0, 0));
    expect_next(&engine, circuit, 3);
}

#[test]
fn two_keys_that_do_not_fit_together_take_turns() {
    let steps = [90, 100];
    let sizes = steps.map(|steps| {
        let toy = Toy::new();
        let engine = engine(config(1), vec![toy.spec()]);
        expect_preloaded(&engine, engine.register(hollow_circuit(steps)).unwrap());
        toy.in_use().0
    });
    // Room for one of the two keys and a partition, which is smaller than a key.
    let toy = Toy::with_bytes(sizes[0] + sizes[1] - 1);
    let mut config = config(1);
    config.scheduler.eviction_min_idle = Duration::ZERO;
    let engine = engine(config, vec![toy.spec()]);
    let [small, large] = steps.map(|steps| engine.register(hollow_circuit(steps)).unwrap());
    for round in 0..3 {
        for (circuit, steps) in [(small, 90), (large, 100)] {
            let job = engine.submit(circuit, squares(round, steps, 2), JobOptions::default());
            expect_squares(&job, round, steps, 2);
        }
    }
    expect_clean(&engine);
    let keys = engine.status().unwrap().keys;
    let on_device = keys.iter().filter(|k| matches!(k.pool, Pool::Device(_))).count();
    assert_eq!(on_device, 1);
}

#[test]
fn streamed_keys_take_turns_in_pinned_memory() {
    const MIB: u64 = 1 << 20;
    let steps = [140_000, 150_000];
    let circuits = steps.map(SharedCircuit::hollow);
    let mut config = config(1);
    config.memory.total_budget = cuzk_scheduler::TotalBudget::Bytes(1 << 30);
    config.scheduler.eviction_min_idle = Duration::ZERO;
    let whole = {
        let toy = Toy::with_bytes(1 << 30);
        let engine = engine(config.clone(), vec![toy.spec()]);
        expect_preloaded(&engine, engine.register(circuits[0].clone()).unwrap());
        toy.in_use().0
    };
    // Less than a whole key and the vectors of a proof need; and no room for what two keys stream.
    let toy = Toy::with_pools(whole + 10 * MIB, 40 * MIB);
    let engine = engine(config, vec![toy.spec()]);
    let ids = circuits.map(|circuit| engine.register(circuit).unwrap());
    for round in 0..2 {
        for (circuit, steps) in ids.into_iter().zip(steps) {
            let job = engine.submit(circuit, squares(round, steps, 1), JobOptions::default());
            expect_squares(&job, round, steps, 1);
            expect_clean(&engine);
            let status = engine.status().unwrap();
            let pinned: Vec<_> = status.keys.iter().filter(|k| k.pool == Pool::Pinned).collect();
            assert_eq!(pinned.iter().map(|k| k.circuit).collect::<Vec<_>>(), [circuit]);
            assert_eq!(toy.in_use().1, pinned[0].bytes, "what is reserved is what is there");
        }
    }
    engine.shutdown(Shutdown::Drain);
    assert_eq!(toy.in_use(), (0, 0));
}

/// Squares with r and s given.
struct Reproducible {
    x: u64,
}

impl Reproducible {
    const STEPS: usize = 20;

    fn witness(&self, partition: u32) -> Result<Assignment<Scalar>, WitnessError> {
        WitnessCs::generate(Squares::new(self.x + u64::from(partition), Self::STEPS))
    }

    fn r_and_s(&self, partition: u32) -> Randomness<Scalar> {
        Randomness::insecure(Scalar::from(self.x + 17), Scalar::from(u64::from(partition) + 5))
    }
}

impl Workload<Bls12> for Reproducible {
    fn partitions(&self) -> u32 {
        3
    }

    fn witness(&self, k: u32, _: &mut WitnessContext<Scalar>) -> Result<Assignment<Scalar>, SourceError> {
        Ok(self.witness(k)?)
    }

    fn randomness(&self, partition: u32) -> Result<Randomness<Scalar>, ProveError> {
        Ok(self.r_and_s(partition))
    }
}

#[test]
fn the_bytes_are_those_of_one_proof_after_the_other() {
    let r1cs = record(Reproducible::STEPS);
    let device = cpu();
    let key = setup_deterministic::<Bls12>(&device.stream().unwrap(), &r1cs, [9; 32]).unwrap();
    let (on_device, device_key) =
        (DeviceCircuit::load(&device, &r1cs).unwrap(), DeviceKey::load(&device, &key).unwrap());
    let boxed = |x| -> Arc<dyn Workload<Bls12>> { Arc::new(Reproducible { x }) };
    let one_by_one = |job: &Reproducible, k| {
        let (stream, witness) = (device.stream().unwrap(), job.witness(k).unwrap());
        prove_start(&stream, &on_device, &device_key, &witness, job.r_and_s(k)).unwrap().finish().unwrap().proof
    };
    let engine = engine(config(3), vec![DeviceSpec::opened(cpu()), DeviceSpec::opened(cpu())]);
    let source: Arc<dyn CircuitSource<Bls12>> = Arc::new(LoadedCircuit::new("reproducible", r1cs, key.clone()));
    let circuit = engine.register(source).unwrap();
    let jobs: Vec<_> = (0..5).map(|x| (x, engine.submit(circuit, boxed(x), JobOptions::default()))).collect();
    for (x, job) in jobs {
        for (k, finished) in wait(&job).unwrap().iter().enumerate() {
            let alone = one_by_one(&Reproducible { x }, k as u32);
            assert_eq!(finished.proof.to_bytes(), alone.to_bytes(), "partition {k} of job {x}");
        }
    }
}
