//! The simulator against the recorded sweep of the seed system: 20 proofs of ten partitions, at concurrency 20.

use cuzk_scheduler::{simulation::*, units::GIB, *};

fn seed() -> Plan {
    toml::from_str(include_str!("../profiles/seed.toml")).unwrap()
}

fn run(adjust: impl FnOnce(&mut Plan)) -> Report {
    let mut plan = seed();
    adjust(&mut plan);
    let report = simulate(&plan).unwrap();
    assert_eq!(report.streams[0].completed, 20);
    report
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / GIB as f64
}

#[test]
fn the_measured_sweep_is_reproduced_within_ten_percent() {
    // partition_workers, seconds a proof, peak GiB.
    let measured = [
        (1, 290.0, 104.0),
        (2, 152.0, 110.0),
        (5, 68.4, 170.0),
        (7, 53.3, 208.0),
        (10, 38.5, 321.0),
        (12, 37.7, 400.0),
        (14, 37.8, 457.0),
        (16, 38.4, 510.0),
    ];
    for (workers, seconds, peak) in measured {
        let report = run(|p| p.config.partition_workers = Workers::Fixed(workers));
        let (s, g) = (report.streams[0].seconds_per_job, gib(report.peak_resident));
        assert!((s / seconds - 1.0).abs() < 0.1, "{workers} workers: {s:.1} s, measured {seconds} s");
        assert!((g / peak - 1.0).abs() < 0.1, "{workers} workers: {g:.0} GiB, measured {peak} GiB");
    }
}

#[test]
fn the_measured_concurrency_sweep_which_was_not_fitted_is_reproduced_within_ten_percent() {
    for (concurrency, seconds) in [(5, 41.4), (10, 38.7), (15, 38.2), (20, 38.0)] {
        let report = run(|p| {
            p.config.partition_workers = Workers::Fixed(10);
            p.streams[0].concurrency = concurrency;
        });
        let s = report.streams[0].seconds_per_job;
        assert!((s / seconds - 1.0).abs() < 0.1, "concurrency {concurrency}: {s:.1} s, measured {seconds} s");
    }
}

#[test]
fn without_the_lessons_twelve_workers_pass_668_gib() {
    let all = run(|_| {});
    assert!(gib(all.peak_resident) < 450.0);
    let none = run(|p| {
        p.config.permit = PermitScope::Synthesis;
        p.config.ablation = Ablation { early_free: false, capacity_scaling: false };
    });
    assert!(gib(none.peak_resident) > 668.0, "{:.0} GiB", gib(none.peak_resident));
    // The one that does it is the permit through the send.
    let permit = run(|p| p.config.permit = PermitScope::Synthesis);
    assert!(gib(permit.peak_resident) > 668.0, "{:.0} GiB", gib(permit.peak_resident));
    let early = run(|p| p.config.ablation.early_free = false);
    assert!(early.peak_resident > all.peak_resident);
}

#[test]
fn a_budget_is_never_passed_whatever_is_switched_off() {
    for permit in [PermitScope::Synthesis, PermitScope::Send, PermitScope::Proved] {
        let report = run(|p| {
            p.machine.host = 300 * GIB;
            p.config.permit = permit;
        });
        assert!(report.peak_reserved(Pool::Host) <= 300 * GIB);
        let keys_and_process = 51 * GIB;
        assert!(report.peak_resident <= 300 * GIB + keys_and_process, "{:.0} GiB", gib(report.peak_resident));
    }
}

#[test]
fn auto_finds_the_best_of_the_measured_numbers() {
    let report = run(|p| p.config.partition_workers = Workers::Auto);
    // In the middle of the run: the first witnesses are made beside more others than there are later, the last ones
    // beside fewer.
    for percent in [40, 50, 60, 70, 80, 90] {
        let at = report.seconds * f64::from(percent) / 100.0;
        let in_force = report.choices.iter().rfind(|(seconds, _)| *seconds <= at).map(|(_, choice)| choice).unwrap();
        assert!((11..=13).contains(&in_force.workers), "{in_force}");
        assert_eq!(in_force.limit, autotune::Limit::Devices);
    }
    assert!(report.streams[0].seconds_per_job < 1.02 * run(|_| {}).streams[0].seconds_per_job);
}

#[test]
fn it_is_deterministic_and_every_moment_of_a_device_is_accounted_for() {
    let report = run(|_| {});
    assert_eq!(report, run(|_| {}));
    let device = &report.devices[0];
    let all = device.busy + device.gaps.values().sum::<f64>();
    assert!((all - report.seconds).abs() < 1e-6 * report.seconds, "{all} of {} s", report.seconds);
    // Each of the 200 partitions has its four spans, and computes once.
    assert_eq!(report.spans.len(), 4 * 200);
    let compute: f64 = report.spans.iter().filter(|s| s.kind == SpanKind::Compute).map(|s| s.end - s.start).sum();
    assert!((compute - device.busy).abs() < 1e-6 * compute);
}

