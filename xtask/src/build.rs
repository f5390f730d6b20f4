//! Backends as plugins.

use std::fs;

use crate::{
    command::{self, cargo, target},
    cuda,
};

/// `--backend NAME`: builds the shared library and puts it where the loader looks.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    match arguments {
        [flag, name] if flag == "--backend" && name == "cpu" => plugin(&mut cargo(&[]), name),
        [flag, name, rest @ ..] if flag == "--backend" && name == "cuda" => cuda::build(rest),
        [flag, name, ..] if flag == "--backend" => Err(format!("no backend {name:?} with these arguments: see --help")),
        _ => Err("build takes --backend NAME, with NAME one of: cpu, cuda".into()),
    }
}

/// Builds the plugin package of a backend with a prepared cargo, and copies the library to `target/plugins`.
pub(crate) fn plugin(cargo: &mut std::process::Command, name: &str) -> Result<(), String> {
    command::run(cargo.args(["build", "--release", "-p"]).arg(format!("cuzk-backend-{name}-plugin")))?;
    let file = format!("{}cuzk_backend_{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let (built, folder) = (target().join("release").join(&file), target().join("plugins"));
    fs::create_dir_all(&folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let bytes = fs::copy(&built, folder.join(&file)).map_err(|e| format!("cannot copy {}: {e}", built.display()))?;
    println!("{} ({:.1} MiB)", folder.join(&file).display(), bytes as f64 / f64::from(1 << 20));
    Ok(())
}
