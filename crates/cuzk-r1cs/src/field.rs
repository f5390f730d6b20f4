//! Byte and integer views of field elements that do not depend on the endianness of `PrimeField::Repr`.

use ff::PrimeField;

/// True when `F::to_repr` puts the least significant byte first.
///
/// `ff` leaves the order to the implementation. The representation of 1 tells it; a
/// representation of one byte reads the same both ways.
fn repr_is_little_endian<F: PrimeField>() -> bool {
    F::ONE.to_repr().as_ref().first() == Some(&1)
}

/// Length in bytes of the representation of one element.
pub(crate) fn repr_len<F: PrimeField>() -> usize {
    F::Repr::default().as_ref().len()
}

/// The canonical integer in `[0, p)`, least significant byte first.
pub(crate) fn to_le_repr<F: PrimeField>(value: &F) -> F::Repr {
    let mut repr = value.to_repr();
    if !repr_is_little_endian::<F>() {
        repr.as_mut().reverse();
    }
    repr
}

/// Inverse of [`to_le_repr`]; `None` for an integer that is not below the modulus or has another length.
pub(crate) fn from_le_repr<F: PrimeField>(bytes: &[u8]) -> Option<F> {
    let mut repr = F::Repr::default();
    if repr.as_ref().len() != bytes.len() {
        return None;
    }
    repr.as_mut().copy_from_slice(bytes);
    if !repr_is_little_endian::<F>() {
        repr.as_mut().reverse();
    }
    F::from_repr_vartime(repr)
}

/// The modulus, least significant byte first, in the length of a representation.
pub(crate) fn modulus_le<F: PrimeField>() -> Vec<u8> {
    let mut bytes = to_le_repr(&-F::ONE).as_ref().to_vec();
    // p is odd, so p - 1 is even and adding 1 carries nowhere.
    if let Some(low) = bytes.first_mut() {
        *low |= 1;
    }
    bytes
}

/// Largest magnitude that [`small_integer`] reports. A row has at most 2³² terms, so a sum of
/// such integers stays below 2⁶² and an `i64` never overflows.
const SMALL_MAX: u64 = 1 << 30;

/// `Some(k)` with `value = k` in the field and `0 < |k| ≤ 2³⁰`.
pub(crate) fn small_integer<F: PrimeField>(value: &F) -> Option<i32> {
    fn magnitude<F: PrimeField>(value: &F) -> Option<u64> {
        let repr = to_le_repr(value);
        let bytes = repr.as_ref();
        let (low, high) = bytes.split_at(bytes.len().min(8));
        let mut word = [0u8; 8];
        word[..low.len()].copy_from_slice(low);
        let magnitude = u64::from_le_bytes(word);
        (high.iter().all(|&byte| byte == 0) && (1..=SMALL_MAX).contains(&magnitude)).then_some(magnitude)
    }
    match magnitude(value) {
        Some(k) => i32::try_from(k).ok(),
        None => magnitude(&-*value).and_then(|k| i32::try_from(k).ok()).map(|k| -k),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;

    #[derive(PrimeField)]
    #[PrimeFieldModulus = "65537"]
    #[PrimeFieldGenerator = "3"]
    #[PrimeFieldReprEndianness = "big"]
    struct BigEndian([u64; 1]);

    #[test]
    fn bytes_are_little_endian_whatever_the_field_prefers() {
        let big = to_le_repr(&BigEndian::from(258));
        assert_eq!(&big.as_ref()[..3], &[2, 1, 0]);
        let little = to_le_repr(&blstrs::Scalar::from(258));
        assert_eq!(&little.as_ref()[..3], &[2, 1, 0]);
        assert_eq!(from_le_repr(big.as_ref()), Some(BigEndian::from(258)));
        assert_eq!(&modulus_le::<BigEndian>()[..4], &[1, 0, 1, 0]);
        // r of BLS12-381 ends in ...00000001 and starts with 0x73.
        let r = modulus_le::<blstrs::Scalar>();
        assert_eq!((r[0], r[31]), (1, 0x73));
        assert_eq!(from_le_repr::<blstrs::Scalar>(&r), None);
    }

    #[test]
    fn small_integers_are_found_on_both_sides_of_zero() {
        use blstrs::Scalar;
        assert_eq!(small_integer(&Scalar::ZERO), None);
        assert_eq!(small_integer(&Scalar::ONE), Some(1));
        assert_eq!(small_integer(&-Scalar::from(7)), Some(-7));
        assert_eq!(small_integer(&Scalar::from(1 << 30)), Some(1 << 30));
        assert_eq!(small_integer(&-Scalar::from(1 << 30)), Some(-(1 << 30)));
        assert_eq!(small_integer(&Scalar::from((1 << 30) + 1)), None);
        // 2^64 + 1: the low word alone would look small.
        assert_eq!(small_integer(&(Scalar::from(1 << 32).square() + Scalar::ONE)), None);
    }
}
