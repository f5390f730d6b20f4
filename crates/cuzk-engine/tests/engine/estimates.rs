//! What is planned for machines: described ones, and devices that differ.

use std::time::Duration;

use cuzk_backend::{Device, noop::Noop};
use cuzk_conformance::faults::Call;
use cuzk_engine::{
    CircuitSource, DescribedCircuit, DescribedDevice, EngineConfig, EstimateError, JobOptions, Machine, MemoryConfig,
    RegisterError, estimate,
};
use cuzk_groth16::{CircuitShape, ResidencyError};
use cuzk_scheduler::{DeviceId, Pool, Refusal, StageTimes, TotalBudget, Workers, autotune::Limit};

use crate::common::*;

/// A circuit of these tests, described.
fn described(steps: usize, partitions: u32, times: Option<StageTimes>) -> DescribedCircuit {
    let circuit = SharedCircuit::hollow(steps);
    let r1cs = circuit.r1cs().unwrap();
    let shape = CircuitShape::of(&*r1cs);
    DescribedCircuit {
        name: "squares".to_owned(),
        shape,
        matrix_bytes: r1cs.bytes() as u64,
        assignment: shape.any_assignment(),
        synthesis_bytes: None,
        partitions,
        times,
    }
}

fn device(sizing: &Device, device_bytes: u64) -> DescribedDevice<'_> {
    let name = "toy".to_owned();
    DescribedDevice { name, device_bytes, pinned_bytes: NOOP_BYTES, last_resort: false, sizing }
}

fn auto(host: u64) -> EngineConfig {
    let memory = MemoryConfig { total_budget: TotalBudget::Bytes(host), safety_margin: 0, spare_witnesses: 1 };
    EngineConfig { memory, ..EngineConfig::default() }
}

/// An engine on the same machine reserves what was estimated, and never more.
#[test]
fn what_is_estimated_is_what_an_engine_reserves() {
    const STEPS: usize = 50;
    let sizing = Device::new(Noop::new(1));
    let machine = Machine { cores: 2, memory_bytes: 64 << 20 };
    let mut config = auto(64 << 20);
    config.scheduler.partition_workers = Workers::Fixed(2);
    let told = estimate(&config, &machine, &[device(&sizing, NOOP_BYTES)], &described(STEPS, 4, None)).unwrap();
    assert_eq!((told.workers.workers, told.workers.limit), (2, Limit::Configured));
    assert_eq!(told.refusal, None);
    let pool = |pool| *told.pools.iter().find(|p| p.pool == pool).unwrap();

    let toy = Toy::new();
    let engine = engine(config, vec![toy.spec()]);
    let circuit = engine.register(SharedCircuit::hollow(STEPS)).unwrap();
    let jobs: Vec<_> = (0..6).map(|x| engine.submit(circuit, squares(x, STEPS, 4), JobOptions::default())).collect();
    jobs.iter().enumerate().for_each(|(x, job)| expect_squares(job, x as u64, STEPS, 4));
    let status = engine.status().unwrap();
    for (which, usage) in &status.memory {
        let told = pool(*which);
        assert_eq!(told.capacity, usage.capacity, "{which}");
        // On a device that computes nothing proofs pile up before the thread that finishes them, with their results.
        let piled_up = if *which == Pool::Pinned { told.capacity } else { 0 };
        assert!(usage.high_water <= told.peak.max(piled_up), "{which}: {usage:?}, told {told:?}");
        assert!(told.peak <= told.capacity);
        let key: u64 = status.keys.iter().filter(|k| k.pool == *which).map(|k| k.bytes).sum();
        assert_eq!(key, told.key, "{which}");
    }
    let on_device = pool(Pool::Device(DeviceId(0)));
    assert_eq!(on_device.key, toy.in_use().0, "what the key takes");
    assert!(toy.device.memory().unwrap().device.peak <= on_device.peak);
}

#[test]
fn the_number_of_workers_follows_from_what_is_described() {
    let sizing = Device::new(Noop::new(1));
    let times = |synthesis, device| {
        let seconds = Duration::from_secs;
        Some(StageTimes { synthesis: seconds(synthesis), device: seconds(device) })
    };
    let machine = |cores| Machine { cores, memory_bytes: 1 << 40 };
    let of = |host: u64, cores, circuit: &DescribedCircuit| {
        estimate(&auto(host), &machine(cores), &[device(&sizing, NOOP_BYTES)], circuit).unwrap()
    };
    // Nothing is known of the times: as many as there are cores for.
    let told = of(64 << 20, 12, &described(50, 10, None));
    assert_eq!((told.workers.workers, told.workers.limit, told.partition_interval), (12, Limit::Cores, None));
    // A witness takes five times as long as the device needs for it: five, and one for unevenness.
    let circuit = described(50, 10, times(30, 6));
    let told = of(64 << 20, 12, &circuit);
    assert_eq!((told.workers.workers, told.workers.limit), (6, Limit::Devices));
    assert_eq!(told.partition_interval, Some(Duration::from_secs(6)));
    assert_eq!(told.proof_latency, Some(Duration::from_secs(30 + 10 * 6)));
    // Memory for less.
    let one = told.profile.partition.to_synthesize().host;
    let told = of(told.profile.key.host.unwrap() + 5 * one, 12, &circuit);
    assert!(matches!(told.workers.limit, Limit::Memory(Pool::Host)) && told.workers.workers < 6, "{told}");
    // Memory for nothing.
    let told = of(one, 12, &circuit);
    let Some(Refusal::TooLarge { shortages }) = &told.refusal else { panic!("{told}") };
    assert_eq!((shortages[0].pool, shortages[0].capacity), (Pool::Host, one));
    assert!(told.to_string().contains("would be refused"), "{told}");
}

