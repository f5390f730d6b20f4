//! Tests and benchmarks. Everything runs in the release profile: unoptimized cryptography is too slow to test.

use crate::{
    build,
    command::{self, cargo, exists},
};

/// Every test that a contributor needs.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    // The tests of the plugin boundary load the CPU backend from a shared library.
    build::run(&["--backend".into(), "cpu".into()])?;
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

/// What takes minutes or wants more of the machine: the recorded proofs of all circuits, the constraints of a whole partition of 32 GiB, and
/// the timeline's page in Chromium.
pub(crate) fn oracle() -> Result<(), String> {
    let run = |package, test, selection: &[&str]| {
        let mut command = cargo(&["test", "--release", "-p", package, "--test", test, "--"]);
        command::run(command.args(selection).args(["--test-threads", "1", "--nocapture"]))
    };
    run("cuzk-tests", "byte_exact", &["--include-ignored"])?;
    run("cuzk-filecoin", "synthetic", &["--ignored"])?;
    run("cuzk-timeline", "browser", &["--ignored"])
}

/// Benchmarks.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    command::run(cargo(&["run", "--release", "-p", "cuzk-benches", "--bin", "proof", "--"]).args(arguments))
}
