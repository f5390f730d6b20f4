//! Vanilla proofs from the files of sealed sectors, as sealing software keeps them: the sealed replica, and a directory
//! with its trees (`p_aux`, `t_aux`, `sc-02-data-tree-…`).

use std::{fs, path::PathBuf};

use filecoin_proofs_api::{PrivateReplicaInfo, RegisteredPoStProof, SectorId, post, update};

use crate::{
    FilecoinError, SectorSize, WindowPostVersion,
    error::{no_panic, published},
};

/// Where a sealed sector lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedFiles {
    /// Its size.
    pub size: SectorSize,
    /// Its number.
    pub number: u64,
    /// The sealed replica.
    pub sealed: PathBuf,
    /// The directory with its trees.
    pub cache: PathBuf,
    /// Commitment to the replica.
    pub comm_r: [u8; 32],
}

impl SealedFiles {
    /// The vanilla proof for [`WinningStatement::new`](crate::WinningStatement::new): one.
    ///
    /// # Errors
    /// [`FilecoinError::Io`] if a file is not there; [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the
    /// published code fails: the files are damaged, or another sector's.
    pub fn winning_vanilla(&self, prover_id: [u8; 32], randomness: [u8; 32]) -> Result<Vec<Vec<u8>>, FilecoinError> {
        self.post(self.size.winning_proof(), prover_id, randomness)
    }

    /// The vanilla proof of this sector for [`WindowStatement::new`](crate::WindowStatement::new). Under
    /// [`WindowPostVersion::V1`] challenges depend on the place among the deadline's sectors: it is the first.
    ///
    /// # Errors
    /// As [`winning_vanilla`](Self::winning_vanilla).
    pub fn window_vanilla(
        &self,
        version: WindowPostVersion,
        prover_id: [u8; 32],
        randomness: [u8; 32],
    ) -> Result<Vec<Vec<u8>>, FilecoinError> {
        self.post(self.size.window_proof(version), prover_id, randomness)
    }

    /// The vanilla proofs for [`UpdateStatement::new`](crate::UpdateStatement::new) of this sector's update: one a
    /// partition.
    ///
    /// # Errors
    /// As [`winning_vanilla`](Self::winning_vanilla).
    pub fn update_vanilla(&self, updated: &Self, comm_d_new: [u8; 32]) -> Result<Vec<Vec<u8>>, FilecoinError> {
        self.are_there()?;
        updated.are_there()?;
        let proofs = call("generate_partition_proofs", || {
            update::generate_partition_proofs(
                self.size.update_proof(),
                self.comm_r,
                updated.comm_r,
                comm_d_new,
                &self.sealed,
                &self.cache,
                &updated.sealed,
                &updated.cache,
            )
        })?;
        Ok(proofs.into_iter().map(|proof| proof.0).collect())
    }

    fn post(
        &self,
        registered: RegisteredPoStProof,
        prover_id: [u8; 32],
        randomness: [u8; 32],
    ) -> Result<Vec<Vec<u8>>, FilecoinError> {
        self.are_there()?;
        let sector = SectorId::from(self.number);
        let challenges = call("generate_fallback_sector_challenges", || {
            post::generate_fallback_sector_challenges(registered, &randomness, &[sector], prover_id)
        })?;
        let info = PrivateReplicaInfo::new(registered, self.comm_r, self.cache.clone(), self.sealed.clone());
        let vanilla = |challenges: &Vec<u64>| {
            call("generate_single_vanilla_proof", || {
                post::generate_single_vanilla_proof(registered, sector, &info, challenges)
            })
        };
        challenges.values().map(vanilla).collect()
    }

    /// What is missing is named here; the published code might panic.
    fn are_there(&self) -> Result<(), FilecoinError> {
        for path in [&self.sealed, &self.cache.join("p_aux")] {
            fs::metadata(path).map_err(|source| FilecoinError::Io { path: path.clone(), source })?;
        }
        Ok(())
    }
}

/// Calls a published function that returns an `anyhow` result.
pub(crate) fn call<T, E: std::fmt::Display>(
    name: &'static str,
    f: impl FnOnce() -> Result<T, E>,
) -> Result<T, FilecoinError> {
    no_panic(name, f)?.map_err(published(name))
}
