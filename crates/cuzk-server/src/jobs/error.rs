//! Why a job is not taken or not opened.

use tonic::Code;

use crate::prover::Rejection;

/// Why the jobs cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The journal cannot be opened.
    #[error(transparent)]
    Journal(#[from] cuzk_journal::Error),
    /// A job in the journal cannot be understood.
    #[error("job {job} in the journal cannot be read: {cause}")]
    Record {
        /// Its id.
        job: String,
        /// Why.
        cause: String,
    },
    /// There is no asynchronous runtime to run in.
    #[error("jobs are opened within a tokio runtime")]
    NoRuntime,
}

/// Why a request is not taken.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The prover does not take it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Too many jobs wait already.
    #[error("the queue is full: {queued} jobs wait, limits.queue_length is {limit}")]
    QueueFull {
        /// Jobs that have not begun.
        queued: usize,
        /// How many there may be.
        limit: usize,
    },
    /// This client has too many jobs already.
    #[error("this client has {open} jobs that have not ended, limits.jobs_per_client is {limit}")]
    ClientFull {
        /// Its jobs that have not ended.
        open: usize,
        /// How many there may be.
        limit: usize,
    },
    /// No new work is taken any more.
    #[error("the server is about to stop and takes no new work")]
    Draining,
    /// The journal does not take it, so that it could be lost.
    #[error("the request cannot be made durable: {0}")]
    Journal(cuzk_journal::Error),
    /// Taking it ended in a panic.
    #[error("the request could not be taken: {0}")]
    Crashed(String),
}

impl SubmitError {
    /// The gRPC code that it is answered with: a client may try again later on `RESOURCE_EXHAUSTED` and `UNAVAILABLE`.
    pub fn code(&self) -> Code {
        match self {
            Self::Rejected(Rejection::Invalid(_)) => Code::InvalidArgument,
            Self::Rejected(Rejection::Unable(_)) => Code::FailedPrecondition,
            Self::QueueFull { .. } | Self::ClientFull { .. } => Code::ResourceExhausted,
            Self::Journal(error) if error.is_full() => Code::ResourceExhausted,
            Self::Draining => Code::Unavailable,
            Self::Journal(_) => Code::Unavailable,
            Self::Crashed(_) => Code::Internal,
        }
    }
}

/// No job has this id, or it is so old that it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no job has the id {0:?}")]
pub struct UnknownJob(pub String);

/// Why a job cannot be waited for or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It is unknown.
    #[error(transparent)]
    Unknown(#[from] UnknownJob),
    /// The journal fails.
    #[error("the journal cannot be used: {0}")]
    Journal(#[from] cuzk_journal::Error),
}

impl JobError {
    /// The gRPC code that it is answered with.
    pub fn code(&self) -> Code {
        match self {
            Self::Unknown(_) => Code::NotFound,
            Self::Journal(_) => Code::Unavailable,
        }
    }
}
