//! How large the witnesses of a circuit are, measured once and remembered.

use std::{fs, path::Path};

use blstrs::Scalar as Fr;
use cuzk_backend::AssignmentShape;
use cuzk_curve::CurveId;
use cuzk_filecoin::{CircuitId, FilecoinError, ProofKind, synthetic};
use cuzk_groth16::with_margin;
use cuzk_r1cs::Assignment;
use rand_core::OsRng;
use serde::{Deserialize, Serialize};

use crate::{
    circuit::{CircuitError, cache_file},
    remembered,
};

/// Ending of files with the size of a witness.
const ENDING: &str = "witness.json";

/// The sizes of one witness of a circuit, and of the statement that it came from.
///
/// The wide positions of a Filecoin witness follow from its circuit, up to values that happen to be 0 or 1, and its
/// ones are those of hashes: witnesses of a circuit differ by less than the margin that
/// [`FilecoinCircuit`](crate::FilecoinCircuit) adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessSize {
    /// Variables, inputs included.
    pub n_variables: u64,
    /// How many of them are 1.
    pub n_ones: u64,
    /// How many are neither 0 nor 1.
    pub n_wide: u64,
    /// Bytes of the statement's vanilla proofs as they are handed over.
    pub statement_bytes: u64,
}

impl WitnessSize {
    /// Of a witness.
    pub fn of(witness: &Assignment<Fr>, statement_bytes: u64) -> Self {
        Self {
            n_variables: witness.n_variables() as u64,
            n_ones: witness.ones().iter().map(|word| u64::from(word.count_ones())).sum(),
            n_wide: witness.wide_scalars().len() as u64,
            statement_bytes,
        }
    }

    /// Makes a synthetic statement of the circuit and its witness.
    ///
    /// # Errors
    /// The published crates refuse.
    pub fn measure(circuit: CircuitId) -> Result<Self, FilecoinError> {
        // A short partition proves its last sector repeatedly, so one sector makes a whole witness.
        let (statement, bytes) = synthetic::statement(circuit, 1, &mut OsRng)?;
        let sectors = match circuit.kind {
            ProofKind::WindowPoSt => circuit.sector_size.window_sectors() as u64,
            ProofKind::PoRep | ProofKind::WinningPoSt | ProofKind::Update => 1,
        };
        Ok(Self::of(&statement.partition(0)?.witness()?, bytes.saturating_mul(sectors)))
    }

    /// As [`measure`](Self::measure), unless that was done before and is remembered in a directory.
    ///
    /// # Errors
    /// The directory cannot be made, or the published crates refuse.
    pub fn cached(circuit: CircuitId, cache: &Path) -> Result<Self, CircuitError> {
        fs::create_dir_all(cache).map_err(|cause| CircuitError::Cache { path: cache.to_owned(), cause })?;
        if let Some(size) = Self::known(circuit, cache)? {
            return Ok(size);
        }
        tracing::info!("{circuit}: a witness is measured");
        let size = Self::measure(circuit)?;
        if let Err(error) = remembered::write(&cache_file(circuit, cache, ENDING)?, &size) {
            tracing::warn!("the size of witnesses of {circuit} is not remembered: {error}");
        }
        Ok(size)
    }

    /// What is remembered in a directory, if anything is.
    pub(crate) fn known(circuit: CircuitId, cache: &Path) -> Result<Option<Self>, FilecoinError> {
        Ok(remembered::read(&cache_file(circuit, cache, ENDING)?))
    }

    /// What no witness of the circuit exceeds.
    pub fn bound(&self) -> AssignmentShape {
        with_margin(AssignmentShape {
            curve: CurveId::Bls12_381,
            n_variables: self.n_variables,
            n_ones: self.n_ones,
            n_wide: self.n_wide,
        })
    }

    /// Bytes of host memory that making a witness takes at its peak, if the finished one has so many: it grows by
    /// doubling beside its final form, and the statement is there as it came and parsed.
    pub fn synthesis_bytes(&self, finished: u64) -> u64 {
        finished.saturating_mul(2).saturating_add(self.statement_bytes.saturating_mul(2))
    }
}
