//! Proofs on a device that a plugin offers: the same bytes as on the CPU, what each stage takes, ten proofs back to back, and the same
//! proofs within caps of device memory.
//!
//! The key and the matrices are on the device before the clock starts; a proof is measured from the packed assignment in host memory to
//! the assembled proof, and its verification apart.

#![forbid(unsafe_code)]

use std::{
    error::Error,
    path::PathBuf,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use blstrs::Scalar as Fr;
use clap::Parser;
use cuzk_backend::{Backend, Device, DeviceOptions, Stream};
use cuzk_backend_cpu::CpuBackend;
use cuzk_benches::{Measurement, Synthetic};
use cuzk_curve::Bls12;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::{
    DeviceCircuit, DeviceKey, FinishedProof, Randomness, Stage, StageTimes, prove_start, setup_deterministic,
};
use cuzk_keys::ProvingKey;
use cuzk_plugin::{Loader, PluginBackend};
use cuzk_r1cs::{Assignment, R1cs, RecordingCs, WitnessCs};
use cuzk_tests::{Fixture, plugin_folder, recorded_seed};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures proofs on a device, after comparing their bytes with the CPU's.
#[derive(Parser)]
struct Arguments {
    /// Circuits with recorded inputs
    #[arg(long, value_delimiter = ',', default_values = ["porep-2k"])]
    circuits: Vec<CircuitId>,
    /// Synthetic circuits of 2^N constraints
    #[arg(long, value_delimiter = ',')]
    synthetic: Vec<u32>,
    /// The plugin to measure
    #[arg(long, default_value = "cuda")]
    backend: String,
    /// Where it is; without, where `cargo xtask build` puts it
    #[arg(long)]
    plugin_dir: Option<PathBuf>,
    /// Single proofs to take the median of, after two to warm up
    #[arg(long, default_value_t = 10)]
    runs: usize,
    /// Append the record to this file of benches/results
    #[arg(long)]
    record: Option<String>,
}

/// A circuit, its key, and an assignment to prove.
struct Case {
    name: String,
    r1cs: R1cs<Fr>,
    key: ProvingKey<Bls12>,
    assignment: Assignment<Fr>,
}

impl Case {
    fn recorded(stream: &Stream, circuit: CircuitId) -> Result<Self> {
        let r1cs = cuzk_filecoin::record(circuit)?;
        let key = setup_deterministic::<Bls12>(stream, &r1cs, recorded_seed(circuit)?)?;
        let (_, statement) = Fixture::of(circuit).statements()?.swap_remove(0);
        let assignment = statement.partition(0)?.witness()?;
        Ok(Self { name: circuit.to_string(), r1cs, key, assignment })
    }

    fn synthetic(stream: &Stream, log_n: u32) -> Result<Self> {
        let circuit = Synthetic { constraints: 1 << log_n, seed: 1 };
        let r1cs = RecordingCs::record(circuit)?;
        let key = setup_deterministic::<Bls12>(stream, &r1cs, [7; 32])?;
        let assignment = WitnessCs::generate(circuit)?;
        Ok(Self { name: format!("synthetic 2^{log_n}"), r1cs, key, assignment })
    }
}

/// A case on a device.
struct Loaded<'a> {
    stream: Stream,
    circuit: DeviceCircuit,
    key: DeviceKey<Bls12>,
    assignment: &'a Assignment<Fr>,
}

impl<'a> Loaded<'a> {
    fn new(device: &Device, case: &'a Case) -> Result<Self> {
        Ok(Self {
            stream: device.stream()?,
            circuit: DeviceCircuit::load(device, &case.r1cs)?,
            key: DeviceKey::load(device, &case.key)?,
            assignment: &case.assignment,
        })
    }

    fn prove(&self, randomness: Randomness<Fr>) -> Result<FinishedProof<Bls12>> {
        Ok(prove_start(&self.stream, &self.circuit, &self.key, self.assignment, randomness)?.finish()?)
    }

