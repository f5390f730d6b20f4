//! Poseidon as the circuit of `neptune` that Filecoin's keys were made for allocates it.
//!
//! [Poseidon](https://eprint.iacr.org/2019/458) over the scalar field with S-box x⁵, in the form in which the partial
//! rounds have sparse matrices (appendix B). What is allocated for an S-box: its input, unless that is a variable
//! already, the input's square and fourth power, and the output with the next round's key added. The tag is a constant,
//! so the first S-box of the first round is one, too.

use std::sync::LazyLock;

use blstrs::Scalar as Fr;
use ff::Field;
use filecoin_hashers::{POSEIDON_CONSTANTS_2, POSEIDON_CONSTANTS_8, POSEIDON_CONSTANTS_11};
use neptune::{Arity, poseidon::PoseidonConstants};
use storage_proofs_update::constants::POSEIDON_CONSTANTS_GEN_RANDOMNESS;

use super::bits::Aux;

static PAIR: LazyLock<Permutation<3>> = LazyLock::new(|| Permutation::new(&POSEIDON_CONSTANTS_2));
static EIGHT: LazyLock<Permutation<9>> = LazyLock::new(|| Permutation::new(&POSEIDON_CONSTANTS_8));
static COLUMN: LazyLock<Permutation<12>> = LazyLock::new(|| Permutation::new(&POSEIDON_CONSTANTS_11));
static RANDOMNESS: LazyLock<Permutation<3>> = LazyLock::new(|| Permutation::new(&POSEIDON_CONSTANTS_GEN_RANDOMNESS));

/// A hash of two, eight or eleven numbers: a pair, an inner node, the column of a PoRep with eleven layers.
///
/// # Panics
/// If there are not so many.
pub(super) fn hash(preimage: &[Fr], aux: &mut Aux) -> Fr {
    match preimage.len() {
        2 => PAIR.hash(preimage, aux),
        8 => EIGHT.hash(preimage, aux),
        11 => COLUMN.hash(preimage, aux),
        n => unreachable!("no circuit hashes {n} numbers: the shape of what it hashes is checked when it is parsed"),
    }
}

/// Of two numbers, with the tag of an update's randomness.
pub(super) fn hash_randomness(preimage: &[Fr; 2], aux: &mut Aux) -> Fr {
    RANDOMNESS.hash(preimage, aux)
}

/// Constants of one width `W`: the number of elements and a tag.
struct Permutation<const W: usize> {
    tag: Fr,
    /// Added before the first round.
    before: [Fr; W],
    /// Added after the S-boxes of a full round, except the last one.
    full: Vec<[Fr; W]>,
    /// Added after the S-box of a partial round.
    partial: Vec<Fr>,
    /// Column by column, so that each element of the product is one row here.
    mds: [[Fr; W]; W],
    /// Of the last full round before the partial ones.
    pre_sparse: [[Fr; W]; W],
    sparse: Vec<Sparse<W>>,
}

/// A matrix that is the identity but for its first row and column.
struct Sparse<const W: usize> {
    column: [Fr; W],
    /// Without its first element, which is the column's: that one is zero here.
    row: [Fr; W],
}

impl<const W: usize> Permutation<W> {
    fn new<A: Arity<Fr>>(constants: &PoseidonConstants<Fr, A>) -> Self {
        let transposed = |matrix: &[Vec<Fr>]| std::array::from_fn(|j| std::array::from_fn(|i| matrix[i][j]));
        let groups =
            |keys: &[Fr]| keys.chunks_exact(W).map(|keys| std::array::from_fn(|i| keys[i])).collect::<Vec<_>>();
        let (first, rest) = constants.compressed_round_constants.split_at(W * (1 + constants.half_full_rounds));
        let (partial, last) = rest.split_at(constants.partial_rounds);
        let mut full = groups(first);
        let before = full.remove(0);
        full.extend(groups(last));
        let sparse = constants.sparse_matrixes.iter().map(|matrix| Sparse {
            column: std::array::from_fn(|i| matrix.w_hat[i]),
            row: std::array::from_fn(|j| if j == 0 { Fr::ZERO } else { matrix.v_rest[j - 1] }),
        });
        Self {
            tag: constants.domain_tag,
            before,
            full,
            partial: partial.to_vec(),
            mds: transposed(&constants.mds_matrices.m),
            pre_sparse: transposed(&constants.pre_sparse_matrix),
            sparse: sparse.collect(),
        }
    }

    fn hash(&self, preimage: &[Fr], aux: &mut Aux) -> Fr {
        debug_assert_eq!(preimage.len() + 1, W);
        let half = self.full.len().div_ceil(2);
        let mut state: [Fr; W] = std::array::from_fn(|i| if i == 0 { self.tag } else { preimage[i - 1] });

        // The preimage is allocated already, the tag is a constant.
        for (i, element) in state.iter_mut().enumerate() {
            let input = *element + self.before[i];
            let (square, fourth, output) = s_box(input, self.full[0][i]);
            if i > 0 {
                aux.extend([square, fourth, output]);
            }
            *element = output;
        }
        state = product(&self.mds, &state);

        for round in 1..half {
            self.full_round(&mut state, &self.full[round], aux);
            let matrix = if round + 1 == half { &self.pre_sparse } else { &self.mds };
            state = product(matrix, &state);
        }
        for (key, matrix) in self.partial.iter().zip(&self.sparse) {
            let first = allocate_s_box(state[0], *key, aux);
            state[0] = first;
            let sum = dot(&matrix.column, &state);
            for (element, factor) in state.iter_mut().zip(&matrix.row).skip(1) {
                *element += first * factor;
            }
            state[0] = sum;
        }
        for keys in self.full[half..].iter().chain([&[Fr::ZERO; W]]) {
            self.full_round(&mut state, keys, aux);
            state = product(&self.mds, &state);
        }
        aux.push(state[1]);
        state[1]
    }

    fn full_round(&self, state: &mut [Fr; W], keys: &[Fr; W], aux: &mut Aux) {
        for (element, key) in state.iter_mut().zip(keys) {
            *element = allocate_s_box(*element, *key, aux);
        }
    }
}

/// x², x⁴ and x⁵ + key.
#[inline]
fn s_box(input: Fr, key: Fr) -> (Fr, Fr, Fr) {
    let square = input.square();
    let fourth = square.square();
    (square, fourth, fourth * input + key)
}

/// Of an input that is a sum and no variable yet.
#[inline]
fn allocate_s_box(input: Fr, key: Fr, aux: &mut Aux) -> Fr {
    let (square, fourth, output) = s_box(input, key);
    aux.extend([input, square, fourth, output]);
    output
}

fn product<const W: usize>(matrix: &[[Fr; W]; W], state: &[Fr; W]) -> [Fr; W] {
    std::array::from_fn(|j| dot(&matrix[j], state))
}

#[inline]
fn dot<const W: usize>(a: &[Fr; W], b: &[Fr; W]) -> Fr {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
