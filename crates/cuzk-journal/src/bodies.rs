//! Requests that are too large for the database, each in a file of its own.
//!
//! A request may have 200 MB. In the database it would pass through the page cache, take one run of pages, and leave a
//! file that long behind when its job has ended. As a file it is written once, without a copy, and its room is free at
//! once when it is removed.
//!
//! | name | content |
//! |---|---|
//! | `%016x.part` | a request whose job may not be on record yet |
//! | `%016x` | a request whose job is on record, and was acknowledged after the file had this name |
//!
//! A file is on disk, and so is its name, before the record of its job is written; it gets its second name after that,
//! and is removed after the record says that the job has ended. So the next opening after a crash may remove a first
//! name without an unfinished job, and a second name whose job the database has given a number to and forgotten. A
//! second name with a number that the database has not given yet is the work of somebody who was told that it is safe,
//! under a database that is not there any more: it is never removed. Nor is what has neither name, which is not the
//! journal's.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{FallocateFlags, fallocate},
    io::Errno,
};

use crate::{
    Error,
    lock::{FILE_MODE, make_directory},
};

/// Ending of the name of a request whose job may not be on record.
const PART: &str = ".part";
/// Name of the file that only asks for room: it is made and removed.
const PROBE: &str = "probe";

/// A directory of requests.
#[derive(Debug)]
pub(crate) struct Bodies {
    directory: PathBuf,
}

/// A file with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) number: u64,
    /// Whether its job may not be on record.
    pub(crate) part: bool,
    pub(crate) bytes: u64,
}

impl Bodies {
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Error> {
        make_directory(&directory)?;
        Ok(Self { directory })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn failed(&self, doing: &'static str, cause: io::Error) -> Error {
        Error::Io { doing, path: self.directory.clone(), cause: Arc::new(cause) }
    }

    fn path(&self, number: u64, part: bool) -> PathBuf {
        self.directory.join(format!("{number:016x}{}", if part { PART } else { "" }))
    }

    /// Writes a request that consists of these parts. When this returns, it is on disk.
    pub(crate) fn write(&self, number: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let path = self.path(number, true);
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

    /// The job of a request is on record.
    pub(crate) fn keep(&self, number: u64) {
        // Under its first name it is found as well, because its job is on record.
        drop(fs::rename(self.path(number, true), self.path(number, false)));
    }

    /// Does something with a request's file, under the name that it has.
    fn find<T>(&self, number: u64, act: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        match act(&self.path(number, false)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => act(&self.path(number, true)),
            done => done,
        }
    }

    pub(crate) fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        self.find(number, |path| fs::read(path))
    }

    /// Bytes of a request, if it is there.
    pub(crate) fn bytes(&self, number: u64) -> io::Result<Option<u64>> {
        match self.find(number, |path| fs::metadata(path)) {
            Ok(found) => Ok(Some(found.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a request. If that fails, the next opening does it.
    pub(crate) fn remove(&self, number: u64) {
        drop(self.find(number, |path| fs::remove_file(path)));
    }

    /// Every request that is there.
    pub(crate) fn all(&self) -> Result<Vec<Body>, Error> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|cause| self.failed("read", cause))? {
            let entry = entry.map_err(|cause| self.failed("read", cause))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (digits, part) = name.strip_suffix(PART).map_or((name, false), |digits| (digits, true));
            let Ok(number) = u64::from_str_radix(digits, 16) else { continue };
            let metadata = entry.metadata().map_err(|cause| self.failed("read", cause))?;
            if metadata.is_file() && self.path(number, part) == entry.path() {
                found.push(Body { number, part, bytes: metadata.len() });
            }
        }
        Ok(found)
    }

    /// Removes one of them.
    pub(crate) fn clear(&self, body: &Body) -> Result<(), Error> {
        fs::remove_file(self.path(body.number, body.part)).map_err(|cause| self.failed("clear", cause))
    }

    /// Sees whether so many bytes would find room, without writing them.
    pub(crate) fn probe(&self, bytes: u64) -> io::Result<()> {
        let path = self.directory.join(PROBE);
        let file = create(&path)?;
        let room = fallocate(&file, FallocateFlags::empty(), 0, bytes);
        drop(file);
        fs::remove_file(&path)?;
        match room {
            // A file system that cannot say, which only writing would tell.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// An empty file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
}

fn write(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = create(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// Whether there is no room: on the disk, in the quota, or in the size that a file may have.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
