//! One process at a time.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::Path,
    process,
    sync::Arc,
};

use crate::Error;

/// A lock on a directory, held as long as this lives. The kernel holds it, not the file's being there: a process that
/// died holds nothing.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock and writes this process's id into it.
    pub(crate) fn take(path: &Path) -> Result<Self, Error> {
        let io = |doing| move |cause| Error::Io { doing, path: path.to_owned(), cause: Arc::new(cause) };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The holder may be about to write it; then the message is without a number.
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(Error::Locked { path: path.to_owned(), pid });
            }
            Err(TryLockError::Error(cause)) => return Err(io("lock")(cause)),
        }
        file.set_len(0).map_err(io("write"))?;
        file.rewind().map_err(io("write"))?;
        writeln!(file, "{}", process::id()).map_err(io("write"))?;
        Ok(Self { _file: file })
    }
}
