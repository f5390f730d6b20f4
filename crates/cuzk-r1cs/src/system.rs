//! A whole rank-1 constraint system.

use std::sync::OnceLock;

use ff::PrimeField;

use crate::csr::{CsrMatrix, MatrixError};
use crate::density::{Densities, DensityTracker};
use crate::field;

/// Why three matrices do not form an [`R1cs`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum R1csError {
    /// One of the matrices is invalid.
    #[error("matrix {matrix}: {source}")]
    Matrix {
        /// `'A'`, `'B'` or `'C'`.
        matrix: char,
        /// What is wrong with it.
        source: MatrixError,
    },
    /// The matrices differ in their number of rows.
    #[error("matrix {matrix} has {found} rows, but A has {expected}")]
    RowCount {
        /// `'B'` or `'C'`.
        matrix: char,
        /// Rows of A.
        expected: usize,
        /// Rows found.
        found: usize,
    },
    /// The matrices differ in their number of columns.
    #[error("matrix {matrix} has {found} columns, but A has {expected}")]
    ColumnCount {
        /// `'B'` or `'C'`.
        matrix: char,
        /// Columns of A.
        expected: usize,
        /// Columns found.
        found: usize,
    },
    /// No inputs (ONE is always one), or more than there are variables or rows.
    #[error("{n_inputs} inputs, expected 1 to {max} for {n_cols} variables and {n_rows} constraints")]
    InputCount {
        /// Number of inputs given.
        n_inputs: usize,
        /// Most inputs possible.
        max: usize,
        /// Number of variables.
        n_cols: usize,
        /// Number of constraints.
        n_rows: usize,
    },
    /// One of the last `n_inputs` constraints is not `x_i · 0 = 0`.
    #[error("constraint {row} must read x_{input} * 0 = 0")]
    InputRow {
        /// Number of the constraint.
        row: usize,
        /// Input whose row it should be.
        input: usize,
    },
}

/// A rank-1 constraint system: rows `⟨a_i, w⟩ · ⟨b_i, w⟩ = ⟨c_i, w⟩` over the variables
/// `w = [inputs | aux]`, `w[0] = 1`.
///
/// The last `n_inputs` rows are `x_i · 0 = 0` for `i = 0, 1, ...`: they make the input polynomials
/// linearly independent, as Groth16 implementations since bellman do.
#[derive(Clone, Debug)]
pub struct R1cs<F> {
    a: CsrMatrix<F>,
    b: CsrMatrix<F>,
    c: CsrMatrix<F>,
    n_inputs: usize,
    digest: OnceLock<[u8; 32]>,
}

impl<F: PrimeField> PartialEq for R1cs<F> {
    fn eq(&self, other: &Self) -> bool {
        self.n_inputs == other.n_inputs && self.a == other.a && self.b == other.b && self.c == other.c
    }
}

impl<F: PrimeField> Eq for R1cs<F> {}

impl<F: PrimeField> R1cs<F> {
    /// A system of `n_inputs` inputs, counting ONE, from matrices that already hold the input rows.
    ///
    /// # Errors
    /// [`R1csError`] when shapes disagree or an input row is missing.
    pub fn from_parts(n_inputs: usize, a: CsrMatrix<F>, b: CsrMatrix<F>, c: CsrMatrix<F>) -> Result<Self, R1csError> {
        for (matrix, other) in [('B', &b), ('C', &c)] {
            if other.n_rows() != a.n_rows() {
                return Err(R1csError::RowCount { matrix, expected: a.n_rows(), found: other.n_rows() });
            }
            if other.n_cols() != a.n_cols() {
                return Err(R1csError::ColumnCount { matrix, expected: a.n_cols(), found: other.n_cols() });
            }
        }
        let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
        let max = n_rows.min(n_cols);
        if n_inputs == 0 || n_inputs > max {
            return Err(R1csError::InputCount { n_inputs, max, n_cols, n_rows });
        }
        for input in 0..n_inputs {
            let row = n_rows - n_inputs + input;
            let is_input_row =
                a.row(row).eq([(input as u32, &F::ONE)]) && b.row_range(row).is_empty() && c.row_range(row).is_empty();
            if !is_input_row {
                return Err(R1csError::InputRow { row, input });
            }
        }
        Ok(Self { a, b, c, n_inputs, digest: OnceLock::new() })
    }

