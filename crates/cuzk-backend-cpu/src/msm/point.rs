//! Affine points in the form that rows compute with.

use cuzk_curve::{AffineRepr, repr};

use crate::field::Lanes;

/// An affine point over the field of the rows F, on the curve isomorphic to the native one (see [`Lanes::import_x`]).
/// Infinity has all bits zero. Aligned to cache lines, which a gathered load would otherwise straddle.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Point<F: Lanes> {
    pub(crate) x: F::Stored,
    pub(crate) y: F::Stored,
}

impl<F: Lanes> Point<F> {
    pub(crate) const INFINITY: Self = Point { x: F::STORED_ZERO, y: F::STORED_ZERO };

    pub(crate) fn is_infinity(&self) -> bool {
        self.x == F::STORED_ZERO && self.y == F::STORED_ZERO
    }

    /// Asks for a point's cache lines ahead of their use.
    #[inline(always)]
    pub(crate) fn prefetch(point: *const Self) {
        #[cfg(target_arch = "x86_64")]
        for line in 0..size_of::<Self>() / 64 {
            use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
            // SAFETY: a prefetch is a hint that never faults, whatever the address; SSE belongs to every x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(point.cast::<i8>().wrapping_add(64 * line)) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = point;
    }
}

/// Calls `f` with the y coordinates of the points, a row at a time, and writes back what it returns.
fn map_y<F: Lanes>(points: &mut [Point<F>], f: impl Fn(&F) -> F) {
    for row in points.chunks_mut(F::LANES) {
        let last = row.len() - 1; // the lanes past a short row repeat its last point
        let y = f(&F::load(|lane| &row[lane.min(last)].y));
        let base = row.as_mut_ptr();
        // SAFETY: the index is at most `last`, so the place is inside the row; lanes that share it write the same.
        unsafe { y.store(|lane| &raw mut (*base.add(lane.min(last))).y) };
    }
}

/// Converts native points; `base(i)` becomes `out[i]`.
pub(crate) fn import<'a, F: Lanes, A: AffineRepr>(out: &mut [Point<F>], base: impl Fn(usize) -> &'a A) {
    for (i, point) in out.iter_mut().enumerate() {
        let (x, y) = coordinates(std::slice::from_ref(base(i)));
        *point = Point { x: F::import_x(x), y: F::import_x(y) };
    }
    map_y(out, F::scale_y_in);
}

/// Converts to native points, fully reduced. `points` is left unspecified.
pub(crate) fn export<F: Lanes, A: AffineRepr>(points: &mut [Point<F>], out: &mut [A]) {
    map_y(points, F::scale_y_out);
    for (point, native) in points.iter().zip(out) {
        let limbs = repr::as_limbs_mut(std::slice::from_mut(native));
        let (x, y) = limbs.split_at_mut(limbs.len() / 2);
        F::export_x(&point.x, x);
        F::export_x(&point.y, y);
    }
}

/// One point in the native projective form.
pub(crate) fn to_curve<F: Lanes, A: AffineRepr>(point: &Point<F>) -> A::Curve {
    if point.is_infinity() {
        return A::identity().to_curve();
    }
    let mut native = [A::identity()];
    export(&mut [*point], &mut native);
    native[0].to_curve()
}

fn coordinates<A: AffineRepr>(point: &[A]) -> (&[u64], &[u64]) {
    let limbs = repr::as_limbs(point);
    limbs.split_at(limbs.len() / 2)
}
