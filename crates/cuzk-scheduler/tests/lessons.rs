//! The lessons of the pipeline's history that concern decisions, each as a test with its name. (The others are about
//! threads, buffers and device calls, which are not here.)

mod common;

use std::time::Duration;

use common::*;
use cuzk_scheduler::*;

const DEVICE: DeviceId = DeviceId(0);

/// One witness after the other is made while the device takes nothing but the first few.
fn pile_up(config: Config) -> Engine {
    let mut engine = Engine::with(config, machine(10_000, 1), profile("p", 16, 4, 40));
    for _ in 0..20 {
        engine.submit(0, 10, Priority::Normal);
    }
    engine.finish_all(&["synthesis", "send", "prepare"]);
    engine
}

#[test]
fn lesson_1_a_permit_is_held_through_the_send_so_what_is_in_flight_is_bounded() {
    for workers in [1, 2, 5, 12] {
        let engine = pile_up(config(workers));
        let counts = engine.scheduler.counts();
        // The device is stuck: its queue is full, and every permit is held by a witness that waits for a place.
        assert_eq!((counts.places, counts.synthesized, counts.synthesizing), (workers, workers, 0));
        let at_device = 2;
        assert_eq!(engine.in_use(Pool::Host), 16 * (2 * workers as u64 + at_device));
        assert_eq!(engine.scheduler.idle_reason(DEVICE), None, "the stuck device computes, as far as one can know");
    }
}

#[test]
fn lesson_1_where_permits_last_until_proved_no_more_than_the_permits_are_synthesized_and_unproved() {
    for workers in [1, 2, 5, 12] {
        let engine = pile_up(Config { permit: PermitScope::Proved, ..config(workers) });
        assert_eq!(engine.in_use(Pool::Host), 16 * workers as u64);
    }
}

#[test]
fn lesson_1_without_it_only_the_budget_stops_the_pile() {
    let engine = pile_up(Config { permit: PermitScope::Synthesis, ..config(2) });
    assert_eq!(engine.in_use(Pool::Host), 16 * 200, "all there is, with two workers");
}

#[test]
fn lesson_2_a_finished_synthesis_does_not_block_on_the_send() {
    // The device is busy, its queue is empty, and all workers finish at the same time.
    let burst = |workers: usize, lookahead, capacity_scaling| {
        let ablation = Ablation { capacity_scaling, ..Ablation::default() };
        let config = Config { lookahead, ablation, ..config(workers) };
        let mut engine = Engine::with(config, machine(10_000, 1), profile("p", 16, 4, 40));
        engine.submit(0, 2, Priority::Normal);
        engine.finish_all(&["synthesis", "send", "prepare"]);
        engine.submit(0, 100, Priority::Normal);
        assert_eq!(engine.at("synthesis").len(), workers);
        for _ in 0..workers {
            engine.finish_a("synthesis");
        }
        let counts = engine.scheduler.counts();
        (counts.queue_capacity, counts.synthesized)
    };
    for (workers, lookahead) in [(1, 1), (7, 1), (3, 9)] {
        assert_eq!(burst(workers, lookahead, true), (workers.max(lookahead), 0));
    }
    assert_eq!(burst(7, 1, false), (1, 6), "without it, six of seven hold their memory and their permit");
}

#[test]
fn lesson_3_evaluation_vectors_are_freed_when_prove_start_returns() {
    let mut engine = Engine::with(config(1), machine(100, 1), profile("p", 16, 4, 40));
    engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    assert_eq!((engine.in_use(Pool::Host), engine.in_use(Pool::Device(DEVICE))), (16, 40));
    engine.finish_all(&["kernels"]);
    assert_eq!((engine.in_use(Pool::Host), engine.in_use(Pool::Device(DEVICE))), (4, 0), "before prove_finish");
    engine.finish_all(&["finish"]);
    assert_eq!(engine.in_use(Pool::Host), 0);
}

