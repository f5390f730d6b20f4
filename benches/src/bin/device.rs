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
    Budget, CircuitShape, DeviceCircuit, DeviceKey, FinishedProof, Randomness, ResidencyError, ResidencyPlan, Stage,
    StageTimes, assignment_shape, prove_start, setup_deterministic,
};
use cuzk_keys::ProvingKey;
use cuzk_plugin::{Loader, PluginBackend};
use cuzk_r1cs::{Assignment, R1cs, RecordingCs, WitnessCs};
use cuzk_tests::{Fixture, plugin_folder, recorded_seed};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Measures proofs on a device, after comparing their bytes with the CPU's.
#[derive(Parser)]
struct Arguments {
    /// Circuits with recorded inputs; porep-2k if there are no synthetic ones either
    #[arg(long, value_delimiter = ',')]
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
    /// Keep multiples of the key's points where they fit
    #[arg(long)]
    multiples: bool,
    /// Prove within these caps of device memory in MiB, too
    #[arg(long, value_delimiter = ',')]
    caps: Vec<u64>,
    /// Caps in MiB that must be refused, with numbers, before anything is allocated
    #[arg(long, value_delimiter = ',')]
    refused_caps: Vec<u64>,
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

/// Pinned memory that a plan may ask for.
const PINNED_LIMIT: u64 = 64 << 30;

/// A case on a device.
struct Loaded<'a> {
    device: Device,
    plan: ResidencyPlan,
    stream: Stream,
    circuit: DeviceCircuit,
    key: DeviceKey<Bls12>,
    assignment: &'a Assignment<Fr>,
}

/// What a plan says, or why there is none.
fn plan(device: &Device, case: &Case, multiples: bool) -> Result<std::result::Result<ResidencyPlan, ResidencyError>> {
    let budget = Budget { pinned_bytes: PINNED_LIMIT, multiples, ..Budget::free(&device.memory()?) };
    Ok(ResidencyPlan::new(device, &budget, &CircuitShape::of(&case.r1cs), &assignment_shape(&case.assignment)))
}

impl<'a> Loaded<'a> {
    /// On a device with so many bytes, or all there are.
    fn new(backend: &dyn Backend, cap: u64, multiples: bool, case: &'a Case) -> Result<Self> {
        let mut options = DeviceOptions { device_memory_limit: cap, ..DeviceOptions::default() };
        let first = open(backend, &options)?;
        let plan = plan(&first, case, multiples)??;
        options.pinned_bytes = plan.pinned_bytes().max(first.memory()?.pinned.capacity);
        drop(first);
        let device = open(backend, &options)?;
        Ok(Self {
            stream: device.stream()?,
            circuit: DeviceCircuit::load(&device, &case.r1cs)?,
            key: DeviceKey::load_with(&device, &case.key, &plan, &mut |_, _| {})?,
            assignment: &case.assignment,
            device,
            plan,
        })
    }

    fn prove(&self, randomness: Randomness<Fr>) -> Result<FinishedProof<Bls12>> {
        Ok(prove_start(&self.stream, &self.circuit, &self.key, self.assignment, randomness)?.finish()?)
    }

    /// With r and s that give the same bytes each time.
    fn prove_fixed(&self) -> Result<Vec<u8>> {
        Ok(self.prove(Randomness::insecure(Fr::from(11), Fr::from(13)))?.proof.to_bytes())
    }

    /// So many proofs, each started when the device is done with the one before, which is finished and verified meanwhile: the time from
    /// the first start to the last proof.
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
    let mut arguments = Arguments::parse();
    if arguments.circuits.is_empty() && arguments.synthetic.is_empty() {
        arguments.circuits.push("porep-2k".parse()?);
    }
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
    let loaded = Loaded::new(backend, 0, arguments.multiples, case)?;
    for line in loaded.plan.to_string().lines() {
        eprintln!("{}: {line}", case.name);
    }
    let bytes = loaded.prove_fixed()?;
    if Loaded::new(&CpuBackend, 0, false, case)?.prove_fixed()? != bytes {
        return Err(format!("{}: the proof is not the CPU's", case.name).into());
    }
    eprintln!("{}: {} constraints, the same proof as the CPU's", case.name, case.r1cs.n_constraints());

    let mut runs: Vec<StageTimes> = Vec::new();
    for _ in 0..arguments.runs + 2 {
        runs.push(loaded.prove(Randomness::from_os()?)?.times);
    }
    runs.drain(..2);
    let info = loaded.device.info().clone();
    let measurement = |what: String, ours: f64, unit: &str, peer: Option<(String, f64)>| {
        Measurement {
            what,
            curve: "bls12-381".to_owned(),
            size: case.name.clone(),
            ours,
            unit: unit.to_owned(),
            peer,
            device: format!("{} ({})", info.name, info.features),
            driver: info.driver.clone(),
        }
        .report(arguments.record.as_deref())
    };
    let report = |what: String, milliseconds: f64| measurement(what, milliseconds, "ms", None);
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
    let peak = |loaded: &Loaded<'_>| -> Result<(f64, Option<(String, f64)>)> {
        let predicted = ("predicted".to_owned(), loaded.plan.predicted_peak() as f64);
        Ok((loaded.device.memory()?.device.peak as f64, Some(predicted)))
    };
    let uploaded = loaded.device.memory()?.uploaded;
    loaded.prove_fixed()?;
    let uploaded = loaded.device.memory()?.uploaded - uploaded;
    let witness = ("packed assignment".to_owned(), case.assignment.bytes() as f64);
    measurement("bytes to the device for a proof".to_owned(), uploaded as f64, "bytes", Some(witness))?;
    let (bytes_used, predicted) = peak(&loaded)?;
    measurement("peak of device memory".to_owned(), bytes_used, "bytes", predicted)?;
    drop(loaded);

    for cap in &arguments.caps {
        let loaded = Loaded::new(backend, cap << 20, arguments.multiples, case)?;
        for _ in 0..2 {
            if loaded.prove_fixed()? != bytes {
                return Err(format!("{} within {cap} MiB: the proof is another one", case.name).into());
            }
        }
        let (bytes_used, predicted) = peak(&loaded)?;
        if bytes_used > (cap << 20) as f64 {
            return Err(format!("{} within {cap} MiB took {bytes_used} bytes", case.name).into());
        }
        measurement(format!("peak of device memory, cap {cap} MiB, same proof"), bytes_used, "bytes", predicted)?;
        let time = device_part(&loaded.prove(Randomness::from_os()?)?.times);
        report(format!("proof from the packed assignment, not verified, cap {cap} MiB"), time)?;
    }
    for cap in &arguments.refused_caps {
        let device = open(backend, &DeviceOptions { device_memory_limit: cap << 20, ..DeviceOptions::default() })?;
        match plan(&device, case, arguments.multiples)? {
            Err(refusal) => eprintln!("{} within {cap} MiB: {refusal}", case.name),
            Ok(plan) => return Err(format!("{} within {cap} MiB is possible: {plan}", case.name).into()),
        }
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
