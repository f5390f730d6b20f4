//! Packed forms against dense ones, fast evaluation against the definition.

use std::collections::{BTreeMap, BTreeSet};

use bellpepper_core::ConstraintSystem;
use blstrs::Scalar;
use cuzk_r1cs::{Assignment, DensityTracker, MatrixBuilder, PackedScalars, WitnessCs, evaluate};
use ff::{Field, PrimeField};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use toy::Fermat;

mod toy {
    use ff::PrimeField;

    #[derive(PrimeField)]
    #[PrimeFieldModulus = "65537"]
    #[PrimeFieldGenerator = "3"]
    #[PrimeFieldReprEndianness = "big"]
    pub(super) struct Fermat([u64; 1]);
}

/// Bits most of the time, as in a real witness; also the neighbours of 0 and 1.
fn value<F: PrimeField>() -> impl Strategy<Value = F> {
    prop_oneof![
        4 => Just(F::ZERO),
        4 => Just(F::ONE),
        1 => Just(-F::ONE),
        1 => Just(F::from(2)),
        1 => any::<u64>().prop_map(|seed| F::random(ChaCha8Rng::seed_from_u64(seed))),
    ]
}

/// Zero (to be dropped), ±1, both sides of the bound of integer weights, and anything.
fn coefficient<F: PrimeField>() -> impl Strategy<Value = F> {
    prop_oneof![
        1 => Just(F::ZERO),
        4 => Just(F::ONE),
        4 => Just(-F::ONE),
        4 => (0u32..34).prop_map(|k| F::from(1 << k)),
        2 => (0u32..34).prop_map(|k| -F::from(1 << k)),
        2 => (0u64..600).prop_map(F::from),
        2 => any::<u64>().prop_map(|seed| F::random(ChaCha8Rng::seed_from_u64(seed))),
    ]
}

type Rows<F> = Vec<Vec<(u32, F)>>;

/// Rows in any order and with repeated columns, and values for the columns.
fn rows_and_values<F: PrimeField>() -> impl Strategy<Value = (Rows<F>, Vec<F>)> {
    (1usize..200).prop_flat_map(|n| {
        let term = (0..n as u32, coefficient::<F>());
        let rows = prop::collection::vec(prop::collection::vec(term, 0..12), 0..60);
        (rows, prop::collection::vec(value::<F>(), n))
    })
}

