//! Rows of eight elements in radix 2^52, for x86-64 with AVX-512 IFMA.
//!
//! A row is N vectors: vector i holds limb i of all eight elements. `vpmadd52luq` and `vpmadd52huq` multiply 52-bit limbs
//! and add the low or high half to a 64-bit accumulator, so that carries are propagated once a product, not once a limb.
//! The Montgomery radix is 2^(52N): 2^416 for BLS12-381 (N = 8), 2^260 for BN254 (N = 5).
//!
//! The operations are calls, not inlined: that costs little beside a product (about 300 instructions), and one copy of the
//! product stays in the instruction cache.

use std::{arch::x86_64::*, marker::PhantomData};

use super::{Lanes, Mask, PrimeLanes};

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

mod kernels;
mod modulus;
mod transpose;

use self::{
    kernels::{montgomery, montgomery_square, normalize, reduce, splat},
    modulus::{Bls, Bn, Prime},
};

/// A row over BLS12-381's base field.
pub(crate) type BlsRow = Row<Bls, 8>;

/// A row over BN254's base field.
pub(crate) type BnRow = Row<Bn, 5>;

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