#[test]
fn a_fleet_is_as_fast_as_its_devices_when_synthesis_keeps_up() {
    // Synthesis that costs nothing: the time is that of the kernels, shared by the devices.
    let seconds = |devices| {
        let report = run(|p| {
            p.machine.devices[0].count = devices;
            p.config.partition_workers = Workers::Fixed(40);
            p.circuits[0].synthesis.seconds = 0.0;
            p.circuits[0].synthesis.traffic = 0;
            p.circuits[0].compute.sensitivity = 0.0;
            p.circuits[0].finish.seconds = 0.0;
        });
        report.seconds
    };
    let kernels = 200.0 * 1.82;
    assert!((seconds(1) - kernels).abs() < 2.0, "{}", seconds(1));
    assert!((seconds(8) - kernels / 8.0).abs() < 2.0, "{}", seconds(8));
}

#[test]
fn a_critical_job_waits_for_one_kernel_at_most_in_a_machine_that_is_full() {
    let report = run(|p| {
        let mut winning = p.circuits[0].clone();
        winning.profile = CircuitProfile {
            name: "winning-32g".into(),
            key: KeyBytes { host: Some(GIB / 10), pinned: Some(GIB / 5), device: None },
            partition: PartitionBytes {
                synthesis: HostBytes { host: GIB / 20, pinned: 0 },
                device_running: GIB / 4,
                ..PartitionBytes::default()
            },
            ..winning.profile
        };
        winning.synthesis = HostStage { seconds: 0.3, cores: 4.0, traffic: GIB, sensitivity: 0.2 };
        winning.prepare.seconds = 0.02;
        winning.compute = DeviceStage { seconds: 0.05, transfer: 0, sensitivity: 0.0, batch_saving: 0.0 };
        winning.finish.seconds = 0.05;
        p.circuits.push(winning);
        // The budget is full, and so are the permits and the queue.
        p.machine.host = 330 * GIB;
        p.config.critical_reserve = CriticalReserve { host: GIB, pinned: GIB, device: GIB };
        p.streams.push(Stream {
            circuit: "winning-32g".into(),
            partitions: 1,
            priority: Priority::Critical,
            jobs: 20,
            concurrency: 20,
            first: 200.0,
            every: 20.0,
        });
    });
    assert_eq!(report.streams[1].completed, 20);
    let of = |ticket: Ticket, kind| report.spans.iter().find(|s| s.ticket == ticket && s.kind == kind).unwrap();
    let kernel =
        report.spans.iter().filter(|s| s.kind == SpanKind::Compute).map(|s| s.end - s.start).fold(0.0, f64::max);
    let urgent = report.spans.iter().filter(|s| s.kind == SpanKind::Synthesis && s.end - s.start < 1.0);
    let waits: Vec<_> = urgent.map(|s| of(s.ticket, SpanKind::Compute).start - s.end).collect();
    assert_eq!(waits.len(), 20);
    assert!(waits.iter().all(|w| *w <= kernel), "{waits:?}, where a kernel takes {kernel:.2} s");
    assert!(report.streams[1].quantile(1.0).unwrap() < kernel + 1.0);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let fails = |adjust: fn(&mut Plan)| {
        let mut plan = seed();
        adjust(&mut plan);
        simulate(&plan).unwrap_err()
    };
    let unknown = fails(|p| p.streams[0].circuit = "x".into());
    let expected = PlanError::UnknownCircuit { stream: 0, circuit: "x".into() };
    assert_eq!(unknown, SimulationError::Plan(expected));
    assert!(matches!(
        fails(|p| p.circuits[0].synthesis.seconds = f64::NAN),
        SimulationError::Plan(PlanError::OutOfRange { .. })
    ));
    assert_eq!(fails(|p| p.machine.devices.clear()), SimulationError::Plan(PlanError::Config(ConfigError::NoDevice)));
    assert!(toml::from_str::<Plan>("machine = 1").is_err());
}

#[test]
fn a_job_that_does_not_fit_is_reported_with_its_numbers() {
    let mut plan = seed();
    plan.machine.host = 40 * GIB;
    let report = simulate(&plan).unwrap();
    assert_eq!(report.refused.len(), 20);
    let Refusal::TooLarge { shortages } = &report.refused[0].1 else { panic!("{:?}", report.refused[0]) };
    assert_eq!((shortages.len(), shortages[0].pool, shortages[0].capacity), (1, Pool::Host, 40 * GIB));
}