#[test]
fn lesson_4_one_compute_lock_and_no_device_memory_that_the_budget_has_not_admitted() {
    // A partition needs half of its bytes when it is prepared and the rest under the lock, which one holds at a time.
    // Room for two partitions at the device by workers, for three by workers and only two by memory, for one by memory.
    for (gpu_workers_per_device, device_bytes, most) in [(2, 30, 2), (3, 60, 2), (2, 80, 1)] {
        let config = Config { gpu_workers_per_device, ..config(6) };
        let mut engine = Engine::with(config, machine(1000, 1), profile("p", 10, 0, device_bytes));
        engine.submit(0, 6, Priority::Normal);
        engine.finish_all(&["synthesis", "send", "prepare"]);
        assert_eq!(engine.at("kernels").len(), 1, "one holder of the lock");
        let in_use = device_bytes / 2 * (most + 1);
        assert_eq!(engine.in_use(Pool::Device(DEVICE)), in_use);
        let queued = PartitionId { job: JobId(0), index: 5 };
        match engine.scheduler.waiting_reason(queued) {
            Some(Blocked::Workers) => assert_eq!(most as usize, gpu_workers_per_device),
            Some(Blocked::Memory(refused)) => {
                let (pool, requested) = (Pool::Device(DEVICE), device_bytes / 2);
                let numbers = OutOfMemory { pool, requested, in_use, held_back: 0, capacity: 100 };
                assert_eq!(refused, numbers);
            }
            other => panic!("{other:?}"),
        }
        engine.drain();
    }
}

