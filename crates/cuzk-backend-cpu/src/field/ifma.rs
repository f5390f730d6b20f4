//! Rows of eight elements in radix 2^52, for x86-64 with AVX-512 IFMA.
//!
//! A row is N vectors: vector i holds limb i of all eight elements. `vpmadd52luq` and `vpmadd52huq` multiply 52-bit limbs
//! and add the low or high half to a 64-bit accumulator, so that carries are propagated once a product, not once a limb.
//! The Montgomery radix is 2^(52N): 2^416 for BLS12-381 (N = 8), 2^260 for BN254 (N = 5).
//!
//! The operations are calls, not inlined: that costs little beside a product (about 300 instructions), and one copy of the
//! product stays in the instruction cache.

use std::{arch::x86_64::*, marker::PhantomData};

use blst::blst_fp;
use halo2curves::bn256::Fq;

use super::{
    Lanes, Mask, PrimeLanes, constants,
    portable::{BlsFp, BnFp},
};

const LIMB_MASK: u64 = (1 << 52) - 1;

/// What the arithmetic needs to know of a modulus p.
pub(crate) struct Constants<const N: usize> {
    p: [u64; N],
    four_p: [u64; N],
    /// p⁻¹ and -p⁻¹ modulo 2^52.
    inverse: u64,
    neg_inverse: u64,
    /// The quotient of a small multiple of p: `((top >> quotient_shift) - 8) · quotient_factor >> quotient_scale`, where
    /// `top` is the highest limb.
    quotient_shift: u32,
    quotient_factor: i64,
    quotient_scale: u32,
    /// Entry `[i][q mod 8]` is limb i of -q·p, for -5 <= q <= 2.
    multiples: [[i64; 8]; N],
    /// 1 in Montgomery form.
    one: [u64; N],
    scale_y_in: [u64; N],
    scale_y_out: [u64; N],
    /// Corrects the Montgomery factors of an inversion that is done in the native form.
    inversion: [u64; N],
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

/// A row over BLS12-381's base field.
pub(crate) type BlsRow = Row<Bls, 8>;

/// A row over BN254's base field.
pub(crate) type BnRow = Row<Bn, 5>;

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

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

/// Turns eight rows of eight words into eight columns; its own inverse.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(r: &[__m512i; 8]) -> [__m512i; 8] {
    // Pairs of rows: words (0, 2, 4, 6) and (1, 3, 5, 7), then 128-bit quarters of four and of eight rows.
    let columns = |t: [__m512i; 4]| {
        let low = [_mm512_shuffle_i64x2::<0x88>(t[0], t[1]), _mm512_shuffle_i64x2::<0x88>(t[2], t[3])];
        let high = [_mm512_shuffle_i64x2::<0xdd>(t[0], t[1]), _mm512_shuffle_i64x2::<0xdd>(t[2], t[3])];
        [
            _mm512_shuffle_i64x2::<0x88>(low[0], low[1]),
            _mm512_shuffle_i64x2::<0x88>(high[0], high[1]),
            _mm512_shuffle_i64x2::<0xdd>(low[0], low[1]),
            _mm512_shuffle_i64x2::<0xdd>(high[0], high[1]),
        ]
    };
    let even = columns([
        _mm512_unpacklo_epi64(r[0], r[1]),
        _mm512_unpacklo_epi64(r[2], r[3]),
        _mm512_unpacklo_epi64(r[4], r[5]),
        _mm512_unpacklo_epi64(r[6], r[7]),
    ]);
    let odd = columns([
        _mm512_unpackhi_epi64(r[0], r[1]),
        _mm512_unpackhi_epi64(r[2], r[3]),
        _mm512_unpackhi_epi64(r[4], r[5]),
        _mm512_unpackhi_epi64(r[6], r[7]),
    ]);
    [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
}

/// Reads four words from each of eight places: word i of all of them in vector i.
///
/// # Safety
/// * 32 bytes may be read from every pointer.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_words(at: &[*const u64; 8]) -> [__m512i; 4] {
    // SAFETY: the caller's obligation.
    let pair = |i: usize| unsafe {
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(at[i].cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(at[i + 4].cast()))
    };
    let (r0, r1, r2, r3) = (pair(0), pair(1), pair(2), pair(3));
    let (t0, t1) = (_mm512_unpacklo_epi64(r0, r1), _mm512_unpackhi_epi64(r0, r1));
    let (t2, t3) = (_mm512_unpacklo_epi64(r2, r3), _mm512_unpackhi_epi64(r2, r3));
    let first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    let second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    [
        _mm512_permutex2var_epi64(t0, first, t2),
        _mm512_permutex2var_epi64(t1, first, t3),
        _mm512_permutex2var_epi64(t0, second, t2),
        _mm512_permutex2var_epi64(t1, second, t3),
    ]
}

