//! Eight scalars at once: what the transforms are written over.

use cuzk_curve::ScalarRepr;

/// Scalars in a row.
pub(crate) const LANES: usize = 8;

/// What a butterfly computes with: a row of scalars, or one of its lanes.
///
/// # Ranges
/// Values need not be fully reduced; comparing with r after every addition would cost more than it saves. With r the
/// modulus, a *loose* value lies anywhere in ±16r, a *tight* one in ±r. Every operation says what it takes and gives, and an
/// implementation whose values are always reduced is right too.
pub(crate) trait Arithmetic: Copy {
    /// Prepared to be multiplied by.
    type Multiplier: Copy;

    /// A loose value times a multiplier, tight.
    fn mul(self, by: &Self::Multiplier) -> Self;

    /// The sum; ranges add up.
    fn add(self, other: Self) -> Self;

    /// The difference; ranges add up.
    fn sub(self, other: Self) -> Self;

    /// The same residue, tight, of a loose value.
    fn reduce(self) -> Self;
}

/// A row of [`LANES`] scalars on which every operation acts lane by lane.
///
/// # Safety
/// Rows are made by the unsafe constructors only, which demand that the processor has what the implementation is
/// compiled for ([`Program::run`] is called by [`ScalarLanes::execute`] under exactly that condition). Whoever has a
/// row may therefore compute with it: the other operations are safe.
pub(crate) trait ScalarLanes: Arithmetic + Send + Sync + 'static {
    /// The field.
    type Field: ScalarRepr;
    /// One scalar, prepared to be multiplied by.
    type Scalar: Copy + Send + Sync;

    /// What the product of two loaded rows must be multiplied by to be the product of their scalars.
    fn product_scale() -> Self::Field;

    /// Prepares one scalar.
    fn scalar(x: Self::Field) -> Self::Scalar;

    /// Runs a program with this implementation.
    ///
    /// # Safety
    /// * The processor must have what the implementation is compiled for.
    unsafe fn execute<P: Program<Self>>(program: P);

    /// All lanes the same multiplier.
    ///
    /// # Safety
    /// * The processor must have what the implementation is compiled for.
    unsafe fn splat(x: &Self::Scalar) -> Self::Multiplier;

    /// Lane l the multiplier `x[l]`.
    ///
    /// # Safety
    /// * The processor must have what the implementation is compiled for.
    unsafe fn gather(x: &[Self::Field; LANES]) -> Self::Multiplier;

    /// Reads lane l from `from.add(l · lane_stride)`: values below 2r.
    ///
    /// # Safety
    /// * The processor must have what the implementation is compiled for.
    /// * Those places must be valid for reading, and initialised.
    unsafe fn load(from: *const Self::Field, lane_stride: usize) -> Self;

    /// Writes lane l of a loose row to `to.add(l · lane_stride)`: fully reduced if `CANONICAL`, else below 2r.
    ///
    /// # Safety
    /// * Those places must be valid for writing.
    unsafe fn store<const CANONICAL: bool>(self, to: *mut Self::Field, lane_stride: usize);

    /// The product of two multipliers, a multiplier again.
    fn compose(a: &Self::Multiplier, b: &Self::Multiplier) -> Self::Multiplier;

    /// A butterfly on four rows in place.
    fn apply<const N: usize>(butterfly: impl Butterfly<N>, rows: [&mut Self; 4], by: &[Self::Multiplier; N]);

    /// The product of two loaded rows, divided by [`ScalarLanes::product_scale`]; tight.
    fn mul_loaded(self, other: Self) -> Self;
}

/// Two layers of a transform on four values, with `N` multipliers; see [`super::tile`].
pub(crate) trait Butterfly<const N: usize>: Copy {
    /// Does it. Must be `#[inline(always)]`.
    fn butterfly<A: Arithmetic>(self, x: [A; 4], by: &[A::Multiplier; N]) -> [A; 4];
}

/// Work that is compiled once for each implementation of [`ScalarLanes`], with the processor features that it needs.
pub(crate) trait Program<L: ScalarLanes> {
    /// Does it. Must be `#[inline(always)]`, so that the body is compiled into [`ScalarLanes::execute`].
    ///
    /// # Safety
    /// * The processor must have what `L` is compiled for.
    /// * What the program itself demands of its fields.
    unsafe fn run(self);
}
