//! What the scheduler is told at its start: policy, and what the machine has.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{
    DeviceId, Pool, Priority,
    units::{bytes, parse_bytes, seconds},
};

/// How many partitions are synthesized at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// That many.
    Fixed(usize),
    /// Chosen from budget, profile, cores and measured times: see [`autotune`](crate::autotune).
    Auto,
}

impl Serialize for Workers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(n) => n.serialize(serializer),
            Self::Auto => serializer.serialize_str("auto"),
        }
    }
}

impl<'de> Deserialize<'de> for Workers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(usize),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(n) => Ok(Self::Fixed(n)),
            Form::Text(t) if t == "auto" => Ok(Self::Auto),
            Form::Text(t) => Err(de::Error::custom(format!("partition_workers is a number or \"auto\", not {t:?}"))),
        }
    }
}

/// How long a partition keeps the permit that it was admitted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PermitScope {
    /// Until its witness is made. **An ablation**: finished witnesses that wait for the queue are then bounded by
    /// nothing but memory.
    Synthesis,
    /// Through the send, until it lies in the device queue. In flight before the devices: workers + queue capacity at
    /// most.
    Send,
    /// Until its kernels are done. In flight: workers at most, whatever the queue could hold.
    Proved,
}

/// Lessons that can be switched off, to measure what each is worth. The engine runs with the default: all on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ablation {
    /// Evaluation vectors are given back when `prove_start` returns. Off: when `prove_finish` does.
    pub early_free: bool,
    /// The queue's capacity is max(lookahead, workers). Off: lookahead.
    pub capacity_scaling: bool,
}

impl Default for Ablation {
    fn default() -> Self {
        Self { early_free: true, capacity_scaling: true }
    }
}

/// Bytes that only CRITICAL jobs may use, of each pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CriticalReserve {
    /// Of host memory.
    #[serde(with = "bytes")]
    pub host: u64,
    /// Of pinned memory.
    #[serde(with = "bytes")]
    pub pinned: u64,
    /// Of each device's memory.
    #[serde(with = "bytes")]
    pub device: u64,
}

impl CriticalReserve {
    /// Bytes that a job of `priority` must leave free.
    pub(crate) fn leave(&self, pool: Pool, priority: Priority) -> u64 {
        match (priority, pool) {
            (Priority::Critical, _) => 0,
            (_, Pool::Host) => self.host,
            (_, Pool::Pinned) => self.pinned,
            (_, Pool::Device(_)) => self.device,
        }
    }
}

/// Policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Partitions that are synthesized at a time: the permits.
    pub partition_workers: Workers,
    /// Synthesized partitions that may wait for a device, if that is more than the workers.
    pub lookahead: usize,
    /// Permits beyond `partition_workers` that only CRITICAL jobs may take.
    pub critical_permits: usize,
    /// Memory that only CRITICAL jobs may take. Their keys count: size it for those too.
    pub critical_reserve: CriticalReserve,
    /// Partitions at a device at a time: one computes, the others prepare. A CRITICAL one may come on top.
    pub gpu_workers_per_device: usize,
    /// Partitions of one circuit that start together under one hold of the compute lock, if so many are prepared.
    /// Nobody waits for a batch to fill.
    pub max_batch: usize,
    /// Inside a priority, admit jobs of the circuit that was admitted last before those of others.
    pub sort_by_type: bool,
    /// How often something may be overtaken (by a later job of the current circuit, by a partition whose key is on the
    /// device, by later ones of higher priority while it holds a permit) until it goes next.
    pub max_overtakes: u32,
    /// A key that nobody uses stays at least that long, even under pressure.
    #[serde(with = "seconds")]
    pub eviction_min_idle: Duration,
    /// How often a key's loading is tried.
    pub key_load_attempts: u32,
    /// How many self-tests in a row a quarantined device may fail before it is retired.
    pub max_self_tests: u32,
    /// Time between two of them.
    #[serde(with = "seconds")]
    pub self_test_interval: Duration,
    /// How long a permit is held.
    pub permit: PermitScope,
    /// Lessons switched off for comparison.
    pub ablation: Ablation,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            partition_workers: Workers::Auto,
            lookahead: 1,
            critical_permits: 1,
            critical_reserve: CriticalReserve::default(),
            gpu_workers_per_device: 2,
            max_batch: 1,
            sort_by_type: true,
            max_overtakes: 16,
            eviction_min_idle: Duration::from_secs(10),
            key_load_attempts: 2,
            max_self_tests: 3,
            self_test_interval: Duration::from_secs(60),
            permit: PermitScope::Send,
            ablation: Ablation::default(),
        }
    }
}

/// What the machine has.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    /// Cores for synthesis.
    pub cores: usize,
    /// Bytes of host memory that may be reserved.
    pub host: u64,
    /// Bytes of pinned memory that may be reserved.
    pub pinned: u64,
    /// The devices; [`DeviceId`] is the index.
    pub devices: Vec<DeviceResources>,
}

/// What a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceResources {
    /// Bytes of its memory that may be reserved.
    pub memory: u64,
    /// Takes only partitions that no other device can take any more: the CPU, where falling back to it is allowed.
    pub last_resort: bool,
}

