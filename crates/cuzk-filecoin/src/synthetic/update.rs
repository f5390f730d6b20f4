//! An update without a sector.

use blstrs::Scalar as Fr;
use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher};
use rand_core::RngCore;
use storage_proofs_update::{
    Challenges,
    constants::{TreeRDomain, h_default},
    phi, rho,
};

use super::{random_block, random_node, tree::PeriodicTree};
use crate::{
    Fault, FilecoinError, SectorSize, circuits,
    error::no_panic,
    vanilla,
    wire::{Node, TreeShape, UpdateChallengeProof, UpdatePartitionProof},
};

/// The arguments of [`UpdateStatement::new`](crate::UpdateStatement::new).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntheticUpdate {
    /// Commitment to the replica before the update.
    pub comm_r_old: [u8; 32],
    /// Commitment to the replica after the update.
    pub comm_r_new: [u8; 32],
    /// Commitment to the new data.
    pub comm_d_new: [u8; 32],
    /// Vanilla proofs, one a partition.
    pub vanilla: Vec<Vec<u8>>,
}

/// Makes an update of a sector that does not exist.
///
/// Old replica and new data are random blocks of eight nodes, repeated. The new replica is
/// old + data · ρ, and ρ depends on the h highest bits of a node's index: it repeats within 2ʰ
/// regions, so that all its nodes are known from 2ʰ blocks.
///
/// # Errors
/// [`FilecoinError::Panicked`] if the published crates fail.
pub fn update(size: SectorSize, rng: &mut impl RngCore) -> Result<SyntheticUpdate, FilecoinError> {
    let at = |fault: Fault| fault.at("synthetic update");
    let params = circuits::update_params(size);
    let shape = TreeShape::replica(size);
    let (old_block, data_block) = (random_block(rng), random_block(rng));
    let comm_c = random_node(rng);

    let old = PeriodicTree::new::<DefaultTreeHasher>(shape, vec![old_block.clone()]).map_err(at)?;
    let data = PeriodicTree::new::<DefaultPieceHasher>(TreeShape::data(size), vec![data_block.clone()]).map_err(at)?;
    let comm_r_old = comm_r(&comm_c, &old).map_err(at)?;
    let comm_d_new: TreeRDomain = data.root().domain("comm_d_new").map_err(at)?;
    let phi = phi(&comm_d_new, &comm_r_old);
    let regions = (0..1 << h_default(params.sector_nodes))
        .map(|high| {
            let rho = rho(&phi, high);
            let nodes = old_block.iter().zip(&data_block);
            nodes.map(|(old, data)| Ok(Node::from(old.scalar("old node")? + data.scalar("data")? * rho))).collect()
        })
        .collect::<Result<Vec<Vec<Node>>, Fault>>()
        .map_err(at)?;
    let new = PeriodicTree::new::<DefaultTreeHasher>(shape, regions).map_err(at)?;
    let comm_r_new = comm_r(&comm_c, &new).map_err(at)?;

    // The apex of a partition: the nodes of tree D on one level, a chunk for each partition.
    let apex_level = params.challenge_bit_len - params.partition_bit_len - params.apex_leaf_bit_len;
    let apex_leaves = params.apex_leaf_count as u64;
    let vanilla = (0..params.partition_count)
        .map(|k| {
            let challenges: Vec<u32> = no_panic("storage_proofs_update::Challenges", || {
                Challenges::new(params.sector_nodes, comm_r_new, k).collect()
            })?;
            let first = k as u64 * apex_leaves;
            vanilla::encode(&UpdatePartitionProof {
                comm_c,
                apex_leafs: (first..first + apex_leaves).map(|index| data.node(apex_level, index)).collect(),
                challenge_proofs: challenges
                    .into_iter()
                    .map(|node| UpdateChallengeProof {
                        proof_r_old: old.open(node.into()),
                        proof_d_new: data.open(node.into()),
                        proof_r_new: new.open(node.into()),
                    })
                    .collect(),
            })
        })
        .collect::<Result<_, FilecoinError>>()?;
    let bytes = |domain: TreeRDomain| Node::from(Fr::from(domain)).0;
    Ok(SyntheticUpdate {
        comm_r_old: bytes(comm_r_old),
        comm_r_new: bytes(comm_r_new),
        comm_d_new: data.root().0,
        vanilla,
    })
}

fn comm_r(comm_c: &Node, tree: &PeriodicTree) -> Result<TreeRDomain, Fault> {
    let root = tree.root().domain("comm_r_last")?;
    Ok(<DefaultTreeHasher as Hasher>::Function::hash2(&comm_c.domain("comm_c")?, &root))
}
