//! What one can ask at any time: why a device or a partition waits, and the numbers.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    CircuitId, DeviceId, Health, JobId, KeyStatus, KeyTier, MemoryBudget, PartitionId, Pool, Stage, Time,
    autotune::Choice,
    reason::{Blocked, IdleReason},
    residency::Access,
};

/// How much there is of everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that have not ended.
    pub jobs: usize,
    /// Partitions in synthesis.
    pub synthesizing: usize,
    /// Witnesses that wait for a place in the queue.
    pub synthesized: usize,
    /// Places of the queue that are taken, by what lies in it or is being sent.
    pub places: usize,
    /// How many places it has.
    pub queue_capacity: usize,
    /// Partitions that lie in the queue, those that came back from a device included.
    pub queued: usize,
    /// Permits that are held.
    pub permits: usize,
    /// Permits that there are, beside those for CRITICAL jobs.
    pub workers: usize,
}

impl Scheduler {
    /// The accounts of all pools.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// The number of workers now, and why.
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// How much there is of everything.
    pub fn counts(&self) -> Counts {
        Counts {
            jobs: self.jobs.len(),
            synthesizing: self.synthesizing,
            synthesized: self.synthesized.len(),
            places: self.places,
            queue_capacity: self.queue_capacity(),
            queued: self.queue.len(),
            permits: self.permits,
            workers: self.choice.workers,
        }
    }

    /// The stages of a job's partitions, in their order; `None` if it is not known or has ended.
    pub fn stages(&self, job: JobId) -> Option<Vec<Stage>> {
        Some(self.jobs.get(&job)?.partitions.iter().map(|p| p.stage).collect())
    }

    /// How many jobs are ahead of this one.
    pub fn queue_position(&self, job: JobId) -> Option<usize> {
        self.order.values().position(|j| *j == job)
    }

    /// Whether a device takes work.
    pub fn health(&self, device: DeviceId) -> Option<Health> {
        Some(self.devices.get(usize::from(device.0))?.health)
    }

    /// All keys that take memory.
    pub fn keys(&self) -> impl Iterator<Item = KeyStatus> + '_ {
        self.residency.status()
    }

    /// All pools that a circuit's key is loaded to if it is wanted in advance, with its bytes there: those of the host,
    /// and those of the devices that take work.
    pub fn key_pools(&self, circuit: CircuitId) -> BTreeMap<Pool, u64> {
        let Some(profile) = self.circuits.get(&circuit).map(|c| &c.profile) else { return BTreeMap::new() };
        let devices = self.devices.iter().filter(|d| d.is_healthy()).map(|d| d.id);
        profile.shared_pools().chain(devices.flat_map(|d| profile.pools_for(d))).collect()
    }

    /// Whether a circuit's key that was wanted in advance still waits for others to leave.
    pub fn is_preloading(&self, circuit: CircuitId) -> bool {
        self.preloads.contains(&circuit)
    }

    /// How close a circuit's key is to its use; `None` if the circuit is not known.
    pub fn key_tier(&self, circuit: CircuitId) -> Option<KeyTier> {
        let profile = &self.circuits.get(&circuit)?.profile;
        let loaded = |pool| self.residency.access(circuit, pool) == Some(Access::Ready);
        let hot = |d: &DeviceId| profile.pools_for(*d).all(|(pool, _)| loaded(pool));
        let healthy = self.devices.iter().filter(|d| d.is_healthy()).map(|d| d.id);
        let warm = profile.key.host.is_some() && loaded(Pool::Host);
        Some(match healthy.collect::<Vec<_>>().iter().any(hot) {
            true => KeyTier::Hot,
            false if warm => KeyTier::Warm,
            false => KeyTier::Cold,
        })
    }

    /// When to send a [`Tick`](crate::Event::Tick) at the latest: a deadline, a self-test, a key that becomes old
    /// enough to leave.
    pub fn next_wakeup(&self) -> Option<Time> {
        let deadlines = self.jobs.values().filter(|j| j.ending.is_none()).filter_map(|j| j.request.deadline);
        let tests = self.devices.iter().filter_map(|d| d.health.next_test());
        deadlines.chain(tests).chain(self.residency.wakeup()).min()
    }

    /// Why a device does not compute; `None` if it does, or does not exist.
    pub fn idle_reason(&self, device: DeviceId) -> Option<IdleReason> {
        let state = self.devices.get(usize::from(device.0))?;
        if let Some(reason) = IdleReason::of_health(state.health) {
            return Some(reason);
        }
        if !state.running.is_empty() {
            return None;
        }
        let stage = |id: &PartitionId| self.partition(*id).map(|p| (p.stage, p.aborting));
        let at = |wanted: Stage| state.assigned.values().find(|id| stage(id) == Some((wanted, false)));
        let critical = self.critical_in_preparation(device).and_then(|id| self.ticket(id));
        if let Some((_, kept_for)) = at(Stage::Prepared(device)).zip(critical) {
            return Some(IdleReason::Lock { kept_for });
        }
        if let Some(ticket) = at(Stage::Preparing(device)).and_then(|id| self.ticket(*id)) {
            return Some(IdleReason::Transfer { ticket });
        }
        let awaiting = at(Stage::AwaitingKey(device)).and_then(|id| self.circuit_of(*id));
        if let Some(circuit) = awaiting {
            return Some(IdleReason::KeyLoad { circuit, pool: Pool::Device(device) });
        }
        if let Some(reason) = state.blocked.as_ref().and_then(IdleReason::of_block) {
            return Some(reason);
        }
        if !self.queue.is_empty() {
            return Some(IdleReason::LeftToOthers { queued: self.queue.len() });
        }
        if self.places > 0
            && let Some(ticket) = self.first_sending()
        {
            return Some(IdleReason::Transfer { ticket });
        }
        if self.synthesizing == 0 && self.synthesized.is_empty() && self.admission.is_none() {
            return Some(IdleReason::NoWork);
        }
        let admission = self.admission.clone();
        Some(IdleReason::NoSynthesizedPartition { synthesizing: self.synthesizing, admission })
    }

    fn first_sending(&self) -> Option<crate::Ticket> {
        self.order.values().filter_map(|id| self.jobs.get(id)).find_map(|job| {
            let index = job.partitions.iter().position(|p| p.stage == Stage::Sending)?;
            job.ticket(index as u32)
        })
    }

    /// Why a partition does not go on; `None` if it does, is over, or is not known.
    pub fn waiting_reason(&self, id: PartitionId) -> Option<Blocked> {
        let p = self.partition(id).filter(|p| !p.aborting)?;
        match p.stage {
            Stage::Pending => self.admission.clone(),
            Stage::Synthesized => Some(Blocked::QueueFull { queued: self.places, capacity: self.queue_capacity() }),
            Stage::Queued => {
                let rank = self.rank(id)?;
                let mine: Vec<_> = self.devices.iter().filter(|d| self.may_go(d, rank, p)).collect();
                if !mine.iter().any(|d| d.is_healthy()) {
                    return Some(Blocked::Quarantine);
                }
                mine.iter().find_map(|d| d.blocked.clone()).or(Some(Blocked::Workers))
            }
            Stage::AwaitingKey(device) => {
                Some(Blocked::KeyLoad { circuit: self.circuit_of(id)?, pool: Pool::Device(device) })
            }
            Stage::Prepared(device) => Some(Blocked::Lock { device }),
            _ => None,
        }
    }
}
