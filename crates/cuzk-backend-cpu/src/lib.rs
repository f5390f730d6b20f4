//! The CPU backend: number-theoretic transforms, multi-scalar multiplication and matrix evaluation on all cores.
//!
//! [`CpuBackend`] offers the host as a device of the contract in `cuzk-backend`. What it computes with is public too, for
//! programs that want one operation and no device: [`ntt`], [`msm`], [`fixed_base`]. These run in rayon's current thread pool.
//!
//! Code paths ([`CodePath`]) are chosen at run time: AVX-512 IFMA, eight elements at a time, or scalar code for every other
//! processor. Both give the same bytes, and so does any number of threads.
//!
//! # Layering
//! Imports `cuzk-backend` (the contract), `cuzk-curve` (types and their limbs) and `cuzk-r1cs` (the evaluation of matrices, which
//! exists there once). No other backend. Imported by programs that link it in, and by its plugin.
//!
//! Unsafe code is needed for vector instructions and for several threads that write disjoint parts of one buffer; it is confined
//! to `ntt`, `field`, `msm` and `fixed_base`. The device itself has none.
//!
//! # References
//! * Transforms: D. Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990).
//! * Field arithmetic: P. Montgomery, Math. Comp. 44 (1985); S. Gueron, V. Krasnov, "Accelerating big integer arithmetic using
//!   Intel IFMA extensions", ARITH 2016.
//! * Multi-scalar multiplication: see [`msm`].
//!
//! # Example
//! ```
//! use cuzk_backend::{Coset, Device, DeviceOptions, Direction, NttPlan, Order};
//! use cuzk_backend_cpu::CpuBackend;
//! use cuzk_curve::{CurveId, repr};
//! use blstrs::Scalar;
//! use ff::Field;
//!
//! // The polynomial 3 + x, evaluated at 1 and -1.
//! let device = Device::open(&CpuBackend, 0, &DeviceOptions { pinned_bytes: 1 << 20, ..DeviceOptions::default() })?;
//! let stream = device.stream()?;
//! let mut scalars = [Scalar::from(3), Scalar::ONE];
//! let buffer = device.alloc_for::<Scalar>(2)?;
//! stream.upload_bytes(repr::as_bytes(&scalars), &buffer, 0)?;
//! let plan = NttPlan {
//!     curve: CurveId::Bls12_381,
//!     log_n: 1,
//!     direction: Direction::Forward,
//!     coset: Coset::One,
//!     order: Order::Natural,
//! };
//! stream.ntt(&plan, &buffer)?;
//! stream.download_bytes(&buffer, 0, repr::as_bytes_mut(&mut scalars))?;
//! assert_eq!(scalars, [4, 2].map(Scalar::from));
//! # Ok::<(), cuzk_backend::BackendError>(())
//! ```
#![deny(rustdoc::broken_intra_doc_links)]

mod backend;
mod code_path;
mod device;
mod field;
pub mod fixed_base;
mod host;
mod memory;
pub mod msm;
pub mod ntt;
mod objects;
mod operations;
mod workspace;

pub use backend::CpuBackend;
pub use code_path::CodePath;
pub use workspace::workspace;
