//! What the build needs beside Rust: a C compiler, for the assembly of the field arithmetic.

use std::process::Command;

use crate::command;

pub(crate) fn run() -> Result<(), String> {
    if command::exists("cc") {
        println!("deps: a C compiler is there, nothing else is needed");
        return Ok(());
    }
    if !command::exists("apt-get") {
        return Err("no C compiler (cc) found, and no apt-get to install one with: install gcc or clang".into());
    }
    command::run(Command::new("apt-get").args(["update", "-q"]))?;
    command::run(Command::new("apt-get").args(["install", "-y", "-q", "--no-install-recommends", "gcc", "libc6-dev"]))
}
