//! The demonstration: the command line's own `demo` verb, built and run.

use crate::command::{self, cargo, target};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let directory = target().join("demo");
    command::run(&mut cargo(&["build", "--release", "-p", "cuzk-cli", "--bin", "cuzk"]))?;
    let mut command = std::process::Command::new(target().join("release").join("cuzk"));
    command::run(command.arg("demo").arg("--dir").arg(directory).args(arguments))
}
