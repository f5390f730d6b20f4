//! Multi-scalar multiplication: `Σ sᵢ·Pᵢ`, in G1 and G2 of every curve.
//!
//! * [`msm`]: any scalars, by the bucket method;
//! * [`sum_selected`]: scalars that are 0 or 1, as a bitmap;
//! * [`msm_packed`]: an assignment that is mostly 0 and 1, as it comes from a circuit.
//!
//! Bases may be any points of the subgroup of order r: repeated, opposite, infinite. Results are group elements; all code
//! paths give the same one.
//!
//! # Method
//! Every phase is a sum of groups of affine points, done in pairs with a shared inversion, eight pairs at a time where the
//! processor has AVX-512 IFMA. [`msm`] sorts the points of a window by bucket and sums the buckets; the weighted sum of the
//! buckets is in turn two sums over rows and columns, and so on. Work is shared out in runs of points, not by window: all
//! threads of rayon's current pool are busy whatever the size is.
//!
//! No endomorphism is used: it would halve the windows but double the points, and the additions into buckets, which are
//! nearly all of the work, would remain as many.
//!
//! # Memory
//! [`msm`] works on at most 2^21 points at a time. Each takes, in bytes, its converted form (128 in G1 and 256 in G2 of
//! BLS12-381, 64 and 128 for BN254), 32 for its scalar, and 12 for each window that is sorted at the same time (as many as there
//! are threads, at least 4, but at most all: 15 to 20). The buckets, at most `15 · 2^16`, are points of the same size: 126 MB in G1 of
//! BLS12-381, twice that in G2. Each thread takes about 1 MiB. With 16 threads that makes 0.9 GB in G1 at 2^21 points or any
//! more. [`sum_selected`] needs the threads' part only; [`msm_packed`] 32 bytes for each wide variable besides.
//!
//! # References
//! * N. Pippenger, "On the evaluation of powers and monomials", SIAM J. Comput. 9 (1980).
//! * A. Booth, "A signed binary multiplication technique", Q. J. Mech. Appl. Math. 4 (1951): the signed digits.
//! * D. Bernstein, J. Doumen, T. Lange, J. Oosterwijk, "Faster batch forgery identification", INDOCRYPT 2012: bucket sums.

mod batch_add;
mod buckets;
mod digits;
mod groups;
mod huge;
mod packed;
mod point;
mod sort;

pub use self::packed::{Bits, PackedAssignment};
pub(crate) use self::{
    batch_add::{Ahead, Pairs, Scratch, Segment, batch_add, batch_add_assign},
    buckets::scratch_bytes,
    digits::{SignedScalar, Windows},
    huge::HugeBox,
    point::{Point, export, import},
};

use std::ops::Range;

use cuzk_curve::{AffineRepr, ScalarRepr};
use halo2curves::bn256;

#[cfg(target_arch = "x86_64")]
use crate::field::ifma;
use crate::{
    code_path::{CodePath, Kind},
    field::{
        Quad,
        portable::{BlsFp, BnFp},
    },
    fixed_base,
};

/// Inputs that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MsmError {
    /// Two slices that should have the same length.
    #[error("{what}: expected {expected}, got {actual}")]
    Length {
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        actual: usize,
    },
    /// The rank index does not count the wide variables.
    #[error("rank of word {word}: expected {expected}, got {actual}")]
    Rank {
        /// The word of the bitmap.
        word: usize,
        /// Wide variables before this word, as the bitmap has them.
        expected: usize,
        /// What the index says.
        actual: usize,
    },
}

impl MsmError {
    pub(crate) fn check_len(what: &'static str, expected: usize, actual: usize) -> Result<(), Self> {
        if expected == actual { Ok(()) } else { Err(Self::Length { what, expected, actual }) }
    }
}

/// A point type that this backend computes with: G1 and G2 of BLS12-381 and BN254.
pub trait MsmPoint: AffineRepr<Scalar: ScalarRepr> + sealed::Rows {}

mod sealed {
    use super::*;

    /// What is computed with rows of the base field, once the code path says which. The inputs have been checked.
    pub trait Rows: AffineRepr<Scalar: ScalarRepr> {
        /// See [`msm`](super::msm).
        fn msm(path: CodePath, bases: &[Self], scalars: &[Self::Scalar]) -> Self::Curve;

