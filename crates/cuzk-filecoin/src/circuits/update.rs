//! SnapDeals: the update of an empty sector.

use blstrs::Scalar as Fr;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_update::{
    ChallengeProof, EmptySectorUpdate, EmptySectorUpdateCircuit, EmptySectorUpdateCompound, PartitionProof,
    PublicInputs, PublicParams,
    constants::{TreeDDomain, TreeRDomain, h_default},
};

use super::{Shape, check_shape, nodes};
use crate::{
    CircuitId, Fault, FilecoinError, Partition, ProofKind, SectorSize,
    error::{no_panic, published},
    partition::{Content, UpdatePartition, UpdatePublic},
    wire::{self, Node},
};

/// The circuit of an update's partition and its public inputs (without the leading ONE).
///
/// # Errors
/// [`FilecoinError::WrongKind`] or [`FilecoinError::WrongShape`] if the partition is not one of an
/// update over `Tree`; [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if the published
/// construction fails.
pub fn update<Tree: Shape>(partition: &Partition) -> Result<(EmptySectorUpdateCircuit<Tree>, Vec<Fr>), FilecoinError> {
    let circuit = partition.circuit_id();
    let Content::Update(content) = partition.content() else {
        return Err(FilecoinError::WrongKind { expected: ProofKind::Update, found: circuit });
    };
    check_shape::<Tree>(circuit)?;
    let index = partition.index();
    let at = |fault: Fault| fault.at(format!("partition {index}"));
    let UpdatePartition { public, proof } = content;
    let params = params(circuit.sector_size);
    let inputs = public_inputs::<Tree>(circuit.sector_size, public, index)?;
    let published_inputs = published_inputs(circuit.sector_size, public, index).map_err(at)?;
    let vanilla = publish::<Tree>(proof).map_err(at)?;
    let built = no_panic("EmptySectorUpdateCompound::circuit", || {
        <EmptySectorUpdateCompound<Tree> as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::circuit(
            &published_inputs,
            (),
            &vanilla,
            &params,
            Some(index),
        )
    })?
    .map_err(published("EmptySectorUpdateCompound::circuit"))?;
    Ok((built, inputs))
}

/// The update circuit of a sector size without a witness, as keys are made of.
///
/// # Errors
/// [`FilecoinError::WrongShape`] if `Tree` is not the shape of that size.
pub fn blank_update<Tree: Shape>(size: SectorSize) -> Result<EmptySectorUpdateCircuit<Tree>, FilecoinError> {
    check_shape::<Tree>(CircuitId::new(ProofKind::Update, size))?;
    Ok(EmptySectorUpdateCircuit::blank(params(size)))
}

/// Challenges, partitions and apex of a sector size.
pub(crate) fn params(size: SectorSize) -> PublicParams {
    PublicParams::from_sector_size(size.bytes())
}

pub(crate) fn published_inputs(size: SectorSize, public: &UpdatePublic, index: usize) -> Result<PublicInputs, Fault> {
    let replica = |what, bytes| Node(bytes).domain::<TreeRDomain>(what);
    Ok(PublicInputs {
        k: index,
        comm_r_old: replica("comm_r_old", public.comm_r_old)?,
        comm_d_new: Node(public.comm_d_new).domain::<TreeDDomain>("comm_d_new")?,
        comm_r_new: replica("comm_r_new", public.comm_r_new)?,
        h: h_default(nodes(size)),
    })
}

pub(crate) fn public_inputs<Tree: Shape>(
    size: SectorSize,
    public: &UpdatePublic,
    index: usize,
) -> Result<Vec<Fr>, FilecoinError> {
    let inputs = published_inputs(size, public, index).map_err(|fault| fault.at(format!("partition {index}")))?;
    no_panic("EmptySectorUpdateCompound::generate_public_inputs", || {
        <EmptySectorUpdateCompound<Tree> as CompoundProof<'_, EmptySectorUpdate<Tree>, _>>::generate_public_inputs(
            &inputs,
            &params(size),
            Some(index),
        )
    })?
    .map_err(published("EmptySectorUpdateCompound::generate_public_inputs"))
}

pub(crate) fn publish<Tree: Shape>(proof: &wire::UpdatePartitionProof) -> Result<PartitionProof<Tree>, Fault> {
    Ok(PartitionProof {
        comm_c: proof.comm_c.domain("comm_c")?,
        apex_leafs: wire::nodes("apex leaf", &proof.apex_leafs)?,
        challenge_proofs: proof
            .challenge_proofs
            .iter()
            .map(|challenge| {
                Ok(ChallengeProof {
                    proof_r_old: challenge.proof_r_old.publish()?,
                    proof_d_new: challenge.proof_d_new.publish()?,
                    proof_r_new: challenge.proof_r_new.publish()?,
                })
            })
            .collect::<Result<_, Fault>>()?,
    })
}
