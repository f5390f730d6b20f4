//! A look at everything at once, and at one job.

use std::time::Duration;

use cuzk_scheduler::{
    AuditError, Blocked, CircuitId, Counts, DeviceId, Health, IdleReason, KeyStatus, KeyTier, Pool, PoolUsage, Stage,
    Ticket, Time,
};

/// The engine at one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// The moment, since the engine's start.
    pub at: Time,
    /// How much there is of everything.
    pub counts: Counts,
    /// What has happened so far.
    pub totals: Totals,
    /// The accounts of the memory pools: bytes reserved now and at most so far, and what there is.
    pub memory: Vec<(Pool, PoolUsage)>,
    /// All circuits that are registered.
    pub circuits: Vec<CircuitStatus>,
    /// All keys that take memory.
    pub keys: Vec<KeyStatus>,
    /// The devices, in the order in which they were given.
    pub devices: Vec<DeviceStatus>,
    /// The number of partition workers and why, in words.
    pub workers: String,
    /// Whether the scheduler's account is consistent; it always is unless there is a mistake in it.
    pub audit: Result<(), AuditError>,
}

/// What has happened since the engine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs that have all their proofs.
    pub jobs_completed: u64,
    /// Jobs that failed.
    pub jobs_failed: u64,
    /// Jobs that were cancelled.
    pub jobs_cancelled: u64,
    /// Jobs that were not accepted.
    pub jobs_refused: u64,
    /// Partitions that have a verified proof.
    pub proofs: u64,
    /// Attempts at partitions that failed, for whatever reason.
    pub failed_attempts: u64,
    /// Those of them whose proof did not verify.
    pub failed_verifications: u64,
    /// Those of them that ran out of memory in spite of their reservation.
    pub out_of_memory: u64,
}

/// A circuit that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitStatus {
    /// Its number.
    pub id: CircuitId,
    /// Its name.
    pub name: String,
    /// How close its key is to its use.
    pub tier: KeyTier,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Its number.
    pub id: DeviceId,
    /// Its model.
    pub name: String,
    /// Its name among all devices, as its driver gives it.
    pub uuid: String,
    /// Whether it takes work.
    pub health: Health,
    /// Why it does not compute, if it does not.
    pub idle: Option<IdleReason>,
    /// How long it has held its compute lock so far.
    pub busy: Duration,
    /// The attempt that it computes.
    pub current: Option<Ticket>,
    /// Proofs whose sums came from it and that have been verified.
    pub proofs: u64,
    /// Attempts that failed there.
    pub failures: u64,
}

/// A job that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// Its circuit.
    pub circuit: CircuitId,
    /// How many jobs are ahead of it.
    pub position: usize,
    /// For each partition where it is, and why it does not go on if it waits.
    pub partitions: Vec<(Stage, Option<Blocked>)>,
}
