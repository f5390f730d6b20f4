//! Rows of one element, for any machine: blst's assembly for BLS12-381, `halo2curves` for BN254. Always fully reduced.

use blst::{
    blst_fp, blst_fp_add, blst_fp_cneg, blst_fp_eucl_inverse, blst_fp_mul, blst_fp_sqr, blst_fp_sub, blst_fp2,
    blst_fp2_mul, blst_fp2_sqr,
};
use ff::Field;
use halo2curves::bn256::Fq;

use super::{Lanes, Mask, PrimeLanes, constants};

/// One element of BLS12-381's base field.
#[derive(Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(crate) struct BlsFp(pub(crate) blst_fp);

/// One element of BN254's base field.
#[derive(Clone, Copy, PartialEq)]
#[repr(transparent)]
pub(crate) struct BnFp(pub(crate) Fq);

/// Calls a function of blst that writes its result through the first pointer.
macro_rules! blst_call {
    ($f:ident($($arg:expr),*)) => {{
        let mut out = blst_fp { l: [0; 6] };
        // SAFETY: every argument points to an initialised element that lives through the call, `out` is writable, and
        // blst allows any overlap of them.
        unsafe { $f(&mut out, $($arg),*) };
        BlsFp(out)
    }};
}

/// What both fields do in the same way, since their elements are reduced and a mask has one meaningful bit.
macro_rules! single_lane {
    ($zero:expr) => {
        const LANES: usize = 1;
        type Stored = Self;
        const STORED_ZERO: Self = $zero;

        fn zero() -> Self {
            $zero
        }

        #[inline(always)]
        fn load<'a>(at: impl Fn(usize) -> &'a Self) -> Self {
            *at(0)
        }

        #[inline(always)]
        unsafe fn store(&self, at: impl Fn(usize) -> *mut Self) {
            // SAFETY: the caller's obligation.
            unsafe { *at(0) = *self }
        }

        fn sub_tight(&self, other: &Self, flip: Mask) -> Self {
            if flip & 1 == 1 { other.sub(self) } else { self.sub(other) }
        }

        fn sub_two(&self, b: &Self, c: &Self) -> Self {
            self.sub(b).sub(c)
        }

        fn maybe_zero(&self) -> Mask {
            Mask::from(*self == $zero)
        }

        fn maybe_stored_zero(&self) -> Mask {
            self.maybe_zero()
        }

        fn is_zero(&self) -> Mask {
            self.maybe_zero()
        }

        fn select(mask: Mask, a: &Self, b: &Self) -> Self {
            if mask & 1 == 1 { *a } else { *b }
        }

        fn scale_y_in(&self) -> Self {
            *self
        }

        fn scale_y_out(&self) -> Self {
            *self
        }
    };
}

impl Lanes for BlsFp {
    single_lane!(BlsFp(blst_fp { l: [0; 6] }));

    fn one() -> Self {
        const ONE: [u64; 6] = constants::pow2(&constants::BLS12_381, 384);
        BlsFp(blst_fp { l: ONE })
    }

    #[inline(always)]
    fn mul(&self, other: &Self) -> Self {
        blst_call!(blst_fp_mul(&self.0, &other.0))
    }

    #[inline(always)]
    fn square(&self) -> Self {
        blst_call!(blst_fp_sqr(&self.0))
    }

    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        blst_call!(blst_fp_add(&self.0, &other.0))
    }

    #[inline(always)]
    fn sub(&self, other: &Self) -> Self {
        blst_call!(blst_fp_sub(&self.0, &other.0))
    }

    #[inline(always)]
    fn neg_if(&self, mask: Mask) -> Self {
        blst_call!(blst_fp_cneg(&self.0, mask & 1 == 1))
    }

    fn invert(&self) -> Self {
        blst_call!(blst_fp_eucl_inverse(&self.0))
    }

    fn import_x(native: &[u64]) -> Self {
        BlsFp(blst_fp { l: std::array::from_fn(|i| native[i]) })
    }

    fn export_x(stored: &Self, native: &mut [u64]) {
        native.copy_from_slice(&stored.0.l);
    }
}

impl PrimeLanes for BlsFp {
    fn mul_sum(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
        a.mul(b).add(&c.mul(d))
    }

    #[inline(always)]
    fn quad_mul(a: [&Self; 2], b: [&Self; 2]) -> [Self; 2] {
        let mut out = blst_fp2::default();
        let a = blst_fp2 { fp: [a[0].0, a[1].0] };
        let b = blst_fp2 { fp: [b[0].0, b[1].0] };
        // SAFETY: all three are initialised, live through the call, and `out` is writable.
        unsafe { blst_fp2_mul(&mut out, &a, &b) };
        out.fp.map(BlsFp)
    }

    #[inline(always)]
    fn quad_square(a: [&Self; 2]) -> [Self; 2] {
        let mut out = blst_fp2::default();
        let a = blst_fp2 { fp: [a[0].0, a[1].0] };
        // SAFETY: both are initialised, live through the call, and `out` is writable.
        unsafe { blst_fp2_sqr(&mut out, &a) };
        out.fp.map(BlsFp)
    }
}

impl Lanes for BnFp {
    single_lane!(BnFp(Fq([0; 4])));

    fn one() -> Self {
        BnFp(Fq::ONE)
    }

    #[inline(always)]
    fn mul(&self, other: &Self) -> Self {
        BnFp(self.0 * other.0)
    }

    #[inline(always)]
    fn square(&self) -> Self {
        BnFp(self.0.square())
    }

    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        BnFp(self.0 + other.0)
    }

    #[inline(always)]
    fn sub(&self, other: &Self) -> Self {
        BnFp(self.0 - other.0)
    }

    #[inline(always)]
    fn neg_if(&self, mask: Mask) -> Self {
        if mask & 1 == 1 { BnFp(-self.0) } else { *self }
    }

    fn invert(&self) -> Self {
        BnFp(self.0.invert().unwrap_or(Fq::ZERO))
    }

    fn import_x(native: &[u64]) -> Self {
        BnFp(Fq(std::array::from_fn(|i| native[i])))
    }

    fn export_x(stored: &Self, native: &mut [u64]) {
        native.copy_from_slice(&stored.0.0);
    }
}

impl PrimeLanes for BnFp {
    fn mul_sum(a: &Self, b: &Self, c: &Self, d: &Self) -> Self {
        a.mul(b).add(&c.mul(d))
    }
}
