//! Files that are read at given positions, and notice when they change underneath.
//!
//! Keys are not mapped into memory: touching a page of a mapped file that has shrunk kills the process with SIGBUS, and no
//! error can be returned. A positioned read that comes up short is an error like any other.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    Digest, KeyError, LooksLike, Origin,
    progress::{Reporter, Stage},
};

/// Bytes that one thread reads at a time: large enough for the full speed of a disk, small enough to share the work.
const BYTES_A_READ: usize = 4 << 20;

/// What `stat` says of a file. As long as nothing of it has changed, nobody has written to the file through the file
/// system, except within the resolution of its clock. See [`TrustStore`](crate::TrustStore) for what is built on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Number of the file system.
    pub device: u64,
    /// Number of the file there.
    pub inode: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Last write, in seconds since 1970.
    pub modified_s: i64,
    /// The nanoseconds of it.
    pub modified_ns: i64,
    /// Last change of content, name or rights, in seconds since 1970; unlike the time of the last write it cannot be set.
    pub changed_s: i64,
    /// The nanoseconds of it.
    pub changed_ns: i64,
}

impl From<&fs::Metadata> for FileIdentity {
    fn from(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        }
    }
}

/// Bytes with positions: a file or a slice.
pub(crate) trait ReadAt: Sync {
    fn origin(&self) -> Origin;
    fn len(&self) -> u64;
    /// Fills `out`; the caller has compared the range with [`ReadAt::len`].
    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), KeyError>;
}

impl ReadAt for [u8] {
    fn origin(&self) -> Origin {
        Origin::Memory
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), KeyError> {
        let start = offset as usize;
        out.copy_from_slice(&self[start..start + out.len()]);
        Ok(())
    }
}

/// An open regular file.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    file: File,
    identity: FileIdentity,
}

impl KeyFile {
    pub(crate) fn open(path: &Path) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io { path: path.to_owned(), action: "open", source };
        // Looked at before opening: opening a pipe would wait for its writer.
        require_regular(path, &fs::metadata(path).map_err(io)?)?;
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        require_regular(path, &metadata)?;
        Ok(Self { path: path.to_owned(), file, identity: (&metadata).into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Fills a large buffer from several threads: one alone does not keep a fast disk busy.
    pub(crate) fn read_parallel(&self, out: &mut [u8], offset: u64) -> Result<(), KeyError> {
        out.par_chunks_mut(BYTES_A_READ)
            .enumerate()
            .try_for_each(|(i, chunk)| self.read_at(chunk, offset + (i * BYTES_A_READ) as u64))
    }

    /// An error if the file has been written to since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<(), KeyError> {
        let (then, now) = (self.identity, self.stat()?);
        if now.bytes < then.bytes {
            return Err(self.shrunk(now.bytes));
        }
        // The time of the last change is left out: a hard link or another mode is no harm to a reader.
        if (now.bytes, now.modified_s, now.modified_ns) != (then.bytes, then.modified_s, then.modified_ns) {
            let path = self.path.clone();
            return Err(KeyError::Changed { path, size_before: then.bytes, size_now: now.bytes });
        }
        Ok(())
    }

    /// BLAKE3 of the bytes in a range.
    pub(crate) fn hash(&self, start: u64, len: u64, reporter: &mut Reporter<'_>) -> Result<Digest, KeyError> {
        const BLOCK: u64 = 8 * BYTES_A_READ as u64;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; BLOCK.min(len) as usize];
        let mut done = 0;
        while done < len {
            let block = &mut buffer[..BLOCK.min(len - done) as usize];
            self.read_parallel(block, start + done)?;
            hasher.update_rayon(block);
            done += block.len() as u64;
            reporter.advance(block.len() as u64)?;
        }
        Ok(Digest::finish(&hasher))
    }

    /// BLAKE3 of the whole file, as `b3sum` prints it.
    pub(crate) fn hash_all(&self, progress: crate::ProgressFn<'_>) -> Result<Digest, KeyError> {
        let bytes = self.identity.bytes;
        let digest = self.hash(0, bytes, &mut Reporter::new(Stage::Hash, bytes, progress))?;
        self.check_unchanged()?;
        Ok(digest)
    }

    fn stat(&self) -> Result<FileIdentity, KeyError> {
        let metadata = self.file.metadata();
        metadata.map(|m| (&m).into()).map_err(|source| self.io("stat", source))
    }

    fn io(&self, action: &'static str, source: io::Error) -> KeyError {
        KeyError::Io { path: self.path.clone(), action, source }
    }

    fn shrunk(&self, actual: u64) -> KeyError {
        KeyError::Shrunk { path: self.path.clone(), expected: self.identity.bytes, actual }
    }
}

impl ReadAt for KeyFile {
    fn origin(&self) -> Origin {
        Origin::File(self.path.clone())
    }

    /// The size when the file was opened.
    fn len(&self) -> u64 {
        self.identity.bytes
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<(), KeyError> {
        self.file.read_exact_at(out, offset).map_err(|source| {
            // Every caller stays within the size at opening, so an early end means that the file is shorter now.
            if source.kind() != io::ErrorKind::UnexpectedEof {
                return self.io("read", source);
            }
            match self.stat() {
                Ok(now) => self.shrunk(now.bytes),
                Err(error) => error,
            }
        })
    }
}

fn require_regular(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyError> {
    if metadata.is_file() {
        return Ok(());
    }
    let found = if metadata.is_dir() { "a directory" } else { "a device, pipe or socket" };
    Err(KeyError::NotAFile { path: path.to_owned(), found })
}

/// What the first bytes of a file suggest.
pub(crate) fn looks_like<R: ReadAt + ?Sized>(source: &R) -> Result<LooksLike, KeyError> {
    let mut head = vec![0; source.len().min(512) as usize];
    source.read_at(&mut head, 0)?;
    let compressed: [&[u8]; 5] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"PK\x03\x04"];
    let text = head.trim_ascii_start();
    let is_tag = |tag: &[u8]| text.get(..tag.len()).is_some_and(|t| t.eq_ignore_ascii_case(tag));
    Ok(if head.is_empty() {
        LooksLike::Empty
    } else if head.starts_with(&crate::native::MAGIC) {
        LooksLike::NativeKey
    } else if head.starts_with(b"zkey") {
        LooksLike::Zkey
    } else if head.starts_with(b"r1cs") || head.starts_with(b"wtns") {
        LooksLike::Circom
    } else if head.starts_with(b"version https://git-lfs") {
        LooksLike::GitLfsPointer
    } else if compressed.iter().any(|magic| head.starts_with(magic)) {
        LooksLike::Compressed
    } else if [&b"<!doctype"[..], b"<html", b"<head", b"<?xml", b"<!--"].into_iter().any(is_tag) {
        LooksLike::Html
    } else if matches!(text, [b'{' | b'[', rest @ ..] if rest.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()))
    {
        LooksLike::Json
    } else {
        LooksLike::Unknown
    })
}
