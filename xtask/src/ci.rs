//! What CI runs: what a person runs, and the checks of form.

use crate::{
    codegen,
    command::{self, cargo},
    demo, deps, test,
};

pub(crate) fn run() -> Result<(), String> {
    deps::run()?;
    command::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    codegen::run(&["--check".into()])?;
    command::run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--release", "--", "-D", "warnings"]))?;
    command::run(cargo(&["doc", "--workspace", "--no-deps", "--release"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    test::run(&[])?;
    test::bench(&["--small".into()])?;
    demo::run(&[])
}
