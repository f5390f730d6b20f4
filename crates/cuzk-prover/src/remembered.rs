//! Small facts that took long to find out, in files beside the circuits.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};

/// What was remembered in a file. A file that cannot be read or understood is as good as none.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Remembers it in a file, which appears whole or not at all.
pub(crate) fn write<T: Serialize>(path: &Path, fact: &T) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec(fact)?)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
