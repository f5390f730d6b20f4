//! One matrix of a constraint system in compressed sparse row form with a coefficient dictionary.

use std::collections::HashSet;

use ff::PrimeField;

use crate::arrays::{CoeffIndices, RowOffsets};
use crate::field;

/// Why arrays do not form a [`CsrMatrix`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// The offsets hold no entry; even a matrix without rows has the entry 0.
    #[error("row offsets are empty, expected at least the entry 0")]
    NoOffsets,
    /// The first row does not start at 0.
    #[error("first row offset is {found}, expected 0")]
    FirstOffset {
        /// The entry found.
        found: u64,
    },
    /// A row ends before it starts.
    #[error("row {row} starts at non-zero {start} and ends at {end}")]
    NonMonotoneOffsets {
        /// Row number.
        row: usize,
        /// Offset of the row.
        start: u64,
        /// Offset of the next row.
        end: u64,
    },
    /// The last offset is not the number of non-zeros.
    #[error("last row offset is {found}, but there are {expected} columns")]
    LastOffset {
        /// Number of columns given.
        expected: u64,
        /// The last offset.
        found: u64,
    },
    /// The arrays of columns and of coefficient indices differ in length.
    #[error("{columns} columns, but {indices} coefficient indices")]
    LengthMismatch {
        /// Number of columns.
        columns: usize,
        /// Number of coefficient indices.
        indices: usize,
    },
    /// More columns than a `u32` can number.
    #[error("{n_cols} columns, more than {max}")]
    TooManyColumns {
        /// Number of columns asked for.
        n_cols: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// A column number is not below the number of columns.
    #[error("row {row} refers to column {column}, but there are {n_cols}")]
    ColumnOutOfRange {
        /// Row number.
        row: usize,
        /// The column number found.
        column: u32,
        /// Number of columns.
        n_cols: usize,
    },
    /// The columns of a row are not strictly ascending.
    #[error("row {row} has column {column} after column {previous}; columns must ascend strictly")]
    UnsortedColumns {
        /// Row number.
        row: usize,
        /// Column number before.
        previous: u32,
        /// Column number found.
        column: u32,
    },
    /// A coefficient index is not below the length of the dictionary.
    #[error("row {row} refers to coefficient {index}, but the dictionary has {entries}")]
    CoefficientOutOfRange {
        /// Row number.
        row: usize,
        /// The index found.
        index: u32,
        /// Length of the dictionary.
        entries: usize,
    },
    /// Dictionary entries are not numbered in the order of their first use.
    #[error("row {row} uses coefficient {index} before {expected}; entries are numbered by first use")]
    DictionaryOrder {
        /// Row number.
        row: usize,
        /// The index found.
        index: u32,
        /// The smallest index not used so far.
        expected: u32,
    },
    /// A dictionary entry after the first two is never used.
    #[error("the dictionary has {entries} entries, but only the first {used} are used")]
    UnusedCoefficients {
        /// Length of the dictionary.
        entries: usize,
        /// Entries used, counting 1 and -1 in any case.
        used: usize,
    },
    /// The dictionary does not start with 1 and -1.
    #[error("the dictionary must start with 1 and -1; entry {entry} differs")]
    DictionaryStart {
        /// 0 or 1.
        entry: usize,
    },
    /// A dictionary entry is zero.
    #[error("dictionary entry {entry} is zero")]
    ZeroCoefficient {
        /// Index in the dictionary.
        entry: usize,
    },
    /// A dictionary entry occurs twice.
    #[error("dictionary entry {entry} repeats an earlier one")]
    RepeatedCoefficient {
        /// Index in the dictionary.
        entry: usize,
    },
    /// The row offsets are not in the narrowest type.
    #[error("row offsets of {found} bytes, expected {expected} for {nnz} non-zeros")]
    OffsetWidth {
        /// Bytes an offset should have.
        expected: usize,
        /// Bytes it has.
        found: usize,
        /// Number of non-zeros.
        nnz: u64,
    },
    /// The coefficient indices are not in the narrowest type.
    #[error("coefficient indices of {found} bytes, expected {expected} for {entries} dictionary entries")]
    IndexWidth {
        /// Bytes an index should have.
        expected: usize,
        /// Bytes it has.
        found: usize,
        /// Length of the dictionary.
        entries: usize,
    },
}

