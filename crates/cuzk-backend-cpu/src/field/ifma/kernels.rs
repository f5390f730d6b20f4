//! Products and reductions of rows.

use std::arch::x86_64::*;

use super::modulus::{LIMB_MASK, Prime};

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn splat(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

/// Propagates carries (also negative ones) so that every limb has 52 bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn normalize<const N: usize>(t: &mut [__m512i; N]) {
    let mask = splat(LIMB_MASK);
    unrolled!(I < N - 1 => {
        t[I + 1] = _mm512_add_epi64(t[I + 1], _mm512_srai_epi64::<52>(t[I]));
        t[I] = _mm512_and_si512(t[I], mask);
    });
}

/// Takes limbs of either sign whose value is above -4p and below 2p into the range from 0 to p + p/1000.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn reduce<P: Prime<N>, const N: usize>(t: &mut [__m512i; N]) {
    let constants = const { &P::CONSTANTS };
    // The quotient is estimated from the highest bits, and lowered by more than all errors of the estimate: what the lower
    // limbs carry (1), and p's own lower bits (at most 4).
    let top = _mm512_add_epi64(t[N - 1], _mm512_srai_epi64::<52>(t[N - 2]));
    let top = _mm512_sra_epi64(top, _mm_cvtsi32_si128(constants.quotient_shift as i32));
    let scaled = _mm512_mul_epi32(_mm512_sub_epi64(top, splat(8)), _mm512_set1_epi64(constants.quotient_factor));
    let q = _mm512_sra_epi64(scaled, _mm_cvtsi32_si128(constants.quotient_scale as i32));
    unrolled!(I < N => {
        // SAFETY: a row of the table is 64 bytes.
        let multiples = unsafe { _mm512_loadu_si512(constants.multiples[I].as_ptr().cast()) };
        t[I] = _mm512_add_epi64(t[I], _mm512_permutexvar_epi64(q, multiples));
    });
    normalize(t);
}

/// Σ aₖ·bₖ / 2^(52N), below p + Σ aₖ·bₖ / 2^(52N).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn montgomery<P: Prime<N>, const N: usize, const K: usize>(
    a: [&[__m512i; N]; K],
    b: [&[__m512i; N]; K],
) -> [__m512i; N] {
    let zero = _mm512_setzero_si512();
    let (mask, neg_inverse) = (splat(LIMB_MASK), splat(P::CONSTANTS.neg_inverse));
    let mut t = [zero; N];
    unrolled!(I < N => {
        for k in 0..K {
            unrolled!(J < N => { t[J] = _mm512_madd52lo_epu64(t[J], a[k][J], b[k][I]); });
        }
        let m = _mm512_madd52lo_epu64(zero, t[0], neg_inverse);
        // t[0] + m·p is a multiple of 2^52 whose carry is t[0] / 2^52, rounded up.
        let carry = _mm512_srli_epi64::<52>(_mm512_add_epi64(t[0], mask));
        let mut low = _mm512_add_epi64(t[1], carry);
        for k in 0..K {
            low = _mm512_madd52hi_epu64(low, a[k][0], b[k][I]);
        }
        // Two chains for the limb that the next step waits for.
        let high = _mm512_madd52hi_epu64(zero, m, splat(P::CONSTANTS.p[0]));
        low = _mm512_madd52lo_epu64(low, m, splat(P::CONSTANTS.p[1]));
        t[0] = _mm512_add_epi64(low, high);
        unrolled!(J < N - 1 => {
            if J > 0 {
                let mut next = _mm512_madd52lo_epu64(t[J + 1], m, splat(P::CONSTANTS.p[J + 1]));
                for k in 0..K {
                    next = _mm512_madd52hi_epu64(next, a[k][J], b[k][I]);
                }
                t[J] = _mm512_madd52hi_epu64(next, m, splat(P::CONSTANTS.p[J]));
            }
        });
        let mut top = zero;
        for k in 0..K {
            top = _mm512_madd52hi_epu64(top, a[k][N - 1], b[k][I]);
        }
        t[N - 1] = _mm512_madd52hi_epu64(top, m, splat(P::CONSTANTS.p[N - 1]));
    });
    normalize(&mut t);
    t
}

/// a² / 2^(52N), with the bound of [`montgomery`]: the products of different limbs are computed once and doubled.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn montgomery_square<P: Prime<N>, const N: usize>(a: &[__m512i; N]) -> [__m512i; N] {
    let zero = _mm512_setzero_si512();
    let (mask, neg_inverse) = (splat(LIMB_MASK), splat(P::CONSTANTS.neg_inverse));
    // The limbs of the square below and from 2^(52N) on.
    let (mut low, mut high) = ([zero; N], [zero; N]);
    macro_rules! limb {
        ($k:expr) => {
            *if $k < N { &mut low[$k % N] } else { &mut high[$k % N] }
        };
    }
    unrolled!(I < N => {
        unrolled!(J < N => {
            if I < J {
                limb!(I + J) = _mm512_madd52lo_epu64(limb!(I + J), a[I], a[J]);
                limb!(I + J + 1) = _mm512_madd52hi_epu64(limb!(I + J + 1), a[I], a[J]);
            }
        });
    });
    unrolled!(I < N => {
        low[I] = _mm512_add_epi64(low[I], low[I]);
        high[I] = _mm512_add_epi64(high[I], high[I]);
    });
    unrolled!(I < N => {
        limb!(2 * I) = _mm512_madd52lo_epu64(limb!(2 * I), a[I], a[I]);
        limb!(2 * I + 1) = _mm512_madd52hi_epu64(limb!(2 * I + 1), a[I], a[I]);
    });
    unrolled!(I < N => {
        let m = _mm512_madd52lo_epu64(zero, low[I], neg_inverse);
        let carry = _mm512_srli_epi64::<52>(_mm512_add_epi64(low[I], mask));
        limb!(I + 1) = _mm512_add_epi64(limb!(I + 1), carry);
        unrolled!(J < N => {
            if J > 0 {
                limb!(I + J) = _mm512_madd52lo_epu64(limb!(I + J), m, splat(P::CONSTANTS.p[J]));
            }
            limb!(I + J + 1) = _mm512_madd52hi_epu64(limb!(I + J + 1), m, splat(P::CONSTANTS.p[J]));
        });
    });
    normalize(&mut high);
    high
}
