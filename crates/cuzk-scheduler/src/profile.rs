//! What a circuit costs: bytes in each stage of a partition, bytes of its key, and how long the stages take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    DeviceId, Pool,
    units::{bytes, seconds},
};

/// A circuit and its key, as far as scheduling is concerned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitProfile {
    /// For people.
    pub name: String,
    /// Where its key must lie to be used, and how large it is there.
    #[serde(default)]
    pub key: KeyBytes,
    /// What one partition holds, stage by stage.
    pub partition: PartitionBytes,
    /// What it takes on single devices, where that is not the same as on all others: a small one streams what a large
    /// one keeps.
    #[serde(default)]
    pub devices: Vec<OnDevice>,
    /// Cores that one synthesis keeps busy.
    #[serde(default = "one")]
    pub synthesis_cores: f64,
    /// Stage times to start from, before anything was measured.
    #[serde(default)]
    pub expected: Option<StageTimes>,
}

fn one() -> f64 {
    1.0
}

/// Where a key must lie, and its bytes there. `None`: not needed there. The residency plan is the caller's: a key that
/// is streamed to the device is needed in pinned memory, one that stays on the device is needed there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KeyBytes {
    /// In host memory before a witness can be made: matrices, the mapped key. A key that lies only here is *warm*.
    #[serde(with = "bytes::option")]
    pub host: Option<u64>,
    /// In pinned memory before a device can use it.
    #[serde(with = "bytes::option")]
    pub pinned: Option<u64>,
    /// In the memory of each device that proves with it.
    #[serde(with = "bytes::option")]
    pub device: Option<u64>,
}

impl KeyBytes {
    /// Bytes of the key in a pool, on a device that is no exception; `None` if it is not needed there.
    pub fn in_pool(&self, pool: Pool) -> Option<u64> {
        match pool {
            Pool::Host => self.host,
            Pool::Pinned => self.pinned,
            Pool::Device(_) => self.device,
        }
    }

    /// Takes a pool out of those that it is needed in.
    pub(crate) fn forget(&mut self, pool: Pool) {
        match pool {
            Pool::Host => self.host = None,
            Pool::Pinned => self.pinned = None,
            Pool::Device(_) => self.device = None,
        }
    }
}

/// Bytes on the host's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostBytes {
    /// Ordinary memory.
    #[serde(with = "bytes")]
    pub host: u64,
    /// Pinned memory.
    #[serde(with = "bytes")]
    pub pinned: u64,
}

impl HostBytes {
    fn max(self, other: Self) -> Self {
        Self { host: self.host.max(other.host), pinned: self.pinned.max(other.pinned) }
    }
}

/// Bytes that one partition holds, stage by stage.
///
/// A reservation is made for the largest of the stages to come and only shrinks, so that nobody who holds memory has to
/// wait for more of the same pool: that is why the pools cannot deadlock. On a device, what is needed only under the
/// compute lock is reserved once for all partitions that are there, before the first of them is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartitionBytes {
    /// While the witness is made, at its peak.
    pub synthesis: HostBytes,
    /// From the finished witness until `prove_start` returns: waiting, being sent, on the device.
    pub synthesized: HostBytes,
    /// From there until `prove_finish` returns: without the evaluation vectors.
    pub finishing: HostBytes,
    /// On the device while it is prepared, beside another one's kernels.
    #[serde(with = "bytes")]
    pub device_prepared: u64,
    /// On the device under its compute lock.
    #[serde(with = "bytes")]
    pub device_running: u64,
    /// On the device after its kernels, until `prove_finish` returns.
    #[serde(with = "bytes")]
    pub device_finishing: u64,
}

impl PartitionBytes {
    /// To reserve before synthesis: the most that any stage holds.
    pub fn to_synthesize(&self) -> HostBytes {
        self.synthesis.max(self.held_synthesized())
    }

    /// What stays reserved once the witness is there.
    pub fn held_synthesized(&self) -> HostBytes {
        self.synthesized.max(self.finishing)
    }

    /// What stays reserved on the host's side after `prove_start`.
    pub fn held_finishing(&self) -> HostBytes {
        self.finishing
    }
}

