//! The matrices of a circuit, with a spinner while they are recorded.

use std::{cell::RefCell, path::Path};

use blstrs::Scalar as Fr;
use cuzk_filecoin::CircuitId;
use cuzk_r1cs::R1cs;

use crate::{failure::Failure, progress};

/// From the cache, or recorded and then cached.
pub(crate) fn load(circuit: CircuitId, cache: &Path) -> Result<R1cs<Fr>, Failure> {
    let spinner = RefCell::new(None);
    let recording = || *spinner.borrow_mut() = Some(progress::spinner(&format!("recording circuit {circuit}")));
    let matrices = cuzk_prover::matrices(circuit, cache, recording);
    spinner.into_inner().inspect(|spinner| spinner.finish_and_clear());
    Ok(matrices?)
}
