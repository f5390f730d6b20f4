//! The constraint systems as circuits and gadgets use them.

use std::collections::HashSet;

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use cuzk_r1cs::{
    Assignment, AssignmentError, CheckCircuitError, CheckError, CoeffIndices, R1csError, RecordError, RecordingCs,
    WitnessCs, WitnessError, check, check_circuit,
};
use ff::Field;

/// Parts of a chain `x_{i+1} = k_i · x_i²`, synthesized apart and joined where the system is extensible, the
/// way Filecoin's PoSt circuits are.
#[derive(Clone)]
struct Parts {
    n_parts: usize,
    part_len: usize,
    witness: bool,
}

impl Parts {
    fn part<CS: ConstraintSystem<Scalar>>(&self, cs: &mut CS, part: usize) -> Result<(), SynthesisError> {
        let mut value = Scalar::from(part as u64 % 3);
        let known = self.witness.then_some(()).ok_or(SynthesisError::AssignmentMissing);
        let mut previous = cs.alloc_input(|| "start", || known.map(|()| value))?;
        for i in 0..self.part_len {
            let factor = Scalar::from((part * self.part_len + i) as u64);
            let square = value.square();
            value = factor * square;
            let (missing, next_value) = (SynthesisError::AssignmentMissing, value);
            let next = cs.alloc(|| "x", || self.witness.then_some(next_value).ok_or(missing))?;
            cs.enforce(|| format!("step {i}"), |lc| lc + (factor, previous), |lc| lc + previous, |lc| lc + next);
            previous = next;
        }
        Ok(())
    }
}

impl Circuit<Scalar> for Parts {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        for part in 0..self.n_parts {
            if CS::is_extensible() {
                let mut child = CS::new();
                child.alloc_input(|| "temporary ONE", || Ok(Scalar::ONE))?;
                self.part(&mut child, part)?;
                cs.extend(&child);
            } else {
                self.part(&mut cs.namespace(|| format!("part {part}")), part)?;
            }
        }
        Ok(())
    }
}

#[test]
fn parts_synthesized_apart_fit_the_matrices_recorded_in_sequence() {
    let circuit = Parts { n_parts: 7, part_len: 45, witness: true };
    let blank = Parts { witness: false, ..circuit.clone() };
    let r1cs = RecordingCs::record(blank).expect("recorded");
    assert_eq!((r1cs.n_inputs(), r1cs.n_aux()), (8, 315));
    // The chain's constraints, then one row an input.
    assert_eq!(r1cs.n_constraints(), 315 + 8);
    let w = WitnessCs::generate(circuit.clone()).expect("a complete witness");
    assert_eq!(check(&r1cs, &w), Ok(()));
    check_circuit(circuit).expect("satisfied");
}

/// Tasks run in parallel, but the first constraint is reported, whichever task finishes first.
#[test]
fn the_first_of_several_unsatisfied_constraints_is_reported() {
    let circuit = Parts { n_parts: 1, part_len: 5000, witness: true };
    let r1cs = RecordingCs::record(circuit.clone()).expect("recorded");
    let w = WitnessCs::generate(circuit).expect("a complete witness");
    let mut aux: Vec<_> = w.iter().skip(w.n_inputs()).collect();
    for first in [4999, 3071, 1024, 1023] {
        // Auxiliary variable i is the product of constraint i.
        aux[first] += Scalar::ONE;
        let w = Assignment::from_values(&w.inputs(), &aux).expect("valid");
        let error = check(&r1cs, &w).expect_err("unsatisfied");
        let CheckError::Unsatisfied(unsatisfied) = error else { panic!("{error}") };
        assert_eq!(unsatisfied.index, first);
        assert_eq!(unsatisfied.a * unsatisfied.b + Scalar::ONE, unsatisfied.c);
    }
}

#[test]
fn the_dictionary_widens_the_indices_as_it_grows() {
    // Factors 0..=299 in A: 0 is dropped, 1 is fixed, so the dictionary holds 1, -1 and 2..=299.
    let circuit = Parts { n_parts: 1, part_len: 300, witness: false };
    let r1cs = RecordingCs::record(circuit).expect("recorded");
    assert!(matches!(r1cs.a().indices(), CoeffIndices::U16(_)));
    assert!(matches!(r1cs.b().indices(), CoeffIndices::U8(_)));
    assert_eq!(r1cs.a().dictionary().len(), 300);
    for i in 1..300u32 {
        let coeff = Scalar::from(u64::from(i));
        // x_i is the auxiliary variable i - 1, after ONE and the start.
        assert_eq!(r1cs.a().row(i as usize).collect::<Vec<_>>(), [(i + 1, &coeff)]);
    }
    assert_eq!(r1cs.a().row(0).len(), 0);
    // 65,537 factors need four bytes.
    let circuit = Parts { n_parts: 1, part_len: 65_537, witness: false };
    let r1cs = RecordingCs::record(circuit).expect("recorded");
    assert!(matches!(r1cs.a().indices(), CoeffIndices::U32(_)));
    assert_eq!(*r1cs.a().row(65_536).next().expect("one term").1, Scalar::from(65_536));
    // 65,537 rows of offsets, columns and indices, and a dictionary of 36 bytes an entry.
    let a = r1cs.a();
    assert_eq!(a.bytes(), 4 * (a.n_rows() + 1) + 8 * a.nnz() + 36 * a.dictionary().len());
}

