//! What a timeline costs: proves the same jobs with and without a recorder, in turns in one process, and prints the
//! ratio of the two medians:
//!
//! ```text
//! cargo run --release -p cuzk-engine --example recording_cost -- [ROUNDS [JOBS [CONSTRAINTS]]]
//! ```
//!
//! The smaller the circuit, the more events a second, and the harsher the comparison.

use std::{
    env,
    error::Error,
    sync::Arc,
    time::{Duration, Instant},
};

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
use blstrs::Scalar;
use cuzk_backend::{Device, DeviceOptions};
use cuzk_curve::Bls12;
use cuzk_engine::{CircuitSource, DeviceSpec, Engine, EngineConfig, JobOptions, LoadedCircuit, Shutdown, Witnesses};
use cuzk_groth16::setup_deterministic;
use cuzk_r1cs::{RecordingCs, WitnessCs};
use cuzk_timeline::{Limits, Recorder};

/// A number that, squared again and again, gives a public one.
struct Squares {
    x: u64,
    constraints: usize,
}

impl Circuit<Scalar> for Squares {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(Scalar::from(self.x)))?;
        for step in 0..self.constraints {
            x = x.square(cs.namespace(|| format!("square {step}")))?;
        }
        x.inputize(cs.namespace(|| "public"))
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = env::args().skip(1).map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    let [rounds, jobs, constraints] = [(0, 9), (1, 20), (2, 500)].map(|(i, n)| *arguments.get(i).unwrap_or(&n));

    let options = DeviceOptions { device_memory_limit: 1 << 30, ..DeviceOptions::default() };
    let device = Device::open(&cuzk_backend_cpu::CpuBackend, 0, &options)?;
    let r1cs = RecordingCs::record(Squares { x: 0, constraints })?;
    // A key whose toxic waste everybody knows: for measuring only.
    let key = setup_deterministic::<Bls12>(&device.stream()?, &r1cs, [0; 32])?;
    let circuit: Arc<dyn CircuitSource<Bls12>> = Arc::new(LoadedCircuit::new("squares", r1cs, key));

    let mut spans = 0;
    let mut run = |recorded: bool| -> Result<Duration, Box<dyn Error>> {
        let devices = vec![DeviceSpec::opened(device.clone())];
        let recorder = Arc::new(Recorder::new("overhead", Limits::default()));
        let engine = match recorded {
            true => Engine::<Bls12>::start_recorded(EngineConfig::default(), devices, Arc::clone(&recorder))?,
            false => Engine::<Bls12>::start(EngineConfig::default(), devices)?,
        };
        let id = engine.register(Arc::clone(&circuit))?;
        engine.preload(id).wait()?;
        let began = Instant::now();
        let witness = move |index: u32| WitnessCs::generate(Squares { x: u64::from(index), constraints });
        let handles: Vec<_> =
            (0..jobs).map(|_| engine.submit(id, Witnesses::new(10, witness), JobOptions::default())).collect();
        for handle in handles {
            handle.wait()?;
        }
        let took = began.elapsed();
        engine.shutdown(Shutdown::Drain);
        spans = spans.max(recorder.snapshot(recorder.now()).spans.len());
        Ok(took)
    };
    // Whatever is slower the first time.
    run(true)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        without.push(run(false)?);
        with.push(run(true)?);
    }
    let (with, without) = (median(with), median(without));
    println!("{jobs} jobs of 10 partitions of {constraints} constraints, medians of {} rounds:", rounds.max(1));
    println!("recorded {with:.4} s ({spans} spans), not recorded {without:.4} s, ratio {:.4}", with / without);
    Ok(())
}
