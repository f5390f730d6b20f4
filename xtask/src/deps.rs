//! What the build and the tests need beside Rust: a C compiler for the assembly of the field arithmetic, and a C++ compiler to run
//! the kernels' field code on the host.

use std::process::Command;

use crate::command;

pub(crate) fn run() -> Result<(), String> {
    if command::exists("cc") && command::exists("c++") {
        println!("deps: a C and a C++ compiler are there, nothing else is needed");
        return Ok(());
    }
    if !command::exists("apt-get") {
        return Err(
            "no C or C++ compiler (cc, c++) found, and no apt-get to install them with: install gcc or clang".into()
        );
    }
    command::run(Command::new("apt-get").args(["update", "-q"]))?;
    command::run(Command::new("apt-get").args(["install", "-y", "-q", "--no-install-recommends", "g++", "libc6-dev"]))
}
