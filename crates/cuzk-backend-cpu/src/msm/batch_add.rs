//! Many affine additions with one inversion.
//!
//! An affine addition costs one inversion, two products and a square. Montgomery's trick shares the inversion: a pass over
//! all pairs multiplies up the denominators, one inversion follows, and a pass back divides it out: five products and
//! a square an addition, where a mixed Jacobian addition needs eleven.
//!
//! The exceptional pairs (a point and itself, a point and its negative, infinity) are found by a test of a few
//! instructions a row, and cost more only when they occur.

use super::point::Point;
use crate::field::{Lanes, Mask};

/// In an index with a sign: the point is negated.
pub(crate) const NEGATIVE: u32 = 1 << 31;

/// Points that will be needed soon: asked for during the second passes, where memory has nothing else to do.
///
/// The additions read points faster than memory can deliver them at random; spread over all that is computed with them, it
/// can.
pub(crate) struct Ahead<'a, F: Lanes> {
    pub(crate) points: &'a [Point<F>],
    /// Which of them; a sign does not matter.
    pub(crate) indices: &'a [u32],
}

impl<F: Lanes> Ahead<'_, F> {
    pub(crate) fn nothing() -> Self {
        Ahead { points: &[], indices: &[] }
    }

    /// Asks for the next points: a few more than a row adds, so that a block's rows are enough for the next block.
    #[inline(always)]
    fn step(&mut self) {
        let (now, later) = self.indices.split_at(self.indices.len().min(F::LANES + F::LANES / 4));
        self.indices = later;
        for &index in now {
            Point::prefetch(self.points.as_ptr().wrapping_add(place(index)));
        }
    }
}

/// Which points to add: pair i is `left[l[i]] + right[r[i]]`, written to `out[o[i]]`.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) left: Vec<u32>,
    pub(crate) right: Vec<u32>,
    pub(crate) out: Vec<u32>,
}

impl Pairs {
    #[inline(always)]
    pub(crate) fn push(&mut self, left: u32, right: u32, out: u32) {
        self.left.push(left);
        self.right.push(right);
        self.out.push(out);
    }

    pub(crate) fn clear(&mut self) {
        self.left.clear();
        self.right.clear();
        self.out.clear();
    }

    /// Repeats the last pair until the rows are full. The repeated lanes write the same point to the same place.
    fn pad(&mut self, lanes: usize) {
        while !self.out.len().is_multiple_of(lanes) {
            let last = self.out.len() - 1;
            self.push(self.left[last], self.right[last], self.out[last]);
        }
    }
}

/// What the first pass leaves for the second: a denominator and the product of all before it, for each row.
pub(crate) struct Scratch<F> {
    denominators: Vec<F>,
    prefixes: Vec<F>,
}

impl<F: Lanes> Scratch<F> {
    pub(crate) fn new() -> Self {
        Scratch { denominators: Vec::new(), prefixes: Vec::new() }
    }

    /// The empty product.
    fn begin(&mut self) -> F {
        self.denominators.clear();
        self.prefixes.clear();
        F::one()
    }
}

/// Pairs, and where their points are. With `SIGNED`, indices carry a sign in [`NEGATIVE`].
pub(crate) struct Segment<'a, F: Lanes, const SIGNED: bool> {
    pub(crate) left: &'a [Point<F>],
    pub(crate) right: &'a [Point<F>],
    pub(crate) pairs: &'a mut Pairs,
}

/// Adds the pairs of two segments, with one inversion for both, and writes all sums to `out`.
///
/// Panics if an index lies outside of its slice.
pub(crate) fn batch_add<F: Lanes, const SIGNED: bool>(
    first: Segment<'_, F, SIGNED>,
    second: Segment<'_, F, false>,
    out: &mut [Point<F>],
    scratch: &mut Scratch<F>,
    ahead: &mut Ahead<'_, F>,
) {
    let first = Rows::<F, SIGNED>::new(first, out.len());
    let second = Rows::<F, false>::new(second, out.len());
    let out = out.as_mut_ptr();
    let mut product = scratch.begin();
    // SAFETY: what is read are borrowed slices, `out` is another; the indices were checked by `Rows::new`.
    unsafe {
        first.first_pass(&mut product, scratch);
        second.first_pass(&mut product, scratch);
        let mut inverse = product.invert();
        second.second_pass(&mut inverse, scratch, out, ahead);
        first.second_pass(&mut inverse, scratch, out, ahead);
    }
}

