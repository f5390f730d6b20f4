//! Errors: what was wrong, where, and both numbers.

use std::{
    fmt,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
};

use blstrs::Scalar as Fr;
use cuzk_r1cs::{CheckCircuitError, RecordError, WitnessError};

use crate::{CircuitId, ProofKind};

/// Why a statement, a partition or a proof was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilecoinError {
    /// The sector size is none of the five registered ones.
    #[error(
        "sector size {bytes} is not registered: expected 2048, 8388608, 536870912, 34359738368 or \
         68719476736 bytes"
    )]
    UnknownSectorSize {
        /// The size given, in bytes.
        bytes: u64,
    },

    /// A circuit's name is not of the form `<kind>-<size>`.
    #[error(
        "{text:?} names no circuit: expected porep, snap, wpost or winning, then '-' and 2k, 8m, \
         512m, 32g or 64g"
    )]
    UnknownCircuitId {
        /// The name given.
        text: String,
    },

    /// A registered proof number of the chain is none of the expected kind.
    #[error("{number} is no registered {expected} proof")]
    UnknownRegisteredProof {
        /// The chain's number.
        number: u64,
        /// The kind that was asked for.
        expected: &'static str,
    },

    /// JSON that does not parse, lacks a key, repeats one or holds a wrong type.
    #[error("{place}: {source}")]
    Json {
        /// Which JSON text.
        place: &'static str,
        /// Line, column and reason.
        source: serde_json::Error,
    },

    /// Text that is not standard padded base64.
    #[error("{place}: {source}")]
    Base64 {
        /// Which text.
        place: String,
        /// Offset and reason.
        source: base64::DecodeError,
    },

    /// Bytes that are not the bincode of a vanilla proof: cut short, too long, or a count that the
    /// remaining bytes cannot hold.
    #[error("{place} ({bytes} bytes): {source}")]
    Bincode {
        /// Which vanilla proof.
        place: String,
        /// Its length in bytes.
        bytes: usize,
        /// Reason.
        source: bincode::Error,
    },

    /// The file declares one sector size and its proof type has another.
    #[error("{place} is {found} bytes, but {proof} has sectors of {expected} bytes")]
    SectorSizeMismatch {
        /// Where the size stands.
        place: &'static str,
        /// The registered proof that determines the size.
        proof: String,
        /// Size by the registered proof, in bytes.
        expected: u64,
        /// Size declared, in bytes.
        found: u64,
    },

    /// The vanilla proofs are well formed but cannot be those of this statement.
    #[error("{place}: {source}")]
    Invalid {
        /// Which value, from partition down to tree and level.
        place: String,
        /// What is wrong with it.
        source: Fault,
    },

    /// A partition that the statement does not have.
    #[error("partition {index} does not exist: the statement has {partitions}")]
    PartitionOutOfRange {
        /// The index asked for.
        index: usize,
        /// How many there are.
        partitions: usize,
    },

    /// A circuit was asked for over another kind of statement.
    #[error("the partition is of {found}, not {expected}")]
    WrongKind {
        /// The kind asked for.
        expected: ProofKind,
        /// The circuit that the partition belongs to.
        found: CircuitId,
    },

    /// A circuit was asked for over another tree shape than that of its sector size.
    #[error("{circuit} has trees of arities {expected:?}, not {found:?}")]
    WrongShape {
        /// The circuit.
        circuit: CircuitId,
        /// Arities (base, sub, top) of its sector size.
        expected: (usize, usize, usize),
        /// Arities of the type parameter.
        found: (usize, usize, usize),
    },

    /// The circuit's matrices could not be recorded.
    #[error("{circuit}: {source}")]
    Record {
        /// The circuit.
        circuit: CircuitId,
        /// Reason.
        source: RecordError,
    },

    /// The values of a circuit's variables make no assignment.
    #[error("{circuit}, partition {partition}: {source}")]
    Witness {
        /// The circuit.
        circuit: CircuitId,
        /// Index of the partition.
        partition: usize,
        /// Reason.
        source: WitnessError,
    },

    /// A constraint of the circuit does not hold.
    #[error("{circuit}, partition {partition}: {source}")]
    Unsatisfied {
        /// The circuit.
        circuit: CircuitId,
        /// Index of the partition.
        partition: usize,
        /// Which constraint, and its values.
        source: Box<CheckCircuitError<Fr>>,
    },

    /// A published storage-proofs function returned an error.
    #[error("{call}: {message}")]
    Published {
        /// The function.
        call: &'static str,
        /// Its error with all its causes.
        message: String,
    },

    /// A published storage-proofs function panicked on input that passed every check here.
    #[error("{call} panicked: {message}")]
    Panicked {
        /// The function.
        call: &'static str,
        /// The panic's message.
        message: String,
    },

    /// A SNARK of the wrong length.
    #[error("the proof has {found} bytes: {partitions} partitions of 192 bytes are {expected}")]
    ProofLength {
        /// Partitions of the statement.
        partitions: usize,
        /// 192 bytes a partition.
        expected: usize,
        /// Bytes given.
        found: usize,
    },

    /// Filecoin's verifier needs a verifying key that is not in its parameter cache.
    #[error(
        "verifying key {path:?} is missing: put it there, or set FIL_PROOFS_PARAMETER_CACHE before \
         the first use of the verifier"
    )]
    VerifyingKeyMissing {
        /// Where the verifier looks.
        path: PathBuf,
    },

    /// The statement is sound but Filecoin's verifier cannot be asked about it.
    #[error("filecoin-proofs cannot verify this statement: {reason}")]
    NotVerifiable {
        /// Why.
        reason: String,
    },

    /// A sector's data has the wrong length.
    #[error("{what} has {found} bytes, a sector of this size takes {expected}")]
    DataLength {
        /// Which data.
        what: &'static str,
        /// Unpadded bytes of the sector.
        expected: u64,
        /// Bytes given.
        found: u64,
    },

    /// A file of a sector could not be read or written.
    #[error("{path:?}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
}

