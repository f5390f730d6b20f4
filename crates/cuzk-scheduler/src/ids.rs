//! Names of the things that the scheduler decides about.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// A moment: the time since a start that the caller chose, once. It must not go backwards between two calls.
pub type Time = Duration;

/// One proof that somebody asked for. Its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// A circuit together with its proving key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CircuitId(pub u32);

/// A device: its index in [`Resources::devices`](crate::Resources::devices).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u16);

/// A part of a job that has a witness and a Groth16 proof of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The job.
    pub job: JobId,
    /// Which of its partitions, from 0.
    pub index: u32,
}

/// One attempt at a partition. Actions and events carry it, so that what arrives late from an attempt that was given up
/// (its device was lost, say) is told from news of the attempt that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The partition.
    pub partition: PartitionId,
    /// Which attempt, from 0.
    pub attempt: u32,
}

/// How urgent a job is. Smaller is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A block is lost if it waits (WinningPoSt): starts on a device within one partition's kernel time.
    Critical,
    /// Has a deadline on the chain (WindowPoSt).
    High,
    /// Everything else.
    Normal,
    /// When nothing else waits.
    Low,
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.0)
    }
}

impl fmt::Display for CircuitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circuit {}", self.0)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.0)
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of {}", self.index, self.job)
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (attempt {})", self.partition, self.attempt)
    }
}
