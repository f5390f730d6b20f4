//! Priorities, fairness, keys, several devices, faults, and the number of workers.

mod common;

use std::time::Duration;

use common::*;
use cuzk_scheduler::*;

const FIRST: DeviceId = DeviceId(0);
const SECOND_DEVICE: DeviceId = DeviceId(1);

fn device_fault() -> Fault {
    Fault::Device { cause: "illegal address".into() }
}

/// A device with everything full: two partitions at the device, the queue and all permits taken.
fn full(config: Config, resources: Resources, profile: CircuitProfile) -> Engine {
    let mut engine = Engine::with(config, resources, profile);
    engine.submit(0, 50, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    engine
}

#[test]
fn a_critical_job_starts_within_one_kernel_even_when_everything_is_full() {
    let critical_reserve = CriticalReserve { host: 10, pinned: 0, device: 20 };
    let config = Config { critical_reserve, ..config(3) };
    // Memory is full as well: what is left are the reserves. Two partitions at the device with 30 bytes each, and 20 for
    // the one that has the lock.
    let mut large = profile("p", 10, 10, 50);
    large.partition.device_prepared = 30;
    let mut engine = full(config, machine(90, 1), large);
    assert_eq!(engine.scheduler.counts().synthesized, 3);
    assert_eq!((engine.in_use(Pool::Host), engine.in_use(Pool::Device(FIRST))), (80, 80));
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: profile("w", 5, 5, 40) });
    let urgent = engine.submit(1, 1, Priority::Critical);
    let ticket = Ticket::first(PartitionId { job: urgent, index: 0 });
    assert_eq!(engine.at("synthesis"), [ticket], "beyond the permits, from the reserve");
    engine.finish_all(&["synthesis", "send", "prepare"]);
    assert_eq!(engine.at("kernels").len(), 1, "it waits for the kernel that runs");
    assert_eq!(engine.in_use(Pool::Device(FIRST)), 100);
    engine.finish_a("kernels");
    assert_eq!(engine.at("kernels"), [ticket], "and for nothing else");
    engine.drain();
}

#[test]
fn a_stream_of_critical_jobs_does_not_starve_what_holds_a_permit() {
    let max_overtakes = 3;
    let mut engine = full(Config { max_overtakes, ..config(2) }, machine(1000, 1), profile("p", 10, 0, 10));
    let mut started: Vec<bool> = Vec::new();
    for _ in 0..40 {
        engine.submit(0, 1, Priority::Critical);
        engine.finish_all(&["synthesis", "send", "prepare"]);
        let kernel = engine.finish_a("kernels").unwrap();
        started.push(kernel.partition.job == JobId(0));
    }
    let normal = started.iter().filter(|normal| **normal).count();
    assert!((5..=20).contains(&normal), "{started:?}");
    // But never two of them in a row while a CRITICAL one waits.
    assert!(started[1..].windows(2).all(|w| w != [true, true]), "{started:?}");
    engine.drain();
}

#[test]
fn who_was_overtaken_too_often_goes_before_a_critical_one_only_after_another_critical_one() {
    // Zero: whoever waits is due at once.
    let mut engine = full(Config { max_overtakes: 0, ..config(2) }, machine(1000, 1), profile("p", 10, 0, 10));
    let kernel = |engine: &mut Engine| {
        engine.finish_all(&["synthesis", "send", "prepare"]);
        engine.finish_a("kernels");
        engine.finish_all(&["prepare"]);
        engine.at("kernels")[0].partition.job
    };
    let urgent = [0, 1].map(|_| engine.submit(0, 1, Priority::Critical));
    let order = [0, 1, 2, 3].map(|_| kernel(&mut engine));
    assert_eq!(order, [urgent[0], JobId(0), urgent[1], JobId(0)]);
    engine.drain();
}

