//! Cancelling at every stage, and shutting down with work in flight.

use std::time::Duration;

use cuzk_conformance::faults::{Call, Fault, Trigger};
use cuzk_curve::Bls12;
use cuzk_engine::{Engine, JobError, JobHandle, JobOptions, Shutdown};
use cuzk_scheduler::{CircuitId, DeviceId, Pool, Stage};

use crate::common::*;

const STEPS: usize = 3;

struct Bench {
    toy: Toy,
    engine: Engine<Bls12>,
    circuit: CircuitId,
}

impl Bench {
    fn new() -> Self {
        let toy = Toy::new();
        let engine = engine(config(2), vec![toy.spec()]);
        let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
        Self { toy, engine, circuit }
    }

    fn submit(&self, partitions: u32) -> JobHandle<Bls12> {
        self.engine.submit(self.circuit, squares(1, STEPS, partitions), JobOptions::default())
    }

    /// Starts a job, which stops at a call to the device.
    fn held_at(&self, call: Call) -> JobHandle<Bls12> {
        self.held(Trigger::Call(call, 0), Fault::Hang)
    }

    fn held(&self, trigger: Trigger, fault: Fault) -> JobHandle<Bls12> {
        self.toy.faults.inject(trigger, fault);
        let job = self.submit(1);
        while self.toy.faults.hanging() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        job
    }

    fn expect_cancelled(self, job: &JobHandle<Bls12>) {
        assert_eq!(expect_error(job), JobError::Cancelled);
        expect_next(&self.engine, self.circuit, STEPS);
        self.engine.shutdown(Shutdown::Drain);
        assert_eq!(self.toy.in_use(), (0, 0));
    }
}

