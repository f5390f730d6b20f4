//! What is known of a job, and the tables that hold it.

use redb::{ReadableTable, TableDefinition, Value};

/// What a caller says of a job that it hands over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// The caller's name for the work; empty if it has none.
    pub request_id: String,
    /// A collision-resistant digest of the input.
    pub digest: [u8; 32],
    /// Anything else, which is handed back as it is. It is kept as long as the record: keep it small.
    pub meta: Vec<u8>,
    /// Acceptance in milliseconds since 1970.
    pub accepted_ms: u64,
    /// The most bytes that the result will have. They are set aside, so that the job can end on a full disk.
    pub result_room: u64,
}

/// What is known of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Unique for ever: eight hexadecimal digits, random anew with each opening of the journal, and a number.
    pub id: String,
    /// The caller's name for the work.
    pub request_id: String,
    /// Digest of the input.
    pub digest: [u8; 32],
    /// What the caller gave.
    pub meta: Vec<u8>,
    /// Acceptance in milliseconds since 1970.
    pub accepted_ms: u64,
    /// How often it was begun.
    pub attempts: u32,
    /// Bytes of the request.
    pub request_bytes: u64,
    /// Whether it has ended, and how.
    pub state: State,
}

/// Whether a job has ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not.
    Unfinished,
    /// It has a result; in milliseconds since 1970.
    Completed(u64),
    /// It has an error; in milliseconds since 1970.
    Failed(u64),
}

impl State {
    /// When it ended, in milliseconds since 1970.
    pub fn ended_ms(self) -> Option<u64> {
        match self {
            Self::Unfinished => None,
            Self::Completed(at) | Self::Failed(at) => Some(at),
        }
    }
}

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result. Further work of the same name and input finds it.
    Completed(Vec<u8>),
    /// With an error, in the caller's encoding. Further work of the same name and input is a new job.
    Failed(Vec<u8>),
}

/// Attempts, state (0 unfinished, 1 completed, 2 failed), time of the end, whether the request is in a file.
type Progress = (u32, u8, u64, bool);

/// Request id, digest, meta, acceptance, bytes of the request, bytes set aside, progress.
type Row<'a> = (&'a str, [u8; 32], &'a [u8], u64, u64, u64, Progress);

pub(crate) const JOBS: TableDefinition<'_, u64, Row<'static>> = TableDefinition::new("jobs");
pub(crate) const REQUESTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("requests");
pub(crate) const RESULTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("results");
/// The newest job of a request id and a digest that has not failed.
pub(crate) const NAMES: TableDefinition<'_, (&str, [u8; 32]), u64> = TableDefinition::new("names");
/// The random halves of ids: each counts for the number that it stands at and those above, up to the next one.
pub(crate) const EPOCHS: TableDefinition<'_, u64, u32> = TableDefinition::new("epochs");
/// Numbers of the journal itself.
pub(crate) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// A record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) request_id: String,
    pub(crate) digest: [u8; 32],
    pub(crate) meta: Vec<u8>,
    pub(crate) accepted_ms: u64,
    pub(crate) request_bytes: u64,
    pub(crate) result_room: u64,
    pub(crate) attempts: u32,
    pub(crate) state: State,
    pub(crate) in_file: bool,
}

impl Stored {
    pub(crate) fn new(job: NewJob, request_bytes: u64, in_file: bool) -> Self {
        Self {
            request_id: job.request_id,
            digest: job.digest,
            meta: job.meta,
            accepted_ms: job.accepted_ms,
            request_bytes,
            result_room: job.result_room,
            attempts: 0,
            state: State::Unfinished,
            in_file,
        }
    }

    pub(crate) fn row(&self) -> Row<'_> {
        let (state, ended) = match self.state {
            State::Unfinished => (0, 0),
            State::Completed(at) => (1, at),
            State::Failed(at) => (2, at),
        };
        (
            &self.request_id,
            self.digest,
            &self.meta,
            self.accepted_ms,
            self.request_bytes,
            self.result_room,
            (self.attempts, state, ended, self.in_file),
        )
    }

    /// Reads a row; the error says what is wrong with it.
    pub(crate) fn from_row(row: <Row<'static> as Value>::SelfType<'_>) -> Result<Self, String> {
        let (request_id, digest, meta, accepted_ms, request_bytes, result_room, progress) = row;
        let (attempts, state, ended, in_file) = progress;
        let state = match state {
            0 => State::Unfinished,
            1 => State::Completed(ended),
            2 => State::Failed(ended),
            other => return Err(format!("a job has the state {other}")),
        };
        Ok(Self {
            request_id: request_id.to_owned(),
            digest,
            meta: meta.to_vec(),
            accepted_ms,
            request_bytes,
            result_room,
            attempts,
            state,
            in_file,
        })
    }

    /// Reads the record of a job.
    pub(crate) fn read(
        jobs: &impl ReadableTable<u64, Row<'static>>,
        number: u64,
    ) -> Result<Option<Self>, redb::StorageError> {
        match jobs.get(number)? {
            Some(row) => Self::from_row(row.value()).map(Some).map_err(redb::StorageError::Corrupted),
            None => Ok(None),
        }
    }

    pub(crate) fn record(self, id: String) -> Record {
        Record {
            id,
            request_id: self.request_id,
            digest: self.digest,
            meta: self.meta,
            accepted_ms: self.accepted_ms,
            attempts: self.attempts,
            request_bytes: self.request_bytes,
            state: self.state,
        }
    }
}
