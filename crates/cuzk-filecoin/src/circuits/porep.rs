//! Proof of replication.

use std::sync::Arc;

use blstrs::Scalar as Fr;
use filecoin_proofs::{DefaultPieceHasher, parameters};
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::{compound_proof::CompoundProof, merkle};
use storage_proofs_porep::stacked::{
    self, ColumnProof, EncodingProof, LabelingProof, StackedCircuit, StackedCompound, StackedDrg,
};
use storage_proofs_update::constants::{TreeDDomain, TreeRDomain};

use super::{Shape, check_shape};
use crate::{
    CircuitId, Fault, FilecoinError, Partition, ProofKind, SectorSize,
    error::{no_panic, published},
    partition::{Content, SealPartition, SealPublic},
    wire,
};

type Compound<Tree> = StackedCompound<Tree, DefaultPieceHasher>;
type Scheme<'a, Tree> = StackedDrg<'a, Tree, DefaultPieceHasher>;
type PublicInputs = stacked::PublicInputs<TreeRDomain, TreeDDomain>;
type TreeProof<Tree> = merkle::MerkleProof<
    <Tree as merkle::MerkleTreeTrait>::Hasher,
    <Tree as merkle::MerkleTreeTrait>::Arity,
    <Tree as merkle::MerkleTreeTrait>::SubTreeArity,
    <Tree as merkle::MerkleTreeTrait>::TopTreeArity,
>;

/// The circuit of a PoRep partition and its public inputs (without the leading ONE).
///
/// # Errors
/// [`FilecoinError::WrongKind`] or [`FilecoinError::WrongShape`] if the partition is not one of a
/// PoRep over `Tree`; [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the published
/// construction fails.
pub fn porep<Tree: Shape>(
    partition: &Partition,
) -> Result<(StackedCircuit<Tree, DefaultPieceHasher>, Vec<Fr>), FilecoinError> {
    let circuit = partition.circuit_id();
    let Content::Seal(content) = partition.content() else {
        return Err(FilecoinError::WrongKind { expected: ProofKind::PoRep, found: circuit });
    };
    check_shape::<Tree>(circuit)?;
    let SealPartition { public, proofs } = content;
    let index = partition.index();
    let inputs = public_inputs::<Tree>(public, index)?;
    let vanilla = proofs
        .iter()
        .enumerate()
        .map(|(i, proof)| publish::<Tree>(proof).map_err(|fault| fault.at(format!("partition {index}, challenge {i}"))))
        .collect::<Result<Vec<_>, _>>()?;
    let params = params::<Tree>(public.registered_proof)?;
    let public = published_inputs(public)?;
    let built = no_panic("StackedCompound::circuit", || {
        <Compound<Tree> as CompoundProof<'_, Scheme<'_, Tree>, _>>::circuit(&public, (), &vanilla, &params, Some(index))
    })?
    .map_err(published("StackedCompound::circuit"))?;
    Ok((built, inputs))
}

/// The PoRep circuit of a sector size without a witness, as keys are made of.
///
/// # Errors
/// [`FilecoinError::WrongShape`] if `Tree` is not the shape of that size.
pub fn blank_porep<Tree: Shape>(size: SectorSize) -> Result<StackedCircuit<Tree, DefaultPieceHasher>, FilecoinError> {
    check_shape::<Tree>(CircuitId::new(ProofKind::PoRep, size))?;
    let params = params::<Tree>(size.seal_proof())?;
    Ok(<Compound<Tree> as CompoundProof<'_, Scheme<'_, Tree>, _>>::blank_circuit(&params))
}

/// Graph and challenge rule of a registered proof.
pub(crate) fn params<Tree: Shape>(proof: RegisteredSealProof) -> Result<stacked::PublicParams<Tree>, FilecoinError> {
    parameters::public_params::<Tree>(&proof.as_v1_config()).map_err(published("parameters::public_params"))
}

pub(crate) fn published_inputs(public: &SealPublic) -> Result<PublicInputs, FilecoinError> {
    let node = |what, bytes: [u8; 32]| wire::Node(bytes).scalar(what).map_err(|f| f.at("C1"));
    Ok(stacked::PublicInputs {
        replica_id: node("replica_id", public.replica_id)?.into(),
        seed: Some(public.seed),
        tau: Some(stacked::Tau {
            comm_d: node("comm_d", public.comm_d)?.into(),
            comm_r: node("comm_r", public.comm_r)?.into(),
        }),
        k: None,
    })
}

pub(crate) fn public_inputs<Tree: Shape>(public: &Arc<SealPublic>, index: usize) -> Result<Vec<Fr>, FilecoinError> {
    let params = params::<Tree>(public.registered_proof)?;
    let inputs = published_inputs(public)?;
    no_panic("StackedCompound::generate_public_inputs", || {
        <Compound<Tree> as CompoundProof<'_, Scheme<'_, Tree>, _>>::generate_public_inputs(
            &inputs,
            &params,
            Some(index),
        )
    })?
    .map_err(published("StackedCompound::generate_public_inputs"))
}

pub(crate) fn publish<Tree: Shape>(proof: &wire::SealProof) -> Result<stacked::Proof<Tree, DefaultPieceHasher>, Fault> {
    let columns = |columns: &[wire::ColumnProof]| -> Result<Vec<ColumnProof<TreeProof<Tree>>>, Fault> {
        columns.iter().map(column::<Tree>).collect()
    };
    let replica = &proof.replica_column_proofs;
    let encoding = &proof.encoding_proof;
    Ok(stacked::Proof {
        comm_d_proofs: proof.comm_d_proofs.publish()?,
        comm_r_last_proof: proof.comm_r_last_proof.publish()?,
        replica_column_proofs: stacked::ReplicaColumnProof {
            c_x: column::<Tree>(&replica.c_x)?,
            drg_parents: columns(&replica.drg_parents)?,
            exp_parents: columns(&replica.exp_parents)?,
        },
        labeling_proofs: proof
            .labeling_proofs
            .iter()
            .map(|label| {
                let parents = wire::nodes("label", &label.parents)?;
                Ok(LabelingProof::new(label.layer_index, label.node, parents))
            })
            .collect::<Result<_, Fault>>()?,
        encoding_proof: EncodingProof::new(
            encoding.layer_index,
            encoding.node,
            wire::nodes("label", &encoding.parents)?,
        ),
    })
}

fn column<Tree: Shape>(proof: &wire::ColumnProof) -> Result<ColumnProof<TreeProof<Tree>>, Fault> {
    Ok(ColumnProof::new(
        proof.column.index,
        wire::nodes("label", &proof.column.rows)?,
        proof.inclusion_proof.publish()?,
    ))
}
