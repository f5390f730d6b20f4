//! Reading a cache file.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ff::PrimeField;

use super::layout::{
    ALIGN, Array, HEADER_LEN, Layout, MAGIC, MATRICES, MODULUS_ROOM, MatrixCounts, Section, VERSION, at,
};
use super::{CacheError, hex, hex_be};
use crate::arrays::{CoeffIndices, RowOffsets};
use crate::csr::{CsrMatrix, MatrixError};
use crate::field;
use crate::system::R1cs;

/// Bytes read at a time: small enough that the zeros written before reading stay in the cache.
const BLOCK: usize = 1 << 20;

impl<F: PrimeField> R1cs<F> {
    /// Reads a system from a file written by [`write_cache`](R1cs::write_cache).
    ///
    /// Allocates the arrays of the system, whose lengths were compared with the length of the file before, and
    /// nothing else of consequence.
    ///
    /// # Errors
    /// [`CacheError`] for anything but an intact file for this field.
    pub fn read_cache(path: &Path) -> Result<Self, CacheError> {
        let io_error = |action| move |source| CacheError::Io { path: path.to_owned(), action, source };
        // Before opening: to open a named pipe would block.
        if !fs::metadata(path).map_err(io_error("stat"))?.is_file() {
            return Err(CacheError::NotAFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(io_error("open"))?;
        let file_len = file.metadata().map_err(io_error("stat"))?.len();
        let mut reader = Reader { path, file, file_len };
        let header = reader.header::<F>()?;
        let a = reader.matrix(&header, 0)?;
        let b = reader.matrix(&header, 1)?;
        let c = reader.matrix(&header, 2)?;
        let r1cs = Self::from_parts(header.n_inputs, a, b, c)
            .map_err(|source| CacheError::System { path: path.to_owned(), source })?;
        if *r1cs.digest() != header.digest {
            return Err(CacheError::Digest {
                path: path.to_owned(),
                offset: at::DIGEST as u64,
                expected: hex(&header.digest),
                found: hex(r1cs.digest()),
            });
        }
        tracing::debug!(path = %path.display(), bytes = file_len, "read R1CS cache");
        Ok(r1cs)
    }
}

/// A header that agrees with itself and with the length of the file.
struct Header {
    n_inputs: usize,
    n_variables: usize,
    matrices: [MatrixCounts; 3],
    layout: Layout,
    digest: [u8; 32],
}

struct Reader<'a> {
    path: &'a Path,
    file: File,
    file_len: u64,
}

impl Reader<'_> {
    fn header<F: PrimeField>(&mut self) -> Result<Header, CacheError> {
        let mut bytes = [0u8; HEADER_LEN];
        let section = Section { offset: 0, len: HEADER_LEN as u64 };
        if self.file_len < section.len {
            return Err(self.truncated("header".to_owned(), section));
        }
        self.fill("header", section, 0, &mut bytes)?;
        let header = Fields { path: self.path, bytes: &bytes };
        let found: [u8; 8] = header.array(at::MAGIC);
        if found != MAGIC {
            return Err(CacheError::Magic { path: self.path.to_owned(), expected: MAGIC, found });
        }
        header.require(at::VERSION, "version", header.u32(at::VERSION), VERSION.into())?;
        self.check_field::<F>(&header)?;

        let n_constraints = header.u64(at::N_CONSTRAINTS);
        // An offset takes 4 bytes or more: a larger count contradicts the length of the file.
        header.range(at::N_CONSTRAINTS, "n_constraints", n_constraints, 1, self.file_len / 4)?;
        let n_inputs = header.u64(at::N_INPUTS);
        let max_variables = u64::from(u32::MAX);
        header.range(at::N_INPUTS, "n_inputs", n_inputs, 1, n_constraints.min(max_variables))?;
        let n_aux = header.u64(at::N_AUX);
        header.range(at::N_AUX, "n_aux", n_aux, 0, max_variables - n_inputs)?;
        let mut matrices = [MatrixCounts { nnz: 0, entries: 0 }; 3];
        for (i, counts) in matrices.iter_mut().enumerate() {
            let start = at::MATRICES + i * at::MATRIX_LEN;
            counts.nnz = header.u64(start + at::NNZ);
            header.range(start + at::NNZ, "nnz", counts.nnz, 0, self.file_len / 4)?;
            counts.entries = header.u64(start + at::ENTRIES);
            // Entries other than 1 and -1 are used at least once each.
            let max_entries = (counts.nnz + 2).min(u32::MAX.into());
            header.range(start + at::ENTRIES, "dictionary entries", counts.entries, 2, max_entries)?;
            for (field, offset, expected) in [
                ("bytes of a row offset", start + at::OFFSET_WIDTH, counts.offset_width()),
                ("bytes of a coefficient index", start + at::INDEX_WIDTH, counts.index_width()),
            ] {
                header.require(offset, field, header.u32(offset), expected as u64)?;
            }
        }
        let layout = Layout::new(n_constraints, &matrices, field::repr_len::<F>());
        let implied = layout.as_ref().map_or(u64::MAX, |layout| layout.file_len);
        let layout = match layout {
            Some(layout) if implied == self.file_len => layout,
            _ => {
                return Err(CacheError::FileLength {
                    path: self.path.to_owned(),
                    expected: implied,
                    found: self.file_len,
                });
            }
        };
        header.require(at::FILE_LEN, "length of the file", header.u64(at::FILE_LEN), self.file_len)?;
        self.check_padding("header", at::END as u64, &bytes[at::END..])?;
        Ok(Header {
            n_inputs: n_inputs as usize,
            n_variables: (n_inputs + n_aux) as usize,
            matrices,
            layout,
            digest: header.array(at::DIGEST),
        })
    }