#[test]
fn a_stream_of_high_jobs_does_not_starve_what_holds_a_permit() {
    let mut engine = full(Config { max_overtakes: 3, ..config(2) }, machine(1000, 1), profile("p", 10, 0, 10));
    let in_flight = |engine: &Engine| {
        let stages = engine.scheduler.stages(JobId(0)).unwrap();
        stages.iter().filter(|s| !matches!(s, Stage::Pending | Stage::Done)).count()
    };
    assert!(in_flight(&engine) > 4);
    let mut rounds = 0;
    while in_flight(&engine) > 0 {
        rounds += 1;
        assert!(rounds < 60, "{:?}", engine.scheduler.stages(JobId(0)));
        engine.submit(0, 1, Priority::High);
        engine.finish_all(&["synthesis", "send", "prepare"]);
        engine.finish_a("kernels");
        engine.finish_all(&["finish"]);
    }
    engine.drain();
}

#[test]
fn jobs_of_one_circuit_are_grouped_inside_a_priority_but_not_for_ever() {
    let config = Config { sort_by_type: true, max_overtakes: 2, ..config(1) };
    let mut engine = Engine::with(config, machine(1000, 1), profile("a", 10, 0, 10));
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: profile("b", 10, 0, 10) });
    let circuits = [0, 1, 0, 0, 0, 0];
    let jobs = circuits.map(|c| engine.submit(c, 1, Priority::Normal));
    let urgent = engine.submit(1, 1, Priority::High);
    let mut order = Vec::new();
    while let Some(ticket) = engine.finish_a("synthesis") {
        order.push(ticket.partition.job);
        engine.finish_all(&["send", "prepare", "kernels", "finish"]);
    }
    // A higher priority is not grouped with a lower one; after it circuit 1 is the current one, and then 0 in order.
    assert_eq!(order, [jobs[0], urgent, jobs[1], jobs[2], jobs[3], jobs[4], jobs[5]]);

    // With circuit 0 current, two later jobs of it go before the one of circuit 1, not more.
    let jobs = circuits.map(|c| engine.submit(c, 1, Priority::Normal));
    let mut order = Vec::new();
    while let Some(ticket) = engine.finish_a("synthesis") {
        order.push(ticket.partition.job);
        engine.finish_all(&["send", "prepare", "kernels", "finish"]);
    }
    assert_eq!(order, [jobs[0], jobs[2], jobs[3], jobs[1], jobs[4], jobs[5]]);
}

fn keyed(name: &str, key: u64) -> CircuitProfile {
    let mut profile = profile(name, 10, 0, 20);
    profile.key.device = Some(key);
    profile
}

#[test]
fn a_partition_goes_where_its_key_is() {
    let mut engine = Engine::with(config(4), machine(1000, 2), keyed("a", 60));
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: keyed("b", 60) });
    engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    engine.submit(1, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    engine.move_keys();
    engine.drain();
    let where_is = |engine: &Engine, circuit| {
        engine.scheduler.keys().filter(|k| k.circuit == CircuitId(circuit)).map(|k| k.pool).collect::<Vec<_>>()
    };
    let (a, b) = (where_is(&engine, 0), where_is(&engine, 1));
    assert_eq!((a.len(), b.len()), (1, 1));
    assert_ne!(a, b, "each device has one of the keys");
    // In whatever order they come now, nothing is loaded or evicted.
    for circuit in [1, 1, 0, 1, 0, 0] {
        engine.submit(circuit, 1, Priority::Normal);
        engine.finish_all(&["synthesis", "send"]);
        assert_eq!(engine.owed.iter().filter(|o| matches!(o, Owed::Load(..) | Owed::Evict(..))).count(), 0);
        engine.drain();
    }
    assert_eq!((where_is(&engine, 0), where_is(&engine, 1)), (a, b));
}

