//! What came of asking for a key, or for its memory.

use std::time::Duration;

use cuzk_scheduler::{CircuitId, OutOfMemory, Pool};

/// Why there is no answer about a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyRequestError {
    /// There is no such circuit.
    #[error("{circuit} is not registered")]
    UnknownCircuit {
        /// As it was given.
        circuit: CircuitId,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

/// What came of a key in one pool that was to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreloadOutcome {
    /// It was there.
    AlreadyThere,
    /// It is there now.
    Loaded,
    /// It does not fit beside what is there and in use.
    Refused(OutOfMemory),
    /// It is not there: loading it failed (the log says why), or it was taken away meanwhile.
    Absent,
}

/// What came of [`Engine::preload`](crate::Engine::preload).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preloaded {
    /// Each pool that the key is needed in, bytes there, and what came of it. Devices that take no work are not among
    /// them.
    pub pools: Vec<(Pool, u64, PreloadOutcome)>,
    /// How long it took.
    pub took: Duration,
}

impl Preloaded {
    /// Whether the key is now in all of these pools.
    pub fn is_complete(&self) -> bool {
        self.pools.iter().all(|(.., o)| matches!(o, PreloadOutcome::AlreadyThere | PreloadOutcome::Loaded))
    }

    /// Bytes that were loaded.
    pub fn bytes_loaded(&self) -> u64 {
        self.pools.iter().filter(|(.., o)| *o == PreloadOutcome::Loaded).map(|(_, bytes, _)| bytes).sum()
    }
}

/// What came of a key in one pool that was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictOutcome {
    /// Its bytes are free.
    Freed,
    /// It stays: so many partitions use it.
    InUse {
        /// How many.
        users: u32,
    },
    /// It stays: it is on its way there, for somebody who asked for it.
    Loading,
}

/// What came of [`Engine::evict`](crate::Engine::evict).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Each pool where the key was, its bytes there, and what came of it. Empty if it was nowhere.
    pub pools: Vec<(Pool, u64, EvictOutcome)>,
}

impl Evicted {
    /// Bytes that are free now.
    pub fn bytes_freed(&self) -> u64 {
        self.pools.iter().filter(|(.., o)| *o == EvictOutcome::Freed).map(|(_, bytes, _)| bytes).sum()
    }
}
