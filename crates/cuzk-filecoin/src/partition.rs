//! One partition of a statement: what one Groth16 proof proves.

use std::{fmt, sync::Arc};

use blstrs::Scalar as Fr;
use cuzk_r1cs::Assignment;
use filecoin_proofs_api::RegisteredSealProof;

use crate::{
    CircuitId, FilecoinError, WindowPostVersion,
    circuits::{self, with_shape},
    native, synthesis,
    wire::{MerkleProof, Node, SealProof, UpdatePartitionProof},
};

/// The vanilla proofs of one partition, checked, and the public data of its statement.
///
/// It shares memory with its statement and nothing with the other partitions: a statement can be
/// dropped, and partitions proved in any order and on any thread. Cloning is cheap.
#[derive(Clone)]
pub struct Partition {
    circuit: CircuitId,
    index: usize,
    content: Content,
}

#[derive(Clone)]
pub(crate) enum Content {
    Seal(SealPartition),
    Post(PostPartition),
    Update(UpdatePartition),
}

#[derive(Clone)]
pub(crate) struct SealPartition {
    pub(crate) public: Arc<SealPublic>,
    pub(crate) proofs: Arc<Vec<SealProof>>,
}

/// Public data of a PoRep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealPublic {
    pub(crate) registered_proof: RegisteredSealProof,
    pub(crate) comm_r: [u8; 32],
    pub(crate) comm_d: [u8; 32],
    pub(crate) replica_id: [u8; 32],
    pub(crate) ticket: [u8; 32],
    pub(crate) seed: [u8; 32],
}

#[derive(Clone)]
pub(crate) struct PostPartition {
    pub(crate) public: Arc<PostPublic>,
    pub(crate) sectors: Arc<Vec<PostSector>>,
}

/// Public data of a proof of spacetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostPublic {
    pub(crate) version: WindowPostVersion,
    pub(crate) prover_id: [u8; 32],
    pub(crate) randomness: [u8; 32],
}

/// One sector of a proof of spacetime.
pub(crate) struct PostSector {
    pub(crate) id: u64,
    pub(crate) comm_r: Node,
    pub(crate) comm_c: Node,
    pub(crate) comm_r_last: Node,
    pub(crate) inclusion_proofs: Vec<MerkleProof>,
}

#[derive(Clone)]
pub(crate) struct UpdatePartition {
    pub(crate) public: Arc<UpdatePublic>,
    pub(crate) proof: Arc<UpdatePartitionProof>,
}

/// Public data of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdatePublic {
    pub(crate) comm_r_old: [u8; 32],
    pub(crate) comm_r_new: [u8; 32],
    pub(crate) comm_d_new: [u8; 32],
}

impl Partition {
    pub(crate) const fn new(circuit: CircuitId, index: usize, content: Content) -> Self {
        Self { circuit, index, content }
    }

    pub(crate) const fn content(&self) -> &Content {
        &self.content
    }

    /// The circuit, and so the key, of this partition.
    pub const fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// Position of this partition's proof among those of the whole statement. For WindowPoSt it
    /// counts from the first partition of the deadline.
    pub const fn index(&self) -> usize {
        self.index
    }

    /// The public inputs in the order of the verifying key's `ic`, without the leading ONE. They
    /// follow from the public data alone, not from the vanilla proof.
    ///
    /// # Errors
    /// [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the published derivation
    /// fails.
    pub fn public_inputs(&self) -> Result<Vec<Fr>, FilecoinError> {
        let size = self.circuit.sector_size;
        match &self.content {
            Content::Seal(content) => with_shape!(size, Tree => {
                circuits::porep_public_inputs::<Tree>(&content.public, self.index)
            }),
            Content::Post(content) => circuits::post_public_inputs(self.circuit, self.index, content),
            Content::Update(content) => with_shape!(size, Tree => {
                circuits::update_public_inputs::<Tree>(size, &content.public, self.index)
            }),
        }
    }

    /// The values of all variables of the circuit, those of the published circuit bit for bit, computed directly.
    ///
    /// On one thread for PoRep and updates; a proof of spacetime spreads its sectors over the current rayon pool. Does
    /// not check that the constraints hold: see [`check_named`](Self::check_named).
    ///
    /// # Errors
    /// [`FilecoinError::Invalid`] for a number that is no scalar, [`FilecoinError::Witness`] for more variables than an
    /// assignment has. A partition of a parsed statement has neither.
    pub fn witness(&self) -> Result<Assignment<Fr>, FilecoinError> {
        self.witness_reusing(None)
    }

    /// As [`witness`](Self::witness), in the memory of an assignment of the same circuit that is not needed any more:
    /// as [`WitnessCs::generate_reusing`](cuzk_r1cs::WitnessCs::generate_reusing).
    ///
    /// # Errors
    /// As [`witness`](Self::witness).
    pub fn witness_reusing(&self, used: Option<Assignment<Fr>>) -> Result<Assignment<Fr>, FilecoinError> {
        native::witness(self, used)
    }

    /// Runs the circuit with the names of its constraints and checks each of them: slow and for
    /// diagnosis, when a proof made from [`witness`](Self::witness) does not verify.
    ///
    /// # Errors
    /// [`FilecoinError::Unsatisfied`] with the name of the first constraint that does not hold,
    /// otherwise as [`witness`](Self::witness).
    pub fn check_named(&self) -> Result<(), FilecoinError> {
        synthesis::check_named(self)
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("circuit", &format_args!("{}", self.circuit))
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
