//! The kernels as host code, every thread of every block with the device's index arithmetic, from barrier to barrier: transforms
//! against the definition, with plain arithmetic and with the device's carry chains; multi-scalar multiplication against
//! closed forms, with mixed and with batched additions, in special cases.

use std::{env, path::Path, process::Command};

fn run(source: &str, name: &str, flags: &[&str], arguments: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/cuda/bench").join(source);
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
    let output = Command::new(&program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn emulate(name: &str, flags: &[&str]) {
    // Up to 2^12: one pass, and two.
    run("ntt_emulate.cpp", name, flags, &["12"]);
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

#[test]
fn multi_scalar_multiplication_with_batched_additions() {
    let flags = ["-DCUZK_EMULATE", "-DCUZK_EMULATE_CARRY"];
    // A few scalars on few threads, so that chunks are long enough for several rounds.
    run("msm_bench.cpp", "msm-bls12_381", &flags, &[".", "small", "40", "blocks", "1", "batch", "6", "check1"]);
}
