//! Programs that come with this one.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

/// The program of this name beside this one, if it is there.
fn beside(name: &str) -> Option<PathBuf> {
    env::current_exe().ok().map(|this| this.with_file_name(name)).filter(|file| file.is_file())
}

/// The program `cuzk`: beside this one, else in PATH.
pub(crate) fn cuzk() -> OsString {
    beside("cuzk").map_or_else(|| "cuzk".into(), Into::into)
}

/// The daemon: the given file, else cuzk-daemon or `cuzk daemon` beside this program, else cuzk-daemon in PATH.
pub(crate) fn daemon(given: Option<&Path>) -> Command {
    if let Some(file) = given.map(Path::to_owned).or_else(|| beside("cuzk-daemon")) {
        return Command::new(file);
    }
    let Some(cuzk) = beside("cuzk") else { return Command::new("cuzk-daemon") };
    let mut command = Command::new(cuzk);
    command.arg("daemon");
    command
}
