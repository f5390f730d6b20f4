//! Devices: who is there, who computes, and whether it can be trusted.

use std::collections::BTreeMap;

use crate::{DeviceId, DeviceResources, PartitionId, Pool, Reservation, Time, job::Rank, reason::Blocked};

/// Whether a device takes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It does.
    Healthy,
    /// It was lost or made a fault, and takes none until it has passed a self-test.
    Quarantined {
        /// Since when.
        since: Time,
        /// Self-tests that it has failed since.
        failed_tests: u32,
        /// When the next one begins; `None`: one is under way.
        next_test: Option<Time>,
    },
    /// It has failed too many and takes none any more.
    Retired,
}

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) id: DeviceId,
    pub(crate) resources: DeviceResources,
    pub(crate) health: Health,
    /// Partitions that take its worker slots, from assignment until `prove_start` returns.
    pub(crate) assigned: BTreeMap<Rank, PartitionId>,
    /// Those of them that compute: the holder of the compute lock.
    pub(crate) running: Vec<PartitionId>,
    /// What the holder of the lock takes beyond its own, for the most demanding of the partitions in its slots.
    under_lock: Option<Reservation>,
    /// Whether the last ones that got the lock were CRITICAL.
    pub(crate) last_critical: bool,
    /// What kept the last round from assigning more to it.
    pub(crate) blocked: Option<Blocked>,
}

impl Device {
    pub(crate) fn new(id: DeviceId, resources: DeviceResources) -> Self {
        Self {
            id,
            resources,
            health: Health::Healthy,
            assigned: BTreeMap::new(),
            running: Vec::new(),
            under_lock: None,
            last_critical: false,
            blocked: None,
        }
    }

    pub(crate) fn pool(&self) -> Pool {
        Pool::Device(self.id)
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.health == Health::Healthy
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.health == Health::Retired
    }

    /// Bytes that are reserved for the holder of the lock.
    pub(crate) fn bytes_under_lock(&self) -> u64 {
        self.under_lock.as_ref().map_or(0, Reservation::bytes)
    }

    /// Adds to what is reserved for the holder of the lock.
    pub(crate) fn reserve_under_lock(&mut self, growth: Reservation) {
        match &mut self.under_lock {
            None => self.under_lock = Some(growth),
            Some(held) => {
                // Both are of this device's pool: nothing comes back.
                let _nothing = held.absorb(growth);
            }
        }
    }

    /// Gives back what none of the partitions in its slots needs under the lock.
    pub(crate) fn shrink_under_lock(&mut self, most: u64) {
        if let Some(held) = &mut self.under_lock {
            held.shrink_to(most);
        }
    }

    /// Forgets a partition that leaves its slot.
    pub(crate) fn unassign(&mut self, rank: Rank, partition: PartitionId) {
        self.assigned.remove(&rank);
        self.running.retain(|p| *p != partition);
    }
}
