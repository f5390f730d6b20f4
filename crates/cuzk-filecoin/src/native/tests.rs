//! Each gadget against the published one in a constraint system that keeps its values.

use bellpepper_core::{
    ConstraintSystem,
    boolean::{AllocatedBit, Boolean},
    num::AllocatedNum,
};
use bellperson::gadgets::sha256::sha256 as published_sha256;
use blstrs::Scalar as Fr;
use cuzk_r1cs::WitnessCs;
use ff::Field;
use filecoin_hashers::{HashFunction, Hasher, POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11};
use neptune::circuit::poseidon_hash;
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use storage_proofs_core::gadgets::insertion;
use storage_proofs_update::constants::{POSEIDON_CONSTANTS_GEN_RANDOMNESS, TreeDHasher};

use super::{
    bits::{Aux, Word},
    merkle::{self, Tree},
    poseidon, sha256, update,
};

/// Bits of a word as operands of the published gadgets, the lowest first. Those that `variable` names are allocated.
fn operands(cs: &mut WitnessCs<Fr>, value: u32, variable: u32) -> Vec<Boolean> {
    (0..32)
        .map(|i| {
            let bit = value >> i & 1 == 1;
            if variable >> i & 1 == 1 {
                AllocatedBit::alloc(&mut *cs, Some(bit)).unwrap().into()
            } else {
                Boolean::constant(bit)
            }
        })
        .collect()
}

fn numbers(cs: &mut WitnessCs<Fr>, values: &[Fr]) -> Vec<AllocatedNum<Fr>> {
    values.iter().map(|value| AllocatedNum::alloc(&mut *cs, || Ok(*value)).unwrap()).collect()
}

/// What was allocated after the first `skip` variables.
fn after(cs: &mut WitnessCs<Fr>, skip: usize) -> Vec<Fr> {
    let aux = cs.aux_mut();
    (skip..aux.len()).map(|i| aux.get(i).unwrap()).collect()
}

fn all(aux: &Aux) -> Vec<Fr> {
    (0..aux.len()).map(|i| aux.get(i).unwrap()).collect()
}

/// Masks of words: all, none, one bit less, random.
fn mask(rng: &mut ChaCha20Rng) -> u32 {
    match rng.gen_range(0..4) {
        0 => 0,
        1 => u32::MAX,
        2 => !(1 << rng.gen_range(0..32)),
        _ => rng.next_u32(),
    }
}

#[test]
fn sha256_of_messages_with_constants_anywhere() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    // Lengths around one and two blocks, and a label's.
    for words in (1..=3).chain(12..=18).chain(28..=34).chain([312]) {
        for variables in ["all", "none", "some"] {
            let message: Vec<(u32, u32)> = (0..words)
                .map(|_| {
                    let variable = match variables {
                        "all" => u32::MAX,
                        "none" => 0,
                        _ => mask(&mut rng),
                    };
                    (rng.next_u32(), variable)
                })
                .collect();
            let mut cs = WitnessCs::<Fr>::new();
            let bits: Vec<Boolean> = message
                .iter()
                .flat_map(|(value, variable)| operands(&mut cs, *value, *variable).into_iter().rev())
                .collect();
            let skip = cs.n_aux();
            let published = published_sha256(&mut cs, &bits).unwrap();

            let mut aux = Aux::new();
            let digest = sha256::sha256(message.iter().map(|(value, mask)| Word::partly(*value, *mask)), &mut aux);
            assert_eq!(all(&aux), after(&mut cs, skip), "{words} words, {variables} of them variables");
            let bytes: Vec<u8> = message.iter().flat_map(|(value, _)| value.to_be_bytes()).collect();
            assert_eq!(digest[..], Sha256::digest(&bytes)[..]);
            let published: Vec<bool> = published.iter().map(|bit| bit.get_value().unwrap()).collect();
            let bit = |i: usize| digest[i / 8] >> (7 - i % 8) & 1 == 1;
            assert!(published.iter().enumerate().all(|(i, found)| *found == bit(i)));
        }
    }
}

/// Every kind of operand: constants and variables of both values.
#[test]
fn functions_of_three_bits() {
    for kinds in 0..64u32 {
        // Bit 0 of a kind is its value, bit 1 whether it is a variable. One bit of a word each, the others constant.
        let [a, b, c] = [kinds & 3, kinds >> 2 & 3, kinds >> 4].map(|kind| (kind & 1, kind >> 1));
        for maj in [false, true] {
            let mut cs = WitnessCs::<Fr>::new();
            let bits = [a, b, c].map(|(value, variable)| operands(&mut cs, value, variable)[0].clone());
            let skip = cs.n_aux();
            let published = if maj { Boolean::sha256_maj } else { Boolean::sha256_ch };
            let result = published(&mut cs, &bits[0], &bits[1], &bits[2]).unwrap();

            let mut aux = Aux::new();
            let [x, y, z] = [a, b, c].map(|(value, variable)| Word::partly(value, variable));
            let word = if maj { Word::maj(x, y, z, &mut aux) } else { Word::ch(x, y, z, &mut aux) };
            assert_eq!(all(&aux), after(&mut cs, skip), "{a:?} {b:?} {c:?}");
            assert_eq!(word.value() & 1 == 1, result.get_value().unwrap());
            assert_eq!(word.variable & 1 == 0, result.is_constant());
        }
    }
}

