//! Which variables occur in a matrix.

use std::ops::Range;

use ff::PrimeField;
use rayon::prelude::*;

use crate::csr::CsrMatrix;

/// Most bitmaps that are filled side by side; one has 16 MB for the 130 million variables of a PoRep partition.
const MAX_BITMAPS: usize = 16;

/// A bitmap over the variables `[inputs | aux]`: bit `i` is set when variable `i` occurs in a matrix with a
/// non-zero coefficient.
///
/// Variables that do not occur have the point at infinity in the corresponding query of the proving key;
/// bellman's parameter files leave those out, and the multiplications skip them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DensityTracker {
    words: Vec<u64>,
    len: usize,
    count: usize,
}

impl DensityTracker {
    /// The density of `matrix`, one bit a column.
    pub fn of_matrix<F: PrimeField>(matrix: &CsrMatrix<F>) -> Self {
        let len = matrix.n_cols();
        let n_words = len.div_ceil(64);
        // One bitmap a thread, and few of them: the work is bound by memory long before the cores are used up.
        let part = matrix.nnz().div_ceil(rayon::current_num_threads().min(MAX_BITMAPS)).max(1);
        let words = matrix
            .columns()
            .par_chunks(part)
            .map(|columns| {
                let mut words = vec![0u64; n_words];
                for &column in columns {
                    words[column as usize / 64] |= 1 << (column % 64);
                }
                words
            })
            .reduce_with(|mut all, part| {
                all.iter_mut().zip(&part).for_each(|(all, part)| *all |= part);
                all
            })
            .unwrap_or_else(|| vec![0; n_words]);
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, len, count }
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no variables.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether variable `i` occurs.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "variable {i} of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// The bitmap, least significant bit first; bits past the end are 0.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of variables that occur.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of variables in `range` that occur: `count_in(0..n_inputs)` for the inputs,
    /// `count_in(n_inputs..len)` for the auxiliary variables.
    ///
    /// # Panics
    /// If `range.end > len()`.
    pub fn count_in(&self, range: Range<usize>) -> usize {
        assert!(range.end <= self.len, "variable {} of {}", range.end, self.len);
        let below = |end: usize| -> usize {
            let whole: usize = self.words[..end / 64].iter().map(|w| w.count_ones() as usize).sum();
            let rest = match end % 64 {
                0 => 0,
                bits => (self.words[end / 64] & ((1 << bits) - 1)).count_ones() as usize,
            };
            whole + rest
        };
        below(range.end).saturating_sub(below(range.start.min(range.end)))
    }
}

/// Densities of the two matrices that have sparse queries in a Groth16 key (the L query, which involves C, is full).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Densities {
    /// Variables of A. All inputs occur, because of the rows `x_i · 0 = 0`.
    pub a: DensityTracker,
    /// Variables of B.
    pub b: DensityTracker,
}