#[test]
fn keys_leave_only_under_pressure_after_their_time_and_not_while_in_use() {
    let idle = Duration::from_secs(30);
    let mut engine = Engine::with(Config { eviction_min_idle: idle, ..config(4) }, machine(1000, 1), keyed("a", 40));
    for (index, name) in ["b", "c"].into_iter().enumerate() {
        engine.apply(Event::CircuitKnown { circuit: CircuitId(index as u32 + 1), profile: keyed(name, 40) });
    }
    let first = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    engine.move_keys();
    engine.drain();
    assert_eq!(engine.scheduler.key_tier(CircuitId(0)), Some(KeyTier::Hot));
    // Long after, nobody needs the room: it stays.
    engine.now += 10 * idle;
    engine.apply(Event::Tick);
    assert!(engine.owed.is_empty());
    // The second one fits beside it; the third does not, and the first one goes, which was used longest ago.
    engine.submit(1, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    engine.move_keys();
    engine.drain();
    engine.submit(2, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    assert_eq!(engine.owed, [Owed::Evict(CircuitId(0), Pool::Device(FIRST))]);
    assert_eq!(engine.scheduler.key_tier(CircuitId(0)), Some(KeyTier::Cold));
    engine.move_keys();
    engine.drain();
    assert_eq!(engine.end_of(first), Some(&End::Completed));
    // Now both keys were used a moment ago: the next one waits for them to be old enough, and says so.
    let waiting = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    assert_eq!(engine.owed, []);
    assert!(matches!(engine.scheduler.idle_reason(FIRST), Some(IdleReason::Memory(_))));
    assert_eq!(engine.scheduler.next_wakeup(), Some(engine.now + idle));
    engine.drain();
    assert_eq!(engine.end_of(waiting), Some(&End::Completed));
    // While a partition uses it, it cannot be evicted even on request.
    engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    let actions = engine.apply(Event::EvictRequested { circuit: CircuitId(0) });
    assert_eq!(actions, [Action::EvictRefused { circuit: CircuitId(0), pool: Pool::Device(FIRST), users: 1 }]);
    engine.drain();
}

#[test]
fn a_key_is_preloaded_or_refused_with_the_numbers() {
    let mut profile = keyed("a", 60);
    profile.key.host = Some(30);
    let mut engine = Engine::with(config(1), machine(100, 1), profile);
    engine.apply(Event::PreloadRequested { circuit: CircuitId(0) });
    engine.move_keys();
    assert_eq!(engine.scheduler.key_tier(CircuitId(0)), Some(KeyTier::Hot));
    let running = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send"]);
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: keyed("b", 50) });
    let actions = engine.apply(Event::PreloadRequested { circuit: CircuitId(1) });
    let cause = OutOfMemory { pool: Pool::Device(FIRST), requested: 50, in_use: 80, held_back: 0, capacity: 100 };
    assert_eq!(actions, [Action::PreloadRefused { circuit: CircuitId(1), cause }]);
    engine.drain();
    assert_eq!(engine.end_of(running), Some(&End::Completed));
    engine.apply(Event::EvictRequested { circuit: CircuitId(0) });
    engine.move_keys();
    assert_eq!(engine.scheduler.keys().count(), 0);
}

#[test]
fn a_key_that_cannot_be_loaded_fails_its_jobs_with_the_cause() {
    let mut profile = profile("a", 10, 0, 20);
    profile.key.host = Some(30);
    let mut engine = Engine::with(config(1), machine(100, 1), profile);
    let job = engine.submit(0, 1, Priority::Normal);
    let (circuit, pool) = (CircuitId(0), Pool::Host);
    for _ in 0..2 {
        engine.owed.clear();
        engine.apply(Event::KeyLoadFailed { circuit, pool, cause: "no such file".into() });
    }
    let cause = FailureCause::KeyLoad { circuit, pool, attempts: 2, cause: "no such file".into() };
    assert_eq!(engine.end_of(job), Some(&End::Failed(cause)));
    assert_eq!(engine.in_use(Pool::Host), 0);
}

