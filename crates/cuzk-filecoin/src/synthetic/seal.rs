//! A C1 without a sealed sector.

use std::collections::{BTreeMap, BTreeSet};

use filecoin_hashers::{HashFunction, Hasher};
use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher, SectorShapeBase};
use rand_core::RngCore;
use storage_proofs_core::drgraph::{BASE_DEGREE, Graph};
use storage_proofs_porep::stacked::{
    Column as PublishedColumn, EXP_DEGREE, PublicInputs, TOTAL_PARENTS, generate_replica_id,
};
use storage_proofs_update::constants::{TreeDDomain, TreeRDomain};

use super::{
    random_block, random_node,
    tree::{PeriodicTree, SparseTree},
};
use crate::{
    Fault, FilecoinError, SectorSize, circuits,
    error::{no_panic, published},
    prover_id_from_miner,
    seal::wrap,
    statement::{Phase1Output, VanillaSealProof},
    wire::{self, Column, ColumnProof, LabelingProof, Node, ReplicaColumnProof, SealProof, TreeShape},
};

/// What a synthetic sector pretends to be.
#[derive(Debug, Clone, Copy)]
pub struct SealInput {
    /// Size of the sector.
    pub size: SectorSize,
    /// Actor id of the storage provider.
    pub miner: u64,
    /// Number of the sector.
    pub number: u64,
    /// Randomness of the replica.
    pub ticket: [u8; 32],
    /// Randomness of the challenges.
    pub seed: [u8; 32],
}

/// Parents of a node: base, then expander.
type Parents = [u32; BASE_DEGREE + EXP_DEGREE];

/// Makes the C1 file (wrapped JSON) of a sector that was never sealed.
///
/// Its data is a random block of eight nodes, repeated: a sector of zeros would show the circuits
/// the same SHA-256 blocks in every challenge.
///
/// # Errors
/// [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the published crates fail.
pub fn c1(input: &SealInput, rng: &mut impl RngCore) -> Result<Vec<u8>, FilecoinError> {
    let size = input.size;
    let at = |fault: Fault| fault.at("synthetic C1");
    let registered_proof = size.seal_proof();
    let config = registered_proof.as_v1_config();
    let params = circuits::porep_params::<SectorShapeBase>(registered_proof)?;

    let data = PeriodicTree::new::<DefaultPieceHasher>(TreeShape::data(size), vec![random_block(rng)]).map_err(at)?;
    let comm_d = data.root();
    let replica_id: TreeRDomain = generate_replica_id::<DefaultTreeHasher, _>(
        &prover_id_from_miner(input.miner),
        input.number,
        &input.ticket,
        comm_d.0,
        &config.porep_id,
    );
    // comm_r is not known yet, and interactive challenges do not depend on it.
    let public = PublicInputs::<TreeRDomain, TreeDDomain> { replica_id, seed: Some(input.seed), tau: None, k: None };
    let partitions: Vec<Vec<u64>> = no_panic("stacked::PublicInputs::challenges", || {
        (0..usize::from(config.partitions))
            .map(|k| {
                let challenges = public.challenges(&params.challenges, params.graph.size(), Some(k));
                challenges.into_iter().map(|node| node as u64).collect()
            })
            .collect()
    })?;
    let mut parents = BTreeMap::<u64, Parents>::new();
    for node in partitions.iter().flatten() {
        let mut of_node = Parents::default();
        params.graph.parents(*node as usize, &mut of_node).map_err(published("StackedGraph::parents"))?;
        parents.insert(*node, of_node);
    }

    let replica_id = Node::from(blstrs::Scalar::from(replica_id));
    let sector = Sector { size, columns: columns(size, &replica_id, &parents, rng), parents };
    let mut column_hashes = BTreeMap::new();
    for (node, rows) in &sector.columns {
        let rows = wire::nodes("label", rows).map_err(at)?;
        let column = PublishedColumn::<DefaultTreeHasher>::new(*node as u32, rows).map_err(published("Column::new"))?;
        column_hashes.insert(*node, Node::from(column.hash()));
    }
    let mut replica = BTreeMap::new();
    for node in sector.parents.keys() {
        let key = sector.columns[node][size.layers() - 1].scalar("label").map_err(at)?;
        replica.insert(*node, Node::from(key + data.node(0, *node).scalar("data").map_err(at)?));
    }
    let shape = TreeShape::replica(size);
    let tree_c = SparseTree::new::<DefaultTreeHasher>(shape, column_hashes, rng).map_err(at)?;
    let tree_r = SparseTree::new::<DefaultTreeHasher>(shape, replica, rng).map_err(at)?;
    let comm_r = <DefaultTreeHasher as Hasher>::Function::hash2(
        &tree_c.root().domain("comm_c").map_err(at)?,
        &tree_r.root().domain("comm_r_last").map_err(at)?,
    );

    let proofs = partitions
        .iter()
        .map(|challenges| challenges.iter().map(|node| sector.open(*node, &data, &tree_c, &tree_r)).collect())
        .collect();
    let output = Phase1Output {
        registered_proof,
        vanilla_proofs: VanillaSealProof::from_parts(size, proofs),
        comm_r: Node::from(blstrs::Scalar::from(comm_r)).0,
        comm_d: comm_d.0,
        replica_id,
        seed: input.seed,
        ticket: input.ticket,
    };
    let raw = serde_json::to_vec(&output).map_err(published("SealCommitPhase1Output"))?;
    wrap(input.number, &raw, size)
}

