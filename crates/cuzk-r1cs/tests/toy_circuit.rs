//! A circuit over the field of 113 elements, small enough to be worked out by hand.
//!
//! The statement: "I know x and a bit b with x³ + x + 5 = y" for public y.
//!
//! The variables, inputs first:
//!
//! | column | 0 | 1 | 2 | 3 | 4 | 5 |
//! |---|---|---|---|---|---|---|
//! | variable | ONE | y | x | x² | x³ | b |
//!
//! The constraints, the two input rows last:
//!
//! | row | A | B | C |
//! |---|---|---|---|
//! | 0 | x | x | x² |
//! | 1 | x² | x | x³ |
//! | 2 | 5 + x + x³ | ONE | y |
//! | 3 | ONE - b | b | 0 |
//! | 4 | ONE | 0 | 0 |
//! | 5 | y | 0 | 0 |
//!
//! With x = 11: x² = 121 = 8, x³ = 88, y = 88 + 11 + 5 = 104, everything modulo 113.

use bellpepper_core::{Circuit, ConstraintSystem, LinearCombination, SynthesisError};
use cuzk_r1cs::{
    Assignment, CheckCircuitError, CheckError, CoeffIndices, NamedUnsatisfied, NamingCs, R1cs, RecordingCs, RowOffsets,
    Unsatisfied, WitnessCs, WitnessError, check, check_circuit, evaluate,
};
use ff::Field;

use toy::F113;

mod toy {
    use ff::PrimeField;

    #[derive(PrimeField)]
    #[PrimeFieldModulus = "113"]
    #[PrimeFieldGenerator = "3"]
    #[PrimeFieldReprEndianness = "little"]
    pub(super) struct F113([u64; 1]);
}

fn f(value: u64) -> F113 {
    F113::from(value)
}

fn fs<const N: usize>(values: [u64; N]) -> Vec<F113> {
    values.map(f).to_vec()
}

/// The circuit; `None` is the blank one, whose matrices are the same. A false `y` can be claimed.
struct Cubic {
    x: Option<u64>,
    y: Option<u64>,
}

impl Circuit<F113> for Cubic {
    fn synthesize<CS: ConstraintSystem<F113>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let x = self.x.map(f);
        let y = cs.alloc_input(|| "y", || self.y.map(f).ok_or(missing))?;
        let alloc_x = cs.alloc(|| "x", || x.ok_or(SynthesisError::AssignmentMissing))?;
        let (square, cube) = {
            let mut cs = cs.namespace(|| "powers");
            let square = cs.alloc(|| "square", || x.map(|x| x * x).ok_or(SynthesisError::AssignmentMissing))?;
            let cube = cs.alloc(|| "cube", || x.map(|x| x * x * x).ok_or(SynthesisError::AssignmentMissing))?;
            cs.enforce(|| "square", |lc| lc + alloc_x, |lc| lc + alloc_x, |lc| lc + square);
            cs.enforce(|| "cube", |lc| lc + square, |lc| lc + alloc_x, |lc| lc + cube);
            (square, cube)
        };
        cs.namespace(|| "sum").enforce(
            || "x^3 + x + 5 = y",
            // The square enters and leaves again: its coefficient 1 - 1 = 0 must not be recorded.
            |lc| lc + square + cube + alloc_x + (f(5), CS::one()) - square,
            |lc| lc + CS::one(),
            |lc| lc + y,
        );
        let bit = cs.alloc(|| "bit", || Ok(F113::ONE))?;
        cs.enforce(|| "boolean", |lc| lc + CS::one() - bit, |lc| lc + bit, |_| LinearCombination::zero());
        Ok(())
    }
}

fn recorded() -> R1cs<F113> {
    RecordingCs::record(Cubic { x: None, y: None }).expect("the blank circuit can be recorded")
}

#[test]
fn the_matrices_are_those_of_the_table() {
    let r1cs = recorded();
    assert_eq!((r1cs.n_inputs(), r1cs.n_aux(), r1cs.n_constraints()), (2, 4, 6));
    // 6 constraints need the domain of 2³ points.
    assert_eq!(r1cs.log_domain(), 3);

    let a = r1cs.a();
    assert_eq!(*a.offsets(), RowOffsets::U32(vec![0, 1, 2, 5, 7, 8, 9]));
    assert_eq!(a.columns(), [2, 3, 0, 2, 4, 0, 5, 0, 1]);
    // Entries 0 and 1 are fixed, 5 is the first other coefficient.
    assert_eq!(a.dictionary(), [f(1), f(112), f(5)]);
    assert_eq!(*a.indices(), CoeffIndices::U8(vec![0, 0, 2, 0, 0, 0, 1, 0, 0]));
    assert_eq!(a.row(3).collect::<Vec<_>>(), [(0, &f(1)), (5, &f(112))]);

    let b = r1cs.b();
    assert_eq!(*b.offsets(), RowOffsets::U32(vec![0, 1, 2, 3, 4, 4, 4]));
    assert_eq!(b.columns(), [2, 2, 0, 5]);
    // -1 is in the dictionary of every matrix, used or not.
    assert_eq!(b.dictionary(), [f(1), f(112)]);

    let c = r1cs.c();
    assert_eq!(*c.offsets(), RowOffsets::U32(vec![0, 1, 2, 3, 3, 3, 3]));
    assert_eq!(c.columns(), [3, 4, 1]);
}

