//! What CI runs: what a person runs, and the checks of form.

use crate::{
    build, codegen,
    command::{self, SELECTION, cargo},
    demo, deps, test,
};

/// The architecture that CI compiles all kernels for.
const ARCHITECTURE: &str = "sm_90";

pub(crate) fn run() -> Result<(), String> {
    deps::run()?;
    command::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    codegen::run(&["--check".into()])?;
    command::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"]))?;
    // The programs that are libraries as well have their documentation there. A plugin has its backend's name, and no
    // documentation of its own.
    let document = ["doc", "--no-deps", "--lib", "--bin", "cuzk", "--bin", "xtask"];
    let plugins = ["cpu", "cuda"].map(|name| format!("--exclude=cuzk-backend-{name}-plugin"));
    command::run(cargo(&document).args(SELECTION).args(plugins).env("RUSTDOCFLAGS", "-D warnings"))?;
    test::run(&[])?;
    build::run(&["--backend", "cuda", "--arch", ARCHITECTURE].map(String::from))?;
    let words = ["test", "--workspace", "--release", "--test", "cuda", "--", "--ignored", "without_a_driver"];
    command::run(&mut cargo(&words))?;
    test::services()?;
    test::bench(&["--small".into()])?;
    demo::run(&[])
}
