//! What is known of a circuit without its key: from the cache, or made and then cached, which can take minutes.

use std::path::Path;

use blstrs::Scalar as Fr;
use cuzk_filecoin::CircuitId;
use cuzk_prover::WitnessSize;
use cuzk_r1cs::R1cs;

use crate::{failure::Failure, progress};

/// The matrices of a circuit. Where they must be recorded, a line says so and where they are kept; on a terminal there
/// is a spinner, too.
pub(crate) fn load(circuit: CircuitId, cache: &Path) -> Result<R1cs<Fr>, Failure> {
    let spinner = progress::spinner(&format!("reading circuit {circuit}"));
    let recording = || {
        let cache = cache.display();
        spinner.suspend(|| eprintln!("recording the circuit {circuit}, once: it is kept in {cache}"));
        spinner.set_message(format!("recording circuit {circuit}"));
    };
    let matrices = cuzk_prover::matrices(circuit, cache, recording);
    spinner.finish_and_clear();
    Ok(matrices?)
}

/// How large the witnesses of a circuit are.
pub(crate) fn witness(circuit: CircuitId, cache: &Path) -> Result<WitnessSize, Failure> {
    let spinner = progress::spinner(&format!("measuring a witness of {circuit}"));
    let size = WitnessSize::cached(circuit, cache);
    spinner.finish_and_clear();
    Ok(size?)
}
