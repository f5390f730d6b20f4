//! Generating an assignment by running a circuit.

use bellpepper_core::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

use crate::assignment::{Assignment, AssignmentError};
use crate::packed::{PackedScalars, Room};

/// Why running a circuit gave no assignment.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The circuit itself reported an error, for instance a missing value.
    #[error("the witness could not be generated: {0}")]
    Synthesis(#[from] SynthesisError),
    /// The values do not form an assignment, for instance because ONE was never allocated.
    #[error(transparent)]
    Assignment(#[from] AssignmentError),
}

/// A constraint system that computes the assignment only, straight into the packed form.
///
/// Constraints are ignored, their closures never called. It is extensible (circuits that can do so
/// synthesize their parts in parallel and join them with `extend`) and a witness generator (gadgets
/// that can do so, such as Poseidon's, write their values without building linear combinations).
///
/// `ConstraintSystem::new()` starts **empty**, without ONE: circuits that synthesize parts in parallel
/// allocate a temporary ONE in each of them, and `extend` skips that first input of the part. The caller
/// allocates ONE as the first input of the whole; [`generate`](Self::generate) does it, and
/// [`finish`](Self::finish) refuses an assignment without it.
///
/// `aux_slice` is not available (there is no slice of all values, that is the point) and panics like any method
/// that a constraint system leaves to the trait; `inputs_slice` is.
///
/// ```
/// use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
/// use blstrs::Scalar;
/// use cuzk_r1cs::WitnessCs;
///
/// /// Knows a square root of the input.
/// struct Root(Option<Scalar>);
///
/// impl Circuit<Scalar> for Root {
///     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
///         let root = self.0.ok_or(SynthesisError::AssignmentMissing);
///         let y = cs.alloc_input(|| "y", || root.map(|x| x * x))?;
///         let root = self.0.ok_or(SynthesisError::AssignmentMissing);
///         let x = cs.alloc(|| "x", || root)?;
///         cs.enforce(|| "x * x = y", |lc| lc + x, |lc| lc + x, |lc| lc + y);
///         Ok(())
///     }
/// }
///
/// let w = WitnessCs::generate(Root(Some(Scalar::from(5))))?;
/// assert_eq!(w.iter().collect::<Vec<_>>(), [1, 25, 5].map(Scalar::from));
/// assert!(WitnessCs::generate(Root(None)).is_err());
/// # Ok::<(), cuzk_r1cs::WitnessError>(())
/// ```
#[derive(Clone, Debug)]
pub struct WitnessCs<F> {
    inputs: Vec<F>,
    aux: PackedScalars<F>,
    /// Values handed out for writing by `allocate_empty`. They are complete when the borrow ends, that
    /// is at the next call, which packs them first.
    pending: Vec<F>,
    /// Of the memory that was taken over; kept even where less is needed.
    room: Room,
}

impl<F: PrimeField> WitnessCs<F> {
    /// Runs a circuit: ONE, then what `synthesize` allocates.
    ///
    /// # Errors
    /// [`WitnessError`]: the circuit's own error, or too many variables.
    pub fn generate<C: Circuit<F>>(circuit: C) -> Result<Assignment<F>, WitnessError> {
        Self::generate_reusing(circuit, None)
    }

    /// As [`generate`](Self::generate), in the memory of an assignment that is not needed any more: as long as its
    /// arrays are long enough, no other large ones are allocated, except for parts that a circuit synthesizes in
    /// parallel. The result keeps that memory, for the next one.
    ///
    /// ```
    /// # use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
    /// # use blstrs::Scalar;
    /// # use cuzk_r1cs::WitnessCs;
    /// # struct Numbers(u64);
    /// # impl Circuit<Scalar> for Numbers {
    /// #     fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
    /// #         (0..self.0).try_for_each(|n| cs.alloc(|| "", || Ok(Scalar::from(n))).map(drop))
    /// #     }
    /// # }
    /// // `Numbers(n)` is a circuit with n variables.
    /// let first = WitnessCs::generate(Numbers(1000))?;
    /// let (values, memory) = (first.clone(), first.wide_scalars().as_ptr());
    /// let again = WitnessCs::generate_reusing(Numbers(1000), Some(first))?;
    /// assert_eq!(again, values);
    /// assert_eq!(again.wide_scalars().as_ptr(), memory);
    /// # Ok::<(), cuzk_r1cs::WitnessError>(())
    /// ```
    ///
    /// # Errors
    /// As [`generate`](Self::generate).
    pub fn generate_reusing<C: Circuit<F>>(
        circuit: C,
        used: Option<Assignment<F>>,
    ) -> Result<Assignment<F>, WitnessError> {
        let mut cs = used.map_or_else(Self::new, Self::reusing);
        cs.alloc_input(|| "ONE", || Ok(F::ONE))?;
        circuit.synthesize(&mut cs)?;
        Ok(cs.finish()?)
    }

    /// Empty, as `ConstraintSystem::new()`, in the memory of an assignment that is not needed any more.
    pub fn reusing(used: Assignment<F>) -> Self {
        let aux = PackedScalars::reusing(used);
        let room = aux.room();
        Self { inputs: Vec::new(), aux, pending: Vec::new(), room }
    }

    /// Number of inputs so far, counting ONE once it is allocated.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Number of auxiliary variables so far.
    pub fn n_aux(&self) -> usize {
        self.aux.len() + self.pending.len()
    }

    /// The auxiliary variables so far, for native generators that append values without closures.
    pub fn aux_mut(&mut self) -> &mut PackedScalars<F> {
        self.pack_pending();
        &mut self.aux
    }

    /// The assignment.
    ///
    /// # Errors
    /// [`AssignmentError::VariableZero`] when the first input is missing or not 1,
    /// [`AssignmentError::TooManyVariables`].
    pub fn finish(mut self) -> Result<Assignment<F>, AssignmentError> {
        self.pack_pending();
        Assignment::from_packed_keeping(&self.inputs, self.aux, self.room)
    }

    #[inline]
    fn pack_pending(&mut self) {
        if !self.pending.is_empty() {
            self.aux.extend(self.pending.drain(..));
        }
    }
}

impl<F: PrimeField> ConstraintSystem<F> for WitnessCs<F> {
    type Root = Self;

    fn new() -> Self {
        Self { inputs: Vec::new(), aux: PackedScalars::new(), pending: Vec::new(), room: Room::default() }
    }

    #[inline]
    fn alloc<Value, A, AR>(&mut self, _: A, value: Value) -> Result<Variable, SynthesisError>
    where
        Value: FnOnce() -> Result<F, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let value = value()?;
        self.pack_pending();
        let index = self.aux.len();
        self.aux.push(value);
        Ok(Variable(Index::Aux(index)))
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

    #[inline]
    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LB: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
        LC: FnOnce(LinearCombination<F>) -> LinearCombination<F>,
    {
    }

    #[inline]
    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    #[inline]
    fn pop_namespace(&mut self) {}

    #[inline]
    fn get_root(&mut self) -> &mut Self::Root {
        self
    }

    fn is_extensible() -> bool {
        true
    }

    fn extend(&mut self, other: &Self) {
        self.pack_pending();
        // Input 0 of a part is its temporary ONE.
        self.inputs.extend(other.inputs.iter().skip(1));
        self.aux.append(&other.aux);
        self.aux.extend(other.pending.iter().copied());
    }

    fn is_witness_generator(&self) -> bool {
        true
    }

    fn extend_inputs(&mut self, new_inputs: &[F]) {
        self.inputs.extend_from_slice(new_inputs);
    }

    fn extend_aux(&mut self, new_aux: &[F]) {
        self.pack_pending();
        self.aux.extend(new_aux.iter().copied());
    }

    fn allocate_empty(&mut self, aux_n: usize, inputs_n: usize) -> (&mut [F], &mut [F]) {
        self.pack_pending();
        self.pending.resize(aux_n, F::ZERO);
        let start = self.inputs.len();
        self.inputs.resize(start + inputs_n, F::ZERO);
        (&mut self.pending, &mut self.inputs[start..])
    }

    fn allocate_empty_inputs(&mut self, n: usize) -> &mut [F] {
        self.allocate_empty(0, n).1
    }

    fn allocate_empty_aux(&mut self, n: usize) -> &mut [F] {
        self.allocate_empty(n, 0).0
    }

    fn inputs_slice(&self) -> &[F] {
        &self.inputs
    }
}
