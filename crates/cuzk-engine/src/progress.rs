//! News of partitions, for whoever wants to watch.

use std::sync::mpsc;

use cuzk_scheduler::{DeviceId, Ticket, Time};

/// What happened to a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgressStage {
    /// Its witness is being made.
    Synthesizing,
    /// Its witness is there and waits for a device.
    Synthesized,
    /// It is brought to a device.
    Preparing(DeviceId),
    /// A device computes.
    Proving(DeviceId),
    /// The device is done; the proof is assembled and verified.
    Finishing(DeviceId),
    /// Its verified proof is there.
    Proved,
    /// The attempt failed. What follows (another attempt, or the end of the job) comes as other news.
    Failed {
        /// Why.
        cause: String,
    },
}

/// News of one attempt at a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Job, partition and attempt.
    pub ticket: Ticket,
    /// What happened.
    pub stage: ProgressStage,
    /// When, since the engine's start.
    pub at: Time,
}

/// Those who watch.
#[derive(Default)]
pub(crate) struct Subscribers(Vec<mpsc::SyncSender<Progress>>);

impl Subscribers {
    pub(crate) fn add(&mut self, subscriber: mpsc::SyncSender<Progress>) {
        self.0.push(subscriber);
    }

    /// Tells everybody. One who does not keep up loses this one, one who is gone is forgotten: nobody slows the
    /// engine down.
    pub(crate) fn tell(&mut self, progress: &Progress) {
        self.0.retain(|s| !matches!(s.try_send(progress.clone()), Err(mpsc::TrySendError::Disconnected(_))));
    }
}
