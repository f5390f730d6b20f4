//! How large a circuit is, before its matrices are there.

use std::path::Path;

use blstrs::Scalar as Fr;
use cuzk_backend::{AssignmentShape, MatrixShape};
use cuzk_curve::CurveId;
use cuzk_engine::DescribedCircuit;
use cuzk_filecoin::CircuitId;
use cuzk_groth16::CircuitShape;
use cuzk_keys::{KeyInfo, Section};
use cuzk_r1cs::R1cs;
use serde::{Deserialize, Serialize};

use crate::{
    circuit::{CircuitError, Directories, cache_file},
    keys::{self, KeyPaths},
    measure::WitnessSize,
    remembered,
};

/// A circuit with a key, as far as its files tell how large it is.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its sizes.
    pub circuit: DescribedCircuit,
    /// Whether they are its sizes. Otherwise they are what no circuit with such a key is below: its matrices have not
    /// been recorded here yet, or no witness of it was measured.
    pub exact: bool,
}

/// How large a circuit is, from the header of its key and from what is remembered of its matrices and witnesses; takes
/// milliseconds. `None`: there is no key for it.
///
/// # Errors
/// [`CircuitError::Key`]: what is there is no key.
pub fn describe(circuit: CircuitId, directories: &Directories) -> Result<Option<Described>, CircuitError> {
    let paths = KeyPaths::of(circuit, &directories.parameters)?;
    let Some(path) = paths.existing() else { return Ok(None) };
    let key = keys::look_at(path)?;
    let sizes = MatrixSizes::remembered(circuit, &directories.cache)?;
    let witness = WitnessSize::known(circuit, &directories.cache)?;
    let exact = sizes.is_some() && witness.is_some();
    let sizes = sizes.unwrap_or_else(|| MatrixSizes::at_least(&key));
    let assignment = witness.map_or(
        AssignmentShape { curve: CurveId::Bls12_381, n_variables: sizes.n_variables, n_ones: 0, n_wide: 0 },
        |witness| witness.bound(),
    );
    let circuit = DescribedCircuit {
        name: circuit.to_string(),
        shape: sizes.shape(),
        matrix_bytes: sizes.bytes,
        assignment,
        synthesis_bytes: witness.map(|witness| witness.synthesis_bytes(assignment.bytes())),
        // A machine can prove as many as it likes, one after the other.
        partitions: 1,
        times: None,
    };
    Ok(Some(Described { circuit, exact }))
}

/// The sizes of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MatrixSize {
    n_rows: u64,
    n_nonzeros: u64,
    n_coefficients: u64,
    row_offset_bytes: u32,
    coefficient_bytes: u32,
}

impl MatrixSize {
    fn of(shape: &MatrixShape) -> Self {
        let &MatrixShape { n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes, .. } = shape;
        Self { n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes }
    }

    /// A matrix in which each of these variables occurs.
    fn at_least(n_rows: u64, dense: u64) -> Self {
        Self { n_rows, n_nonzeros: dense, n_coefficients: 2, row_offset_bytes: 4, coefficient_bytes: 1 }
    }

    fn shape(self) -> MatrixShape {
        let Self { n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes } = self;
        let curve = CurveId::Bls12_381;
        MatrixShape { curve, n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes }
    }
}

/// The sizes of a circuit's matrices, remembered from when they were last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatrixSizes {
    a: MatrixSize,
    b: MatrixSize,
    n_inputs: u64,
    n_variables: u64,
    log_n: u32,
    a_dense: u64,
    b_dense: u64,
    /// Of all three matrices in the host's memory.
    bytes: u64,
}

impl MatrixSizes {
    pub(crate) fn of(r1cs: &R1cs<Fr>) -> Self {
        let shape = CircuitShape::of(r1cs);
        let CircuitShape { n_inputs, n_variables, log_n, a_dense, b_dense, .. } = shape;
        let (a, b) = (MatrixSize::of(&shape.a), MatrixSize::of(&shape.b));
        Self { a, b, n_inputs, n_variables, log_n, a_dense, b_dense, bytes: r1cs.bytes() as u64 }
    }

    /// What no circuit with such a key is below: it has more constraints than the next smaller domain has room for, and
    /// every variable that has a point occurs once.
    fn at_least(key: &KeyInfo) -> Self {
        let points = |section| key.sections.iter().find(|s| s.section == section).map_or(0, |s| s.points as u64);
        let log_n = key.log_domain.unwrap_or(0);
        let (a_dense, b_dense) = (points(Section::A), points(Section::BG1));
        let n_rows = (1u64 << log_n.min(62)) / 2 + 1;
        let (a, b) = (MatrixSize::at_least(n_rows, a_dense), MatrixSize::at_least(n_rows, b_dense));
        let n_inputs = key.inputs as u64;
        let bytes = a.shape().bytes() + b.shape().bytes();
        Self { a, b, n_inputs, n_variables: n_inputs + points(Section::L), log_n, a_dense, b_dense, bytes }
    }

    fn shape(&self) -> CircuitShape {
        let &Self { a, b, n_inputs, n_variables, log_n, a_dense, b_dense, .. } = self;
        CircuitShape { a: a.shape(), b: b.shape(), n_inputs, n_variables, log_n, a_dense, b_dense }
    }

    fn remembered(circuit: CircuitId, cache: &Path) -> Result<Option<Self>, CircuitError> {
        Ok(remembered::read(&cache_file(circuit, cache, ENDING)?))
    }

    /// Remembers them, unless they are remembered already.
    pub(crate) fn remember(&self, circuit: CircuitId, cache: &Path) -> Result<(), CircuitError> {
        let path = cache_file(circuit, cache, ENDING)?;
        if remembered::read(&path).as_ref() != Some(self)
            && let Err(error) = remembered::write(&path, self)
        {
            tracing::warn!("the sizes of {circuit} are not remembered: {error}");
        }
        Ok(())
    }
}

/// Ending of files with the sizes of matrices.
const ENDING: &str = "sizes.json";