#[test]
fn a_lost_devices_partitions_return_to_the_queue_then_go_elsewhere_then_fail() {
    let mut engine =
        Engine::with(Config { gpu_workers_per_device: 1, ..config(1) }, machine(1000, 2), profile("p", 10, 0, 20));
    let job = engine.submit(0, 1, Priority::Normal);
    let partition = PartitionId { job, index: 0 };
    engine.finish_all(&["synthesis", "send", "prepare"]);
    assert_eq!(engine.scheduler.stages(job).unwrap(), [Stage::Running(FIRST)]);
    let late = Event::StartReturned { ticket: engine.at("kernels")[0] };
    engine.lose(FIRST);
    // The witness is not made again, the other device takes it, and what comes late is recognised.
    assert_eq!(engine.scheduler.stages(job).unwrap(), [Stage::Preparing(SECOND_DEVICE)]);
    assert!(matches!(engine.try_apply(late), Err(EventError::Stale { .. })));
    engine.owed.retain(|o| !matches!(o, Owed::Late(_)));
    engine.lose(SECOND_DEVICE);
    // Both are quarantined and have failed it: none of them gets it again, so it fails, once its witness is freed.
    engine.drain();
    let fault = Fault::Device { cause: "fell off the bus".into() };
    let cause = FailureCause::Partition { partition, device: Some(SECOND_DEVICE), failures: 2, fault };
    assert_eq!(engine.end_of(job), Some(&End::Failed(cause)));

    // With a third device there is a third attempt, and it is the last.
    let mut engine =
        Engine::with(Config { gpu_workers_per_device: 1, ..config(1) }, machine(1000, 3), profile("p", 10, 0, 20));
    let job = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    for device in [0, 1, 2] {
        engine.lose(DeviceId(device));
    }
    engine.drain();
    assert!(matches!(engine.end_of(job), Some(End::Failed(FailureCause::Partition { failures: 3, .. }))));
    assert_eq!(engine.shadow.starts, 1, "one synthesis for all attempts");
}

#[test]
fn a_single_device_that_was_lost_gets_its_partition_back_after_the_self_test() {
    let mut engine = Engine::with(config(1), machine(1000, 1), profile("p", 10, 0, 20));
    let job = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    engine.lose(FIRST);
    assert_eq!(engine.scheduler.waiting_reason(PartitionId { job, index: 0 }), Some(Blocked::Quarantine));
    assert_eq!(engine.in_use(Pool::Device(FIRST)), 0);
    engine.self_test(FIRST, false);
    let interval = Config::default().self_test_interval;
    assert_eq!(engine.scheduler.next_wakeup(), Some(engine.now + interval));
    engine.now += interval;
    assert_eq!(engine.apply(Event::Tick), [Action::RunSelfTest { device: FIRST }]);
    engine.self_test(FIRST, true);
    engine.drain();
    assert_eq!(engine.end_of(job), Some(&End::Completed));
}

#[test]
fn a_device_that_fails_its_last_self_test_is_retired_and_jobs_that_need_it_fail() {
    let mut engine = Engine::with(config(1), machine(1000, 1), profile("p", 10, 0, 20));
    let waiting = engine.submit(0, 3, Priority::Normal);
    engine.lose(FIRST);
    for _ in 0..3 {
        engine.self_test(FIRST, false);
        engine.now += Config::default().self_test_interval;
        engine.apply(Event::Tick);
    }
    assert_eq!(engine.scheduler.health(FIRST), Some(Health::Retired));
    engine.drain();
    assert_eq!(engine.end_of(waiting), Some(&End::Failed(FailureCause::Unplaceable(Refusal::NoDevice))));
    let late = engine.submit(0, 1, Priority::Normal);
    assert_eq!(engine.end_of(late), Some(&End::Refused(Refusal::NoDevice)));
}