        /// See [`sum_selected`](super::sum_selected).
        fn sum_selected(path: CodePath, bases: &[Self], selected: Bits<'_>) -> Self::Curve;

        /// See [`msm_packed`](super::msm_packed).
        fn msm_packed(path: CodePath, bases: &[Self], variables: &packed::Variables<'_, Self::Scalar>) -> Self::Curve;

        /// See [`fixed_base_mul`](crate::fixed_base::fixed_base_mul).
        fn fixed_base_mul(path: CodePath, base: &Self, scalars: &[Self::Scalar], out: &mut [Self]);
    }
}

macro_rules! impl_rows {
    ($($affine:ty: $portable:ty, $ifma:ty;)*) => {
        $(
            impl MsmPoint for $affine {}

            impl sealed::Rows for $affine {
                fn msm(path: CodePath, bases: &[Self], scalars: &[Self::Scalar]) -> Self::Curve {
                    impl_rows!(path, $portable, $ifma,
                        F => buckets::msm::<F, Self>(bases.len(), |i| &bases[i], |i| &scalars[i]))
                }

                fn sum_selected(path: CodePath, bases: &[Self], selected: Bits<'_>) -> Self::Curve {
                    impl_rows!(path, $portable, $ifma, F => packed::sum_selected::<F, Self>(bases, selected))
                }

                fn msm_packed(
                    path: CodePath,
                    bases: &[Self],
                    variables: &packed::Variables<'_, Self::Scalar>,
                ) -> Self::Curve {
                    impl_rows!(path, $portable, $ifma, F => packed::msm_packed::<F, Self>(bases, variables))
                }

                fn fixed_base_mul(path: CodePath, base: &Self, scalars: &[Self::Scalar], out: &mut [Self]) {
                    impl_rows!(path, $portable, $ifma, F => fixed_base::mul::<F, Self>(base, scalars, out))
                }
            }
        )*
    };
    ($path:expr, $portable:ty, $ifma:ty, $rows:ident => $body:expr) => {
        match $path.kind() {
            Kind::Scalar => {
                type $rows = $portable;
                $body
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Ifma => {
                type $rows = $ifma;
                $body
            }
        }
    };
}

impl_rows! {
    blstrs::G1Affine: BlsFp, ifma::BlsRow;
    blstrs::G2Affine: Quad<BlsFp>, Quad<ifma::BlsRow>;
    bn256::G1Affine: BnFp, ifma::BnRow;
    bn256::G2Affine: Quad<BnFp>, Quad<ifma::BnRow>;
}

/// `Σ scalars[i]·bases[i]`, on the current thread pool.
///
/// # Errors
/// Different lengths.
pub fn msm<A: MsmPoint>(path: CodePath, bases: &[A], scalars: &[A::Scalar]) -> Result<A::Curve, MsmError> {
    MsmError::check_len("scalars of an MSM", bases.len(), scalars.len())?;
    Ok(A::msm(path, bases, scalars))
}

/// The sum of the bases whose bit is set, on the current thread pool.
///
/// # Errors
/// A bitmap of another length.
pub fn sum_selected<A: MsmPoint>(path: CodePath, bases: &[A], selected: Bits<'_>) -> Result<A::Curve, MsmError> {
    MsmError::check_len("bits that select bases", bases.len(), selected.len())?;
    Ok(A::sum_selected(path, bases, selected))
}

/// `Σ w_v·bases[n(v)]` over the variables v of `range` that have a base, on the current thread pool.
///
/// With a density, the variables whose bit is set have a base, and n(v) counts those in the range before v; without one,
/// all have, and `n(v) = v - range.start`.
///
/// # Errors
/// A range beyond the assignment, a density of another length, or a number of bases other than that of the variables that
/// have one; an assignment whose parts do not fit together, as far as the range goes.
pub fn msm_packed<A: MsmPoint>(
    path: CodePath,
    bases: &[A],
    density: Option<Bits<'_>>,
    assignment: PackedAssignment<'_, A::Scalar>,
    range: Range<usize>,
) -> Result<A::Curve, MsmError> {
    let variables = packed::Variables::new(bases.len(), density, assignment, range)?;
    Ok(A::msm_packed(path, bases, &variables))
}
