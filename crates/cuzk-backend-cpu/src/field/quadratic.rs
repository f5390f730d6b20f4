//! The quadratic extension by u² = -1, the field of G2's coordinates on both curves.

use super::{Lanes, Mask, PrimeLanes};

/// A row of elements c0 + c1·u.
#[derive(Clone, Copy)]
pub(crate) struct Quad<B>(B, B);

impl<B: PrimeLanes> Lanes for Quad<B> {
    const LANES: usize = B::LANES;
    type Stored = [B::Stored; 2];
    const STORED_ZERO: Self::Stored = [B::STORED_ZERO; 2];

    fn zero() -> Self {
        Quad(B::zero(), B::zero())
    }

    fn one() -> Self {
        Quad(B::one(), B::zero())
    }

    #[inline(always)]
    fn load<'a>(at: impl Fn(usize) -> &'a Self::Stored) -> Self {
        Quad(B::load(|i| &at(i)[0]), B::load(|i| &at(i)[1]))
    }

    #[inline(always)]
    unsafe fn store(&self, at: impl Fn(usize) -> *mut Self::Stored) {
        // SAFETY: the caller's obligation; an element is its two coordinates in a row, so each pointer stays inside.
        unsafe {
            self.0.store(|i| at(i).cast());
            self.1.store(|i| at(i).cast::<B::Stored>().add(1));
        }
    }

    #[inline(always)]
    fn mul(&self, other: &Self) -> Self {
        let [c0, c1] = B::quad_mul([&self.0, &self.1], [&other.0, &other.1]);
        Quad(c0, c1)
    }

    #[inline(always)]
    fn square(&self) -> Self {
        let [c0, c1] = B::quad_square([&self.0, &self.1]);
        Quad(c0, c1)
    }

    #[inline(always)]
    fn add(&self, other: &Self) -> Self {
        Quad(self.0.add(&other.0), self.1.add(&other.1))
    }

    #[inline(always)]
    fn sub(&self, other: &Self) -> Self {
        Quad(self.0.sub(&other.0), self.1.sub(&other.1))
    }

    #[inline(always)]
    fn sub_tight(&self, other: &Self, flip: Mask) -> Self {
        Quad(self.0.sub_tight(&other.0, flip), self.1.sub_tight(&other.1, flip))
    }

    #[inline(always)]
    fn sub_two(&self, b: &Self, c: &Self) -> Self {
        Quad(self.0.sub_two(&b.0, &c.0), self.1.sub_two(&b.1, &c.1))
    }

    #[inline(always)]
    fn neg_if(&self, mask: Mask) -> Self {
        Quad(self.0.neg_if(mask), self.1.neg_if(mask))
    }

    #[inline(always)]
    fn maybe_zero(&self) -> Mask {
        self.0.maybe_zero() & self.1.maybe_zero()
    }

    #[inline(always)]
    fn maybe_stored_zero(&self) -> Mask {
        self.0.maybe_stored_zero() & self.1.maybe_stored_zero()
    }

    fn is_zero(&self) -> Mask {
        self.0.is_zero() & self.1.is_zero()
    }

    #[inline(always)]
    fn select(mask: Mask, a: &Self, b: &Self) -> Self {
        Quad(B::select(mask, &a.0, &b.0), B::select(mask, &a.1, &b.1))
    }

    fn invert(&self) -> Self {
        // 1 / (a + b·u) = (a - b·u) / (a² + b²)
        let norm_inverse = B::mul_sum(&self.0, &self.0, &self.1, &self.1).invert();
        let minus_c1 = B::zero().sub_tight(&self.1, 0);
        Quad(self.0.mul(&norm_inverse), minus_c1.mul(&norm_inverse))
    }

    fn import_x(native: &[u64]) -> Self::Stored {
        let (c0, c1) = native.split_at(native.len() / 2);
        [B::import_x(c0), B::import_x(c1)]
    }

    fn export_x(stored: &Self::Stored, native: &mut [u64]) {
        let (c0, c1) = native.split_at_mut(native.len() / 2);
        B::export_x(&stored[0], c0);
        B::export_x(&stored[1], c1);
    }

    // u lies in the prime field: both coordinates are scaled alike.
    fn scale_y_in(&self) -> Self {
        Quad(self.0.scale_y_in(), self.1.scale_y_in())
    }

    fn scale_y_out(&self) -> Self {
        Quad(self.0.scale_y_out(), self.1.scale_y_out())
    }
}