    /// With r and s that give the same bytes each time.
    fn prove_fixed(&self) -> Result<Vec<u8>> {
        Ok(self.prove(Randomness::insecure(Fr::from(11), Fr::from(13)))?.proof.to_bytes())
    }

    /// So many proofs, each started when the work of the one before on the device is done, and finished beside it. The time from the first start to the last proof,
    /// all verified.
    fn back_to_back(&self, proofs: usize) -> Result<Duration> {
        let started = Instant::now();
        thread::scope(|scope| {
            let (send, receive) = mpsc::sync_channel(2);
            let finisher = scope.spawn(move || {
                receive.iter().try_for_each(|pending: cuzk_groth16::PendingProof<Bls12>| pending.finish().map(|_| ()))
            });
            for _ in 0..proofs {
                let pending =
                    prove_start(&self.stream, &self.circuit, &self.key, self.assignment, Randomness::from_os()?)?;
                if send.send(pending).is_err() {
                    break;
                }
            }
            drop(send);
            Ok(finisher.join().map_err(|_| "the finishing thread panicked")??)
        })
        .map(|()| started.elapsed())
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let folder = arguments.plugin_dir.clone().unwrap_or_else(plugin_folder);
    let backend = Loader::new([folder], [] as [PathBuf; 0]).load(&arguments.backend)?;
    let device = open(&backend, &DeviceOptions::default())?;
    let stream = device.stream()?;
    for circuit in &arguments.circuits {
        measure(&arguments, &backend, &Case::recorded(&stream, *circuit)?)?;
    }
    for log_n in &arguments.synthetic {
        measure(&arguments, &backend, &Case::synthetic(&stream, *log_n)?)?;
    }
    Ok(())
}

fn open(backend: &dyn Backend, options: &DeviceOptions) -> Result<Device> {
    Ok(Device::open(backend, 0, options)?)
}

fn measure(arguments: &Arguments, backend: &PluginBackend, case: &Case) -> Result<()> {
    let device = open(backend, &DeviceOptions::default())?;
    let loaded = Loaded::new(&device, case)?;
    let bytes = loaded.prove_fixed()?;
    let cpu = open(&CpuBackend, &DeviceOptions::default())?;
    if Loaded::new(&cpu, case)?.prove_fixed()? != bytes {
        return Err(format!("{}: the proof is not the CPU's", case.name).into());
    }
    eprintln!("{}: {} constraints, the same proof as the CPU's", case.name, case.r1cs.n_constraints());

    let mut runs: Vec<StageTimes> = Vec::new();
    for _ in 0..arguments.runs + 2 {
        runs.push(loaded.prove(Randomness::from_os()?)?.times);
    }
    runs.drain(..2);
    let info = device.info();
    let report = |what: String, milliseconds: f64| {
        Measurement {
            what,
            curve: "bls12-381".to_owned(),
            size: case.name.clone(),
            ours: milliseconds,
            unit: "ms".to_owned(),
            peer: None,
            device: format!("{} ({})", info.name, info.features),
            driver: info.driver.clone(),
        }
        .report(arguments.record.as_deref())
    };
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let stages: Vec<Stage> = runs[0].iter().map(|(stage, _)| *stage).collect();
    for (i, stage) in stages.iter().enumerate() {
        report(format!("stage of a proof: {stage}"), median(runs.iter().map(|run| milliseconds(run[i].1))))?;
    }
    let device_part = |run: &StageTimes| {
        milliseconds(run.iter().filter(|(stage, _)| *stage != Stage::Verify).map(|(_, time)| *time).sum())
    };
    report("proof from the packed assignment, not verified, median".to_owned(), median(runs.iter().map(device_part)))?;
    loaded.back_to_back(2)?;
    report("ten proofs back to back, verified".to_owned(), milliseconds(loaded.back_to_back(10)?))?;
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
