//! Running other programs.

use std::{path::PathBuf, process::Command, time::Instant};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, the one that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a command, shows it and its time, and fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let shown = words.map(|w| w.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    eprintln!("\n$ {shown}");
    let started = Instant::now();
    let status = command.status().map_err(|e| format!("cannot run {shown}: {e}"))?;
    eprintln!("  ({:.1} s)", started.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// Whether a program is there and runs.
pub(crate) fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success())
}
