//! What can go wrong in the proof system, with the numbers.

use cuzk_backend::BackendError;
use cuzk_keys::{KeyError, Section};
use cuzk_r1cs::RecordError;

/// Why a proof could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The device failed or refused.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The key could not be read.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key is another circuit's.
    #[error(
        "the key's section {section} has {actual} points, but the circuit needs {expected}: it is another circuit's key"
    )]
    KeyMismatch {
        /// Which section.
        section: Section,
        /// Points that the circuit needs.
        expected: u64,
        /// Points that the key has.
        actual: u64,
    },
    /// The key is for another number of public inputs.
    #[error("the verifying key has {actual} points for inputs, but the circuit has {expected} inputs (ONE included)")]
    InputMismatch {
        /// Inputs of the circuit, ONE included.
        expected: usize,
        /// Points of the key.
        actual: usize,
    },
    /// The assignment is another circuit's.
    #[error("the assignment has {actual} variables, but the circuit has {expected}")]
    AssignmentMismatch {
        /// Variables of the circuit.
        expected: u64,
        /// Variables of the assignment.
        actual: u64,
    },
    /// The verifying half of the key is malformed.
    #[error(transparent)]
    BadKey(VerifyError),
    /// The proof was not wanted any more.
    #[error("the proof was cancelled")]
    Cancelled,
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system: {0}")]
    Randomness(String),
    /// The finished proof does not verify: the witness does not satisfy the circuit, the key is not this circuit's, or the
    /// device computed wrongly. The proof is not handed out.
    #[error("the proof failed its own verification: {0}")]
    SelfCheck(VerifyError),
}

/// Why a key could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The device failed or refused.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The circuit could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The domain that the circuit needs does not exist.
    #[error("{constraints} constraints need a domain of 2^{log_n}, but the field has none above 2^{limit}")]
    DomainTooLarge {
        /// Constraints of the circuit, input constraints included.
        constraints: usize,
        /// Binary logarithm of the domain's size.
        log_n: u32,
        /// Binary logarithm of the largest domain.
        limit: u32,
    },
    /// A variable occurs in no constraint: whatever value it has, the proof is the same.
    #[error("{count} variables occur in no constraint, the first is aux variable {first}")]
    Unconstrained {
        /// The first of them, among the aux variables.
        first: usize,
        /// How many.
        count: usize,
    },
    /// τ is one of the domain's points; happens with negligible probability.
    #[error("the drawn τ lies in the domain")]
    TauInDomain,
    /// The operating system gave no randomness.
    #[error("no randomness from the operating system: {0}")]
    Randomness(String),
}

/// Why a proof is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Too few or too many public inputs.
    #[error("{actual} public inputs given, the verifying key is for {expected}")]
    InputCount {
        /// Inputs of the key, ONE not counted.
        expected: usize,
        /// Inputs given.
        actual: usize,
    },
    /// A public input is not below r: it would be an alias of another input.
    #[error("public input {index} is not below the scalar field's modulus")]
    InputNotCanonical {
        /// Its number, from 0.
        index: usize,
    },
    /// The proof's length is wrong.
    #[error("the proof has {actual} bytes, expected {expected}")]
    ProofLength {
        /// Bytes of as many proofs as were expected.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A point of the proof is not a point of its group.
    #[error("the proof's {element} is {reason}")]
    BadPoint {
        /// `A`, `B` or `C`.
        element: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A point of the verifying key is not a point of its group, or is infinity.
    #[error("the verifying key's {element} is {reason}")]
    BadKey {
        /// Which one.
        element: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The numbers of proofs and of input vectors differ.
    #[error("{proofs} proofs, but {inputs} vectors of public inputs")]
    BatchLength {
        /// Proofs given.
        proofs: usize,
        /// Input vectors given.
        inputs: usize,
    },
    /// Everything is well-formed, and the pairing equation does not hold: the statement is not proved.
    #[error("the pairing equation does not hold")]
    Invalid,
    /// The operating system gave no randomness for a batch's weights.
    #[error("no randomness from the operating system: {0}")]
    Randomness(String),
}
