//! Whole proofs against bellperson: from the parsed input to the proof, with the same key, threads and process; and
//! witnesses against those that the published circuit gives.
//!
//! Both sides start from the statement (ours: parsed C1 or vanilla proofs; bellperson's: the circuit built from it) with their keys
//! loaded. Ours ends with a verified proof, bellperson's `create_proof` with an unverified one.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    fs::File,
    io::BufReader,
    time::{Duration, Instant},
};

use bellpepper_core::Circuit;
use bellperson::groth16::{Parameters, create_random_proof};
use blstrs::{Bls12, Scalar as Fr};
use clap::Parser;
use cuzk_backend::{Device, DeviceOptions};
use cuzk_backend_cpu::CpuBackend;
use cuzk_benches::{Measurement, median};
use cuzk_filecoin::{CircuitId, Partition, ProofKind, Statement, circuits};
use cuzk_groth16::{DeviceCircuit, DeviceKey, Randomness, prove_start, setup_deterministic};
use cuzk_keys::{export_params, ignore_progress};
use cuzk_r1cs::{Assignment, WitnessCs};
use cuzk_tests::{Fixture, recorded_seed};
use filecoin_proofs::SectorShapeBase;

/// Measures whole proofs on the CPU backend against bellperson's `create_proof`.
#[derive(Parser)]
struct Arguments {
    /// Circuits with recorded inputs
    #[arg(default_values = ["porep-2k"])]
    circuits: Vec<CircuitId>,
    /// Runs of each side, in turn; the medians are compared
    #[arg(long, default_value_t = 1)]
    runs: usize,
    /// The smallest size only: whether the benchmark works
    #[arg(long)]
    small: bool,
    /// Append the record to this file of benches/results
    #[arg(long)]
    record: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::parse();
    if arguments.small {
        arguments.circuits = vec!["wpost-2k".parse()?];
    }
    for circuit in &arguments.circuits {
        measure(*circuit, &arguments)?;
    }
    Ok(())
}

fn measure(circuit: CircuitId, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let device = Device::open(&CpuBackend, 0, &DeviceOptions::default())?;
    let stream = device.stream()?;
    let r1cs = cuzk_filecoin::record(circuit)?;
    let started = Instant::now();
    let key = setup_deterministic::<Bls12>(&stream, &r1cs, recorded_seed(circuit)?)?;
    let setup_time = started.elapsed();
    let device_circuit = DeviceCircuit::load(&device, &r1cs)?;
    let device_key = DeviceKey::load(&device, &key)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("key.params");
    export_params(&key, &path, &mut ignore_progress)?;
    drop((key, r1cs));
    let peer_key = Parameters::<Bls12>::read(BufReader::with_capacity(1 << 20, File::open(&path)?), false)?;

    let (_, statement) = Fixture::of(circuit).statements()?.swap_remove(0);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut witnesses, mut runs_of_the_circuit) = (Vec::new(), Vec::new());
    for _ in 0..arguments.runs {
        let started = Instant::now();
        let assignment = partition(&statement)?.witness()?;
        let witness = started.elapsed();
        witnesses.push(witness);
        let pending = prove_start(&stream, &device_circuit, &device_key, &assignment, Randomness::from_os()?)?;
        let finished = pending.finish()?;
        ours.push(started.elapsed());
        eprintln!("{circuit}: ours {:?}: witness {witness:?}, stages {:?}", ours.last(), finished.times);

        let started = Instant::now();
        peer_proof(&partition(&statement)?, &peer_key)?;
        theirs.push(started.elapsed());
        eprintln!("{circuit}: bellperson {:?}", theirs.last());

        let started = Instant::now();
        let published = peer_witness(&partition(&statement)?)?;
        runs_of_the_circuit.push(started.elapsed());
        eprintln!("{circuit}: the published circuit's witness {:?}", runs_of_the_circuit.last());
        if published != assignment {
            return Err(format!("{circuit}: another witness than the published circuit's").into());
        }
    }
    let info = device.info();
    let measurement = |what: &str, ours: Duration, peer: Option<(&str, Duration)>| Measurement {
        what: what.to_owned(),
        curve: "bls12-381".to_owned(),
        size: circuit.to_string(),
        ours: ours.as_secs_f64(),
        unit: "s".to_owned(),
        peer: peer.map(|(name, time)| (name.to_owned(), time.as_secs_f64())),
        device: format!("{} ({})", info.name, info.features),
        driver: info.driver.clone(),
    };
    let file = arguments.record.as_deref();
    measurement("setup", setup_time, None).report(file)?;
    let peer = ("bellperson 0.27 create_proof", median(theirs));
    measurement("proof of one partition from the parsed input, verified", median(ours), Some(peer)).report(file)?;
    let peer = ("the published circuit, run for its values only", median(runs_of_the_circuit));
    measurement("witness of one partition", median(witnesses), Some(peer)).report(file)?;
    Ok(())
}

fn partition(statement: &Statement) -> Result<Partition, Box<dyn Error>> {
    Ok(statement.partition(0)?)
}

fn peer_proof(partition: &Partition, key: &Parameters<Bls12>) -> Result<(), Box<dyn Error>> {
    let mut rng = rand_core::OsRng;
    match partition.circuit_id().kind {
        ProofKind::PoRep => {
            create_random_proof(circuits::porep::<SectorShapeBase>(partition)?.0, key, &mut rng)?;
        }
        ProofKind::WinningPoSt | ProofKind::WindowPoSt => {
            create_random_proof(circuits::post::<SectorShapeBase>(partition)?.0, key, &mut rng)?;
        }
        ProofKind::Update => {
            create_random_proof(circuits::update::<SectorShapeBase>(partition)?.0, key, &mut rng)?;
        }
    }
    Ok(())
}

fn peer_witness(partition: &Partition) -> Result<Assignment<Fr>, Box<dyn Error>> {
    match partition.circuit_id().kind {
        ProofKind::PoRep => run(circuits::porep::<SectorShapeBase>(partition)?.0),
        ProofKind::WinningPoSt | ProofKind::WindowPoSt => run(circuits::post::<SectorShapeBase>(partition)?.0),
        ProofKind::Update => run(circuits::update::<SectorShapeBase>(partition)?.0),
    }
}

fn run<C: Circuit<Fr>>(circuit: C) -> Result<Assignment<Fr>, Box<dyn Error>> {
    Ok(WitnessCs::generate(circuit)?)
}
