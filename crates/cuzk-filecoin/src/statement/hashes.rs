//! The hashes of vanilla proofs, which parsing leaves to the circuit.

use filecoin_proofs::{DefaultPieceHasher, DefaultTreeHasher};
use rayon::prelude::*;
use storage_proofs_porep::stacked::Column;
use storage_proofs_update::constants::TreeRDomain;

use super::Statement;
use crate::{
    Fault, FilecoinError,
    error::published,
    partition::{PostSector, SealPublic},
    wire::{self, ColumnProof, LabelingProof, MerkleProof, Node, SealProof, UpdatePartitionProof},
};

impl Statement {
    /// Hashes all that the vanilla proofs claim: every path from its leaf to its root, and of a PoRep the columns, the
    /// labels and the encoding, too. What passes satisfies the circuit; what does not would be found by a proof that
    /// fails, without a place.
    ///
    /// On the current rayon pool: the 235,000 paths of a full WindowPoSt partition of 32 GiB take seconds of one core.
    ///
    /// # Errors
    /// [`FilecoinError::Invalid`] with the vanilla proof, the sector and the challenge of the first hash that is wrong.
    pub fn check_hashes(&self) -> Result<(), FilecoinError> {
        match self {
            Self::Seal(seal) => first_error(seal.proofs(), |k, proofs| {
                first_error(proofs, |n, proof| {
                    seal_challenge(seal.public(), proof, &format!("partition {k}, challenge {n}"))
                })
            }),
            Self::Winning(winning) => first_error(winning.sectors(), sector),
            Self::Window(window) => {
                let sectors: Vec<&PostSector> = window.sectors().collect();
                first_error(&sectors, |i, proof| sector(i, proof))
            }
            Self::Update(update) => first_error(update.proofs(), |k, proof| update_partition(k, proof)),
        }
    }
}

/// Checks all parts at once, and tells of the first that is wrong.
fn first_error<T: Sync>(
    parts: &[T],
    check: impl Fn(usize, &T) -> Result<(), FilecoinError> + Sync,
) -> Result<(), FilecoinError> {
    parts.par_iter().enumerate().find_map_first(|(i, part)| check(i, part).err()).map_or(Ok(()), Err)
}

fn replica(proof: &MerkleProof) -> Result<(), Fault> {
    proof.check_hashes::<DefaultTreeHasher>()
}

fn data(proof: &MerkleProof) -> Result<(), Fault> {
    proof.check_hashes::<DefaultPieceHasher>()
}

fn sector(i: usize, sector: &PostSector) -> Result<(), FilecoinError> {
    for (n, proof) in sector.inclusion_proofs.iter().enumerate() {
        let at = |fault: Fault| fault.at(format!("vanilla proof {i} (sector {}), challenge {n}", sector.id));
        replica(proof).map_err(at)?;
    }
    Ok(())
}

fn update_partition(k: usize, partition: &UpdatePartitionProof) -> Result<(), FilecoinError> {
    for (n, opened) in partition.challenge_proofs.iter().enumerate() {
        for (tree, checked) in [
            ("old tree R", replica(&opened.proof_r_old)),
            ("new tree D", data(&opened.proof_d_new)),
            ("new tree R", replica(&opened.proof_r_new)),
        ] {
            checked.map_err(|fault| fault.at(format!("partition {k}, challenge {n}, {tree}")))?;
        }
    }
    Ok(())
}

fn seal_challenge(public: &SealPublic, proof: &SealProof, place: &str) -> Result<(), FilecoinError> {
    data(&proof.comm_d_proofs).map_err(|fault| fault.at(format!("{place}, tree D")))?;
    replica(&proof.comm_r_last_proof).map_err(|fault| fault.at(format!("{place}, tree R")))?;
    let columns = &proof.replica_column_proofs;
    column(&columns.c_x, || format!("{place}, column"))?;
    for (what, parents) in [("base parent", &columns.drg_parents), ("expander parent", &columns.exp_parents)] {
        for (j, parent) in parents.iter().enumerate() {
            column(parent, || format!("{place}, {what} {j}"))?;
        }
    }
    labels(public, proof).map_err(|(part, fault)| fault.at(format!("{place}, {part}")))
}

/// The leaf of tree C is the hash of the column's labels.
fn column(proof: &ColumnProof, place: impl Fn() -> String) -> Result<(), FilecoinError> {
    let at = |fault: Fault| fault.at(place());
    let labels: Vec<TreeRDomain> = wire::nodes("label", &proof.column.rows).map_err(at)?;
    let column = Column::<DefaultTreeHasher>::new(proof.column.index, labels).map_err(published("Column::new"))?;
    proof.inclusion_proof.leaf().expect("column", &Node::from(column.hash())).map_err(at)?;
    replica(&proof.inclusion_proof).map_err(at)
}

/// The column's labels are the hashes of their parents, and the last of them is the key by which the data became the
/// replica.
fn labels(public: &SealPublic, proof: &SealProof) -> Result<(), (String, Fault)> {
    let replica_id = Node(public.replica_id);
    let hash = |label: &LabelingProof| wire::label(&replica_id, label.layer_index, label.node, &label.parents);
    for (row, label) in proof.replica_column_proofs.c_x.column.rows.iter().zip(&proof.labeling_proofs) {
        row.expect("label", &hash(label)).map_err(|fault| (format!("layer {}", label.layer_index), fault))?;
    }
    let encoded = || -> Result<(), Fault> {
        let key = hash(&proof.encoding_proof).scalar("key")?;
        let data = proof.comm_d_proofs.leaf().scalar("leaf")?;
        proof.comm_r_last_proof.leaf().expect("replica node", &Node::from(data + key))
    };
    encoded().map_err(|fault| ("encoding".to_owned(), fault))
}
