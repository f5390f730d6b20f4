//! Transforms of 2^k rows, all in the cache: lane l of the rows is one transform, and all lanes are alike.
//!
//! Seen as polynomials, layer s of a transform of 2^k elements takes 2^s residues modulo X^(2m) − ζ² to twice as many modulo
//! X^m − ζ and X^m + ζ, m = 2^(k-1-s): the multiplier depends on the block t only, ζ = α_s · ω^rev(t), where ω is a
//! 2^(s+1)-th root of unity and α_s = α^(2^(k-1-s)) moves the transform to a coset. Rows go from natural to bit-reversed
//! order ([`forward`]: multiply, then add; nothing grows by more than r a layer) and back ([`inverse`]: add, then multiply).
//!
//! Two layers are done at a time, so that four rows stay in registers, and whole blocks are finished while they are in
//! the first-level cache.
//!
//! References: J. Cooley, J. Tukey, Math. Comp. 19 (1965); W. Gentleman, G. Sande, AFIPS 29 (1966); the tree of residues: C. Fiduccia,
//! "Polynomial evaluation via the division algorithm", STOC 1972.

use super::lanes::{Arithmetic, Butterfly, ScalarLanes};

/// Rows of a block that stay in the first-level cache: 64 rows of 320 bytes.
const LOG_NEAR_ROWS: u32 = 6;

/// The largest k: the rows' range grows by r a layer, from 2r to 13r of the 16r that there may be; 2^11 rows are 640 KiB.
pub(super) const MAX_LAYERS: u32 = 11;

/// The multipliers of a tile's layers; those of layer s + 1 that belong to block t of layer s have numbers 2t and 2t + 1.
pub(super) trait Twiddles<L: ScalarLanes> {
    /// The multiplier of a layer's block.
    ///
    /// # Safety
    /// * The processor must have what `L` is compiled for.
    unsafe fn get(&self, layer: u32, block: usize) -> L::Multiplier;
}

/// The same multipliers in every lane, from a table: layer s begins at entry 2^s.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, L: ScalarLanes>(pub(super) &'a [L::Scalar]);

impl<L: ScalarLanes> Twiddles<L> for Shared<'_, L> {
    #[inline(always)]
    unsafe fn get(&self, layer: u32, block: usize) -> L::Multiplier {
        // SAFETY: the caller's promise.
        unsafe { L::splat(&self.0[(1 << layer) + block]) }
    }
}

/// Multipliers on cosets that differ from lane to lane: α_s times the roots of unity.
///
/// A table of all of them would be as large as the data. Made where they are used they cost one product an element.
#[derive(Clone, Copy)]
pub(super) struct OnCosets<'a, L: ScalarLanes> {
    /// ω^rev(t) for a block t of any layer: the table of the last layer begins with those of the others.
    pub(super) roots: &'a [L::Scalar],
    /// α_s for each layer.
    pub(super) shifts: &'a [L::Multiplier],
}

impl<L: ScalarLanes> Twiddles<L> for OnCosets<'_, L> {
    #[inline(always)]
    unsafe fn get(&self, layer: u32, block: usize) -> L::Multiplier {
        // SAFETY: the caller's promise.
        L::compose(&self.shifts[layer as usize], &unsafe { L::splat(&self.roots[block]) })
    }
}

/// Two layers on the way to evaluations, multipliers: the block's of the first layer, those of its two halves of the second.
#[derive(Clone, Copy)]
struct Forward;

impl Butterfly<3> for Forward {
    #[inline(always)]
    fn butterfly<A: Arithmetic>(self, [a, b, c, d]: [A; 4], [w, w0, w1]: &[A::Multiplier; 3]) -> [A; 4] {
        let (x, y) = (c.mul(w), d.mul(w));
        let (a0, a1, b0, b1) = (a.add(x), a.sub(x), b.add(y).mul(w0), b.sub(y).mul(w1));
        [a0.add(b0), a0.sub(b0), a1.add(b1), a1.sub(b1)]
    }
}

/// The inverse of [`Forward`] times 4, with inverse multipliers: takes values within 4r, gives values within 2r.
#[derive(Clone, Copy)]
struct Inverse;

impl Butterfly<3> for Inverse {
    #[inline(always)]
    fn butterfly<A: Arithmetic>(self, [a, b, c, d]: [A; 4], [w, w0, w1]: &[A::Multiplier; 3]) -> [A; 4] {
        let (a0, a1, b0, b1) = (a.add(b), c.add(d), a.sub(b).mul(w0), c.sub(d).mul(w1));
        [a0.add(a1).reduce(), b0.add(b1), a0.sub(a1).mul(w), b0.sub(b1).mul(w)]
    }
}

/// As [`Inverse`] with a factor, which w0 and w1 hold already; one product more than without.
#[derive(Clone, Copy)]
struct InverseScaled;

impl Butterfly<5> for InverseScaled {
    #[inline(always)]
    fn butterfly<A: Arithmetic>(self, [a, b, c, d]: [A; 4], by: &[A::Multiplier; 5]) -> [A; 4] {
        let [w, w0, w1, factor, w_factor] = by;
        let (a0, a1, b0, b1) = (a.add(b), c.add(d), a.sub(b).mul(w0), c.sub(d).mul(w1));
        [a0.add(a1).mul(factor), b0.add(b1), a0.sub(a1).mul(w_factor), b0.sub(b1).mul(w)]
    }
}

