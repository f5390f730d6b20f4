//! What a running server says of itself.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a running server says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of the machine, for people.
    pub title: String,
    /// Version of the program.
    pub version: String,
    /// The commit that it was built from; empty if that is unknown.
    pub commit: String,
    started: Instant,
    started_unix_ms: u64,
}

impl About {
    /// Of a server that starts now.
    pub fn now(title: impl Into<String>, version: impl Into<String>, commit: impl Into<String>) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let [title, version, commit] = [title.into(), version.into(), commit.into()];
        Self { title, version, commit, started: Instant::now(), started_unix_ms }
    }

    /// How long it has been running.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// When it started, in milliseconds since 1970.
    pub fn started_unix_ms(&self) -> u64 {
        self.started_unix_ms
    }
}
