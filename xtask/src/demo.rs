//! The demonstration: the command line's own `demo` verb, built and run.

use std::process::Command;

use crate::command::{self, programs, target};

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let directory = target().join("demo");
    let [cuzk] = programs(["cuzk"])?;
    command::run(Command::new(cuzk).arg("demo").arg("--dir").arg(directory).args(arguments))
}
