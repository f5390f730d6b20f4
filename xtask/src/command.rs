//! Running other programs.

use std::{path::PathBuf, process::Command, time::Instant};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// Cargo's target folder; a relative one is below the root, where cargo is started.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Cargo, the one that runs this.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// What selects packages for cargo, beside targets by name. A foreign crate is compiled with the features that the
/// selected packages ask for, and those that only their tests ask for count as soon as a test or an example is built.
/// With this selection they are those of `cargo test --workspace`, whatever targets are named: so the circuits, which
/// take minutes, are compiled once for tests, programs and benchmarks, and a program alone compiles no more than it
/// needs and one small example.
pub(crate) const SELECTION: [&str; 4] = ["--release", "--workspace", "--example", "sweep"];

/// Builds programs of the workspace, and says where they are, in the same order.
pub(crate) fn programs<const N: usize>(names: [&str; N]) -> Result<[PathBuf; N], String> {
    let mut build = cargo(&["build"]);
    build.args(SELECTION).args(names.iter().flat_map(|name| ["--bin", name]));
    run(&mut build)?;
    Ok(names.map(|name| target().join("release").join(name)))
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
