//! What the build and the tests need beside Rust: a C compiler for the assembly of the field arithmetic, make for the allocator, and a
//! C++ compiler to run the kernels' field code on the host.

use std::process::Command;

use crate::command;

pub(crate) fn run() -> Result<(), String> {
    if ["cc", "c++", "make"].into_iter().all(command::exists) {
        println!("deps: a C and a C++ compiler and make are there, nothing else is needed");
        return Ok(());
    }
    install("a C and a C++ compiler and make (cc, c++, make)", &["g++", "libc6-dev", "make"])
}

/// What the tests of the daemon need beside that: a browser, Prometheus' checker, and Python with its environments.
pub(crate) fn services() -> Result<(), String> {
    let venv =
        Command::new("python3").args(["-c", "import ensurepip, venv"]).output().is_ok_and(|o| o.status.success());
    let needed = [
        (command::exists("chromium"), "Chromium", "chromium"),
        (command::exists("promtool"), "promtool", "prometheus"),
        (venv, "python3 with its module venv", "python3-venv"),
    ];
    for (there, what, package) in needed {
        if !there {
            install(what, &[package])?;
        }
    }
    Ok(())
}

/// Installs Debian packages.
fn install(what: &str, packages: &[&str]) -> Result<(), String> {
    if !command::exists("apt-get") {
        return Err(format!("{what} not found, and no apt-get to install {} with", packages.join(" and ")));
    }
    command::run(Command::new("apt-get").args(["update", "-q"]))?;
    command::run(Command::new("apt-get").args(["install", "-y", "-q", "--no-install-recommends"]).args(packages))
}
