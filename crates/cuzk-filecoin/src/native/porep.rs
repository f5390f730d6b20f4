//! Proof of replication: `StackedCircuit`.

use blstrs::Scalar as Fr;
use ff::PrimeField;
use storage_proofs_porep::stacked::TOTAL_PARENTS;

use super::{
    Witness,
    bits::{Word, push_bits_of},
    merkle::{self, Tree, include},
    poseidon, sha256,
};
use crate::{
    error::Fault,
    partition::SealPartition,
    wire::{ColumnProof, Node, SealProof},
};

pub(super) fn generate(partition: &SealPartition, witness: &mut Witness<'_>) -> Result<(), Fault> {
    let public = &partition.public;
    let Some(first) = partition.proofs.first() else { return Ok(()) };
    witness.alloc_input("replica_id", &Node(public.replica_id))?;
    push_bits_of(&public.replica_id, witness.aux);
    witness.alloc_input("comm_d", &Node(public.comm_d))?;
    witness.alloc_input("comm_r", &Node(public.comm_r))?;
    let comm_r_last = witness.alloc("comm_r_last", first.comm_r_last_proof.root())?;
    let comm_c = witness.alloc("comm_c", first.replica_column_proofs.c_x.inclusion_proof.root())?;
    poseidon::hash(&[comm_c, comm_r_last], witness.aux);
    for proof in partition.proofs.iter() {
        challenge(&public.replica_id, proof, witness)?;
    }
    Ok(())
}

fn challenge(replica_id: &[u8; 32], proof: &SealProof, witness: &mut Witness<'_>) -> Result<(), Fault> {
    let columns = &proof.replica_column_proofs;
    let data = witness.alloc("leaf", proof.comm_d_proofs.leaf())?;
    include(Tree::Data, data, &proof.comm_d_proofs, witness)?;
    let drg_parents = open(&columns.drg_parents, witness)?;
    let exp_parents = open(&columns.exp_parents, witness)?;

    let node = proof.labeling_proofs.first().map_or(0, |label| label.node);
    witness.aux.push_bits(node, 64);
    witness.inputs.push(Fr::from(node));

    let layers = drg_parents.first().map_or(0, Vec::len);
    let mut labels = Vec::with_capacity(layers);
    for layer in 0..layers {
        labels.push(label(replica_id, layer, node, &drg_parents, &exp_parents, witness));
    }

    // The replica's node: the last label, which is the key, and the data.
    let encoded = labels.last().map_or(data, |key| *key + data);
    witness.aux.push(encoded);
    include(Tree::Replica, encoded, &proof.comm_r_last_proof, witness)?;

    let column = poseidon::hash(&labels, witness.aux);
    include(Tree::Replica, column, &columns.c_x.inclusion_proof, witness)
}

/// The label of a layer, counted from 0: SHA-256 of the replica, layer and node and the parents' labels, again and again
/// until they are [`TOTAL_PARENTS`]. Those of the expander are of the layer before, so the first layer has none.
fn label(
    replica_id: &[u8; 32],
    layer: usize,
    node: u64,
    drg_parents: &[Vec<Fr>],
    exp_parents: &[Vec<Fr>],
    witness: &mut Witness<'_>,
) -> Fr {
    let drg = drg_parents.iter().map(|column| column[layer]);
    let exp = exp_parents.iter().filter_map(|column| column.get(layer.checked_sub(1)?));
    let parents: Vec<[Word; 8]> = drg
        .chain(exp.copied())
        .map(|parent| {
            let bytes = parent.to_repr();
            push_bits_of(&bytes, witness.aux);
            sha256::number(&bytes)
        })
        .collect();
    let mut message = Vec::with_capacity(16 + 8 * TOTAL_PARENTS);
    message.extend(sha256::number(replica_id));
    message.push(Word::constant(layer as u32 + 1));
    message.extend([Word::allocated((node >> 32) as u32), Word::allocated(node as u32)]);
    message.resize(16, Word::constant(0));
    message.extend(parents.iter().cycle().take(TOTAL_PARENTS).flatten());
    let digest = sha256::sha256(message.into_iter(), witness.aux);
    merkle::pack(digest, witness.aux)
}

/// The rows of each column, its hash, and the path to tree C's root.
fn open(columns: &[ColumnProof], witness: &mut Witness<'_>) -> Result<Vec<Vec<Fr>>, Fault> {
    columns
        .iter()
        .map(|ColumnProof { column, inclusion_proof }| {
            let rows = merkle::push_nodes("label", &column.rows, witness.aux)?;
            let hash = poseidon::hash(&rows, witness.aux);
            include(Tree::Replica, hash, inclusion_proof, witness)?;
            Ok(rows)
        })
        .collect()
}
