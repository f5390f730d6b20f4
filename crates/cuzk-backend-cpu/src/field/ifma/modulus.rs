//! What is particular to a modulus: constants, and how elements lie in memory.

use std::arch::x86_64::*;

use blst::blst_fp;
use halo2curves::bn256::Fq;

use super::{
    kernels::splat,
    transpose::{load_words, store_words, transpose},
};
use crate::field::{
    PrimeLanes, constants,
    portable::{BlsFp, BnFp},
};

/// The bits of a limb.
pub(super) const LIMB_MASK: u64 = (1 << 52) - 1;

/// What the arithmetic needs to know of a modulus p.
pub(crate) struct Constants<const N: usize> {
    pub(super) p: [u64; N],
    pub(super) four_p: [u64; N],
    /// p⁻¹ and -p⁻¹ modulo 2^52.
    pub(super) inverse: u64,
    pub(super) neg_inverse: u64,
    /// The quotient of a small multiple of p: `((top >> quotient_shift) - 8) · quotient_factor >> quotient_scale`, where
    /// `top` is the highest limb.
    pub(super) quotient_shift: u32,
    pub(super) quotient_factor: i64,
    pub(super) quotient_scale: u32,
    /// Entry `[i][q mod 8]` is limb i of -q·p, for -5 <= q <= 2.
    pub(super) multiples: [[i64; 8]; N],
    /// 1 in Montgomery form.
    pub(super) one: [u64; N],
    pub(super) scale_y_in: [u64; N],
    pub(super) scale_y_out: [u64; N],
    /// Corrects the Montgomery factors of an inversion that is done in the native form.
    pub(super) inversion: [u64; N],
}

/// The constants of a modulus of W words, whose native Montgomery radix is 2^(64W).
const fn constants<const W: usize, const N: usize>(p: &[u64; W]) -> Constants<N> {
    // Native form: x·2^n. Here: x·2^v. The same bits are then (u²x)·2^v with u = 2^((n-v)/2), and y has to become (u³y)·2^v.
    let (n, v) = (64 * W, 52 * N);
    let limbs: [u64; N] = constants::limbs52(p, 1);
    let top = limbs[N - 1];
    // As many bits of the highest limb as a 32-bit factor can carry beside the quotient.
    let quotient_shift = (64 - top.leading_zeros()).saturating_sub(26);
    let divisor = top >> quotient_shift;
    let quotient_scale = 30 + divisor.ilog2();
    let mut multiples = [[0; 8]; N];
    let mut index = 0;
    while index < 8 {
        let q = if index > 2 { index as i64 - 8 } else { index as i64 };
        let multiple: [u64; N] = constants::limbs52(p, q.unsigned_abs());
        let mut i = 0;
        while i < N {
            multiples[i][index] = if q < 0 { multiple[i] as i64 } else { -(multiple[i] as i64) };
            i += 1;
        }
        index += 1;
    }
    let inverse = constants::inverse_mod_2_64(p[0]);
    Constants {
        p: limbs,
        four_p: constants::limbs52(p, 4),
        inverse: inverse & LIMB_MASK,
        neg_inverse: inverse.wrapping_neg() & LIMB_MASK,
        quotient_shift,
        quotient_factor: ((1u64 << quotient_scale) / divisor) as i64,
        quotient_scale,
        multiples,
        one: constants::limbs52(&constants::pow2(p, v), 1),
        scale_y_in: constants::limbs52(&constants::pow2(p, (n + v) / 2), 1),
        scale_y_out: constants::limbs52(&constants::pow2(p, (3 * v - n) / 2), 1),
        inversion: constants::limbs52(&constants::pow2(p, 3 * v - 2 * n), 1),
    }
}

/// A prime field of N limbs, and how its elements lie in memory.
pub(crate) trait Prime<const N: usize>: Copy + Send + Sync + 'static {
    const CONSTANTS: Constants<N>;

    /// The portable form of the field: what elements come from and go to.
    type Native: PrimeLanes<Stored = Self::Native>;

    type Stored: Copy + Send + Sync + PartialEq + 'static;
    const STORED_ZERO: Self::Stored;

    /// # Safety
    /// * The machine has AVX-512 F, and every pointer may be read.
    unsafe fn load(at: &[*const Self::Stored; 8]) -> [__m512i; N];

    /// # Safety
    /// * The machine has AVX-512 F, and every pointer may be written.
    unsafe fn store(row: &[__m512i; N], at: &[*mut Self::Stored; 8]);

    /// Repacks the bits, without a change of the Montgomery radix.
    fn from_native(native: &Self::Native) -> Self::Stored;

    /// Repacks the bits and reduces below p.
    fn to_native(stored: &Self::Stored) -> Self::Native;
}

