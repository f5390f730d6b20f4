//! Names: proof kinds, sector sizes, circuits and the files of their keys.

use std::{fmt, str::FromStr};

use filecoin_proofs_api::{RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof};
use storage_proofs_core::parameter_cache::{self, CacheableParameters};
use storage_proofs_update::EmptySectorUpdateCompound;

use crate::{
    FilecoinError,
    circuits::{self, with_shape},
    error::published,
};

/// Bytes of a Groth16 proof over BLS12-381: compressed A 48, B 96, C 48.
pub const PROOF_BYTES_PER_PARTITION: usize = 192;

/// The four statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProofKind {
    /// Proof of replication: the second phase of a seal commit.
    PoRep,
    /// Proof of spacetime of one sector by the winner of a block.
    WinningPoSt,
    /// Proof of spacetime of the sectors of a deadline.
    WindowPoSt,
    /// SnapDeals: an update of an empty sector.
    Update,
}

impl ProofKind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::PoRep, Self::WinningPoSt, Self::WindowPoSt, Self::Update];

    const fn prefix(self) -> &'static str {
        match self {
            Self::PoRep => "porep",
            Self::WinningPoSt => "winning",
            Self::WindowPoSt => "wpost",
            Self::Update => "snap",
        }
    }
}

impl fmt::Display for ProofKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.prefix())
    }
}

/// A registered sector size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SectorSize {
    /// 2 KiB: tests.
    KiB2,
    /// 8 MiB: tests.
    MiB8,
    /// 512 MiB: tests.
    MiB512,
    /// 32 GiB: production.
    GiB32,
    /// 64 GiB: production.
    GiB64,
}

impl SectorSize {
    /// All five, ascending.
    pub const ALL: [Self; 5] = [Self::KiB2, Self::MiB8, Self::MiB512, Self::GiB32, Self::GiB64];

    /// Size in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::KiB2 => 1 << 11,
            Self::MiB8 => 1 << 23,
            Self::MiB512 => 1 << 29,
            Self::GiB32 => 1 << 35,
            Self::GiB64 => 1 << 36,
        }
    }

    /// Number of 32-byte nodes.
    pub const fn nodes(self) -> u64 {
        self.bytes() / 32
    }

    /// Layers of the stacked graph.
    pub const fn layers(self) -> usize {
        match self {
            Self::KiB2 | Self::MiB8 | Self::MiB512 => 2,
            Self::GiB32 | Self::GiB64 => 11,
        }
    }

    /// Sectors in a partition of WindowPoSt.
    pub const fn window_sectors(self) -> usize {
        match self {
            Self::KiB2 | Self::MiB8 | Self::MiB512 => 2,
            Self::GiB32 => 2349,
            Self::GiB64 => 2300,
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::KiB2 => "2k",
            Self::MiB8 => "8m",
            Self::MiB512 => "512m",
            Self::GiB32 => "32g",
            Self::GiB64 => "64g",
        }
    }

    pub(crate) const fn seal_proof(self) -> RegisteredSealProof {
        match self {
            Self::KiB2 => RegisteredSealProof::StackedDrg2KiBV1_1,
            Self::MiB8 => RegisteredSealProof::StackedDrg8MiBV1_1,
            Self::MiB512 => RegisteredSealProof::StackedDrg512MiBV1_1,
            Self::GiB32 => RegisteredSealProof::StackedDrg32GiBV1_1,
            Self::GiB64 => RegisteredSealProof::StackedDrg64GiBV1_1,
        }
    }

    pub(crate) const fn winning_proof(self) -> RegisteredPoStProof {
        match self {
            Self::KiB2 => RegisteredPoStProof::StackedDrgWinning2KiBV1,
            Self::MiB8 => RegisteredPoStProof::StackedDrgWinning8MiBV1,
            Self::MiB512 => RegisteredPoStProof::StackedDrgWinning512MiBV1,
            Self::GiB32 => RegisteredPoStProof::StackedDrgWinning32GiBV1,
            Self::GiB64 => RegisteredPoStProof::StackedDrgWinning64GiBV1,
        }
    }

    pub(crate) const fn window_proof(self, version: WindowPostVersion) -> RegisteredPoStProof {
        use RegisteredPoStProof::*;
        match (self, version) {
            (Self::KiB2, WindowPostVersion::V1) => StackedDrgWindow2KiBV1,
            (Self::MiB8, WindowPostVersion::V1) => StackedDrgWindow8MiBV1,
            (Self::MiB512, WindowPostVersion::V1) => StackedDrgWindow512MiBV1,
            (Self::GiB32, WindowPostVersion::V1) => StackedDrgWindow32GiBV1,
            (Self::GiB64, WindowPostVersion::V1) => StackedDrgWindow64GiBV1,
            (Self::KiB2, WindowPostVersion::V1_2) => StackedDrgWindow2KiBV1_2,
            (Self::MiB8, WindowPostVersion::V1_2) => StackedDrgWindow8MiBV1_2,
            (Self::MiB512, WindowPostVersion::V1_2) => StackedDrgWindow512MiBV1_2,
            (Self::GiB32, WindowPostVersion::V1_2) => StackedDrgWindow32GiBV1_2,
            (Self::GiB64, WindowPostVersion::V1_2) => StackedDrgWindow64GiBV1_2,
        }
    }

    pub(crate) const fn update_proof(self) -> RegisteredUpdateProof {
        match self {
            Self::KiB2 => RegisteredUpdateProof::StackedDrg2KiBV1,
            Self::MiB8 => RegisteredUpdateProof::StackedDrg8MiBV1,
            Self::MiB512 => RegisteredUpdateProof::StackedDrg512MiBV1,
            Self::GiB32 => RegisteredUpdateProof::StackedDrg32GiBV1,
            Self::GiB64 => RegisteredUpdateProof::StackedDrg64GiBV1,
        }
    }
}

