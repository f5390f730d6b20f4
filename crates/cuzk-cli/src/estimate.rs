//! `cuzk estimate`: what an engine would choose for a circuit on a machine that is described.

use cuzk_backend::{BackendError, Operation, Workspace};
use cuzk_engine::{
    DescribedCircuit, DescribedDevice, EngineConfig, Estimate, EstimateError, Machine, MemoryConfig, estimate,
};
use cuzk_groth16::{CircuitShape, Sizing};
use cuzk_prover::devices::CPU;
use cuzk_scheduler::{StageTimes, TotalBudget};
use cuzk_units::GIB;

use crate::{
    args::{EstimateArgs, Global},
    circuits,
    failure::{Class, Failure},
    files, report,
};

pub(crate) fn run(global: &Global, args: &EstimateArgs) -> Result<(), Failure> {
    let this = Machine::detect();
    let machine = Machine {
        cores: args.cores.map_or(this.cores, usize::from),
        memory_bytes: args.memory.unwrap_or(this.memory_bytes),
    };
    let mut config = EngineConfig {
        memory: MemoryConfig {
            total_budget: args.budget.map_or(TotalBudget::Auto, TotalBudget::Bytes),
            safety_margin: args.safety_margin,
            ..MemoryConfig::default()
        },
        ..EngineConfig::default()
    };
    config.scheduler.partition_workers = args.partition_workers;
    // Before the circuit, which may have to be recorded.
    check(&config, &machine)?;
    let circuit = describe(args)?;
    let found = if args.gpu.is_empty() {
        on_cpu(&config, &machine, &circuit)?
    } else {
        on_gpus(&config, &machine, args, &circuit)?
    };
    report::print(global, || json(args, &machine, &found), || found.to_string().trim_end().to_owned())?;
    match &found.refusal {
        None => Ok(()),
        Some(refusal) => {
            Err(Failure::new(Class::Memory, format!("{} would be refused: {refusal}", args.circuit)).told())
        }
    }
}

/// Refuses what leaves nothing to estimate.
fn check(config: &EngineConfig, machine: &Machine) -> Result<(), Failure> {
    let MemoryConfig { total_budget, safety_margin, .. } = config.memory;
    if total_budget.resolve(machine.memory_bytes, safety_margin) > 0 {
        return Ok(());
    }
    let [memory, margin] = [machine.memory_bytes, safety_margin].map(report::bytes);
    Err(Failure::usage(format!("no memory is left for proofs: the machine has {memory}, and {margin} shall stay free")))
}

/// The circuit's sizes: from its recorded matrices and a measured witness.
fn describe(args: &EstimateArgs) -> Result<DescribedCircuit, Failure> {
    let cache = files::cache_directory(args.cache_dir.as_deref())?;
    let r1cs = circuits::load(args.circuit, &cache)?;
    let shape = CircuitShape::of(&r1cs);
    let witness = circuits::witness(args.circuit, &cache)?;
    let assignment = witness.bound();
    Ok(DescribedCircuit {
        name: args.circuit.to_string(),
        shape,
        matrix_bytes: r1cs.bytes() as u64,
        assignment,
        synthesis_bytes: Some(witness.synthesis_bytes(assignment.bytes())),
        partitions: u32::try_from(args.circuit.partitions()).unwrap_or(u32::MAX),
        times: args.synthesis.zip(args.device_time).map(|(synthesis, device)| StageTimes { synthesis, device }),
    })
}

/// With NVIDIA devices, by the arithmetic of their backend.
fn on_gpus(
    config: &EngineConfig,
    machine: &Machine,
    args: &EstimateArgs,
    circuit: &DescribedCircuit,
) -> Result<Estimate, Failure> {
    let sizings: Vec<_> = args
        .gpu
        .iter()
        .map(|gpu| {
            let multiprocessors = gpu.multiprocessors;
            move |operation: &Operation, room: u64| -> Result<Workspace, BackendError> {
                cuzk_backend_cuda::workspace(multiprocessors, operation, room)
            }
        })
        .collect();
    let devices: Vec<_> = args
        .gpu
        .iter()
        .zip(&sizings)
        .map(|(gpu, sizing)| DescribedDevice {
            name: format!("{} ({} multiprocessors)", gpu.name, gpu.multiprocessors),
            device_bytes: args.vram_limit.unwrap_or(u64::MAX).min(cuzk_backend_cuda::usable_bytes(gpu.memory)),
            pinned_bytes: args.pinned,
            last_resort: false,
            sizing: sizing as &dyn Sizing,
        })
        .collect();
    estimate(config, machine, &devices, circuit).map_err(refused)
}

/// The CPU computes, on all cores: half of the machine's memory is its own, and a pool of pinned memory as large as the
/// backend's own choice.
fn on_cpu(config: &EngineConfig, machine: &Machine, circuit: &DescribedCircuit) -> Result<Estimate, Failure> {
    let sizing = |operation: &Operation, _room: u64| -> Result<Workspace, BackendError> {
        cuzk_backend_cpu::workspace(machine.cores, operation)
    };
    let devices = [DescribedDevice {
        name: format!("{CPU} ({} cores)", machine.cores),
        device_bytes: machine.memory_bytes / 2,
        pinned_bytes: (machine.memory_bytes / 8).min(GIB),
        last_resort: false,
        sizing: &sizing,
    }];
    estimate(config, machine, &devices, circuit).map_err(refused)
}

fn refused(error: EstimateError) -> Failure {
    let class = if matches!(error, EstimateError::Residency { .. }) { Class::Memory } else { Class::Usage };
    Failure::new(class, error)
}

fn json(args: &EstimateArgs, machine: &Machine, found: &Estimate) -> serde_json::Value {
    serde_json::json!({
        "circuit": args.circuit.to_string(),
        "cores": machine.cores, "memory_bytes": machine.memory_bytes,
        "partition_workers": found.workers.workers, "why": found.workers.to_string(),
        "refused": found.refusal.as_ref().map(ToString::to_string),
        "devices": found.devices.iter().map(|device| match &device.plan {
            Ok(plan) => serde_json::json!({
                "name": device.name, "predicted_peak_bytes": plan.predicted_peak(),
                "pinned_bytes": plan.pinned_bytes(), "plan": plan.to_string(),
            }),
            Err(cause) => serde_json::json!({ "name": device.name, "cannot": cause.to_string() }),
        }).collect::<Vec<_>>(),
        "pools": found.pools.iter().map(|pool| serde_json::json!({
            "pool": pool.pool.to_string(), "capacity_bytes": pool.capacity, "key_bytes": pool.key,
            "partition_bytes": pool.partition, "peak_bytes": pool.peak,
        })).collect::<Vec<_>>(),
        "partition_interval_s": found.partition_interval.map(|t| t.as_secs_f64()),
        "proof_latency_s": found.proof_latency.map(|t| t.as_secs_f64()),
    })
}