/// What one partition and its key take on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnDevice {
    /// The device: its index.
    pub device: u16,
    /// The key; `None`: not needed there.
    #[serde(default, with = "bytes::option")]
    pub key: Option<u64>,
    /// While a partition is prepared, beside another one's kernels.
    #[serde(default, with = "bytes")]
    pub prepared: u64,
    /// Under the compute lock. More than the device has: it is of no use for this circuit.
    #[serde(default, with = "bytes")]
    pub running: u64,
    /// After its kernels, until `prove_finish` returns.
    #[serde(default, with = "bytes")]
    pub finishing: u64,
}

impl OnDevice {
    /// What `exceptions` say of a device, or else what holds for all.
    pub(crate) fn of(device: DeviceId, key: &KeyBytes, bytes: &PartitionBytes, exceptions: &[Self]) -> Self {
        exceptions.iter().find(|e| e.device == device.0).copied().unwrap_or(Self {
            device: device.0,
            key: key.device,
            prepared: bytes.device_prepared,
            running: bytes.device_running,
            finishing: bytes.device_finishing,
        })
    }

    /// To reserve for the partition before it is prepared. It keeps that until its kernels are done.
    pub fn own(&self) -> u64 {
        self.prepared.max(self.finishing)
    }

    /// What it needs beyond its own under the compute lock. One partition holds the lock at a time, so all that are at
    /// the device share one reservation for it, which is as large as the largest of them needs.
    pub fn under_lock(&self) -> u64 {
        self.running.saturating_sub(self.own())
    }

    /// The most that one partition takes.
    pub fn partition(&self) -> u64 {
        self.own().saturating_add(self.under_lock())
    }

    /// One partition and its key.
    pub(crate) fn alone(&self) -> u64 {
        self.partition().saturating_add(self.key.unwrap_or(0))
    }
}

/// How long the stages of one partition take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageTimes {
    /// Making the witness, at the concurrency that was in use.
    #[serde(with = "seconds")]
    pub synthesis: Duration,
    /// Under the compute lock.
    #[serde(with = "seconds")]
    pub device: Duration,
}

/// Something that a partition or a key needs of a pool, and what the pool could give to it at most, with the machine
/// empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Which pool.
    pub pool: Pool,
    /// Bytes that are needed: one partition and its key.
    pub requested: u64,
    /// Bytes that such a job may use at most.
    pub capacity: u64,
}

impl CircuitProfile {
    /// Bytes of a pool that one partition and its key need together.
    pub(crate) fn alone_in(&self, pool: Pool) -> u64 {
        let host = self.partition.to_synthesize();
        let partition = match pool {
            Pool::Host => host.host,
            Pool::Pinned => host.pinned,
            Pool::Device(device) => return self.on_device(device).alone(),
        };
        partition.saturating_add(self.key_in(pool).unwrap_or(0))
    }

    /// What one partition and the key take on a device.
    pub fn on_device(&self, device: DeviceId) -> OnDevice {
        OnDevice::of(device, &self.key, &self.partition, &self.devices)
    }

    /// Bytes of the key in a pool; `None` if it is not needed there.
    pub fn key_in(&self, pool: Pool) -> Option<u64> {
        match pool {
            Pool::Host | Pool::Pinned => self.key.in_pool(pool),
            Pool::Device(device) => self.on_device(device).key,
        }
    }

    /// Whether a device with `capacity` usable bytes can hold one partition and its key.
    pub(crate) fn shortage(&self, pool: Pool, capacity: u64) -> Option<Shortage> {
        let requested = self.alone_in(pool);
        (requested > capacity).then_some(Shortage { pool, requested, capacity })
    }

    /// Pools other than devices that its key must lie in.
    pub(crate) fn shared_pools(&self) -> impl Iterator<Item = (Pool, u64)> + use<> {
        let key = self.key;
        [Pool::Host, Pool::Pinned].into_iter().filter_map(move |p| Some((p, key.in_pool(p)?)))
    }

    /// All pools that its key must lie in to be used on `device`.
    pub(crate) fn pools_for(&self, device: DeviceId) -> impl Iterator<Item = (Pool, u64)> + use<> {
        let on_device = self.on_device(device).key.map(|bytes| (Pool::Device(device), bytes));
        self.shared_pools().chain(on_device)
    }
}
