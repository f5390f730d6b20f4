//! Signed digits of scalars.

use cuzk_curve::{ScalarRepr, repr};

use super::batch_add::NEGATIVE;
use crate::field::constants;

/// A scalar as a sign and the absolute value of its representative nearest to zero.
///
/// Bit 255 is the sign. The absolute value is shifted by one bit, so that every window finds the highest bit of the window
/// below it in one place, also the lowest window.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct SignedScalar([u8; 32]);

impl SignedScalar {
    pub(crate) const ZERO: Self = SignedScalar([0; 32]);

    #[inline(always)]
    pub(crate) fn new<S: ScalarRepr>(scalar: &S) -> Self {
        let value = from_montgomery::<S>(scalar);
        let mut negated = [0; 4];
        let mut borrow = false;
        for i in 0..4 {
            let (d, b1) = <S as ScalarRepr>::MODULUS[i].overflowing_sub(value[i]);
            let (d, b2) = d.overflowing_sub(borrow as u64);
            (negated[i], borrow) = (d, b1 | b2);
        }
        let is_negative = negated.iter().rev().lt(value.iter().rev());
        let absolute = if is_negative { negated } else { value };
        let mut bytes = [0; 32];
        let mut carry = 0;
        for (limb, bytes) in absolute.iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&(limb << 1 | carry).to_le_bytes());
            carry = limb >> 63;
        }
        bytes[31] |= u8::from(is_negative) << 7;
        SignedScalar(bytes)
    }
}

/// The integer that a scalar's Montgomery limbs stand for.
#[inline(always)]
fn from_montgomery<S: ScalarRepr>(scalar: &S) -> [u64; 4] {
    let neg_inverse = const { constants::inverse_mod_2_64(<S as ScalarRepr>::MODULUS[0]).wrapping_neg() };
    let r = const { <S as ScalarRepr>::MODULUS };
    let mut t: [u64; 4] = std::array::from_fn(|i| repr::as_limbs(std::slice::from_ref(scalar))[i]);
    for _ in 0..4 {
        let m = t[0].wrapping_mul(neg_inverse);
        let mut carry = (t[0] as u128 + m as u128 * r[0] as u128) >> 64;
        for i in 1..4 {
            carry += t[i] as u128 + m as u128 * r[i] as u128;
            t[i - 1] = carry as u64;
            carry >>= 64;
        }
        t[3] = carry as u64;
    }
    // An input below 2^256 ends at most at r.
    constants::reduce_once(&t, &r)
}

/// How scalars are cut into digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Bits of a window, c.
    pub(crate) bits: usize,
    pub(crate) count: usize,
}

impl Windows {
    /// Wider windows would take more for their buckets than they save, at the number of points that are sorted at a time.
    pub(crate) const MAX_BITS: usize = 17;

    /// Windows of at most [`MAX_BITS`](Self::MAX_BITS) for scalars of `S`.
    pub(crate) const fn new<S: ScalarRepr>(bits: usize) -> Self {
        // An absolute value of at most (r - 1)/2 has NUM_BITS - 1 bits; signed digits carry into one more.
        Windows { bits, count: (S::NUM_BITS as usize).div_ceil(bits) }
    }

    /// Buckets a window: digits from 1 to 2^(c-1).
    pub(crate) const fn buckets(self) -> usize {
        1 << (self.bits - 1)
    }

    /// Window w, from the lowest.
    pub(crate) fn window(self, w: usize) -> Window {
        let first_bit = w * self.bits;
        // The eight bytes that hold the window, and where it begins in them.
        let byte = (first_bit / 8).min(24);
        let width = (self.bits + 1).min(255 - first_bit);
        Window { byte, shift: first_bit - 8 * byte, mask: (1 << width) - 1, bits: self.bits }
    }
}

/// Where a digit is found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    byte: usize,
    shift: usize,
    mask: u64,
    bits: usize,
}

impl Window {
    /// A digit as its absolute value less one and its sign ([`NEGATIVE`] or 0); nothing for the digit zero.
    #[inline(always)]
    pub(crate) fn digit(self, scalar: &SignedScalar) -> Option<(usize, u32)> {
        let bytes: [u8; 8] = std::array::from_fn(|i| scalar.0[self.byte + i]);
        let window = (u64::from_le_bytes(bytes) >> self.shift & self.mask) as i32;
        // Booth's recoding: the lowest bit is the borrow of the window below, the highest this one's.
        let digit = ((window + 1) >> 1) - ((window >> self.bits) << self.bits);
        let sign = (u32::from(scalar.0[31]) << 24 ^ digit as u32) & NEGATIVE;
        (digit != 0).then(|| (digit.unsigned_abs() as usize - 1, sign))
    }
}

#[cfg(test)]
mod tests {
    use blstrs::Scalar;
    use halo2curves::bn256::Fr;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Σ digit_w · 2^(cw) is the scalar, whatever the width.
    fn digits_add_up<S: ScalarRepr>() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let half = S::TWO_INV;
        let mut scalars = vec![S::ZERO, S::ONE, -S::ONE, half, -half, half - S::ONE, S::ONE - half];
        scalars.extend((0..200).map(|_| S::random(&mut rng)));
        scalars.extend((0..254u64).map(|i| S::from(2).pow_vartime([i])));
        for bits in 2..=Windows::MAX_BITS {
            let windows = Windows::new::<S>(bits);
            for scalar in &scalars {
                let signed = SignedScalar::new(scalar);
                let mut sum = S::ZERO;
                for w in (0..windows.count).rev() {
                    sum *= S::from(1 << bits);
                    if let Some((less_one, sign)) = windows.window(w).digit(&signed) {
                        assert!(less_one < windows.buckets());
                        let absolute = S::from(less_one as u64 + 1);
                        sum += if sign == 0 { absolute } else { -absolute };
                    }
                }
                assert_eq!(sum, *scalar, "{bits} bits");
            }
        }
    }

    #[test]
    fn digits_of_both_scalar_fields_add_up() {
        digits_add_up::<Scalar>();
        digits_add_up::<Fr>();
    }
}
