//! What an engine is given: circuits with their keys, and jobs.

use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cuzk_backend::AssignmentShape;
use cuzk_curve::Curve;
use cuzk_groth16::{CircuitShape, ProveError, Randomness};
use cuzk_keys::KeySource;
use cuzk_r1cs::{Assignment, R1cs};

/// An error of a circuit or a job, whatever it is. Its text ends up in [`Fault`](cuzk_scheduler::Fault)s and replay
/// bundles, so it must not contain secrets.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// A circuit together with its proving key: where they come from. What is loaded when, and where it stays, is the
/// engine's business.
pub trait CircuitSource<C: Curve>: Send + Sync {
    /// A name for people.
    fn name(&self) -> &str;

    /// The recorded constraint system. Called when the circuit is registered, and whenever the engine brings the
    /// matrices to the host's memory, from where devices get them.
    ///
    /// # Errors
    /// It cannot be had.
    fn r1cs(&self) -> Result<Arc<R1cs<C::Fr>>, SourceError>;

    /// The proving key, called for each device that it is loaded to.
    ///
    /// # Errors
    /// It cannot be had.
    fn key(&self) -> Result<Arc<dyn KeySource<C>>, SourceError>;

    /// The sizes that no assignment exceeds: memory is reserved for these, and a larger witness is a fault of its
    /// job. By default everything may be wide, which for circuits of bits is forty times what is needed.
    fn assignment(&self, circuit: &CircuitShape) -> AssignmentShape {
        circuit.any_assignment()
    }

    /// Bytes of host memory that making a witness takes at its peak, the finished one included. By default twice the
    /// finished one.
    fn synthesis_bytes(&self, finished: u64) -> u64 {
        finished.saturating_mul(2)
    }
}

impl<C: Curve, T: CircuitSource<C> + ?Sized> CircuitSource<C> for Arc<T> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn r1cs(&self) -> Result<Arc<R1cs<C::Fr>>, SourceError> {
        (**self).r1cs()
    }

    fn key(&self) -> Result<Arc<dyn KeySource<C>>, SourceError> {
        (**self).key()
    }

    fn assignment(&self, circuit: &CircuitShape) -> AssignmentShape {
        (**self).assignment(circuit)
    }

    fn synthesis_bytes(&self, finished: u64) -> u64 {
        (**self).synthesis_bytes(finished)
    }
}

/// A circuit and a key that are in memory already.
pub struct LoadedCircuit<C: Curve> {
    name: String,
    r1cs: Arc<R1cs<C::Fr>>,
    key: Arc<dyn KeySource<C>>,
}

impl<C: Curve> LoadedCircuit<C> {
    /// Under a name for people.
    pub fn new(name: &str, r1cs: R1cs<C::Fr>, key: impl KeySource<C> + 'static) -> Self {
        Self { name: name.to_owned(), r1cs: Arc::new(r1cs), key: Arc::new(key) }
    }
}

impl<C: Curve> CircuitSource<C> for LoadedCircuit<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn r1cs(&self) -> Result<Arc<R1cs<C::Fr>>, SourceError> {
        Ok(Arc::clone(&self.r1cs))
    }

    fn key(&self) -> Result<Arc<dyn KeySource<C>>, SourceError> {
        Ok(Arc::clone(&self.key))
    }
}

/// A job: the witnesses of one or more proofs of one circuit. Its methods are called on the engine's threads, and may
/// panic there.
pub trait Workload<C: Curve>: Send + Sync {
    /// What its owner calls it, in logs and timelines. `None`: its number stands for it.
    fn name(&self) -> Option<&str> {
        None
    }

    /// How many partitions it has; the same at every call.
    fn partitions(&self) -> u32;

    /// Makes the witness of a partition, from 0. Called again after faults that cost the witness, so it must not
    /// depend on being called once. What it does in parallel with rayon stays in a pool of its own.
    ///
    /// # Errors
    /// There is none: the job fails with this cause.
    fn witness(&self, partition: u32, context: &mut WitnessContext<C::Fr>) -> Result<Assignment<C::Fr>, SourceError>;

    /// r and s of a partition's proof; by default from the operating system, and nobody who wants zero knowledge does
    /// anything else.
    ///
    /// # Errors
    /// The operating system has none.
    fn randomness(&self, partition: u32) -> Result<Randomness<C::Fr>, ProveError> {
        let _ = partition;
        Randomness::from_os()
    }

    /// The inputs, in a form from which the job can be made again, for a replay bundle. `None`: they are not to be
    /// stored.
    fn replay_inputs(&self) -> Option<Vec<u8>> {
        None
    }
}