/// What is wrong with a value at a known place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A list of the wrong length.
    #[error("{found} {what}, expected {expected}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// Required number.
        expected: usize,
        /// Number found.
        found: usize,
    },

    /// A sector that a statement has already.
    #[error("sector {sector} is that of vanilla proof {first} again")]
    Repeated {
        /// Number of the sector.
        sector: u64,
        /// Index of its first vanilla proof.
        first: usize,
    },

    /// A Merkle proof of another form of tree: plain, with subtrees, or with subtrees under a top.
    #[error("Merkle proof of form {found}, expected {expected}")]
    Form {
        /// Form by the sector size.
        expected: &'static str,
        /// Form found.
        found: &'static str,
    },

    /// A position among siblings that the arity does not have.
    #[error("level {level}: position {found} among {arity} children")]
    Position {
        /// Level above the leaves.
        level: usize,
        /// Arity of the level.
        arity: usize,
        /// Position found.
        found: u64,
    },

    /// A number, as a node or layer index, other than the challenge demands.
    #[error("{what} {found}, expected {expected}")]
    Number {
        /// What it numbers.
        what: &'static str,
        /// By challenge or position.
        expected: u64,
        /// Found.
        found: u64,
    },

    /// A sector with a lower number than the one before it.
    #[error("sector {found} comes after sector {previous}: they are proved in ascending order")]
    Order {
        /// The sector before it.
        previous: u64,
        /// The sector.
        found: u64,
    },

    /// 32 bytes that, read little-endian, are not below the order of the scalar field.
    #[error("{what} is not a canonical field element: {bytes}")]
    NotCanonical {
        /// Which element.
        what: &'static str,
        /// Its bytes.
        bytes: Hex,
    },

    /// A commitment, root or leaf that differs from what the rest of the statement determines.
    #[error("{what} is {found}, expected {expected}")]
    Mismatch {
        /// Which value.
        what: &'static str,
        /// As determined by the rest.
        expected: Hex,
        /// As found.
        found: Hex,
    },
}

impl Fault {
    pub(crate) fn at(self, place: impl Into<String>) -> FilecoinError {
        FilecoinError::Invalid { place: place.into(), source: self }
    }
}

/// Turns a published function's error into [`FilecoinError::Published`].
pub(crate) fn published<E: fmt::Display>(call: &'static str) -> impl Fn(E) -> FilecoinError {
    // `{:#}` makes anyhow print its whole chain of causes.
    move |error| FilecoinError::Published { call, message: format!("{error:#}") }
}

/// Runs published code and turns a panic into [`FilecoinError::Panicked`].
///
/// Every value that reaches the published crates has been checked against all that they index,
/// unwrap and assert. They hold several hundred such places, though, and a daemon must outlive one
/// that was overlooked: the statement fails, not the process. No state is shared with the closure,
/// so there is nothing that a panic could leave half-changed.
pub(crate) fn no_panic<T>(call: &'static str, f: impl FnOnce() -> T) -> Result<T, FilecoinError> {
    panic::catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        FilecoinError::Panicked { call, message: message.to_owned() }
    })
}

/// 32 bytes that print as hexadecimal, first byte first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hex(pub [u8; 32]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
