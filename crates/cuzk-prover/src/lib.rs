//! What stands between bytes of Filecoin's and a proving engine: circuits with their keys on disk, statements as jobs,
//! and the devices to compute on.
//!
//! * [`FilecoinCircuit`] is a circuit in a directory of parameters: a [`CircuitSource`](cuzk_engine::CircuitSource)
//!   whose matrices are recorded once and cached, and whose witnesses have a size that was measured.
//! * [`FilecoinJob`] is a statement: a [`Workload`](cuzk_engine::Workload) that reads its vanilla proofs when its turn
//!   comes, and keeps them no longer than it needs them.
//! * [`describe`] says how large a circuit is before anything of it is loaded, so that a machine that is too small for
//!   it is found out at once.
//! * [`devices`] finds a backend and devices of it, and says why these.
//!
//! # Example
//! ```no_run
//! use cuzk_engine::{Engine, EngineConfig, JobOptions};
//! use cuzk_filecoin::parse_c1;
//! use cuzk_prover::{Directories, FilecoinCircuit, FilecoinJob, devices::{self, Memory, Request}};
//!
//! let found = devices::find(&Request::default())?;
//! let engine = Engine::start(EngineConfig::default(), found.specs(&Memory::default()))?;
//! let statement = parse_c1(&std::fs::read("c1.json")?)?;
//! let directories = Directories { parameters: "/var/tmp/filecoin-proof-parameters".into(), cache: "cache".into() };
//! let circuit = engine.register(FilecoinCircuit::open(statement.circuit_id(), &directories)?)?;
//! let job = engine.submit(circuit, FilecoinJob::of(statement.into()), JobOptions::default());
//! let proof: Vec<u8> = job.wait()?.iter().flat_map(|p| p.proof.to_bytes()).collect();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layering
//! Imports `cuzk-engine`, `cuzk-filecoin`, `cuzk-keys`, `cuzk-plugin` and `cuzk-backend-cpu`; the command line and the
//! daemon import it. It reads no environment variables and prints nothing.
//!
//! # References
//! * Filecoin specification, [proofs](https://spec.filecoin.io/algorithms/pos/).
#![forbid(unsafe_code)]

mod circuit;
pub mod devices;
mod job;
pub mod keys;
mod measure;
mod remembered;
mod size;

pub use circuit::{CircuitError, Directories, FilecoinCircuit, matrices};
pub use job::{FilecoinJob, StatementSource};
pub use measure::WitnessSize;
pub use size::{Described, describe};
