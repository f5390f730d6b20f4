//! How large the witnesses of a circuit are, measured once and remembered.

use std::{fs, path::Path};

use blstrs::Scalar as Fr;
use cuzk_backend::AssignmentShape;
use cuzk_curve::CurveId;
use cuzk_filecoin::{
    CircuitId, FilecoinError, ProofKind, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, prover_id_from_miner,
    synthetic::{self, SealInput},
};
use cuzk_groth16::with_margin;
use cuzk_r1cs::Assignment;
use rand_core::{OsRng, RngCore};
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
        let (statement, bytes) = synthetic_statement(circuit)?;
        Ok(Self::of(&statement.partition(0)?.witness()?, bytes))
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

/// A statement of the circuit, and the bytes of its vanilla proofs.
fn synthetic_statement(circuit: CircuitId) -> Result<(Statement, u64), FilecoinError> {
    const MINER: u64 = 1000;
    let size = circuit.sector_size;
    let mut randomness = [0; 32];
    OsRng.fill_bytes(&mut randomness);
    // Below the field's modulus.
    randomness[31] &= 0x3f;
    let total = |vanilla: &[Vec<u8>]| vanilla.iter().map(|v| v.len() as u64).sum();
    Ok(match circuit.kind {
        ProofKind::PoRep => {
            let input = SealInput { size, miner: MINER, number: 1, ticket: randomness, seed: randomness };
            let c1 = synthetic::c1(&input, &mut OsRng)?;
            (parse_c1(&c1)?.into(), c1.len() as u64)
        }
        ProofKind::WinningPoSt => {
            let vanilla = synthetic::winning_vanilla(size, 1, randomness, &mut OsRng)?;
            let prover = prover_id_from_miner(MINER);
            (WinningStatement::new(size, prover, randomness, &vanilla)?.into(), total(&vanilla))
        }
        ProofKind::WindowPoSt => {
            // A short partition proves its last sector repeatedly, so one sector makes a whole witness.
            let vanilla = synthetic::window_vanilla(size, [1], randomness, &mut OsRng)?;
            let bytes = total(&vanilla).saturating_mul(size.window_sectors() as u64);
            let (version, prover) = (WindowPostVersion::V1_2, prover_id_from_miner(MINER));
            (WindowStatement::new(size, version, prover, randomness, 0, &vanilla)?.into(), bytes)
        }
        ProofKind::Update => {
            let made = synthetic::update(size, &mut OsRng)?;
            let bytes = total(&made.vanilla);
            let statement =
                UpdateStatement::new(size, made.comm_r_old, made.comm_r_new, made.comm_d_new, &made.vanilla)?;
            (statement.into(), bytes)
        }
    })
}
