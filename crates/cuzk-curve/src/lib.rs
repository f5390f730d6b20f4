//! Pairing-friendly curves and their device representation.
//!
//! A device knows nothing of Rust types: it sees little-endian 64-bit limbs in Montgomery form. This crate says which
//! curves there are ([`CurveId`], [`Curve`]), promises how their scalars and affine points lie in memory
//! ([`MontgomeryRepr`], [`AffineRepr`]) and casts between the two views without copying ([`repr`]).
//!
//! | | scalar | G1 affine | G2 affine |
//! |---|---|---|---|
//! | BLS12-381 | 4 limbs, R = 2^256 | x, y: 6 limbs each, R = 2^384 | x.c0, x.c1, y.c0, y.c1: 6 limbs each |
//! | BN254 | 4 limbs, R = 2^256 | x, y: 4 limbs each, R = 2^256 | x.c0, x.c1, y.c0, y.c1: 4 limbs each |
//!
//! The point at infinity is the all-zero limbs: (0, 0) lies on neither curve, so the encoding is unambiguous.
//!
//! # Layering
//! The bottom layer: imports nothing of this project, may be imported by every other crate.
//!
//! # References
//! * P. Montgomery, "Modular multiplication without trial division", Math. Comp. 44 (1985).
//! * BLS12-381 and its subgroup checks: M. Scott, <https://eprint.iacr.org/2021/1130>; the arithmetic is `blstrs`'s.
//! * BN254 (also "alt_bn128", EIP-196/197); the arithmetic is `halo2curves`'s.
//!
//! # Example
//! ```
//! use blstrs::{Bls12, Scalar};
//! use cuzk_curve::{Curve, CurveId, repr};
//! use ff::Field;
//!
//! // 1 in Montgomery form is R mod r, not the integer 1.
//! let scalars = [Scalar::ONE, Scalar::ZERO];
//! let limbs = repr::as_limbs(&scalars);
//! assert_eq!(limbs.len(), 8);
//! assert_ne!(limbs[0], 1);
//! assert_eq!(&limbs[4..], &[0; 4]);
//! assert_eq!(repr::copy_from_bytes::<Scalar>(repr::as_bytes(&scalars)).unwrap(), scalars);
//! assert_eq!(Bls12::ID, CurveId::Bls12_381);
//! ```
#![deny(rustdoc::broken_intra_doc_links)]

mod bls12_381;
mod bn254;
mod id;
pub mod repr;

pub use blstrs::Bls12;
pub use halo2curves::bn256::Bn256;
pub use id::{CurveId, GroupId};
pub use pairing;
pub use repr::{AffineRepr, MontgomeryRepr, ScalarRepr};

/// A pairing-friendly curve whose scalars and points have a fixed device representation.
pub trait Curve: pairing::MultiMillerLoop<Fr: ScalarRepr, G1Affine: AffineRepr, G2Affine: AffineRepr> {
    /// What names this curve in files, plans and across the plugin boundary.
    const ID: CurveId;
}

impl Curve for Bls12 {
    const ID: CurveId = CurveId::Bls12_381;
}

impl Curve for Bn256 {
    const ID: CurveId = CurveId::Bn254;
}

/// Calls back with the type of a curve that is known only by its [`CurveId`].
///
/// ```
/// use cuzk_curve::{Curve, CurveId, with_curve};
/// fn two_adicity<C: Curve>() -> u32 {
///     <C::Fr as ff::PrimeField>::S
/// }
/// assert_eq!(with_curve!(CurveId::Bls12_381, C => two_adicity::<C>()), 32);
/// assert_eq!(with_curve!(CurveId::Bn254, C => two_adicity::<C>()), 28);
/// ```
#[macro_export]
macro_rules! with_curve {
    ($id:expr, $curve:ident => $body:expr) => {
        match $id {
            $crate::CurveId::Bls12_381 => {
                type $curve = $crate::Bls12;
                $body
            }
            $crate::CurveId::Bn254 => {
                type $curve = $crate::Bn256;
                $body
            }
        }
    };
}
