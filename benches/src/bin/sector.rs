//! A sector of any size, production ones as well, without its key: the key is made on the device and stays in memory.
//!
//! A published key of 32 GiB has 47 GB and can't be had everywhere; one from a seed has the same sizes, so a proof takes as long with it.
//! The statement is a synthetic one, from its C1 for a PoRep. Every proof is verified by the engine, and those of the first job by
//! bellperson as well.

#![forbid(unsafe_code)]

use std::{
    collections::VecDeque,
    error::Error,
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use bellperson::groth16::{self, prepare_verifying_key, verify_proof};
use blstrs::Scalar as Fr;
use clap::Parser;
use cuzk_backend::{AssignmentShape, DeviceOptions};
use cuzk_benches::{EngineOptions, Measurement, budget, forget_peak, median, proof_bytes, resident};
use cuzk_curve::Bls12;
use cuzk_engine::{CircuitSource, Engine, EngineConfig, JobOptions, Shutdown, SourceError};
use cuzk_filecoin::{
    CircuitId, ProofKind, Statement, parse_c1,
    synthetic::{self, SealInput},
};
use cuzk_groth16::{CircuitShape, setup_deterministic};
use cuzk_keys::{KeySource, ProvingKey};
use cuzk_prover::{
    FilecoinJob, WitnessSize,
    devices::{Found, Wanted},
    matrices,
};
use cuzk_r1cs::R1cs;
use cuzk_scheduler::TotalBudget;
use cuzk_timeline::{Limits, Recorder, Summary};
use rand_core::OsRng;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Whoever knows it can forge proofs for the key: it is for measurements.
const SEED: [u8; 32] = [7; 32];

/// Proves a synthetic statement of a circuit on an engine, alone and many at once.
#[derive(Parser)]
struct Arguments {
    #[arg(default_value = "porep-32g")]
    circuit: CircuitId,
    /// Sectors of a WindowPoSt
    #[arg(long, default_value_t = 1)]
    sectors: u64,
    /// Jobs one after the other, after one that warms up
    #[arg(long, default_value_t = 2)]
    alone: usize,
    /// Jobs at once
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Of these so many that have not ended, at most
    #[arg(long, default_value_t = 2)]
    concurrency: usize,
    /// Host memory that may be reserved
    #[arg(long, default_value = "24GiB", value_parser = budget)]
    host: TotalBudget,
    #[command(flatten)]
    engine: EngineOptions,
    /// Whether to keep multiples of the key's points on the device; both, one after the other, by false,true
    #[arg(long, value_delimiter = ',', action = clap::ArgAction::Set, default_value = "false")]
    multiples: Vec<bool>,
    /// Keep the recorded matrices here, and take them from here
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Write the waterfall of the jobs at once here
    #[arg(long)]
    html: Option<PathBuf>,
    /// Append the record to this file of benches/results
    #[arg(long)]
    record: Option<String>,
}

/// A circuit and its key in memory.
struct Held {
    name: String,
    r1cs: Arc<R1cs<Fr>>,
    key: Arc<ProvingKey<Bls12>>,
    size: WitnessSize,
}

impl CircuitSource<Bls12> for Held {
    fn name(&self) -> &str {
        &self.name
    }

    fn r1cs(&self) -> std::result::Result<Arc<R1cs<Fr>>, SourceError> {
        Ok(Arc::clone(&self.r1cs))
    }

    fn key(&self) -> std::result::Result<Arc<dyn KeySource<Bls12>>, SourceError> {
        Ok(Arc::clone(&self.key) as _)
    }

    fn assignment(&self, _: &CircuitShape) -> AssignmentShape {
        self.size.bound()
    }

    fn synthesis_bytes(&self, finished: u64) -> u64 {
        self.size.synthesis_bytes(finished)
    }
}

/// What is proved, as it comes.
#[derive(Clone)]
enum Input {
    C1(Arc<Vec<u8>>),
    /// With the bytes of its vanilla proofs.
    Parsed(Statement, u64),
}

impl Input {
    fn synthetic(circuit: CircuitId, sectors: u64) -> Result<Self> {
        if circuit.kind == ProofKind::PoRep {
            let input = SealInput { size: circuit.sector_size, miner: 1000, number: 1, ticket: [1; 32], seed: [2; 32] };
            return Ok(Self::C1(Arc::new(synthetic::c1(&input, &mut OsRng)?)));
        }
        let (statement, bytes) = synthetic::statement(circuit, sectors, &mut OsRng)?;
        Ok(Self::Parsed(statement, bytes))
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::C1(c1) => c1.len() as u64,
            Self::Parsed(_, bytes) => *bytes,
        }
    }

    fn statement(&self) -> Result<Statement> {
        Ok(match self {
            Self::C1(bytes) => parse_c1(bytes)?.into(),
            Self::Parsed(statement, _) => statement.clone(),
        })
    }

    /// A C1 is parsed when the job's first witness is made.
    fn job(&self, circuit: CircuitId, partitions: u32) -> FilecoinJob {
        let input = self.clone();
        FilecoinJob::from_source(circuit, partitions, move || Ok(input.statement().map_err(|e| e.to_string())?))
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let circuit = arguments.circuit;
    let found = arguments.engine.find(Wanted::First)?;

    let input = timed("statement made", || Input::synthetic(circuit, arguments.sectors))?;
    let statement = timed("statement parsed", || input.statement())?;
    let partitions = statement.partitions() as u32;
    let witness = timed("witness of a partition, one thread", || Ok(statement.partition(0)?.witness()?))?;
    let size = WitnessSize::of(&witness, input.bytes());
    println!("{circuit}: {partitions} partitions of {} variables", witness.n_variables());
    drop(witness);
    let r1cs = timed("matrices", || match &arguments.cache {
        Some(cache) => Ok(matrices(circuit, cache, || ())?),
        None => Ok(cuzk_filecoin::record(circuit)?),
    })?;
    let device = found.open(&found.devices()[0], &DeviceOptions::default())?;
    let key = timed("key", || Ok(setup_deterministic::<Bls12>(&device.stream()?, &r1cs, SEED)?))?;
    drop(device);
    let held = Held { name: circuit.to_string(), r1cs: Arc::new(r1cs), key: Arc::new(key), size };

    let circuit_source = Arc::new(held);
    for multiples in arguments.multiples.iter().copied() {
        println!("\nmultiples of the key's points: {multiples}");
        let run = session(&arguments, &found, &circuit_source, &input, &statement, multiples)?;
        report(&arguments, &found, multiples, run)?;
    }
    Ok(())
}

/// What an engine took for its jobs.
struct Run {
    alone: Vec<Duration>,
    together: Duration,
    utilization: Option<f64>,
}

/// Starts an engine and proves.
fn session(
    arguments: &Arguments,
    found: &Found,
    source: &Arc<Held>,
    input: &Input,
    statement: &Statement,
    multiples: bool,
) -> Result<Run> {
    let (circuit, partitions) = (arguments.circuit, statement.partitions() as u32);
    let config = EngineConfig { multiples, ..arguments.engine.config(arguments.host) };
    let recorder = Arc::new(Recorder::new("a sector's proofs", Limits::default()));
    let engine = Engine::start_recorded(config, found.specs(&arguments.engine.memory()), Arc::clone(&recorder))?;
    let registered = engine.register(Arc::clone(source))?;
    let submit = || engine.submit(registered, input.job(circuit, partitions), JobOptions::default());

    // The first one finds neither matrices nor key on the device.
    let first = timed("first job", || Ok(proof_bytes(&submit())?))?;
    let vk = groth16::VerifyingKey::<blstrs::Bls12>::read(&source.key.vk.to_bytes()?[..])?;
    let vk = prepare_verifying_key(&vk);
    for (k, proof) in first.chunks(cuzk_filecoin::PROOF_BYTES_PER_PARTITION).enumerate() {
        let inputs = statement.partition(k)?.public_inputs()?;
        if !verify_proof(&vk, &groth16::Proof::read(proof)?, &inputs)? {
            return Err(format!("{circuit}: bellperson refuses the proof of partition {k}").into());
        }
    }
    println!("bellperson accepts all {partitions} proofs");
    let mut alone = Vec::new();
    for _ in 0..arguments.alone {
        let started = Instant::now();
        proof_bytes(&submit())?;
        alone.push(started.elapsed());
        println!("alone: {:.3} s", started.elapsed().as_secs_f64());
    }
    forget_peak();
    let (begin, started) = (recorder.now(), Instant::now());
    let mut running = VecDeque::new();
    for _ in 0..arguments.jobs {
        if running.len() >= arguments.concurrency {
            running.pop_front().map_or(Ok(Vec::new()), |job| proof_bytes(&job))?;
        }
        running.push_back(submit());
    }
    for job in running {
        proof_bytes(&job)?;
    }
    let together = started.elapsed();
    let timeline = recorder.snapshot(recorder.now()).between(begin, recorder.now());
    let summary = Summary::of(&timeline);
    println!("{summary}");
    if let Some(path) = &arguments.html {
        timeline.write_html(fs::File::create(path)?)?;
    }
    for (pool, usage) in &engine.status().ok_or("the engine has stopped")?.memory {
        println!("{pool:?}: {usage:?}");
    }
    println!("peak resident memory, key and matrices included: {} bytes", resident("VmHWM"));
    engine.shutdown(Shutdown::Drain);
    Ok(Run { alone, together, utilization: summary.utilization() })
}

fn report(arguments: &Arguments, found: &Found, multiples: bool, run: Run) -> Result<()> {
    let Run { alone, together, utilization } = run;
    let device = &found.devices()[0];
    let measurement = |what: &str, size: String, ours: f64, unit: &str| Measurement {
        what: what.to_owned(),
        curve: "bls12_381".to_owned(),
        size,
        ours,
        unit: unit.to_owned(),
        peer: None,
        device: device.name.clone(),
        driver: device.driver.clone(),
    };
    let record = arguments.record.as_deref();
    let circuit = format!("{}{}", arguments.circuit, if multiples { ", multiples" } else { "" });
    if !alone.is_empty() {
        measurement("proof, alone", circuit.clone(), median(alone).as_secs_f64(), "s").report(record)?;
    }
    if arguments.jobs > 0 {
        let size = format!("{} {circuit} at concurrency {}", arguments.jobs, arguments.concurrency);
        let a_job = together.as_secs_f64() / arguments.jobs as f64;
        measurement("proofs, throughput", size.clone(), a_job, "s a proof").report(record)?;
        if let Some(utilization) = utilization {
            measurement("device utilization", size, utilization * 100.0, "%").report(record)?;
        }
    }
    Ok(())
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let started = Instant::now();
    let done = work()?;
    println!("{what}: {:.3} s", started.elapsed().as_secs_f64());
    Ok(done)
}
