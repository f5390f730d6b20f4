//! Running the circuits: the one place where they are instantiated.
//!
//! Three circuit types (both proofs of spacetime have the same) in three tree shapes run in two
//! constraint systems each: recording (the matrices) and naming (matrices and values at once, with
//! names). Most of this crate's build time is spent on these 18 instances. Witnesses need none: see
//! `native`.

use bellpepper_core::Circuit;
use blstrs::Scalar as Fr;
use cuzk_r1cs::{R1cs, RecordingCs, check_circuit};

use crate::{
    CircuitId, FilecoinError, Partition, ProofKind,
    circuits::{self, with_shape},
    error::no_panic,
    partition::Content,
};

/// Records the matrices of a circuit from its blank form: no vanilla proof is needed.
///
/// The rows `x·0 = 0` of the inputs come last, as in the published keys. One thread; a PoRep
/// partition of 32 GiB takes some two minutes and 6 GB.
///
/// # Errors
/// [`FilecoinError::Record`], and [`FilecoinError::Published`] or [`FilecoinError::Panicked`] if
/// the published code fails.
pub fn record(circuit: CircuitId) -> Result<R1cs<Fr>, FilecoinError> {
    let size = circuit.sector_size;
    match circuit.kind {
        ProofKind::PoRep => with_shape!(size, Tree => {
            record_circuit(circuit, circuits::blank_porep::<Tree>(size)?)
        }),
        ProofKind::WinningPoSt | ProofKind::WindowPoSt => with_shape!(size, Tree => {
            record_circuit(circuit, circuits::blank_post::<Tree>(circuit)?)
        }),
        ProofKind::Update => with_shape!(size, Tree => {
            record_circuit(circuit, circuits::blank_update::<Tree>(size)?)
        }),
    }
}

pub(crate) fn check_named(partition: &Partition) -> Result<(), FilecoinError> {
    let size = partition.circuit_id().sector_size;
    match partition.content() {
        Content::Seal(_) => with_shape!(size, Tree => {
            check(partition, circuits::porep::<Tree>(partition)?.0)
        }),
        Content::Post(_) => with_shape!(size, Tree => {
            check(partition, circuits::post::<Tree>(partition)?.0)
        }),
        Content::Update(_) => with_shape!(size, Tree => {
            check(partition, circuits::update::<Tree>(partition)?.0)
        }),
    }
}

fn record_circuit<C: Circuit<Fr>>(circuit: CircuitId, blank: C) -> Result<R1cs<Fr>, FilecoinError> {
    no_panic("Circuit::synthesize", || RecordingCs::record(blank))?
        .map_err(|source| FilecoinError::Record { circuit, source })
}

fn check<C: Circuit<Fr>>(partition: &Partition, circuit: C) -> Result<(), FilecoinError> {
    no_panic("Circuit::synthesize", || check_circuit(circuit).map_err(Box::new))?.map_err(|source| {
        FilecoinError::Unsatisfied { circuit: partition.circuit_id(), partition: partition.index(), source }
    })
}
