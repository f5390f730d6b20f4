//! Filecoin's own verifiers, as an independent judge of a finished proof.
//!
//! They find verifying keys by name in a directory: `FIL_PROOFS_PARAMETER_CACHE`, or
//! `/var/tmp/filecoin-proof-parameters/`. The published crates read that variable once, when they
//! first need a setting, and hold each key in memory from its first use. So before anything of this
//! crate runs, the caller
//!
//! 1. sets `FIL_PROOFS_PARAMETER_CACHE` (a library must not), and
//! 2. puts the verifying key there as [`CircuitId::vk_file_name`], in bellperson's format: the
//!    bytes of a `.params` file up to and including its `ic`.
//!
//! A key that is missing is an error here. The published crates would otherwise look for the
//! `.params` file beside it, map it and write the verifying key themselves.

use std::collections::BTreeMap;

use filecoin_proofs_api::{PublicReplicaInfo, RegisteredPoStProof, SectorId, post, seal, update};
use storage_proofs_core::parameter_cache::parameter_cache_verifying_key_path;

use crate::{
    CircuitId, FilecoinError, PROOF_BYTES_PER_PARTITION, SealStatement, UpdateStatement, WindowPostVersion,
    WindowStatement, WinningStatement,
    error::{no_panic, published},
    partition::PostSector,
};

/// Verifies the proofs of all partitions of a PoRep, concatenated, by `filecoin_proofs`' `verify_seal`.
///
/// # Errors
/// [`FilecoinError::ProofLength`]; [`FilecoinError::VerifyingKeyMissing`];
/// [`FilecoinError::Published`] if the bytes are no curve points.
pub fn verify_seal(
    statement: &SealStatement,
    prover_id: [u8; 32],
    sector_number: u64,
    proof: &[u8],
) -> Result<bool, FilecoinError> {
    prepare(statement.circuit_id(), statement.partitions(), proof)?;
    no_panic("verify_seal", || {
        seal::verify_seal(
            statement.registered_proof(),
            statement.comm_r(),
            statement.comm_d(),
            prover_id,
            SectorId::from(sector_number),
            statement.ticket(),
            statement.seed(),
            proof,
        )
    })?
    .map_err(published("verify_seal"))
}

/// Verifies a WinningPoSt by `filecoin_proofs`' `verify_winning_post`.
///
/// # Errors
/// As [`verify_seal`].
pub fn verify_winning_post(statement: &WinningStatement, proof: &[u8]) -> Result<bool, FilecoinError> {
    let circuit = statement.circuit_id();
    prepare(circuit, statement.partitions(), proof)?;
    let public = statement.public();
    let replicas = replicas(circuit.sector_size.winning_proof(), statement.sectors());
    no_panic("verify_winning_post", || {
        post::verify_winning_post(&public.randomness, proof, &replicas, public.prover_id)
    })?
    .map_err(published("verify_winning_post"))
}

/// Verifies the proofs of all partitions of a WindowPoSt statement, concatenated, by
/// `filecoin_proofs`' `verify_window_post`.
///
/// # Errors
/// As [`verify_seal`], and [`FilecoinError::NotVerifiable`] if the statement is a later partition alone under
/// [`WindowPostVersion::V1`], whose challenges count from the first.
pub fn verify_window_post(statement: &WindowStatement, proof: &[u8]) -> Result<bool, FilecoinError> {
    let circuit = statement.circuit_id();
    if statement.version() == WindowPostVersion::V1 && statement.first_partition() != 0 {
        return Err(FilecoinError::NotVerifiable {
            reason: format!(
                "it starts at partition {}, and V1 challenges count from partition 0",
                statement.first_partition()
            ),
        });
    }
    prepare(circuit, statement.partitions(), proof)?;
    let public = statement.public();
    let registered = circuit.sector_size.window_proof(statement.version());
    let replicas = replicas(registered, statement.sectors());
    no_panic("verify_window_post", || {
        let proofs = [(registered, proof)];
        post::verify_window_post(&public.randomness, &proofs, &replicas, public.prover_id)
    })?
    .map_err(published("verify_window_post"))
}

/// Verifies the proofs of all partitions of an update, concatenated, by `filecoin_proofs`'
/// `verify_empty_sector_update_proof`.
///
/// # Errors
/// As [`verify_seal`].
pub fn verify_empty_sector_update(statement: &UpdateStatement, proof: &[u8]) -> Result<bool, FilecoinError> {
    let circuit = statement.circuit_id();
    prepare(circuit, statement.partitions(), proof)?;
    let public = statement.public();
    no_panic("verify_empty_sector_update_proof", || {
        update::verify_empty_sector_update_proof(
            circuit.sector_size.update_proof(),
            proof,
            public.comm_r_old,
            public.comm_r_new,
            public.comm_d_new,
        )
    })?
    .map_err(published("verify_empty_sector_update_proof"))
}

/// Checks the proof's length and that the verifying key is where the published crates look.
fn prepare(circuit: CircuitId, partitions: usize, proof: &[u8]) -> Result<(), FilecoinError> {
    let expected = partitions * PROOF_BYTES_PER_PARTITION;
    if proof.len() != expected {
        return Err(FilecoinError::ProofLength { partitions, expected, found: proof.len() });
    }
    let path = parameter_cache_verifying_key_path(&circuit.cache_identifier()?);
    if !path.is_file() {
        return Err(FilecoinError::VerifyingKeyMissing { path });
    }
    Ok(())
}

fn replicas<'a>(
    proof: RegisteredPoStProof,
    sectors: impl IntoIterator<Item = &'a PostSector>,
) -> BTreeMap<SectorId, PublicReplicaInfo> {
    sectors
        .into_iter()
        .map(|sector| {
            let replica = PublicReplicaInfo::new(proof, sector.comm_r.0);
            (SectorId::from(sector.id), replica)
        })
        .collect()
}
