//! Whether the process lives, and whether it can take work.

use std::fmt;

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
}

impl Readiness {
    pub(super) fn of(jobs: &JobsLook, prover: &Look) -> Self {
        if jobs.state == ServiceState::Draining {
            Self::Draining
        } else if prover.devices.is_empty() {
            Self::NoDevice
        } else if prover.devices.iter().all(|device| device.health != "healthy") {
            Self::NoHealthyDevice(prover.devices.iter().map(|d| (d.index, d.health.clone())).collect())
        } else {
            Self::Ready
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
            Self::NoHealthyDevice(devices) => {
                f.write_str("no device is healthy")?;
                devices.iter().enumerate().try_for_each(|(place, (index, health))| {
                    write!(f, "{} device {index} is {health}", if place == 0 { ":" } else { "," })
                })
            }
        }
    }
}
