//! Naming the constraint that a circuit does not satisfy.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

use crate::check::Unsatisfied;
use crate::packed::PackedScalars;

/// A constraint that does not hold, with its place in the circuit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {unsatisfied}")]
pub struct NamedUnsatisfied<F: std::fmt::Debug> {
    /// Namespaces and annotation, joined by `/`.
    pub path: String,
    /// Number and values of the constraint.
    pub unsatisfied: Unsatisfied<F>,
}

/// Why [`check_circuit`] does not accept a circuit.
#[derive(Debug, thiserror::Error)]
pub enum CheckCircuitError<F: std::fmt::Debug> {
    /// The circuit itself reported an error. If a constraint had failed before, that is reported instead.
    #[error("the circuit could not be synthesized: {0}")]
    Synthesis(#[from] SynthesisError),
    /// The first constraint that does not hold.
    #[error("{0}")]
    Unsatisfied(NamedUnsatisfied<F>),
    /// A constraint refers to a variable that had not been allocated.
    #[error("{path}: refers to a variable that has not been allocated")]
    UnknownVariable {
        /// Namespaces and annotation, joined by `/`.
        path: String,
    },
}

/// What is wrong with the first constraint that is not in order.
#[derive(Debug)]
enum Failure<F: std::fmt::Debug> {
    Unsatisfied(NamedUnsatisfied<F>),
    UnknownVariable { path: String },
}

/// A constraint system that computes values, evaluates each constraint at once, and remembers the path of
/// the first one that does not hold: the slow mode that explains an index found by [`check`](crate::check).
///
/// It is neither extensible nor a witness generator, so that constraints are numbered as
/// [`RecordingCs`](crate::RecordingCs) numbers them. Values are kept packed; namespaces cost a string each.
#[derive(Debug)]
pub struct NamingCs<F: PrimeField> {
    inputs: Vec<F>,
    aux: PackedScalars<F>,
    namespaces: Vec<String>,
    n_constraints: usize,
    failure: Option<Failure<F>>,
}

/// Runs a circuit with its witness and checks every constraint.
///
/// # Errors
/// [`CheckCircuitError::Unsatisfied`] with number, path and values of the first constraint that does not
/// hold; otherwise the circuit's own error, if any.
pub fn check_circuit<F: PrimeField, C: Circuit<F>>(circuit: C) -> Result<(), CheckCircuitError<F>> {
    let mut cs = NamingCs::new();
    cs.alloc_input(|| "ONE", || Ok(F::ONE))?;
    let synthesized = circuit.synthesize(&mut cs);
    match cs.failure {
        Some(Failure::Unsatisfied(unsatisfied)) => Err(CheckCircuitError::Unsatisfied(unsatisfied)),
        Some(Failure::UnknownVariable { path }) => Err(CheckCircuitError::UnknownVariable { path }),
        None => Ok(synthesized?),
    }
}

impl<F: PrimeField> NamingCs<F> {
    /// The first constraint so far that does not hold.
    pub fn first_unsatisfied(&self) -> Option<&NamedUnsatisfied<F>> {
        match &self.failure {
            Some(Failure::Unsatisfied(unsatisfied)) => Some(unsatisfied),
            _ => None,
        }
    }

    /// Number of constraints so far.
    pub fn n_constraints(&self) -> usize {
        self.n_constraints
    }

    /// Value of a linear combination; `None` when it contains an unknown variable.
    fn evaluate(&self, lc: &LinearCombination<F>) -> Option<F> {
        let mut sum = F::ZERO;
        for (variable, coeff) in lc.iter() {
            let value = match variable.get_unchecked() {
                Index::Input(i) => self.inputs.get(i).copied(),
                Index::Aux(i) => self.aux.get(i),
            };
            sum += value? * coeff;
        }
        Some(sum)
    }

    fn path(&self, annotation: String) -> String {
        let mut path = self.namespaces.join("/");
        if !path.is_empty() {
            path.push('/');
        }
        path + &annotation
    }
}

impl<F: PrimeField> ConstraintSystem<F> for NamingCs<F> {
    type Root = Self;

    fn new() -> Self {
        Self { inputs: Vec::new(), aux: PackedScalars::new(), namespaces: Vec::new(), n_constraints: 0, failure: None }
    }

    fn alloc<Value, A, AR>(&mut self, _: A, value: Value) -> Result<Variable, SynthesisError>
    where
        Value: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<Value, A, AR>(&mut self, _: A, value: Value) -> Result<Variable, SynthesisError>
    where
        Value: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
    {
        let index = self.n_constraints;
        self.n_constraints += 1;
        if self.failure.is_some() {
            return;
        }
        let a = self.evaluate(&a(LinearCombination::zero()));
        let b = self.evaluate(&b(LinearCombination::zero()));
        let c = self.evaluate(&c(LinearCombination::zero()));
        self.failure = match (a, b, c) {
            (Some(a), Some(b), Some(c)) if a * b == c => None,
            (Some(a), Some(b), Some(c)) => Some(Failure::Unsatisfied(NamedUnsatisfied {
                path: self.path(annotation().into()),
                unsatisfied: Unsatisfied { index, a, b, c },
            })),
            _ => Some(Failure::UnknownVariable { path: self.path(annotation().into()) }),
        };
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        self.namespaces.push(name().into());
    }

    fn pop_namespace(&mut self) {
        self.namespaces.pop();
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}
