//! A proving engine: partitions pipelined through synthesis, devices and assembly, under a memory budget.
//!
//! An [`Engine`] stays resident. Circuits are [registered](Engine::register) once with their keys, jobs are
//! [submitted](Engine::submit) and waited for. All decisions (who is synthesized, who goes to which device, whose key
//! leaves) are [`cuzk_scheduler`]'s; the engine performs them with threads and devices, and reports what comes of it.
//!
//! # How it works
//! One owner thread holds all state. It takes an event (a submission, the return of a call, a timer), applies it to
//! the scheduler, and performs the actions that this gives: each hands work to one of the pools, and comes back as a
//! message. No lock is held across work.
//!
//! | pool | threads | work |
//! |---|---|---|
//! | synthesis | one a partition worker, each with a rayon pool of its own | witnesses |
//! | preparing, one pool a device | `gpu_workers_per_device` + 1 | keys, uploads of assignments, freeing, self-tests |
//! | computing, one pool a device | 1: the compute lock | [`cuzk_groth16::prove_prepared`] |
//! | finish | `gpu_threads` | [assembling](cuzk_groth16::PendingProof::finish) every proof, and verifying it |
//! | runtime | 2 | matrices from disk, replay bundles |
//! | callback | 1 | [`JobHandle::on_end`] |
//!
//! While one partition computes, the assignment of the next is [uploaded](cuzk_groth16::prove_prepare), in device
//! memory that was reserved for it; everything else on the device (vectors, workspaces, results) is taken under the
//! compute lock. Each device is planned by itself ([`cuzk_groth16::ResidencyPlan`]): a small one streams what a large
//! one keeps. [`estimate()`] says what would be chosen on a machine that is not there.
//!
//! # What one learns of it
//! [`Engine::subscribe`] tells each step of each partition as it happens, [`JobHandle::report`] where the time of a
//! job went, phase by phase, [`Engine::job_status`] where it is and why it waits, and [`Engine::status`] everything at
//! once.
//!
//! # When something goes wrong
//! A panic on any of these threads is a fault of its attempt. A call to a device that does not return in time
//! ([`EngineConfig::watchdog`]) makes the device count as lost; the thread is replaced, and what it returns late is
//! dropped. After a fault of a device, a wrong proof or a loss the scheduler fences it: everything on it is freed,
//! and it is opened and tested anew before it is used again. The partition is tried again, at last on another device,
//! or its job fails with the cause. A partition whose proof did not verify has its next witness checked against the
//! constraints on the host, so that a bad witness does not fence one device after another. Each failed attempt can be
//! written down: [`ReplayBundle`].
//!
//! A cancelled partition is freed when the kernel that runs and the one enqueued behind it have ended; a witness when
//! it is made, unless its maker asks [`WitnessContext::is_cancelled`].
//!
//! # Layering
//! Imports `cuzk-groth16`, `cuzk-keys`, `cuzk-r1cs`, `cuzk-backend`, `cuzk-curve`, `cuzk-scheduler` and
//! `cuzk-timeline`. It is given opened devices (or ways to open them) and never loads a library; it names no backend
//! and no circuit. The command line and the daemon import it.
//!
//! # References
//! * J. Groth, "On the size of pairing-based non-interactive arguments", EUROCRYPT 2016,
//!   <https://eprint.iacr.org/2016/260>.
//!
//! # Example
//! ```
//! # use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
//! use cuzk_backend::{Device, DeviceOptions};
//! use cuzk_curve::Bls12;
//! use cuzk_engine::{DeviceSpec, Engine, EngineConfig, JobOptions, LoadedCircuit, Shutdown, Witnesses};
//! use cuzk_groth16::{PreparedVerifyingKey, setup};
//! use cuzk_r1cs::{RecordingCs, WitnessCs};
//! # /// I know the square root of a public number.
//! # struct Root(u64);
//! # impl Circuit<blstrs::Scalar> for Root {
//! #     fn synthesize<CS: ConstraintSystem<blstrs::Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//! #         let x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(blstrs::Scalar::from(self.0)))?;
//! #         x.square(cs.namespace(|| "x²"))?.inputize(cs.namespace(|| "public"))
//! #     }
//! # }
//! // `Root(x)` is a circuit: I know a square root x of a public number.
//! let device = Device::open(&cuzk_backend_cpu::CpuBackend, 0, &DeviceOptions::default())?;
//! let r1cs = RecordingCs::record(Root(0))?;
//! let key = setup::<Bls12>(&device.stream()?, &r1cs)?;
//! let verifier = PreparedVerifyingKey::new(&key.vk)?;
//!
//! let engine = Engine::<Bls12>::start(EngineConfig::default(), vec![DeviceSpec::opened(device)])?;
//! let circuit = engine.register(LoadedCircuit::new("square root", r1cs, key))?;
//! let three_partitions = Witnesses::new(3, |index| WitnessCs::generate(Root(10 + u64::from(index))));
//! let job = engine.submit(circuit, three_partitions, JobOptions::default());
//! for (index, finished) in job.wait()?.iter().enumerate() {
//!     assert_eq!(finished.inputs, [blstrs::Scalar::from((10 + index as u64).pow(2))]);
//!     verifier.verify(&finished.proof, &finished.inputs)?;
//! }
//! engine.shutdown(Shutdown::Drain);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod answer;
mod calls;
mod config;
mod device;
mod engine;
mod estimate;
mod job;
mod keys;
mod machine;
mod message;
mod owner;
mod plan;
mod pool;
mod progress;
mod replay;
mod report;
mod status;
mod telemetry;
mod workload;

pub use answer::Answer;
pub use config::{EngineConfig, MemoryConfig, ReplayConfig, ThreadConfig, ThreadPlan};
pub use device::DeviceSpec;
pub use engine::{Engine, Shutdown, StartError};
pub use estimate::{
    DescribedCircuit, DescribedDevice, DeviceEstimate, Estimate, EstimateError, PoolEstimate, estimate,
};
pub use job::{JobError, JobHandle, JobOptions, JobResult};
pub use keys::{EvictOutcome, Evicted, KeyRequestError, PreloadOutcome, Preloaded};
pub use machine::Machine;
pub use plan::RegisterError;
pub use progress::{Progress, ProgressStage};
pub use replay::{DeviceRecord, ReplayBundle};
pub use report::{JobReport, PartitionReport, Phase, PhaseTimes};
pub use status::{CircuitStatus, DeviceStatus, JobStatus, Status, Totals};
pub use workload::{CircuitSource, LoadedCircuit, ReusingWitnesses, SourceError, WitnessContext, Witnesses, Workload};
