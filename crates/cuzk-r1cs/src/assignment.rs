//! An assignment of all variables of a constraint system, packed.

use ff::PrimeField;

use crate::packed::{PackedParts, PackedScalars, Room};

/// Why values do not form an [`Assignment`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignmentError {
    /// There is no variable 0, or its value is not 1.
    #[error("variable 0, the first of {n_inputs} inputs, must be the constant 1")]
    VariableZero {
        /// Number of inputs given.
        n_inputs: usize,
    },
    /// More variables than a `u32` can number.
    #[error("{n_inputs} inputs and {n_aux} auxiliary variables, together more than {max}")]
    TooManyVariables {
        /// Number of inputs given.
        n_inputs: usize,
        /// Number of auxiliary variables given.
        n_aux: usize,
        /// The most that is allowed for both.
        max: usize,
    },
    /// An array has the wrong length.
    #[error("array `{array}` has {found} entries, expected {expected}")]
    Length {
        /// Name of the array.
        array: &'static str,
        /// Length it should have.
        expected: usize,
        /// Length it has.
        found: usize,
    },
    /// A position is marked both as a 1 and as wide.
    #[error("variable {variable} is marked both as 1 and as wide")]
    Overlap {
        /// The first such variable.
        variable: usize,
    },
    /// A bit is set past the last variable.
    #[error("array `{array}` has a bit set past the last of {n_variables} variables")]
    BitPastEnd {
        /// Name of the array.
        array: &'static str,
        /// Number of variables.
        n_variables: usize,
    },
    /// An entry of the rank index is wrong.
    #[error("rank[{word}] is {found}, but {expected} wide positions come before that word")]
    Rank {
        /// Index of the entry.
        word: usize,
        /// Value it should have.
        expected: usize,
        /// Value it has.
        found: u32,
    },
    /// A wide value is 0 or 1, which only the bitmaps may express.
    #[error("wide value {index} is {value}")]
    NarrowValue {
        /// Index among the wide values.
        index: usize,
        /// 0 or 1.
        value: u8,
    },
}

/// The values of the variables `[inputs | aux]`, `w[0] = 1`, in packed form.
///
/// | array | entries | meaning |
/// |---|---|---|
/// | `ones` | ⌈n/64⌉ × u64 | bit `i % 64` of word `i / 64` is set when `w[i] = 1` |
/// | `wide` | ⌈n/64⌉ × u64 | the same for `w[i]` neither 0 nor 1 |
/// | `rank` | ⌈n/64⌉ × u32 | number of wide positions before the word |
/// | `wide_scalars` | popcount of `wide` | their values, ascending by position |
///
/// The form is canonical: no bit is set in both bitmaps or past the end, and no wide value is 0 or 1. For a
/// Filecoin witness (1.3 % wide) this is 0.73 bytes a variable instead of 32.
///
/// ```
/// use cuzk_r1cs::Assignment;
/// use ff::Field;
/// use blstrs::Scalar;
///
/// let inputs = [Scalar::ONE, Scalar::from(35)];
/// let aux = [Scalar::from(3), Scalar::ZERO, Scalar::ONE];
/// let w = Assignment::from_values(&inputs, &aux)?;
/// assert_eq!(w.ones(), [0b10001]);
/// assert_eq!(w.wide(), [0b00110]);
/// assert_eq!(w.wide_scalars(), [Scalar::from(35), Scalar::from(3)]);
/// assert_eq!(w.value(3), Scalar::ZERO);
/// # Ok::<(), cuzk_r1cs::AssignmentError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment<F> {
    ones: Vec<u64>,
    wide: Vec<u64>,
    rank: Vec<u32>,
    wide_scalars: Vec<F>,
    n_inputs: usize,
    n_aux: usize,
}

impl<F: PrimeField> Assignment<F> {
    /// Packs dense values; `inputs[0]` is the constant 1.
    ///
    /// # Errors
    /// [`AssignmentError::VariableZero`], [`AssignmentError::TooManyVariables`].
    pub fn from_values(inputs: &[F], aux: &[F]) -> Result<Self, AssignmentError> {
        check_counts(inputs.len(), aux.len())?;
        Self::from_packed(inputs, aux.iter().copied().collect())
    }

    /// Joins the inputs, `inputs[0] = 1`, with auxiliary variables that are packed already.
    ///
    /// # Errors
    /// [`AssignmentError::VariableZero`], [`AssignmentError::TooManyVariables`].
    pub fn from_packed(inputs: &[F], aux: PackedScalars<F>) -> Result<Self, AssignmentError> {
        Self::from_packed_keeping(inputs, aux, Room::default())
    }

    /// As [`from_packed`](Self::from_packed), with room that is kept for the next one.
    pub(crate) fn from_packed_keeping(
        inputs: &[F],
        aux: PackedScalars<F>,
        keep: Room,
    ) -> Result<Self, AssignmentError> {
        let (n_inputs, n_aux) = (inputs.len(), aux.len());
        check_counts(n_inputs, n_aux)?;
        if inputs.first() != Some(&F::ONE) {
            return Err(AssignmentError::VariableZero { n_inputs });
        }
        let parts = aux.prepend(&inputs.iter().copied().collect()).into_parts(keep);
        Ok(Self { ones: parts.ones, wide: parts.wide, rank: parts.rank, wide_scalars: parts.scalars, n_inputs, n_aux })
    }

