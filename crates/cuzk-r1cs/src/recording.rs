//! Recording the matrices of a circuit.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;
use rayon::prelude::*;

use crate::builder::MatrixBuilder;
use crate::system::{R1cs, R1csError};

/// Why a circuit could not be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The circuit itself reported an error.
    #[error("the circuit could not be synthesized: {0}")]
    Synthesis(#[from] SynthesisError),
    /// A constraint refers to a variable that had not been allocated.
    #[error("constraint {constraint} refers to {kind} variable {index}, but only {allocated} are allocated")]
    UnknownVariable {
        /// Number of the constraint.
        constraint: usize,
        /// `"input"` or `"auxiliary"`.
        kind: &'static str,
        /// Index of the variable.
        index: usize,
        /// Variables of that kind allocated by then.
        allocated: usize,
    },
    /// The recorded matrices do not form a system, for instance because ONE was never allocated.
    #[error(transparent)]
    System(#[from] R1csError),
}

/// Marks the column of an auxiliary variable while the number of inputs is not known yet.
///
/// As the highest bit it sorts auxiliary variables after inputs, which is their order in the finished
/// matrix too, so that renumbering in place keeps rows sorted.
const AUX_TAG: u32 = 1 << 31;

/// Most variables of each kind.
const MAX_VARIABLES: usize = AUX_TAG as usize;

/// A constraint system that records A, B and C and nothing else.
///
/// The matrices depend on the circuit alone, so that a blank circuit will do: closures that compute
/// values are never called. It is not extensible and no witness generator: circuits then synthesize
/// sequentially and in full, with the constraints in the order that defines the proving key (bellperson's key
/// generator decides the same way).
///
/// Rows are written straight into the final arrays: 4 bytes of column and 1 or 2 of coefficient index a
/// non-zero, 4 bytes of offset a row and matrix. A PoRep partition of a 32 GiB sector (722 million non-zeros,
/// 130 million constraints) takes 5.9 GB, that is 8.2 bytes a non-zero, offsets included, with dictionaries of
/// more than 256 entries each (as Poseidon's constants make them), and 5.2 GB with smaller ones. There is no second
/// copy: arrays grow by reallocation, which the allocator of glibc does for large blocks by moving
/// pages, not bytes; columns of auxiliary variables are renumbered in place at the end; indices are
/// widened when a dictionary outgrows them, while there are few. Scratch is one row.
///
/// [`LinearCombination`] has merged repeated variables by the time it arrives; terms with coefficient zero are dropped.
///
/// `ConstraintSystem::new()` starts **empty**, without ONE, which the caller allocates as the first input;
/// [`record`](Self::record) does it.
#[derive(Debug)]
pub struct RecordingCs<F: PrimeField> {
    a: MatrixBuilder<F>,
    b: MatrixBuilder<F>,
    c: MatrixBuilder<F>,
    n_inputs: usize,
    n_aux: usize,
    /// First use of an unknown variable: `enforce` has no way to report it.
    fault: Option<RecordError>,
}

impl<F: PrimeField> RecordingCs<F> {
    /// Records a circuit: ONE, then what `synthesize` allocates and enforces, then the input rows.
    ///
    /// # Errors
    /// [`RecordError`]: the circuit's own error, or a reference to a variable that does not exist.
    pub fn record<C: Circuit<F>>(circuit: C) -> Result<R1cs<F>, RecordError> {
        let mut cs = Self::new();
        cs.alloc_input(|| "ONE", || Ok(F::ONE))?;
        circuit.synthesize(&mut cs)?;
        cs.into_r1cs()
    }

    /// Number of constraints so far.
    pub fn n_constraints(&self) -> usize {
        self.a.n_rows()
    }

    /// Appends the rows `x_i · 0 = 0` for all inputs and finishes the matrices.
    ///
    /// # Errors
    /// [`RecordError::UnknownVariable`] when a constraint referred to one; [`RecordError::System`] when ONE was
    /// never allocated or there are more than 2³² - 1 variables.
    pub fn into_r1cs(mut self) -> Result<R1cs<F>, RecordError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        // Below MAX_VARIABLES, as `alloc_input` made sure.
        for input in 0..self.n_inputs as u32 {
            self.a.push_row([(input, F::ONE)]);
            self.b.push_row([]);
            self.c.push_row([]);
        }
        let n_cols = self.n_inputs + self.n_aux;
        let shift = self.n_inputs as u32;
        let finish = |matrix, mut builder: MatrixBuilder<F>| {
            builder.columns_mut().par_iter_mut().for_each(|column| {
                if *column & AUX_TAG != 0 {
                    // Wraps only when n_cols is more than `finish` accepts.
                    *column = (*column ^ AUX_TAG).wrapping_add(shift);
                }
            });
            builder.finish(n_cols).map_err(|source| R1csError::Matrix { matrix, source })
        };
        let (a, b, c) = (finish('A', self.a)?, finish('B', self.b)?, finish('C', self.c)?);
        Ok(R1cs::from_parts(self.n_inputs, a, b, c)?)
    }

    /// Reports the first variable of `lc` that has not been allocated.
    fn check_variables(&mut self, lc: &LinearCombination<F>) {
        for (kind, largest, allocated) in [
            ("input", lc.iter_inputs().map(|(&i, _)| i).max(), self.n_inputs),
            ("auxiliary", lc.iter_aux().map(|(&i, _)| i).max(), self.n_aux),
        ] {
            if let Some(index) = largest
                && index >= allocated
                && self.fault.is_none()
            {
                let constraint = self.n_constraints();
                self.fault = Some(RecordError::UnknownVariable { constraint, kind, index, allocated });
            }
        }
    }
}

