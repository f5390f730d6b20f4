//! Rank-1 constraint systems: record the matrices once, evaluate them ever after; assignments in packed form.
//!
//! A circuit is a program. Running it does two things at once: it defines the matrices A, B, C, which are the
//! same for every proof, and it computes the assignment `w`, which is new for every proof. This crate
//! separates them. [`RecordingCs`] runs the blank circuit once and keeps the matrices ([`R1cs`], on disk see
//! [`cache`]); [`WitnessCs`] runs the circuit for its values only ([`Assignment`], one bit a
//! variable for the nine in ten and more that are 0 or 1); [`evaluate_into`] multiplies the two. [`check`] finds
//! the first constraint that does not hold, [`check_circuit`] also its path in the circuit.
//!
//! Everything is generic over [`ff::PrimeField`] and numbers variables the same way: **inputs first**, beginning
//! with the constant ONE at 0, **then auxiliary variables**. The last constraints are `x_i · 0 = 0`, one an input, in order.
//!
//! # Layering
//! Bottom layer. May import no other crate of this workspace; any of them may import it. Does not print, read
//! the environment, or start threads: parallel work runs on the rayon pool of the caller.
//!
//! # References
//! * J. Groth, *On the Size of Pairing-based Non-interactive Arguments*, EUROCRYPT 2016, <https://eprint.iacr.org/2016/260>.
//! * bellman's and bellperson's Groth16 (`generator.rs`, `prover.rs`): order of variables and
//!   constraints, input rows, densities.
//! * G. Jacobson, *Space-efficient Static Trees and Graphs*, FOCS 1989: bitmaps with a rank index.
//!
//! # Example
//! Knowledge of a cube root, recorded, proved satisfiable, and refuted for a wrong claim:
//!
//! ```
//! use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
//! use blstrs::Scalar;
//! use cuzk_r1cs::{CheckError, RecordingCs, WitnessCs, check, evaluate};
//!
//! /// x³ = y for public y.
//! struct CubeRoot {
//!     x: Option<Scalar>,
//!     y: Option<Scalar>,
//! }
//!
//! impl Circuit<Scalar> for CubeRoot {
//!     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
//!         let value = |v: Option<Scalar>| v.ok_or(SynthesisError::AssignmentMissing);
//!         let y = cs.alloc_input(|| "y", || value(self.y))?;
//!         let x = cs.alloc(|| "x", || value(self.x))?;
//!         let square = cs.alloc(|| "x^2", || value(self.x.map(|x| x * x)))?;
//!         cs.enforce(|| "square", |lc| lc + x, |lc| lc + x, |lc| lc + square);
//!         cs.enforce(|| "cube", |lc| lc + square, |lc| lc + x, |lc| lc + y);
//!         Ok(())
//!     }
//! }
//!
//! let r1cs = RecordingCs::record(CubeRoot { x: None, y: None })?;
//! assert_eq!((r1cs.n_inputs(), r1cs.n_aux(), r1cs.n_constraints()), (2, 2, 4));
//!
//! let claim = |y: u64| CubeRoot { x: Some(Scalar::from(3)), y: Some(Scalar::from(y)) };
//! let w = WitnessCs::generate(claim(27))?;
//! check(&r1cs, &w)?;
//! // The rows of A are x, x², and the inputs ONE and y.
//! assert_eq!(evaluate(r1cs.a(), &w)?, [3, 9, 1, 27].map(Scalar::from));
//!
//! let w = WitnessCs::generate(claim(28))?;
//! let Err(CheckError::Unsatisfied(cube)) = check(&r1cs, &w) else { panic!("3³ is 27") };
//! assert_eq!((cube.index, cube.a, cube.c), (1, Scalar::from(9), Scalar::from(28)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod arrays;
mod assignment;
mod builder;
pub mod cache;
mod check;
mod csr;
mod density;
mod evaluate;
mod field;
mod naming;
mod packed;
mod recording;
mod system;
mod witness;

pub use arrays::{CoeffIndices, RowOffsets};
pub use assignment::{Assignment, AssignmentError};
pub use builder::MatrixBuilder;
pub use cache::CacheError;
pub use check::{CheckError, Unsatisfied, check};
pub use csr::{COEFF_MINUS_ONE, COEFF_ONE, CsrMatrix, MatrixError};
pub use density::{Densities, DensityTracker};
pub use evaluate::{ShapeError, evaluate, evaluate_into};
pub use naming::{CheckCircuitError, NamedUnsatisfied, NamingCs, check_circuit};
pub use packed::PackedScalars;
pub use recording::{RecordError, RecordingCs};
pub use system::{R1cs, R1csError};
pub use witness::{WitnessCs, WitnessError};