#[test]
fn digests_tell_systems_apart() {
    let record =
        |n_parts, part_len| RecordingCs::record(Parts { n_parts, part_len, witness: false }).expect("recorded");
    let (a, b) = (record(2, 30), record(2, 30));
    assert_eq!(a, b);
    assert_eq!(a.digest(), b.digest());
    let systems = [record(2, 30), record(1, 60), record(1, 61), record(3, 20)];
    let digests: HashSet<_> = systems.iter().map(|r1cs| *r1cs.digest()).collect();
    assert_eq!(digests.len(), systems.len());
}

/// What native gadgets (neptune's Poseidon) do on a witness generator.
#[test]
fn slices_handed_out_are_packed_in_order() {
    let f = Scalar::from;
    let mut cs = WitnessCs::new();
    assert!(cs.is_witness_generator());
    cs.alloc_input(|| "ONE", || Ok(f(1))).expect("known");
    cs.alloc(|| "", || Ok(f(2))).expect("known");
    let (aux, inputs) = cs.allocate_empty(3, 2);
    assert_eq!((aux.len(), inputs.len()), (3, 2));
    aux.copy_from_slice(&[f(3), f(0), f(1)]);
    inputs.copy_from_slice(&[f(20), f(21)]);
    assert_eq!(cs.n_aux(), 4);
    cs.allocate_empty_aux(2)[1] = f(7);
    cs.allocate_empty_inputs(1)[0] = f(22);
    cs.extend_aux(&[f(8)]);
    cs.extend_inputs(&[f(23)]);
    let variable = cs.alloc(|| "", || Ok(f(9))).expect("known");
    assert_eq!(variable.get_unchecked(), Index::Aux(7));
    cs.aux_mut().push_bits(0b01, 2);
    assert_eq!(cs.inputs_slice(), [1, 20, 21, 22, 23].map(f));
    // The copy's last values are still unpacked when it is appended.
    let mut copy = cs.clone();
    copy.allocate_empty_aux(1)[0] = f(10);
    cs.extend(&copy);

    let part = [2, 3, 0, 1, 0, 7, 8, 9, 1, 0];
    let aux: Vec<_> = part.iter().chain(&part).chain(&[10]).map(|&v| f(v)).collect();
    let inputs = [1, 20, 21, 22, 23, 20, 21, 22, 23].map(f);
    assert_eq!(cs.finish(), Assignment::from_values(&inputs, &aux));
}

#[test]
fn one_must_come_first() {
    let cs = WitnessCs::<Scalar>::new();
    assert_eq!(cs.finish(), Err(AssignmentError::VariableZero { n_inputs: 0 }));
    let mut cs = WitnessCs::new();
    cs.alloc_input(|| "not ONE", || Ok(Scalar::from(2))).expect("known");
    assert_eq!(cs.finish(), Err(AssignmentError::VariableZero { n_inputs: 1 }));
    let error = RecordingCs::<Scalar>::new().into_r1cs().expect_err("no ONE");
    assert!(matches!(error, RecordError::System(R1csError::InputCount { n_inputs: 0, .. })), "{error}");
}

/// Refers to a variable that it never allocates.
struct Dangling(Index);

impl Circuit<Scalar> for Dangling {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        cs.alloc(|| "x", || Ok(Scalar::ONE))?;
        let mut cs = cs.namespace(|| "outer");
        let mut cs = cs.namespace(|| "inner");
        cs.enforce(|| "fine", |lc| lc, |lc| lc, |lc| lc);
        let dangling = Variable::new_unchecked(self.0);
        cs.enforce(|| "dangling", |lc| lc, |lc| lc + dangling, |_| LinearCombination::zero());
        Ok(())
    }
}

#[test]
fn unknown_variables_are_reported_with_their_constraint() {
    for (index, kind, number) in [
        (Index::Aux(1), "auxiliary", 1),
        (Index::Input(1), "input", 1),
        (Index::Aux(1 << 31), "auxiliary", 1 << 31),
        (Index::Input(usize::MAX), "input", usize::MAX),
    ] {
        let error = RecordingCs::record(Dangling(index)).expect_err("dangling");
        assert_eq!(
            error.to_string(),
            format!("constraint 1 refers to {kind} variable {number}, but only 1 are allocated"),
        );
        let error = check_circuit(Dangling(index)).expect_err("dangling");
        let CheckCircuitError::UnknownVariable { path } = error else { panic!("{error}") };
        assert_eq!(path, "outer/inner/dangling");
    }
}

#[test]
fn the_errors_of_the_circuit_are_passed_on() {
    let blank = || Parts { n_parts: 1, part_len: 1, witness: false };
    let error = WitnessCs::generate(blank()).expect_err("no witness");
    assert!(matches!(error, WitnessError::Synthesis(SynthesisError::AssignmentMissing)), "{error}");
    let error = check_circuit(blank()).expect_err("no witness");
    assert!(matches!(error, CheckCircuitError::Synthesis(SynthesisError::AssignmentMissing)), "{error}");
}