    fn check_field<F: PrimeField>(&self, header: &Fields<'_>) -> Result<(), CacheError> {
        let modulus = field::modulus_le::<F>();
        let len = header.u32(at::MODULUS_LEN);
        header.range(at::MODULUS_LEN, "length of a field element", len, 1, MODULUS_ROOM as u64)?;
        let (found, padding) = header.bytes[at::MODULUS..at::MODULUS + MODULUS_ROOM].split_at(len as usize);
        if found != modulus {
            return Err(CacheError::Field {
                path: self.path.to_owned(),
                offset: at::MODULUS as u64,
                expected: hex_be(&modulus),
                found: hex_be(found),
            });
        }
        self.check_padding("header", at::MODULUS as u64 + len, padding)
    }

    fn matrix<F: PrimeField>(&mut self, header: &Header, i: usize) -> Result<CsrMatrix<F>, CacheError> {
        let matrix = MATRICES[i];
        let [offsets_at, columns_at, indices_at, dictionary_at] = header.layout.sections[i];
        let counts = &header.matrices[i];
        let section = Array::Offsets.section(matrix);
        let offsets = match counts.offset_width() {
            4 => RowOffsets::U32(self.array(section, offsets_at)?),
            _ => RowOffsets::U64(self.array(section, offsets_at)?),
        };
        let columns = self.array(Array::Columns.section(matrix), columns_at)?;
        let section = Array::Indices.section(matrix);
        let indices = match counts.index_width() {
            1 => CoeffIndices::U8(self.array(section, indices_at)?),
            2 => CoeffIndices::U16(self.array(section, indices_at)?),
            _ => CoeffIndices::U32(self.array(section, indices_at)?),
        };
        let dictionary = self.dictionary(Array::Dictionary.section(matrix), dictionary_at)?;
        CsrMatrix::from_parts(header.n_variables, offsets, columns, indices, dictionary).map_err(|source| {
            let array = array_of(&source);
            CacheError::Matrix {
                path: self.path.to_owned(),
                section: array.section(matrix),
                offset: header.layout.sections[i][array as usize].offset,
                source,
            }
        })
    }

    /// A section as an array of integers.
    fn array<T: bytemuck::Pod>(&mut self, name: String, section: Section) -> Result<Vec<T>, CacheError> {
        let len = section.len as usize / size_of::<T>();
        let mut array: Vec<T> = Vec::new();
        array.try_reserve_exact(len).map_err(|_| CacheError::OutOfMemory {
            path: self.path.to_owned(),
            section: name.clone(),
            offset: section.offset,
            requested: section.len,
        })?;
        while array.len() < len {
            let start = array.len();
            array.resize(len.min(start + BLOCK / size_of::<T>()), T::zeroed());
            let block = bytemuck::cast_slice_mut(&mut array[start..]);
            self.fill(&name, section, (start * size_of::<T>()) as u64, block)?;
        }
        let mut padding = [0u8; ALIGN as usize];
        let padding = &mut padding[..(section.len.next_multiple_of(ALIGN) - section.len) as usize];
        self.fill(&name, section, section.len, padding)?;
        self.check_padding(&name, section.offset + section.len, padding)?;
        Ok(array)
    }

