//! A constraint system on a device.

use cuzk_backend::{CoefficientIndices, Density, Device, Matrix, MatrixView, RowOffsets};
use cuzk_curve::{CurveId, ScalarRepr, repr};
use cuzk_r1cs::{CoeffIndices, CsrMatrix, R1cs};

use crate::{ProveError, pace::Pace};

/// What a prover needs of a constraint system, on a device: the matrices A and B and which variables occur in them. C is not
/// needed: for a satisfied system C·w is the product of the other two, and for any other the proof fails its verification.
#[derive(Debug)]
pub struct DeviceCircuit {
    pub(crate) curve: CurveId,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) a_density: Density,
    pub(crate) b_density: Density,
    pub(crate) n_inputs: u64,
    pub(crate) n_variables: u64,
    pub(crate) log_n: u32,
    pub(crate) pace: Pace,
}

impl DeviceCircuit {
    /// Copies A and B to a device.
    ///
    /// # Errors
    /// The device has no room, or fails.
    pub fn load<F: ScalarRepr>(device: &Device, r1cs: &R1cs<F>) -> Result<Self, ProveError> {
        let n_variables = r1cs.n_variables() as u64;
        let densities = r1cs.densities();
        Ok(Self {
            curve: F::CURVE,
            a: device.load_matrix(&view(r1cs.a()))?,
            b: device.load_matrix(&view(r1cs.b()))?,
            a_density: device.load_density(densities.a.words(), n_variables)?,
            b_density: device.load_density(densities.b.words(), n_variables)?,
            n_inputs: r1cs.n_inputs() as u64,
            n_variables,
            log_n: r1cs.log_domain(),
            pace: Pace::default(),
        })
    }

    /// Number of inputs, ONE included.
    pub fn n_inputs(&self) -> u64 {
        self.n_inputs
    }

    /// Number of variables, inputs and aux.
    pub fn n_variables(&self) -> u64 {
        self.n_variables
    }

    /// Binary logarithm of the domain's size.
    pub fn log_domain(&self) -> u32 {
        self.log_n
    }

    /// Bytes of device memory that a proof takes beside the circuit and the key: two vectors over the domain.
    pub fn evaluation_bytes(&self) -> u64 {
        2 * ((self.curve.scalar_bytes() as u64) << self.log_n)
    }
}

pub(crate) fn view<F: ScalarRepr>(matrix: &CsrMatrix<F>) -> MatrixView<'_> {
    MatrixView {
        curve: F::CURVE,
        n_columns: matrix.n_cols() as u64,
        row_offsets: match matrix.offsets() {
            cuzk_r1cs::RowOffsets::U32(offsets) => RowOffsets::U32(offsets),
            cuzk_r1cs::RowOffsets::U64(offsets) => RowOffsets::U64(offsets),
        },
        columns: matrix.columns(),
        coefficients: match matrix.indices() {
            CoeffIndices::U8(indices) => CoefficientIndices::U8(indices),
            CoeffIndices::U16(indices) => CoefficientIndices::U16(indices),
            CoeffIndices::U32(indices) => CoefficientIndices::U32(indices),
        },
        dictionary: repr::as_bytes(matrix.dictionary()),
    }
}
