//! What an operation is to do: shapes, units, element order, domain and coset.
//!
//! Scalars and points lie in memory as `cuzk_curve::repr` says: Montgomery limbs, little-endian, infinity all zero.
//! omega is `ScalarRepr::root_of_unity(log_n)`, the generator of the domain that `ff` and bellperson use.

use std::ops::Range;

use cuzk_curve::{CurveId, GroupId};

use crate::{
    density::Density,
    objects::{Buffer, DeviceAssignment},
};

/// Which way a number-theoretic transform goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// Coefficients to evaluations: `y[i] = Σ_j x[j] (g ω^i)^j`.
    Forward = 1,
    /// Evaluations to coefficients: the inverse of `Forward`, division by n and by the powers of g included.
    Inverse = 2,
}

/// The order of the elements before and after a transform. Bit-reversed: the element with index i stands at the place
/// whose `log_n` bits are those of i in reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Order {
    /// Natural in, natural out.
    Natural = 1,
    /// Natural in, bit-reversed out.
    NaturalToBitReversed = 2,
    /// Bit-reversed in, natural out.
    BitReversedToNatural = 3,
}

/// The domain that a transform evaluates on: g times the n-th roots of unity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coset {
    /// g = 1: the roots of unity themselves.
    One,
    /// g as Montgomery limbs; never zero.
    Shift([u64; 4]),
}

/// A number-theoretic transform of 2^`log_n` scalars in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NttPlan {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Binary logarithm of the number of scalars, from 0 to the field's two-adicity.
    pub log_n: u32,
    /// Coefficients to evaluations, or back.
    pub direction: Direction,
    /// Which domain.
    pub coset: Coset,
    /// Where each element stands.
    pub order: Order,
}

/// The quotient polynomial of a satisfied constraint system over a domain of n = 2^`log_n` elements.
///
/// Given a = A·w and b = B·w as evaluations on the domain in natural order (n scalars each), computes the coefficients of
/// `h = (a·b − c) / (Xⁿ − 1)`, where c is the polynomial of degree below n that equals a·b on the domain: n scalars in
/// natural order, the last of them zero. With g a 2n-th root of unity, gⁿ = −1, the interpolation u of a·b on the coset
/// g·⟨ω⟩ is c − 2h, so h = (c − u)/2: six transforms, and C·w is not needed. If w does not satisfy the system the result is
/// still well defined, and a proof made from it fails its verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotientPlan {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Binary logarithm of the domain's size, from 0 to one less than the field's two-adicity.
    pub log_n: u32,
}

/// Offsets of a matrix's rows in its list of non-zeros: `n_rows + 1` numbers, the first 0, never decreasing.
#[derive(Clone, Copy, Debug)]
pub enum RowOffsets<'a> {
    /// Below 2^32 non-zeros.
    U32(&'a [u32]),
    /// Any number of non-zeros.
    U64(&'a [u64]),
}

/// For each non-zero the index of its coefficient in the dictionary.
#[derive(Clone, Copy, Debug)]
pub enum CoefficientIndices<'a> {
    /// At most 2^8 different coefficients.
    U8(&'a [u8]),
    /// At most 2^16.
    U16(&'a [u16]),
    /// More.
    U32(&'a [u32]),
}

/// One of the matrices A, B, C of a constraint system, rows = constraints, columns = variables (inputs with ONE first),
/// in compressed sparse row form with a dictionary of coefficients.
#[derive(Clone, Copy, Debug)]
pub struct MatrixView<'a> {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Number of variables.
    pub n_columns: u64,
    /// Where each row's non-zeros begin.
    pub row_offsets: RowOffsets<'a>,
    /// For each non-zero its variable, below `n_columns`.
    pub columns: &'a [u32],
    /// For each non-zero its coefficient.
    pub coefficients: CoefficientIndices<'a>,
    /// The different coefficients as scalars; entry 0 is 1, entry 1 is −1, so a device needs no product for these.
    pub dictionary: &'a [u8],
}

/// An assignment of all variables (inputs with ONE first, then aux) in packed form: most are 0 or 1. There is one such form of
/// each assignment: what is 0 or 1 is not wide.
#[derive(Clone, Copy, Debug)]
pub struct AssignmentView<'a> {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Number of variables.
    pub n_variables: u64,
    /// Bit v (bit v mod 64 of word v / 64): variable v is 1, as variable 0 always is. No bit is set past the last variable.
    pub ones: &'a [u64],
    /// Bit v: the value of variable v stands in `wide_scalars`. Disjoint from `ones`.
    pub wide: &'a [u64],
    /// For each word of `wide` the number of bits set in the words before it.
    pub rank: &'a [u32],
    /// The scalars of the wide variables in their order: canonical, neither 0 nor 1.
    pub wide_scalars: &'a [u8],
}

/// Where the points of a multi-scalar multiplication are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Residency {
    /// In the device's memory.
    Device = 1,
    /// In pinned host memory, streamed to the device in chunks while it computes.
    Pinned = 2,
}

/// A list of points to be multiplied by many vectors of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BasesSpec {
    /// Which curve.
    pub curve: CurveId,
    /// Which of its groups.
    pub group: GroupId,
    /// Number of points. They lie in the subgroup of order r; infinity is allowed.
    pub count: u64,
    /// Where they are kept, as a residency plan made from the budget decided.
    pub residency: Residency,
    /// How many multiples of each point may be computed in advance and kept with it: 1 is the point alone, and all
    /// there is for points in pinned memory. More save time for dense scalars and take as many times the memory; a
    /// device uses as many of them as serve it, or refuses more than 1 as unsupported. Results are the same.
    pub multiples: u32,
}

/// Many multiples of one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedBasePlan {
    /// Which curve.
    pub curve: CurveId,
    /// Which of its groups.
    pub group: GroupId,
    /// The point: affine, Montgomery limbs.
    pub base: Vec<u8>,
    /// Number of scalars, and of points that come out.
    pub count: u64,
}

/// The scalars of a multi-scalar multiplication. Base number i belongs to the i-th of them.
#[derive(Clone, Debug)]
pub enum MsmScalars<'a> {
    /// `len` scalars in a buffer, from scalar number `first` on.
    Dense {
        /// Where they lie.
        buffer: &'a Buffer,
        /// Number of the first.
        first: u64,
        /// How many.
        len: u64,
    },
    /// Variables of a packed assignment.
    Assignment {
        /// The assignment.
        assignment: &'a DeviceAssignment,
        /// Which variables.
        variables: Range<u64>,
        /// Only those whose bit is set here; `None`: all.
        density: Option<&'a Density>,
    },
}
