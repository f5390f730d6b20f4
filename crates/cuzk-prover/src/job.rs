//! A statement as a job of an engine.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use blstrs::Scalar as Fr;
use cuzk_curve::Bls12;
use cuzk_engine::{SourceError, WitnessContext, Workload};
use cuzk_filecoin::{CircuitId, Partition, Statement};
use cuzk_r1cs::Assignment;

/// Where a statement comes from when its turn has come.
pub trait StatementSource: Send + Sync {
    /// Reads and checks it. Called again after faults.
    ///
    /// # Errors
    /// It cannot be read, or is not what it was.
    fn read(&self) -> Result<Statement, SourceError>;
}

impl<F: Fn() -> Result<Statement, SourceError> + Send + Sync> StatementSource for F {
    fn read(&self) -> Result<Statement, SourceError> {
        self()
    }
}

/// What is held of a statement that comes from a source.
#[derive(Default)]
struct Held {
    statement: Option<Arc<Statement>>,
    /// Partitions whose witness was made.
    made: BTreeSet<u32>,
}

/// A statement's partitions, to be proved. The statement is read when the first witness is made, and dropped when all
/// are: jobs that wait or are on a device take no memory for it.
pub struct FilecoinJob {
    name: Option<String>,
    circuit: CircuitId,
    partitions: u32,
    source: Box<dyn StatementSource>,
    held: Mutex<Held>,
}

impl FilecoinJob {
    /// A statement that is in memory, and stays.
    pub fn of(statement: Statement) -> Self {
        let (circuit, partitions) = (statement.circuit_id(), statement.partitions() as u32);
        Self::from_source(circuit, partitions, move || Ok(statement.clone()))
    }

    /// A statement that is read when it is needed: of this circuit, with so many partitions.
    pub fn from_source(circuit: CircuitId, partitions: u32, source: impl StatementSource + 'static) -> Self {
        Self { name: None, circuit, partitions, source: Box::new(source), held: Mutex::default() }
    }

    /// The same job under a name for logs and timelines.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    fn partition(&self, index: u32) -> Result<Partition, SourceError> {
        // Held while it is read: the other partitions wait for it instead of reading it as well.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let statement = match &held.statement {
            Some(statement) => Arc::clone(statement),
            None => {
                let statement = self.source.read()?;
                let (circuit, partitions) = (statement.circuit_id(), statement.partitions());
                if circuit != self.circuit || partitions != self.partitions as usize {
                    let expected = (self.circuit, self.partitions);
                    return Err(format!(
                        "the statement is {circuit} with {partitions} partitions, it was {} with {}",
                        expected.0, expected.1
                    )
                    .into());
                }
                Arc::clone(held.statement.insert(Arc::new(statement)))
            }
        };
        drop(held);
        Ok(statement.partition(index as usize)?)
    }

    fn witness_made(&self, index: u32) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.made.insert(index);
        if held.made.len() == self.partitions as usize {
            held.statement = None;
        }
    }
}

impl std::fmt::Debug for FilecoinJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FilecoinJob({}, {} partitions)", self.circuit, self.partitions)
    }
}

impl Workload<Bls12> for FilecoinJob {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn partitions(&self) -> u32 {
        self.partitions
    }

    fn witness(&self, partition: u32, context: &mut WitnessContext<Fr>) -> Result<Assignment<Fr>, SourceError> {
        let witness = self.partition(partition)?.witness_reusing(context.take_used())?;
        self.witness_made(partition);
        Ok(witness)
    }
}
