//! SnapDeals.

use std::{fmt, sync::Arc};

use blstrs::Scalar as Fr;
use storage_proofs_update::{Challenges, PublicInputs, PublicParams, constants::TreeRDomain, phi, rho};

use super::{
    part,
    seal_check::{comm_r, opening},
};
use crate::{
    CircuitId, Fault, FilecoinError, Partition, ProofKind, SectorSize, circuits,
    error::{Hex, no_panic},
    partition::{Content, UpdatePartition, UpdatePublic},
    vanilla,
    wire::{self, Node, TreeShape, UpdateChallengeProof, UpdatePartitionProof},
};

/// An update of an empty sector: all partitions of one proof.
#[derive(Clone)]
pub struct UpdateStatement {
    circuit: CircuitId,
    public: Arc<UpdatePublic>,
    partitions: Vec<Arc<UpdatePartitionProof>>,
}

impl UpdateStatement {
    /// From the vanilla proofs of all partitions in their order, each `bincode(PartitionProof)`.
    ///
    /// Checked are counts, tree shapes, canonical elements, that the openings are those that
    /// `comm_r_new` determines, the roots, and that each opened node is the encoding of its data;
    /// not the hashes along the paths, which [`Statement::check_hashes`](crate::Statement::check_hashes) checks.
    ///
    /// # Errors
    /// [`FilecoinError::Bincode`] for bytes that do not parse, otherwise [`FilecoinError::Invalid`].
    pub fn new(
        size: SectorSize,
        comm_r_old: [u8; 32],
        comm_r_new: [u8; 32],
        comm_d_new: [u8; 32],
        vanilla: &[Vec<u8>],
    ) -> Result<Self, FilecoinError> {
        let circuit = CircuitId::new(ProofKind::Update, size);
        let public = UpdatePublic { comm_r_old, comm_r_new, comm_d_new };
        wire::count("vanilla proofs", circuit.partitions(), vanilla.len())
            .map_err(|fault| fault.at(circuit.to_string()))?;
        let params = circuits::update_params(size);
        let mut partitions = Vec::with_capacity(vanilla.len());
        for (k, bytes) in vanilla.iter().enumerate() {
            let proof: UpdatePartitionProof = vanilla::decode(bytes, || format!("vanilla proof {k}"))?;
            let inputs =
                circuits::update_published_inputs(size, &public, k).map_err(|fault| fault.at(circuit.to_string()))?;
            let challenges: Vec<u32> = no_panic("storage_proofs_update::Challenges", || {
                Challenges::new(params.sector_nodes, inputs.comm_r_new, k).collect()
            })?;
            Checker {
                data: TreeShape::data(size),
                replica: TreeShape::replica(size),
                params: &params,
                inputs: &inputs,
                public: &public,
            }
            .partition(&proof, &challenges)
            .map_err(|(part, fault)| fault.at(format!("partition {k}{part}")))?;
            partitions.push(Arc::new(proof));
        }
        Ok(Self { circuit, public: Arc::new(public), partitions })
    }

    /// The circuit: update of the sector's size.
    pub const fn circuit_id(&self) -> CircuitId {
        self.circuit
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// The `k`-th partition.
    ///
    /// # Errors
    /// [`FilecoinError::PartitionOutOfRange`] unless `k < partitions()`.
    pub fn partition(&self, k: usize) -> Result<Partition, FilecoinError> {
        let content = Content::Update(UpdatePartition {
            public: Arc::clone(&self.public),
            proof: Arc::clone(part(&self.partitions, k)?),
        });
        Ok(Partition::new(self.circuit, k, content))
    }

    pub(crate) fn public(&self) -> &UpdatePublic {
        &self.public
    }

    pub(super) fn proofs(&self) -> &[Arc<UpdatePartitionProof>] {
        &self.partitions
    }
}

impl fmt::Debug for UpdateStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateStatement")
            .field("circuit", &format_args!("{}", self.circuit))
            .field("comm_r_old", &Hex(self.public.comm_r_old))
            .field("comm_r_new", &Hex(self.public.comm_r_new))
            .field("comm_d_new", &Hex(self.public.comm_d_new))
            .field("partitions", &self.partitions.len())
            .finish_non_exhaustive()
    }
}

