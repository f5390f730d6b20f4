//! Whether the process lives, and whether it can take work.

use std::fmt;

use cuzk_journal::Refusing;

use crate::{
    jobs::{JobsLook, ServiceState},
    prover::Look,
};

/// Whether new work is taken and can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// It is.
    Ready,
    /// The process is to end.
    Draining,
    /// There is no device.
    NoDevice,
    /// There are devices, but none that is given work: for each its number and its health.
    NoHealthyDevice(Vec<(u32, String)>),
    /// There are healthy devices, but nothing that could be proved on them, for this reason.
    Unable(String),
    /// The journal takes no new jobs, or not all.
    Journal(Refusing),
    /// As many jobs wait as may.
    QueueFull {
        /// Jobs that wait.
        queued: usize,
        /// How many may.
        limit: usize,
    },
}

impl Readiness {
    pub(super) fn of(jobs: &JobsLook, prover: &Look) -> Self {
        if jobs.state == ServiceState::Draining {
            Self::Draining
        } else if prover.devices.is_empty() {
            Self::NoDevice
        } else if prover.devices.iter().all(|device| device.health != "healthy") {
            Self::NoHealthyDevice(prover.devices.iter().map(|d| (d.index, d.health.clone())).collect())
        } else if let Some(reason) = &prover.unable {
            Self::Unable(reason.clone())
        } else if let Some(refusing) = jobs.journal.refusing {
            Self::Journal(refusing)
        } else if jobs.queued >= jobs.max_queued {
            Self::QueueFull { queued: jobs.queued, limit: jobs.max_queued }
        } else {
            Self::Ready
        }
    }

    /// Every reason, by its name in metrics.
    pub(super) const REASONS: [&str; 8] = [
        "draining",
        "device",
        "unable",
        "journal_limit",
        "journal_disk",
        "journal_failing",
        "journal_replaced",
        "queue",
    ];

    /// Why not, by its name in metrics.
    pub(super) fn reason(&self) -> Option<&'static str> {
        let [draining, device, unable, limit, disk, failing, replaced, queue] = Self::REASONS;
        match self {
            Self::Ready => None,
            Self::Draining => Some(draining),
            Self::NoDevice | Self::NoHealthyDevice(_) => Some(device),
            Self::Unable(_) => Some(unable),
            Self::Journal(Refusing::Limit { .. }) => Some(limit),
            Self::Journal(Refusing::Disk { .. }) => Some(disk),
            Self::Journal(Refusing::Failing) => Some(failing),
            Self::Journal(Refusing::Replaced) => Some(replaced),
            Self::QueueFull { .. } => Some(queue),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Draining => f.write_str("draining: no new work is taken"),
            Self::NoDevice => f.write_str("there is no device"),
            Self::Unable(reason) => write!(f, "nothing can be proved: {reason}"),
            Self::NoHealthyDevice(devices) => {
                f.write_str("no device is healthy")?;
                devices.iter().enumerate().try_for_each(|(place, (index, health))| {
                    write!(f, "{} device {index} is {health}", if place == 0 { ":" } else { "," })
                })
            }
            Self::Journal(Refusing::Limit { in_use, requested, limit }) => write!(
                f,
                "the journal is full: it has {in_use} bytes, a job needs {requested} more, and journal.max_bytes is \
                 {limit} bytes"
            ),
            Self::Journal(Refusing::Disk { needed }) => {
                write!(f, "the disk of journal.directory is full: there is no room for {needed} more bytes")
            }
            Self::Journal(Refusing::Failing) => f.write_str("the journal cannot be written; the log says why"),
            Self::Journal(Refusing::Replaced) => f.write_str(
                "the journal's database was removed, renamed or replaced: put journal.redb back under its name, or \
                 start the daemon again",
            ),
            Self::QueueFull { queued, limit } => {
                write!(f, "the queue is full: {queued} jobs wait, limits.queue_length is {limit}")
            }
        }
    }
}
