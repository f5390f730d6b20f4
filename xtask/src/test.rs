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

/// The recorded proofs of all circuits, those included whose keys take minutes to make.
pub(crate) fn oracle() -> Result<(), String> {
    command::run(&mut cargo(&[
        "test",
        "--release",
        "-p",
        "cuzk-tests",
        "--test",
        "byte_exact",
        "--",
        "--include-ignored",
        "--test-threads",
        "1",
        "--nocapture",
    ]))
}

/// Benchmarks.
pub(crate) fn bench(arguments: &[String]) -> Result<(), String> {
    command::run(cargo(&["run", "--release", "-p", "cuzk-benches", "--bin", "proof", "--"]).args(arguments))
}
