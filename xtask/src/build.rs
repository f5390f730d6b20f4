//! Backends as plugins.

use std::{fs, process::Command};

use crate::{
    command::{self, SELECTION, cargo, target},
    cuda,
};

/// `--backend NAME`: builds the shared library and puts it where the loader looks.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [flag, name] if flag == "--backend" && name == "cpu" => plugin(&mut alone(name), name),
        [flag, name, rest @ ..] if flag == "--backend" && name == "cuda" => cuda::build(rest),
        [flag, name, ..] if flag == "--backend" => Err(format!("no backend {name:?} with these arguments: see --help")),
        _ => Err("build takes --backend NAME, with NAME one of: cpu, cuda".into()),
    }
}

/// Cargo for the plugin package of a backend alone, with the features that it asks for: a minute, and no circuits.
pub(crate) fn alone(name: &str) -> Command {
    let mut build = cargo(&["build", "--release", "-p"]);
    build.arg(format!("cuzk-backend-{name}-plugin"));
    build
}

/// The CPU backend's plugin with all libraries of the workspace: nothing new where these are built anyway.
pub(crate) fn with_the_workspace() -> Result<(), String> {
    plugin(cargo(&["build", "--lib"]).args(SELECTION), "cpu")
}

/// Builds the plugin package of a backend with a prepared cargo, and copies the library to `target/plugins`.
pub(crate) fn plugin(build: &mut Command, name: &str) -> Result<(), String> {
    command::run(build)?;
    let file = format!("{}cuzk_backend_{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let (built, folder) = (target().join("release").join(&file), target().join("plugins"));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let bytes = fs::copy(&built, folder.join(&file)).map_err(|e| format!("cannot copy {}: {e}", built.display()))?;
    println!("{} ({:.1} MiB)", folder.join(&file).display(), bytes as f64 / f64::from(1 << 20));
    Ok(())
}
