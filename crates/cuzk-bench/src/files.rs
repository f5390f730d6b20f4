//! Files that are read whole, and files that appear whole or not at all.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use crate::Failure;

/// An input larger than this is a mistake: a C1 of ten partitions has 50 to 200 MB.
const MAX_INPUT_BYTES: u64 = 1 << 30;

/// Reads an input file.
///
/// # Errors
/// It cannot be read, is no file, or has more than 1 GiB.
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |e: io::Error| Failure::input(format!("cannot read {}: {e}", path.display()));
    // Before it is opened: opening a pipe waits for a writer.
    let metadata = fs::metadata(path).map_err(failed)?;
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

/// Reads an input file that is text.
///
/// # Errors
/// As [`read`], and for what is no UTF-8.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read(path)?).map_err(|e| Failure::input(format!("{}: {}", path.display(), e.utf8_error())))
}

/// Writes a file under a temporary name beside its own, and renames it when it is complete and on the disk.
///
/// # Errors
/// It cannot be written, or something that is no ordinary file has its name.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::input(format!("cannot write {}: {e}", path.display()));
    refuse_special(path)?;
    // What the umask leaves of it, as for any other file.
    let permissions = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(directory_of(path)).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// Finds what would keep [`write()`] from writing a file, before what it is to hold is made.
///
/// # Errors
/// Something that is no ordinary file has its name, or its directory takes no file.
pub fn check_target(path: &Path) -> Result<(), Failure> {
    refuse_special(path)?;
    match tempfile::tempfile_in(directory_of(path)) {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::input(format!("cannot write {}: {e}", path.display()))),
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses to replace what is not an ordinary file: a directory, a device, a pipe, a link.
fn refuse_special(path: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(Failure::input(format!("cannot write {}: something that is no ordinary file is there", path.display())))
        }
        _ => Ok(()),
    }
}
