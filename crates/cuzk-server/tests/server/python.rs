//! gRPC's own Python implementation as the client: nothing of tonic is on its side.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::process::Daemon;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter of an environment with `tests/clients/python/requirements.txt`.
fn python() -> PathBuf {
    let named = env::var_os("CUZK_PYTHON").filter(|name| !name.is_empty());
    let named = named
        .expect("CUZK_PYTHON names a Python with tests/clients/python/requirements.txt: run `cargo xtask services`");
    named.into()
}

#[test]
#[ignore = "needs CUZK_PYTHON, which `cargo xtask services` sets"]
fn a_stranger_in_python_finds_everything_as_it_should_be() {
    let python = python();
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&directory, &[("FAKE_PARTITION_MS", "20")], &[]);
    let fixture = repository().join("tests/fixtures/filecoin/2kib/window");
    let meta: serde_json::Value = serde_json::from_slice(&fs::read(fixture.join("meta.json")).unwrap()).unwrap();
    let output = Command::new(python)
        .arg(repository().join("tests/clients/python/check.py"))
        .arg(format!("unix://{}", daemon.socket.display()))
        .arg("--proto")
        .arg(repository().join("crates/cuzk-proto/proto"))
        .arg("--vanilla")
        .arg(fixture.join("vanilla-p0.json"))
        .args(["--randomness", meta["randomness"].as_str().unwrap(), "--limit", "60", "--fake"])
        .output()
        .unwrap();
    let (told, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "\n{told}\n{complaints}");
    assert!(told.ends_with("11 of 11 checks hold\n"), "{told}");
}
