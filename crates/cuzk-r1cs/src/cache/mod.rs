//! An [`R1cs`](crate::R1cs) on disk, so that a circuit is recorded once for all runs.
//!
//! # Layout, version 1
//! All integers are little endian. A header of 4096 bytes is followed by twelve sections, each at the next
//! multiple of 4096, with zeros in between; the file ends with the zeros that follow the last section.
//!
//! | offset | bytes | header field |
//! |---:|---:|---|
//! | 0 | 8 | magic `CUZKR1CS` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | `m`, length of a field element in bytes, at most 64 |
//! | 16 | 64 | modulus of the field in `m` bytes, then zeros |
//! | 80 | 8 | `n_inputs`, counting ONE |
//! | 88 | 8 | `n_aux` |
//! | 96 | 8 | `n_constraints`, counting the input rows |
//! | 104 | 3 × 24 | for A, B, C: `nnz` (u64), dictionary entries (u64), bytes of a row offset (u32: 4 or 8), bytes of a coefficient index (u32: 1, 2 or 4) |
//! | 176 | 8 | length of the file |
//! | 184 | 32 | BLAKE3 digest of the content, see [`R1cs::digest`](crate::R1cs::digest) |
//! | 216 | 3880 | zeros |
//!
//! The sections are, for A, then B, then C: row offsets (`n_constraints + 1` integers), columns (`nnz` × u32),
//! coefficient indices (`nnz` integers), dictionary (entries × `m` bytes, canonical integers below the
//! modulus). The arrays have the canonical form of [`CsrMatrix`](crate::CsrMatrix), so that a system has exactly one file.
//!
//! # Reading
//! The header alone determines the length of the file; it is compared with the actual one before anything is
//! allocated. Sections are read at their positions straight into the final arrays. Then the canonical form,
//! the input rows and the digest are checked, so an accepted file holds exactly what was written.
//!
//! The file is read, not mapped. A process that touches a page of a mapping beyond the end of a file that
//! has shrunk dies by SIGBUS, which cannot be turned into an error; and a mapping would need unsafe code,
//! which this crate forbids.
//!
//! # Writing
//! To a temporary name in the same folder, synchronized to the disk, then renamed: a crash leaves the old
//! file or the new one, never half of one.

mod layout;
mod read;
mod write;

use std::io;
use std::path::PathBuf;

use crate::csr::MatrixError;
use crate::system::R1csError;

/// Why a cache file could not be read or written.
///
/// `offset` is in bytes from the start of the file; `section` is `header` or a matrix and an array, as in `A.columns`.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The operating system reported an error.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The path is a folder, a device or the like.
    #[error("{}: not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file ends inside a section.
    #[error("{}: {section} at offset {offset} needs {expected} bytes, but the file ends after {found}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Section that is cut.
        section: String,
        /// Where the section starts.
        offset: u64,
        /// Bytes the section should have.
        expected: u64,
        /// Bytes of it that are there.
        found: u64,
    },
    /// The file does not start with the magic of this format.
    #[error("{}: not an R1CS cache: the header at offset 0 starts with {found:02x?}, expected {expected:02x?}", path.display())]
    Magic {
        /// The file.
        path: PathBuf,
        /// The magic.
        expected: [u8; 8],
        /// Bytes found.
        found: [u8; 8],
    },
    /// The file is for another field.
    #[error("{}: header at offset {offset}: field of modulus 0x{found}, expected 0x{expected}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Where the modulus is.
        offset: u64,
        /// Modulus of the field asked for, hexadecimal.
        expected: String,
        /// Modulus in the file, hexadecimal.
        found: String,
    },
    /// A header field has another value than it must have (the version, a width, the length of the file).
    #[error("{}: header at offset {offset}: {field} is {found}, expected {expected}", path.display())]
    HeaderValue {
        /// The file.
        path: PathBuf,
        /// Where the field is.
        offset: u64,
        /// Name of the field.
        field: &'static str,
        /// Value it must have.
        expected: u64,
        /// Value it has.
        found: u64,
    },
    /// A count in the header is out of its range.
    #[error("{}: header at offset {offset}: {field} is {found}, expected {min} to {max}", path.display())]
    HeaderRange {
        /// The file.
        path: PathBuf,
        /// Where the field is.
        offset: u64,
        /// Name of the field.
        field: &'static str,
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        max: u64,
        /// Value it has.
        found: u64,
    },
    /// The file does not have the length that its header implies.
    #[error("{}: the header implies {expected} bytes, but the file has {found}", path.display())]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Bytes implied.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// Bytes that must be zero are not.
    #[error("{}: padding after {section} at offset {offset} holds {found:#04x}, expected 0", path.display())]
    Padding {
        /// The file.
        path: PathBuf,
        /// Section before the padding.
        section: String,
        /// Where the byte is.
        offset: u64,
        /// Its value.
        found: u8,
    },
    /// A dictionary entry is not below the modulus.
    #[error("{}: {section} at offset {offset}: entry {entry} is 0x{value}, not below the modulus 0x{modulus}", path.display())]
    Scalar {
        /// The file.
        path: PathBuf,
        /// The dictionary.
        section: String,
        /// Where the entry is.
        offset: u64,
        /// Its index.
        entry: usize,
        /// Its value, hexadecimal.
        value: String,
        /// The modulus, hexadecimal.
        modulus: String,
    },
    /// Arrays are not in canonical form.
    #[error("{}: {section} at offset {offset}: {source}", path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// The array that is wrong.
        section: String,
        /// Where that array starts.
        offset: u64,
        /// What is wrong.
        source: MatrixError,
    },
    /// The matrices do not form a system.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: R1csError,
    },
    /// The content does not have the digest in the header.
    #[error("{}: header at offset {offset}: digest {expected}, but the content has {found}", path.display())]
    Digest {
        /// The file.
        path: PathBuf,
        /// Where the digest is.
        offset: u64,
        /// Digest in the header, hexadecimal.
        expected: String,
        /// Digest of the content, hexadecimal.
        found: String,
    },
    /// There is no memory for an array.
    #[error("{}: {section} at offset {offset}: no memory for {requested} bytes", path.display())]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// The array.
        section: String,
        /// Where it starts.
        offset: u64,
        /// Bytes asked for.
        requested: u64,
    },
}

/// Most significant byte first, in hexadecimal.
fn hex_be(little_endian: &[u8]) -> String {
    little_endian.iter().rev().map(|byte| format!("{byte:02x}")).collect()
}

/// First byte first, in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
