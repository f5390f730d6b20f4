//! Proof of replication.

use std::{fmt, sync::Arc};

use filecoin_proofs::DefaultTreeHasher;
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_porep::stacked::generate_replica_id;
use storage_proofs_update::constants::TreeRDomain;

use super::{
    c1::{Phase1Output, same_size},
    part,
    seal_check::Checker,
};
use crate::{
    CircuitId, FilecoinError, Partition, ProofKind, SectorSize,
    error::Hex,
    partition::{Content, SealPartition, SealPublic},
    wire::{Node, SealProof},
};

/// A seal's commit: all partitions of one PoRep, parsed from a C1 file and checked.
#[derive(Clone)]
pub struct SealStatement {
    circuit: CircuitId,
    sector_number: Option<u64>,
    public: Arc<SealPublic>,
    partitions: Vec<Arc<Vec<SealProof>>>,
}

impl SealStatement {
    pub(super) fn check(raw: Phase1Output, sector_number: Option<u64>) -> Result<Self, FilecoinError> {
        let registered_proof = raw.registered_proof;
        let size = SectorSize::try_from(u64::from(registered_proof.sector_size()))?;
        let (found, partitions) = raw.vanilla_proofs.into_parts();
        same_size("C1 vanilla_proofs", registered_proof, found)?;
        let public = SealPublic {
            registered_proof,
            comm_r: raw.comm_r,
            comm_d: raw.comm_d,
            replica_id: raw.replica_id.0,
            ticket: raw.ticket,
            seed: raw.seed,
        };
        Checker::new(size, &public)?.partitions(&partitions)?;
        Ok(Self {
            circuit: CircuitId::new(ProofKind::PoRep, size),
            sector_number,
            public: Arc::new(public),
            partitions: partitions.into_iter().map(Arc::new).collect(),
        })
    }

    /// Checks that the replica belongs to this prover and sector, which the phase-1 output alone
    /// cannot tell: replica_id = SHA-256(prover_id ‖ sector ‖ ticket ‖ comm_d ‖ porep_id).
    ///
    /// # Errors
    /// [`FilecoinError::Invalid`] with the replica_id that prover and sector would have.
    pub fn check_replica_id(&self, prover_id: &[u8; 32], sector_number: u64) -> Result<(), FilecoinError> {
        let expected: TreeRDomain = generate_replica_id::<DefaultTreeHasher, _>(
            prover_id,
            sector_number,
            &self.public.ticket,
            self.public.comm_d,
            &self.public.registered_proof.as_v1_config().porep_id,
        );
        let mut bytes = [0; 32];
        bytes.copy_from_slice(expected.as_ref());
        Node(self.public.replica_id).expect("replica_id", &Node(bytes)).map_err(|fault| fault.at("C1"))
    }

    /// The circuit: PoRep of the sector's size.
    pub const fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// The registered proof, with its version and features.
    pub fn registered_proof(&self) -> RegisteredSealProof {
        self.public.registered_proof
    }

    /// The sector's number, if the file was a wrapper.
    pub const fn sector_number(&self) -> Option<u64> {
        self.sector_number
    }

    /// Commitment to the replica.
    pub fn comm_r(&self) -> [u8; 32] {
        self.public.comm_r
    }

    /// Commitment to the data.
    pub fn comm_d(&self) -> [u8; 32] {
        self.public.comm_d
    }

    /// Randomness of the replica.
    pub fn ticket(&self) -> [u8; 32] {
        self.public.ticket
    }

    /// Randomness of the challenges.
    pub fn seed(&self) -> [u8; 32] {
        self.public.seed
    }

    pub(super) fn public(&self) -> &SealPublic {
        &self.public
    }

    pub(super) fn proofs(&self) -> &[Arc<Vec<SealProof>>] {
        &self.partitions
    }

    /// Number of partitions: by size 1 or 10, non-interactive 13 or 126.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The `k`-th partition.
    ///
    /// # Errors
    /// [`FilecoinError::PartitionOutOfRange`] unless `k < partitions()`.
    pub fn partition(&self, k: usize) -> Result<Partition, FilecoinError> {
        let content = Content::Seal(SealPartition {
            public: Arc::clone(&self.public),
            proofs: Arc::clone(part(&self.partitions, k)?),
        });
        Ok(Partition::new(self.circuit, k, content))
    }
}

impl fmt::Debug for SealStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealStatement")
            .field("registered_proof", &self.public.registered_proof)
            .field("sector_number", &self.sector_number)
            .field("comm_r", &Hex(self.public.comm_r))
            .field("partitions", &self.partitions.len())
            .finish_non_exhaustive()
    }
}
