//! Rows of eight by AVX-512 IFMA: five limbs of 52 bits, Montgomery products with R = 2^260.
//!
//! Scalars in memory are x · 2^256 mod r. They are not converted: as integers they are multiplied by multipliers
//! m · 2^260 mod r, and the Montgomery product by 2^-260 leaves (x · m) · 2^256.
//!
//! A row holds signed limbs of up to 60 bits: sums and differences are five instructions and no carry. Only the first
//! factor of a product is brought to limbs of 52 bits, shifted by 16r so that it is not negative: ±16r becomes
//! 0..32r, and 32r < 2^260 for both fields. Since the multiplier is below 1.1r, the product before its last step is in
//! 0..2r, and adding −r on the way makes it ±r.

use std::{arch::x86_64::*, marker::PhantomData};

use cuzk_curve::ScalarRepr;

use super::lanes::{Arithmetic, Butterfly, LANES, Program, ScalarLanes};

/// Bits of a limb.
const BITS: u32 = 52;
const MASK: u64 = (1 << BITS) - 1;

/// Five limbs.
pub(crate) type Limbs = [u64; 5];

/// Splits a number of at most 256 bits.
const fn split(x: [u64; 4]) -> Limbs {
    [
        x[0] & MASK,
        (x[0] >> 52 | x[1] << 12) & MASK,
        (x[1] >> 40 | x[2] << 24) & MASK,
        (x[2] >> 28 | x[3] << 36) & MASK,
        x[3] >> 16,
    ]
}

/// What the arithmetic needs to know of a modulus.
struct Constants<F>(PhantomData<F>);

impl<F: ScalarRepr> Constants<F> {
    const R: Limbs = split(<F as ScalarRepr>::MODULUS);
    /// 16r, the top limb with four bits more than the others.
    const BIAS: Limbs = {
        let (r, mut bias, mut i) = (Self::R, [0; 5], 0);
        while i < 5 {
            bias[i] = (r[i] << 4) & if i < 4 { MASK } else { u64::MAX };
            if i > 0 {
                bias[i] |= r[i - 1] >> (BITS - 4);
            }
            i += 1;
        }
        // 32r < 2^260.
        assert!(bias[4] < 1 << (BITS - 1));
        bias
    };
    /// −r, limb by limb.
    const MINUS_R: Limbs = {
        let r = Self::R;
        [r[0].wrapping_neg(), r[1].wrapping_neg(), r[2].wrapping_neg(), r[3].wrapping_neg(), r[4].wrapping_neg()]
    };
    /// 2^260 − r.
    const NEGATED: Limbs = {
        let (r, mut out, mut i, mut borrow) = (Self::R, [0; 5], 0, 0);
        while i < 5 {
            let d = (1u64 << BITS).wrapping_sub(r[i] + borrow);
            out[i] = d & MASK;
            borrow = 1 - (d >> BITS & 1);
            i += 1;
        }
        out
    };
    /// −r⁻¹ mod 2^52.
    const INVERSE: u64 = {
        // Newton's iteration doubles the number of correct bits: 5 after the start, 160 at the end.
        let (r, mut inverse, mut i) = (Self::R[0], (3 * Self::R[0]) ^ 2, 0);
        while i < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(r.wrapping_mul(inverse)));
            i += 1;
        }
        inverse.wrapping_neg() & MASK
    };
    /// How far the quotient's estimate is shifted right, so that [`Self::RECIPROCAL`] fills its limb.
    const SHIFT: i64 = {
        let top = Self::R[4];
        top.ilog2() as i64
    };
    /// ⌊2^(52 + SHIFT) / (r / 2^208)⌋, rounded down by the use of top + 1: a quotient by it is at most one too small.
    const RECIPROCAL: u64 = {
        let reciprocal = (1u128 << (52 + Self::SHIFT)) / (Self::R[4] as u128 + 1);
        assert!(reciprocal < 1 << BITS);
        reciprocal as u64
    };
}

/// Eight scalars: vector i holds limb i of each.
#[derive(Clone, Copy)]
pub(crate) struct Ifma<F>([__m512i; 5], PhantomData<F>);

/// A program behind a function that is compiled for the processor features.
#[target_feature(enable = "avx512f,avx512ifma")]
fn compiled_for_ifma<F: ScalarRepr, P: Program<Ifma<F>>>(program: P) {
    // SAFETY: the features are there, or this function could not have been called.
    unsafe { program.run() }
}

