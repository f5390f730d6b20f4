//! Proves a number of jobs of two partitions on the CPU backend, writes what happened as a page and as JSON for
//! Perfetto, and prints the summary:
//!
//! ```text
//! cargo run --release -p cuzk-engine --example waterfall -- DIRECTORY [JOBS [CONSTRAINTS]]
//! ```

use std::{env, error::Error, fs::File, io::BufWriter, path::PathBuf, sync::Arc};

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
use blstrs::Scalar;
use cuzk_backend::{Device, DeviceOptions};
use cuzk_curve::Bls12;
use cuzk_engine::{DeviceSpec, Engine, EngineConfig, JobOptions, LoadedCircuit, Shutdown, Witnesses};
use cuzk_groth16::setup_deterministic;
use cuzk_r1cs::{RecordingCs, WitnessCs};
use cuzk_timeline::{Limits, Recorder, Summary};

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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("name a directory")?);
    let jobs: u64 = arguments.next().map_or(Ok(20), |n| n.parse())?;
    let constraints: usize = arguments.next().map_or(Ok(20_000), |n| n.parse())?;

    let options = DeviceOptions { device_memory_limit: 1 << 30, ..DeviceOptions::default() };
    let device = Device::open(&cuzk_backend_cpu::CpuBackend, 0, &options)?;
    let r1cs = RecordingCs::record(Squares { x: 0, constraints })?;
    // A key whose toxic waste everybody knows: for measuring only.
    let key = setup_deterministic::<Bls12>(&device.stream()?, &r1cs, [0; 32])?;

    let recorder = Arc::new(Recorder::new(format!("{jobs} jobs of {constraints} constraints"), Limits::default()));
    let devices = vec![DeviceSpec::opened(device)];
    let engine = Engine::<Bls12>::start_recorded(EngineConfig::default(), devices, Arc::clone(&recorder))?;
    let circuit = engine.register(LoadedCircuit::new("squares", r1cs, key))?;
    let witness = move |job: u64| {
        move |partition: u32| WitnessCs::generate(Squares { x: 2 * job + u64::from(partition), constraints })
    };
    let handles: Vec<_> =
        (0..jobs).map(|job| engine.submit(circuit, Witnesses::new(2, witness(job)), JobOptions::default())).collect();
    for handle in handles {
        handle.wait()?;
    }
    engine.shutdown(Shutdown::Drain);

    let timeline = recorder.snapshot(recorder.now());
    timeline.write_html(BufWriter::new(File::create(directory.join("waterfall.html"))?))?;
    timeline.write_perfetto(BufWriter::new(File::create(directory.join("perfetto.json"))?))?;
    println!("{}", Summary::of(&timeline));
    Ok(())
}
