//! Rows of eight for any machine: four limbs of 64 bits, lane by lane, always fully reduced.
//!
//! The products are Montgomery's with R = 2^256, the form that scalars have in memory. They are written out here because
//! inlined they cost less than calls of the field libraries do.

use std::{hint::select_unpredictable, marker::PhantomData};

use cuzk_curve::{ScalarRepr, repr};

use super::lanes::{Arithmetic, Butterfly, LANES, Program, ScalarLanes};

type Limbs = [u64; 4];

/// Eight scalars.
#[derive(Clone, Copy)]
pub(crate) struct Portable<F>([Limbs; LANES], PhantomData<F>);

/// Arithmetic modulo the modulus of `F`.
struct Modulo<F>(PhantomData<F>);

impl<F: ScalarRepr> Modulo<F> {
    const R: Limbs = {
        let r = <F as ScalarRepr>::MODULUS;
        // One free bit: sums of two fit, and a product needs no fifth limb on the way.
        assert!(r[3] < 1 << 63);
        r
    };
    /// −r⁻¹ mod 2^64, by Newton's iteration.
    const INVERSE: u64 = {
        let (r, mut inverse, mut i) = (Self::R[0], Self::R[0].wrapping_mul(3) ^ 2, 0);
        while i < 4 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(r.wrapping_mul(inverse)));
            i += 1;
        }
        inverse.wrapping_neg()
    };

    /// a − b modulo 2^256, and whether it is negative.
    #[inline(always)]
    fn subtract(a: &Limbs, b: &Limbs) -> (Limbs, bool) {
        let (mut out, mut borrow) = ([0; 4], false);
        for i in 0..4 {
            (out[i], borrow) = a[i].borrowing_sub(b[i], borrow);
        }
        (out, borrow)
    }

    /// 0..2r to 0..r.
    #[inline(always)]
    fn reduce(a: &Limbs) -> Limbs {
        let (mut out, negative) = Self::subtract(a, &Self::R);
        for i in 0..4 {
            // As good as random: a conditional move, not a branch.
            out[i] = select_unpredictable(negative, a[i], out[i]);
        }
        out
    }

    #[inline(always)]
    fn add(a: &Limbs, b: &Limbs) -> Limbs {
        let (mut out, mut carry) = ([0; 4], false);
        for i in 0..4 {
            (out[i], carry) = a[i].carrying_add(b[i], carry);
        }
        Self::reduce(&out)
    }

    #[inline(always)]
    fn sub(a: &Limbs, b: &Limbs) -> Limbs {
        let (difference, negative) = Self::subtract(a, b);
        let (mut out, mut carry) = ([0; 4], false);
        for i in 0..4 {
            (out[i], carry) = difference[i].carrying_add(select_unpredictable(negative, Self::R[i], 0), carry);
        }
        out
    }

    /// a · b / 2^256.
    #[inline(always)]
    fn mul(a: &Limbs, b: &Limbs) -> Limbs {
        let mut t = [0; 4];
        for b in b {
            let (low, mut carry) = a[0].carrying_mul_add(*b, t[0], 0);
            let q = low.wrapping_mul(Self::INVERSE);
            let (_, mut reduced) = q.carrying_mul_add(Self::R[0], low, 0);
            for j in 1..4 {
                let low;
                (low, carry) = a[j].carrying_mul_add(*b, t[j], carry);
                (t[j - 1], reduced) = q.carrying_mul_add(Self::R[j], low, reduced);
            }
            t[3] = carry + reduced;
        }
        Self::reduce(&t)
    }
}

fn limbs<F: ScalarRepr>(x: F) -> Limbs {
    let mut limbs = [0; 4];
    limbs.copy_from_slice(repr::as_limbs(&[x]));
    limbs
}

/// A program behind a function that is compiled with multiplications that leave the flags alone.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2")]
fn compiled_for_bmi2<F: ScalarRepr, P: Program<Portable<F>>>(program: P) {
    // SAFETY: the implementation needs no processor feature; the program's own demands are the caller's.
    unsafe { program.run() }
}

