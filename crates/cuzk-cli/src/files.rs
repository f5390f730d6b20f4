//! Files that are read whole, and files that appear whole or not at all.

use std::{
    fs::{File, Permissions},
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::failure::Failure;

/// An input larger than this is a mistake: a C1 of ten partitions has 50 to 200 MB.
const MAX_INPUT_BYTES: u64 = 1 << 30;

/// Reads an input file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("cannot read {}: {e}", path.display()));
    // Before it is opened: opening a pipe waits for a writer.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a device, pipe or socket" };
        return Err(Failure::input(format!("cannot read {}: it is {what}", path.display())));
    }
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let path = path.display();
        return Err(Failure::input(format!("{path} has more than {MAX_INPUT_BYTES} bytes: this is no such input")));
    }
    Ok(bytes)
}

/// Writes a file under a temporary name beside its own, and renames it when it is complete and on the disk.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::input(format!("cannot write {}: {e}", path.display()));
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    refuse_special(path)?;
    // What the umask leaves of it, as for any other file.
    let permissions = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(directory).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Makes a directory and those above it.
pub(crate) fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|e| Failure::input(format!("cannot make {}: {e}", path.display())))
}

/// Refuses to replace a file unless told so.
pub(crate) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), Failure> {
    refuse_special(path)?;
    if overwrite || std::fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    Err(Failure::usage(format!("{} is already there; --overwrite replaces it", path.display())))
}

/// Refuses to replace what is not an ordinary file: a directory, a device, a pipe, a link.
pub(crate) fn refuse_special(path: &Path) -> Result<(), Failure> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(Failure::input(format!("cannot write {}: something that is no ordinary file is there", path.display())))
        }
        _ => Ok(()),
    }
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
