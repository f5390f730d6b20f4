//! Many proofs at once on an engine: the same bytes as one by one, how much more a minute, how busy the device is, and whether the
//! process stays within the memory that was admitted.
//!
//! Keys are the deterministic ones of the recorded sectors, made on the device if the directory of parameters lacks them.

#![forbid(unsafe_code)]

use std::{
    collections::VecDeque,
    error::Error,
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use blstrs::Scalar as Fr;
use clap::Parser;
use cuzk_backend::DeviceOptions;
use cuzk_benches::{EngineOptions, Measurement, budget, forget_peak, proof_bytes, resident};
use cuzk_curve::Bls12;
use cuzk_engine::{Engine, JobHandle, JobOptions, Shutdown, SourceError, WitnessContext, Workload};
use cuzk_filecoin::CircuitId;
use cuzk_groth16::{ProveError, Randomness, setup_deterministic};
use cuzk_keys::write_native;
use cuzk_prover::{
    Directories, FilecoinCircuit, FilecoinJob,
    devices::{self, Found, Wanted},
    keys::KeyPaths,
    matrices,
};
use cuzk_r1cs::Assignment;
use cuzk_scheduler::{CircuitId as Registered, Pool, PoolUsage, TotalBudget};
use cuzk_tests::{Fixture, recorded_seed};
use cuzk_timeline::{Limits, Recorder, Summary, Timeline};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Proves on an engine, one by one and many at once.
#[derive(Parser)]
struct Arguments {
    /// What to prove: circuits with recorded inputs, each with a number of jobs
    #[arg(long, value_delimiter = ',', default_value = "winning-2k=8,wpost-2k=8,porep-2k=4")]
    jobs: Vec<Wish>,
    /// Jobs that are submitted and have not ended, at most
    #[arg(long, default_value_t = 20)]
    concurrency: usize,
    /// Of the jobs, this many of each circuit are also proved one by one, for comparison
    #[arg(long, default_value_t = 4)]
    alone: usize,
    /// On all usable devices of the backend, not only the first
    #[arg(long)]
    all_devices: bool,
    /// Host memory that may be reserved, such as 2GiB
    #[arg(long, default_value = "auto", value_parser = budget)]
    host: TotalBudget,
    #[command(flatten)]
    engine: EngineOptions,
    /// Where keys are, and are put
    #[arg(long, default_value = "target/engine-keys")]
    param_dir: PathBuf,
    /// Write the waterfall of the run here
    #[arg(long)]
    html: Option<PathBuf>,
    /// Append the record to this file of benches/results
    #[arg(long)]
    record: Option<String>,
}

#[derive(Clone)]
struct Wish {
    circuit: CircuitId,
    jobs: usize,
}

impl std::str::FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (circuit, jobs) = text.split_once('=').ok_or("CIRCUIT=NUMBER")?;
        let circuit = circuit.parse().map_err(|e| format!("{e}"))?;
        Ok(Self { circuit, jobs: jobs.parse().map_err(|e| format!("{jobs}: {e}"))? })
    }
}

/// A job with the r and s of the recorded proofs.
struct Fixed(FilecoinJob);

impl Workload<Bls12> for Fixed {
    fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    fn witness(
        &self,
        partition: u32,
        context: &mut WitnessContext<Fr>,
    ) -> std::result::Result<Assignment<Fr>, SourceError> {
        self.0.witness(partition, context)
    }

    fn randomness(&self, partition: u32) -> std::result::Result<Randomness<Fr>, ProveError> {
        let [r, s] = [11, 13].map(|first: u64| Fr::from(first + u64::from(partition)));
        Ok(Randomness::insecure(r, s))
    }
}

/// A circuit that is known to an engine, and how often its statement is proved.
struct Case {
    circuit: CircuitId,
    registered: Registered,
    jobs: usize,
}

impl Case {
    fn submit(&self, engine: &Engine<Bls12>) -> Result<JobHandle<Bls12>> {
        let (_, statement) = Fixture::of(self.circuit).statements()?.swap_remove(0);
        Ok(engine.submit(self.registered, Fixed(FilecoinJob::of(statement)), JobOptions::default()))
    }
}

