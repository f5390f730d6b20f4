//! Memory pools, and why a device does not compute.

use std::{collections::BTreeMap, fmt};

use cuzk_units::show_bytes;
use serde::{Deserialize, Serialize};

use crate::{CircuitId, JobId, PartitionRef, Timeline};

/// A kind of memory with a capacity of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pool {
    /// Ordinary memory of the host.
    Host,
    /// Host memory that devices read and write directly.
    Pinned,
    /// The memory of the device with this number.
    Device(u16),
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.pad("host"),
            Self::Pinned => f.pad("pinned"),
            Self::Device(device) => f.pad(&format!("device {device}")),
        }
    }
}

/// Why a device does not compute. The numbers are those of the moment when the gap began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// There are no jobs.
    NoWork,
    /// There are, but none of their partitions is synthesized.
    NoSynthesizedPartition {
        /// How many are being synthesized.
        synthesizing: u32,
        /// What keeps more from being synthesized, if more are there.
        because: Option<String>,
    },
    /// A partition cannot be assigned for lack of memory.
    Memory {
        /// Of which pool.
        pool: Pool,
        /// Bytes that it needs.
        requested: u64,
        /// Bytes in use.
        in_use: u64,
        /// Bytes that it may not touch, though they are free.
        held_back: u64,
        /// Bytes of the pool.
        capacity: u64,
    },
    /// A key is being loaded.
    KeyLoad {
        /// Whose key.
        circuit: CircuitId,
        /// Where to.
        pool: Pool,
    },
    /// A partition is on its way to the device.
    Transfer {
        /// Which.
        partition: Option<PartitionRef>,
    },
    /// The compute lock is not given to a partition that is ready.
    Lock {
        /// For whom it is kept.
        kept_for: Option<PartitionRef>,
    },
    /// A partition that ran out of memory is repeated with nothing beside it.
    Alone,
    /// What waits is left to another device.
    LeftToOthers {
        /// How many partitions wait.
        queued: u32,
    },
    /// The device is fenced after a fault.
    Quarantined {
        /// Self-tests that it has failed since.
        failed_tests: u32,
    },
    /// The device is out of use.
    Retired,
    /// Any other.
    Other {
        /// A short name; gaps are summed by it.
        label: String,
        /// More about this gap.
        detail: String,
    },
}

impl Timeline {
    /// A reason with the names of its circuit and its job instead of their numbers.
    pub(crate) fn explain(&self, reason: &IdleReason, jobs: &BTreeMap<JobId, &str>) -> String {
        let of = |p: &PartitionRef| {
            let again = if p.attempt > 0 { format!(" (attempt {})", p.attempt) } else { String::new() };
            jobs.get(&p.job).map_or_else(|| p.to_string(), |job| format!("partition {} of {job}{again}", p.index))
        };
        match reason {
            IdleReason::KeyLoad { circuit, pool } if self.circuits.contains_key(circuit) => {
                format!("{}: {} to {pool} memory", reason.label(), self.circuits[circuit])
            }
            IdleReason::Transfer { partition: Some(p) } => format!("{}: {}", reason.label(), of(p)),
            IdleReason::Lock { kept_for: Some(p) } => format!("{}: kept for {}", reason.label(), of(p)),
            _ => reason.to_string(),
        }
    }
}

/// The label of time in which a device neither computed nor stated a reason.
pub const UNEXPLAINED: &str = "unexplained";

impl IdleReason {
    /// A short name without numbers, by which gaps are summed.
    pub fn label(&self) -> &str {
        match self {
            Self::NoWork => "no work",
            Self::NoSynthesizedPartition { .. } => "no synthesized partition",
            Self::Memory { .. } => "waiting for memory",
            Self::KeyLoad { .. } => "key load",
            Self::Transfer { .. } => "transfer",
            Self::Lock { .. } => "waiting for the lock",
            Self::Alone => "repeating alone",
            Self::LeftToOthers { .. } => "left to other devices",
            Self::Quarantined { .. } => "quarantined",
            Self::Retired => "retired",
            Self::Other { label, .. } => label,
        }
    }
}

impl fmt::Display for IdleReason {
    /// The label and the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Self::NoWork | Self::Alone | Self::Retired => Ok(()),
            Self::NoSynthesizedPartition { synthesizing, because } => {
                write!(f, ": {synthesizing} in synthesis")?;
                because.as_ref().map_or(Ok(()), |b| write!(f, ", no more because {b}"))
            }
            Self::Memory { pool, requested, in_use, held_back, capacity } => {
                let [requested, in_use, capacity] = [*requested, *in_use, *capacity].map(show_bytes);
                write!(f, ": {requested} of {pool} memory requested, {in_use} of {capacity} in use")?;
                if *held_back > 0 { write!(f, ", {} held back", show_bytes(*held_back)) } else { Ok(()) }
            }
            Self::KeyLoad { circuit, pool } => write!(f, ": circuit {} to {pool} memory", circuit.0),
            Self::Transfer { partition } => partition.map_or(Ok(()), |p| write!(f, ": {p}")),
            Self::Lock { kept_for } => kept_for.map_or(Ok(()), |p| write!(f, ": kept for {p}")),
            Self::LeftToOthers { queued } => write!(f, ": {queued} queued"),
            Self::Quarantined { failed_tests } => write!(f, ": {failed_tests} self-tests failed"),
            Self::Other { detail, .. } if detail.is_empty() => Ok(()),
            Self::Other { detail, .. } => write!(f, ": {detail}"),
        }
    }
}