/// BLS12-381's base field. In memory: the eight limbs, one cache line.
#[derive(Clone, Copy)]
pub(crate) struct Bls;

/// BN254's base field. In memory: four words of 64 bits, so that a point of G1 is one cache line.
#[derive(Clone, Copy)]
pub(crate) struct Bn;

/// Eight limbs of 52 bits.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct BlsStored([u64; 8]);

/// Four words.
#[derive(Clone, Copy, PartialEq)]
#[repr(C, align(32))]
pub(crate) struct BnStored([u64; 4]);

impl Prime<8> for Bls {
    const CONSTANTS: Constants<8> = constants(&constants::BLS12_381);
    type Native = BlsFp;
    type Stored = BlsStored;
    const STORED_ZERO: BlsStored = BlsStored([0; 8]);

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(at: &[*const BlsStored; 8]) -> [__m512i; 8] {
        // SAFETY: the caller's obligation: every pointer may be read.
        transpose(&at.map(|p| unsafe { _mm512_loadu_si512(p.cast()) }))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(row: &[__m512i; 8], at: &[*mut BlsStored; 8]) {
        for (column, place) in transpose(row).into_iter().zip(at) {
            // SAFETY: the caller's obligation: every pointer may be written.
            unsafe { _mm512_storeu_si512(place.cast(), column) }
        }
    }

    fn from_native(native: &BlsFp) -> BlsStored {
        BlsStored(constants::limbs52(&native.0.l, 1))
    }

    fn to_native(stored: &BlsStored) -> BlsFp {
        let p = &constants::BLS12_381;
        let words = constants::words64(&stored.0);
        BlsFp(blst_fp { l: constants::reduce_once(&constants::reduce_once(&words, p), p) })
    }
}

impl Prime<5> for Bn {
    const CONSTANTS: Constants<5> = constants(&constants::BN254);
    type Native = BnFp;
    type Stored = BnStored;
    const STORED_ZERO: BnStored = BnStored([0; 4]);

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(at: &[*const BnStored; 8]) -> [__m512i; 5] {
        // SAFETY: the caller's obligation: every pointer may be read.
        let words = unsafe { load_words(&at.map(|p| p.cast())) };
        let mask = splat(LIMB_MASK);
        let limb = |low, high| _mm512_and_si512(_mm512_or_si512(low, high), mask);
        [
            _mm512_and_si512(words[0], mask),
            limb(_mm512_srli_epi64::<52>(words[0]), _mm512_slli_epi64::<12>(words[1])),
            limb(_mm512_srli_epi64::<40>(words[1]), _mm512_slli_epi64::<24>(words[2])),
            limb(_mm512_srli_epi64::<28>(words[2]), _mm512_slli_epi64::<36>(words[3])),
            _mm512_srli_epi64::<16>(words[3]),
        ]
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(row: &[__m512i; 5], at: &[*mut BnStored; 8]) {
        let words = [
            _mm512_or_si512(row[0], _mm512_slli_epi64::<52>(row[1])),
            _mm512_or_si512(_mm512_srli_epi64::<12>(row[1]), _mm512_slli_epi64::<40>(row[2])),
            _mm512_or_si512(_mm512_srli_epi64::<24>(row[2]), _mm512_slli_epi64::<28>(row[3])),
            _mm512_or_si512(_mm512_srli_epi64::<36>(row[3]), _mm512_slli_epi64::<16>(row[4])),
        ];
        // SAFETY: the caller's obligation: every pointer may be written.
        unsafe { store_words(&words, &at.map(|p| p.cast())) }
    }

    fn from_native(native: &BnFp) -> BnStored {
        BnStored(native.0.0)
    }

    fn to_native(stored: &BnStored) -> BnFp {
        let p = &constants::BN254;
        BnFp(Fq(constants::reduce_once(&constants::reduce_once(&stored.0, p), p)))
    }
}
