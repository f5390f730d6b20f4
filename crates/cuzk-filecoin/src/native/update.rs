//! SnapDeals: `EmptySectorUpdateCircuit`.

use blstrs::Scalar as Fr;
use ff::{Field, PrimeField};
use storage_proofs_update::{
    PublicParams,
    constants::{h_default, h_select, hs},
};

use super::{
    Witness,
    bits::{Aux, push_bits_of},
    merkle::{Tree, climb, push_nodes},
    poseidon,
};
use crate::{
    SectorSize,
    circuits::update_params,
    error::Fault,
    partition::UpdatePartition,
    wire::{Node, PathElement, UpdateChallengeProof},
};

/// What every challenge of a partition needs.
struct Common<'a> {
    params: &'a PublicParams,
    /// Possible numbers of a challenge's high bits, and which of them it is.
    hs: [usize; 6],
    h_select: u64,
    phi: Fr,
    apex_leaves: &'a [Fr],
}

pub(super) fn generate(
    size: SectorSize,
    index: usize,
    partition: &UpdatePartition,
    witness: &mut Witness<'_>,
) -> Result<(), Fault> {
    let UpdatePartition { public, proof } = partition;
    let params = &update_params(size);
    let hs = hs(params.sector_nodes);
    let h_select = h_select(params.sector_nodes, h_default(params.sector_nodes));
    let Some(first) = proof.challenge_proofs.first() else { return Ok(()) };

    let k = index as u64;
    let (k_bits, h_bits) = (params.partition_bit_len as u32, hs.len() as u32);
    let packed = k | h_select << k_bits;
    witness.aux.push(Fr::from(packed));
    witness.inputs.push(Fr::from(packed));
    witness.aux.push_bits(packed, k_bits + h_bits);
    witness.aux.push(Fr::from(k));

    let comm_r_old = witness.alloc_input("comm_r_old", &Node(public.comm_r_old))?;
    let comm_d_new = witness.alloc_input("comm_d_new", &Node(public.comm_d_new))?;
    let comm_r_new = witness.alloc_input("comm_r_new", &Node(public.comm_r_new))?;
    let phi = poseidon::hash_randomness(&[comm_d_new, comm_r_old], witness.aux);

    let comm_c = witness.alloc("comm_c", &proof.comm_c)?;
    let root_r_old = witness.alloc("root", first.proof_r_old.root())?;
    let root_r_new = witness.alloc("root", first.proof_r_new.root())?;
    let aux = &mut *witness.aux;
    let apex_leaves = push_nodes("apex leaf", &proof.apex_leafs, aux)?;
    let above = first
        .proof_d_new
        .path()
        .skip(params.challenge_bit_len - params.partition_bit_len)
        .map(|level| push_nodes("sibling", &level.hashes, aux))
        .collect::<Result<Vec<_>, _>>()?;
    poseidon::hash(&[comm_c, root_r_old], aux);
    poseidon::hash(&[comm_c, root_r_new], aux);

    let root = apex_root(&apex_leaves, aux);
    above
        .iter()
        .enumerate()
        .fold(root, |node, (height, siblings)| climb(Tree::Data, node, k >> height & 1, siblings, aux));

    let common = Common { params, hs, h_select, phi, apex_leaves: &apex_leaves };
    let challenges = challenges(params, comm_r_new, k, aux);
    for (challenge, proof) in challenges.into_iter().zip(&proof.challenge_proofs) {
        common.challenge(challenge | k << (params.challenge_bit_len - params.partition_bit_len), proof, aux)?;
    }
    Ok(())
}

/// The root of the tree over the apex leaves, row by row.
fn apex_root(leaves: &[Fr], aux: &mut Aux) -> Fr {
    let mut row = leaves.to_vec();
    while row.len() > 1 {
        row = row.chunks(2).map(|pair| Tree::Data.hash(pair, aux)).collect();
    }
    row.first().copied().unwrap_or_default()
}

