//! Requests that are too large for the database, each in a file of its own.
//!
//! A request may have 200 MB. In the database it would pass through the page cache, take one run of pages, and leave a
//! file that long behind when its job has ended. As a file it is written once, without a copy, and its room is free at
//! once when it is removed.
//!
//! A file is on disk, and so is its name, before the record of its job is written, and is removed after the record says
//! that the job has ended. A crash in between leaves a file without an unfinished job, which the next opening removes.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::Error;

/// A directory of requests.
#[derive(Debug)]
pub(crate) struct Bodies {
    directory: PathBuf,
}

impl Bodies {
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Error> {
        let made = fs::create_dir_all(&directory);
        made.map_err(|cause| Error::Io { doing: "make", path: directory.clone(), cause: Arc::new(cause) })?;
        Ok(Self { directory })
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:016x}"))
    }

    /// Writes a request that consists of these parts. When this returns, it is on disk.
    pub(crate) fn write(&self, number: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let path = self.path(number);
        let written = write(&path, parts).and_then(|()| File::open(&self.directory)?.sync_all());
        written.map_err(|cause| {
            // It failed already; a file that stays is removed at the next opening.
            drop(fs::remove_file(&path));
            if is_full(&cause) {
                let needed = parts.iter().map(|part| part.len() as u64).sum();
                Error::Full { path: self.directory.clone(), needed, cause: Arc::new(cause) }
            } else {
                Error::Io { doing: "write", path, cause: Arc::new(cause) }
            }
        })
    }

    pub(crate) fn read(&self, number: u64) -> Result<Vec<u8>, Error> {
        let path = self.path(number);
        fs::read(&path).map_err(|cause| Error::Io { doing: "read", path, cause: Arc::new(cause) })
    }

    /// Removes a request. If that fails, the next opening does it.
    pub(crate) fn remove(&self, number: u64) {
        drop(fs::remove_file(self.path(number)));
    }

    /// Removes all files but those of these jobs.
    pub(crate) fn retain(&self, numbers: &HashSet<u64>) -> Result<(), Error> {
        let failed = |cause| Error::Io { doing: "clear", path: self.directory.clone(), cause: Arc::new(cause) };
        let keep: HashSet<PathBuf> = numbers.iter().map(|number| self.path(*number)).collect();
        for entry in fs::read_dir(&self.directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if !keep.contains(&path) {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = File::create(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// Whether there is no room: on the disk, in the quota, or in the size that a file may have.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
