//! `cuzk prove`: a statement's partitions, one after the other, each verified before anything is written.

use std::time::{Duration, Instant};

use blstrs::Scalar as Fr;
use cuzk_backend::{Device, MemoryUsage};
use cuzk_curve::Bls12;
use cuzk_filecoin::Partition;
use cuzk_groth16::{
    CircuitShape, DeviceCircuit, DeviceKey, FinishedProof, Placement, Randomness, ResidencyPlan, assignment_shape,
    prove_start,
};
use cuzk_r1cs::Assignment;

use crate::{
    args::{Global, ProveArgs},
    circuits, device,
    failure::Failure,
    files, keys, progress,
    report::{self, seconds},
    statement,
};

/// A proved partition.
pub(crate) struct Proved {
    pub(crate) index: usize,
    pub(crate) witness_time: Duration,
    pub(crate) proof: FinishedProof<Bls12>,
    /// Bytes of the packed assignment.
    pub(crate) witness_bytes: u64,
    /// Bytes that were copied to the device.
    pub(crate) uploaded_bytes: u64,
}

/// The packed assignment of a partition, and how long it took.
pub(crate) struct Witness {
    assignment: Assignment<Fr>,
    time: Duration,
}

impl Witness {
    pub(crate) fn of(partition: &Partition) -> Result<Self, Failure> {
        let started = Instant::now();
        let assignment = partition.witness()?;
        let time = started.elapsed();
        tracing::debug!(partition = partition.index(), ?time, "witness");
        Ok(Self { assignment, time })
    }
}

pub(crate) fn run(global: &Global, args: &ProveArgs) -> Result<(), Failure> {
    let started = Instant::now();
    // What is missing or in the way is found before minutes of work: a circuit that was never recorded is the last.
    files::check_target(&args.out)?;
    let cache = files::cache_directory(args.cache_dir.as_deref())?;
    let statement = statement::read(&args.statement)?;
    let circuit = statement.circuit_id();
    let wanted = match args.partition {
        Some(k) => vec![statement.partition(k)?],
        None => (0..statement.partitions()).map(|k| statement.partition(k)).collect::<Result<_, _>>()?,
    };
    let source = keys::open_to_prove(&keys::find(circuit, &args.key)?)?;
    // A wrong hash is named here, in moments; after a whole proof all that is known is that it does not verify.
    statement.check_hashes()?;
    let chosen = device::open(&args.device)?;
    let r1cs = circuits::load(circuit, &cache)?;
    let shape = CircuitShape::of(&r1cs);
    shape.check_counts(&source.counts())?;
    // Witnesses of one circuit differ little in size: the first is what the plan is made for.
    let mut first = wanted.first().map(Witness::of).transpose()?;
    let sizes = first.as_ref().map_or_else(|| shape.any_assignment(), |w| assignment_shape(&w.assignment));
    let plan = ResidencyPlan::new(&chosen.device, &chosen.budget(args.multiples)?, &shape, &sizes)?;
    plan.to_string().lines().for_each(|line| tracing::info!("{line}"));
    let chosen = chosen.prepared(&plan)?;
    let device_circuit = DeviceCircuit::load(&chosen.device, &r1cs)?;
    drop(r1cs);
    let key = keys::load(&*source, &chosen, &plan)?;
    key.check_fits(&device_circuit)?;
    let ready = started.elapsed();

    let mut proved = Vec::with_capacity(wanted.len());
    for partition in &wanted {
        let spinner = progress::spinner(&format!("proving partition {} of {circuit}", partition.index()));
        let witness = first.take().map_or_else(|| Witness::of(partition), Ok)?;
        proved.push(partition_proof(&chosen.device, &device_circuit, &key, partition.index(), witness)?);
        spinner.finish_and_clear();
    }
    let memory = chosen.device.memory()?;
    tell_memory(&plan, &memory, &proved);
    let bytes: Vec<u8> = proved.iter().flat_map(|p| p.proof.proof.to_bytes()).collect();
    files::write(&args.out, &bytes)?;

    let total = started.elapsed();
    report::print(
        global,
        || {
            serde_json::json!({
                "circuit": circuit.to_string(),
                "proof": report::path(&args.out), "bytes": bytes.len(), "verified": true,
                "device": chosen.json(), "ready_s": ready.as_secs_f64(), "total_s": total.as_secs_f64(),
                "peak_rss_bytes": report::peak_rss(),
                "memory": memory_json(&plan, &memory),
                "partitions": proved.iter().map(|p| serde_json::json!({
                    "index": p.index,
                    "witness_ms": p.witness_time.as_secs_f64() * 1e3,
                    "stages_ms": report::stages_json(&p.proof.times),
                    "witness_bytes": p.witness_bytes,
                    "uploaded_bytes": p.uploaded_bytes,
                })).collect::<Vec<_>>(),
            })
        },
        || {
            let mut lines = vec![format!("computed on {}", chosen.describe())];
            for p in &proved {
                let stages: Duration = p.proof.times.iter().map(|(_, t)| *t).sum();
                let (index, witness) = (p.index, seconds(p.witness_time));
                lines.push(format!("partition {index}: witness {witness}, proof {}, verified", seconds(stages)));
            }
            let out = args.out.display();
            lines.push(format!("{out}: {} bytes, {} in all", bytes.len(), seconds(total)));
            lines.join("\n")
        },
    )
}

/// Predicted and measured memory, for a person who asks with `-v`.
fn tell_memory(plan: &ResidencyPlan, memory: &MemoryUsage, proved: &[Proved]) {
    let (device, pinned) = (memory.device, memory.pinned);
    tracing::info!("device memory: peak {} bytes, predicted {}", device.peak, plan.predicted_peak());
    tracing::info!("pinned memory: peak {} bytes, predicted {}", pinned.peak, plan.pinned_bytes());
    for p in proved {
        tracing::info!("partition {}: {} bytes uploaded, witness {}", p.index, p.uploaded_bytes, p.witness_bytes);
    }
}

fn memory_json(plan: &ResidencyPlan, memory: &MemoryUsage) -> serde_json::Value {
    let sections = plan.sections().iter().map(|s| {
        serde_json::json!({
            "section": s.section.to_string(), "streamed": s.placement == Placement::Streamed,
            "multiples": s.spec.multiples, "bytes": s.bytes, "why": plan.explain(s),
        })
    });
    let stages: serde_json::Map<_, _> =
        plan.stages().iter().map(|(stage, bytes)| (stage.to_string(), (*bytes).into())).collect();
    serde_json::json!({
        "device_limit_bytes": plan.budget().device_bytes,
        "predicted_peak_bytes": plan.predicted_peak(), "peak_bytes": memory.device.peak,
        "predicted_pinned_bytes": plan.pinned_bytes(), "peak_pinned_bytes": memory.pinned.peak,
        "sections": sections.collect::<Vec<_>>(), "stages_bytes": stages,
    })
}

/// One partition: device, assembly, verification.
pub(crate) fn partition_proof(
    device: &Device,
    circuit: &DeviceCircuit,
    key: &DeviceKey<Bls12>,
    index: usize,
    Witness { assignment, time }: Witness,
) -> Result<Proved, Failure> {
    let before = device.memory()?.uploaded;
    let pending = prove_start(&device.stream()?, circuit, key, &assignment, Randomness::from_os()?)?;
    let proof = pending.finish()?;
    let uploaded_bytes = device.memory()?.uploaded - before;
    let witness_bytes = assignment.bytes() as u64;
    Ok(Proved { index, witness_time: time, proof, witness_bytes, uploaded_bytes })
}
