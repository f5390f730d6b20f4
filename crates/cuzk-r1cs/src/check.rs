//! Checking that an assignment satisfies a system.

use ff::PrimeField;
use rayon::prelude::*;

use crate::assignment::Assignment;
use crate::evaluate::{Evaluator, ShapeError};
use crate::system::R1cs;

/// A constraint that does not hold: `a · b ≠ c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("constraint {index} is not satisfied: {a:?} * {b:?} != {c:?}")]
pub struct Unsatisfied<F: std::fmt::Debug> {
    /// Number of the constraint.
    pub index: usize,
    /// Value of its left factor.
    pub a: F,
    /// Value of its right factor.
    pub b: F,
    /// Value of its product.
    pub c: F,
}

/// Why [`check`] does not accept an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError<F: std::fmt::Debug> {
    /// The assignment belongs to another system.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The first constraint that does not hold.
    #[error("{0}")]
    Unsatisfied(Unsatisfied<F>),
}

/// Rows a task.
const ROWS_PER_TASK: usize = 1024;

/// Checks every constraint, in parallel on the current rayon pool, without storing the products.
///
/// # Errors
/// [`CheckError::Unsatisfied`] with the first constraint that does not hold;
/// [`CheckError::Shape`] when the assignment does not fit the system.
pub fn check<F: PrimeField>(r1cs: &R1cs<F>, w: &Assignment<F>) -> Result<(), CheckError<F>> {
    if r1cs.n_inputs() != w.n_inputs() {
        return Err(ShapeError::Inputs { system: r1cs.n_inputs(), assignment: w.n_inputs() }.into());
    }
    let a = Evaluator::new(r1cs.a(), w)?;
    let b = Evaluator::new(r1cs.b(), w)?;
    let c = Evaluator::new(r1cs.c(), w)?;
    let n_constraints = r1cs.n_constraints();
    let first = (0..n_constraints.div_ceil(ROWS_PER_TASK)).into_par_iter().find_map_first(|task| {
        let start = task * ROWS_PER_TASK;
        let n_rows = ROWS_PER_TASK.min(n_constraints - start);
        let [a, b, c] = [&a, &b, &c].map(|evaluator| {
            let mut values = vec![F::ZERO; n_rows];
            evaluator.rows(start, &mut values);
            values
        });
        (0..n_rows).find(|&i| a[i] * b[i] != c[i]).map(|i| Unsatisfied { index: start + i, a: a[i], b: b[i], c: c[i] })
    });
    first.map_or(Ok(()), |unsatisfied| Err(CheckError::Unsatisfied(unsatisfied)))
}
