//! What CI runs: what a person runs, and the checks of form.

use crate::{
    build, codegen,
    command::{self, cargo},
    demo, deps, test,
};

/// The architecture that CI compiles all kernels for.
const ARCHITECTURE: &str = "sm_90";

pub(crate) fn run() -> Result<(), String> {
    deps::run()?;
    command::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    codegen::run(&["--check".into()])?;
    command::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"]))?;
    command::run(cargo(&["doc", "--workspace", "--no-deps", "--release"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    test::run(&[])?;
    build::run(&["--backend", "cuda", "--arch", ARCHITECTURE].map(String::from))?;
    // Of the whole workspace, as the tests were built: for another selection of packages the circuits would be compiled once more.
    let words = ["test", "--workspace", "--release", "--test", "cuda", "--", "--ignored", "without_a_driver"];
    command::run(&mut cargo(&words))?;
    test::services()?;
    test::bench(&["--small".into()])?;
    demo::run(&[])
}
