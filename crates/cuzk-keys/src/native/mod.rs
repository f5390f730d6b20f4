//! The native format `.cuzkkey`: points as a device holds them, so that loading is reading.
//!
//! A header of 4 KiB (curve, provenance, where each section lies and its digest, a digest of the header itself), then
//! seven sections of affine points in Montgomery limbs (see [`cuzk_curve`]), each at a multiple of 4 KiB and filled up
//! with zeros: `alpha_g1 beta_g1 delta_g1 ic[]`, `beta_g2 gamma_g2 delta_g2`, `h`, `l`, `a`, `b_g1`, `b_g2`. The byte by
//! byte description is `docs/formats/native-key.md`.
//!
//! Digests find damage, not malice: whoever can write the file can write its digests. Points of unknown origin are
//! checked by [`check_points`](crate::check_points) in this format as in any other.
//!
//! As [`crate::params`], the file is read at positions and never mapped.

mod file;
mod header;
mod write;

pub use file::NativeKeyFile;
pub use header::VERSION;
pub use write::{convert, write_native};

pub(crate) use file::curve_of;
pub(crate) use header::MAGIC;
