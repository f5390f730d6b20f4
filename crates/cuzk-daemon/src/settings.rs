//! From the daemon's configuration to the engine's.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use cuzk_engine::{EngineConfig, MemoryConfig, ReplayConfig, ThreadConfig};
use cuzk_plugin::Loader;
use cuzk_prover::{
    Directories,
    devices::{Memory, Request, Wanted},
};
use cuzk_scheduler::{Config as Policy, CriticalReserve, TotalBudget, Workers};
use cuzk_server::{
    config::{self, Auto, Config},
    server::ProverError,
};

/// Exit code of a mistake in the configuration.
const USAGE: u8 = 2;

/// What a prover is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engine's part.
    pub engine: EngineConfig,
    /// Which devices.
    pub devices: Request,
    /// What these may take.
    pub memory: Memory,
    /// Where circuits are.
    pub directories: Directories,
    /// Circuits whose keys are loaded at the start.
    pub preload: Vec<String>,
}

impl Settings {
    /// What a configuration says, in an environment.
    ///
    /// # Errors
    /// There is no directory for the cache.
    pub fn new(config: &Config, variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, ProverError> {
        let Config { srs, memory, gpus, backend, .. } = config;
        within_bounds(config)?;
        let limit = |limit: &Auto<config::Bytes>| match limit {
            Auto::Auto => 0,
            Auto::Given(bytes) => bytes.0,
        };
        let names: Vec<String> = gpus.devices.iter().map(|name| name.0.clone()).collect();
        Ok(Self {
            engine: engine(config),
            devices: Request {
                backend: backend.name.clone(),
                devices: if names.is_empty() { Wanted::All } else { Wanted::Named(names) },
                loader: Loader::new(backend.plugin_dir.clone(), std::iter::empty::<PathBuf>()),
            },
            memory: Memory {
                device_limit: limit(&backend.vram_limit),
                pinned_bytes: limit(&backend.pinned_limit),
                threads: 0,
            },
            directories: Directories {
                parameters: srs.param_cache.clone(),
                cache: match &srs.circuit_cache {
                    Auto::Given(directory) => directory.clone(),
                    Auto::Auto => cache_directory(variable)?,
                },
            },
            preload: memory.preload.clone(),
        })
    }
}

/// Threads of a kind that a configuration may ask for: more than any machine has cores.
const MOST_THREADS: u32 = 4096;

/// Numbers that would only bring the machine down.
fn within_bounds(config: &Config) -> Result<(), ProverError> {
    let workers = match config.pipeline.partition_workers {
        config::Workers::Auto => 0,
        config::Workers::Fixed(n) => n.get(),
    };
    let asked = [
        ("pipeline.partition_workers", workers),
        ("synthesis.threads", config.synthesis.threads),
        ("synthesis.threads_per_worker", config.synthesis.threads_per_worker),
        ("gpus.gpu_threads", config.gpus.gpu_threads),
        ("gpus.gpu_workers_per_device", config.gpus.gpu_workers_per_device.get()),
        ("scheduler.critical_permits", config.scheduler.critical_permits),
    ];
    match asked.into_iter().find(|(_, n)| *n > MOST_THREADS) {
        None => Ok(()),
        Some((key, n)) => {
            Err(ProverError { message: format!("{key} is {n}, at most {MOST_THREADS} are possible"), exit_code: USAGE })
        }
    }
}

fn engine(config: &Config) -> EngineConfig {
    let Config { srs, memory, gpus, scheduler, synthesis, pipeline, backend, replay, .. } = config;
    let number = |n: u32| n as usize;
    EngineConfig {
        scheduler: Policy {
            partition_workers: match pipeline.partition_workers {
                config::Workers::Auto => Workers::Auto,
                config::Workers::Fixed(n) => Workers::Fixed(number(n.get())),
            },
            lookahead: number(pipeline.synthesis_lookahead).max(1),
            critical_permits: number(scheduler.critical_permits),
            critical_reserve: CriticalReserve {
                host: scheduler.critical_reserve_host.0,
                pinned: scheduler.critical_reserve_pinned.0,
                device: scheduler.critical_reserve_device.0,
            },
            gpu_workers_per_device: number(gpus.gpu_workers_per_device.get()),
            max_batch: number(scheduler.max_batch_size.get()),
            sort_by_type: scheduler.sort_by_type,
            max_overtakes: scheduler.max_overtakes,
            eviction_min_idle: memory.eviction_min_idle,
            key_load_attempts: srs.load_attempts.get(),
            max_self_tests: gpus.max_self_tests.get(),
            self_test_interval: gpus.self_test_interval,
            ..Policy::default()
        },
        memory: MemoryConfig {
            total_budget: match &memory.total_budget {
                Auto::Auto => TotalBudget::Auto,
                Auto::Given(bytes) => TotalBudget::Bytes(bytes.0),
            },
            safety_margin: memory.safety_margin.0,
            spare_witnesses: memory.spare_witnesses,
        },
        threads: ThreadConfig {
            synthesis: number(synthesis.threads),
            per_synthesis: number(synthesis.threads_per_worker),
            gpu_threads: number(gpus.gpu_threads),
        },
        watchdog: backend.watchdog.max(Duration::from_secs(1)),
        multiples: backend.multiples,
        replay: replay.directory.clone().map(|directory| ReplayConfig {
            directory,
            inputs: replay.inputs,
            max_bundles: number(replay.max_bundles.get()),
        }),
    }
}

/// What "auto" stands for.
fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, ProverError> {
    let of = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    of("CACHE_DIRECTORY")
        .or_else(|| Some(of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")))?.join("cuzk")))
        .ok_or_else(|| ProverError {
            message: "srs.circuit_cache is \"auto\", but none of CACHE_DIRECTORY, XDG_CACHE_HOME and HOME is set"
                .to_owned(),
            exit_code: USAGE,
        })
}
