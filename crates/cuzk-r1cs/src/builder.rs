//! Building a matrix row by row: normal form of each row, interning of coefficients.

use std::collections::HashMap;

use ff::PrimeField;

use crate::arrays::{CoeffIndices, RowOffsets};
use crate::csr::{self, COEFF_MINUS_ONE, COEFF_ONE, CsrMatrix, MatrixError};

/// Builds a [`CsrMatrix`] row by row, straight into its final arrays.
///
/// Rows may come in any form: terms are sorted by column, the coefficients of a repeated column are
/// added, and terms whose coefficient is (or sums to) zero are dropped.
///
/// ```
/// use cuzk_r1cs::MatrixBuilder;
/// use ff::Field;
/// use blstrs::Scalar;
///
/// let mut builder = MatrixBuilder::new();
/// builder.push_row([(3, Scalar::ONE), (1, Scalar::ONE), (3, Scalar::ONE), (2, Scalar::ZERO)]);
/// let matrix = builder.finish(4)?;
/// assert_eq!(
///     matrix.row(0).collect::<Vec<_>>(),
///     [(1, &Scalar::ONE), (3, &Scalar::from(2))],
/// );
/// # Ok::<(), cuzk_r1cs::MatrixError>(())
/// ```
#[derive(Clone, Debug)]
pub struct MatrixBuilder<F> {
    offsets: RowOffsets,
    columns: Vec<u32>,
    indices: CoeffIndices,
    dictionary: Dictionary<F>,
    /// The row being pushed; as long as the longest row so far.
    row: Vec<(u32, F)>,
}

impl<F: PrimeField> Default for MatrixBuilder<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: PrimeField> MatrixBuilder<F> {
    /// A matrix without rows.
    pub fn new() -> Self {
        Self {
            offsets: RowOffsets::U32(vec![0]),
            columns: Vec::new(),
            indices: CoeffIndices::U8(Vec::new()),
            dictionary: Dictionary::new(),
            row: Vec::new(),
        }
    }

    /// Number of rows so far.
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Appends a row given as (column, coefficient).
    pub fn push_row(&mut self, terms: impl IntoIterator<Item = (u32, F)>) {
        self.row.clear();
        self.row.extend(terms);
        // Linear combinations usually arrive sorted and merged: one look decides.
        if !self.row.is_sorted_by(|(a, _), (b, _)| a < b) {
            self.row.sort_by_key(|&(column, _)| column);
            self.row.dedup_by(|next, kept| {
                let repeated = next.0 == kept.0;
                if repeated {
                    kept.1 += next.1;
                }
                repeated
            });
        }
        for (column, coeff) in &self.row {
            if *coeff != F::ZERO {
                self.columns.push(*column);
                self.indices.push(self.dictionary.intern(coeff));
            }
        }
        self.offsets.push(self.columns.len() as u64);
    }

    /// The columns of all rows so far, for renumbering that keeps the order within each row.
    pub(crate) fn columns_mut(&mut self) -> &mut [u32] {
        &mut self.columns
    }

    /// The finished matrix with `n_cols` columns.
    ///
    /// # Errors
    /// [`MatrixError::ColumnOutOfRange`] when a row refers to a column that does not exist, and
    /// [`MatrixError::TooManyColumns`].
    pub fn finish(mut self, n_cols: usize) -> Result<CsrMatrix<F>, MatrixError> {
        csr::check_n_cols(n_cols)?;
        if let Some(position) = self.columns.iter().position(|&column| column as usize >= n_cols) {
            return Err(MatrixError::ColumnOutOfRange {
                row: self.row_of(position as u64),
                column: self.columns[position],
                n_cols,
            });
        }
        self.offsets.shrink_to_fit();
        self.columns.shrink_to_fit();
        self.indices.shrink_to_fit();
        Ok(CsrMatrix::assemble(n_cols, self.offsets, self.columns, self.indices, self.dictionary.entries))
    }

    /// The row that holds the non-zero at `position`.
    fn row_of(&self, position: u64) -> usize {
        let (mut low, mut high) = (0, self.n_rows());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.offsets.get(middle + 1) <= position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The distinct coefficients seen so far, numbered by first use after the fixed 1 and -1.
#[derive(Clone, Debug)]
struct Dictionary<F> {
    entries: Vec<F>,
    minus_one: F,
    by_repr: HashMap<Vec<u8>, u32>,
    /// For each entry the one that followed it last time (1 and -1 aside). Gadgets repeat: the weights of a
    /// packing run 2, 4, 8, ... and a Poseidon round has its constants in order, so that this guess is
    /// nearly always right and costs one comparison.
    successor: Vec<u32>,
    last: u32,
}

impl<F: PrimeField> Dictionary<F> {
    fn new() -> Self {
        let minus_one = -F::ONE;
        Self {
            entries: vec![F::ONE, minus_one],
            minus_one,
            by_repr: HashMap::new(),
            successor: vec![COEFF_ONE, COEFF_MINUS_ONE],
            last: COEFF_ONE,
        }
    }

    /// Index of a non-zero coefficient.
    fn intern(&mut self, coeff: &F) -> u32 {
        if *coeff == F::ONE {
            return COEFF_ONE;
        }
        if *coeff == self.minus_one {
            return COEFF_MINUS_ONE;
        }
        let guess = self.successor[self.last as usize];
        let index = if self.entries[guess as usize] == *coeff {
            guess
        } else {
            let index = self.look_up(coeff);
            self.successor[self.last as usize] = index;
            index
        };
        self.last = index;
        index
    }

    fn look_up(&mut self, coeff: &F) -> u32 {
        let repr = coeff.to_repr();
        if let Some(&index) = self.by_repr.get(repr.as_ref()) {
            return index;
        }
        // 2³² distinct coefficients would need 128 GiB for the dictionary alone.
        let index = self.entries.len() as u32;
        self.entries.push(*coeff);
        self.successor.push(index);
        self.by_repr.insert(repr.as_ref().to_vec(), index);
        index
    }
}
