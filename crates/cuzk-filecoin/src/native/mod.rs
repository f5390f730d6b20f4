//! Witnesses computed directly, without running a circuit.
//!
//! A circuit's witness is the values of its variables in the order in which its gadgets allocate them. The published
//! gadgets allocate each bit by a call and a closure, some 270 ns a variable, and build linear combinations that a
//! witness does not need. These functions walk through the same statement in the same order and append the same values:
//! SHA-256 by words of 32 bits ([`sha256`]), Poseidon over arrays ([`poseidon`]), Merkle paths ([`merkle`]). Nothing of
//! it knows a constraint; the published circuits stay the definition, and the tests hold every value against them.
//!
//! What a gadget checks by a constraint is not checked here either: a statement that is wrong gives a witness that does
//! not satisfy the constraints, as the published circuit's would not.

mod bits;
mod merkle;
mod porep;
mod poseidon;
mod post;
mod sha256;
#[cfg(test)]
mod tests;
mod update;

use bellpepper_core::ConstraintSystem;
use blstrs::Scalar as Fr;
use cuzk_r1cs::{Assignment, WitnessCs};
use ff::Field;

use crate::{FilecoinError, Partition, error::Fault, partition::Content, wire::Node};
use bits::Aux;

/// The assignment of a partition, in the memory of one that is not needed any more.
///
/// # Errors
/// [`FilecoinError::Invalid`] for a number that is no scalar, [`FilecoinError::Witness`] for more variables than an
/// assignment has; a partition that was checked has neither.
pub(crate) fn witness(partition: &Partition, used: Option<Assignment<Fr>>) -> Result<Assignment<Fr>, FilecoinError> {
    let circuit = partition.circuit_id();
    let mut cs = used.map_or_else(WitnessCs::new, WitnessCs::reusing);
    let mut inputs = vec![Fr::ONE];
    let mut witness = Witness { inputs: &mut inputs, aux: cs.aux_mut() };
    match partition.content() {
        Content::Seal(content) => porep::generate(content, &mut witness),
        Content::Post(content) => post::generate(circuit, content, &mut witness),
        Content::Update(content) => update::generate(circuit.sector_size, partition.index(), content, &mut witness),
    }
    .map_err(|fault| fault.at(format!("partition {}", partition.index())))?;
    cs.extend_inputs(&inputs);
    cs.finish().map_err(|source| FilecoinError::Witness {
        circuit,
        partition: partition.index(),
        source: source.into(),
    })
}

/// Where values go.
struct Witness<'a> {
    inputs: &'a mut Vec<Fr>,
    aux: &'a mut Aux,
}

impl Witness<'_> {
    /// `AllocatedNum::alloc`.
    fn alloc(&mut self, what: &'static str, node: &Node) -> Result<Fr, Fault> {
        let number = node.scalar(what)?;
        self.aux.push(number);
        Ok(number)
    }

    /// `AllocatedNum::alloc`, then `inputize`.
    fn alloc_input(&mut self, what: &'static str, node: &Node) -> Result<Fr, Fault> {
        let number = self.alloc(what, node)?;
        self.inputs.push(number);
        Ok(number)
    }
}
