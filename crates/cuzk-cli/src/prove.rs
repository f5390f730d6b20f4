//! `cuzk prove`: a statement's partitions, one after the other, each verified before anything is written.

use std::time::{Duration, Instant};

use cuzk_curve::Bls12;
use cuzk_filecoin::Partition;
use cuzk_groth16::{DeviceCircuit, DeviceKey, FinishedProof, Randomness, prove_start};

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
}

pub(crate) fn run(global: &Global, args: &ProveArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let statement = statement::read(&args.statement)?;
    let circuit = statement.circuit_id();
    let wanted = match args.partition {
        Some(k) => vec![statement.partition(k)?],
        None => (0..statement.partitions()).map(|k| statement.partition(k)).collect::<Result<_, _>>()?,
    };
    // What is missing or in the way is found before minutes of work.
    files::refuse_special(&args.out)?;
    let key_path = keys::find(circuit, &args.key)?;
    let r1cs = circuits::load(circuit, &files::cache_directory(args.cache_dir.as_deref())?)?;
    let chosen = device::open(global)?;
    let device_circuit = DeviceCircuit::load(&chosen.device, &r1cs)?;
    drop(r1cs);
    let key = keys::load(&key_path, &chosen)?;
    key.check_fits(&device_circuit)?;
    let ready = started.elapsed();

    let mut proved = Vec::with_capacity(wanted.len());
    for partition in &wanted {
        let spinner = progress::spinner(&format!("proving partition {} of {circuit}", partition.index()));
        proved.push(partition_proof(&chosen.device, &device_circuit, &key, partition)?);
        spinner.finish_and_clear();
    }
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
                "partitions": proved.iter().map(|p| serde_json::json!({
                    "index": p.index,
                    "witness_ms": p.witness_time.as_secs_f64() * 1e3,
                    "stages_ms": report::stages_json(&p.proof.times),
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

/// One partition: witness, device, assembly, verification.
pub(crate) fn partition_proof(
    device: &cuzk_backend::Device,
    circuit: &DeviceCircuit,
    key: &DeviceKey<Bls12>,
    partition: &Partition,
) -> Result<Proved, Failure> {
    let started = Instant::now();
    let assignment = partition.witness()?;
    let witness_time = started.elapsed();
    tracing::debug!(partition = partition.index(), ?witness_time, "witness");
    let pending = prove_start(&device.stream()?, circuit, key, &assignment, Randomness::from_os()?)?;
    let proof = pending.finish()?;
    Ok(Proved { index: partition.index(), witness_time, proof })
}