/// Labels of all challenges and their parents on all layers. Parents that are no challenges
/// themselves have random ones; a challenge's are hashed, in the order in which they are defined.
fn columns(
    size: SectorSize,
    replica_id: &Node,
    parents: &BTreeMap<u64, Parents>,
    rng: &mut impl RngCore,
) -> BTreeMap<u64, Vec<Node>> {
    let mut columns: BTreeMap<u64, Vec<Node>> = parents.keys().map(|node| (*node, Vec::new())).collect();
    let others: BTreeSet<u64> = parents.values().flatten().map(|parent| u64::from(*parent)).collect();
    for node in others {
        columns.entry(node).or_insert_with(|| (0..size.layers()).map(|_| random_node(rng)).collect());
    }
    for layer in 1..=size.layers() {
        // Base parents come before the node, so ascending order has them hashed already.
        for (node, of_node) in parents {
            let label = wire::label(replica_id, layer as u32, *node, &parent_labels(&columns, of_node, layer));
            columns.entry(*node).or_default().push(label);
        }
    }
    columns
}

/// The 37 labels that are hashed into a label: base parents' of this layer, then, above the first
/// layer, expander parents' of the layer below, all repeated in turn.
fn parent_labels(columns: &BTreeMap<u64, Vec<Node>>, parents: &Parents, layer: usize) -> Vec<Node> {
    let (base, expander) = parents.split_at(BASE_DEGREE);
    let base = base.iter().map(|parent| columns[&u64::from(*parent)][layer - 1]);
    let mut labels: Vec<Node> = base.collect();
    if layer > 1 {
        labels.extend(expander.iter().map(|parent| columns[&u64::from(*parent)][layer - 2]));
    }
    labels.into_iter().cycle().take(TOTAL_PARENTS).collect()
}

/// The opened part of a sector.
struct Sector {
    size: SectorSize,
    /// Labels by node, layer 1 first.
    columns: BTreeMap<u64, Vec<Node>>,
    /// Parents of the challenges.
    parents: BTreeMap<u64, Parents>,
}

impl Sector {
    fn open(&self, node: u64, data: &PeriodicTree, tree_c: &SparseTree, tree_r: &SparseTree) -> SealProof {
        let column = |node: u64| ColumnProof {
            column: Column { index: node as u32, rows: self.columns[&node].clone(), _h: () },
            inclusion_proof: tree_c.open(node),
        };
        let parents = &self.parents[&node];
        let (base, expander) = parents.split_at(BASE_DEGREE);
        let label = |layer: usize| LabelingProof {
            parents: parent_labels(&self.columns, parents, layer),
            layer_index: layer as u32,
            node,
        };
        SealProof {
            comm_d_proofs: data.open(node),
            comm_r_last_proof: tree_r.open(node),
            replica_column_proofs: ReplicaColumnProof {
                c_x: column(node),
                drg_parents: base.iter().map(|parent| column(u64::from(*parent))).collect(),
                exp_parents: expander.iter().map(|parent| column(u64::from(*parent))).collect(),
            },
            labeling_proofs: (1..=self.size.layers()).map(label).collect(),
            encoding_proof: label(self.size.layers()),
        }
    }
}
