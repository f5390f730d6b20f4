//! Proofs of spacetime: Winning- and WindowPoSt share the fallback circuit.

use blstrs::Scalar as Fr;
use filecoin_proofs_api::ApiVersion;
use storage_proofs_core::{compound_proof::CompoundProof, sector::SectorId};
use storage_proofs_post::fallback::{
    self, FallbackPoSt, FallbackPoStCircuit, FallbackPoStCompound, PublicSector, generate_leaf_challenge,
};
use storage_proofs_update::constants::TreeRDomain;

use super::{Shape, check_shape};
use crate::{
    CircuitId, Fault, FilecoinError, Partition, ProofKind, WindowPostVersion,
    error::{no_panic, published},
    partition::{Content, PostPartition, PostPublic},
    wire::{MerkleProof, Node},
};

/// Challenges of a WinningPoSt, each its own sector slot of the circuit.
pub(crate) const WINNING_CHALLENGES: usize = filecoin_proofs::WINNING_POST_CHALLENGE_COUNT;
/// Challenges a sector of a WindowPoSt.
pub(crate) const WINDOW_CHALLENGES: usize = filecoin_proofs::WINDOW_POST_CHALLENGE_COUNT;

/// The circuit of a Winning- or WindowPoSt partition and its public inputs (without the leading
/// ONE).
///
/// # Errors
/// [`FilecoinError::WrongKind`] or [`FilecoinError::WrongShape`] if the partition is not one of a
/// proof of spacetime over `Tree`; [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if
/// the published construction fails.
pub fn post<Tree: Shape>(partition: &Partition) -> Result<(FallbackPoStCircuit<Tree>, Vec<Fr>), FilecoinError> {
    let circuit = partition.circuit_id();
    let Content::Post(content) = partition.content() else {
        return Err(FilecoinError::WrongKind { expected: ProofKind::WindowPoSt, found: circuit });
    };
    check_shape::<Tree>(circuit)?;
    let inputs = public_inputs(circuit, partition.index(), content)?;
    let at = |fault: Fault| fault.at(format!("partition {}", partition.index()));
    let params = params(circuit);

    // One slot of the circuit for each sector, or for each challenge of the winning sector.
    let mut slots = Vec::with_capacity(params.sector_count);
    for sector in content.sectors.iter() {
        for openings in sector.inclusion_proofs.chunks(params.challenge_count) {
            slots.push(fallback::SectorProof {
                inclusion_proofs: openings.iter().map(MerkleProof::publish).collect::<Result<_, _>>().map_err(at)?,
                comm_c: sector.comm_c.domain("comm_c").map_err(at)?,
                comm_r_last: sector.comm_r_last.domain("comm_r_last").map_err(at)?,
            });
        }
    }
    // A partition short of sectors proves its last one again and again.
    if let Some(last) = slots.last().cloned() {
        slots.resize(params.sector_count, last);
    }
    let public = fallback::PublicInputs {
        randomness: Node(content.public.randomness).domain("randomness").map_err(at)?,
        prover_id: Node(content.public.prover_id).domain("prover_id").map_err(at)?,
        sectors: content
            .sectors
            .iter()
            .map(|sector| Ok(PublicSector { id: SectorId::from(sector.id), comm_r: sector.comm_r.domain("comm_r")? }))
            .collect::<Result<Vec<PublicSector<TreeRDomain>>, Fault>>()
            .map_err(at)?,
        k: None,
    };
    let built = no_panic("FallbackPoStCompound::circuit", || {
        // The sectors are those of this partition alone, so for the published function it is the
        // first one; the circuit itself does not depend on the index.
        <FallbackPoStCompound<Tree> as CompoundProof<'_, FallbackPoSt<'_, Tree>, _>>::circuit(
            &public,
            Default::default(),
            &fallback::Proof { sectors: slots },
            &params,
            None,
        )
    })?
    .map_err(published("FallbackPoStCompound::circuit"))?;
    Ok((built, inputs))
}

