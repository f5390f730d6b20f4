//! Proofs of spacetime without sectors.

use std::collections::BTreeMap;

use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::DefaultTreeHasher;
use rand_core::RngCore;
use storage_proofs_update::constants::TreeRDomain;

use super::{random_node, tree::SparseTree};
use crate::{
    CircuitId, Fault, FilecoinError, ProofKind, SectorSize, WindowPostVersion, circuits,
    partition::PostPublic,
    vanilla,
    wire::{Node, PostProof, PostSectorProof, SectorProof, TreeShape},
};

/// Makes the vanilla proof for [`WinningStatement::new`](crate::WinningStatement::new) of a sector
/// that does not exist.
///
/// # Errors
/// [`FilecoinError::Invalid`] if the randomness is not a canonical field element.
pub fn winning_vanilla(
    size: SectorSize,
    sector: u64,
    randomness: [u8; 32],
    rng: &mut impl RngCore,
) -> Result<Vec<Vec<u8>>, FilecoinError> {
    let circuit = CircuitId::new(ProofKind::WinningPoSt, size);
    Ok(vec![sector_vanilla(circuit, sector, randomness, rng)?])
}

/// Makes the vanilla proofs for [`WindowStatement::new`](crate::WindowStatement::new), with
/// [`WindowPostVersion::V1_2`], of sectors that do not exist.
///
/// # Errors
/// [`FilecoinError::Invalid`] if the randomness is not a canonical field element.
pub fn window_vanilla(
    size: SectorSize,
    sectors: impl IntoIterator<Item = u64>,
    randomness: [u8; 32],
    rng: &mut impl RngCore,
) -> Result<Vec<Vec<u8>>, FilecoinError> {
    let circuit = CircuitId::new(ProofKind::WindowPoSt, size);
    sectors.into_iter().map(|sector| sector_vanilla(circuit, sector, randomness, rng)).collect()
}

fn sector_vanilla(
    circuit: CircuitId,
    sector: u64,
    randomness: [u8; 32],
    rng: &mut impl RngCore,
) -> Result<Vec<u8>, FilecoinError> {
    let at = |fault: Fault| fault.at(format!("synthetic {circuit}"));
    let of_chain: TreeRDomain = Node(randomness).domain("randomness").map_err(at)?;
    let public = PostPublic { version: WindowPostVersion::V1_2, prover_id: [0; 32], randomness };
    let challenges = circuits::post_challenges(circuit, &public, &of_chain, sector, 0);
    let leaves: BTreeMap<u64, Node> = challenges.iter().map(|node| (*node, random_node(rng))).collect();
    let shape = TreeShape::replica(circuit.sector_size);
    let tree = SparseTree::new::<DefaultTreeHasher>(shape, leaves, rng).map_err(at)?;
    let comm_c = random_node(rng);
    let comm_r = <DefaultTreeHasher as Hasher>::Function::hash2(
        &comm_c.domain("comm_c").map_err(at)?,
        &tree.root().domain("comm_r_last").map_err(at)?,
    );
    vanilla::encode(&PostSectorProof {
        sector_id: sector,
        comm_r: Node::from(blstrs::Scalar::from(comm_r)),
        vanilla_proof: PostProof {
            sectors: vec![SectorProof {
                inclusion_proofs: challenges.iter().map(|node| tree.open(*node)).collect(),
                comm_c,
                comm_r_last: tree.root(),
            }],
        },
    })
}