fn evaluation_agrees<F: PrimeField>(rows: Rows<F>, mut values: Vec<F>) -> Result<(), TestCaseError> {
    values[0] = F::ONE;
    let mut builder = MatrixBuilder::new();
    for row in &rows {
        builder.push_row(row.iter().copied());
    }
    let matrix = builder.finish(values.len()).expect("columns are in range");
    let w = Assignment::from_values(&values[..1], &values[1..]).expect("value 0 is 1");

    // By the definition, on a map.
    let mut naive = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        for &(column, coeff) in row {
            *naive.entry((i, column)).or_insert(F::ZERO) += coeff;
        }
    }
    naive.retain(|_, coeff| *coeff != F::ZERO);
    let mut expected = vec![F::ZERO; rows.len()];
    for (&(i, column), &coeff) in &naive {
        expected[i] += coeff * values[column as usize];
    }
    prop_assert_eq!(evaluate(&matrix, &w).expect("shapes fit"), expected);

    // The matrix has exactly the entries of the map.
    let entries: BTreeMap<(usize, u32), F> =
        (0..matrix.n_rows()).flat_map(|i| matrix.row(i).map(move |(column, &coeff)| ((i, column), coeff))).collect();
    prop_assert_eq!(matrix.nnz(), naive.len());
    prop_assert_eq!(&entries, &naive);

    let density = DensityTracker::of_matrix(&matrix);
    let dense: BTreeSet<u32> = naive.keys().map(|&(_, column)| column).collect();
    prop_assert_eq!(density.count(), dense.len());
    for n in 0..=values.len() {
        prop_assert_eq!(density.count_in(0..n), dense.range(..n as u32).count());
        prop_assert_eq!(density.count_in(n..values.len()), dense.range(n as u32..).count());
        prop_assert!(n == values.len() || density.get(n) == dense.contains(&(n as u32)));
    }

    // And the matrix is canonical: its parts pass every check.
    let again = cuzk_r1cs::CsrMatrix::from_parts(
        matrix.n_cols(),
        matrix.offsets().clone(),
        matrix.columns().to_vec(),
        matrix.indices().clone(),
        matrix.dictionary().to_vec(),
    );
    prop_assert_eq!(again, Ok(matrix));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn evaluation_is_the_definition((rows, values) in rows_and_values::<Scalar>()) {
        evaluation_agrees(rows, values)?;
    }

    #[test]
    fn evaluation_is_the_definition_in_a_small_field((rows, values) in rows_and_values::<Fermat>()) {
        evaluation_agrees(rows, values)?;
    }

    #[test]
    fn packing_keeps_the_values(
        inputs in prop::collection::vec(value::<Scalar>(), 0..150),
        aux in prop::collection::vec(value::<Scalar>(), 0..400),
    ) {
        let inputs: Vec<_> = [Scalar::ONE].into_iter().chain(inputs).collect();
        let w = Assignment::from_values(&inputs, &aux).expect("value 0 is 1");
        let dense = [inputs.clone(), aux.clone()].concat();
        prop_assert_eq!(w.iter().collect::<Vec<_>>(), dense.clone());
        prop_assert_eq!((0..dense.len()).map(|i| w.value(i)).collect::<Vec<_>>(), dense);
        prop_assert_eq!(w.inputs(), inputs);
        let again = Assignment::from_parts(
            w.n_inputs(), w.n_aux(), w.ones().to_vec(), w.wide().to_vec(), w.rank().to_vec(),
            w.wide_scalars().to_vec(),
        );
        prop_assert_eq!(again, Ok(w));
    }

    /// The memory of any assignment serves any other one, and is kept by it.
    #[test]
    fn an_assignment_in_used_memory_is_the_same(
        used in prop::collection::vec(value::<Scalar>(), 0..400),
        inputs in prop::collection::vec(value::<Scalar>(), 0..150),
        aux in prop::collection::vec(value::<Scalar>(), 0..400),
    ) {
        let used = Assignment::from_values(&[Scalar::ONE], &used).expect("value 0 is 1");
        let held = used.bytes_held();
        let mut cs = WitnessCs::reusing(used);
        for value in [Scalar::ONE].iter().chain(&inputs) {
            cs.alloc_input(|| "", || Ok(*value)).expect("there is a value");
        }
        for value in &aux {
            cs.alloc(|| "", || Ok(*value)).expect("there is a value");
        }
        let w = cs.finish().expect("value 0 is 1");
        let inputs: Vec<_> = [Scalar::ONE].into_iter().chain(inputs).collect();
        prop_assert_eq!(&w, &Assignment::from_values(&inputs, &aux).expect("value 0 is 1"));
        prop_assert!(w.bytes_held() >= held.max(w.bytes()));
    }

    /// Values, bits, words of bits and whole vectors, in any order.
    #[test]
    fn appending_keeps_the_values(
        steps in prop::collection::vec(
            (0..4u8, any::<u64>(), 0..=64u32, prop::collection::vec(value::<Scalar>(), 0..140)),
            0..20,
        ),
    ) {
        let mut packed = PackedScalars::new();
        let mut dense = Vec::new();
        for (kind, bits, n, values) in steps {
            match kind {
                0 => {
                    packed.extend(values.iter().copied());
                    dense.extend(values);
                }
                1 => {
                    packed.push_bits(bits, n);
                    dense.extend((0..n).map(|k| Scalar::from(bits >> k & 1)));
                }
                2 => {
                    packed.push_bit(bits & 1 == 1);
                    dense.push(Scalar::from(bits & 1));
                }
                _ => {
                    packed.append(&values.iter().copied().collect());
                    dense.extend(values);
                }
            }
        }
        prop_assert_eq!(packed.len(), dense.len());
        let read: Vec<_> = (0..=dense.len()).map_while(|i| packed.get(i)).collect();
        prop_assert_eq!(&read, &dense);
        prop_assert_eq!(packed, dense.into_iter().collect());
    }
}

/// A part of any length up to two words, appended at any bit offset, is what sequential allocation gives.
#[test]
fn extend_at_every_bit_offset() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut random = |n: usize| -> Vec<Scalar> {
        let mut draw = || match rng.gen_range(0..8) {
            0..=3 => Scalar::ZERO,
            4..=6 => Scalar::ONE,
            _ => Scalar::random(&mut rng),
        };
        (0..n).map(|_| draw()).collect()
    };
    let fill = |cs: &mut WitnessCs<Scalar>, values: &[Scalar]| {
        for &value in values {
            cs.alloc(|| "", || Ok(value)).expect("the value is known");
        }
    };
    for offset in 0..=64 {
        for len in (0..=130).step_by(if offset % 8 == 0 { 1 } else { 13 }) {
            let (before, part) = (random(offset), random(len));
            let input = random(1)[0];

            let mut child = WitnessCs::new();
            child.alloc_input(|| "temporary ONE", || Ok(Scalar::ONE)).expect("known");
            fill(&mut child, &part);
            child.alloc_input(|| "input", || Ok(input)).expect("known");
            let mut joined = WitnessCs::new();
            joined.alloc_input(|| "ONE", || Ok(Scalar::ONE)).expect("known");
            fill(&mut joined, &before);
            joined.extend(&child);
            joined.extend(&child);

            let aux = [&before[..], &part, &part].concat();
            let expected = Assignment::from_values(&[Scalar::ONE, input, input], &aux);
            assert_eq!(joined.finish(), expected, "offset {offset}, length {len}");
        }
    }
}

#[test]
fn inputs_that_fill_words_exactly_are_joined_with_nothing_and_with_words() {
    for n_inputs in [1usize, 63, 64, 65, 127, 128, 129] {
        for n_aux in [0usize, 1, 62, 63, 64, 65, 127, 128, 129] {
            let values = |n: usize| (0..n).map(|i| Scalar::from([1, 0, 7][i % 3])).collect::<Vec<_>>();
            let (inputs, aux) = (values(n_inputs), values(n_aux));
            let w = Assignment::from_values(&inputs, &aux).expect("value 0 is 1");
            assert_eq!(w.iter().collect::<Vec<_>>(), [inputs, aux].concat(), "{n_inputs} inputs, {n_aux} others");
        }
    }
}