/// The Winning- or WindowPoSt circuit of a sector size without a witness, as keys are made of.
///
/// # Errors
/// [`FilecoinError::WrongKind`] if `circuit` is not one of the two, [`FilecoinError::WrongShape`]
/// if `Tree` is not the shape of its size.
pub fn blank_post<Tree: Shape>(circuit: CircuitId) -> Result<FallbackPoStCircuit<Tree>, FilecoinError> {
    if !matches!(circuit.kind, ProofKind::WinningPoSt | ProofKind::WindowPoSt) {
        return Err(FilecoinError::WrongKind { expected: ProofKind::WindowPoSt, found: circuit });
    }
    check_shape::<Tree>(circuit)?;
    Ok(<FallbackPoStCompound<Tree> as CompoundProof<'_, FallbackPoSt<'_, Tree>, _>>::blank_circuit(&params(circuit)))
}

/// Slots and challenges a slot. The circuit does not depend on the version of WindowPoSt.
pub(crate) fn params(circuit: CircuitId) -> fallback::PublicParams {
    let (challenge_count, sector_count) = match circuit.kind {
        ProofKind::WinningPoSt => (1, WINNING_CHALLENGES),
        _ => (WINDOW_CHALLENGES, circuit.sector_size.window_sectors()),
    };
    fallback::PublicParams {
        sector_size: circuit.sector_size.bytes(),
        challenge_count,
        sector_count,
        api_version: ApiVersion::V1_2_0,
    }
}

/// Nodes that a sector has to open, in order: 66 for WinningPoSt, 10 for WindowPoSt.
///
/// `slot` counts the sectors of all partitions of the deadline; only [`WindowPostVersion::V1`]
/// depends on it.
pub(crate) fn challenges(
    circuit: CircuitId,
    public: &PostPublic,
    randomness: &TreeRDomain,
    sector: u64,
    slot: u64,
) -> Vec<u64> {
    let params = params(circuit);
    let (count, first) = match (circuit.kind, public.version) {
        (ProofKind::WinningPoSt, _) => (WINNING_CHALLENGES as u64, 0),
        (_, WindowPostVersion::V1_2) => (WINDOW_CHALLENGES as u64, 0),
        (_, WindowPostVersion::V1) => (WINDOW_CHALLENGES as u64, slot * WINDOW_CHALLENGES as u64),
    };
    (0..count).map(|n| generate_leaf_challenge(&params, *randomness, sector, first + n)).collect()
}

/// For each slot the sector's comm_r and the nodes it opens; missing slots repeat the last one.
///
/// Computed here, because the published function needs the sectors of all earlier partitions,
/// though it uses no more of them than their number.
pub(crate) fn public_inputs(
    circuit: CircuitId,
    index: usize,
    content: &PostPartition,
) -> Result<Vec<Fr>, FilecoinError> {
    let at = |fault: Fault| fault.at(format!("partition {index}"));
    let params = params(circuit);
    let randomness = Node(content.public.randomness).domain("randomness").map_err(at)?;
    let slot_len = 1 + params.challenge_count;
    let mut inputs = Vec::with_capacity(params.sector_count * slot_len);
    let first_slot = index as u64 * params.sector_count as u64;
    for (i, sector) in content.sectors.iter().enumerate() {
        let comm_r = sector.comm_r.scalar("comm_r").map_err(at)?;
        let slot = first_slot + i as u64;
        let challenges = challenges(circuit, &content.public, &randomness, sector.id, slot);
        for slot in challenges.chunks(params.challenge_count) {
            inputs.push(comm_r);
            inputs.extend(slot.iter().copied().map(Fr::from));
        }
    }
    let last = inputs.len().saturating_sub(slot_len)..inputs.len();
    while inputs.len() < params.sector_count * slot_len {
        inputs.extend_from_within(last.clone());
    }
    Ok(inputs)
}
