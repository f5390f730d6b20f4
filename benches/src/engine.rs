//! An engine as benchmarks want it: on which devices, with how much of them, and what comes out.

use std::path::{Path, PathBuf};

use clap::Args;
use cuzk_curve::Bls12;
use cuzk_engine::{EngineConfig, JobError, JobHandle, MemoryConfig};
use cuzk_plugin::Loader;
use cuzk_prover::devices::{self, FindError, Found, Memory, Request, Wanted};
use cuzk_scheduler::{TotalBudget, Workers, units::parse_bytes};
use cuzk_tests::plugin_folder;

/// Options of a benchmark of an engine.
#[derive(Args, Clone, Debug)]
pub struct EngineOptions {
    /// Backend: cpu, or a plugin
    #[arg(long, default_value = "cpu")]
    backend: String,
    /// Where plugins are; without, where `cargo xtask build` puts them
    #[arg(long)]
    plugin_dir: Option<PathBuf>,
    /// Device memory that may be reserved: a size, or everything
    #[arg(long, default_value = "0", value_parser = bytes)]
    device_memory: u64,
    /// Partitions that are synthesized at a time
    #[arg(long, default_value = "auto", value_parser = workers)]
    partition_workers: Workers,
    /// Partitions at a device at a time
    #[arg(long, default_value_t = 2)]
    gpu_workers: usize,
}

impl EngineOptions {
    /// Looks for devices.
    ///
    /// # Errors
    /// There are none.
    pub fn find(&self, wanted: Wanted) -> Result<Found, FindError> {
        let plugins = self.plugin_dir.clone().unwrap_or_else(plugin_folder);
        devices::find(&Request {
            backend: self.backend.clone(),
            devices: wanted,
            loader: Loader::new([plugins], std::iter::empty::<&Path>()),
        })
    }

    /// What may be taken of each device.
    pub fn memory(&self) -> Memory {
        Memory { device_limit: self.device_memory, ..Memory::default() }
    }

    /// The engine's configuration with a budget of host memory.
    pub fn config(&self, host: TotalBudget) -> EngineConfig {
        let memory = MemoryConfig { total_budget: host, ..MemoryConfig::default() };
        let mut config = EngineConfig { memory, ..EngineConfig::default() };
        config.scheduler.partition_workers = self.partition_workers;
        config.scheduler.gpu_workers_per_device = self.gpu_workers;
        config
    }
}

/// A budget of host memory: a size, or `auto`.
///
/// # Errors
/// Neither.
pub fn budget(text: &str) -> Result<TotalBudget, String> {
    text.parse().map_err(|e| format!("{e}"))
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|e| format!("{e}"))
}

fn workers(text: &str) -> Result<Workers, String> {
    match text {
        "auto" => Ok(Workers::Auto),
        n => n.parse().map(Workers::Fixed).map_err(|e| format!("{e}")),
    }
}

/// Waits for a job; the bytes of its proofs.
///
/// # Errors
/// It failed.
pub fn proof_bytes(job: &JobHandle<Bls12>) -> Result<Vec<u8>, JobError> {
    Ok(job.wait()?.iter().flat_map(|p| p.proof.to_bytes()).collect())
}
