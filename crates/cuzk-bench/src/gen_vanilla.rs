//! The verb `gen-vanilla`: the program `cuzk`, which links the circuits that making vanilla proofs takes.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use crate::{Class, Failure, output, program};

/// Becomes `cuzk gen-vanilla` with these arguments; what it returns is that it cannot.
pub(crate) fn run(name: &str, json: bool, arguments: &[OsString]) -> ExitCode {
    let cuzk = program::cuzk();
    let mut command = Command::new(&cuzk);
    command.arg("gen-vanilla").args(arguments);
    if json {
        command.arg("--json");
    }
    let error = command.exec();
    let cuzk = cuzk.to_string_lossy();
    let message = format!(
        "gen-vanilla is done by the program cuzk, which is expected beside this one or in PATH: {cuzk}: {error}"
    );
    let failure = Failure::new(Class::Device, message);
    output::failure(name, json, &failure);
    failure.exit_code()
}