    /// Assembles an assignment from its arrays after checking every property named on the type.
    ///
    /// # Errors
    /// The first violated property, as [`AssignmentError`].
    pub fn from_parts(
        n_inputs: usize,
        n_aux: usize,
        ones: Vec<u64>,
        wide: Vec<u64>,
        rank: Vec<u32>,
        wide_scalars: Vec<F>,
    ) -> Result<Self, AssignmentError> {
        check_counts(n_inputs, n_aux)?;
        let n_variables = n_inputs + n_aux;
        let expected = n_variables.div_ceil(64);
        for (array, found) in [("ones", ones.len()), ("wide", wide.len()), ("rank", rank.len())] {
            if found != expected {
                return Err(AssignmentError::Length { array, expected, found });
            }
        }
        if !n_variables.is_multiple_of(64) {
            for (array, bitmap) in [("ones", &ones), ("wide", &wide)] {
                if bitmap[expected - 1] >> (n_variables % 64) != 0 {
                    return Err(AssignmentError::BitPastEnd { array, n_variables });
                }
            }
        }
        if n_inputs == 0 || ones[0] & 1 == 0 {
            return Err(AssignmentError::VariableZero { n_inputs });
        }
        let mut before = 0usize;
        for (word, ((&ones, &wide), &found)) in ones.iter().zip(&wide).zip(&rank).enumerate() {
            if ones & wide != 0 {
                let variable = word * 64 + (ones & wide).trailing_zeros() as usize;
                return Err(AssignmentError::Overlap { variable });
            }
            if found as usize != before {
                return Err(AssignmentError::Rank { word, expected: before, found });
            }
            before += wide.count_ones() as usize;
        }
        if wide_scalars.len() != before {
            return Err(AssignmentError::Length { array: "wide_scalars", expected: before, found: wide_scalars.len() });
        }
        for (index, value) in wide_scalars.iter().enumerate() {
            if *value == F::ZERO || *value == F::ONE {
                let value = u8::from(*value == F::ONE);
                return Err(AssignmentError::NarrowValue { index, value });
            }
        }
        Ok(Self { ones, wide, rank, wide_scalars, n_inputs, n_aux })
    }

    /// The arrays, for the sake of their memory.
    pub(crate) fn into_parts(self) -> PackedParts<F> {
        PackedParts { ones: self.ones, wide: self.wide, rank: self.rank, scalars: self.wide_scalars }
    }

    /// Number of inputs, counting ONE.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// Number of auxiliary variables.
    pub fn n_aux(&self) -> usize {
        self.n_aux
    }

    /// Number of variables, `n_inputs + n_aux`.
    pub fn n_variables(&self) -> usize {
        self.n_inputs + self.n_aux
    }

    /// Bitmap of the variables that are 1.
    pub fn ones(&self) -> &[u64] {
        &self.ones
    }

    /// Bitmap of the variables that are neither 0 nor 1.
    pub fn wide(&self) -> &[u64] {
        &self.wide
    }

    /// For each word of the bitmaps the number of wide positions before it.
    pub fn rank(&self) -> &[u32] {
        &self.rank
    }

    /// The wide values, ascending by position.
    pub fn wide_scalars(&self) -> &[F] {
        &self.wide_scalars
    }

    /// Value of variable `i`.
    ///
    /// # Panics
    /// If `i >= n_variables()`.
    #[inline]
    pub fn value(&self, i: usize) -> F {
        assert!(i < self.n_variables(), "variable {i} of {}", self.n_variables());
        let (word, bit) = (i / 64, 1u64 << (i % 64));
        if self.ones[word] & bit != 0 {
            F::ONE
        } else if self.wide[word] & bit != 0 {
            self.wide_scalars[self.wide_index(word, bit)]
        } else {
            F::ZERO
        }
    }

    /// Index in `wide_scalars` of the wide position given by a word and a one-bit mask.
    #[inline]
    pub(crate) fn wide_index(&self, word: usize, bit: u64) -> usize {
        self.rank[word] as usize + (self.wide[word] & (bit - 1)).count_ones() as usize
    }

    /// All values in order: inputs, then auxiliary variables.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = F> + '_ {
        let mut wide = self.wide_scalars.iter();
        (0..self.n_variables()).map(move |i| {
            let (word, shift) = (i / 64, i % 64);
            if self.ones[word] >> shift & 1 == 1 {
                F::ONE
            } else if self.wide[word] >> shift & 1 == 1 {
                // One scalar for each bit of `wide`, by the invariant.
                wide.next().copied().unwrap_or(F::ZERO)
            } else {
                F::ZERO
            }
        })
    }

    /// The inputs, counting ONE.
    pub fn inputs(&self) -> Vec<F> {
        self.iter().take(self.n_inputs).collect()
    }

    /// Bytes of memory that the arrays hold on to: more than [`bytes`](Self::bytes) where they were made in the memory
    /// of a larger one ([`WitnessCs::reusing`](crate::WitnessCs::reusing)).
    pub fn bytes_held(&self) -> usize {
        (self.ones.capacity() + self.wide.capacity()) * size_of::<u64>()
            + self.rank.capacity() * size_of::<u32>()
            + self.wide_scalars.capacity() * size_of::<F>()
    }

    /// Memory of all arrays in bytes.
    pub fn bytes(&self) -> usize {
        self.ones.len() * (2 * size_of::<u64>() + size_of::<u32>()) + self.wide_scalars.len() * size_of::<F>()
    }
}

fn check_counts(n_inputs: usize, n_aux: usize) -> Result<(), AssignmentError> {
    let max = u32::MAX as usize;
    if n_inputs.checked_add(n_aux).is_none_or(|n| n > max) {
        return Err(AssignmentError::TooManyVariables { n_inputs, n_aux, max });
    }
    Ok(())
}