/// `gen_challenge_bits`: challenges within the partition, as many to a digest as fit its 254 bits.
fn challenges(params: &PublicParams, comm_r_new: Fr, k: u64, aux: &mut Aux) -> Vec<u64> {
    let bits = params.challenge_bit_len - params.partition_bit_len;
    let a_digest = Fr::CAPACITY as usize / bits;
    let digests = params.challenge_count.div_ceil(a_digest) as u64;
    let mut challenges = Vec::with_capacity(params.challenge_count);
    for j in 0..digests {
        let index = Fr::from(k * digests + j);
        aux.push(index);
        let digest = poseidon::hash_randomness(&[comm_r_new, index], aux).to_repr();
        push_bits_of(&digest, aux);
        let bit = |i: usize| u64::from(digest[i / 8] >> (i % 8) & 1);
        let left = params.challenge_count - challenges.len();
        challenges.extend((0..a_digest.min(left)).map(|n| (0..bits).fold(0, |c, i| c | bit(n * bits + i) << i)));
    }
    challenges
}

impl Common<'_> {
    fn challenge(&self, challenge: u64, proof: &UpdateChallengeProof, aux: &mut Aux) -> Result<(), Fault> {
        let high = self.high_bits(challenge, aux);
        let rho = poseidon::hash_randomness(&[self.phi, high], aux);

        let old = proof.proof_r_old.leaf().scalar("leaf")?;
        let data = proof.proof_d_new.leaf().scalar("leaf")?;
        let masked = data * rho;
        let new = old + masked;
        aux.extend([old, data, masked, new]);

        climb_all(Tree::Replica, challenge, old, proof.proof_r_old.path(), aux)?;
        climb_all(Tree::Replica, challenge, new, proof.proof_r_new.path(), aux)?;

        let apex_bits = self.params.apex_leaf_bit_len;
        let below = self.params.challenge_bit_len - self.params.partition_bit_len - apex_bits;
        select(self.apex_leaves, challenge >> below, aux);
        climb_all(Tree::Data, challenge, data, proof.proof_d_new.path().take(below), aux)
    }

    /// `get_challenge_high_bits`.
    fn high_bits(&self, challenge: u64, aux: &mut Aux) -> Fr {
        let mut selected = Fr::ZERO;
        for (i, h) in self.hs.iter().enumerate() {
            let high = Fr::from(challenge >> (self.params.challenge_bit_len - h));
            let or_zero = if self.h_select >> i & 1 == 1 { high } else { Fr::ZERO };
            aux.extend([high, or_zero]);
            selected += or_zero;
        }
        aux.push(selected);
        selected
    }
}

/// `por_no_challenge_input`, its siblings allocated before it. The indices are bits of the challenge.
fn climb_all<'a>(
    tree: Tree,
    mut challenge: u64,
    leaf: Fr,
    levels: impl Iterator<Item = &'a PathElement>,
    aux: &mut Aux,
) -> Result<(), Fault> {
    let siblings: Vec<_> = levels.map(|level| push_nodes("sibling", &level.hashes, aux)).collect::<Result<_, _>>()?;
    siblings.iter().fold(leaf, |node, siblings| {
        let arity = siblings.len() as u64 + 1;
        let index = challenge % arity;
        challenge /= arity;
        climb(tree, node, index, siblings, aux)
    });
    Ok(())
}

/// `insertion::select`: halves what is left by the index's bits, the highest first.
pub(super) fn select(from: &[Fr], index: u64, aux: &mut Aux) {
    let mut left = from.to_vec();
    while left.len() > 1 {
        let half = left.len() / 2;
        // Halves of halves: the number of the bit is what is left of the length.
        let upper = index >> half.trailing_zeros() & 1 == 1;
        left = if upper { left.split_off(half) } else { left[..half].to_vec() };
        aux.extend(left.iter().copied());
    }
}
