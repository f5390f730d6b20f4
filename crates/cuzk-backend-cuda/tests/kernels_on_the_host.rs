//! The transform kernels as host code: every thread of every block with the device's index arithmetic, from barrier to
//! barrier, against the definition; with plain arithmetic and with the device's carry chains.

use std::{env, path::Path, process::Command};

fn emulate(name: &str, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda/bench/ntt_emulate.cpp");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let compiled = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-o"])
        .arg(&program)
        .args(flags)
        .arg(&source)
        .output()
        .unwrap_or_else(|e| panic!("cannot run {compiler}: {e}"));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // Up to 2^12: one pass, and two.
    let output = Command::new(&program).arg("12").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn bls12_381() {
    emulate("ntt-bls12_381", &[]);
}

#[test]
fn bls12_381_with_carry_chains() {
    emulate("ntt-bls12_381-carry", &["-DCUZK_EMULATE_CARRY"]);
}

#[test]
fn bn254() {
    emulate("ntt-bn254", &["-DCUZK_CURVE_BN254"]);
}

#[test]
fn bn254_with_carry_chains() {
    emulate("ntt-bn254-carry", &["-DCUZK_CURVE_BN254", "-DCUZK_EMULATE_CARRY"]);
}