#[test]
fn a_device_that_is_too_small_is_named_with_its_numbers() {
    let sizing = Device::new(Noop::new(1));
    let machine = Machine { cores: 2, memory_bytes: 64 << 20 };
    let small = device(&sizing, 1000);
    let circuit = described(50, 1, None);
    let refused = estimate(&auto(64 << 20), &machine, std::slice::from_ref(&small), &circuit).unwrap_err();
    let EstimateError::Residency { cause, .. } = &refused else { panic!("{refused}") };
    assert!(matches!(**cause, ResidencyError::Device { capacity: 1000, needed, .. } if needed > 1000), "{cause}");
    let told = estimate(&auto(64 << 20), &machine, &[small, device(&sizing, NOOP_BYTES)], &circuit).unwrap();
    assert!(told.devices[0].plan.is_err() && told.devices[1].plan.is_ok() && told.refusal.is_none());
    assert!(told.to_string().contains("cannot prove it"), "{told}");
}

/// A large device and a small one: what fits only the large one is proved there, and the small one serves the others.
#[test]
fn each_device_is_planned_by_itself() {
    let (small_steps, large_steps) = (3, 400);
    let needed = |steps| {
        let toy = Toy::new();
        let engine = engine(config(1), vec![toy.spec()]);
        let circuit = engine.register(hollow_circuit(steps)).unwrap();
        expect_squares(&engine.submit(circuit, squares(1, steps, 1), JobOptions::default()), 1, steps, 1);
        toy.device.memory().unwrap().device.peak
    };
    let small_bytes = 3 * needed(small_steps);
    assert!(small_bytes < needed(large_steps) / 2, "the circuits differ");
    let (large, small) = (Toy::new(), Toy::with_pools(small_bytes, 1 << 16));
    let mut config = config(4);
    config.scheduler.sort_by_type = false;
    let engine = engine(config, vec![large.spec(), small.spec()]);
    let everywhere = engine.register(hollow_circuit(small_steps)).unwrap();
    let only_large = engine.register(hollow_circuit(large_steps)).unwrap();
    let jobs: Vec<_> = (0..4)
        .map(|x| {
            (
                engine.submit(only_large, squares(x, large_steps, 3), JobOptions::default()),
                engine.submit(everywhere, squares(x, small_steps, 6), JobOptions::default()),
            )
        })
        .collect();
    for (x, (large_job, small_job)) in (0u64..).zip(&jobs) {
        expect_squares(large_job, x, large_steps, 3);
        expect_squares(small_job, x, small_steps, 6);
        let report = large_job.report().unwrap();
        assert!(report.partitions.iter().all(|p| p.device == Some(DeviceId(0))), "{report:?}");
    }
    // Whoever is free takes what both can do: on a loaded machine the large one may have been so every time.
    for _ in 0..100 {
        if small.faults.count(Call::Quotient) > 0 {
            break;
        }
        let (busy, job) = (
            engine.submit(only_large, squares(1, large_steps, 3), JobOptions::default()),
            engine.submit(everywhere, squares(1, small_steps, 6), JobOptions::default()),
        );
        expect_squares(&job, 1, small_steps, 6);
        expect_squares(&busy, 1, large_steps, 3);
    }
    assert!(small.faults.count(Call::Quotient) > 0, "the small one worked");
    expect_clean(&engine);
    let keys = engine.status().unwrap().keys;
    let key_on = |device, circuit| keys.iter().any(|k| k.pool == Pool::Device(device) && k.circuit == circuit);
    assert!(!key_on(DeviceId(1), only_large), "it was never loaded where it is of no use");

    // What fits none is refused with the numbers of the first.
    let none = Toy::with_pools(1000, 1000);
    let other = crate::common::engine(crate::common::config(1), vec![none.spec()]);
    assert!(matches!(other.register(hollow_circuit(large_steps)), Err(RegisterError::Residency { .. })));
}