#[test]
fn a_wrong_proof_fences_its_device_and_another_one_makes_it_anew() {
    let mut engine = Engine::with(config(1), machine(1000, 2), profile("p", 10, 5, 20));
    let job = engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare", "kernels"]);
    engine.fail_a("finish", Fault::WrongProof { cause: "pairing".into() });
    assert!(matches!(engine.scheduler.health(FIRST), Some(Health::Quarantined { .. })));
    engine.self_test(FIRST, true);
    // The first device is well again, but does not get this one.
    engine.finish_all(&["synthesis", "send"]);
    assert_eq!(engine.scheduler.stages(job).unwrap(), [Stage::Preparing(SECOND_DEVICE)]);
    engine.finish_all(&["prepare", "kernels"]);
    // A second wrong proof is not the devices' fault.
    engine.fail_a("finish", Fault::WrongProof { cause: "pairing".into() });
    engine.drain();
    assert!(matches!(engine.end_of(job), Some(End::Failed(FailureCause::Partition { failures: 2, .. }))));
}

#[test]
fn a_last_resort_takes_only_what_no_other_device_can() {
    let mut resources = machine(1000, 2);
    resources.devices[0].last_resort = true;
    let mut engine =
        Engine::with(Config { gpu_workers_per_device: 1, ..config(4) }, resources, profile("p", 10, 5, 20));
    let job = engine.submit(0, 3, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    let idle = engine.scheduler.idle_reason(FIRST).unwrap();
    assert_eq!(idle, IdleReason::LeftToOthers { queued: 2 });
    engine.finish_a("kernels");
    engine.fail_a("finish", Fault::WrongProof { cause: "pairing".into() });
    engine.finish_all(&["synthesis", "send", "prepare"]);
    assert_eq!(engine.scheduler.stages(job).unwrap()[0], Stage::Running(FIRST));
    engine.drain();
    assert_eq!(engine.end_of(job), Some(&End::Completed));
}

#[test]
fn a_fault_fences_the_device_and_only_the_culprit_is_charged() {
    let mut engine = Engine::with(config(4), machine(1000, 1), profile("p", 10, 0, 20));
    let job = engine.submit(0, 2, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    engine.fail_a("kernels", device_fault());
    assert_eq!(engine.scheduler.stages(job).unwrap(), [Stage::Queued, Stage::Queued]);
    engine.self_test(FIRST, true);
    engine.finish_all(&["prepare"]);
    // The second fault of the first partition, the first of the second one: only the first has nowhere to go.
    engine.fail_a("kernels", device_fault());
    engine.drain();
    let Some(End::Failed(FailureCause::Partition { partition, failures: 2, .. })) = engine.end_of(job) else {
        panic!("{:?}", engine.ended)
    };
    assert_eq!(partition.index, 0);
}

#[test]
fn a_synthesis_error_fails_the_job_and_stops_the_rest_of_it() {
    let mut engine = Engine::with(config(4), machine(1000, 1), profile("p", 10, 0, 20));
    let job = engine.submit(0, 8, Priority::Normal);
    let other = engine.submit(0, 1, Priority::Normal);
    let fault = Fault::Synthesis { cause: "unsatisfied".into() };
    let failed = engine.fail_a("synthesis", fault.clone());
    assert_eq!(engine.at("stop").len(), 3);
    engine.drain();
    let cause = FailureCause::Partition { partition: failed.partition, device: None, failures: 1, fault };
    assert_eq!(engine.end_of(job), Some(&End::Failed(cause)));
    assert_eq!(engine.end_of(other), Some(&End::Completed));
}

#[test]
fn cancellation_at_every_stage_frees_everything() {
    for stage in ["synthesis", "send", "prepare", "kernels", "finish"] {
        let mut engine = Engine::with(config(2), machine(1000, 1), profile("p", 10, 5, 20));
        let job = engine.submit(0, 3, Priority::Normal);
        while !engine.at(stage).iter().any(|t| t.partition.index == 0) {
            engine.answer(0);
        }
        engine.apply(Event::Cancelled { job });
        assert!(engine.owed.iter().all(|o| matches!(o, Owed::Stage(_, "stop"))), "{:?}", engine.owed);
        assert_eq!(engine.end_of(job), None, "not before all has stopped");
        engine.drain();
        assert_eq!(engine.end_of(job), Some(&End::Cancelled));
        assert!(engine.scheduler.budget().pools().all(|(_, u)| u.in_use == 0));
    }
}

#[test]
fn shutdown_lets_work_end_or_cancels_it() {
    for cancel in [false, true] {
        let mut engine = Engine::with(config(2), machine(1000, 1), profile("p", 10, 5, 20));
        let job = engine.submit(0, 3, Priority::Normal);
        engine.apply(Event::Shutdown { cancel });
        let late = engine.submit(0, 1, Priority::Critical);
        assert_eq!(engine.end_of(late), Some(&End::Refused(Refusal::ShuttingDown)));
        engine.drain();
        let expected = if cancel { End::Cancelled } else { End::Completed };
        assert_eq!(engine.end_of(job), Some(&expected));
        let last = engine.log.last().unwrap().2.as_ref().unwrap();
        assert_eq!(last.last(), Some(&Action::ShutDown));
    }
}

#[test]
fn a_batch_is_of_one_circuit_and_holds_the_lock_until_its_last_has_returned() {
    let config = Config { gpu_workers_per_device: 4, max_batch: 3, ..config(8) };
    let mut engine = Engine::with(config, machine(1000, 1), profile("a", 10, 0, 10));
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: profile("b", 10, 0, 10) });
    engine.submit(0, 1, Priority::Normal);
    engine.finish_all(&["synthesis", "send", "prepare"]);
    for circuit in [0, 1, 0] {
        engine.submit(circuit, 1, Priority::Normal);
    }
    engine.finish_all(&["synthesis", "send", "prepare"]);
    engine.finish_a("kernels");
    let batch: Vec<_> = engine.at("kernels").iter().map(|t| t.partition.job.0).collect();
    assert_eq!(batch, [1, 3]);
    engine.finish_a("kernels");
    assert_eq!(engine.at("kernels").len(), 1, "the lock is still theirs");
    engine.finish_a("kernels");
    assert_eq!(engine.at("kernels").iter().map(|t| t.partition.job.0).collect::<Vec<_>>(), [2]);
    engine.drain();
}