/// `acc[o] += right[r]` for each pair, all `o` different; the left indices must equal `o` (they may carry no sign).
///
/// Panics if an index lies outside of its slice.
pub(crate) fn batch_add_assign<F: Lanes>(
    acc: &mut [Point<F>],
    right: &[Point<F>],
    pairs: &mut Pairs,
    scratch: &mut Scratch<F>,
    ahead: &mut Ahead<'_, F>,
) {
    assert_eq!(pairs.left, pairs.out);
    let acc_len = acc.len();
    let acc = acc.as_mut_ptr();
    let mut product = scratch.begin();
    // SAFETY: the indices are checked against the length of `acc` and of `right`. The first pass only reads. In the second a
    // row is read before it is written, and no other row reads what it writes.
    unsafe {
        let rows = Rows::<F, true>::checked(acc, acc_len, right, pairs, acc_len);
        rows.first_pass(&mut product, scratch);
        rows.second_pass(&mut product.invert(), scratch, acc, ahead);
    }
}

fn check<const SIGNED: bool>(indices: &[u32], len: usize) {
    let mask = if SIGNED { !NEGATIVE } else { u32::MAX };
    let highest = indices.iter().map(|i| i & mask).max();
    assert!(highest.is_none_or(|i| (i as usize) < len));
}

/// The lanes of a row whose index is negative.
#[inline(always)]
fn signs(indices: &[u32]) -> Mask {
    indices.iter().enumerate().fold(0, |mask, (lane, i)| mask | ((i >> 31) as Mask) << lane)
}

#[inline(always)]
fn place(index: u32) -> usize {
    (index & !NEGATIVE) as usize
}

/// Pairs in full rows, with indices that were checked.
struct Rows<'a, F: Lanes, const SIGNED: bool> {
    left: *const Point<F>,
    right: &'a [Point<F>],
    pairs: &'a Pairs,
}

impl<'a, F: Lanes, const SIGNED: bool> Rows<'a, F, SIGNED> {
    fn new(segment: Segment<'a, F, SIGNED>, out_len: usize) -> Self {
        let Segment { left, right, pairs } = segment;
        Self::checked(left.as_ptr(), left.len(), right, pairs, out_len)
    }

    fn checked(
        left: *const Point<F>,
        left_len: usize,
        right: &'a [Point<F>],
        pairs: &'a mut Pairs,
        out_len: usize,
    ) -> Self {
        check::<SIGNED>(&pairs.left, left_len);
        check::<SIGNED>(&pairs.right, right.len());
        check::<false>(&pairs.out, out_len);
        pairs.pad(F::LANES);
        Rows { left, right, pairs }
    }

    fn len(&self) -> usize {
        self.pairs.out.len() / F::LANES
    }

    /// # Safety
    /// * The pointer that the indices were checked for may be read.
    #[inline(always)]
    unsafe fn left(&self, index: u32) -> &Point<F> {
        // SAFETY: the caller's obligation; the index is below the length.
        unsafe { &*self.left.add(if SIGNED { place(index) } else { index as usize }) }
    }

    #[inline(always)]
    fn right(&self, index: u32) -> &Point<F> {
        // SAFETY: the index was checked against the slice's length.
        unsafe { self.right.get_unchecked(if SIGNED { place(index) } else { index as usize }) }
    }

    /// Multiplies up the denominators.
    ///
    /// # Safety
    /// * The pointer that the indices were checked for may be read.
    unsafe fn first_pass(&self, product: &mut F, scratch: &mut Scratch<F>) {
        scratch.denominators.reserve(self.len());
        scratch.prefixes.reserve(self.len());
        let rows = self.pairs.left.chunks_exact(F::LANES).zip(self.pairs.right.chunks_exact(F::LANES));
        for (l, r) in rows {
            // SAFETY: the caller's obligation.
            let left = |i: usize| unsafe { self.left(l[i]) };
            let (x1, x2) = (F::load(|i| &left(i).x), F::load(|i| &self.right(r[i]).x));
            let mut denominator = x2.sub(&x1);
            if denominator.maybe_zero() | x1.maybe_stored_zero() | x2.maybe_stored_zero() != 0 {
                let (y1, y2) = (F::load(|i| &left(i).y), F::load(|i| &self.right(r[i]).y));
                let flip = if SIGNED { signs(l) ^ signs(r) } else { 0 };
                denominator = Exceptions::find(&denominator, &x1, &y1, &x2, &y2, flip).denominator(&denominator, &y1);
            }
            scratch.denominators.push(denominator);
            scratch.prefixes.push(*product);
            *product = denominator.mul(product);
        }
    }