/// Checks all that the published circuit and its construction take for granted.
struct Checker<'a> {
    data: TreeShape,
    replica: TreeShape,
    params: &'a PublicParams,
    inputs: &'a PublicInputs,
    public: &'a UpdatePublic,
}

impl Checker<'_> {
    fn partition(&self, proof: &UpdatePartitionProof, challenges: &[u32]) -> Result<(), (String, Fault)> {
        let whole = |fault| (String::new(), fault);
        wire::count("apex leaves", self.params.apex_leaf_count, proof.apex_leafs.len()).map_err(whole)?;
        for leaf in &proof.apex_leafs {
            leaf.scalar("apex leaf").map_err(whole)?;
        }
        wire::count("challenges", challenges.len(), proof.challenge_proofs.len()).map_err(whole)?;
        let Some(first) = proof.challenge_proofs.first() else {
            return Ok(());
        };
        let (old, new) = (first.proof_r_old.root(), first.proof_r_new.root());
        comm_r("comm_r_old", &proof.comm_c, old, &Node(self.public.comm_r_old)).map_err(whole)?;
        comm_r("comm_r_new", &proof.comm_c, new, &Node(self.public.comm_r_new)).map_err(whole)?;

        let phi = phi(&self.inputs.comm_d_new, &self.inputs.comm_r_old);
        for (i, (opened, challenge)) in proof.challenge_proofs.iter().zip(challenges).enumerate() {
            self.trees(opened, first, u64::from(*challenge))
                .map_err(|(tree, fault)| (format!(", challenge {i}, {tree}"), fault))?;
            self.encoding(opened, &phi, *challenge).map_err(|fault| (format!(", challenge {i}"), fault))?;
        }
        Ok(())
    }

    fn trees(
        &self,
        opened: &UpdateChallengeProof,
        first: &UpdateChallengeProof,
        challenge: u64,
    ) -> Result<(), (&'static str, Fault)> {
        let comm_d = Node(self.public.comm_d_new);
        for (tree, proof, shape, root) in [
            ("old tree R", &opened.proof_r_old, &self.replica, first.proof_r_old.root()),
            ("new tree D", &opened.proof_d_new, &self.data, &comm_d),
            ("new tree R", &opened.proof_r_new, &self.replica, first.proof_r_new.root()),
        ] {
            opening(proof, shape, challenge, root).map_err(|fault| (tree, fault))?;
        }
        // All challenges of a partition lie under the same subtree of tree D: the circuit takes
        // the path above it from the first of them.
        let shared = self.params.challenge_bit_len - self.params.partition_bit_len;
        let above = |proof: &UpdateChallengeProof| -> Vec<Node> {
            let path = proof.proof_d_new.path().skip(shared);
            path.flat_map(|element| element.hashes.iter().copied()).collect()
        };
        for (sibling, expected) in above(opened).iter().zip(above(first)) {
            sibling.expect("sibling above the partition", &expected).map_err(|fault| ("new tree D", fault))?;
        }
        Ok(())
    }

    /// new replica node = old replica node + data · ρ, where ρ = Poseidon(φ, high bits of the
    /// node's index).
    fn encoding(&self, opened: &UpdateChallengeProof, phi: &TreeRDomain, challenge: u32) -> Result<(), Fault> {
        let high = challenge >> (self.params.challenge_bit_len - self.inputs.h);
        let old: Fr = opened.proof_r_old.leaf().scalar("leaf")?;
        let data: Fr = opened.proof_d_new.leaf().scalar("leaf")?;
        let expected = old + data * rho(phi, high);
        opened.proof_r_new.leaf().expect("new replica node", &Node::from(expected))
    }
}
