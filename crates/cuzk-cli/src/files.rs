//! Files and directories of a command.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Reads an input file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(cuzk_bench::files::read(path)?)
}

/// Writes a file, which appears whole or not at all.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    Ok(cuzk_bench::files::write(path, bytes)?)
}

/// Finds what would keep a file from being written, before what it is to hold is made.
pub(crate) fn check_target(path: &Path) -> Result<(), Failure> {
    Ok(cuzk_bench::files::check_target(path)?)
}

/// Makes a directory and those above it.
pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|e| Failure::input(format!("cannot make {}: {e}", path.display())))
}

/// Refuses to replace a file unless told so.
pub(crate) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), Failure> {
    check_target(path)?;
    if overwrite || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is already there; --overwrite replaces it", path.display())))
}

/// Refuses to write a file over its own source.
pub(crate) fn refuse_same(from: &Path, to: &Path) -> Result<(), Failure> {
    match (std::fs::canonicalize(from), std::fs::canonicalize(to)) {
        (Ok(a), Ok(b)) if a == b => Err(Failure::usage(format!("{} is source and target", from.display()))),
        _ => Ok(()),
    }
}

/// Where results that can be made again are kept, unless the command line names a directory.
pub(crate) fn cache_directory(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let of = |variable: &str| std::env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    of("XDG_CACHE_HOME")
        .or_else(|| of("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("cuzk"))
        .ok_or_else(|| Failure::usage("neither XDG_CACHE_HOME nor HOME is set: say --cache-dir"))
}