#[test]
fn memory_in_use_that_nobody_reserved_is_not_given_away() {
    let mut engine = Engine::with(config(8), machine(100, 1), profile("p", 20, 0, 20));
    engine.apply(Event::MemoryMeasured { pool: Pool::Host, bytes: 50 });
    engine.submit(0, 5, Priority::Normal);
    assert_eq!(engine.at("synthesis").len(), 2);
    engine.apply(Event::MemoryMeasured { pool: Pool::Host, bytes: 40 });
    assert_eq!(engine.at("synthesis").len(), 5, "the measurement agrees with the reservations");
    engine.drain();
}

#[test]
fn auto_chooses_workers_from_memory_cores_and_times_and_says_why() {
    let times = |synthesis, device| {
        let seconds = Duration::from_secs_f64;
        Some(StageTimes { synthesis: seconds(synthesis), device: seconds(device) })
    };
    let config = Config { gpu_workers_per_device: 2, ..Config::default() };
    let resources = Resources { cores: 16, ..machine(1000, 1) };
    let mut profile = profile("p", 16, 4, 40);
    let choose = |profile: &CircuitProfile, times| autotune::choose(&config, &resources, 1, profile, times);
    // 1000 bytes less one at the device and one being finished: 980 / 16.
    let choice = choose(&profile, None);
    assert_eq!((choice.workers, choice.limit, choice.by_memory), (16, autotune::Limit::Cores, Some((61, Pool::Host))));
    let choice = choose(&profile, times(19.0, 2.0));
    assert_eq!((choice.workers, choice.limit), (11, autotune::Limit::Devices));
    assert_eq!(
        choice.to_string(),
        "11 partition workers, enough to keep the devices busy \
         (devices: 11 at 19.00 s synthesis and 2.00 s device; host memory: 61; 16 B a synthesis, as declared; \
         cores: 16)"
    );
    profile.partition.synthesized.pinned = 20;
    let choice = choose(&profile, times(19.0, 2.0));
    assert_eq!((choice.workers, choice.limit), (4, autotune::Limit::Memory(Pool::Pinned)));
    profile.partition.synthesized.pinned = 60;
    assert_eq!(choose(&profile, None).workers, 1, "one always");
}

