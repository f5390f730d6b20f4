//! Tests and benchmarks. Everything runs in the release profile: unoptimized cryptography is too slow to test.

use std::process::Command;

use crate::{
    build,
    command::{self, cargo, exists, programs},
    deps, python,
};

/// Every test that a contributor needs.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    // The tests of the plugin boundary load the CPU backend from a shared library.
    build::with_the_workspace()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if exists("cargo-nextest") {
        command::run(cargo(&["nextest", "run", "--workspace", "--release"]).args(&arguments))?;
        if arguments.is_empty() {
            command::run(&mut cargo(&["test", "--workspace", "--release", "--doc"]))?;
        }
    } else {
        command::run(cargo(&["test", "--workspace", "--release"]).args(&arguments))?;
    }
    if arguments.is_empty() { standalone() } else { Ok(()) }
}

/// A package outside of the workspace that depends on single crates by path, as a user of one crate would.
fn standalone() -> Result<(), String> {
    let manifest = command::root().join("tests/standalone/Cargo.toml");
    command::run(cargo(&["test", "--release", "--manifest-path"]).arg(manifest))
}

/// What takes minutes or wants more of the machine: the recorded proofs of all circuits, the constraints of a whole
/// partition of 32 GiB, and witnesses of the large sectors.
pub(crate) fn oracle() -> Result<(), String> {
    let run = |test, selection: &[&str]| {
        let mut command = cargo(&["test", "--release", "--workspace", "--test", test, "--"]);
        command::run(command.args(selection).args(["--test-threads", "1", "--nocapture"]))
    };
    run("byte_exact", &["--include-ignored"])?;
    run("synthetic", &["--ignored"])?;
    run("witness", &["--ignored"])
}

/// The daemon's server with gRPC clients in Python, its metrics with promtool, its page and the timeline's in Chromium,
/// and five hundred jobs through it.
pub(crate) fn services() -> Result<(), String> {
    deps::services()?;
    let python = python::interpreter()?;
    for (test, filter) in
        [("server", ""), ("browser", ""), ("daemon", "python"), ("daemon", "browser::"), ("daemon", "five_hundred")]
    {
        let mut command = cargo(&["test", "--workspace", "--release", "--test", test, filter, "--", "--ignored"]);
        command::run(command.args(["--test-threads", "1"]).env("CUZK_PYTHON", &python))?;
    }
    Ok(())
}

/// More random schedules through the engine than every test run has. The seed of one that fails is printed.
pub(crate) fn schedules(arguments: &[String]) -> Result<(), String> {
    let number = arguments.first().map_or("100000", String::as_str);
    number.parse::<u64>().map_err(|e| format!("schedules {number}: {e}"))?;
    let mut command = cargo(&["test", "--release", "--workspace", "--test", "engine", "random", "--", "--nocapture"]);
    command::run(command.env("CUZK_ENGINE_SCHEDULES", number))
}

/// Benchmarks.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    let [proof] = programs(["proof"])?;
    command::run(Command::new(proof).current_dir(command::root()).args(arguments))
}