/// Applies a butterfly to all quadruples of a block: rows of its first to its last quarter.
#[inline(always)]
fn quarters<const N: usize, L: ScalarLanes>(rows: &mut [L], butterfly: impl Butterfly<N>, by: &[L::Multiplier; N]) {
    let m = rows.len() / 4;
    let (a, rest) = rows.split_at_mut(m);
    let (b, rest) = rest.split_at_mut(m);
    let (c, d) = rest.split_at_mut(m);
    for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
        L::apply(butterfly, [a, b, c, d], by);
    }
}

/// The multipliers of layers `s` and `s + 1` for block `t` of layer `s`.
///
/// # Safety
/// * The processor must have what `L` is compiled for.
#[inline(always)]
unsafe fn multipliers<L: ScalarLanes>(twiddles: &impl Twiddles<L>, s: u32, t: usize) -> [L::Multiplier; 3] {
    // SAFETY: the caller's promise.
    let (w, w0, w1) = unsafe { (twiddles.get(s, t), twiddles.get(s + 1, 2 * t), twiddles.get(s + 1, 2 * t + 1)) };
    [w, w0, w1]
}

/// Layers `from..to`, two at a time, of block `first` of layer `from`.
#[inline(always)]
unsafe fn forward_layers<L: ScalarLanes>(
    rows: &mut [L],
    twiddles: &impl Twiddles<L>,
    from: u32,
    to: u32,
    first: usize,
) {
    let mut s = from;
    while s < to {
        let blocks = 1usize << (s - from);
        let size = rows.len() / blocks;
        for (t, block) in rows.chunks_exact_mut(size).enumerate() {
            // SAFETY: the caller's promise.
            let by = unsafe { multipliers(twiddles, s, first * blocks + t) };
            quarters(block, Forward, &by);
        }
        s += 2;
    }
}

/// The inverse of [`forward_layers`], down to layer `from`.
#[inline(always)]
unsafe fn inverse_layers<L: ScalarLanes>(
    rows: &mut [L],
    twiddles: &impl Twiddles<L>,
    from: u32,
    to: u32,
    first: usize,
) {
    let mut s = to;
    while s > from {
        s -= 2;
        let blocks = 1usize << (s - from);
        let size = rows.len() / blocks;
        for (t, block) in rows.chunks_exact_mut(size).enumerate() {
            // SAFETY: the caller's promise.
            let by = unsafe { multipliers(twiddles, s, first * blocks + t) };
            quarters(block, Inverse, &by);
        }
    }
}

/// Where the layers of a tile are split: an odd layer alone, then pairs over all rows, then pairs within near blocks.
fn split(layers: u32) -> (u32, u32) {
    let odd = layers % 2;
    let far = layers.saturating_sub(LOG_NEAR_ROWS + odd).next_multiple_of(2);
    (odd, odd + far)
}

/// Coefficients in natural order to evaluations in bit-reversed order. `rows` holds 2^layers rows below 2r.
///
/// # Safety
/// * The processor must have what `L` is compiled for.
#[inline(always)]
pub(super) unsafe fn forward<L: ScalarLanes>(rows: &mut [L], layers: u32, twiddles: &impl Twiddles<L>) {
    let (odd, near) = split(layers);
    if odd == 1 {
        // SAFETY: the caller's promise.
        let w = unsafe { twiddles.get(0, 0) };
        let (a, b) = rows.split_at_mut(rows.len() / 2);
        for (a, b) in a.iter_mut().zip(b) {
            let x = b.mul(&w);
            (*a, *b) = (a.add(x), a.sub(x));
        }
    }
    let half = rows.len() >> odd;
    for (t, block) in rows.chunks_exact_mut(half).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { forward_layers(block, twiddles, odd, near, t) };
    }
    if near < layers {
        let size = rows.len() >> near;
        for (t, block) in rows.chunks_exact_mut(size).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { forward_layers(block, twiddles, near, layers, t) };
        }
    }
}

/// The inverse of [`forward`], times 2^layers: evaluations in bit-reversed order to coefficients in natural order, with the
/// inverses of its multipliers, and times `scale`, which the multipliers of layer 1 (of layer 0, if the number of layers is
/// odd) must hold already.
///
/// # Safety
/// * The processor must have what `L` is compiled for.
#[inline(always)]
pub(super) unsafe fn inverse<L: ScalarLanes>(
    rows: &mut [L],
    layers: u32,
    twiddles: &impl Twiddles<L>,
    scale: Option<&L::Scalar>,
) {
    let (odd, near) = split(layers);
    // The pair that is scaled is left to the end.
    let last = if odd == 0 && scale.is_some() { 2 } else { odd };
    let near = near.max(last);
    if near < layers {
        let size = rows.len() >> near;
        for (t, block) in rows.chunks_exact_mut(size).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { inverse_layers(block, twiddles, near, layers, t) };
        }
    }
    let size = rows.len() >> last;
    for (t, block) in rows.chunks_exact_mut(size).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { inverse_layers(block, twiddles, last, near, t) };
    }
    // SAFETY: the caller's promise.
    let scale = scale.map(|scale| unsafe { L::splat(scale) });
    if odd == 1 {
        // SAFETY: the caller's promise.
        let w = unsafe { twiddles.get(0, 0) };
        let (a, b) = rows.split_at_mut(rows.len() / 2);
        for (a, b) in a.iter_mut().zip(b) {
            let sum = a.add(*b);
            let sum = match &scale {
                Some(scale) => sum.mul(scale),
                None => sum,
            };
            (*a, *b) = (sum, a.sub(*b).mul(&w));
        }
    } else if let Some(scale) = &scale {
        // SAFETY: the caller's promise.
        let [w, w0, w1] = unsafe { multipliers(twiddles, 0, 0) };
        quarters(rows, InverseScaled, &[w, w0, w1, *scale, L::compose(&w, scale)]);
    }
}
