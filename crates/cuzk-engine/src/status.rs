//! A look at everything at once.

use cuzk_scheduler::{AuditError, Counts, DeviceId, Health, IdleReason, KeyStatus, Pool, PoolUsage};

/// The engine at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// How much there is of everything.
    pub counts: Counts,
    /// The accounts of the memory pools.
    pub memory: Vec<(Pool, PoolUsage)>,
    /// All keys that take memory.
    pub keys: Vec<KeyStatus>,
    /// Each device: whether it takes work, and why it does not compute if it does not.
    pub devices: Vec<(DeviceId, Health, Option<IdleReason>)>,
    /// The number of partition workers and why, in words.
    pub workers: String,
    /// Whether the scheduler's account is consistent; it always is unless there is a mistake in it.
    pub audit: Result<(), AuditError>,
}
