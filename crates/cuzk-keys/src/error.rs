//! What can be wrong with a key: always with the file, the part, and both numbers.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use cuzk_curve::{CurveId, GroupId};

use crate::{Digest, Part};

/// Where a key was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was made in this process.
    Memory,
    /// A file.
    File(PathBuf),
}

impl From<&Path> for Origin {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("key in memory"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Why a point must not enter a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointFault {
    /// The flag bits of the encoding say something other than "uncompressed, not infinity".
    #[error("the encoding has flag bits that an uncompressed point does not have")]
    Flags,
    /// A coordinate is not below the modulus of the base field.
    #[error("a coordinate is not below the field's modulus")]
    NotCanonical,
    /// The coordinates do not satisfy the curve equation.
    #[error("not on the curve")]
    NotOnCurve,
    /// On the curve, but not of order r.
    #[error("not in the subgroup of order r")]
    NotInSubgroup,
    /// The point at infinity, which no part of a key may contain.
    #[error("the point at infinity")]
    Infinity,
}

/// What a file that is not a key looks like, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksLike {
    /// No bytes at all.
    Empty,
    /// A web page: usually the error page of a download.
    Html,
    /// JSON.
    Json,
    /// A Git LFS pointer: the content was not fetched.
    GitLfsPointer,
    /// Compressed: gzip, zstd, xz, bzip2 or zip.
    Compressed,
    /// A key in the native format of this project.
    NativeKey,
    /// A snarkjs proving key.
    Zkey,
    /// A circom constraint system or witness.
    Circom,
    /// None of these.
    Unknown,
}

impl fmt::Display for LooksLike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::Html => "it looks like an HTML page",
            Self::Json => "it looks like JSON",
            Self::GitLfsPointer => "it is a Git LFS pointer, not the content",
            Self::Compressed => "it looks compressed",
            Self::NativeKey => "it is a native key (.cuzkkey)",
            Self::Zkey => "it is a snarkjs .zkey",
            Self::Circom => "it is a circom .r1cs or .wtns",
            Self::Unknown => "it is in no format known here",
        })
    }
}

/// What a file was expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// bellperson's proving key.
    Params,
    /// bellperson's verifying key.
    Vk,
    /// The native format.
    Native,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Params => "bellperson proving key (.params)",
            Self::Vk => "bellperson verifying key (.vk)",
            Self::Native => "native key (.cuzkkey)",
        })
    }
}

/// What went wrong with a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried: "open", "read", "write", ….
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, a pipe, a device.
    #[error("{}: {found}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What there is.
        found: &'static str,
    },
    /// A file of another kind.
    #[error("{origin}: not a {expected}: {found}")]
    NotAKey {
        /// The file, or the bytes.
        origin: Origin,
        /// What was wanted.
        expected: Format,
        /// What it looks like.
        found: LooksLike,
    },
    /// The file ends inside a part.
    #[error("{origin}: truncated: up to the end of {part} there must be {expected} bytes, there are {actual}")]
    Truncated {
        /// The file, or the bytes.
        origin: Origin,
        /// The part that is cut off.
        part: Part,
        /// Offset of the part's end, in bytes.
        expected: u64,
        /// Size of the file in bytes.
        actual: u64,
    },
    /// The file goes on after the last part.
    #[error("{origin}: bytes after the end: the key has {expected} bytes, the file {actual}")]
    TrailingBytes {
        /// The file, or the bytes.
        origin: Origin,
        /// Size of the key in bytes.
        expected: u64,
        /// Size of the file in bytes.
        actual: u64,
    },
    /// A count that no key can have.
    #[error("{origin}: {part} has {declared} points: {rule} {limit}")]
    BadCount {
        /// The key.
        origin: Origin,
        /// The part.
        part: Part,
        /// The count.
        declared: u64,
        /// What it is compared with.
        limit: u64,
        /// How it is compared.
        rule: &'static str,
    },
    /// A point that must not enter a computation.
    #[error("{origin}: point {index} of {part}, at byte {offset}: {reason}")]
    BadPoint {
        /// The key.
        origin: Origin,
        /// The part.
        part: Part,
        /// Index in the part.
        index: usize,
        /// Offset in the file in bytes (for a key in memory: in the vector).
        offset: u64,
        /// What is wrong with it.
        reason: PointFault,
    },
    /// A field of a native key's header, or of its padding, that has no meaning.
    #[error("{}: field {field} at byte {offset} is {found:#x}: {rule}", path.display())]
    BadField {
        /// The file.
        path: PathBuf,
        /// The field's name in the format description.
        field: &'static str,
        /// Offset in the file in bytes.
        offset: u64,
        /// Its value.
        found: u64,
        /// What it must be.
        rule: &'static str,
    },
    /// Bytes that are not those that were written.
    #[error("{origin}: {part} is damaged: its digest should be {expected}, it is {actual}")]
    DigestMismatch {
        /// The key.
        origin: Origin,
        /// The part.
        part: Part,
        /// The recorded digest.
        expected: Digest,
        /// The digest of what is there.
        actual: Digest,
    },
    /// A native key of another version.
    #[error("{}: version {found} of the native format, this program reads version {supported}", path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version that is understood.
        supported: u32,
    },
    /// A key for another curve.
    #[error("{origin}: a key for {found}, not for {expected}")]
    WrongCurve {
        /// The file, or the bytes.
        origin: Origin,
        /// The curve wanted.
        expected: CurveId,
        /// The curve of the file.
        found: CurveId,
    },
    /// The file became shorter after it was opened.
    #[error("{}: shrunk while in use, from {expected} bytes to {actual}", path.display())]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// Size when it was opened, in bytes.
        expected: u64,
        /// Size now, in bytes.
        actual: u64,
    },
    /// The file was written to after it was opened.
    #[error("{}: changed while in use (size {size_before} then, {size_now} now)", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Size when it was opened, in bytes.
        size_before: u64,
        /// Size now, in bytes.
        size_now: u64,
    },
    /// A request for points that a section does not have.
    #[error("{len} points of {part} from {start} on were asked for; it has {count} in {group}")]
    OutOfRange {
        /// The section.
        part: Part,
        /// The group asked for.
        group: GroupId,
        /// First point asked for.
        start: usize,
        /// How many were asked for.
        len: usize,
        /// How many there are: none if the section lies in the other group.
        count: usize,
    },
    /// The key is for another circuit.
    #[error("the key has {key} points in {part}, the circuit needs {circuit}: the key belongs to another circuit")]
    CountMismatch {
        /// The part.
        part: Part,
        /// Points in the key.
        key: u64,
        /// Points that the circuit needs.
        circuit: u64,
    },
    /// Memory for a section is not there.
    #[error("no memory for {part}: {requested} bytes")]
    OutOfMemory {
        /// The part.
        part: Part,
        /// Bytes asked for.
        requested: u64,
    },
    /// The progress callback asked to stop.
    #[error("cancelled")]
    Cancelled,
}