/// One scalar.
#[derive(Clone, Copy)]
struct Lane<F>(Limbs, PhantomData<F>);

impl<F: ScalarRepr> Arithmetic for Lane<F> {
    type Multiplier = Limbs;

    #[inline(always)]
    fn mul(self, by: &Limbs) -> Self {
        Self(Modulo::<F>::mul(&self.0, by), PhantomData)
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(Modulo::<F>::add(&self.0, &other.0), PhantomData)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(Modulo::<F>::sub(&self.0, &other.0), PhantomData)
    }

    #[inline(always)]
    fn reduce(self) -> Self {
        self
    }
}

impl<F: ScalarRepr> Arithmetic for Portable<F> {
    type Multiplier = [Limbs; LANES];

    #[inline(always)]
    fn mul(mut self, by: &Self::Multiplier) -> Self {
        for (a, b) in self.0.iter_mut().zip(by) {
            *a = Modulo::<F>::mul(a, b);
        }
        self
    }

    #[inline(always)]
    fn add(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = Modulo::<F>::add(a, b);
        }
        self
    }

    #[inline(always)]
    fn sub(mut self, other: Self) -> Self {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = Modulo::<F>::sub(a, b);
        }
        self
    }

    #[inline(always)]
    fn reduce(self) -> Self {
        self
    }
}

impl<F: ScalarRepr> ScalarLanes for Portable<F> {
    type Field = F;
    type Scalar = Limbs;

    fn product_scale() -> F {
        F::ONE
    }

    fn scalar(x: F) -> Limbs {
        limbs(x)
    }

    unsafe fn execute<P: Program<Self>>(program: P) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("bmi2") {
            // SAFETY: the feature has just been found.
            return unsafe { compiled_for_bmi2::<F, P>(program) };
        }
        // SAFETY: this implementation needs no processor feature; the program's own demands are the caller's.
        unsafe { program.run() }
    }

    #[inline(always)]
    unsafe fn splat(x: &Limbs) -> Self::Multiplier {
        [*x; LANES]
    }

    #[inline(always)]
    unsafe fn gather(x: &[F; LANES]) -> Self::Multiplier {
        x.map(limbs)
    }

    #[inline(always)]
    unsafe fn load(from: *const F, lane_stride: usize) -> Self {
        let mut row = [[0; 4]; LANES];
        for (l, x) in row.iter_mut().enumerate() {
            // SAFETY: the caller's promise; a scalar is four limbs.
            *x = unsafe { from.add(l * lane_stride).cast::<Limbs>().read() };
        }
        Self(row, PhantomData)
    }

    #[inline(always)]
    unsafe fn store<const CANONICAL: bool>(self, to: *mut F, lane_stride: usize) {
        for (l, x) in self.0.into_iter().enumerate() {
            // SAFETY: the caller's promise; a scalar is four limbs.
            unsafe { to.add(l * lane_stride).cast::<Limbs>().write(x) };
        }
    }

    #[inline(always)]
    fn compose(a: &Self::Multiplier, b: &Self::Multiplier) -> Self::Multiplier {
        Self(*a, PhantomData).mul(b).0
    }

    /// Lane by lane, so that what lies between the four values and the result stays in registers.
    #[inline(always)]
    fn apply<const N: usize>(butterfly: impl Butterfly<N>, rows: [&mut Self; 4], by: &[Self::Multiplier; N]) {
        let [a, b, c, d] = rows;
        for l in 0..LANES {
            let x = [a.0[l], b.0[l], c.0[l], d.0[l]].map(|x| Lane::<F>(x, PhantomData));
            let y = butterfly.butterfly(x, &by.map(|m| m[l]));
            (a.0[l], b.0[l], c.0[l], d.0[l]) = (y[0].0, y[1].0, y[2].0, y[3].0);
        }
    }

    #[inline(always)]
    fn mul_loaded(self, other: Self) -> Self {
        self.mul(&other.0)
    }
}
