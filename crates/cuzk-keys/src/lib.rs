//! Groth16 proving and verifying keys, on disk and in memory, for every curve of [`cuzk_curve`].
//!
//! | | in memory | on disk |
//! |---|---|---|
//! | verifying key | [`VerifyingKey`] | bellperson's `.vk`: [`VerifyingKey::read_file`], [`VerifyingKey::write_file`] |
//! | proving key | [`ProvingKey`] | bellperson's `.params` ([`params`]), the native `.cuzkkey` ([`native`]) |
//!
//! A prover takes a `&dyn` [`KeySource`], which all of the last row are: it reads slices of sections, and a key of 60 GB
//! need not be in memory to be used. [`convert`] and [`export_params`] go from one format to the other in bounded memory.
//!
//! Three questions are kept apart. *Is the file what it says?* Sizes, counts and headers are checked against each other and
//! the file's size when it is opened, before memory is taken. *Is it what was written?* Digests, in the native format:
//! [`KeySource::verify_digests`]. *May its points enter a computation?* [`check_points`], once for each content:
//! [`TrustStore`]. Whether anybody can forge proofs under the key is a fourth, that no file can answer: [`Provenance`].
//!
//! Files are read at positions, never mapped: see [`params`]. The library reads no environment variables and prints
//! nothing.
//!
//! # Layering
//! Layer 1: imports [`cuzk_curve`] alone of this project; may be imported by `cuzk-groth16`, the engine and the binaries.
//!
//! # References
//! * J. Groth, "On the Size of Pairing-based Non-interactive Arguments", <https://eprint.iacr.org/2016/260>: the key.
//! * bellperson 0.27, `groth16/params.rs` and `groth16/verifying_key.rs`: the order of its points and the file formats.
//! * J. O'Connor, J.-P. Aumasson, S. Neves, Z. Wilcox-O'Hearn, "BLAKE3: one function, fast everywhere" (2020).
//!
//! # Example
//! ```
//! use cuzk_curve::Bls12;
//! use cuzk_keys::{NativeKeyFile, ProvingKey, Provenance, Section, KeySource, TrustStore, VerifyingKey, ignore_progress};
//! use group::prime::PrimeCurveAffine;
//!
//! // Not a key that proves anything: every point is the generator.
//! let (g1, g2) = (blstrs::G1Affine::generator(), blstrs::G2Affine::generator());
//! let vk = VerifyingKey::<Bls12> {
//!     alpha_g1: g1, beta_g1: g1, beta_g2: g2, gamma_g2: g2, delta_g1: g1, delta_g2: g2, ic: vec![g1; 2],
//! };
//! let key = ProvingKey {
//!     vk, h: vec![g1; 7], l: vec![g1; 3], a: vec![g1; 5], b_g1: vec![g1; 2], b_g2: vec![g2; 2],
//!     provenance: Provenance::LocalSetup,
//! };
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("key.cuzkkey");
//! cuzk_keys::write_native(&key, &path, &mut ignore_progress)?;
//!
//! let file = NativeKeyFile::<Bls12>::open(&path)?;
//! TrustStore::open(directory.path())?.ensure_checked(&file, &mut ignore_progress)?;
//! assert!(!file.provenance().is_production());
//! let mut some = [blstrs::G1Affine::identity(); 2];
//! file.read_g1(Section::A, 3, &mut some)?;
//! assert_eq!(some, [g1; 2]);
//! assert_eq!(ProvingKey::load(&file, &mut ignore_progress)?, key);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod atomic;
mod check;
mod codec;
mod content;
mod digest;
mod error;
mod file;
mod inspect;
mod key;
mod load;
pub mod native;
pub mod params;
mod progress;
mod provenance;
mod section;
mod source;
mod stream;
mod trust;

pub use check::check_points;
pub use digest::{Digest, NotADigest};
pub use error::{Format, KeyError, LooksLike, Origin, PointFault};
pub use file::FileIdentity;
pub use inspect::{Digests, KeyInfo, SectionInfo, inspect};
pub use key::{ProvingKey, VerifyingKey};
pub use native::{NativeKeyFile, convert, write_native};
pub use params::{ParamsFile, export_params};
pub use progress::{Progress, ProgressFn, Stage, ignore_progress};
pub use provenance::Provenance;
pub use section::{Counts, Part, Section};
pub use source::KeySource;
pub use trust::{Trust, TrustStore};