    /// Divides out the denominators and adds, from the last row to the first. Takes from the scratch what `first_pass` put
    /// there last.
    ///
    /// # Safety
    /// * The pointer that the indices were checked for may be read, and `out` written at all out indices.
    /// * No row reads what a row of a higher number writes.
    unsafe fn second_pass(
        &self,
        inverse: &mut F,
        scratch: &mut Scratch<F>,
        out: *mut Point<F>,
        ahead: &mut Ahead<'_, F>,
    ) {
        for row in (0..self.len()).rev() {
            let range = row * F::LANES..(row + 1) * F::LANES;
            let (l, r, o) = (&self.pairs.left[range.clone()], &self.pairs.right[range.clone()], &self.pairs.out[range]);
            let (Some(denominator), Some(prefix)) = (scratch.denominators.pop(), scratch.prefixes.pop()) else {
                return;
            };
            ahead.step();
            let own_inverse = inverse.mul(&prefix);
            *inverse = denominator.mul(inverse);
            // SAFETY: the caller's obligation.
            let left = |i: usize| unsafe { self.left(l[i]) };
            let (x1, x2) = (F::load(|i| &left(i).x), F::load(|i| &self.right(r[i]).x));
            let (y1, y2) = (F::load(|i| &left(i).y), F::load(|i| &self.right(r[i]).y));
            // s₁P₁ + s₂P₂ = s₁(P₁ + s₁s₂P₂)
            let (sign, flip) = if SIGNED { (signs(l), signs(l) ^ signs(r)) } else { (0, 0) };
            let numerator = if SIGNED { y2.neg_if(flip).sub(&y1) } else { y2.sub(&y1) };

            let difference = x2.sub(&x1);
            let (x3, y3);
            if difference.maybe_zero() | x1.maybe_stored_zero() | x2.maybe_stored_zero() == 0 {
                let slope = numerator.mul(&own_inverse);
                x3 = slope.square().sub_two(&x1, &x2);
                y3 = x1.sub(&x3).mul(&slope).sub_tight(&y1, sign);
            } else {
                let exceptions = Exceptions::find(&difference, &x1, &y1, &x2, &y2, flip);
                let slope = exceptions.numerator(&numerator, &x1).mul(&own_inverse);
                let x = slope.square().sub_two(&x1, &x2);
                let y = x1.sub(&x).mul(&slope).sub_tight(&y1, sign);
                let signed = |y: &F, sign: Mask| F::zero().sub_tight(y, !sign);
                x3 = exceptions.result(&x, &x1, &x2);
                y3 = exceptions.result(&y, &signed(&y1, sign), &signed(&y2, sign ^ flip));
            }
            // SAFETY: the caller's obligation.
            unsafe {
                x3.store(|i| &raw mut (*out.add(o[i] as usize)).x);
                y3.store(|i| &raw mut (*out.add(o[i] as usize)).y);
            }
        }
    }
}

/// The lanes of a row that the addition formula does not cover.
struct Exceptions {
    /// P₁ is infinity.
    left_infinite: Mask,
    /// P₂ is infinity.
    right_infinite: Mask,
    /// P₁ = P₂.
    equal: Mask,
    /// P₁ = -P₂.
    opposite: Mask,
}

impl Exceptions {
    /// `difference` is x₂ - x₁; P₂ is negated in the lanes of `flip`.
    #[cold]
    fn find<F: Lanes>(difference: &F, x1: &F, y1: &F, x2: &F, y2: &F, flip: Mask) -> Self {
        let left_infinite = x1.is_zero() & y1.is_zero();
        let right_infinite = x2.is_zero() & y2.is_zero();
        let same_x = difference.is_zero() & !left_infinite & !right_infinite;
        let opposite = same_x & y2.neg_if(!flip).sub(y1).is_zero();
        Exceptions { left_infinite, right_infinite, equal: same_x & !opposite, opposite }
    }

    /// 2y₁ for a doubling, 1 where nothing is to be divided.
    fn denominator<F: Lanes>(&self, difference: &F, y1: &F) -> F {
        let trivial = self.left_infinite | self.right_infinite | self.opposite;
        F::select(trivial, &F::one(), &F::select(self.equal, &y1.add(y1), difference))
    }

    /// 3x₁² for a doubling.
    fn numerator<F: Lanes>(&self, numerator: &F, x1: &F) -> F {
        let square = x1.square();
        F::select(self.equal, &square.add(&square.add(&square)), numerator)
    }

    /// A coordinate of the sum, given what the formula says and the coordinates of both points.
    fn result<F: Lanes>(&self, formula: &F, left: &F, right: &F) -> F {
        let result = F::select(self.left_infinite, right, formula);
        let result = F::select(self.right_infinite, left, &result);
        F::select(self.opposite | self.left_infinite & self.right_infinite, &F::zero(), &result)
    }
}