#[test]
fn cancel_while_waiting_for_admission() {
    let bench = Bench::new();
    let (gated, open, began) = Gated::new(STEPS, 2);
    let first = bench.engine.submit(bench.circuit, gated, JobOptions::default());
    assert_eq!(began.iter().take(2).count(), 2);
    let job = bench.submit(2);
    job.cancel();
    assert_eq!(expect_error(&job), JobError::Cancelled);
    assert!(first.try_result().is_none());
    (0..2).for_each(|_| open.send(()).unwrap());
    wait(&first).unwrap();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_in_synthesis() {
    let bench = Bench::new();
    let (gated, _open, began) = Gated::new(STEPS, 1);
    let job = bench.engine.submit(bench.circuit, gated, JobOptions::default());
    began.recv().unwrap();
    job.cancel();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_while_the_key_is_loaded() {
    let bench = Bench::new();
    let job = bench.held_at(Call::BasesCreate);
    until(&bench.engine, "a witness", |s| s.counts.synthesizing == 0);
    job.cancel();
    assert_eq!(expect_error(&job), JobError::Cancelled);
    bench.toy.faults.release();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_in_preparation() {
    let bench = Bench::new();
    let job = bench.held_at(Call::StreamCreate);
    job.cancel();
    bench.toy.faults.release();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_while_the_assignment_is_uploaded() {
    let bench = Bench::new();
    let job = bench.held(Trigger::Call(Call::EventWait, 0), Fault::Pause);
    job.cancel();
    assert!(job.wait_timeout(Duration::from_millis(30)).is_none(), "it holds its memory until the upload ends");
    bench.toy.faults.release();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_in_the_kernels() {
    let bench = Bench::new();
    let job = bench.held_at(Call::EventElapsed);
    job.cancel();
    assert!(job.wait_timeout(Duration::from_millis(30)).is_none(), "it holds its memory until the kernels end");
    bench.toy.faults.release();
    bench.expect_cancelled(&job);
}

/// At each operation of a proof: it returns before the next one begins, and all that it had is free.
#[test]
fn cancel_between_the_kernels() {
    for (call, nth, multiplications) in
        [(Call::Evaluate, 0, 0), (Call::Quotient, 0, 0), (Call::Msm, 0, 1), (Call::Msm, 1, 2), (Call::Msm, 3, 4)]
    {
        let bench = Bench::new();
        let key = {
            expect_next(&bench.engine, bench.circuit, STEPS);
            bench.toy.in_use()
        };
        let before = bench.toy.faults.count(Call::Msm);
        let job = bench.held(Trigger::Call(call, nth), Fault::Pause);
        job.cancel();
        assert!(job.wait_timeout(Duration::from_millis(5)).is_none(), "it holds its memory until the kernel ends");
        bench.toy.faults.release();
        assert_eq!(expect_error(&job), JobError::Cancelled);
        assert_eq!(bench.toy.faults.count(Call::Msm) - before, multiplications, "after {call:?} {nth}");
        assert_eq!(bench.toy.in_use(), key, "only the key is on the device");
        let status = bench.engine.status().unwrap();
        assert_eq!(status.totals.failed_attempts, 0, "that is no failure");
        bench.expect_cancelled(&job);
    }
}

#[test]
fn cancel_before_the_compute_lock() {
    let bench = Bench::new();
    let computing = bench.held_at(Call::Quotient);
    let before = bench.toy.in_use().0;
    let job = bench.submit(1);
    let prepared = Stage::Prepared(DeviceId(0));
    until(&bench.engine, "one that is prepared", |_| {
        bench.engine.job_status(job.id()).is_some_and(|s| s.partitions[0].0 == prepared)
    });
    let after = bench.toy.in_use().0;
    let status = bench.engine.status().unwrap();
    assert!(
        before < after && after <= reserved(&status, Pool::Device(DeviceId(0))),
        "its assignment: {before} {after}"
    );
    job.cancel();
    assert_eq!(expect_error(&job), JobError::Cancelled, "without waiting for the other one's kernels");
    assert_eq!(bench.toy.in_use().0, before, "its assignment is gone");
    computing.cancel();
    bench.toy.faults.release();
    bench.expect_cancelled(&computing);
}

#[test]
fn cancel_while_it_is_finished() {
    let bench = Bench::new();
    let job = bench.held_at(Call::PendingWait);
    job.cancel();
    bench.toy.faults.release();
    bench.expect_cancelled(&job);
}

#[test]
fn cancel_what_has_ended() {
    let bench = Bench::new();
    let job = bench.submit(1);
    expect_squares(&job, 1, STEPS, 1);
    job.cancel();
    expect_squares(&job, 1, STEPS, 1);
    expect_next(&bench.engine, bench.circuit, STEPS);
}

#[test]
fn shutdown_with_work_in_flight_drains() {
    let bench = Bench::new();
    let jobs: Vec<_> = (0..4).map(|_| bench.submit(3)).collect();
    bench.engine.shutdown(Shutdown::Drain);
    for job in &jobs {
        assert!(job.try_result().is_some(), "all has ended when the shutdown returns");
        expect_squares(job, 1, STEPS, 3);
    }
    assert_eq!(bench.toy.in_use(), (0, 0));
}

#[test]
fn shutdown_with_work_in_flight_cancels() {
    let bench = Bench::new();
    let (gated, _open, began) = Gated::new(STEPS, 2);
    let jobs = [bench.engine.submit(bench.circuit, gated, JobOptions::default()), bench.submit(3)];
    began.recv().unwrap();
    bench.engine.shutdown(Shutdown::Cancel);
    for job in &jobs {
        assert_eq!(job.try_result().map(|r| r.map(|p| p.len())), Some(Err(JobError::Cancelled)));
    }
    assert_eq!(bench.toy.in_use(), (0, 0));
}

#[test]
fn an_engine_that_is_dropped_cancels_and_says_so() {
    let bench = Bench::new();
    let (gated, _open, began) = Gated::new(STEPS, 1);
    let job = bench.engine.submit(bench.circuit, gated, JobOptions::default());
    began.recv().unwrap();
    drop(bench.engine);
    assert_eq!(expect_error(&job), JobError::Cancelled);
    // Nobody listens any more.
    job.cancel();
}