    /// Left factors.
    pub fn a(&self) -> &CsrMatrix<F> {
        &self.a
    }

    /// Right factors.
    pub fn b(&self) -> &CsrMatrix<F> {
        &self.b
    }

    /// Products.
    pub fn c(&self) -> &CsrMatrix<F> {
        &self.c
    }

    /// Number of inputs, counting ONE.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of auxiliary variables.
    pub fn n_aux(&self) -> usize {
        self.a.n_cols() - self.n_inputs
    }

    /// Number of variables, `n_inputs + n_aux`.
    pub fn n_variables(&self) -> usize {
        self.a.n_cols()
    }

    /// Number of constraints, counting the input rows.
    pub fn n_constraints(&self) -> usize {
        self.a.n_rows()
    }

    /// `k` of the smallest domain of 2ᵏ ≥ `n_constraints` points.
    pub fn log_domain(&self) -> u32 {
        self.n_constraints().next_power_of_two().trailing_zeros()
    }

    /// Number of non-zeros in all three matrices.
    pub fn nnz(&self) -> usize {
        self.a.nnz() + self.b.nnz() + self.c.nnz()
    }

    /// Memory of all three matrices in bytes.
    pub fn bytes(&self) -> usize {
        self.a.bytes() + self.b.bytes() + self.c.bytes()
    }

    /// Densities of A and B. One pass over their columns; keep the result.
    pub fn densities(&self) -> Densities {
        Densities { a: DensityTracker::of_matrix(&self.a), b: DensityTracker::of_matrix(&self.b) }
    }

    /// BLAKE3 digest of the content: equal if and only if the systems are equal, whoever built them.
    ///
    /// Computed on first use (one pass over all arrays) and kept. The input of the hash, integers
    /// little endian: the 16 bytes `"cuzk r1cs digest"`; the length of the modulus in bytes as u64 and
    /// the modulus; `n_inputs`, `n_aux`, `n_constraints` as u64; then for A, B and C: `nnz`, the number
    /// of dictionary entries, the width of an offset and of a coefficient index as u64, the offsets, the
    /// columns (u32), the coefficient indices, and the dictionary (canonical integers of the modulus's length).
    pub fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(b"cuzk r1cs digest");
            let modulus = field::modulus_le::<F>();
            hasher.update(&(modulus.len() as u64).to_le_bytes());
            hasher.update(&modulus);
            for count in [self.n_inputs(), self.n_aux(), self.n_constraints()] {
                hasher.update(&(count as u64).to_le_bytes());
            }
            for matrix in [&self.a, &self.b, &self.c] {
                let (offsets, indices) = (matrix.offsets(), matrix.indices());
                for count in [matrix.nnz(), matrix.dictionary().len(), offsets.width(), indices.width()] {
                    hasher.update(&(count as u64).to_le_bytes());
                }
                absorb(&mut hasher, offsets.as_bytes());
                absorb(&mut hasher, bytemuck::cast_slice(matrix.columns()));
                absorb(&mut hasher, indices.as_bytes());
                for coeff in matrix.dictionary() {
                    hasher.update(field::to_le_repr(coeff).as_ref());
                }
            }
            *hasher.finalize().as_bytes()
        })
    }
}

/// Hashes on all cores where that pays.
fn absorb(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    const PARALLEL_FROM: usize = 1 << 20;
    if bytes.len() < PARALLEL_FROM {
        hasher.update(bytes);
    } else {
        hasher.update_rayon(bytes);
    }
}