/// The terms of `lc` with tagged columns; every index is below [`MAX_VARIABLES`].
fn tagged<F: PrimeField>(lc: &LinearCombination<F>) -> impl Iterator<Item = (u32, F)> + '_ {
    let inputs = lc.iter_inputs().map(|(&i, &coeff)| (i as u32, coeff));
    let aux = lc.iter_aux().map(|(&i, &coeff)| (i as u32 | AUX_TAG, coeff));
    inputs.chain(aux)
}

/// The next index of a kind of variable of which `count` exist.
fn next_index(count: &mut usize) -> Result<usize, SynthesisError> {
    let index = *count;
    if index == MAX_VARIABLES {
        return Err(SynthesisError::PolynomialDegreeTooLarge);
    }
    *count += 1;
    Ok(index)
}

impl<F: PrimeField> ConstraintSystem<F> for RecordingCs<F> {
    type Root = Self;

    fn new() -> Self {
        Self {
            a: MatrixBuilder::new(),
            b: MatrixBuilder::new(),
            c: MatrixBuilder::new(),
            n_inputs: 0,
            n_aux: 0,
            fault: None,
        }
    }

    fn alloc<Value, A, AR>(&mut self, _: A, _: Value) -> Result<Variable, SynthesisError>
    where
        Value: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(Variable(Index::Aux(next_index(&mut self.n_aux)?)))
    }

    fn alloc_input<Value, A, AR>(&mut self, _: A, _: Value) -> Result<Variable, SynthesisError>
    where
        Value: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        Ok(Variable(Index::Input(next_index(&mut self.n_inputs)?)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
    {
        let a = a(LinearCombination::zero());
        let b = b(LinearCombination::zero());
        let c = c(LinearCombination::zero());
        for lc in [&a, &b, &c] {
            self.check_variables(lc);
        }
        // Nothing more to record: `into_r1cs` reports the fault, and unknown variables have no column.
        if self.fault.is_some() {
            return;
        }
        self.a.push_row(tagged(&a));
        self.b.push_row(tagged(&b));
        self.c.push_row(tagged(&c));
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_end_before_the_tag_bit() {
        let mut count = MAX_VARIABLES - 1;
        assert_eq!(next_index(&mut count).expect("the last one"), MAX_VARIABLES - 1);
        let error = next_index(&mut count).expect_err("one too many");
        assert!(matches!(error, SynthesisError::PolynomialDegreeTooLarge), "{error}");
    }
}
