//! What a journal keeps, and how large it is.

use std::time::Duration;

/// What a journal keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Ended jobs that are kept; the oldest are forgotten first.
    pub keep_ended: usize,
    /// How long an ended job is kept.
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
}
