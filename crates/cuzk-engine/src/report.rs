//! What a job took: where the time of each of its partitions went.

use std::{fmt, time::Duration};

use cuzk_scheduler::{CircuitId, DeviceId, JobId, Time};

/// What a partition does or waits for. It is always in one of them, from the submission of its job to its proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Waiting for a permit, memory, or the matrices.
    Admission,
    /// Its witness is being made.
    Synthesis,
    /// Waiting for a place in the device queue.
    Send,
    /// In the device queue, until a device has a slot and memory for it.
    Queue,
    /// Waiting for the key on its way to that device.
    Key,
    /// Being brought to the device, beside what computes there.
    Prepare,
    /// Waiting for the device's compute lock.
    Lock,
    /// Under the compute lock.
    Device,
    /// The host assembles and verifies the proof, or it waits for a thread that does.
    Finish,
}

impl Phase {
    /// All, in their order.
    pub const ALL: [Self; 9] = [
        Self::Admission,
        Self::Synthesis,
        Self::Send,
        Self::Queue,
        Self::Key,
        Self::Prepare,
        Self::Lock,
        Self::Device,
        Self::Finish,
    ];

    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Synthesis => "synthesis",
            Self::Send => "send",
            Self::Queue => "queue",
            Self::Key => "key",
            Self::Prepare => "prepare",
            Self::Lock => "lock",
            Self::Device => "device",
            Self::Finish => "finish",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How long something was in each phase, all attempts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes([Duration; Phase::ALL.len()]);

impl PhaseTimes {
    /// The time in one phase.
    pub fn of(&self, phase: Phase) -> Duration {
        self.0[phase as usize]
    }

    /// The time in all of them.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// Each phase with its time, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Duration)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.of(phase)))
    }

    pub(crate) fn add(&mut self, phase: Phase, time: Duration) {
        self.0[phase as usize] += time;
    }
}

/// What a partition took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// Its number in the job.
    pub index: u32,
    /// Witnesses that were begun: 0 if it was never admitted, more than one after a fault that cost the witness.
    pub syntheses: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// The device that it was at last.
    pub device: Option<DeviceId>,
    /// Whether it has a proof.
    pub proved: bool,
    /// Where its time went. Of a partition that has a proof, they add up to the time from the submission to the proof.
    pub times: PhaseTimes,
}

/// What a job took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// The job.
    pub job: JobId,
    /// Its circuit.
    pub circuit: CircuitId,
    /// When it was submitted, since the engine's start.
    pub submitted: Time,
    /// When it ended, since the engine's start.
    pub ended: Time,
    /// Its partitions, in their order.
    pub partitions: Vec<PartitionReport>,
}

impl JobReport {
    /// From its submission to its end.
    pub fn duration(&self) -> Duration {
        self.ended.saturating_sub(self.submitted)
    }

    /// The time of all its partitions in each phase.
    pub fn times(&self) -> PhaseTimes {
        let mut sum = PhaseTimes::default();
        for (phase, time) in self.partitions.iter().flat_map(|p| p.times.iter()) {
            sum.add(phase, time);
        }
        sum
    }
}
