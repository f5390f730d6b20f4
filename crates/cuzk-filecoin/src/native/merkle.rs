//! Merkle paths as the gadgets of `storage-proofs-core` allocate them.

use blstrs::Scalar as Fr;
use ff::PrimeField;

use super::{
    Witness,
    bits::{Aux, push_bits_of},
    poseidon, sha256,
};
use crate::{
    error::Fault,
    wire::{MerkleProof, Node, PathElement},
};

/// How the nodes of a tree are made of those below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Binary, SHA-256 without its two highest bits: tree D.
    Data,
    /// Trees C and R: Poseidon.
    Replica,
}

impl Tree {
    /// `HashFunction::hash_multi_leaf_circuit`.
    pub(super) fn hash(self, nodes: &[Fr], aux: &mut Aux) -> Fr {
        match self {
            Self::Replica => poseidon::hash(nodes, aux),
            Self::Data => hash_data(nodes, aux),
        }
    }
}

/// The 255 bits of each node, SHA-256 of them in bytes, and its lowest 254 bits as a number.
fn hash_data(nodes: &[Fr], aux: &mut Aux) -> Fr {
    let mut words = Vec::with_capacity(8 * nodes.len());
    for node in nodes {
        let bytes = node.to_repr();
        push_bits_of(&bytes, aux);
        words.extend(sha256::number(&bytes));
    }
    let digest = sha256::sha256(words.into_iter(), aux);
    pack(digest, aux)
}

/// `multipack::pack_bits` of a digest: its lowest 254 bits, little-endian, as a new variable.
pub(super) fn pack(mut digest: [u8; 32], aux: &mut Aux) -> Fr {
    digest[31] &= 0x3f;
    let number = Fr::from_repr_vartime(digest).unwrap_or_else(|| unreachable!("254 bits are below the modulus"));
    aux.push(number);
    number
}

/// `PoRCircuit` with a leaf and a root that are variables already: of each level, from the leaf, the bits of the index,
/// the siblings and the hash. What all the indices together are, the leaf's number, is an input.
///
/// # Errors
/// A sibling that is no scalar, which a checked proof does not have.
pub(super) fn include(tree: Tree, leaf: Fr, proof: &MerkleProof, witness: &mut Witness<'_>) -> Result<(), Fault> {
    let mut node = leaf;
    let (mut number, mut height) = (0, 0);
    for PathElement { hashes, index } in proof.path() {
        let bits = (hashes.len() + 1).trailing_zeros();
        witness.aux.push_bits(*index, bits);
        number |= index << height;
        height += bits;
        let siblings = push_nodes("sibling", hashes, witness.aux)?;
        node = climb(tree, node, *index, &siblings, witness.aux);
    }
    witness.inputs.push(Fr::from(number));
    Ok(())
}

/// `AllocatedNum::alloc` of each node.
pub(super) fn push_nodes(what: &'static str, nodes: &[Node], aux: &mut Aux) -> Result<Vec<Fr>, Fault> {
    nodes
        .iter()
        .map(|node| {
            let number = node.scalar(what)?;
            aux.push(number);
            Ok(number)
        })
        .collect()
}

/// The node above: `insertion::insert` of a node among its siblings, and their hash.
pub(super) fn climb(tree: Tree, node: Fr, index: u64, siblings: &[Fr], aux: &mut Aux) -> Fr {
    match *siblings {
        [b] => {
            let nodes = insert_2(node, index, b, aux);
            tree.hash(&nodes, aux)
        }
        [b, c, d, e, f, g, h] => {
            let nodes = insert_8(node, index, [b, c, d, e, f, g, h], aux);
            tree.hash(&nodes, aux)
        }
        _ => unreachable!("no tree has {} siblings: the shape is checked when a proof is parsed", siblings.len()),
    }
}

/// `insertion::pick`: a new variable, `a` if the condition holds, else `b`.
fn pick(condition: bool, a: Fr, b: Fr, aux: &mut Aux) -> Fr {
    let picked = if condition { a } else { b };
    aux.push(picked);
    picked
}

fn insert_2(a: Fr, index: u64, b: Fr, aux: &mut Aux) -> [Fr; 2] {
    let b0 = index & 1 == 1;
    [pick(b0, b, a, aux), pick(b0, a, b, aux)]
}

/// `a` among the seven others, as the gadget picks: each position in up to three steps, by the bits of the index.
fn insert_8(a: Fr, index: u64, [b, c, d, e, f, g, h]: [Fr; 7], aux: &mut Aux) -> [Fr; 8] {
    let [b0, b1, b2] = [0, 1, 2].map(|i| index >> i & 1 == 1);
    let (neither, both) = (!b0 & !b1, b0 & b1);
    aux.push_bit(neither);
    aux.push_bit(both);

    let step = pick(neither, a, b, aux);
    let p0 = pick(b2, b, step, aux);

    let step = pick(b0, a, b, aux);
    let step = pick(b1, c, step, aux);
    let p1 = pick(b2, c, step, aux);

    let step = pick(b0, d, a, aux);
    let step = pick(b1, step, c, aux);
    let p2 = pick(b2, d, step, aux);

    let step = pick(both, a, d, aux);
    let p3 = pick(b2, e, step, aux);

    let step = pick(neither, a, f, aux);
    let p4 = pick(b2, step, e, aux);

    let step = pick(b0, a, f, aux);
    let step = pick(b1, g, step, aux);
    let p5 = pick(b2, step, f, aux);

    let step = pick(b0, h, a, aux);
    let step = pick(b1, step, g, aux);
    let p6 = pick(b2, step, g, aux);

    let step = pick(both, a, h, aux);
    let p7 = pick(b2, step, h, aux);

    [p0, p1, p2, p3, p4, p5, p6, p7]
}