impl TryFrom<u64> for SectorSize {
    type Error = FilecoinError;

    /// From a size in bytes.
    fn try_from(bytes: u64) -> Result<Self, FilecoinError> {
        Self::ALL.into_iter().find(|size| size.bytes() == bytes).ok_or(FilecoinError::UnknownSectorSize { bytes })
    }
}

impl fmt::Display for SectorSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.suffix())
    }
}

/// How WindowPoSt derives a sector's challenges; the circuit is the same.
///
/// The vanilla proof does not say which it was made for; the registered proof does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WindowPostVersion {
    /// Challenges depend on the sector's position among all sectors of the deadline.
    V1,
    /// Challenges depend on randomness and sector number alone. Called V1_2 in
    /// filecoin-proofs-api and V1_1 by the chain.
    #[default]
    V1_2,
}

impl WindowPostVersion {
    /// Size and version of the chain's `RegisteredPoStProof` number: 5 to 9 are V1, 10 to 14 the
    /// newer, by ascending size 2 KiB, 8 MiB, 512 MiB, 32 GiB, 64 GiB.
    ///
    /// # Errors
    /// [`FilecoinError::UnknownRegisteredProof`] for any other number.
    pub fn from_registered_proof(number: u64) -> Result<(SectorSize, Self), FilecoinError> {
        let (first, version) = match number {
            5..=9 => (5, Self::V1),
            10..=14 => (10, Self::V1_2),
            _ => {
                return Err(FilecoinError::UnknownRegisteredProof { number, expected: "WindowPoSt" });
            }
        };
        let size = match number - first {
            0 => SectorSize::KiB2,
            1 => SectorSize::MiB8,
            2 => SectorSize::MiB512,
            3 => SectorSize::GiB32,
            _ => SectorSize::GiB64,
        };
        Ok((size, version))
    }
}