impl Resources {
    /// Bytes of a pool; 0 if there is none.
    pub fn capacity(&self, pool: Pool) -> u64 {
        match pool {
            Pool::Host => self.host,
            Pool::Pinned => self.pinned,
            Pool::Device(DeviceId(index)) => self.devices.get(usize::from(index)).map_or(0, |d| d.memory),
        }
    }

    /// The devices' names.
    pub fn device_ids(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.devices.len().min(usize::from(u16::MAX))).map(|i| DeviceId(i as u16))
    }

    pub(crate) fn pools(&self) -> impl Iterator<Item = (Pool, u64)> + '_ {
        let devices = self.device_ids().map(Pool::Device);
        [Pool::Host, Pool::Pinned].into_iter().chain(devices).map(|p| (p, self.capacity(p)))
    }
}

/// A configuration under which nothing could ever run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number must be positive.
    #[error("{name} is 0, must be at least 1")]
    Zero {
        /// The setting.
        name: &'static str,
    },
    /// There is no device.
    #[error("no device is configured")]
    NoDevice,
    /// Too many devices.
    #[error("{given} devices are configured, at most {limit} are possible")]
    TooManyDevices {
        /// How many there are.
        given: usize,
        /// How many there can be.
        limit: usize,
    },
}

impl Config {
    /// Finds settings under which nothing could ever run.
    ///
    /// # Errors
    /// The first of them.
    pub fn validate(&self, resources: &Resources) -> Result<(), ConfigError> {
        let positive = [
            ("partition_workers", self.partition_workers != Workers::Fixed(0)),
            ("lookahead", self.lookahead > 0),
            ("gpu_workers_per_device", self.gpu_workers_per_device > 0),
            ("max_batch", self.max_batch > 0),
            ("key_load_attempts", self.key_load_attempts > 0),
            ("max_self_tests", self.max_self_tests > 0),
            ("cores", resources.cores > 0),
        ];
        if let Some((name, _)) = positive.into_iter().find(|(_, ok)| !ok) {
            return Err(ConfigError::Zero { name });
        }
        let (given, limit) = (resources.devices.len(), usize::from(u16::MAX));
        match given {
            0 => Err(ConfigError::NoDevice),
            _ if given > limit => Err(ConfigError::TooManyDevices { given, limit }),
            _ => Ok(()),
        }
    }
}

/// `memory.total_budget` of a configuration: `"auto"`, or a number of bytes such as `"256GiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TotalBudget {
    /// All of the machine's memory but the margin.
    Auto,
    /// That many bytes, or what the machine has less the margin if that is smaller.
    Bytes(u64),
}

impl TotalBudget {
    /// Bytes that may be reserved on a machine with `machine_bytes`, of which `safety_margin` stay free.
    pub fn resolve(self, machine_bytes: u64, safety_margin: u64) -> u64 {
        let most = machine_bytes.saturating_sub(safety_margin);
        match self {
            Self::Auto => most,
            Self::Bytes(bytes) => bytes.min(most),
        }
    }
}

impl std::str::FromStr for TotalBudget {
    type Err = crate::units::QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "auto" { Ok(Self::Auto) } else { parse_bytes(text).map(Self::Bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_budget_keeps_the_margin() {
        assert_eq!("auto".parse(), Ok(TotalBudget::Auto));
        assert_eq!("256GiB".parse(), Ok(TotalBudget::Bytes(256 << 30)));
        assert!("a lot".parse::<TotalBudget>().is_err());
        assert_eq!(TotalBudget::Auto.resolve(100, 10), 90);
        assert_eq!(TotalBudget::Bytes(50).resolve(100, 10), 50);
        assert_eq!(TotalBudget::Bytes(95).resolve(100, 10), 90);
    }

    #[test]
    fn a_configuration_is_read_as_people_write_it() {
        let text = "partition_workers = 'auto'\n\
                    eviction_min_idle = 2.5\n\
                    permit = 'proved'\n\
                    [critical_reserve]\n\
                    host = '1 GiB'";
        let config: Config = toml::from_str(text).unwrap();
        let expected = Config {
            eviction_min_idle: Duration::from_millis(2500),
            permit: PermitScope::Proved,
            critical_reserve: CriticalReserve { host: 1 << 30, pinned: 0, device: 0 },
            ..Config::default()
        };
        assert_eq!(config, expected);
        assert_eq!(toml::from_str::<Config>(&toml::to_string(&config).unwrap()), Ok(config));
        for bad in ["partition_workers = 'many'", "partition_worker = 1", "self_test_interval = -1", "permit = 'never'"]
        {
            assert!(toml::from_str::<Config>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_configuration_under_which_nothing_runs_is_refused() {
        let device = DeviceResources { memory: 1, last_resort: false };
        let resources = Resources { cores: 1, host: 1, pinned: 1, devices: vec![device] };
        assert_eq!(Config::default().validate(&resources), Ok(()));
        let none = Resources { devices: vec![], ..resources.clone() };
        assert_eq!(Config::default().validate(&none), Err(ConfigError::NoDevice));
        let zero = Config { lookahead: 0, ..Config::default() };
        assert_eq!(zero.validate(&resources), Err(ConfigError::Zero { name: "lookahead" }));
    }
}
