//! Everything that checks and measures an NVIDIA device, in one folder that runs on a machine without Rust.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    build,
    command::{self, cargo, programs, root, target},
    cuda,
};

/// What the folder runs: known answers and the conformance suite, recorded keys and proofs byte for byte, and, if asked to, measurements.
const RUN: &str = r#"#!/bin/sh
# Checks an NVIDIA device, then measures it if arguments for the measurement are given (./bench --help lists them).
set -eu
cd "$(dirname "$0")"
export CUZK_PLUGIN_DIR="$PWD/plugins" CUZK_FIXTURES="$PWD/fixtures" CUZK_COMMIT=@commit@
./cuzk backends
./conformance --test-threads 2 --skip large:: --skip reduced::
# These take what memory there is, one after the other.
./conformance --test-threads 1 large::
./byte-exact --ignored --test-threads 1 device_
[ $# -eq 0 ] || ./bench "$@"
"#;

/// `device [--arch sm_90]...`: fills `target/device`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let kernels = cuda::kernels(&cuda::architectures(arguments)?)?;
    let with_kernels = |words: &[&str]| {
        let mut command = cargo(words);
        command.env("CUZK_CUDA_KERNELS", &kernels);
        command
    };
    build::plugin(build::alone("cuda").env("CUZK_CUDA_KERNELS", &kernels), "cuda")?;
    let [cuzk, bench] = programs(["cuzk", "device"])?;
    let conformance = ["test", "--workspace", "--features", "cuzk-backend-cuda/device", "--test", "device"];
    let conformance = test_binary(&mut with_kernels(&conformance))?;
    let byte_exact = test_binary(&mut cargo(&["test", "--workspace", "--test", "cuda"]))?;

    let folder = target().join("device");
    fs::create_dir_all(folder.join("plugins")).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let plugin = format!("{}cuzk_backend_cuda{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    copy_stripped(&target().join("plugins").join(&plugin), &folder.join("plugins").join(&plugin))?;
    for (from, to) in [(cuzk, "cuzk"), (bench, "bench"), (conformance, "conformance"), (byte_exact, "byte-exact")] {
        copy_stripped(&from, &folder.join(to))?;
    }
    command::run(Command::new("cp").arg("-r").arg(root().join("tests/fixtures")).arg(&folder))?;
    let commit = Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root()).output();
    let commit = commit.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    let script = folder.join("run");
    fs::write(&script, RUN.replace("@commit@", &commit))
        .map_err(|e| format!("cannot write {}: {e}", script.display()))?;
    command::run(Command::new("chmod").arg("+x").arg(&script))?;
    println!("copy {} to a machine with an NVIDIA device and start `run` in it", folder.display());
    Ok(())
}

/// Builds a test and says where it is.
fn test_binary(command: &mut Command) -> Result<PathBuf, String> {
    command.args(["--release", "--no-run", "--message-format", "json-render-diagnostics"]);
    let output = command.output().map_err(|e| format!("cannot run cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo test --no-run: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    // One JSON object a line; the last that names an executable is the test.
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    executable.ok_or_else(|| "cargo test --no-run named no executable".to_owned())
}

/// Copies a program without its symbols.
fn copy_stripped(from: &Path, to: &Path) -> Result<(), String> {
    command::run(Command::new("strip").arg("-o").arg(to).arg(from))
}
