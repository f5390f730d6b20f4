//! Groth16 over a device: setup, proofs with a split start and finish, strict verification.
//!
//! A proof is made in two halves. [`prove_start`] enqueues everything on the device, from the packed assignment to the
//! results of the multi-scalar multiplications, and returns when the device has finished; by then the evaluation vectors
//! and the device's copy of the assignment are freed. [`PendingProof::finish`] collects the results, assembles the proof and
//! verifies it: an unverified proof is never handed out. With r and s given the proof is bit-identical to bellperson's
//! for the same key and witness.
//!
//! | step | where |
//! |---|---|
//! | constraint system onto the device | [`DeviceCircuit`] |
//! | what of the key lies where, and what a proof takes | [`ResidencyPlan`] |
//! | proving key onto the device | [`DeviceKey`] |
//! | A·w, B·w, quotient, five MSMs | [`prove_start`]; in two parts, and cancellable: [`prove_prepare`], [`prove_prepared`] |
//! | (A, B, C) from the five sums | [`PendingProof::finish`] |
//! | QAP at τ, the key's points | [`setup`] |
//! | pairing check | [`PreparedVerifyingKey`] |
//!
//! # Layering
//! Imports `cuzk-curve`, `cuzk-r1cs`, `cuzk-backend`, `cuzk-keys`. It works on any [`cuzk_backend::Device`] and names none;
//! the engine and the command line import it.
//!
//! # References
//! * J. Groth, "On the size of pairing-based non-interactive arguments", EUROCRYPT 2016, <https://eprint.iacr.org/2016/260>.
//! * R. Gennaro, C. Gentry, B. Parno, M. Raykova, "Quadratic span programs and succinct NIZKs without PCPs",
//!   <https://eprint.iacr.org/2012/215>: the reduction from constraints to polynomials.
//!
//! # Example
//! ```
//! use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError, num::AllocatedNum};
//! use cuzk_backend::{Device, DeviceOptions};
//! use cuzk_curve::Bls12;
//! use cuzk_groth16::{DeviceCircuit, DeviceKey, PreparedVerifyingKey, Randomness, prove_start, setup};
//! use cuzk_r1cs::{RecordingCs, WitnessCs};
//!
//! /// I know the square root of a public number.
//! struct Root(u64);
//! impl Circuit<blstrs::Scalar> for Root {
//!     fn synthesize<CS: ConstraintSystem<blstrs::Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//!         let x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(blstrs::Scalar::from(self.0)))?;
//!         x.square(cs.namespace(|| "x²"))?.inputize(cs.namespace(|| "public"))
//!     }
//! }
//! let r1cs = RecordingCs::record(Root(0))?;
//! let assignment = WitnessCs::generate(Root(3))?;
//!
//! let device = Device::open(&cuzk_backend_cpu::CpuBackend, 0, &DeviceOptions::default())?;
//! let key = setup::<Bls12>(&device.stream()?, &r1cs)?;
//! let circuit = DeviceCircuit::load(&device, &r1cs)?;
//! let device_key = DeviceKey::load(&device, &key)?;
//! let pending = prove_start(&device.stream()?, &circuit, &device_key, &assignment, Randomness::from_os()?)?;
//! let proof = pending.finish()?.proof;
//! PreparedVerifyingKey::new(&key.vk)?.verify(&proof, &[blstrs::Scalar::from(9u64)])?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod circuit;
mod error;
mod key;
mod pace;
mod proof;
mod prove;
pub mod qap;
mod residency;
mod setup;
mod verify;

pub use circuit::DeviceCircuit;
pub use error::{ProveError, SetupError, VerifyError};
pub use key::DeviceKey;
pub use proof::{Proof, proof_bytes};
pub use prove::{
    FinishedProof, PendingProof, PreparedProof, Randomness, Stage, StageTimes, prove_prepare, prove_prepared,
    prove_start,
};
pub use residency::{
    Budget, CircuitShape, Part, Placement, ResidencyError, ResidencyPlan, SectionPlan, Sizing, assignment_shape,
    with_margin,
};
pub use setup::{setup, setup_deterministic};
pub use verify::{PreparedVerifyingKey, decode_inputs};
