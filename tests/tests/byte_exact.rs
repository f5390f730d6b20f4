//! Keys and proofs of the CPU backend, byte for byte, against those that bellperson and filecoin-proofs made and that are recorded
//! under `fixtures/filecoin`.

use cuzk_backend_cpu::CpuBackend;
use cuzk_tests::assert_byte_exact;

fn exact(circuit: &str) {
    assert_byte_exact(&CpuBackend, circuit);
}

#[test]
fn window_2k() {
    exact("wpost-2k");
}

#[test]
fn window_8m() {
    exact("wpost-8m");
}

#[test]
fn winning_2k() {
    exact("winning-2k");
}

#[test]
fn winning_8m() {
    exact("winning-8m");
}

#[test]
#[ignore = "minutes on two cores: `cargo xtask oracle` runs it"]
fn update_2k() {
    exact("snap-2k");
}

#[test]
#[ignore = "minutes on two cores: `cargo xtask oracle` runs it"]
fn porep_2k() {
    exact("porep-2k");
}
