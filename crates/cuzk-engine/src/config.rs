//! How an engine is set up, and the sizes of its pools that follow from it.

use std::{fmt, path::PathBuf, time::Duration};

use cuzk_scheduler::{
    Config as Policy, TotalBudget, Workers,
    units::{bytes, seconds},
};
use serde::{Deserialize, Serialize};

use crate::Machine;

/// How an engine is set up. Every part has defaults, so an empty configuration file is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EngineConfig {
    /// The scheduler's policy.
    pub scheduler: Policy,
    /// Host memory.
    pub memory: MemoryConfig,
    /// Sizes of the thread pools.
    pub threads: ThreadConfig,
    /// How long a single call to a device may take, in seconds. A device that does not answer by then counts as lost.
    /// All the kernels of a partition are one call; of a key that is loaded, each chunk of points.
    #[serde(with = "seconds")]
    pub watchdog: Duration,
    /// Whether multiples of a key's points may be computed when it is loaded, if a device's memory allows it: see
    /// [`cuzk_groth16::Budget::multiples`].
    pub multiples: bool,
    /// Where failed attempts are written down; `None`: nowhere.
    pub replay: Option<ReplayConfig>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            scheduler: Policy::default(),
            memory: MemoryConfig::default(),
            threads: ThreadConfig::default(),
            watchdog: Duration::from_secs(300),
            multiples: false,
            replay: None,
        }
    }
}

/// Host memory that may be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// `"auto"`, or bytes such as `"256GiB"`. Memory that devices take of the host (the CPU backend's) is not part of
    /// it.
    #[serde(with = "total_budget")]
    pub total_budget: TotalBudget,
    /// Bytes of the machine's memory that stay out of it in any case.
    #[serde(with = "bytes")]
    pub safety_margin: u64,
    /// Proved witnesses a circuit that are kept for the sake of their memory: see
    /// [`WitnessContext::take_used`](crate::WitnessContext::take_used). They count to the circuit's host memory,
    /// beside its matrices.
    pub spare_witnesses: u32,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self { total_budget: TotalBudget::Auto, safety_margin: 2 << 30, spare_witnesses: 1 }
    }
}

/// Sizes of the thread pools; 0: chosen from the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ThreadConfig {
    /// Cores for synthesis altogether. 0: all.
    pub synthesis: usize,
    /// Threads of the pool that one synthesis runs in, for circuits that synthesize in parallel. 0: one.
    pub per_synthesis: usize,
    /// Threads that finish proofs. 0: an eighth of the cores, at least one and at most eight.
    pub gpu_threads: usize,
}

/// Where failed attempts are written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// A directory; made if it is absent.
    pub directory: PathBuf,
    /// Whether inputs may be written there. They can contain the witness's secrets.
    #[serde(default)]
    pub inputs: bool,
    /// How many bundles are kept; older ones are removed.
    #[serde(default = "default_bundles")]
    pub max_bundles: usize,
}

fn default_bundles() -> usize {
    32
}

/// The sizes of the pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadPlan {
    /// Cores for synthesis altogether.
    pub cores: usize,
    /// Threads that each run one synthesis at a time.
    pub synthesis: usize,
    /// Threads of the pool inside of each.
    pub per_synthesis: usize,
    /// Threads that finish proofs.
    pub finish: usize,
    /// Threads for files.
    pub runtime: usize,
    /// Threads a device that load keys, prepare and free, beside the one that computes.
    pub preparing: usize,
}

impl ThreadPlan {
    /// The sizes that follow from a configuration on a machine.
    pub fn new(config: &EngineConfig, machine: &Machine) -> Self {
        let or = |given: usize, otherwise: usize| if given == 0 { otherwise } else { given };
        let cores = or(config.threads.synthesis, machine.cores).max(1);
        let per_synthesis = or(config.threads.per_synthesis, 1);
        let workers = match config.scheduler.partition_workers {
            Workers::Fixed(n) => n,
            Workers::Auto => cores.div_ceil(per_synthesis),
        };
        Self {
            cores,
            synthesis: workers.saturating_add(config.scheduler.critical_permits),
            per_synthesis,
            finish: or(config.threads.gpu_threads, (machine.cores / 8).clamp(1, 8)),
            // A bundle may have to read a whole key for its digest; matrices do not wait for that.
            runtime: 2,
            // One more than prepare partitions at a time, so that these do not wait for a key that is being loaded.
            preparing: config.scheduler.gpu_workers_per_device + 1,
        }
    }
}

impl fmt::Display for ThreadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, synthesis, per_synthesis, finish, runtime, preparing } = self;
        write!(
            f,
            "{synthesis} synthesis threads with {per_synthesis} each inside ({cores} cores), {finish} finish threads, \
             {runtime} for files, 1 for callbacks, {preparing} preparing and 1 computing a device"
        )
    }
}

/// Serde: `"auto"`, or what [`bytes`] accepts.
mod total_budget {
    use cuzk_scheduler::TotalBudget;
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Form {
        Number(u64),
        Text(String),
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TotalBudget, D::Error> {
        match Form::deserialize(deserializer)? {
            Form::Number(n) => Ok(TotalBudget::Bytes(n)),
            Form::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }

    pub(super) fn serialize<S: Serializer>(budget: &TotalBudget, serializer: S) -> Result<S::Ok, S::Error> {
        match *budget {
            TotalBudget::Auto => serializer.serialize_str("auto"),
            TotalBudget::Bytes(n) => serializer.serialize_u64(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_and_written() {
        let text = "watchdog = 5.5\n[memory]\ntotal_budget = \"3GiB\"\n[scheduler]\npartition_workers = 3\n";
        let config: EngineConfig = toml::from_str(text).unwrap();
        assert_eq!(config.memory.total_budget, TotalBudget::Bytes(3 << 30));
        assert_eq!(config.watchdog, Duration::from_millis(5500));
        assert_eq!(toml::from_str::<EngineConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        assert_eq!(toml::from_str::<EngineConfig>("").unwrap(), EngineConfig::default());
        assert!(toml::from_str::<EngineConfig>("watchdogs = 1").is_err());
        assert!(toml::from_str::<EngineConfig>("[memory]\ntotal_budget = \"lots\"").is_err());
    }

    #[test]
    fn pools_are_sized_from_config_or_machine() {
        let machine = Machine { cores: 64, memory_bytes: 0 };
        let plan = ThreadPlan::new(&EngineConfig::default(), &machine);
        assert_eq!((plan.synthesis, plan.per_synthesis, plan.finish, plan.preparing), (65, 1, 8, 3));
        let mut config = EngineConfig::default();
        config.scheduler.partition_workers = Workers::Fixed(12);
        config.threads = ThreadConfig { synthesis: 48, per_synthesis: 4, gpu_threads: 3 };
        let plan = ThreadPlan::new(&config, &machine);
        assert_eq!((plan.synthesis, plan.per_synthesis, plan.finish, plan.cores), (13, 4, 3, 48));
    }
}
