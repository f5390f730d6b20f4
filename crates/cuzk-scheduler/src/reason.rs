//! Why something waits: so that every gap of a device and every wait of a partition has a name and numbers.

use std::fmt;

use crate::{CircuitId, DeviceId, Health, OutOfMemory, Pool, Ticket, Time};

/// Why a partition at the head of the order cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Memory: which pool, and the numbers.
    Memory(OutOfMemory),
    /// Its key is being loaded.
    KeyLoad {
        /// Whose key.
        circuit: CircuitId,
        /// Where to.
        pool: Pool,
    },
    /// Its key is being evicted, and must be gone before it can be loaded again.
    KeyEviction {
        /// Whose key.
        circuit: CircuitId,
        /// Where from.
        pool: Pool,
    },
    /// All permits are taken.
    Permits {
        /// How many.
        held: usize,
        /// Of how many.
        workers: usize,
    },
    /// The device queue is full.
    QueueFull {
        /// How many lie in it.
        queued: usize,
        /// How many it takes.
        capacity: usize,
    },
    /// It ran out of memory, or something beside it did: it is tried with nothing beside it.
    Alone,
    /// All slots of the devices that may take it are in use.
    Workers,
    /// The devices that may take it are quarantined.
    Quarantine,
    /// Its device's compute lock is taken, or kept for a CRITICAL partition.
    Lock {
        /// The device.
        device: DeviceId,
    },
}

/// Why a device does not compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdleReason {
    /// There are no jobs.
    NoWork,
    /// There are, but none of their partitions is synthesized.
    NoSynthesizedPartition {
        /// How many are being synthesized.
        synthesizing: usize,
        /// Why not more are, if more could be.
        admission: Option<Blocked>,
    },
    /// A partition cannot be assigned for lack of memory.
    Memory(OutOfMemory),
    /// A key is being loaded (or evicted, before it can be loaded again).
    KeyLoad {
        /// Whose key.
        circuit: CircuitId,
        /// Where to.
        pool: Pool,
    },
    /// A partition is being brought to it, or to the queue.
    Transfer {
        /// Which.
        ticket: Ticket,
    },
    /// The compute lock is kept for a CRITICAL partition that is being prepared, while another one is ready.
    Lock {
        /// For which.
        kept_for: Ticket,
    },
    /// A partition that ran out of memory needs another device empty, or this one.
    Alone,
    /// What waits in the queue is left to another device (its key is there, or it must not come here).
    LeftToOthers {
        /// How many wait.
        queued: usize,
    },
    /// It is fenced.
    Quarantined {
        /// Since when.
        since: Time,
        /// Self-tests that it has failed since.
        failed_tests: u32,
    },
    /// It is out of use.
    Retired,
}

impl IdleReason {
    /// A short name without numbers, to sum gaps by.
    pub fn label(&self) -> &'static str {
        match self {
            Self::NoWork => "no work",
            Self::NoSynthesizedPartition { .. } => "no synthesized partition",
            Self::Memory(_) => "waiting for memory",
            Self::KeyLoad { .. } => "key load",
            Self::Transfer { .. } => "transfer",
            Self::Lock { .. } => "waiting for the lock",
            Self::Alone => "repeating alone",
            Self::LeftToOthers { .. } => "left to other devices",
            Self::Quarantined { .. } => "quarantined",
            Self::Retired => "retired",
        }
    }

    pub(crate) fn of_health(health: Health) -> Option<Self> {
        match health {
            Health::Healthy => None,
            Health::Quarantined { since, failed_tests, .. } => Some(Self::Quarantined { since, failed_tests }),
            Health::Retired => Some(Self::Retired),
        }
    }

    pub(crate) fn of_block(blocked: &Blocked) -> Option<Self> {
        match blocked {
            Blocked::Memory(refused) => Some(Self::Memory(refused.clone())),
            Blocked::KeyLoad { circuit, pool } | Blocked::KeyEviction { circuit, pool } => {
                Some(Self::KeyLoad { circuit: *circuit, pool: *pool })
            }
            Blocked::Alone => Some(Self::Alone),
            _ => None,
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(refused) => refused.fmt(f),
            Self::KeyLoad { circuit, pool } => write!(f, "the key of {circuit} is being loaded to {pool} memory"),
            Self::KeyEviction { circuit, pool } => write!(f, "the key of {circuit} is leaving {pool} memory"),
            Self::Permits { held, workers } => write!(f, "{held} of {workers} permits are held"),
            Self::QueueFull { queued, capacity } => write!(f, "{queued} of {capacity} places of the queue are taken"),
            Self::Alone => f.write_str("a partition that ran out of memory is repeated alone"),
            Self::Workers => f.write_str("all device workers are busy"),
            Self::Quarantine => f.write_str("the devices that may take it are quarantined"),
            Self::Lock { device } => write!(f, "the compute lock of {device}"),
        }
    }
}

impl fmt::Display for IdleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Self::NoWork | Self::Alone | Self::Retired => Ok(()),
            Self::NoSynthesizedPartition { synthesizing, admission } => {
                write!(f, ": {synthesizing} in synthesis")?;
                admission.as_ref().map_or(Ok(()), |b| write!(f, ", no more because {b}"))
            }
            Self::Memory(refused) => write!(f, ": {refused}"),
            Self::KeyLoad { circuit, pool } => write!(f, ": {circuit} to {pool} memory"),
            Self::Transfer { ticket } => write!(f, ": {ticket}"),
            Self::Lock { kept_for } => write!(f, ": kept for {kept_for}"),
            Self::LeftToOthers { queued } => write!(f, ": {queued} queued"),
            Self::Quarantined { since, failed_tests } => {
                write!(f, " since {:.1} s, {failed_tests} self-tests failed", since.as_secs_f64())
            }
        }
    }
}