/// A circuit: one constraint system, one key pair.
///
/// Prints and parses as `porep-32g`, `snap-32g`, `wpost-32g`, `winning-32g`, with `2k`, `8m`,
/// `512m`, `64g` for the other sizes. All registered versions of a proof share the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CircuitId {
    /// Which statement.
    pub kind: ProofKind,
    /// Of sectors of which size.
    pub sector_size: SectorSize,
}

impl CircuitId {
    /// The circuit of a kind and size.
    pub const fn new(kind: ProofKind, sector_size: SectorSize) -> Self {
        Self { kind, sector_size }
    }

    /// All twenty.
    pub fn all() -> impl Iterator<Item = Self> {
        ProofKind::ALL
            .into_iter()
            .flat_map(|kind| SectorSize::ALL.into_iter().map(move |sector_size| Self::new(kind, sector_size)))
    }

    /// Partitions of a proof. WindowPoSt has as many as its sectors need and is submitted one at a
    /// time: 1. A non-interactive PoRep has more: see [`Statement::partitions`](crate::Statement::partitions).
    pub const fn partitions(self) -> usize {
        match (self.kind, self.sector_size) {
            (ProofKind::PoRep, SectorSize::GiB32 | SectorSize::GiB64) => 10,
            (ProofKind::Update, SectorSize::MiB8) => 4,
            (ProofKind::Update, SectorSize::MiB512 | SectorSize::GiB32 | SectorSize::GiB64) => 16,
            _ => 1,
        }
    }

    /// Bytes of a proof: 192 for each of [`partitions`](Self::partitions).
    pub const fn proof_bytes(self) -> usize {
        PROOF_BYTES_PER_PARTITION * self.partitions()
    }

    /// The published crates' identifier of the circuit: `<prefix>-<SHA-256 of the parameters>`.
    ///
    /// # Errors
    /// [`FilecoinError::Published`] if the published set-up refuses the registered size.
    pub fn cache_identifier(self) -> Result<String, FilecoinError> {
        let size = self.sector_size;
        match self.kind {
            ProofKind::PoRep => size.seal_proof().circuit_identifier(),
            ProofKind::WinningPoSt => size.winning_proof().circuit_identifier(),
            ProofKind::WindowPoSt => size.window_proof(WindowPostVersion::default()).circuit_identifier(),
            // `RegisteredUpdateProof::circuit_identifier` answers with the PoRep circuit's.
            ProofKind::Update => Ok(with_shape!(size, Tree => {
                <EmptySectorUpdateCompound<Tree> as CacheableParameters<_, _>>::cache_identifier(
                    &circuits::update_params(size),
                )
            })),
        }
        .map_err(published("circuit_identifier"))
    }

    /// Name of the proving key's file: `v28-<identifier>.params`.
    ///
    /// # Errors
    /// As [`cache_identifier`](Self::cache_identifier).
    pub fn params_file_name(self) -> Result<String, FilecoinError> {
        Ok(parameter_cache::parameter_id(&self.cache_identifier()?))
    }

    /// Name of the verifying key's file: `v28-<identifier>.vk`.
    ///
    /// # Errors
    /// As [`cache_identifier`](Self::cache_identifier).
    pub fn vk_file_name(self) -> Result<String, FilecoinError> {
        Ok(parameter_cache::verifying_key_id(&self.cache_identifier()?))
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind, self.sector_size)
    }
}

impl FromStr for CircuitId {
    type Err = FilecoinError;

    fn from_str(text: &str) -> Result<Self, FilecoinError> {
        let unknown = || FilecoinError::UnknownCircuitId { text: text.to_owned() };
        let (prefix, suffix) = text.split_once('-').ok_or_else(unknown)?;
        let kind = ProofKind::ALL.into_iter().find(|k| k.prefix() == prefix);
        let size = SectorSize::ALL.into_iter().find(|s| s.suffix() == suffix);
        match (kind, size) {
            (Some(kind), Some(sector_size)) => Ok(Self { kind, sector_size }),
            _ => Err(unknown()),
        }
    }
}