/// The inverse of [`load_words`].
///
/// # Safety
/// * 32 bytes may be written at every pointer.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_words(words: &[__m512i; 4], at: &[*mut u64; 8]) {
    let (even_low, odd_low) = (_mm512_unpacklo_epi64(words[0], words[1]), _mm512_unpackhi_epi64(words[0], words[1]));
    let (even_high, odd_high) = (_mm512_unpacklo_epi64(words[2], words[3]), _mm512_unpackhi_epi64(words[2], words[3]));
    let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    let second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    let put = |rows: __m512i, lane: usize| {
        // SAFETY: the caller's obligation.
        unsafe {
            _mm256_storeu_si256(at[lane].cast(), _mm512_castsi512_si256(rows));
            _mm256_storeu_si256(at[lane + 2].cast(), _mm512_extracti64x4_epi64::<1>(rows));
        }
    };
    put(_mm512_permutex2var_epi64(even_low, first, even_high), 0);
    put(_mm512_permutex2var_epi64(odd_low, first, odd_high), 1);
    put(_mm512_permutex2var_epi64(even_low, second, even_high), 4);
    put(_mm512_permutex2var_epi64(odd_low, second, odd_high), 5);
}

/// Repeats a block for `$i` = 0, 1, .. `$n` - 1, written out: the limbs must be registers, not an indexed array.
macro_rules! unrolled {
    ($i:ident < $n:expr => $body:block) => {
        unrolled!(@ $i, $n, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $i:ident, $n:expr, $body:block, $($value:literal)*) => {
        $(#[allow(clippy::absurd_extreme_comparisons, reason = "a body may ask whether its constant is the first")] {
            const $i: usize = $value;
            if $i < $n $body
        })*
    };
}

/// Propagates carries (also negative ones) so that every limb has 52 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn normalize<const N: usize>(t: &mut [__m512i; N]) {
    let mask = splat(LIMB_MASK);
    unrolled!(I < N - 1 => {
        t[I + 1] = _mm512_add_epi64(t[I + 1], _mm512_srai_epi64::<52>(t[I]));
        t[I] = _mm512_and_si512(t[I], mask);
    });
}

