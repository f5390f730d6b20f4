//! Which device to compute on, and why that one.

use std::path::{Path, PathBuf};

use cuzk_backend::{Backend, Device, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;
use cuzk_plugin::{Loader, PluginBackend};

use crate::{args::Global, failure::Failure};

/// An opened device and how it was chosen.
pub(crate) struct Chosen {
    pub(crate) device: Device,
    pub(crate) backend: String,
    pub(crate) reason: String,
}

impl Chosen {
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

/// Opens the device that the command line asks for. There is no fall back: a backend that was named and cannot be used is an error.
/// Before anything is computed on it the device must give the known answers of the self-test.
pub(crate) fn open(global: &Global) -> Result<Chosen, Failure> {
    let (backend, reason) = choose(global)?;
    let index = backend.find(&global.device)?;
    let options = DeviceOptions { threads: global.threads, ..DeviceOptions::default() };
    let device = Device::open(&*backend, index, &options)?;
    self_test::run(&device, CurveId::Bls12_381)?;
    let chosen = Chosen { device, backend: backend.name().to_owned(), reason };
    tracing::info!("computing on {}", chosen.describe());
    Ok(chosen)
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
