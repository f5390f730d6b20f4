//! How jobs are kept, and how many.

use std::path::PathBuf;

/// How jobs are kept, and how many.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// The journal's directory. It is made if it does not exist.
    pub directory: PathBuf,
    /// What the journal keeps.
    pub journal: cuzk_journal::Options,
    /// Jobs that may wait; more are refused.
    pub max_queued: usize,
    /// Jobs of one client that may be there without having ended; more are refused.
    pub max_per_client: usize,
    /// What becomes of a job when the last caller that waited for it has vanished.
    pub abandoned: Abandoned,
    /// Ended jobs, and errors, that [`JobsLook`](super::JobsLook) shows.
    pub recent: usize,
}

impl JobsOptions {
    /// The defaults, in this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            journal: cuzk_journal::Options::default(),
            max_queued: 1000,
            max_per_client: 1000,
            abandoned: Abandoned::GoOn,
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
