//! Files that appear under their name only when they are complete.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process,
};

use crate::KeyError;

/// A file under a temporary name beside its target. Dropped without [`AtomicFile::commit`] it is removed.
pub(crate) struct AtomicFile {
    file: File,
    temporary: PathBuf,
    target: PathBuf,
    committed: bool,
}

impl AtomicFile {
    pub(crate) fn create(target: &Path) -> Result<Self, KeyError> {
        let error = |source| KeyError::Io { path: target.to_owned(), action: "create", source };
        let name = target.file_name().ok_or_else(|| error(io::ErrorKind::InvalidInput.into()))?;
        // The process id keeps processes apart, the counter the threads of one process (and leftovers of a dead one
        // with the same id).
        for attempt in 0u32.. {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}-{attempt}.tmp", process::id()));
            let temporary = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(Self { file, temporary, target: target.to_owned(), committed: false }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(error(e)),
            }
        }
        Err(error(io::ErrorKind::AlreadyExists.into()))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        self.file.write_all(bytes).map_err(|e| self.error("write", e))
    }

    pub(crate) fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), KeyError> {
        self.file.write_all_at(bytes, offset).map_err(|e| self.error("write", e))
    }

    /// Makes the content durable, then gives it its name (replacing what had it), then makes the name durable.
    pub(crate) fn commit(mut self) -> Result<(), KeyError> {
        self.file.sync_all().map_err(|e| self.error("sync", e))?;
        fs::rename(&self.temporary, &self.target).map_err(|e| self.error("rename", e))?;
        self.committed = true;
        let directory = match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory).and_then(|d| d.sync_all()).map_err(|e| self.error("sync the directory of", e))
    }

    fn error(&self, action: &'static str, source: io::Error) -> KeyError {
        KeyError::Io { path: self.target.clone(), action, source }
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.committed
            && let Err(error) = fs::remove_file(&self.temporary)
        {
            tracing::warn!(path = %self.temporary.display(), %error, "an unfinished file stays behind");
        }
    }
}