#[test]
fn auto_adapts_to_the_bytes_that_a_synthesis_really_takes() {
    let config = Config { partition_workers: Workers::Auto, ..Config::default() };
    let mut declared = profile("p", 16, 4, 40);
    // What is declared is a bound, far above what is needed.
    declared.partition.synthesis.host = 400;
    let mut engine = Engine::with(config, Resources { cores: 16, ..machine(1000, 1) }, declared);
    engine.submit(0, 100, Priority::Normal);
    let choice = |engine: &Engine| {
        let choice = engine.scheduler.choice();
        (choice.workers, choice.limit, choice.synthesis_bytes, choice.bytes_are_measured)
    };
    assert_eq!(choice(&engine), (2, autotune::Limit::Memory(Pool::Host), 400, false));
    assert_eq!((engine.at("synthesis").len(), engine.in_use(Pool::Host)), (2, 800));
    let circuit = CircuitId(0);
    engine.apply(Event::SynthesisMeasured { circuit, bytes: 48 });
    // A sixteenth more than was measured; what is under way keeps what it has.
    assert_eq!(choice(&engine), (16, autotune::Limit::Cores, 51, true));
    assert_eq!((engine.at("synthesis").len(), engine.in_use(Pool::Host)), (2 + 200 / 51, 800 + 3 * 51));
    engine.apply(Event::SynthesisMeasured { circuit, bytes: 160 });
    engine.apply(Event::SynthesisMeasured { circuit, bytes: 100 });
    assert_eq!(choice(&engine), (5, autotune::Limit::Memory(Pool::Host), 170, true), "the most that was measured");
    assert!(engine.scheduler.choice().to_string().contains("host memory: 5; 170 B a synthesis, as measured"));
    // Never below the witness itself; and what was measured outlives another declaration.
    engine.apply(Event::CircuitKnown { circuit, profile: profile("p", 200, 4, 40) });
    assert_eq!(engine.scheduler.choice().synthesis_bytes, 200);
    engine.drain();
}

#[test]
fn auto_adapts_as_measurements_come_in() {
    let config = Config { partition_workers: Workers::Auto, sort_by_type: false, ..Config::default() };
    let mut engine = Engine::with(config, Resources { cores: 16, ..machine(1000, 1) }, profile("p", 16, 4, 40));
    engine.submit(0, 100, Priority::Normal);
    assert_eq!((engine.scheduler.choice().workers, engine.at("synthesis").len()), (16, 16));
    let circuit = CircuitId(0);
    let took = Duration::from_secs(10);
    engine.apply(Event::Measured { circuit, stage: MeasuredStage::Synthesis, took });
    let actions = engine.apply(Event::Measured { circuit, stage: MeasuredStage::Device, took: took / 4 });
    let choice = engine.scheduler.choice().clone();
    assert_eq!((choice.workers, choice.limit), (5, autotune::Limit::Devices));
    assert_eq!(actions, [Action::SetPartitionWorkers { choice }]);
    // A little less is noise, a little more is not.
    engine.apply(Event::Measured { circuit, stage: MeasuredStage::Device, took: took / 3 });
    assert_eq!(engine.scheduler.choice().workers, 5);
    engine.apply(Event::Measured { circuit, stage: MeasuredStage::Synthesis, took: 3 * took });
    assert_eq!(engine.scheduler.choice().workers, 7);
    engine.drain();
}
