//! Multiplying a matrix by an assignment.

use ff::PrimeField;
use rayon::prelude::*;

use crate::arrays::{CoeffIndices, RowOffsets};
use crate::assignment::Assignment;
use crate::csr::{COEFF_MINUS_ONE, COEFF_ONE, CsrMatrix};

/// The operands of an evaluation do not fit each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The matrix has another number of columns than the assignment has variables.
    #[error("the matrix has {n_cols} columns, but the assignment has {n_variables} variables")]
    Variables {
        /// Columns of the matrix.
        n_cols: usize,
        /// Variables of the assignment.
        n_variables: usize,
    },
    /// The matrix has another number of rows than the output has elements.
    #[error("the matrix has {n_rows} rows, but the output has {len} elements")]
    Output {
        /// Rows of the matrix.
        n_rows: usize,
        /// Length of the output.
        len: usize,
    },
    /// The system and the assignment divide their variables differently.
    #[error("the system has {system} inputs, but the assignment has {assignment}")]
    Inputs {
        /// Inputs of the system.
        system: usize,
        /// Inputs of the assignment.
        assignment: usize,
    },
}

/// Rows a task: some 10 000 non-zeros, enough to hide the cost of a task.
const ROWS_PER_TASK: usize = 4096;

/// `matrix · w` as a new vector of `n_rows` elements. See [`evaluate_into`].
///
/// # Errors
/// [`ShapeError::Variables`].
pub fn evaluate<F: PrimeField>(matrix: &CsrMatrix<F>, w: &Assignment<F>) -> Result<Vec<F>, ShapeError> {
    let mut out = vec![F::ZERO; matrix.n_rows()];
    evaluate_into(matrix, w, &mut out)?;
    Ok(out)
}

/// `out[i] = Σ_j matrix[i][j] · w[j]` for every row, in parallel on the current rayon pool.
///
/// Zeros are skipped. Coefficients of magnitude up to 2³⁰ at variables that are 1 are summed as integers,
/// and rows that consist of such terms need no field arithmetic but one table look-up. Field
/// products are needed only for wide values under a coefficient other than ±1.
///
/// # Errors
/// [`ShapeError`] when the operands do not fit each other; `out` is then untouched.
pub fn evaluate_into<F: PrimeField>(matrix: &CsrMatrix<F>, w: &Assignment<F>, out: &mut [F]) -> Result<(), ShapeError> {
    if out.len() != matrix.n_rows() {
        return Err(ShapeError::Output { n_rows: matrix.n_rows(), len: out.len() });
    }
    let evaluator = Evaluator::new(matrix, w)?;
    out.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(task, out)| {
        evaluator.rows(task * ROWS_PER_TASK, out);
    });
    Ok(())
}

/// A matrix and an assignment that fit each other, with what evaluating any of the rows needs.
pub(crate) struct Evaluator<'a, F> {
    matrix: &'a CsrMatrix<F>,
    w: &'a Assignment<F>,
    /// Field elements of the integers `-SMALL..=SMALL`.
    small: Vec<F>,
}

/// Sums up to this magnitude are looked up.
const SMALL: i64 = 64;

impl<'a, F: PrimeField> Evaluator<'a, F> {
    pub(crate) fn new(matrix: &'a CsrMatrix<F>, w: &'a Assignment<F>) -> Result<Self, ShapeError> {
        if matrix.n_cols() != w.n_variables() {
            return Err(ShapeError::Variables { n_cols: matrix.n_cols(), n_variables: w.n_variables() });
        }
        let small = (-SMALL..=SMALL).map(integer).collect();
        Ok(Self { matrix, w, small })
    }

    /// Evaluates the rows from `first` on into `out`.
    pub(crate) fn rows(&self, first: usize, out: &mut [F]) {
        let rows = first..first + out.len() + 1;
        match self.matrix.offsets() {
            RowOffsets::U32(offsets) => self.rows_from(&offsets[rows], out),
            RowOffsets::U64(offsets) => self.rows_from(&offsets[rows], out),
        }
    }

    fn rows_from<O: Copy + Into<u64>>(&self, offsets: &[O], out: &mut [F]) {
        match self.matrix.indices() {
            CoeffIndices::U8(indices) => self.rows_with(offsets, indices, out),
            CoeffIndices::U16(indices) => self.rows_with(offsets, indices, out),
            CoeffIndices::U32(indices) => self.rows_with(offsets, indices, out),
        }
    }

    fn rows_with<O: Copy + Into<u64>, I: Copy + Into<u32>>(&self, offsets: &[O], indices: &[I], out: &mut [F]) {
        for (bounds, out) in offsets.windows(2).zip(out) {
            let range = bounds[0].into() as usize..bounds[1].into() as usize;
            *out = self.row(&self.matrix.columns()[range.clone()], &indices[range]);
        }
    }

    #[inline]
    fn row<I: Copy + Into<u32>>(&self, columns: &[u32], indices: &[I]) -> F {
        let (ones, wide) = (self.w.ones(), self.w.wide());
        let weights = self.matrix.weights();
        let mut integer_sum = 0i64;
        let mut sum = None;
        for (&column, &index) in columns.iter().zip(indices) {
            let index: u32 = index.into();
            let (word, shift) = (column as usize / 64, column % 64);
            let is_one = ones[word] >> shift & 1;
            let is_wide = wide[word] >> shift & 1;
            let weight = weights[index as usize];
            // The bits are as good as random: masking is cheaper than guessing. The branch below is
            // rarely taken, and predictable.
            integer_sum += i64::from(weight) & (is_one as i64).wrapping_neg();
            if is_wide | (is_one & u64::from(weight == 0)) != 0 {
                let sum = sum.get_or_insert(F::ZERO);
                if is_one == 1 {
                    *sum += self.matrix.dictionary()[index as usize];
                } else {
                    let value = self.w.wide_scalars()[self.w.wide_index(word, 1 << shift)];
                    match index {
                        COEFF_ONE => *sum += value,
                        COEFF_MINUS_ONE => *sum -= value,
                        _ => *sum += value * self.matrix.dictionary()[index as usize],
                    }
                }
            }
        }
        match sum {
            None => self.integer(integer_sum),
            Some(sum) if integer_sum == 0 => sum,
            Some(sum) => sum + self.integer(integer_sum),
        }
    }

    #[inline]
    fn integer(&self, value: i64) -> F {
        if (-SMALL..=SMALL).contains(&value) { self.small[(value + SMALL) as usize] } else { integer(value) }
    }
}

fn integer<F: PrimeField>(value: i64) -> F {
    let magnitude = F::from(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;

    /// Wide offsets occur only past 2³² non-zeros; here they are forced on a small matrix.
    #[test]
    fn wide_offsets_evaluate_alike() {
        let f = Scalar::from;
        let w = Assignment::from_values(&[f(1)], &[f(9), f(0), f(1)]).expect("valid");
        // [[1, 5, 0, 0], [], [0, 0, 5, -1]]
        let matrix = |offsets| {
            let dictionary = vec![f(1), -f(1), f(5)];
            let indices = CoeffIndices::U8(vec![0, 2, 2, 1]);
            CsrMatrix::assemble(4, offsets, vec![0, 1, 2, 3], indices, dictionary)
        };
        let narrow = evaluate(&matrix(RowOffsets::U32(vec![0, 2, 2, 4])), &w);
        assert_eq!(narrow, Ok(vec![f(46), f(0), -f(1)]));
        assert_eq!(evaluate(&matrix(RowOffsets::U64(vec![0, 2, 2, 4])), &w), narrow);
    }
}
