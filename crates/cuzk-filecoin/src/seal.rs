//! Sealing a small sector with the published crates, for demonstrations and tests.
//!
//! [`seal_sector`] takes a sector through its whole life: data, replica, commitment, both proofs of
//! spacetime, update. A 2 KiB sector takes seconds, one of 8 MiB minutes. Real sectors are sealed
//! elsewhere. The published crates keep a cache of graph parents in the directory that
//! `FIL_PROOFS_PARENT_CACHE` names when the process first needs it (by default
//! `/var/tmp/filecoin-parents/`).

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use filecoin_proofs_api::{PieceInfo, RegisteredSealProof, SectorId, UnpaddedBytesAmount, seal, update};

use crate::{
    FilecoinError, SealStatement, SealedFiles, SectorSize, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement, error::published, parse_c1, prover_id_from_miner, sealed::call, statement::Wrapper,
};

/// What a sector is sealed from. All of it is the caller's: nothing here draws random numbers.
#[derive(Debug, Clone, Copy)]
pub struct SectorInput<'a> {
    /// Size of the sector.
    pub size: SectorSize,
    /// Actor id of the storage provider.
    pub miner: u64,
    /// Number of the sector.
    pub number: u64,
    /// The data: [`unpadded_bytes`] of the size.
    pub data: &'a [u8],
    /// What the sector is updated to; of the same length.
    pub update: &'a [u8],
    /// Randomness of the replica.
    pub ticket: [u8; 32],
    /// Randomness of the PoRep's challenges.
    pub seed: [u8; 32],
    /// Randomness of the proofs of spacetime: a canonical field element, see [`fr_safe`].
    pub randomness: [u8; 32],
}

/// A sealed sector's vanilla proofs and public data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSector {
    /// Size of the sector.
    pub size: SectorSize,
    /// Number of the sector.
    pub number: u64,
    /// The storage provider, as the proofs name it.
    pub prover_id: [u8; 32],
    /// Randomness of the replica.
    pub ticket: [u8; 32],
    /// Randomness of the PoRep's challenges.
    pub seed: [u8; 32],
    /// Randomness of the proofs of spacetime.
    pub randomness: [u8; 32],
    /// Commitment to the replica.
    pub comm_r: [u8; 32],
    /// Commitment to the data.
    pub comm_d: [u8; 32],
    /// Commitment to the updated replica.
    pub comm_r_new: [u8; 32],
    /// Commitment to the updated data.
    pub comm_d_new: [u8; 32],
    /// The C1 file, wrapped as [`parse_c1`] takes it.
    pub c1: Vec<u8>,
    /// Vanilla proof for WinningPoSt: one.
    pub winning: Vec<Vec<u8>>,
    /// Vanilla proof for WindowPoSt as the only sector of a deadline: one.
    pub window: Vec<Vec<u8>>,
    /// Vanilla proofs of the update: one a partition.
    pub update: Vec<Vec<u8>>,
}

/// Bytes of data that a sector takes: of every 128 bytes one is padding.
pub const fn unpadded_bytes(size: SectorSize) -> u64 {
    size.bytes() / 128 * 127
}

/// Clears the two highest bits (of the last byte), as the chain does with randomness: what remains
/// is below 2²⁵⁴ and so a canonical field element.
pub const fn fr_safe(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes[31] &= 0x3f;
    bytes
}

impl SealedSector {
    /// The PoRep.
    ///
    /// # Errors
    /// As [`parse_c1`]; none for an unaltered sector.
    pub fn seal_statement(&self) -> Result<SealStatement, FilecoinError> {
        parse_c1(&self.c1)
    }

    /// The WinningPoSt.
    ///
    /// # Errors
    /// As [`WinningStatement::new`]; none for an unaltered sector.
    pub fn winning_statement(&self) -> Result<WinningStatement, FilecoinError> {
        WinningStatement::new(self.size, self.prover_id, self.randomness, &self.winning)
    }

    /// The WindowPoSt of this sector alone.
    ///
    /// # Errors
    /// As [`WindowStatement::new`]; none for an unaltered sector.
    pub fn window_statement(&self) -> Result<WindowStatement, FilecoinError> {
        WindowStatement::new(self.size, WindowPostVersion::default(), self.prover_id, self.randomness, 0, &self.window)
    }

    /// The update.
    ///
    /// # Errors
    /// As [`UpdateStatement::new`]; none for an unaltered sector.
    pub fn update_statement(&self) -> Result<UpdateStatement, FilecoinError> {
        UpdateStatement::new(self.size, self.comm_r, self.comm_r_new, self.comm_d_new, &self.update)
    }
}

