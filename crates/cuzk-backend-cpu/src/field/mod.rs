//! Base-field arithmetic, several elements at a time.
//!
//! [`Lanes`] is what the batched point additions are written over: a row of `LANES` independent field elements on which
//! every operation acts lane by lane. [`portable`] has rows of one element for any machine, [`ifma`] rows of eight for
//! x86-64 with AVX-512 IFMA; [`Quad`] makes the quadratic extension (the field of G2) from either.
//!
//! # Redundancy
//! Rows of eight are not fully reduced: a comparison with the modulus after each operation would cost more than what
//! it saves. Every operation says what it takes and gives:
//! * *tight*: below 2p; what is stored in memory and what products return;
//! * *loose*: below 8p; sums and differences, good only as the first factor of a product;
//! * *signed*: limbs that may be negative; what [`Lanes::neg_if`] returns, good only as an operand of [`Lanes::sub`].
//!
//! # References
//! * S. Gueron, V. Krasnov, "Accelerating big integer arithmetic using Intel IFMA extensions", ARITH 2016.
//! * P. Montgomery, "Modular multiplication without trial division", Math. Comp. 44 (1985).

pub(crate) mod constants;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
pub(crate) mod portable;
mod quadratic;
#[cfg(test)]
mod tests;

pub(crate) use quadratic::Quad;

/// One bit a lane, lane 0 lowest.
pub(crate) type Mask = u8;

/// A row of `LANES` elements of one field.
pub(crate) trait Lanes: Copy + Send + Sync + 'static {
    /// Elements in a row: at most 8, so that a [`Mask`] has a bit for each.
    const LANES: usize;

    /// One tight element in memory; all bits zero is the element zero.
    type Stored: Copy + Send + Sync + PartialEq + 'static;

    /// Zero in memory.
    const STORED_ZERO: Self::Stored;

    /// All lanes zero.
    fn zero() -> Self;

    /// All lanes one.
    fn one() -> Self;

    /// Reads lane `i` from `at(i)`.
    fn load<'a>(at: impl Fn(usize) -> &'a Self::Stored) -> Self;

    /// Writes lane `i` of a tight row to `at(i)`.
    ///
    /// # Safety
    /// * `at(i)` must be valid for writing and aligned, for every lane.
    unsafe fn store(&self, at: impl Fn(usize) -> *mut Self::Stored);

    /// The product, tight. The factors together must not exceed 80p²: loose · tight, or loose · a sum of two tight ones.
    fn mul(&self, other: &Self) -> Self;

    /// The square of a tight row, tight.
    fn square(&self) -> Self;

    /// Both tight: the sum, loose. Tight and the sum of two: loose as well.
    fn add(&self, other: &Self) -> Self;

    /// Both tight or signed: the difference, loose.
    fn sub(&self, other: &Self) -> Self;

    /// Both tight: `self - other`, or `other - self` in the lanes of `flip`; tight.
    fn sub_tight(&self, other: &Self, flip: Mask) -> Self;

    /// All tight: `self - b - c`, tight.
    fn sub_two(&self, b: &Self, c: &Self) -> Self;

    /// The negative in the lanes of `mask`, signed.
    fn neg_if(&self, mask: Mask) -> Self;

    /// Of a row that [`sub`](Self::sub) returned: at least the lanes that are zero; another lane is named with
    /// probability below 2^-40.
    fn maybe_zero(&self) -> Mask;

    /// Of a loaded row: at least the lanes that were stored as zero; cheaper than `maybe_zero`.
    fn maybe_stored_zero(&self) -> Mask;

    /// The lanes that are zero, of a tight or loose row.
    fn is_zero(&self) -> Mask;

    /// `a` in the lanes of `mask`, `b` in the others.
    fn select(mask: Mask, a: &Self, b: &Self) -> Self;

    /// The inverse of a tight row, tight; zero for zero.
    fn invert(&self) -> Self;

    /// Takes an x coordinate from the Montgomery limbs of [`cuzk_curve`]. What is stored is a coordinate of the isomorphic
    /// curve (u²x, u³y), with u such that these are the same bits.
    fn import_x(native: &[u64]) -> Self::Stored;

    /// Gives an x coordinate back, fully reduced.
    fn export_x(stored: &Self::Stored, native: &mut [u64]);

    /// What takes a y coordinate, imported as if it were an x, to the isomorphic curve: a product by a constant.
    fn scale_y_in(&self) -> Self;

    /// The inverse of [`scale_y_in`](Self::scale_y_in).
    fn scale_y_out(&self) -> Self;
}

/// A row over a prime field, with the products of its extension by u² = -1.
pub(crate) trait PrimeLanes: Lanes {
    /// `a·b + c·d`, tight. The two products together must not exceed 80p².
    fn mul_sum(a: &Self, b: &Self, c: &Self, d: &Self) -> Self;

    /// (a₀ + a₁u)·(b₀ + b₁u) with a loose and b tight; tight.
    #[inline(always)]
    fn quad_mul(a: [&Self; 2], b: [&Self; 2]) -> [Self; 2] {
        // Four products and two reductions: as many multiplications as Karatsuba's three reduced products, and fewer
        // additions.
        let minus_b1 = Self::zero().sub_tight(b[1], 0);
        [Self::mul_sum(a[0], b[0], a[1], &minus_b1), Self::mul_sum(a[0], b[1], a[1], b[0])]
    }

    /// (a₀ + a₁u)² with a tight; tight.
    #[inline(always)]
    fn quad_square(a: [&Self; 2]) -> [Self; 2] {
        [a[0].sub(a[1]).mul(&a[0].add(a[1])), a[0].add(a[0]).mul(a[1])]
    }
}
