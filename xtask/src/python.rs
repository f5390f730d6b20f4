//! The Python environment of the tests that use gRPC's own clients.

use std::{fs, path::PathBuf, process::Command};

use crate::command::{self, root, target};

/// Makes `target/python-clients`, an environment with what `tests/clients/python/requirements.txt` names, unless it is
/// there already, and returns its interpreter.
///
/// # Errors
/// There is no python3 with its module venv, or the packages cannot be had.
pub(crate) fn interpreter() -> Result<PathBuf, String> {
    let requirements = root().join("tests/clients/python/requirements.txt");
    let wanted = fs::read_to_string(&requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    let folder = target().join("python-clients");
    let python = folder.join("bin/python");
    // Written last, so that an environment that was interrupted while it was made is made anew.
    let made = folder.join("made-from.txt");
    if python.is_file() && fs::read_to_string(&made).is_ok_and(|text| text == wanted) {
        return Ok(python);
    }
    command::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))
        .map_err(|e| format!("{e}; Debian has it in the package python3-venv"))?;
    let mut pip = Command::new(&python);
    command::run(pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
    fs::write(&made, wanted).map_err(|e| format!("cannot write {}: {e}", made.display()))?;
    Ok(python)
}