// SAFETY (of every block in these functions): an intrinsic demands its processor feature and nothing else; a row or
// multiplier in an argument, or the function's own contract, says that it is there.
#[allow(clippy::undocumented_unsafe_blocks, reason = "the one reason is given above, for all of them")]
mod vector {
    use super::*;

    #[inline(always)]
    pub(super) unsafe fn all(x: u64) -> __m512i {
        unsafe { _mm512_set1_epi64(x as i64) }
    }

    #[inline(always)]
    pub(super) unsafe fn all_limbs(x: Limbs) -> [__m512i; 5] {
        unsafe { [all(x[0]), all(x[1]), all(x[2]), all(x[3]), all(x[4])] }
    }

    #[inline(always)]
    pub(super) unsafe fn lo(c: __m512i, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_madd52lo_epu64(c, a, b) }
    }

    #[inline(always)]
    pub(super) unsafe fn hi(c: __m512i, a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_madd52hi_epu64(c, a, b) }
    }

    #[inline(always)]
    pub(super) unsafe fn add(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_add_epi64(a, b) }
    }

    /// Signed limbs to limbs of 52 bits; the top one keeps what is left.
    #[inline(always)]
    pub(super) unsafe fn carry(mut x: [__m512i; 5]) -> [__m512i; 5] {
        unsafe {
            let mask = all(MASK);
            for i in 0..4 {
                x[i + 1] = add(x[i + 1], _mm512_srai_epi64::<BITS>(x[i]));
                x[i] = _mm512_and_si512(x[i], mask);
            }
            x
        }
    }

    /// a · b / 2^260 mod r, plus what `top` holds, limb by limb: limbs without carries. a and b have limbs of 52 bits.
    #[inline(always)]
    pub(super) unsafe fn montgomery<F: ScalarRepr>(
        a: &[__m512i; 5],
        b: &[__m512i; 5],
        top: [__m512i; 5],
    ) -> [__m512i; 5] {
        unsafe {
            let zero = _mm512_setzero_si512();
            let inverse = all(Constants::<F>::INVERSE);
            let r = all_limbs(Constants::<F>::R);
            let mut c = [zero; 5];
            for i in 0..5 {
                for j in 0..5 {
                    c[j] = lo(c[j], a[j], b[i]);
                }
                let q = lo(zero, c[0], inverse);
                for j in 0..5 {
                    c[j] = lo(c[j], q, r[j]);
                }
                // The lowest limb is now a multiple of 2^52: divide by it.
                c[1] = add(c[1], _mm512_srli_epi64::<BITS>(c[0]));
                c = [c[1], c[2], c[3], c[4], top[i]];
                for j in 0..5 {
                    c[j] = hi(c[j], a[j], b[i]);
                }
                for j in 0..5 {
                    c[j] = hi(c[j], q, r[j]);
                }
            }
            c
        }
    }

    /// 0..2^260 in limbs of 52 bits to 0..2r, without carries.
    #[inline(always)]
    pub(super) unsafe fn below_2r<F: ScalarRepr>(x: [__m512i; 5]) -> [__m512i; 5] {
        unsafe {
            // ⌊x / r⌋ or one less; adding q · (2^260 - r) and dropping q · 2^260 subtracts q · r.
            let estimate = hi(_mm512_setzero_si512(), x[4], all(Constants::<F>::RECIPROCAL));
            let q = _mm512_srl_epi64(estimate, _mm_cvtsi64_si128(Constants::<F>::SHIFT));
            let n = all_limbs(Constants::<F>::NEGATED);
            let mut y = x;
            for j in 0..5 {
                y[j] = lo(y[j], q, n[j]);
            }
            for j in 0..4 {
                y[j + 1] = hi(y[j + 1], q, n[j]);
            }
            // What went past the top limb, less q · 2^260.
            let past = _mm512_sub_epi64(hi(_mm512_setzero_si512(), q, n[4]), q);
            y[4] = add(y[4], _mm512_slli_epi64::<BITS>(past));
            y
        }
    }

    #[inline(always)]
    unsafe fn pair(first: *const u64, second: *const u64) -> __m512i {
        unsafe {
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(first.cast()));
            _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(second.cast()))
        }
    }

    /// Reads eight times four words: vector i holds word i of each.
    #[inline(always)]
    pub(super) unsafe fn read(from: *const u64, words_between: usize) -> [__m512i; 4] {
        unsafe {
            let a = pair(from, from.add(words_between));
            let b = pair(from.add(2 * words_between), from.add(3 * words_between));
            let c = pair(from.add(4 * words_between), from.add(5 * words_between));
            let d = pair(from.add(6 * words_between), from.add(7 * words_between));
            let first = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
            let last = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
            let (ab, cd) = (_mm512_permutex2var_epi64(a, first, b), _mm512_permutex2var_epi64(c, first, d));
            let (ef, gh) = (_mm512_permutex2var_epi64(a, last, b), _mm512_permutex2var_epi64(c, last, d));
            [
                _mm512_shuffle_i64x2::<0b0100_0100>(ab, cd),
                _mm512_shuffle_i64x2::<0b1110_1110>(ab, cd),
                _mm512_shuffle_i64x2::<0b0100_0100>(ef, gh),
                _mm512_shuffle_i64x2::<0b1110_1110>(ef, gh),
            ]
        }
    }

    /// The inverse of [`read`].
    #[inline(always)]
    pub(super) unsafe fn write(x: [__m512i; 4], to: *mut u64, words_between: usize) {
        unsafe {
            let low = _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11);
            let high = _mm512_setr_epi64(4, 5, 6, 7, 12, 13, 14, 15);
            let first = _mm512_setr_epi64(0, 4, 8, 12, 1, 5, 9, 13);
            let last = _mm512_setr_epi64(2, 6, 10, 14, 3, 7, 11, 15);
            for (half, index) in [low, high].into_iter().enumerate() {
                // Words 0 and 1, then 2 and 3, of four scalars.
                let (a, b) =
                    (_mm512_permutex2var_epi64(x[0], index, x[1]), _mm512_permutex2var_epi64(x[2], index, x[3]));
                for (quarter, index) in [first, last].into_iter().enumerate() {
                    let two = _mm512_permutex2var_epi64(a, index, b);
                    let at = 4 * half + 2 * quarter;
                    _mm256_storeu_si256(to.add(at * words_between).cast(), _mm512_castsi512_si256(two));
                    _mm256_storeu_si256(to.add((at + 1) * words_between).cast(), _mm512_extracti64x4_epi64::<1>(two));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn join(low: __m512i, high: __m512i) -> __m512i {
        unsafe { _mm512_and_si512(_mm512_or_si512(low, high), all(MASK)) }
    }

    #[inline(always)]
    pub(super) unsafe fn to_limbs(x: [__m512i; 4]) -> [__m512i; 5] {
        unsafe {
            [
                _mm512_and_si512(x[0], all(MASK)),
                join(_mm512_srli_epi64::<52>(x[0]), _mm512_slli_epi64::<12>(x[1])),
                join(_mm512_srli_epi64::<40>(x[1]), _mm512_slli_epi64::<24>(x[2])),
                join(_mm512_srli_epi64::<28>(x[2]), _mm512_slli_epi64::<36>(x[3])),
                _mm512_srli_epi64::<16>(x[3]),
            ]
        }
    }

    #[inline(always)]
    pub(super) unsafe fn to_words(x: [__m512i; 5]) -> [__m512i; 4] {
        unsafe {
            [
                _mm512_or_si512(x[0], _mm512_slli_epi64::<52>(x[1])),
                _mm512_or_si512(_mm512_srli_epi64::<12>(x[1]), _mm512_slli_epi64::<40>(x[2])),
                _mm512_or_si512(_mm512_srli_epi64::<24>(x[2]), _mm512_slli_epi64::<28>(x[3])),
                _mm512_or_si512(_mm512_srli_epi64::<36>(x[3]), _mm512_slli_epi64::<16>(x[4])),
            ]
        }
    }

    /// x + 16r in limbs of 52 bits, for x in ±16r.
    #[inline(always)]
    pub(super) unsafe fn not_negative<F: ScalarRepr>(mut x: [__m512i; 5]) -> [__m512i; 5] {
        unsafe {
            for (limb, bias) in x.iter_mut().zip(Constants::<F>::BIAS) {
                *limb = add(*limb, all(bias));
            }
            carry(x)
        }
    }

    /// Subtracts r where that leaves nothing negative: 0..2r to 0..r.
    #[inline(always)]
    pub(super) unsafe fn below_r<F: ScalarRepr>(x: [__m512i; 5]) -> [__m512i; 5] {
        unsafe {
            let mut y = x;
            for (limb, r) in y.iter_mut().zip(Constants::<F>::R) {
                *limb = _mm512_sub_epi64(*limb, all(r));
            }
            let mut y = carry(y);
            let negative = _mm512_cmplt_epi64_mask(y[4], _mm512_setzero_si512());
            for (limb, old) in y.iter_mut().zip(x) {
                *limb = _mm512_mask_mov_epi64(*limb, negative, old);
            }
            y
        }
    }
}

// SAFETY (of every block in these methods): as for module `vector`.
#[allow(clippy::undocumented_unsafe_blocks, reason = "the one reason is given above, for all of them")]
impl<F: ScalarRepr> Arithmetic for Ifma<F> {
    type Multiplier = [__m512i; 5];

    #[inline(always)]
    fn mul(self, by: &Self::Multiplier) -> Self {
        unsafe {
            let minus_r = vector::all_limbs(Constants::<F>::MINUS_R);
            Self(vector::montgomery::<F>(&vector::not_negative::<F>(self.0), by, minus_r), PhantomData)
        }
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = unsafe { vector::add(*a, b) };
        }
        self
    }

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a = unsafe { _mm512_sub_epi64(*a, b) };
        }
        self
    }

    #[inline(always)]
    fn reduce(self) -> Self {
        unsafe {
            let mut x = vector::below_2r::<F>(vector::not_negative::<F>(self.0));
            for (limb, r) in x.iter_mut().zip(Constants::<F>::R) {
                *limb = _mm512_sub_epi64(*limb, vector::all(r));
            }
            Self(x, PhantomData)
        }
    }
}

