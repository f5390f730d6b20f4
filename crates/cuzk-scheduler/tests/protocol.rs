//! Events that do not fit, each refused with what is wrong and without any effect; and rules that have no better place.

mod common;

use common::*;
use cuzk_scheduler::*;

const DEVICE: DeviceId = DeviceId(0);

/// Applies an event that must be refused.
fn refused(engine: &mut Engine, event: Event) -> EventError {
    let before = format!("{:?}", engine.scheduler);
    let error = engine.try_apply(event).unwrap_err();
    assert_eq!(format!("{:?}", engine.scheduler), before, "{error}");
    error
}

#[test]
fn events_that_do_not_fit_change_nothing() {
    let mut engine = Engine::with(config(1), machine(100, 1), profile("p", 10, 0, 20));
    let job = engine.submit(0, 2, Priority::Normal);
    let ticket = Ticket::first(PartitionId { job, index: 0 });
    let pending = Ticket::first(PartitionId { job, index: 1 });
    let circuit = CircuitId(0);
    let unexpected = |ticket, stage, event| EventError::UnexpectedStage { ticket, stage, event };

    let error = refused(&mut engine, Event::SendDone { ticket });
    assert_eq!(error, unexpected(ticket, Stage::Synthesizing, "a completed send"));
    let error = refused(&mut engine, Event::WitnessReady { ticket: pending });
    assert_eq!(error, unexpected(pending, Stage::Pending, "a witness"));
    let error = refused(&mut engine, Event::Stopped { ticket });
    assert_eq!(error, unexpected(ticket, Stage::Synthesizing, "a stop"));
    let fault = Fault::Device { cause: "none".into() };
    let error = refused(&mut engine, Event::Failed { ticket: pending, fault });
    assert_eq!(error, unexpected(pending, Stage::Pending, "a failure"));

    for stale in [
        Ticket { attempt: 1, ..ticket },
        Ticket::first(PartitionId { job, index: 2 }),
        Ticket::first(PartitionId { job: JobId(9), index: 0 }),
    ] {
        assert_eq!(refused(&mut engine, Event::WitnessReady { ticket: stale }), EventError::Stale { ticket: stale });
    }

    let request = |job, circuit, partitions| {
        let priority = Priority::Normal;
        Event::JobSubmitted(JobRequest { job, circuit, partitions, priority, deadline: None })
    };
    assert_eq!(refused(&mut engine, request(job, circuit, 1)), EventError::DuplicateJob { job });
    let job = JobId(9);
    assert_eq!(refused(&mut engine, request(job, circuit, 0)), EventError::NoPartitions { job });
    assert_eq!(refused(&mut engine, Event::Cancelled { job }), EventError::UnknownJob { job });
    let circuit = CircuitId(7);
    assert_eq!(refused(&mut engine, request(job, circuit, 1)), EventError::UnknownCircuit { circuit });
    assert_eq!(refused(&mut engine, Event::PreloadRequested { circuit }), EventError::UnknownCircuit { circuit });
    assert_eq!(refused(&mut engine, Event::EvictRequested { circuit }), EventError::UnknownCircuit { circuit });

    let device = DeviceId(5);
    let lost = Event::DeviceLost { device, cause: String::new() };
    assert_eq!(refused(&mut engine, lost), EventError::UnknownDevice { device });
    let test = Event::DeviceSelfTest { device: DEVICE, passed: true };
    assert_eq!(refused(&mut engine, test), EventError::UnexpectedSelfTest { device: DEVICE });
    let (circuit, pool) = (CircuitId(0), Pool::Device(DEVICE));
    let key = |event| EventError::UnexpectedKey { circuit, pool, event };
    assert_eq!(refused(&mut engine, Event::KeyLoaded { circuit, pool }), key("a completed load"));
    assert_eq!(refused(&mut engine, Event::KeyEvicted { circuit, pool }), key("an eviction"));
    let failed = Event::KeyLoadFailed { circuit, pool, cause: String::new() };
    assert_eq!(refused(&mut engine, failed), key("a failed load"));
    let pool = Pool::Device(device);
    let measured = Event::MemoryMeasured { pool, bytes: 1 };
    assert_eq!(refused(&mut engine, measured), EventError::UnknownPool { pool });
    engine.drain();
}

