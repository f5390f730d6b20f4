//! Which device to compute on, and why that one.

use std::path::PathBuf;

use cuzk_backend::{Device, DeviceOptions};
use cuzk_groth16::{Budget, ResidencyPlan};
use cuzk_plugin::Loader;
use cuzk_prover::devices::{self, CPU, Found, Request, Wanted};

use crate::{
    args::{DeviceArgs, PluginArgs},
    failure::{Class, Failure},
    limits::{Limit, Limits},
    report,
};

/// An opened device and how it was chosen.
pub(crate) struct Chosen {
    pub(crate) device: Device,
    /// How it was found, and how it is opened again.
    found: Found,
    options: DeviceOptions,
    /// The most pinned memory that may be asked for.
    pinned_limit: u64,
}

impl Chosen {
    /// What a residency plan may spend on this device.
    pub(crate) fn budget(&self, multiples: bool) -> Result<Budget, Failure> {
        Ok(Budget { pinned_bytes: self.pinned_limit, multiples, ..Budget::free(&self.device.memory()?) })
    }

    /// The device with the pinned memory that a plan needs. The pool is allocated when a device is opened and never
    /// grows, so one that is too small is opened again; nothing may lie on it yet.
    pub(crate) fn prepared(self, plan: &ResidencyPlan) -> Result<Self, Failure> {
        let memory = self.device.memory()?;
        if plan.pinned_bytes() <= memory.pinned.capacity {
            return Ok(self);
        }
        let Self { device, found, mut options, pinned_limit } = self;
        // The cap stays what the plan was made for.
        options.device_memory_limit = memory.device.capacity;
        options.pinned_bytes = plan.pinned_bytes();
        drop(device);
        Ok(Self { device: open_first(&found, &options)?, found, options, pinned_limit })
    }

    /// Name of its backend.
    pub(crate) fn backend(&self) -> &str {
        self.found.backend().name()
    }

    /// One line for a person: backend, device, why.
    pub(crate) fn describe(&self) -> String {
        let info = self.device.info();
        let features = if info.features.is_empty() { String::new() } else { format!(", {}", info.features) };
        format!("{}, {} ({} units{features}): {}", self.backend(), info.name, info.compute_units, self.found.reason())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let info = self.device.info();
        serde_json::json!({
            "backend": self.backend(), "device": info.name, "uuid": info.uuid, "driver": info.driver,
            "features": info.features, "chosen": self.found.reason(),
        })
    }
}

/// The loader of plugins: `--plugin-dir`, then `CUZK_PLUGIN_DIR`, then beside the executable.
pub(crate) fn loader(args: &PluginArgs) -> Loader {
    let from_environment: Vec<PathBuf> =
        std::env::var_os("CUZK_PLUGIN_DIR").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    Loader::new(args.plugin_dir.clone(), from_environment)
}

/// Pinned memory of a device before there is a plan: for the self-test and small results.
const FIRST_PINNED: u64 = 64 << 20;

/// Opens the device that the command line asks for. There is no fall back: a backend that was named and cannot be used
/// is an error.
pub(crate) fn open(args: &DeviceArgs) -> Result<Chosen, Failure> {
    let limits = Limits::of(args)?;
    let found = devices::find(&Request {
        backend: args.backend.clone(),
        devices: args.device.clone().map_or(Wanted::First, |wanted| Wanted::Named(vec![wanted])),
        loader: loader(&args.plugins),
    })?;
    let on_cpu = found.backend().name() == CPU;
    let mut options = DeviceOptions { threads: args.host.threads, ..DeviceOptions::default() };
    let bytes = |limit: &Option<Limit>| limit.as_ref().map(|limit| limit.bytes);
    if on_cpu {
        limits.without_effect(CPU, args.backend == CPU)?;
    } else {
        options.device_memory_limit = bytes(&limits.vram).unwrap_or(0);
        options.pinned_bytes = FIRST_PINNED.min(bytes(&limits.pinned).unwrap_or(FIRST_PINNED));
    }
    let device = open_first(&found, &options)?;
    let pinned = device.memory()?.pinned.capacity;
    // Half of the host's memory stays for everything else.
    let half = report::available_bytes().map_or(pinned, |bytes| bytes / 2);
    let pinned_limit = if on_cpu { pinned } else { bytes(&limits.pinned).unwrap_or(half).max(pinned) };
    let chosen = Chosen { device, found, options, pinned_limit };
    tracing::info!("computing on {}", chosen.describe());
    Ok(chosen)
}

/// Opens the one device that was asked for.
fn open_first(found: &Found, options: &DeviceOptions) -> Result<Device, Failure> {
    let device = found.devices().first().ok_or_else(|| Failure::new(Class::Device, "no device was found"))?;
    Ok(found.open(device, options)?)
}
