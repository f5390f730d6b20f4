//! The CUDA backend: every operation of the device contract on NVIDIA hardware.
//!
//! The driver is opened at run time, so this builds and loads on any machine; without a driver, without a device, or built
//! without kernels it says so ([`Backend::devices`](cuzk_backend::Backend::devices) is an error with the reason) and never
//! falls back to anything else. The kernels are compiled and embedded by `cargo xtask build --backend cuda`, which needs no CUDA
//! installation either.
//!
//! `docs/kernels.md` explains the kernels. On this side of them:
//! * device memory comes from a pool with a cap: what is released while work is pending is given back when that work is
//!   done, and nothing ever waits for the whole device; workspaces are handed on in the order of a stream;
//! * what an operation takes is computed from sizes alone, by the same functions for whoever asks and for whoever
//!   allocates;
//! * pinned memory is allocated once, when the device is opened;
//! * tables of twiddle factors are made on the device when first needed and given up when the room is; they count as reserved, not as
//!   in use;
//! * a device that reports a fault is lost: the cause is logged once, and every later call fails with it.
//!
//! With no cap given, the pool may hold what the driver reports as free less 1/16 of it, and less 512 MiB at least.
//!
//! # Layering
//! Imports `cuzk-backend` and `cuzk-curve`. Imported by `cuzk-backend-cuda-plugin`, which exports it, and by nothing else but what measures
//! it; backends do not import each other.
//!
//! # References
//! * The CUDA driver API, <https://docs.nvidia.com/cuda/cuda-driver-api/>.
//! * P. Montgomery, "Modular multiplication without trial division", Math. Comp. 44 (1985): products, and in parts those
//!   with a known factor.
//! * D. Bernstein and B.-Y. Yang, "Fast constant-time gcd computation and modular inversion",
//!   <https://eprint.iacr.org/2019/266>.
//! * N. Pippenger, "On the evaluation of powers and monomials", SIAM J. Comput. 9 (1980).
//!
//! # Example
//! ```
//! use cuzk_backend::Backend;
//! use cuzk_backend_cuda::CudaBackend;
//!
//! match CudaBackend.devices() {
//!     Ok(devices) => println!("{} devices", devices.len()),
//!     Err(why) => println!("{why}"),
//! }
//! ```
#![deny(rustdoc::broken_intra_doc_links)]

mod backend;
mod device;
mod driver;
mod kernels;
mod memory;
mod msm;
mod ntt;
mod sizing;
mod sparse;

pub use backend::CudaBackend;
pub use sizing::{usable_bytes, workspace};
