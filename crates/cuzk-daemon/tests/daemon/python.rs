//! gRPC's own Python implementation as the client of a daemon that proves.

use std::{env, fs, path::Path, process::Command};

use crate::common::Daemon;

#[test]
#[ignore = "needs CUZK_PYTHON, which `cargo xtask services` sets"]
fn a_stranger_in_python_gets_proofs() {
    let python = env::var_os("CUZK_PYTHON").filter(|name| !name.is_empty());
    let python = python.expect("CUZK_PYTHON names a Python with tests/clients/python/requirements.txt");
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &[]);
    tokio::runtime::Runtime::new().unwrap().block_on(daemon.client());
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixture = repository.join("tests/fixtures/filecoin/2kib/window");
    let meta: serde_json::Value = serde_json::from_slice(&fs::read(fixture.join("meta.json")).unwrap()).unwrap();
    let output = Command::new(python)
        .arg(repository.join("tests/clients/python/check.py"))
        .arg(daemon.address())
        .arg("--proto")
        .arg(repository.join("crates/cuzk-proto/proto"))
        .arg("--vanilla")
        .arg(fixture.join("vanilla-p0.json"))
        .args(["--randomness", meta["randomness"].as_str().unwrap(), "--limit", "120"])
        .output()
        .unwrap();
    let (told, complaints) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "\n{told}\n{complaints}");
    assert!(told.ends_with("checks hold\n"), "{told}");
}
