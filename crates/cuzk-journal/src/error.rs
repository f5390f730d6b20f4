//! What can go wrong with a journal.

use std::{io, path::PathBuf, sync::Arc};

/// What can go wrong with a journal. Cloned where one failure concerns several callers.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has it open.
    #[error("{} is in use by process {}", path.display(), pid.map_or("unknown".to_owned(), |pid| pid.to_string()))]
    Locked {
        /// What is locked: the directory, the database's file, or the file with the process's id.
        path: PathBuf,
        /// Who holds it, if that can be read.
        pid: Option<u32>,
    },
    /// A file cannot be used.
    #[error("cannot {doing} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        cause: Arc<io::Error>,
    },
    /// It was written by another version of this crate.
    #[error("{} has version {found} of the format, this program reads version {supported}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The one that can be read.
        supported: u32,
    },
    /// It is damaged, or something else.
    #[error("{} is damaged: {cause}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: String,
    },
    /// Requests of accepted jobs are there, and the database does not know them. Nothing was removed or made.
    #[error(
        "{} holds requests of accepted jobs ({files} files, {bytes} bytes), and {} {}. Nothing was removed. Put back \
         the database that belongs to them; or, to go on without them, move that directory away: whoever waits for one \
         of them has to send it again",
        requests.display(),
        database.display(),
        if *empty { "is missing or empty" } else { "does not know them: it is an older copy, or another journal's" }
    )]
    Orphans {
        /// The directory with the requests.
        requests: PathBuf,
        /// How many there are.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// The database's file.
        database: PathBuf,
        /// Whether the database is missing or has nothing in it.
        empty: bool,
    },
    /// A request is not there any more, or only in part, though its job has not ended.
    #[error("the request of job {job} is lost: {} of {expected} bytes are there", found.unwrap_or(0))]
    RequestLost {
        /// The job.
        job: String,
        /// Bytes that are there; `None` if there is no file.
        found: Option<u64>,
        /// Bytes that it had.
        expected: u64,
    },
    /// Somebody removed, renamed or replaced the database's file while it was open. What would be written now could not
    /// be found again, so no new job is taken until the file is back under its name, or the journal is opened anew.
    #[error("{} {}", path.display(), if *missing { "was removed or renamed" } else { "was replaced by another file" })]
    Replaced {
        /// The database's file, as it was called.
        path: PathBuf,
        /// Whether nothing is there now.
        missing: bool,
    },
    /// The disk has no room for more work. What was accepted has its room.
    #[error("no room in {} for {needed} more bytes: {cause}", path.display())]
    Full {
        /// The directory.
        path: PathBuf,
        /// Bytes that were asked for.
        needed: u64,
        /// What the system said.
        cause: Arc<io::Error>,
    },
    /// The journal is as large as it may be. What was accepted has its room.
    #[error("the journal holds {in_use} bytes, {requested} more would exceed the limit of {limit}")]
    OverBudget {
        /// Bytes on disk, with what is reserved for results.
        in_use: u64,
        /// Bytes that were asked for.
        requested: u64,
        /// [`Options::max_bytes`](crate::Options::max_bytes).
        limit: u64,
    },
    /// No job has this id, or it is forgotten.
    #[error("no job has the id {0:?}")]
    UnknownJob(String),
    /// The job has ended already.
    #[error("job {0} has ended already")]
    AlreadyEnded(String),
    /// The database failed.
    #[error("the journal's database failed: {0}")]
    Database(String),
    /// The journal was closed.
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    /// Whether it is a matter of room: it may work later.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. } | Self::OverBudget { .. })
    }
}
