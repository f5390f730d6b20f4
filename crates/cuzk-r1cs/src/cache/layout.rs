//! The header and the positions of the sections.

use crate::arrays::{CoeffIndices, RowOffsets};

// Arrays go to the file and back as the bytes they have in memory.
const _: () = assert!(cfg!(target_endian = "little"), "the file format is little endian");

pub(super) const MAGIC: [u8; 8] = *b"CUZKR1CS";
pub(super) const VERSION: u32 = 1;
/// Alignment of every section, and length of the header.
pub(super) const ALIGN: u64 = 4096;
pub(super) const HEADER_LEN: usize = ALIGN as usize;
/// Room for the modulus in the header.
pub(super) const MODULUS_ROOM: usize = 64;

/// Offsets of the header fields.
pub(super) mod at {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const VERSION: usize = 8;
    pub(in super::super) const MODULUS_LEN: usize = 12;
    pub(in super::super) const MODULUS: usize = 16;
    pub(in super::super) const N_INPUTS: usize = 80;
    pub(in super::super) const N_AUX: usize = 88;
    pub(in super::super) const N_CONSTRAINTS: usize = 96;
    pub(in super::super) const MATRICES: usize = 104;
    pub(in super::super) const FILE_LEN: usize = 176;
    pub(in super::super) const DIGEST: usize = 184;
    pub(in super::super) const END: usize = 216;
    /// Bytes of one matrix descriptor, and its fields.
    pub(in super::super) const MATRIX_LEN: usize = 24;
    pub(in super::super) const NNZ: usize = 0;
    pub(in super::super) const ENTRIES: usize = 8;
    pub(in super::super) const OFFSET_WIDTH: usize = 16;
    pub(in super::super) const INDEX_WIDTH: usize = 20;
}

/// The matrices in the order of the file.
pub(super) const MATRICES: [char; 3] = ['A', 'B', 'C'];

/// The four arrays of a matrix in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Array {
    Offsets,
    Columns,
    Indices,
    Dictionary,
}

impl Array {
    pub(super) const ALL: [Self; 4] = [Self::Offsets, Self::Columns, Self::Indices, Self::Dictionary];

    /// Name of the section that holds this array of `matrix`.
    pub(super) fn section(self, matrix: char) -> String {
        let array = match self {
            Self::Offsets => "offsets",
            Self::Columns => "columns",
            Self::Indices => "indices",
            Self::Dictionary => "dictionary",
        };
        format!("{matrix}.{array}")
    }
}

/// What the header says about one matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MatrixCounts {
    pub(super) nnz: u64,
    pub(super) entries: u64,
}

impl MatrixCounts {
    pub(super) fn offset_width(&self) -> usize {
        RowOffsets::narrowest(self.nnz)
    }

    pub(super) fn index_width(&self) -> usize {
        CoeffIndices::narrowest(self.entries)
    }
}

/// Position of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// Positions of all sections, indexed by matrix and array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) sections: [[Section; 4]; 3],
    pub(super) file_len: u64,
}

impl Layout {
    /// The layout for given counts; `None` when the file would be longer than 2⁶⁴ bytes.
    pub(super) fn new(n_constraints: u64, matrices: &[MatrixCounts; 3], repr_len: usize) -> Option<Self> {
        let mut sections = [[Section { offset: 0, len: 0 }; 4]; 3];
        let mut end = HEADER_LEN as u64;
        for (sections, counts) in sections.iter_mut().zip(matrices) {
            for (section, array) in sections.iter_mut().zip(Array::ALL) {
                let (count, width) = match array {
                    Array::Offsets => (n_constraints.checked_add(1)?, counts.offset_width()),
                    Array::Columns => (counts.nnz, size_of::<u32>()),
                    Array::Indices => (counts.nnz, counts.index_width()),
                    Array::Dictionary => (counts.entries, repr_len),
                };
                let len = count.checked_mul(width as u64)?;
                *section = Section { offset: end, len };
                end = end.checked_add(len)?.checked_next_multiple_of(ALIGN)?;
            }
        }
        Some(Self { sections, file_len: end })
    }
}