#[test]
fn densities_mark_the_variables_that_occur() {
    let densities = recorded().densities();
    assert_eq!(densities.a.words(), [0b111111]);
    // B holds ONE, x and b.
    assert_eq!(densities.b.words(), [0b100101]);
    assert_eq!((densities.a.count(), densities.b.count()), (6, 3));
    assert_eq!((densities.b.count_in(0..2), densities.b.count_in(2..6)), (1, 2));
    assert!(densities.b.get(5) && !densities.b.get(3));
}

#[test]
fn the_witness_is_packed() {
    let w = WitnessCs::generate(Cubic { x: Some(11), y: Some(104) }).expect("a complete witness");
    assert_eq!((w.n_inputs(), w.n_aux()), (2, 4));
    assert_eq!(w.iter().collect::<Vec<_>>(), fs([1, 104, 11, 8, 88, 1]));
    // ONE and b are 1, the four in between neither 0 nor 1.
    assert_eq!(w.ones(), [0b100001]);
    assert_eq!(w.wide(), [0b011110]);
    assert_eq!(w.rank(), [0]);
    assert_eq!(w.wide_scalars(), fs([104, 11, 8, 88]));
    assert_eq!(w.inputs(), fs([1, 104]));
    assert_eq!(w, Assignment::from_values(&fs([1, 104]), &fs([11, 8, 88, 1])).expect("valid"));
    // 0³ + 0 + 5: zeros are in neither bitmap.
    let w = WitnessCs::generate(Cubic { x: Some(0), y: Some(5) }).expect("a complete witness");
    assert_eq!((w.ones(), w.wide()), (&[0b100001][..], &[0b000010][..]));
}

#[test]
fn products_are_those_of_the_table() {
    let r1cs = recorded();
    let w = WitnessCs::generate(Cubic { x: Some(11), y: Some(104) }).expect("a complete witness");
    assert_eq!(evaluate(r1cs.a(), &w).expect("shapes fit"), fs([11, 8, 104, 0, 1, 104]));
    assert_eq!(evaluate(r1cs.b(), &w).expect("shapes fit"), fs([11, 11, 1, 1, 0, 0]));
    assert_eq!(evaluate(r1cs.c(), &w).expect("shapes fit"), fs([8, 88, 104, 0, 0, 0]));
    assert_eq!(check(&r1cs, &w), Ok(()));
}

#[test]
fn a_false_statement_is_found_and_named() {
    let claim = || Cubic { x: Some(11), y: Some(105) };
    let w = WitnessCs::generate(claim()).expect("a complete witness");
    let unsatisfied = Unsatisfied { index: 2, a: f(104), b: f(1), c: f(105) };
    assert_eq!(check(&recorded(), &w), Err(CheckError::Unsatisfied(unsatisfied)));

    let error = check_circuit(claim()).expect_err("y is 104");
    let CheckCircuitError::Unsatisfied(named) = error else { panic!("{error}") };
    let path = "sum/x^3 + x + 5 = y".to_owned();
    assert_eq!(named, NamedUnsatisfied { path, unsatisfied });

    check_circuit(Cubic { x: Some(11), y: Some(104) }).expect("y is 104");
}

#[test]
fn constraints_can_be_watched_as_they_are_enforced() {
    let mut cs = NamingCs::new();
    cs.alloc_input(|| "ONE", || Ok(f(1))).expect("known");
    let x = cs.alloc(|| "x", || Ok(f(3))).expect("known");
    cs.enforce(|| "9", |lc| lc + x, |lc| lc + x, |lc| lc + (f(9), NamingCs::<F113>::one()));
    assert_eq!(cs.first_unsatisfied(), None);
    cs.enforce(|| "x = 1", |lc| lc + x, |lc| lc + x, |lc| lc + x);
    cs.enforce(|| "x = 0", |lc| lc + x, |lc| lc + x, |lc| lc);
    let first = cs.first_unsatisfied().expect("x is 3");
    assert_eq!((first.path.as_str(), first.unsatisfied.index), ("x = 1", 1));
    assert_eq!(cs.n_constraints(), 3);
}

#[test]
fn an_assignment_of_another_shape_is_refused() {
    let r1cs = recorded();
    let w = Assignment::from_values(&fs([1]), &fs([104, 11, 8, 88, 1])).expect("valid");
    let error = check(&r1cs, &w).expect_err("one input is missing");
    assert_eq!(error.to_string(), "the system has 2 inputs, but the assignment has 1");
    let w = Assignment::from_values(&fs([1, 104]), &fs([11])).expect("valid");
    let error = check(&r1cs, &w).expect_err("three variables are missing");
    assert_eq!(error.to_string(), "the matrix has 6 columns, but the assignment has 3 variables");
}

#[test]
fn a_missing_value_is_an_error_of_the_witness_only() {
    let error = WitnessCs::generate(Cubic { x: None, y: Some(104) }).expect_err("no x");
    assert!(matches!(error, WitnessError::Synthesis(SynthesisError::AssignmentMissing)), "{error}");
    let error = check_circuit(Cubic { x: None, y: Some(104) }).expect_err("no x");
    assert!(matches!(error, CheckCircuitError::Synthesis(_)), "{error}");
}
