//! Which device to compute on, and why that one.

use std::path::{Path, PathBuf};

use cuzk_backend::{Backend, Device, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;
use cuzk_groth16::{Budget, ResidencyPlan};
use cuzk_plugin::{Loader, PluginBackend};

use crate::{args::Global, failure::Failure, report};

/// An opened device and how it was chosen.
pub(crate) struct Chosen {
    pub(crate) device: Device,
    pub(crate) backend: String,
    pub(crate) reason: String,
    /// How it was opened, and how it is opened again.
    found: Found,
    /// The most pinned memory that may be asked for.
    pinned_limit: u64,
}

/// A device of a backend, with the options that it is opened with.
struct Found {
    backend: Box<dyn Backend>,
    index: u32,
    options: DeviceOptions,
}

impl Found {
    /// Before anything is computed on a device it must give the known answers of the self-test.
    fn open(&self) -> Result<Device, Failure> {
        let device = Device::open(&*self.backend, self.index, &self.options)?;
        self_test::run(&device, CurveId::Bls12_381)?;
        Ok(device)
    }
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
        let Self { device, backend, reason, mut found, pinned_limit } = self;
        // The cap stays what the plan was made for.
        found.options.device_memory_limit = memory.device.capacity;
        found.options.pinned_bytes = plan.pinned_bytes();
        drop(device);
        Ok(Self { device: found.open()?, backend, reason, found, pinned_limit })
    }

    /// One line for a person: backend, device, why.
    pub(crate) fn describe(&self) -> String {
        let info = self.device.info();
        let features = if info.features.is_empty() { String::new() } else { format!(", {}", info.features) };
        format!("{}, {} ({} units{features}): {}", self.backend, info.name, info.compute_units, self.reason)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let info = self.device.info();
        serde_json::json!({
            "backend": self.backend, "device": info.name, "uuid": info.uuid, "driver": info.driver,
            "features": info.features, "chosen": self.reason,
        })
    }
}

/// The loader of plugins: `--plugin-dir`, then `CUZK_PLUGIN_DIR`, then beside the executable.
pub(crate) fn loader(global: &Global) -> Loader {
    let from_environment: Vec<PathBuf> =
        std::env::var_os("CUZK_PLUGIN_DIR").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    Loader::new(global.plugin_dir.clone(), from_environment)
}

/// Pinned memory of a device before there is a plan: for the self-test and small results.
const FIRST_PINNED: u64 = 64 << 20;

/// Opens the device that the command line asks for. There is no fall back: a backend that was named and cannot be used is an error.
pub(crate) fn open(global: &Global) -> Result<Chosen, Failure> {
    let (backend, reason) = choose(global)?;
    let index = backend.find(&global.device)?;
    let mut options = DeviceOptions { threads: global.threads, ..DeviceOptions::default() };
    if backend.name() == "cpu" {
        refuse_limits(global)?;
    } else {
        options.device_memory_limit = global.vram_limit.unwrap_or(0);
        options.pinned_bytes = FIRST_PINNED.min(global.pinned_limit.unwrap_or(FIRST_PINNED));
    }
    let name = backend.name().to_owned();
    let found = Found { backend, index, options };
    let device = found.open()?;
    let pinned = device.memory()?.pinned.capacity;
    // Half of the host's memory stays for everything else.
    let half = report::available_bytes().map_or(pinned, |bytes| bytes / 2);
    let pinned_limit = if name == "cpu" { pinned } else { global.pinned_limit.unwrap_or(half).max(pinned) };
    let chosen = Chosen { device, backend: name, reason, found, pinned_limit };
    tracing::info!("computing on {}", chosen.describe());
    Ok(chosen)
}

/// The host's memory is not a device's own: limits of it are a mistake if the CPU was asked for, and idle if it is what
/// remained.
fn refuse_limits(global: &Global) -> Result<(), Failure> {
    for (name, limit) in [("--vram-limit", global.vram_limit), ("--pinned-limit", global.pinned_limit)] {
        if let Some(bytes) = limit {
            let text = format!("{name} {bytes}: the cpu backend has no such memory");
            if global.backend == "cpu" {
                return Err(Failure::usage(text));
            }
            tracing::warn!("{text}");
        }
    }
    Ok(())
}

fn choose(global: &Global) -> Result<(Box<dyn Backend>, String), Failure> {
    match global.backend.as_str() {
        "cpu" => Ok((Box::new(CpuBackend), "asked for by --backend cpu".into())),
        "auto" => Ok(choose_automatically(global)),
        name => {
            let reason = format!("asked for by --backend {name}");
            // A name with a separator or an ending is a file.
            let path = Path::new(name);
            let plugin = if path.components().count() > 1 || path.extension().is_some() {
                PluginBackend::open(path)?
            } else {
                loader(global).load(name)?
            };
            Ok((Box::new(plugin), reason))
        }
    }
}

/// The first plugin with a usable device, else the CPU; the reason says what was passed over and why.
fn choose_automatically(global: &Global) -> (Box<dyn Backend>, String) {
    let mut passed_over = Vec::new();
    // The CPU backend as a plugin is the one that is linked in.
    for (name, path) in loader(global).available().into_iter().filter(|(name, _)| name != "cpu") {
        let usable = PluginBackend::open(&path).map_err(|e| e.to_string()).and_then(|backend| {
            let devices = backend.devices().map_err(|e| e.to_string())?;
            let usable = devices.iter().any(|d| d.unusable.is_empty());
            if usable { Ok(backend) } else { Err("no usable device".to_owned()) }
        });
        match usable {
            Ok(backend) => {
                return (Box::new(backend), format!("auto: {name} is the first plugin with a usable device"));
            }
            Err(why) => passed_over.push(format!("{name}: {why}")),
        }
    }
    let reason = match passed_over.as_slice() {
        [] => "auto: no other backend is installed".to_owned(),
        reasons => format!("auto: {}", reasons.join("; ")),
    };
    (Box::new(CpuBackend), reason)
}
