//! How much memory an operation takes, before anything is allocated.

use cuzk_curve::{CurveId, GroupId};

use crate::plan::{AssignmentView, BasesSpec, CoefficientIndices, MatrixView, NttPlan, QuotientPlan, RowOffsets};

/// The sizes of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Number of constraints.
    pub n_rows: u64,
    /// Number of non-zeros.
    pub n_nonzeros: u64,
    /// Number of different coefficients.
    pub n_coefficients: u64,
    /// Bytes of a row offset: 4 or 8.
    pub row_offset_bytes: u32,
    /// Bytes of a coefficient index: 1, 2 or 4.
    pub coefficient_bytes: u32,
}

impl MatrixShape {
    /// The sizes of a view.
    pub fn of(view: &MatrixView<'_>) -> Self {
        let (n_offsets, row_offset_bytes) = match view.row_offsets {
            RowOffsets::U32(offsets) => (offsets.len(), 4),
            RowOffsets::U64(offsets) => (offsets.len(), 8),
        };
        let coefficient_bytes = match view.coefficients {
            CoefficientIndices::U8(_) => 1,
            CoefficientIndices::U16(_) => 2,
            CoefficientIndices::U32(_) => 4,
        };
        Self {
            curve: view.curve,
            n_rows: (n_offsets as u64).saturating_sub(1),
            n_nonzeros: view.columns.len() as u64,
            n_coefficients: (view.dictionary.len() / view.curve.scalar_bytes()) as u64,
            row_offset_bytes,
            coefficient_bytes,
        }
    }

    /// Bytes of the parts of the view: offsets, columns, coefficient indices, dictionary.
    pub fn bytes(&self) -> u64 {
        let entry = 4 + u64::from(self.coefficient_bytes);
        ((self.n_rows.saturating_add(1)).saturating_mul(self.row_offset_bytes.into()))
            .saturating_add(self.n_nonzeros.saturating_mul(entry))
            .saturating_add(self.n_coefficients.saturating_mul(self.curve.scalar_bytes() as u64))
    }
}

/// The sizes of a packed assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignmentShape {
    /// Whose scalar field.
    pub curve: CurveId,
    /// Number of variables.
    pub n_variables: u64,
    /// How many of them are 1, or a bound.
    pub n_ones: u64,
    /// How many are neither 0 nor 1, or a bound.
    pub n_wide: u64,
}

impl AssignmentShape {
    /// The sizes of a view.
    pub fn of(view: &AssignmentView<'_>) -> Self {
        Self {
            curve: view.curve,
            n_variables: view.n_variables,
            n_ones: view.ones.iter().map(|word| u64::from(word.count_ones())).sum(),
            n_wide: (view.wide_scalars.len() / view.curve.scalar_bytes()) as u64,
        }
    }

    /// Bytes of the parts of the view: two bitmaps, ranks, wide scalars.
    pub fn bytes(&self) -> u64 {
        let words = self.n_variables.div_ceil(64);
        (words.saturating_mul(8 + 8 + 4)).saturating_add(self.n_wide.saturating_mul(self.curve.scalar_bytes() as u64))
    }
}

/// The sizes of a multi-scalar multiplication's scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarsShape {
    /// One scalar a base, in a buffer.
    Dense,
    /// Of a range of a packed assignment's variables.
    Assignment {
        /// The whole assignment.
        assignment: AssignmentShape,
        /// Variables of the range, with a base or not.
        len: u64,
    },
}

/// An operation by its sizes alone.
///
/// Those that make an object (`Matrix`, `Density`, `Assignment`, `Bases`) take what the object holds until it is
/// released; the others take memory beside their operands until they are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`crate::DeviceOps::ntt`].
    Ntt(NttPlan),
    /// [`crate::DeviceOps::quotient`].
    Quotient(QuotientPlan),
    /// [`crate::DeviceOps::matrix_create`].
    Matrix(MatrixShape),
    /// [`crate::DeviceOps::density_create`] over so many variables.
    Density {
        /// Number of variables.
        len: u64,
    },
    /// [`crate::DeviceOps::assignment_create`].
    Assignment(AssignmentShape),
    /// [`crate::DeviceOps::evaluate`].
    Evaluate(MatrixShape),
    /// [`crate::DeviceOps::bases_create`], including what `bases_finish` computes.
    Bases(BasesSpec),
    /// [`crate::DeviceOps::msm`], until the result has been released.
    Msm {
        /// The bases.
        bases: BasesSpec,
        /// The scalars.
        scalars: ScalarsShape,
    },
    /// [`crate::DeviceOps::fixed_base_mul`].
    FixedBase {
        /// Which curve.
        curve: CurveId,
        /// Which of its groups.
        group: GroupId,
        /// Number of scalars.
        count: u64,
    },
}

/// Bytes that an operation takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Workspace {
    /// The least device memory that it can do with; with less it is refused.
    pub least: u64,
    /// The device memory that it takes when as much is free as was asked about; `least` if even that is not.
    pub taken: u64,
    /// The device memory that it takes when any amount is free: more would not make it faster.
    pub best: u64,
    /// The part of `taken` that the device keeps afterwards, to be faster the next time, and gives up as soon as the
    /// room is needed.
    pub kept: u64,
    /// Pinned memory.
    pub pinned: u64,
}

impl Workspace {
    /// An operation that always takes the same.
    pub fn fixed(device: u64, pinned: u64) -> Self {
        Self { least: device, taken: device, best: device, kept: 0, pinned }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_count_what_their_views_hold() {
        let matrix = MatrixView {
            curve: CurveId::Bls12_381,
            n_columns: 3,
            row_offsets: RowOffsets::U64(&[0, 2, 3]),
            columns: &[0, 1, 2],
            coefficients: CoefficientIndices::U16(&[0, 1, 2]),
            dictionary: &[0; 96],
        };
        let shape = MatrixShape::of(&matrix);
        assert_eq!((shape.n_rows, shape.n_nonzeros, shape.n_coefficients), (2, 3, 3));
        assert_eq!(shape.bytes(), 3 * 8 + 3 * 4 + 3 * 2 + 96);
        let assignment = AssignmentView {
            curve: CurveId::Bn254,
            n_variables: 65,
            ones: &[0b11, 0],
            wide: &[0b100, 1],
            rank: &[0, 1],
            wide_scalars: &[1; 64],
        };
        let shape = AssignmentShape::of(&assignment);
        assert_eq!((shape.n_ones, shape.n_wide, shape.bytes()), (2, 2, 2 * 20 + 64));
        let endless = AssignmentShape { n_variables: u64::MAX, n_wide: u64::MAX, ..shape };
        assert_eq!(endless.bytes(), u64::MAX);
    }
}
