//! Proofs of spacetime: `FallbackPoStCircuit`.

use blstrs::Scalar as Fr;
use rayon::prelude::*;

use super::{
    Witness,
    bits::Aux,
    merkle::{Tree, include},
    poseidon,
};
use crate::{
    CircuitId,
    circuits::post_params,
    error::Fault,
    partition::{PostPartition, PostSector},
    wire::MerkleProof,
};

/// Hashes that are worth a thread's while: two milliseconds.
const HASHES_A_PART: usize = 64;

/// One slot of the circuit: openings of a sector.
type Slot<'a> = (&'a PostSector, &'a [MerkleProof]);

/// Values of some slots.
#[derive(Default)]
struct Part {
    inputs: Vec<Fr>,
    aux: Aux,
}

pub(super) fn generate(circuit: CircuitId, partition: &PostPartition, out: &mut Witness<'_>) -> Result<(), Fault> {
    let params = post_params(circuit);
    let slots: Vec<Slot<'_>> = partition
        .sectors
        .iter()
        .flat_map(|sector| {
            sector.inclusion_proofs.chunks(params.challenge_count).map(move |openings| (sector, openings))
        })
        .collect();
    let Some((last, others)) = slots.split_last() else { return Ok(()) };

    let hashes = 1 + last.1.iter().map(|proof| proof.path().count()).sum::<usize>();
    let slots_a_part = HASHES_A_PART.div_ceil(hashes);
    if rayon::current_num_threads() == 1 || others.len() <= slots_a_part {
        for slot in others {
            sector(*slot, out)?;
        }
    } else {
        // In rounds, so that the parts that wait to be appended stay few.
        let at_once = 4 * rayon::current_num_threads() * slots_a_part;
        for round in others.chunks(at_once) {
            let parts: Vec<Part> = round
                .par_chunks(slots_a_part)
                .map(|slots| slots.iter().try_fold(Part::default(), |part, slot| part.with(*slot)))
                .collect::<Result<_, Fault>>()?;
            parts.iter().for_each(|part| part.append_to(out));
        }
    }
    // A partition short of sectors proves its last one again and again.
    let last = Part::default().with(*last)?;
    for _ in others.len()..params.sector_count {
        last.append_to(out);
    }
    Ok(())
}

impl Part {
    fn with(mut self, slot: Slot<'_>) -> Result<Self, Fault> {
        sector(slot, &mut Witness { inputs: &mut self.inputs, aux: &mut self.aux })?;
        Ok(self)
    }

    fn append_to(&self, out: &mut Witness<'_>) {
        out.inputs.extend_from_slice(&self.inputs);
        out.aux.append(&self.aux);
    }
}

fn sector((sector, openings): Slot<'_>, witness: &mut Witness<'_>) -> Result<(), Fault> {
    let comm_r_last = witness.alloc("comm_r_last", &sector.comm_r_last)?;
    let comm_c = witness.alloc("comm_c", &sector.comm_c)?;
    witness.alloc_input("comm_r", &sector.comm_r)?;
    poseidon::hash(&[comm_c, comm_r_last], witness.aux);
    for proof in openings {
        let leaf = witness.alloc("leaf", proof.leaf())?;
        include(Tree::Replica, leaf, proof, witness)?;
    }
    Ok(())
}