impl<C: Curve, T: Workload<C> + ?Sized> Workload<C> for Arc<T> {
    fn name(&self) -> Option<&str> {
        (**self).name()
    }

    fn partitions(&self) -> u32 {
        (**self).partitions()
    }

    fn witness(&self, partition: u32, context: &mut WitnessContext<C::Fr>) -> Result<Assignment<C::Fr>, SourceError> {
        (**self).witness(partition, context)
    }

    fn randomness(&self, partition: u32) -> Result<Randomness<C::Fr>, ProveError> {
        (**self).randomness(partition)
    }

    fn replay_inputs(&self) -> Option<Vec<u8>> {
        (**self).replay_inputs()
    }
}

/// A job made of a function from the number of a partition to its witness. See [`ReusingWitnesses`] for circuits that
/// are large.
pub struct Witnesses<F> {
    partitions: u32,
    witness: F,
}

impl<F> Witnesses<F> {
    /// That many partitions.
    pub fn new(partitions: u32, witness: F) -> Self {
        Self { partitions, witness }
    }
}

impl<C, E, F> Workload<C> for Witnesses<F>
where
    C: Curve,
    E: Into<SourceError>,
    F: Fn(u32) -> Result<Assignment<C::Fr>, E> + Send + Sync,
{
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn witness(&self, partition: u32, _: &mut WitnessContext<C::Fr>) -> Result<Assignment<C::Fr>, SourceError> {
        (self.witness)(partition).map_err(Into::into)
    }
}

/// A job made of a function from the number of a partition, and the memory of an assignment that has been proved, to
/// its witness:
///
/// ```
/// # use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
/// # use blstrs::Scalar;
/// # use cuzk_curve::Bls12;
/// # use cuzk_engine::{ReusingWitnesses, Workload};
/// # use cuzk_r1cs::WitnessCs;
/// # struct MyCircuit(u32);
/// # impl Circuit<Scalar> for MyCircuit {
/// #     fn synthesize<CS: ConstraintSystem<Scalar>>(self, _: &mut CS) -> Result<(), SynthesisError> {
/// #         Ok(())
/// #     }
/// # }
/// # fn is_a_job(_: impl Workload<Bls12>) {}
/// let job = ReusingWitnesses::new(10, |index, used| WitnessCs::generate_reusing(MyCircuit(index), used));
/// # is_a_job(job);
/// ```
pub struct ReusingWitnesses<F> {
    partitions: u32,
    witness: F,
}

impl<F> ReusingWitnesses<F> {
    /// That many partitions.
    pub fn new<S, E>(partitions: u32, witness: F) -> Self
    where
        F: Fn(u32, Option<Assignment<S>>) -> Result<Assignment<S>, E>,
    {
        Self { partitions, witness }
    }
}

impl<C, E, F> Workload<C> for ReusingWitnesses<F>
where
    C: Curve,
    E: Into<SourceError>,
    F: Fn(u32, Option<Assignment<C::Fr>>) -> Result<Assignment<C::Fr>, E> + Send + Sync,
{
    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn witness(&self, partition: u32, context: &mut WitnessContext<C::Fr>) -> Result<Assignment<C::Fr>, SourceError> {
        (self.witness)(partition, context.take_used()).map_err(Into::into)
    }
}

/// What the engine offers to whoever makes a witness.
pub struct WitnessContext<F> {
    pub(crate) cancel: Cancel,
    pub(crate) used: Option<Assignment<F>>,
    pub(crate) peak_bytes: Option<u64>,
}

impl<F> WitnessContext<F> {
    /// Whether the result is not wanted any more. To be asked now and then by whoever takes long; what is returned
    /// then does not matter.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_set()
    }

    /// Says how much host memory the making took at its peak, the witness included: whoever makes it knows what it
    /// allocated, nobody else can tell it from what happens beside it. The engine reserves so much for the next ones,
    /// instead of [`CircuitSource::synthesis_bytes`], and chooses the number of workers by it.
    pub fn report_bytes(&mut self, peak: u64) {
        self.peak_bytes = Some(self.peak_bytes.map_or(peak, |most| most.max(peak)));
    }

    /// An assignment of the same circuit that has been proved, for the sake of its memory, to be given to
    /// [`WitnessCs::generate_reusing`](cuzk_r1cs::WitnessCs::generate_reusing); `None` if none was kept. What is not
    /// taken is freed.
    pub fn take_used(&mut self) -> Option<Assignment<F>> {
        self.used.take()
    }
}

impl<F> fmt::Debug for WitnessContext<F> {
    /// Without values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WitnessContext(cancelled: {})", self.is_cancelled())
    }
}

/// Tells work that it is not wanted any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
