//! The matrices of a circuit: from the cache, or recorded and then cached.

use std::path::Path;

use blstrs::Scalar as Fr;
use cuzk_filecoin::CircuitId;
use cuzk_r1cs::R1cs;

use crate::{failure::Failure, files, progress};

/// The matrices of a Filecoin circuit. The cache's file name carries the published identifier, which changes with the
/// circuit, and the version of this program, whose format might.
pub(crate) fn load(circuit: CircuitId, cache: &Path) -> Result<R1cs<Fr>, Failure> {
    files::make_directory(cache)?;
    let name = format!("{circuit}-{}-{}.r1cs", circuit.cache_identifier()?, env!("CARGO_PKG_VERSION"));
    let path = cache.join(name);
    if path.exists() {
        match R1cs::read_cache(&path) {
            Ok(r1cs) => return Ok(r1cs),
            // The cache only saves time: what is wrong with it is said, and the circuit recorded again.
            Err(error) => tracing::warn!("the circuit is recorded again: {error}"),
        }
    }
    let spinner = progress::spinner(&format!("recording circuit {circuit}"));
    let r1cs = cuzk_filecoin::record(circuit)?;
    spinner.finish_and_clear();
    if let Err(error) = r1cs.write_cache(&path) {
        tracing::warn!("the circuit is not cached: {error}");
    }
    Ok(r1cs)
}
