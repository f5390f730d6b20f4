//! The directory: one process at a time, names that stay, and what others may read.
//!
//! What excludes a second process is a lock on the directory itself and one on the database's file. The file `lock`
//! only tells who the first one is: whoever removes it changes nothing.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    sync::Arc,
};

use crate::Error;

/// Mode of the files that a journal makes: they hold the inputs of proofs, and no one else is to read them.
pub(crate) const FILE_MODE: u32 = 0o600;
/// Mode of the directories that it makes.
const DIRECTORY_MODE: u32 = 0o700;

/// Which file a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Of an open file.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::of(&metadata))
    }
}

/// Locks on a directory and on the database in it, held as long as this lives. The kernel holds them, not a file's
/// being there: a process that died holds nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    _directory: File,
    _database: File,
    _pid: File,
    path: PathBuf,
    identity: Identity,
}

impl Lock {
    /// Makes the directory and an empty database's file if they are not there, takes the locks, and writes this
    /// process's id into the file `lock`.
    pub(crate) fn take(directory: &Path) -> Result<Self, Error> {
        make_directory(directory)?;
        let path = database_path(directory);
        let pid_path = directory.join("lock");
        let locked = |path: &Path| Error::Locked { path: path.to_owned(), pid: holder(&pid_path) };

        let parent = File::open(directory).map_err(failed("open", directory))?;
        match parent.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(directory)),
            // Network file systems lock no directories: there the file's lock has to do.
            Err(TryLockError::Error(_)) => {}
        }
        let database = open(&path)?;
        match database.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(&path)),
            Err(TryLockError::Error(cause)) => return Err(failed("lock", &path)(cause)),
        }
        let mut pid = open(&pid_path)?;
        match pid.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(&pid_path)),
            Err(TryLockError::Error(cause)) => return Err(failed("lock", &pid_path)(cause)),
        }
        let write = failed("write", &pid_path);
        let written = pid.set_len(0).and_then(|()| pid.rewind()).and_then(|()| writeln!(pid, "{}", process::id()));
        written.map_err(write)?;
        let identity = Identity::of_file(&database).map_err(failed("read", &path))?;
        Ok(Self { _directory: parent, _database: database, _pid: pid, path, identity })
    }

    /// Which file the database is.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// That the database still has its name: what is written to a file without one is lost with the process.
    ///
    /// # Errors
    /// [`Error::Replaced`]; or [`Error::Io`], if that cannot be told.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match fs::metadata(&self.path) {
            Ok(found) if Identity::of(&found) == self.identity => Ok(()),
            Ok(_) => Err(Error::Replaced { path: self.path.clone(), missing: false }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Error::Replaced { path: self.path.clone(), missing: true })
            }
            Err(cause) => Err(failed("read", &self.path)(cause)),
        }
    }
}

/// The database's file.
pub(crate) fn database_path(directory: &Path) -> PathBuf {
    directory.join("journal.redb")
}

/// Makes a directory that only its owner may enter, with those above it, unless it is there.
pub(crate) fn make_directory(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path).map_err(failed("make", path))
}

/// Brings the names of a directory's files, and its own, to disk: a file that was made is lost without its name.
pub(crate) fn keep_names(directory: &Path) -> Result<(), Error> {
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
    for directory in [Some(directory), parent].into_iter().flatten() {
        File::open(directory).and_then(|open| open.sync_all()).map_err(failed("sync", directory))?;
    }
    Ok(())
}

/// What of a journal anybody on this machine can read, with its mode.
pub(crate) fn exposed(directory: &Path, requests: &Path) -> Option<(PathBuf, u32)> {
    let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.mode() & 0o7777);
    // Whoever may not enter the directory cannot come as far.
    let entered = mode(directory) & 0o001 != 0;
    let paths = [database_path(directory), requests.to_owned()];
    paths
        .into_iter()
        .map(|path| (mode(&path), path))
        .find(|(mode, _)| entered && mode & 0o004 != 0)
        .map(|(m, p)| (p, m))
}

/// Opens a file, or makes one that only its owner may read.
fn open(path: &Path) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    options.open(path).map_err(failed("open", path))
}

/// Who holds the lock, if that can be read: the holder may be about to write it, or somebody removed the file.
fn holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(32).read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}

fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |cause| Error::Io { doing, path: path.clone(), cause: Arc::new(cause) }
}
