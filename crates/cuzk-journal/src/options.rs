//! What a journal keeps, and how large it is.

use std::time::Duration;

/// What a journal keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Ended jobs that are kept; the oldest are forgotten first.
    pub keep_ended: usize,
    /// How long an ended job is kept: [`Journal::expire`](crate::Journal::expire) forgets those that are older.
    pub keep_for: Duration,
    /// Bytes on disk above which no new job is accepted.
    pub max_bytes: u64,
}

impl Default for Options {
    /// 10,000 ended jobs, for a week, on 64 GiB: three hundred requests of 200 MB that wait.
    fn default() -> Self {
        Self { keep_ended: 10_000, keep_for: Duration::from_secs(7 * 24 * 3600), max_bytes: 64 << 30 }
    }
}

/// How large a journal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Jobs that have not ended.
    pub unfinished: u64,
    /// Ended jobs that are kept.
    pub ended: u64,
    /// Bytes of the database's file.
    pub database_bytes: u64,
    /// Bytes of requests in files of their own.
    pub request_bytes: u64,
    /// Bytes that are set aside for results of unfinished jobs and for the database's growth; part of
    /// [`database_bytes`](Self::database_bytes).
    pub reserved_bytes: u64,
    /// [`Options::max_bytes`].
    pub max_bytes: u64,
    /// Commits since it was opened.
    pub commits: u64,
    /// New jobs that were refused for want of room since it was opened.
    pub refused: u64,
    /// Why new jobs are refused now, if they are.
    pub refusing: Option<Refusing>,
}

/// Why a journal refuses new jobs. It recovers by itself, as [`Journal::probe`](crate::Journal::probe) finds out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusing {
    /// It is as large as it may be.
    Limit {
        /// Bytes on disk, with what is reserved for results.
        in_use: u64,
        /// Bytes that the smallest job needs, or the largest one that was refused and did not fit since.
        requested: u64,
        /// [`Options::max_bytes`].
        limit: u64,
    },
    /// The disk has no room for so many more bytes.
    Disk {
        /// Bytes that were asked for.
        needed: u64,
    },
    /// The disk or the database fails.
    Failing,
    /// The database's file was removed, renamed or replaced: [`Error::Replaced`](crate::Error::Replaced).
    Replaced,
}
