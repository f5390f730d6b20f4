//! The C1 file: phase-1 output of a seal's commit, in JSON, wrapped or not.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use filecoin_proofs_api::RegisteredSealProof;
use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::SealStatement;
use crate::{
    FilecoinError, SectorSize,
    wire::{Node, SealProof},
};

/// What Curio and Lotus write: the phase-1 output wrapped with what it does not say itself.
#[derive(Serialize, Deserialize)]
pub(crate) struct Wrapper<'a> {
    #[serde(rename = "SectorNum")]
    pub(crate) sector_num: u64,
    #[serde(rename = "Phase1Out", borrow)]
    pub(crate) phase1_out: Cow<'a, str>,
    #[serde(rename = "SectorSize")]
    pub(crate) sector_size: u64,
}

/// `SealCommitPhase1Output`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Phase1Output {
    pub(crate) registered_proof: RegisteredSealProof,
    pub(crate) vanilla_proofs: VanillaSealProof,
    pub(crate) comm_r: [u8; 32],
    pub(crate) comm_d: [u8; 32],
    pub(crate) replica_id: Node,
    pub(crate) seed: [u8; 32],
    pub(crate) ticket: [u8; 32],
}

#[derive(Serialize, Deserialize)]
pub(crate) enum VanillaSealProof {
    StackedDrg2KiBV1(Vec<Vec<SealProof>>),
    StackedDrg8MiBV1(Vec<Vec<SealProof>>),
    StackedDrg512MiBV1(Vec<Vec<SealProof>>),
    StackedDrg32GiBV1(Vec<Vec<SealProof>>),
    StackedDrg64GiBV1(Vec<Vec<SealProof>>),
}

impl VanillaSealProof {
    pub(crate) fn from_parts(size: SectorSize, proofs: Vec<Vec<SealProof>>) -> Self {
        match size {
            SectorSize::KiB2 => Self::StackedDrg2KiBV1(proofs),
            SectorSize::MiB8 => Self::StackedDrg8MiBV1(proofs),
            SectorSize::MiB512 => Self::StackedDrg512MiBV1(proofs),
            SectorSize::GiB32 => Self::StackedDrg32GiBV1(proofs),
            SectorSize::GiB64 => Self::StackedDrg64GiBV1(proofs),
        }
    }

    pub(super) fn into_parts(self) -> (SectorSize, Vec<Vec<SealProof>>) {
        match self {
            Self::StackedDrg2KiBV1(proofs) => (SectorSize::KiB2, proofs),
            Self::StackedDrg8MiBV1(proofs) => (SectorSize::MiB8, proofs),
            Self::StackedDrg512MiBV1(proofs) => (SectorSize::MiB512, proofs),
            Self::StackedDrg32GiBV1(proofs) => (SectorSize::GiB32, proofs),
            Self::StackedDrg64GiBV1(proofs) => (SectorSize::GiB64, proofs),
        }
    }
}

/// Parses a C1: either the wrapper `{"SectorNum", "Phase1Out", "SectorSize"}`, whose `Phase1Out` is
/// the base64 of the phase-1 output, or the phase-1 output itself, a JSON object
/// `{"registered_proof", "vanilla_proofs", "comm_r", "comm_d", "replica_id", "seed", "ticket"}`.
///
/// Checked are sizes and counts, the shapes of all trees, that every field element is canonical,
/// that each challenge and each of its parents is the node that seed and graph determine, and that
/// all roots agree with the commitments. Not checked are the hashes along the paths and in the
/// labels: [`Statement::check_hashes`](crate::Statement::check_hashes) does that, and the circuit.
///
/// # Errors
/// [`FilecoinError::Json`], [`FilecoinError::Base64`] for text that does not parse (missing and
/// repeated keys included); [`FilecoinError::SectorSizeMismatch`] if wrapper, registered proof and
/// vanilla proofs are not of one size; [`FilecoinError::Invalid`] for everything else, with the
/// place.
pub fn parse_c1(bytes: &[u8]) -> Result<SealStatement, FilecoinError> {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "Phase1Out")]
        phase1_out: Option<IgnoredAny>,
    }
    let json = |place| move |source| FilecoinError::Json { place, source };
    let probe: Probe = serde_json::from_slice(bytes).map_err(json("C1"))?;
    if probe.phase1_out.is_none() {
        let raw = serde_json::from_slice(bytes).map_err(json("C1 phase-1 output"))?;
        return SealStatement::check(raw, None);
    }
    let wrapper: Wrapper<'_> = serde_json::from_slice(bytes).map_err(json("C1 wrapper"))?;
    let declared = SectorSize::try_from(wrapper.sector_size)?;
    let raw = STANDARD
        .decode(wrapper.phase1_out.as_bytes())
        .map_err(|source| FilecoinError::Base64 { place: "C1 Phase1Out".to_owned(), source })?;
    let raw: Phase1Output = serde_json::from_slice(&raw).map_err(json("C1 Phase1Out"))?;
    same_size("C1 SectorSize", raw.registered_proof, declared)?;
    SealStatement::check(raw, Some(wrapper.sector_num))
}

/// Refuses a declared size that is not that of the registered proof.
pub(super) fn same_size(
    place: &'static str,
    proof: RegisteredSealProof,
    found: SectorSize,
) -> Result<(), FilecoinError> {
    let expected = u64::from(proof.sector_size());
    if expected == found.bytes() {
        return Ok(());
    }
    Err(FilecoinError::SectorSizeMismatch { place, proof: format!("{proof:?}"), expected, found: found.bytes() })
}