/// The deterministic key of the circuit's recorded proofs, in a directory.
fn make_key(found: &Found, circuit: CircuitId, directories: &Directories) -> Result<()> {
    let paths = KeyPaths::of(circuit, &directories.parameters)?;
    if paths.existing().is_some() {
        return Ok(());
    }
    let started = Instant::now();
    fs::create_dir_all(&directories.parameters)?;
    let r1cs = matrices(circuit, &directories.cache, || ())?;
    let device = found.open(&found.devices()[0], &DeviceOptions::default())?;
    let key = setup_deterministic::<Bls12>(&device.stream()?, &r1cs, recorded_seed(circuit)?)?;
    write_native(&key, &paths.native, &mut cuzk_keys::ignore_progress)?;
    println!("key of {circuit}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let directories = Directories { parameters: arguments.param_dir.clone(), cache: arguments.param_dir.join("cache") };
    let found = arguments.engine.find(if arguments.all_devices { Wanted::All } else { Wanted::First })?;
    for wish in &arguments.jobs {
        make_key(&found, wish.circuit, &directories)?;
    }
    let empty = resident("VmRSS");
    let recorder = Arc::new(Recorder::new("many proofs at once", Limits::default()));
    let config = arguments.engine.config(arguments.host);
    let engine = Engine::start_recorded(config, found.specs(&arguments.engine.memory()), Arc::clone(&recorder))?;
    let mut cases = Vec::new();
    for Wish { circuit, jobs } in arguments.jobs.iter().cloned() {
        let registered = engine.register(FilecoinCircuit::open(circuit, &directories)?)?;
        cases.push(Case { circuit, registered, jobs });
    }

    // One by one: the first warms up; what it gives is what was recorded, and what every later one must give.
    let mut expected = Vec::new();
    let mut alone = Duration::ZERO;
    for case in &cases {
        let proof = proof_bytes(&case.submit(&engine)?)?;
        if proof != Fixture::of(case.circuit).read("proof-fixed-rs-p0.bin") {
            return Err(format!("{}: other bytes than bellperson's", case.circuit).into());
        }
        expected.push(proof);
        let started = Instant::now();
        for _ in 0..arguments.alone {
            proof_bytes(&case.submit(&engine)?)?;
        }
        alone += started.elapsed().mul_f64(case.jobs as f64 / arguments.alone.max(1) as f64);
    }

    // Many at once, in turns.
    let turns = cases.iter().map(|case| case.jobs).max().unwrap_or(0);
    let turn = |turn: usize| cases.iter().enumerate().filter(move |(_, case)| turn < case.jobs).map(|(index, _)| index);
    let mut waiting: VecDeque<usize> = (0..turns).flat_map(turn).collect();
    let total = waiting.len();
    forget_peak();
    let (begin, started) = (recorder.now(), Instant::now());
    let mut running: VecDeque<(usize, JobHandle<Bls12>)> = VecDeque::new();
    while let Some(case) = waiting.pop_front() {
        running.push_back((case, cases[case].submit(&engine)?));
        while running.len() >= arguments.concurrency || (waiting.is_empty() && !running.is_empty()) {
            let ended = running.iter().position(|(_, job)| job.try_result().is_some());
            let Some((case, job)) = ended.and_then(|position| running.remove(position)) else {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            };
            if proof_bytes(&job)? != expected[case] {
                return Err(format!("{}: other bytes than one by one", cases[case].circuit).into());
            }
        }
    }
    let together = started.elapsed();
    let timeline = recorder.snapshot(recorder.now()).between(begin, recorder.now());
    let peak = resident("VmHWM");
    report(&arguments, &found, &engine, &timeline, &Run { total, alone, together, empty, peak })?;
    engine.shutdown(Shutdown::Drain);
    Ok(())
}

struct Run {
    total: usize,
    /// As long as the same jobs would take one by one.
    alone: Duration,
    together: Duration,
    /// Resident bytes before the engine was started.
    empty: u64,
    /// And at the most while it ran.
    peak: u64,
}

fn report(arguments: &Arguments, found: &Found, engine: &Engine<Bls12>, timeline: &Timeline, run: &Run) -> Result<()> {
    let summary = Summary::of(timeline);
    println!("{summary}");
    if let Some(path) = &arguments.html {
        timeline.write_html(fs::File::create(path)?)?;
    }
    let jobs: Vec<_> = arguments.jobs.iter().map(|w| format!("{} {}", w.jobs, w.circuit)).collect();
    let size = format!("{} at concurrency {}", jobs.join(", "), arguments.concurrency);
    let device = &found.devices()[0];
    let devices = match found.devices().len() {
        1 => device.name.clone(),
        n => format!("{n} x {}", device.name),
    };
    let measurement = |what: &str, ours: f64, unit: &str, peer: Option<(String, f64)>| Measurement {
        what: what.to_owned(),
        curve: "bls12_381".to_owned(),
        size: size.clone(),
        ours,
        unit: unit.to_owned(),
        peer,
        device: devices.clone(),
        driver: device.driver.clone(),
    };
    let per_job = |time: Duration| time.as_secs_f64() / run.total as f64;
    let record = arguments.record.as_deref();
    let one_by_one = (arguments.alone > 0).then(|| ("one by one".to_owned(), per_job(run.alone)));
    measurement("proofs on an engine, the same bytes as one by one", per_job(run.together), "s a job", one_by_one)
        .report(record)?;
    if let Some(utilization) = summary.utilization() {
        measurement("device utilization", utilization * 100.0, "%", None).report(record)?;
    }
    let status = engine.status().ok_or("the engine has stopped")?;
    for (pool, usage) in &status.memory {
        println!("{pool:?}: {usage:?}");
    }
    // The CPU's own memory is the process's; another device's pinned memory is taken as a whole when it is opened.
    let on_cpu = found.backend().name() == devices::CPU;
    let resident_bytes = |(pool, usage): &(Pool, PoolUsage)| match pool {
        Pool::Host => usage.high_water,
        Pool::Pinned if !on_cpu => usage.capacity,
        Pool::Pinned | Pool::Device(_) if on_cpu => usage.high_water,
        Pool::Pinned | Pool::Device(_) => 0,
    };
    let admitted: u64 = status.memory.iter().map(resident_bytes).sum();
    println!("resident: {} bytes without engine, peak {}, admitted at most {admitted}", run.empty, run.peak);
    let predicted = Some(("without engine + admitted".to_owned(), (run.empty + admitted) as f64));
    measurement("peak resident memory", run.peak as f64, "bytes", predicted).report(record)?;
    Ok(())
}