#[test]
fn a_partition_does_not_make_room_by_evicting_its_own_key() {
    let mut large = profile("p", 60, 0, 60);
    large.key = KeyBytes { host: Some(10), pinned: None, device: Some(10) };
    let mut engine = Engine::with(config(2), machine(100, 1), profile("q", 60, 60, 60));
    engine.apply(Event::CircuitKnown { circuit: CircuitId(1), profile: large });
    let first = engine.submit(0, 1, Priority::Normal);
    engine.submit(1, 1, Priority::Normal);
    // Its key is loaded and idle, and its memory is held by the other one: it waits.
    engine.move_keys();
    assert_eq!(engine.owed, [Owed::Stage(Ticket::first(PartitionId { job: first, index: 0 }), "synthesis")]);
    assert!(engine.scheduler.keys().any(|k| k.pool == Pool::Host && k.loaded));
    engine.drain();
    let evictions = engine.log.iter().flat_map(|(.., actions)| actions.iter().flatten());
    assert_eq!(evictions.filter(|a| matches!(a, Action::EvictKey { .. })).count(), 0);
}

#[test]
fn a_key_that_is_loaded_anew_has_only_its_new_users() {
    let mut streamed = profile("p", 10, 0, 20);
    streamed.key.pinned = Some(40);
    let mut engine = Engine::with(config(2), machine(100, 1), streamed);
    engine.submit(0, 1, Priority::Normal);
    let (circuit, pool) = (CircuitId(0), Pool::Pinned);
    for _ in 0..2 {
        engine.owed.retain(|o| *o != Owed::Load(circuit, pool));
        engine.apply(Event::KeyLoadFailed { circuit, pool, cause: "no such file".into() });
    }
    // The job fails, but its synthesis has not stopped when the next one asks for the key.
    assert_eq!(engine.at("stop").len(), 1);
    engine.submit(0, 1, Priority::Normal);
    engine.move_keys();
    engine.finish_a("stop");
    let actions = engine.apply(Event::EvictRequested { circuit });
    assert_eq!(actions, [Action::EvictRefused { circuit, pool, users: 1 }]);
    engine.drain();
}

#[test]
fn time_that_goes_backwards_stands_still() {
    let mut scheduler = Scheduler::new(config(1), machine(100, 1)).unwrap();
    scheduler
        .apply(10 * SECOND, Event::CircuitKnown { circuit: CircuitId(0), profile: profile("p", 10, 0, 20) })
        .unwrap();
    scheduler.apply(SECOND, Event::DeviceLost { device: DEVICE, cause: "gone".into() }).unwrap();
    let quarantined = Health::Quarantined { since: 10 * SECOND, failed_tests: 0, next_test: None };
    assert_eq!(scheduler.health(DEVICE), Some(quarantined));
}

#[test]
fn what_is_said_to_people_carries_the_numbers() {
    let refusal =
        Refusal::TooLarge { shortages: vec![Shortage { pool: Pool::Host, requested: 3 << 30, capacity: 1 << 30 }] };
    assert_eq!(refusal.to_string(), "one partition and its key do not fit: host 3.0 GiB of 1.0 GiB;");
    let partition = PartitionId { job: JobId(4), index: 2 };
    let fault = Fault::Device { cause: "illegal address".into() };
    let cause = FailureCause::Partition { partition, device: Some(DEVICE), failures: 3, fault };
    assert_eq!(cause.to_string(), "partition 2 of job 4: device fault: illegal address (failure 3, device 0)");
    let admission = Some(Blocked::Permits { held: 2, workers: 2 });
    let reason = IdleReason::NoSynthesizedPartition { synthesizing: 2, admission };
    assert_eq!(reason.to_string(), "no synthesized partition: 2 in synthesis, no more because 2 of 2 permits are held");
}