/// An exclusive or with a one negates; the next one allocates what is below the negations.
#[test]
fn exclusive_or_of_three() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    for _ in 0..200 {
        let words: [(u32, u32); 3] = std::array::from_fn(|_| (rng.next_u32(), mask(&mut rng)));
        let mut cs = WitnessCs::<Fr>::new();
        let [a, b, c] = words.map(|(value, variable)| operands(&mut cs, value, variable));
        let skip = cs.n_aux();
        let mut xor = |a: &[Boolean], b: &[Boolean]| -> Vec<Boolean> {
            a.iter().zip(b).map(|(a, b)| Boolean::xor(&mut cs, a, b).unwrap()).collect()
        };
        let ab = xor(&a, &b);
        xor(&ab, &c);

        let mut aux = Aux::new();
        let [a, b, c] = words.map(|(value, variable)| Word::partly(value, variable));
        let result = a.xor(b, &mut aux).xor(c, &mut aux);
        assert_eq!(all(&aux), after(&mut cs, skip));
        assert_eq!(result.value(), words[0].0 ^ words[1].0 ^ words[2].0);
    }
}

#[test]
fn poseidon_of_all_widths() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let check = |preimage: &[Fr], randomness: bool| {
        let mut cs = WitnessCs::<Fr>::new();
        let nodes = numbers(&mut cs, preimage);
        let published = match preimage.len() {
            2 if randomness => poseidon_hash(&mut cs, nodes, &*POSEIDON_CONSTANTS_GEN_RANDOMNESS),
            2 => poseidon_hash(&mut cs, nodes, &*POSEIDON_CONSTANTS_2),
            8 => poseidon_hash(&mut cs, nodes, &*POSEIDON_CONSTANTS_8),
            _ => poseidon_hash(&mut cs, nodes, &*POSEIDON_CONSTANTS_11),
        }
        .unwrap();
        let mut aux = Aux::new();
        let hash = match *preimage {
            [a, b] if randomness => poseidon::hash_randomness(&[a, b], &mut aux),
            _ => poseidon::hash(preimage, &mut aux),
        };
        assert_eq!(all(&aux), after(&mut cs, preimage.len()));
        assert_eq!(Some(hash), published.get_value());
    };
    for n in [2, 8, 11] {
        for _ in 0..20 {
            let preimage: Vec<Fr> = (0..n).map(|_| Fr::random(&mut rng)).collect();
            check(&preimage, false);
            check(&preimage, n == 2);
        }
        for special in [Fr::ZERO, Fr::ONE, -Fr::ONE] {
            check(&vec![special; n], false);
        }
    }
}

/// A node among its siblings, at each place, in trees of both kinds.
#[test]
fn levels_of_trees() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    for (tree, arity) in [(Tree::Replica, 2usize), (Tree::Replica, 8), (Tree::Data, 2)] {
        for index in 0..arity as u64 {
            let values: Vec<Fr> = (0..arity).map(|_| Fr::random(&mut rng)).collect();
            let mut cs = WitnessCs::<Fr>::new();
            let nodes = numbers(&mut cs, &values);
            let bits: Vec<Boolean> =
                operands(&mut cs, index as u32, arity as u32 - 1).into_iter().take(arity.ilog2() as usize).collect();
            let skip = cs.n_aux();
            let inserted = insertion::insert(&mut cs, &nodes[0], &bits, &nodes[1..]).unwrap();
            let published = match tree {
                Tree::Data => <TreeDHasher as Hasher>::Function::hash2_circuit(&mut cs, &inserted[0], &inserted[1]),
                Tree::Replica if arity == 2 => poseidon_hash(&mut cs, inserted, &*POSEIDON_CONSTANTS_2),
                Tree::Replica => poseidon_hash(&mut cs, inserted, &*POSEIDON_CONSTANTS_8),
            }
            .unwrap();
            let mut aux = Aux::new();
            let node = merkle::climb(tree, values[0], index, &values[1..], &mut aux);
            assert_eq!(all(&aux), after(&mut cs, skip), "{tree:?}, child {index} of {arity}");
            assert_eq!(Some(node), published.get_value());
        }
    }
}

#[test]
fn selection_by_bits() {
    let values: Vec<Fr> = (0..16).map(Fr::from).collect();
    for index in 0..16 {
        let mut cs = WitnessCs::<Fr>::new();
        let from = numbers(&mut cs, &values);
        let bits: Vec<Boolean> = operands(&mut cs, index, 15).into_iter().take(4).collect();
        let skip = cs.n_aux();
        insertion::select(&mut cs, &from, &bits).unwrap();
        let mut aux = Aux::new();
        update::select(&values, u64::from(index), &mut aux);
        assert_eq!(all(&aux), after(&mut cs, skip));
        assert_eq!(aux.get(aux.len() - 1), Some(Fr::from(u64::from(index))));
    }
}