#[test]
fn lesson_4_what_is_needed_under_the_lock_is_reserved_once_for_all_who_wait_for_it() {
    let small = profile("small", 10, 0, 20);
    let mut engine = Engine::with(Config { gpu_workers_per_device: 3, ..config(6) }, machine(1000, 1), small);
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: profile("large", 10, 0, 60) });
    engine.submit(0, 2, Priority::Normal);
    engine.submit(1, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    // 10, 10 and 30 of their own, and the 30 that the largest takes when it gets the lock: nobody has to wait for it.
    assert_eq!(engine.in_use(Pool::Device(DEVICE)), 80);
    engine.finish_a("kernels");
    engine.finish_a("kernels");
    assert_eq!(engine.in_use(Pool::Device(DEVICE)), 60, "the large one computes");
    engine.submit(0, 2, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    assert_eq!(engine.in_use(Pool::Device(DEVICE)), 80);
    engine.finish_a("kernels");
    assert_eq!(engine.in_use(Pool::Device(DEVICE)), 30, "what only the large one needed is given back");
    engine.drain();
    assert_eq!(engine.in_use(Pool::Device(DEVICE)), 0);
}

#[test]
fn lesson_8_the_order_is_strict_so_what_is_nearly_done_is_not_starved() {
    let mut engine = Engine::with(config(1), machine(1000, 1), profile("p", 10, 0, 10));
    let jobs = [Priority::Normal, Priority::Normal, Priority::Low, Priority::High].map(|p| engine.submit(0, 3, p));
    engine.drain();
    let synthesized: Vec<_> = engine
        .log
        .iter()
        .flat_map(|(_, _, actions)| actions.iter().flatten())
        .filter_map(|a| match a {
            Action::StartSynthesis { ticket } => Some((ticket.partition.job, ticket.partition.index)),
            _ => None,
        })
        .collect();
    let job = |i: usize| (0..3).map(move |index| (jobs[i], index));
    // The first partition was admitted when nothing else was there.
    let expected = job(0).take(1).chain(job(3)).chain(job(0).skip(1)).chain(job(1)).chain(job(2));
    assert_eq!(synthesized, expected.collect::<Vec<_>>());
}

#[test]
fn lesson_8_the_queue_has_the_same_order_whatever_the_order_of_the_witnesses() {
    let config = Config { gpu_workers_per_device: 1, lookahead: 8, ..config(4) };
    let mut engine = Engine::with(config, machine(1000, 1), profile("p", 10, 0, 10));
    engine.submit(0, 1, Priority::High);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    let [late, early] = [Priority::Normal, Priority::High].map(|p| engine.submit(0, 2, p));
    // Witnesses come in the opposite order.
    while let Some(ticket) = engine.at("synthesis").last().copied() {
        let index = engine.owed.iter().position(|o| *o == Owed::Stage(ticket, "synthesis")).unwrap();
        engine.answer(index);
    }
    engine.finish_all(&["send"]);
    let mut order = Vec::new();
    while let Some(ticket) = engine.finish_a("kernels") {
        order.push((ticket.partition.job, ticket.partition.index));
        engine.finish_all(&["prepare"]);
    }
    assert_eq!(order[1..], [(early, 0), (early, 1), (late, 0), (late, 1)]);
}

#[test]
fn lesson_9_admission_is_by_bytes_in_every_pool_before_anything_is_allocated() {
    let mut profile = profile("p", 30, 10, 40);
    profile.partition.synthesized.pinned = 20;
    let mut engine = Engine::with(config(8), machine(100, 1), profile);
    engine.submit(0, 8, Priority::Normal);
    // Three fit the host's 100 bytes; their pinned buffers are reserved with them, though they are needed only later.
    assert_eq!(engine.at("synthesis").len(), 3);
    assert_eq!((engine.in_use(Pool::Host), engine.in_use(Pool::Pinned)), (90, 60));
    let refused = OutOfMemory { pool: Pool::Host, requested: 30, in_use: 90, held_back: 0, capacity: 100 };
    let waiting = PartitionId { job: JobId(0), index: 3 };
    assert_eq!(engine.scheduler.waiting_reason(waiting), Some(Blocked::Memory(refused.clone())));
    let reason = IdleReason::NoSynthesizedPartition { synthesizing: 3, admission: Some(Blocked::Memory(refused)) };
    assert_eq!(engine.scheduler.idle_reason(DEVICE), Some(reason));
    engine.drain();
    assert_eq!(engine.end_of(JobId(0)), Some(&End::Completed));
}

#[test]
fn lesson_9_what_can_never_fit_is_refused_with_the_numbers_of_each_pool() {
    let mut large = profile("p", 90, 10, 80);
    large.key = KeyBytes { host: Some(20), pinned: Some(120), device: Some(30) };
    let mut engine = Engine::with(config(8), machine(100, 2), large);
    let job = engine.submit(0, 1, Priority::Normal);
    let shortage = |pool, requested| Shortage { pool, requested, capacity: 100 };
    let shortages = vec![
        shortage(Pool::Host, 110),
        shortage(Pool::Pinned, 120),
        shortage(Pool::Device(DeviceId(0)), 110),
        shortage(Pool::Device(DeviceId(1)), 110),
    ];
    assert_eq!(engine.end_of(job), Some(&End::Refused(Refusal::TooLarge { shortages })));
}

#[test]
fn lesson_9_out_of_memory_is_an_event_not_a_crash() {
    let oom = || OutOfMemory { pool: Pool::Device(DEVICE), requested: 40, in_use: 70, held_back: 0, capacity: 100 };
    let mut engine = Engine::with(config(4), machine(1000, 1), profile("p", 10, 0, 40));
    let job = engine.submit(0, 3, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    assert_eq!(engine.at("prepare").len(), 2);
    let failed = engine.fail_a("prepare", Fault::OutOfMemory(oom()));
    // It is repeated with nothing beside it: the other one has to leave first, and the third does not go ahead.
    engine.finish_all(&["prepare"]);
    assert_eq!(engine.at("kernels").len(), 1);
    assert_eq!(engine.at("prepare"), []);
    assert_eq!(engine.scheduler.waiting_reason(failed.partition), Some(Blocked::Alone));
    engine.finish_all(&["kernels"]);
    let again = engine.at("prepare");
    assert_eq!(again, [Ticket { attempt: 1, ..failed }]);
    // Again, on the only device that there is: now the job fails, with the numbers.
    engine.fail_a("prepare", Fault::OutOfMemory(oom()));
    engine.drain();
    let cause = FailureCause::Partition {
        partition: failed.partition,
        device: Some(DEVICE),
        failures: 2,
        fault: Fault::OutOfMemory(oom()),
    };
    assert_eq!(engine.end_of(job), Some(&End::Failed(cause)));
}

#[test]
fn lesson_10_every_gap_of_a_device_has_its_reason() {
    let mut with_key = profile("p", 40, 0, 60);
    with_key.key.device = Some(30);
    let mut engine = Engine::with(config(4), machine(100, 1), with_key);
    let reason = |engine: &Engine| engine.scheduler.idle_reason(DEVICE);
    let label = |engine: &Engine| reason(engine).map(|r| r.label());
    assert_eq!(reason(&engine), Some(IdleReason::NoWork));

    engine.submit(0, 3, Priority::Normal);
    assert_eq!(label(&engine), Some("no synthesized partition"));
    engine.finish_all(&["synthesis"]);
    let first = Ticket::first(PartitionId { job: JobId(0), index: 0 });
    assert_eq!(reason(&engine), Some(IdleReason::Transfer { ticket: first }), "into the queue");
    engine.finish_all(&["send"]);
    let key_load = IdleReason::KeyLoad { circuit: CircuitId(0), pool: Pool::Device(DEVICE) };
    assert_eq!(reason(&engine), Some(key_load));
    engine.move_keys();
    assert_eq!(reason(&engine), Some(IdleReason::Transfer { ticket: first }), "to the device");
    engine.finish_all(&["prepare"]);
    assert_eq!(reason(&engine), None, "it computes");

    engine.lose(DEVICE);
    assert_eq!(reason(&engine), Some(IdleReason::Quarantined { since: SECOND, failed_tests: 0 }));
    engine.drain();
    assert_eq!(engine.end_of(JobId(0)), Some(&End::Completed));
    assert_eq!(label(&engine), Some("no work"));
}

#[test]
fn lesson_10_memory_and_the_lock_are_reasons_too() {
    // The partition holds device memory until it is finished: the next one waits for that.
    let mut holding = profile("p", 10, 5, 60);
    holding.partition.device_finishing = 50;
    let mut engine = Engine::with(config(4), machine(1000, 1), holding);
    engine.submit(0, 2, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare", "kernels"]);
    let refused = OutOfMemory { pool: Pool::Device(DEVICE), requested: 60, in_use: 50, held_back: 0, capacity: 100 };
    assert_eq!(engine.scheduler.idle_reason(DEVICE), Some(IdleReason::Memory(refused)));
    engine.drain();

    // The lock is kept for a CRITICAL partition that is nearly there.
    let mut engine = Engine::with(config(4), machine(1000, 1), profile("p", 10, 0, 20));
    engine.submit(0, 2, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    let urgent = engine.submit(0, 1, Priority::Critical);
    engine.finish_all(&["synthesis", "send"]);
    engine.finish_a("kernels");
    let kept_for = Ticket::first(PartitionId { job: urgent, index: 0 });
    assert_eq!(engine.scheduler.idle_reason(DEVICE), Some(IdleReason::Lock { kept_for }));
    engine.finish_a("prepare");
    assert_eq!(engine.at("kernels"), [kept_for]);
    engine.drain();
}

#[test]
fn a_deadline_is_a_wakeup_and_then_a_failure() {
    let mut engine = Engine::with(config(1), machine(100, 1), profile("p", 10, 0, 20));
    let deadline = SECOND + Duration::from_secs(9);
    let job = engine.submit_by(0, 2, Priority::Normal, Some(deadline));
    assert_eq!(engine.scheduler.next_wakeup(), Some(deadline));
    engine.now = deadline;
    let actions = engine.apply(Event::Tick);
    assert_eq!(actions, [Action::AbortPartition { ticket: Ticket::first(PartitionId { job, index: 0 }) }]);
    engine.drain();
    assert_eq!(engine.end_of(job), Some(&End::Failed(FailureCause::Deadline { deadline, now: deadline })));
}