/// Takes limbs of either sign whose value is above -4p and below 2p into the range from 0 to p + p/1000.
#[inline]
#[target_feature(enable = "avx512f")]
fn reduce<P: Prime<N>, const N: usize>(t: &mut [__m512i; N]) {
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
fn montgomery<P: Prime<N>, const N: usize, const K: usize>(
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
fn montgomery_square<P: Prime<N>, const N: usize>(a: &[__m512i; N]) -> [__m512i; N] {
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

/// Eight elements: limb i of all of them in vector i.
#[repr(transparent)]
pub(crate) struct Row<P, const N: usize>([__m512i; N], PhantomData<P>);

impl<P, const N: usize> Clone for Row<P, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const N: usize> Copy for Row<P, N> {}

/// The bodies of the operations, compiled for the instructions that they use.
impl<P: Prime<N>, const N: usize> Row<P, N> {
    #[target_feature(enable = "avx512f")]
    fn constant(limbs: &[u64; N]) -> Self {
        Row(limbs.map(|limb| splat(limb)), PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    unsafe fn load_from(at: &[*const P::Stored; 8]) -> Self {
        // SAFETY: the caller's obligation: every pointer may be read.
        Row(unsafe { P::load(at) }, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    unsafe fn store_to(&self, at: &[*mut P::Stored; 8]) {
        // SAFETY: the caller's obligation: every pointer may be written.
        unsafe { P::store(&self.0, at) }
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn product(a: &Self, b: &Self) -> Self {
        Row(montgomery::<P, N, 1>([&a.0], [&b.0]), PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn sum_of_products(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
        Row(montgomery::<P, N, 2>([&a.0, &c.0], [&b.0, &d.0]), PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn squared(a: &Self) -> Self {
        Row(montgomery_square::<P, N>(&a.0), PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn sum(a: &Self, b: &Self) -> Self {
        let mut t = a.0;
        unrolled!(I < N => { t[I] = _mm512_add_epi64(t[I], b.0[I]); });
        normalize(&mut t);
        Row(t, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn difference(a: &Self, b: &Self) -> Self {
        // Two tight negatives are above -4p.
        let mut t = a.0;
        unrolled!(I < N => {
            t[I] = _mm512_add_epi64(_mm512_sub_epi64(t[I], b.0[I]), splat(P::CONSTANTS.four_p[I]));
        });
        normalize(&mut t);
        Row(t, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn tight_difference(a: &Self, b: &Self, flip: Mask) -> Self {
        let mut t = a.0;
        unrolled!(I < N => {
            let forward = _mm512_sub_epi64(a.0[I], b.0[I]);
            t[I] = _mm512_mask_sub_epi64(forward, flip, b.0[I], a.0[I]);
        });
        reduce::<P, N>(&mut t);
        Row(t, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn difference_of_two(a: &Self, b: &Self, c: &Self) -> Self {
        let mut t = a.0;
        unrolled!(I < N => { t[I] = _mm512_sub_epi64(t[I], _mm512_add_epi64(b.0[I], c.0[I])); });
        reduce::<P, N>(&mut t);
        Row(t, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn negated(a: &Self, mask: Mask) -> Self {
        let mut t = a.0;
        unrolled!(I < N => { t[I] = _mm512_mask_sub_epi64(t[I], mask, _mm512_setzero_si512(), t[I]); });
        Row(t, PhantomData)
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn multiples_of_p(a: &Self) -> Mask {
        // k·p has the lowest limb k·p mod 2^52: its product by p⁻¹ is the small k.
        let k = _mm512_madd52lo_epu64(_mm512_setzero_si512(), a.0[0], splat(P::CONSTANTS.inverse));
        _mm512_cmple_epu64_mask(k, splat(8))
    }

    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn zero_lowest_limb(a: &Self) -> Mask {
        _mm512_testn_epi64_mask(a.0[0], a.0[0])
    }

    #[target_feature(enable = "avx512f")]
    fn zero_lanes(a: &Self) -> Mask {
        let mut zero = 0;
        let mut multiple = [_mm512_setzero_si512(); N];
        for _ in 0..=8 {
            let mut equal = Mask::MAX;
            unrolled!(I < N => { equal &= _mm512_cmpeq_epi64_mask(a.0[I], multiple[I]); });
            zero |= equal;
            unrolled!(I < N => { multiple[I] = _mm512_add_epi64(multiple[I], splat(P::CONSTANTS.p[I])); });
            normalize(&mut multiple);
        }
        zero
    }

    #[target_feature(enable = "avx512f")]
    fn blend(mask: Mask, a: &Self, b: &Self) -> Self {
        let mut t = b.0;
        unrolled!(I < N => { t[I] = _mm512_mask_blend_epi64(mask, b.0[I], a.0[I]); });
        Row(t, PhantomData)
    }
}

/// Calls an operation of [`Row`].
macro_rules! call {
    ($function:ident($($arg:expr),*)) => {
        // SAFETY: the instructions exist: rows are named only where a `CodePath` says so, which exists only where they do.
        unsafe { Self::$function($($arg),*) }
    };
}

impl<P: Prime<N>, const N: usize> Lanes for Row<P, N> {
    const LANES: usize = 8;
    type Stored = P::Stored;
    const STORED_ZERO: P::Stored = P::STORED_ZERO;

    fn zero() -> Self {
        call!(constant(&[0; N]))
    }

    fn one() -> Self {
        call!(constant(&P::CONSTANTS.one))
    }

    #[inline(always)]
    fn load<'a>(at: impl Fn(usize) -> &'a P::Stored) -> Self {
        let at: [*const P::Stored; 8] = std::array::from_fn(|lane| std::ptr::from_ref(at(lane)));
        // The pointers come from references.
        call!(load_from(&at))
    }

    #[inline(always)]
    unsafe fn store(&self, at: impl Fn(usize) -> *mut P::Stored) {
        let at: [*mut P::Stored; 8] = std::array::from_fn(at);
        // SAFETY: the instructions exist; that the pointers are good is the caller's obligation.
        unsafe { self.store_to(&at) }
    }

    #[inline(always)]
    fn mul(&self, other: &Self) -> Self {
        call!(product(self, other))
    }

    #[inline(always)]
    fn square(&self) -> Self {
        call!(squared(self))
    }

    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        call!(sum(self, other))
    }

    #[inline(always)]
    fn sub(&self, other: &Self) -> Self {
        call!(difference(self, other))
    }

    #[inline(always)]
    fn sub_tight(&self, other: &Self, flip: Mask) -> Self {
        call!(tight_difference(self, other, flip))
    }

    #[inline(always)]
    fn sub_two(&self, b: &Self, c: &Self) -> Self {
        call!(difference_of_two(self, b, c))
    }

    #[inline(always)]
    fn neg_if(&self, mask: Mask) -> Self {
        call!(negated(self, mask))
    }

    #[inline(always)]
    fn maybe_zero(&self) -> Mask {
        call!(multiples_of_p(self))
    }

    #[inline(always)]
    fn maybe_stored_zero(&self) -> Mask {
        call!(zero_lowest_limb(self))
    }

    fn is_zero(&self) -> Mask {
        call!(zero_lanes(self))
    }

    fn select(mask: Mask, a: &Self, b: &Self) -> Self {
        call!(blend(mask, a, b))
    }

    fn invert(&self) -> Self {
        // One inversion for the eight lanes, by Montgomery's trick in the portable field.
        let mut stored = [P::STORED_ZERO; 8];
        let base = stored.as_mut_ptr();
        // SAFETY: `stored` has a place for each of the eight lanes.
        unsafe { self.store(|lane| base.add(lane)) };
        let values = stored.map(|s| P::to_native(&s));
        let zeros = values.map(|v| v.is_zero());
        let factors: [P::Native; 8] =
            std::array::from_fn(|i| P::Native::select(zeros[i], &P::Native::one(), &values[i]));
        let mut prefixes = factors;
        for i in 1..8 {
            prefixes[i] = prefixes[i - 1].mul(&factors[i]);
        }
        let mut inverse = prefixes[7].invert();
        for i in (0..8).rev() {
            let own = if i == 0 { inverse } else { inverse.mul(&prefixes[i - 1]) };
            inverse = inverse.mul(&factors[i]);
            stored[i] = P::from_native(&P::Native::select(zeros[i], &P::Native::zero(), &own));
        }
        Self::load(|lane| &stored[lane]).mul(&call!(constant(&P::CONSTANTS.inversion)))
    }

    fn import_x(native: &[u64]) -> P::Stored {
        P::from_native(&P::Native::import_x(native))
    }

    fn export_x(stored: &P::Stored, native: &mut [u64]) {
        P::Native::export_x(&P::to_native(stored), native);
    }

    fn scale_y_in(&self) -> Self {
        self.mul(&call!(constant(&P::CONSTANTS.scale_y_in)))
    }

    fn scale_y_out(&self) -> Self {
        self.mul(&call!(constant(&P::CONSTANTS.scale_y_out)))
    }
}

impl<P: Prime<N>, const N: usize> PrimeLanes for Row<P, N> {
    #[inline(always)]
    fn mul_sum(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
        call!(sum_of_products(a, b, c, d))
    }
}