// SAFETY (of every block in these methods): as for module `vector`; `load`, `store` and `gather` pass on what their
// callers promise of pointers: LANES places, `lane_stride` scalars of four words apart.
#[allow(clippy::undocumented_unsafe_blocks, reason = "the one reason is given above, for all of them")]
impl<F: ScalarRepr> ScalarLanes for Ifma<F> {
    type Field = F;
    type Scalar = Limbs;

    fn product_scale() -> F {
        // 2^256 · 2^256 / 2^260 is short of 2^256 by 2^4.
        F::from(16)
    }

    fn scalar(x: F) -> Limbs {
        // From x · 2^256 to x · 2^260.
        let limbs = cuzk_curve::repr::as_limbs(&[x.double().double().double().double()]).to_owned();
        split([limbs[0], limbs[1], limbs[2], limbs[3]])
    }

    unsafe fn execute<P: Program<Self>>(program: P) {
        unsafe { compiled_for_ifma::<F, P>(program) }
    }

    #[inline(always)]
    unsafe fn splat(x: &Limbs) -> Self::Multiplier {
        unsafe { vector::all_limbs(*x) }
    }

    #[inline(always)]
    unsafe fn gather(x: &[F; LANES]) -> Self::Multiplier {
        let shifted = x.map(|x| x.double().double().double().double());
        unsafe { vector::to_limbs(vector::read(shifted.as_ptr().cast(), 4)) }
    }

