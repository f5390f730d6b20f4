//! The layering of docs/ARCHITECTURE.md as a test over `cargo metadata`: imports go downwards, siblings never import each other.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// Bottom first. A crate imports only from layers above its own in this list.
const LAYERS: [&[&str]; 9] = [
    &["cuzk-units"],
    &["cuzk-curve", "cuzk-scheduler", "cuzk-timeline", "cuzk-proto", "cuzk-journal"],
    &["cuzk-r1cs", "cuzk-backend", "cuzk-server", "cuzk-bench"],
    &["cuzk-keys", "cuzk-plugin", "cuzk-filecoin"],
    &["cuzk-groth16", "cuzk-backend-cpu", "cuzk-backend-cuda"],
    &["cuzk-backend-cpu-plugin", "cuzk-backend-cuda-plugin", "cuzk-engine"],
    &["cuzk-prover"],
    &["cuzk-daemon"],
    &["cuzk-cli"],
];

/// Not part of the product: they test, measure or build it.
const DEVELOPMENT: [&str; 4] = ["cuzk-conformance", "cuzk-tests", "cuzk-benches", "xtask"];

/// A dependency that a crate must not have, directly, and why.
const FORBIDDEN: [(&str, &str, &str); 16] = [
    ("cuzk-scheduler", "ff", "the scheduler never sees a curve"),
    ("cuzk-cli", "cudarc", "a device with a driver comes as a plugin"),
    ("cuzk-daemon", "cuzk-backend-cuda", "a device with a driver comes as a plugin"),
    ("cuzk-server", "cuzk-engine", "a server serves anything that proves"),
    ("cuzk-server", "cuzk-filecoin", "a server serves anything that proves"),
    ("cuzk-bench", "cuzk-filecoin", "it measures any implementation of the protocol"),
    ("cuzk-prover", "cuzk-backend-cuda", "a device with a driver comes as a plugin"),
    ("cuzk-backend", "blst", "the contract computes nothing"),
    ("cuzk-groth16", "libloading", "the proof system works on any device and finds none"),
    ("cuzk-groth16", "cuzk-backend-cpu", "the proof system works on any device and names none"),
    ("cuzk-r1cs", "blstrs", "constraint systems are generic over the field"),
    ("cuzk-keys", "bellperson", "formats are read by our own code"),
    ("cuzk-filecoin", "bellperson", "circuits are run by our own constraint systems"),
    ("cuzk-engine", "cuzk-plugin", "the engine is given devices and loads no library"),
    ("cuzk-engine", "cuzk-backend-cpu", "the engine works on any device and names none"),
    ("cuzk-engine", "cuzk-filecoin", "the engine proves any circuit, and builds without those that take minutes"),
];

/// Normal (not development) dependencies of each workspace member.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--format-version", "1", "--no-deps", "--offline"];
    let output = Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = |v: &Value| v["name"].as_str().unwrap().to_owned();
    let normal = |d: &&Value| d["kind"].is_null() || d["kind"] == "build";
    metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (name(p), p["dependencies"].as_array().unwrap().iter().filter(normal).map(name).collect()))
        .collect()
}

fn layer(package: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&package))
}

#[test]
fn imports_go_downwards() {
    let dependencies = dependencies();
    assert!(dependencies.len() > 10, "the workspace's members were found");
    for (package, imports) in &dependencies {
        if DEVELOPMENT.contains(&package.as_str()) {
            continue;
        }
        let own =
            layer(package).unwrap_or_else(|| panic!("{package} has no layer: add it to LAYERS and ARCHITECTURE.md"));
        for import in imports.iter().filter(|i| dependencies.contains_key(*i)) {
            let theirs =
                layer(import).unwrap_or_else(|| panic!("{package} imports {import}, which is for development only"));
            assert!(theirs < own, "{package} (layer {own}) imports {import} (layer {theirs})");
        }
    }
}

#[test]
fn no_crate_knows_what_it_must_not() {
    let dependencies = dependencies();
    for (package, import, reason) in FORBIDDEN {
        assert!(!dependencies[package].iter().any(|i| i == import), "{package} imports {import}, but {reason}");
    }
}