/// A sparse `n_rows × n_cols` matrix over `F`: for each non-zero 4 bytes of column and 1, 2 or 4 bytes of
/// coefficient index, for each row one offset.
///
/// Columns number the variables of the constraint system: inputs first (column 0 is the constant ONE),
/// auxiliary variables after them.
///
/// The form is canonical, so equal matrices have equal arrays (and equal digests):
/// * the columns of a row ascend strictly, no coefficient is zero;
/// * dictionary entry 0 is 1 and entry 1 is -1, used or not; the others are distinct, all used, and
///   numbered in the order of their first use;
/// * offsets and indices are in the narrowest type that holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsrMatrix<F> {
    n_cols: usize,
    offsets: RowOffsets,
    columns: Vec<u32>,
    indices: CoeffIndices,
    dictionary: Vec<F>,
    /// `dictionary[k]` as an integer of magnitude at most 2³⁰, or 0 when it is none. Derived.
    weights: Vec<i32>,
}

/// Index of the coefficient 1 in every dictionary.
pub const COEFF_ONE: u32 = 0;
/// Index of the coefficient -1 in every dictionary.
pub const COEFF_MINUS_ONE: u32 = 1;

impl<F: PrimeField> CsrMatrix<F> {
    /// Assembles a matrix from its arrays after checking every property named on the type.
    ///
    /// Rows in any other form (unsorted, with repeated columns or zero coefficients) go through
    /// [`MatrixBuilder`](crate::MatrixBuilder).
    ///
    /// # Errors
    /// The first violated property, as [`MatrixError`].
    pub fn from_parts(
        n_cols: usize,
        offsets: RowOffsets,
        columns: Vec<u32>,
        indices: CoeffIndices,
        dictionary: Vec<F>,
    ) -> Result<Self, MatrixError> {
        check_n_cols(n_cols)?;
        check_dictionary(&dictionary)?;
        let nnz = columns.len() as u64;
        if indices.len() != columns.len() {
            return Err(MatrixError::LengthMismatch { columns: columns.len(), indices: indices.len() });
        }
        if offsets.is_empty() {
            return Err(MatrixError::NoOffsets);
        }
        if offsets.get(0) != 0 {
            return Err(MatrixError::FirstOffset { found: offsets.get(0) });
        }
        let last = offsets.get(offsets.len() - 1);
        if last != nnz {
            return Err(MatrixError::LastOffset { expected: nnz, found: last });
        }
        let expected = RowOffsets::narrowest(nnz);
        if offsets.width() != expected {
            return Err(MatrixError::OffsetWidth { expected, found: offsets.width(), nnz });
        }
        let entries = dictionary.len();
        let expected = CoeffIndices::narrowest(entries as u64);
        if indices.width() != expected {
            return Err(MatrixError::IndexWidth { expected, found: indices.width(), entries });
        }
        match &offsets {
            RowOffsets::U32(o) => check_rows(n_cols, o, &columns, &indices, entries)?,
            RowOffsets::U64(o) => check_rows(n_cols, o, &columns, &indices, entries)?,
        }
        Ok(Self::assemble(n_cols, offsets, columns, indices, dictionary))
    }

    /// Assembles arrays that have the canonical form by construction.
    pub(crate) fn assemble(
        n_cols: usize,
        offsets: RowOffsets,
        columns: Vec<u32>,
        indices: CoeffIndices,
        dictionary: Vec<F>,
    ) -> Self {
        let weights = dictionary.iter().map(|coeff| field::small_integer(coeff).unwrap_or(0)).collect();
        Self { n_cols, offsets, columns, indices, dictionary, weights }
    }

    /// Number of rows (constraints).
    pub fn n_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns (variables).
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of non-zeros.
    pub fn nnz(&self) -> usize {
        self.columns.len()
    }

    /// Row offsets, `n_rows + 1` entries.
    pub fn offsets(&self) -> &RowOffsets {
        &self.offsets
    }

    /// Column of each non-zero, row by row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Dictionary index of each non-zero, in the order of [`columns`](Self::columns).
    pub fn indices(&self) -> &CoeffIndices {
        &self.indices
    }

    /// The distinct coefficients; entry [`COEFF_ONE`] is 1, entry [`COEFF_MINUS_ONE`] is -1.
    pub fn dictionary(&self) -> &[F] {
        &self.dictionary
    }

    /// For each dictionary entry the integer `k ≠ 0`, `|k| ≤ 2³⁰`, that it equals in the field, or 0 when
    /// there is none. Most coefficients of hash circuits are small powers of two; a row over 0/1
    /// values is then summed in integers.
    pub fn weights(&self) -> &[i32] {
        &self.weights
    }

