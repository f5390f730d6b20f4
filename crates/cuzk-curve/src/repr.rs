//! Zero-copy views of scalars and points as the limbs that a device computes with.
//!
//! All limbs are little-endian `u64` in Montgomery form. A value read from bytes is memory-safe whatever the bytes are,
//! but it is a field element only if its limbs are below the modulus: bytes of unknown origin are checked with
//! [`MontgomeryRepr::is_canonical`] (and, for points, [`AffineRepr::is_on_curve`] and [`AffineRepr::is_torsion_free`]).

use ff::PrimeField;
use group::prime::PrimeCurveAffine;

use crate::{CurveId, GroupId};

#[cfg(not(target_endian = "little"))]
compile_error!("the device representation is little-endian, and so must be the host");

/// A value that is exactly a row of little-endian `u64` limbs.
///
/// # Safety
/// * `size_of::<Self>()` is a multiple of 8, `align_of::<Self>()` is 8, and there is no padding.
/// * Every bit pattern is a value that may be copied, compared and computed with without undefined behaviour.
pub unsafe trait MontgomeryRepr: Copy + Send + Sync + 'static {
    /// Whether every coordinate is below its modulus.
    fn is_canonical(&self) -> bool;
}

/// A scalar: the prime field that circuits are written over.
pub trait ScalarRepr: PrimeField + MontgomeryRepr {
    /// The curve whose scalars these are.
    const CURVE: CurveId;

    /// The modulus r as little-endian limbs (not in Montgomery form).
    const MODULUS: [u64; 4];

    /// A generator of the subgroup of order `2^log_n`, the one that `ff` and bellperson use:
    /// `ROOT_OF_UNITY^(2^(S - log_n))`. `None` if r - 1 has too few factors of two.
    fn root_of_unity(log_n: u32) -> Option<Self> {
        if log_n > Self::S {
            return None;
        }
        let mut omega = Self::ROOT_OF_UNITY;
        for _ in log_n..Self::S {
            omega = omega.square();
        }
        Some(omega)
    }
}

/// An affine point: x then y, infinity is all zero.
pub trait AffineRepr: PrimeCurveAffine<Scalar: ScalarRepr> + MontgomeryRepr {
    /// Which of its curve's groups these are points of.
    const GROUP: GroupId;

    /// The curve.
    const CURVE: CurveId = <Self::Scalar as ScalarRepr>::CURVE;

    /// Whether the coordinates satisfy the curve equation (infinity does).
    fn is_on_curve(&self) -> bool;

    /// Whether a point of the curve lies in the subgroup of prime order r.
    fn is_torsion_free(&self) -> bool;

    /// Reads the compressed encoding that the curve's ecosystem uses (`GroupEncoding::to_bytes` writes it).
    /// `None` unless it is the canonical encoding of a point in the subgroup.
    fn from_compressed(bytes: &[u8]) -> Option<Self>;

    /// All three checks that a point of unknown origin needs before it may enter a computation.
    fn is_valid(&self) -> bool {
        self.is_canonical() && self.is_on_curve() && self.is_torsion_free()
    }
}

/// The limbs of a slice of values.
pub fn as_limbs<T: MontgomeryRepr>(values: &[T]) -> &[u64] {
    // SAFETY: by the contract of `MontgomeryRepr` the slice is `size_of_val(values) / 8` initialised u64 without
    // padding, aligned to 8; the lifetime is that of the borrow.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values) / 8) }
}

/// The limbs of a slice of values, to be overwritten.
pub fn as_limbs_mut<T: MontgomeryRepr>(values: &mut [T]) -> &mut [u64] {
    // SAFETY: as in `as_limbs`; any u64 written is a valid part of a `T` by the contract of `MontgomeryRepr`.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values) / 8) }
}

/// The bytes of a slice of values.
pub fn as_bytes<T: MontgomeryRepr>(values: &[T]) -> &[u8] {
    // SAFETY: as in `as_limbs`, and u8 has no alignment.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of a slice of values, to be overwritten.
pub fn as_bytes_mut<T: MontgomeryRepr>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `as_limbs_mut`, and u8 has no alignment.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// Why bytes cannot be viewed as values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CastError {
    /// The length is no multiple of a value's size.
    #[error("{bytes} bytes are not a whole number of values of {value_bytes} bytes")]
    Length {
        /// Length of the bytes.
        bytes: usize,
        /// Size of one value.
        value_bytes: usize,
    },
    /// The address is not a multiple of 8.
    #[error("the bytes start {misalignment} past a multiple of 8")]
    Alignment {
        /// Address modulo 8.
        misalignment: usize,
    },
}

fn check_cast<T: MontgomeryRepr>(bytes: &[u8], aligned: bool) -> Result<usize, CastError> {
    if !bytes.len().is_multiple_of(size_of::<T>()) {
        return Err(CastError::Length { bytes: bytes.len(), value_bytes: size_of::<T>() });
    }
    let misalignment = bytes.as_ptr().addr() % align_of::<T>();
    if aligned && misalignment != 0 {
        return Err(CastError::Alignment { misalignment });
    }
    Ok(bytes.len() / size_of::<T>())
}

/// Views aligned bytes as values.
///
/// # Errors
/// A length that is no multiple of the value's size, or an unaligned start.
pub fn from_bytes<T: MontgomeryRepr>(bytes: &[u8]) -> Result<&[T], CastError> {
    let len = check_cast::<T>(bytes, true)?;
    // SAFETY: length and alignment were checked; every bit pattern is a `T` by the contract of `MontgomeryRepr`.
    Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), len) })
}

/// Views aligned bytes as values to be overwritten.
///
/// # Errors
/// As [`from_bytes`].
pub fn from_bytes_mut<T: MontgomeryRepr>(bytes: &mut [u8]) -> Result<&mut [T], CastError> {
    let len = check_cast::<T>(bytes, true)?;
    // SAFETY: as in `from_bytes`; `T` has no padding, so whatever is written leaves initialised bytes behind.
    Ok(unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) })
}

/// Copies bytes of any alignment into values.
///
/// # Errors
/// A length that is no multiple of the value's size.
pub fn copy_from_bytes<T: MontgomeryRepr>(bytes: &[u8]) -> Result<Vec<T>, CastError> {
    check_cast::<T>(bytes, false)?;
    Ok(bytes
        .chunks_exact(size_of::<T>())
        // SAFETY: the chunk has the size of a `T`, every bit pattern is a `T`, and the read is an unaligned one.
        .map(|chunk| unsafe { chunk.as_ptr().cast::<T>().read_unaligned() })
        .collect())
}

/// Copies an encoding of the right length and hands it to `group`.
pub(crate) fn decode<G: group::GroupEncoding>(bytes: &[u8]) -> Option<G> {
    let mut encoding = G::Repr::default();
    if encoding.as_ref().len() != bytes.len() {
        return None;
    }
    encoding.as_mut().copy_from_slice(bytes);
    G::from_bytes(&encoding).into()
}

/// Whether little-endian limbs are below a modulus.
pub(crate) fn below(limbs: &[u64], modulus: &[u64]) -> bool {
    limbs.iter().rev().lt(modulus.iter().rev())
}