/// Seals a sector and makes all its vanilla proofs, with files below `dir`, which must exist and
/// hold no other sector.
///
/// # Errors
/// [`FilecoinError::DataLength`] unless data and update fill the sector; [`FilecoinError::Io`];
/// [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the published crates fail.
pub fn seal_sector(dir: &Path, input: &SectorInput<'_>) -> Result<SealedSector, FilecoinError> {
    let expected = unpadded_bytes(input.size);
    for (what, data) in [("data", input.data), ("update", input.update)] {
        let found = data.len() as u64;
        if found != expected {
            return Err(FilecoinError::DataLength { what, expected, found });
        }
    }
    let prover_id = prover_id_from_miner(input.miner);
    let sector = SectorId::from(input.number);
    let proof = input.size.seal_proof();
    let replica = Replica::create(dir, "replica")?;
    let pieces = [replica.write_data(proof, input.data)?];

    let phase1 = call("seal_pre_commit_phase1", || {
        seal::seal_pre_commit_phase1(
            proof,
            &replica.cache,
            &replica.unsealed,
            &replica.sealed,
            prover_id,
            sector,
            input.ticket,
            &pieces,
        )
    })?;
    let pre_commit =
        call("seal_pre_commit_phase2", || seal::seal_pre_commit_phase2(phase1, &replica.cache, &replica.sealed))?;
    let comm_r = pre_commit.comm_r;
    let comm_d = pre_commit.comm_d;
    let commit = call("seal_commit_phase1", || {
        seal::seal_commit_phase1(
            &replica.cache,
            &replica.sealed,
            prover_id,
            sector,
            input.ticket,
            input.seed,
            pre_commit,
            &pieces,
        )
    })?;
    let raw = serde_json::to_vec(&commit).map_err(published("SealCommitPhase1Output"))?;
    let c1 = wrap(input.number, &raw, input.size)?;

    let (size, number) = (input.size, input.number);
    let files = |replica: &Replica, comm_r| SealedFiles {
        size,
        number,
        sealed: replica.sealed.clone(),
        cache: replica.cache.clone(),
        comm_r,
    };
    let sealed = files(&replica, comm_r);
    let winning = sealed.winning_vanilla(prover_id, input.randomness)?;
    let window = sealed.window_vanilla(WindowPostVersion::default(), prover_id, input.randomness)?;

    let updated = Replica::create(dir, "update")?;
    let pieces = [updated.write_data(proof, input.update)?];
    // The new replica is mapped, not written: it needs its length beforehand.
    File::options()
        .write(true)
        .open(&updated.sealed)
        .and_then(|file| file.set_len(input.size.bytes()))
        .map_err(io_error(&updated.sealed))?;
    let registered = input.size.update_proof();
    let encoded = call("empty_sector_update_encode_into", || {
        update::empty_sector_update_encode_into(
            registered,
            &updated.sealed,
            &updated.cache,
            &replica.sealed,
            &replica.cache,
            &updated.unsealed,
            &pieces,
        )
    })?;
    let update = sealed.update_vanilla(&files(&updated, encoded.comm_r_new), encoded.comm_d_new)?;

    Ok(SealedSector {
        size: input.size,
        number: input.number,
        prover_id,
        ticket: input.ticket,
        seed: input.seed,
        randomness: input.randomness,
        comm_r,
        comm_d,
        comm_r_new: encoded.comm_r_new,
        comm_d_new: encoded.comm_d_new,
        c1,
        winning,
        window,
        update,
    })
}

/// The C1 wrapper of a phase-1 output in JSON.
pub(crate) fn wrap(number: u64, raw: &[u8], size: SectorSize) -> Result<Vec<u8>, FilecoinError> {
    serde_json::to_vec(&Wrapper {
        sector_num: number,
        phase1_out: STANDARD.encode(raw).into(),
        sector_size: size.bytes(),
    })
    .map_err(published("C1 wrapper"))
}

/// Where a replica lies.
struct Replica {
    cache: PathBuf,
    unsealed: PathBuf,
    sealed: PathBuf,
}

impl Replica {
    fn create(dir: &Path, name: &str) -> Result<Self, FilecoinError> {
        let dir = dir.join(name);
        let cache = dir.join("cache");
        fs::create_dir_all(&cache).map_err(io_error(&cache))?;
        let sealed = dir.join("sealed");
        File::create_new(&sealed).map_err(io_error(&sealed))?;
        Ok(Self { cache, unsealed: dir.join("unsealed"), sealed })
    }

    /// Pads the data into the unsealed file, as one piece.
    fn write_data(&self, proof: RegisteredSealProof, data: &[u8]) -> Result<PieceInfo, FilecoinError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&self.unsealed)
            .map_err(io_error(&self.unsealed))?;
        let length = UnpaddedBytesAmount(data.len() as u64);
        let (piece, _) = call("add_piece", || seal::add_piece(proof, data, &file, length, &[]))?;
        Ok(piece)
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> FilecoinError + '_ {
    |source| FilecoinError::Io { path: path.to_owned(), source }
}
