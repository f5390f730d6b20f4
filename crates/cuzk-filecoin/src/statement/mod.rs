//! Statements: the vanilla proofs of one Filecoin proof, parsed and checked.

mod c1;
mod hashes;
mod post;
mod seal;
mod seal_check;
mod update;

pub use c1::parse_c1;
pub(crate) use c1::{Phase1Output, VanillaSealProof, Wrapper};
pub use post::{WindowStatement, WinningStatement};
pub use seal::SealStatement;
pub use update::UpdateStatement;

use crate::{CircuitId, FilecoinError, PROOF_BYTES_PER_PARTITION, Partition, ProofKind};

/// A statement of any of the four kinds.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Proof of replication.
    Seal(SealStatement),
    /// WinningPoSt.
    Winning(WinningStatement),
    /// WindowPoSt.
    Window(WindowStatement),
    /// SnapDeals.
    Update(UpdateStatement),
}

impl Statement {
    /// The kind.
    pub const fn kind(&self) -> ProofKind {
        self.circuit_id().kind
    }

    /// The circuit of all partitions.
    pub const fn circuit_id(&self) -> CircuitId {
        match self {
            Self::Seal(s) => s.circuit_id(),
            Self::Winning(s) => s.circuit_id(),
            Self::Window(s) => s.circuit_id(),
            Self::Update(s) => s.circuit_id(),
        }
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        match self {
            Self::Seal(s) => s.partitions(),
            Self::Winning(s) => s.partitions(),
            Self::Window(s) => s.partitions(),
            Self::Update(s) => s.partitions(),
        }
    }

    /// Bytes of the whole proof: 192 for each partition, in order.
    pub fn proof_bytes(&self) -> usize {
        PROOF_BYTES_PER_PARTITION * self.partitions()
    }

    /// The `k`-th partition of this statement, from 0. Costs no more than a few reference counts.
    ///
    /// # Errors
    /// [`FilecoinError::PartitionOutOfRange`] unless `k < partitions()`.
    pub fn partition(&self, k: usize) -> Result<Partition, FilecoinError> {
        match self {
            Self::Seal(s) => s.partition(k),
            Self::Winning(s) => s.partition(k),
            Self::Window(s) => s.partition(k),
            Self::Update(s) => s.partition(k),
        }
    }
}

impl From<SealStatement> for Statement {
    fn from(statement: SealStatement) -> Self {
        Self::Seal(statement)
    }
}

impl From<WinningStatement> for Statement {
    fn from(statement: WinningStatement) -> Self {
        Self::Winning(statement)
    }
}

impl From<WindowStatement> for Statement {
    fn from(statement: WindowStatement) -> Self {
        Self::Window(statement)
    }
}

impl From<UpdateStatement> for Statement {
    fn from(statement: UpdateStatement) -> Self {
        Self::Update(statement)
    }
}

/// The `k`-th of a statement's parts.
fn part<T>(parts: &[T], k: usize) -> Result<&T, FilecoinError> {
    parts.get(k).ok_or(FilecoinError::PartitionOutOfRange { index: k, partitions: parts.len() })
}