    fn dictionary<F: PrimeField>(&mut self, name: String, section: Section) -> Result<Vec<F>, CacheError> {
        let repr_len = field::repr_len::<F>();
        let bytes: Vec<u8> = self.array(name.clone(), section)?;
        let entry = |(entry, bytes): (usize, &[u8])| {
            field::from_le_repr(bytes).ok_or_else(|| CacheError::Scalar {
                path: self.path.to_owned(),
                section: name.clone(),
                offset: section.offset + (entry * repr_len) as u64,
                entry,
                value: hex_be(bytes),
                modulus: hex_be(&field::modulus_le::<F>()),
            })
        };
        bytes.chunks_exact(repr_len).enumerate().map(entry).collect()
    }

    /// Fills `buffer` from position `skip` of a section.
    fn fill(&mut self, name: &str, section: Section, skip: u64, buffer: &mut [u8]) -> Result<(), CacheError> {
        let read = self.file.seek(SeekFrom::Start(section.offset + skip)).and_then(|_| self.file.read_exact(buffer));
        read.map_err(|source| match source.kind() {
            // The file has shrunk since its length was checked.
            io::ErrorKind::UnexpectedEof => {
                self.file_len = self.file.metadata().map_or(0, |metadata| metadata.len());
                self.truncated(name.to_owned(), section)
            }
            _ => CacheError::Io { path: self.path.to_owned(), action: "read", source },
        })
    }

    fn truncated(&self, name: String, section: Section) -> CacheError {
        CacheError::Truncated {
            path: self.path.to_owned(),
            section: name,
            offset: section.offset,
            expected: section.len,
            found: self.file_len.saturating_sub(section.offset).min(section.len),
        }
    }

    fn check_padding(&self, name: &str, offset: u64, padding: &[u8]) -> Result<(), CacheError> {
        match padding.iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(i) => Err(CacheError::Padding {
                path: self.path.to_owned(),
                section: name.to_owned(),
                offset: offset + i as u64,
                found: padding[i],
            }),
        }
    }
}

/// The array that an error is about.
fn array_of(error: &MatrixError) -> Array {
    match error {
        MatrixError::NoOffsets
        | MatrixError::FirstOffset { .. }
        | MatrixError::NonMonotoneOffsets { .. }
        | MatrixError::LastOffset { .. }
        | MatrixError::OffsetWidth { .. } => Array::Offsets,
        MatrixError::TooManyColumns { .. }
        | MatrixError::ColumnOutOfRange { .. }
        | MatrixError::UnsortedColumns { .. } => Array::Columns,
        MatrixError::LengthMismatch { .. }
        | MatrixError::IndexWidth { .. }
        | MatrixError::CoefficientOutOfRange { .. }
        | MatrixError::DictionaryOrder { .. }
        | MatrixError::UnusedCoefficients { .. } => Array::Indices,
        MatrixError::DictionaryStart { .. }
        | MatrixError::ZeroCoefficient { .. }
        | MatrixError::RepeatedCoefficient { .. } => Array::Dictionary,
    }
}

/// Access to the header's fields.
struct Fields<'a> {
    path: &'a Path,
    bytes: &'a [u8; HEADER_LEN],
}

impl Fields<'_> {
    fn array<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|i| self.bytes[offset + i])
    }

    fn u64(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.array(offset))
    }

    fn u32(&self, offset: usize) -> u64 {
        u32::from_le_bytes(self.array(offset)).into()
    }

    fn require(&self, offset: usize, field: &'static str, found: u64, expected: u64) -> Result<(), CacheError> {
        if found != expected {
            let (path, offset) = (self.path.to_owned(), offset as u64);
            return Err(CacheError::HeaderValue { path, offset, field, expected, found });
        }
        Ok(())
    }

    fn range(&self, offset: usize, field: &'static str, found: u64, min: u64, max: u64) -> Result<(), CacheError> {
        if !(min..=max).contains(&found) {
            let (path, offset) = (self.path.to_owned(), offset as u64);
            return Err(CacheError::HeaderRange { path, offset, field, min, max, found });
        }
        Ok(())
    }
}