    /// Positions of row `i` in the arrays of non-zeros.
    ///
    /// # Panics
    /// If `i >= n_rows()`.
    pub fn row_range(&self, i: usize) -> std::ops::Range<usize> {
        // Offsets never exceed columns.len(), so they fit a usize.
        self.offsets.get(i) as usize..self.offsets.get(i + 1) as usize
    }

    /// The non-zeros of row `i` as (column, coefficient), columns ascending.
    ///
    /// # Panics
    /// If `i >= n_rows()`.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = (u32, &F)> + '_ {
        self.row_range(i).map(|k| (self.columns[k], &self.dictionary[self.indices.get(k) as usize]))
    }

    /// Memory of all arrays in bytes.
    pub fn bytes(&self) -> usize {
        self.offsets.as_bytes().len()
            + self.columns.len() * size_of::<u32>()
            + self.indices.as_bytes().len()
            + self.dictionary.len() * (size_of::<F>() + size_of::<i32>())
    }
}

pub(crate) fn check_n_cols(n_cols: usize) -> Result<(), MatrixError> {
    let max = u32::MAX as usize;
    if n_cols > max {
        return Err(MatrixError::TooManyColumns { n_cols, max });
    }
    Ok(())
}

fn check_dictionary<F: PrimeField>(dictionary: &[F]) -> Result<(), MatrixError> {
    if dictionary.first() != Some(&F::ONE) {
        return Err(MatrixError::DictionaryStart { entry: 0 });
    }
    if dictionary.get(1) != Some(&-F::ONE) {
        return Err(MatrixError::DictionaryStart { entry: 1 });
    }
    let mut seen = HashSet::with_capacity(dictionary.len());
    for (entry, coeff) in dictionary.iter().enumerate() {
        if *coeff == F::ZERO {
            return Err(MatrixError::ZeroCoefficient { entry });
        }
        if !seen.insert(coeff.to_repr().as_ref().to_vec()) {
            return Err(MatrixError::RepeatedCoefficient { entry });
        }
    }
    Ok(())
}

/// Checks that offsets do not fall, then columns and indices in one pass.
fn check_rows<O: Copy + Into<u64>>(
    n_cols: usize,
    offsets: &[O],
    columns: &[u32],
    indices: &CoeffIndices,
    entries: usize,
) -> Result<(), MatrixError> {
    for (row, pair) in offsets.windows(2).enumerate() {
        let (start, end) = (pair[0].into(), pair[1].into());
        if start > end {
            return Err(MatrixError::NonMonotoneOffsets { row, start, end });
        }
    }
    match indices {
        CoeffIndices::U8(v) => check_rows_with(n_cols, offsets, columns, v, entries),
        CoeffIndices::U16(v) => check_rows_with(n_cols, offsets, columns, v, entries),
        CoeffIndices::U32(v) => check_rows_with(n_cols, offsets, columns, v, entries),
    }
}

/// The offsets ascend to `columns.len()`.
fn check_rows_with<O: Copy + Into<u64>, I: Copy + Into<u32>>(
    n_cols: usize,
    offsets: &[O],
    columns: &[u32],
    indices: &[I],
    entries: usize,
) -> Result<(), MatrixError> {
    // The smallest dictionary index that no row has used yet.
    let mut next = 2u32;
    for (row, pair) in offsets.windows(2).enumerate() {
        let range = pair[0].into() as usize..pair[1].into() as usize;
        let mut previous = None;
        for (&column, &index) in columns[range.clone()].iter().zip(&indices[range]) {
            if column as usize >= n_cols {
                return Err(MatrixError::ColumnOutOfRange { row, column, n_cols });
            }
            if let Some(previous) = previous
                && previous >= column
            {
                return Err(MatrixError::UnsortedColumns { row, previous, column });
            }
            previous = Some(column);
            let index: u32 = index.into();
            if index >= next {
                if index as usize >= entries {
                    return Err(MatrixError::CoefficientOutOfRange { row, index, entries });
                }
                if index > next {
                    return Err(MatrixError::DictionaryOrder { row, index, expected: next });
                }
                next += 1;
            }
        }
    }
    if (next as usize) < entries {
        return Err(MatrixError::UnusedCoefficients { entries, used: next as usize });
    }
    Ok(())
}
