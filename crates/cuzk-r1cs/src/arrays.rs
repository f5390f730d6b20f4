//! Integer arrays of a sparse matrix, each in the narrowest type that holds its values.

/// Start of each row in the arrays of non-zeros, and one past the last; `n_rows + 1` entries from 0 to `nnz`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowOffsets {
    /// Up to 2³² - 1 non-zeros.
    U32(Vec<u32>),
    /// More than that.
    U64(Vec<u64>),
}

impl RowOffsets {
    /// Number of entries (`n_rows + 1` in a valid matrix).
    pub fn len(&self) -> usize {
        match self {
            Self::U32(v) => v.len(),
            Self::U64(v) => v.len(),
        }
    }

    /// True when there is no entry at all, which no valid matrix has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `i`.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn get(&self, i: usize) -> u64 {
        match self {
            Self::U32(v) => u64::from(v[i]),
            Self::U64(v) => v[i],
        }
    }

    /// Bytes of one entry: 4 or 8.
    pub fn width(&self) -> usize {
        match self {
            Self::U32(_) => 4,
            Self::U64(_) => 8,
        }
    }

    /// The width that holds offsets up to `nnz`.
    pub(crate) fn narrowest(nnz: u64) -> usize {
        if nnz <= u64::from(u32::MAX) { 4 } else { 8 }
    }

    /// Appends an offset, widening all of them the first time one passes 2³² - 1.
    pub(crate) fn push(&mut self, offset: u64) {
        match self {
            Self::U32(v) => match u32::try_from(offset) {
                Ok(narrow) => v.push(narrow),
                Err(_) => {
                    let mut wide: Vec<u64> = v.iter().map(|&o| u64::from(o)).collect();
                    wide.push(offset);
                    *self = Self::U64(wide);
                }
            },
            Self::U64(v) => v.push(offset),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        match self {
            Self::U32(v) => v.shrink_to_fit(),
            Self::U64(v) => v.shrink_to_fit(),
        }
    }

    /// The entries as little-endian bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::U32(v) => bytemuck::cast_slice(v),
            Self::U64(v) => bytemuck::cast_slice(v),
        }
    }
}

/// For each non-zero the index of its coefficient in the dictionary, in the narrowest type that holds all indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoeffIndices {
    /// Dictionaries of up to 2⁸ entries.
    U8(Vec<u8>),
    /// Dictionaries of up to 2¹⁶ entries.
    U16(Vec<u16>),
    /// Anything larger.
    U32(Vec<u32>),
}

impl CoeffIndices {
    /// Number of non-zeros.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::U32(v) => v.len(),
        }
    }

    /// True for a matrix without non-zeros.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `i`.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn get(&self, i: usize) -> u32 {
        match self {
            Self::U8(v) => u32::from(v[i]),
            Self::U16(v) => u32::from(v[i]),
            Self::U32(v) => v[i],
        }
    }

    /// Bytes of one entry: 1, 2 or 4.
    pub fn width(&self) -> usize {
        match self {
            Self::U8(_) => 1,
            Self::U16(_) => 2,
            Self::U32(_) => 4,
        }
    }

    /// The width that indexes a dictionary of `entries` entries.
    pub(crate) fn narrowest(entries: u64) -> usize {
        match entries {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }

    /// Appends an index, widening all of them when it does not fit.
    ///
    /// A dictionary outgrows a width once, usually within the first thousands of constraints,
    /// so the copy is made while the array is small.
    pub(crate) fn push(&mut self, index: u32) {
        match self {
            Self::U8(v) => match u8::try_from(index) {
                Ok(narrow) => v.push(narrow),
                Err(_) => {
                    *self = Self::U16(v.iter().map(|&i| u16::from(i)).collect());
                    self.push(index);
                }
            },
            Self::U16(v) => match u16::try_from(index) {
                Ok(narrow) => v.push(narrow),
                Err(_) => {
                    *self = Self::U32(v.iter().map(|&i| u32::from(i)).collect());
                    self.push(index);
                }
            },
            Self::U32(v) => v.push(index),
        }
    }

    pub(crate) fn shrink_to_fit(&mut self) {
        match self {
            Self::U8(v) => v.shrink_to_fit(),
            Self::U16(v) => v.shrink_to_fit(),
            Self::U32(v) => v.shrink_to_fit(),
        }
    }

    /// The entries as little-endian bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::U8(v) => v,
            Self::U16(v) => bytemuck::cast_slice(v),
            Self::U32(v) => bytemuck::cast_slice(v),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_widen_past_32_bits_and_keep_their_values() {
        let mut offsets = RowOffsets::U32(vec![0]);
        let max = u64::from(u32::MAX);
        offsets.push(max);
        assert_eq!((offsets.width(), RowOffsets::narrowest(max)), (4, 4));
        offsets.push(max + 1);
        assert_eq!((offsets.width(), RowOffsets::narrowest(max + 1)), (8, 8));
        offsets.push(max + 2);
        assert_eq!(offsets, RowOffsets::U64(vec![0, max, max + 1, max + 2]));
    }

    #[test]
    fn indices_widen_exactly_when_a_dictionary_outgrows_them() {
        let mut indices = CoeffIndices::U8(Vec::new());
        let steps = [(0, 1), (0xff, 1), (0x100, 2), (0xffff, 2), (0x1_0000, 4), (7, 4)];
        for (n, &(index, width)) in steps.iter().enumerate() {
            indices.push(index);
            assert_eq!(indices.width(), width);
            for (i, &(index, _)) in steps[..=n].iter().enumerate() {
                assert_eq!(indices.get(i), index);
            }
        }
        let widths = [2, 0x100, 0x101, 0x1_0000, 0x1_0001].map(CoeffIndices::narrowest);
        assert_eq!(widths, [1, 1, 2, 2, 4]);
    }
}
