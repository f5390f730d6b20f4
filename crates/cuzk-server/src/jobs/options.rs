//! How jobs are kept, and how many.

use std::path::PathBuf;

use super::SubmitError;

/// How jobs are kept, and how many.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// The journal's directory. It is made if it does not exist.
    pub directory: PathBuf,
    /// What the journal keeps.
    pub journal: cuzk_journal::Options,
    /// How many jobs there may be, and what becomes of those that nobody waits for.
    pub limits: JobsLimits,
    /// Ended jobs, and errors, that [`JobsLook`](super::JobsLook) shows. Each takes about a kilobyte of memory.
    pub recent: usize,
}

/// How many jobs there may be, and what becomes of those that nobody waits for. May change at any time:
/// [`Jobs::set_limits`](super::Jobs::set_limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobsLimits {
    /// Jobs that may wait; more are refused.
    pub max_queued: usize,
    /// Jobs of one client that may be there without having ended; more are refused.
    pub max_per_client: usize,
    /// What becomes of a job when the last caller that waited for it has vanished.
    pub abandoned: Abandoned,
}

impl JobsLimits {
    /// Whether a client that has `open` jobs may have another, with `queued` jobs in the queue.
    pub(crate) fn check(&self, queued: usize, open: usize) -> Result<(), SubmitError> {
        if queued >= self.max_queued {
            Err(SubmitError::QueueFull { queued, limit: self.max_queued })
        } else if open >= self.max_per_client {
            Err(SubmitError::ClientFull { open, limit: self.max_per_client })
        } else {
            Ok(())
        }
    }
}

impl JobsOptions {
    /// The defaults, in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            journal: cuzk_journal::Options::default(),
            limits: JobsLimits { max_queued: 1000, max_per_client: 1000, abandoned: Abandoned::GoOn },
            recent: 100,
        }
    }
}

/// What becomes of a job when the last caller that waited for it has vanished. A job that nobody ever waited for, and
/// one whose callers' time was over, is not abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Abandoned {
    /// It goes on, so that a retry finds it further on or done.
    #[default]
    GoOn,
    /// It is cancelled.
    Cancel,
}