    #[inline(always)]
    unsafe fn load(from: *const F, lane_stride: usize) -> Self {
        unsafe { Self(vector::to_limbs(vector::read(from.cast(), 4 * lane_stride)), PhantomData) }
    }

    #[inline(always)]
    unsafe fn store<const CANONICAL: bool>(self, to: *mut F, lane_stride: usize) {
        unsafe {
            let mut x = vector::carry(vector::below_2r::<F>(vector::not_negative::<F>(self.0)));
            if CANONICAL {
                x = vector::below_r::<F>(x);
            }
            vector::write(vector::to_words(x), to.cast(), 4 * lane_stride);
        }
    }

    #[inline(always)]
    fn compose(a: &Self::Multiplier, b: &Self::Multiplier) -> Self::Multiplier {
        unsafe { vector::carry(vector::montgomery::<F>(a, b, [_mm512_setzero_si512(); 5])) }
    }

    #[inline(always)]
    fn apply<const N: usize>(butterfly: impl Butterfly<N>, rows: [&mut Self; 4], by: &[Self::Multiplier; N]) {
        let [a, b, c, d] = rows;
        [*a, *b, *c, *d] = butterfly.butterfly([*a, *b, *c, *d], by);
    }

    #[inline(always)]
    fn mul_loaded(self, other: Self) -> Self {
        unsafe {
            let minus_r = vector::all_limbs(Constants::<F>::MINUS_R);
            Self(vector::montgomery::<F>(&self.0, &other.0, minus_r), PhantomData)
        }
    }
}
