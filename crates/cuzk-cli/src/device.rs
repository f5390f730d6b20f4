//! Which device to compute on, and why that one.

use std::path::{Path, PathBuf};

use cuzk_backend::{Backend, Device, DeviceInfo, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;
use cuzk_groth16::{Budget, ResidencyPlan};
use cuzk_plugin::{Loader, PluginBackend};

use crate::{
    args::Global,
    failure::{Class, Failure},
    limits::{Limit, Limits},
    report,
};

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

/// Opens the device that the command line asks for. There is no fall back: a backend that was named and cannot be used
/// is an error.
pub(crate) fn open(global: &Global) -> Result<Chosen, Failure> {
    let limits = Limits::of(global)?;
    let Choice { backend, index, reason } = choose(global)?;
    let mut options = DeviceOptions { threads: global.threads, ..DeviceOptions::default() };
    let bytes = |limit: &Option<Limit>| limit.as_ref().map(|limit| limit.bytes);
    if backend.name() == "cpu" {
        limits.without_effect("cpu", global.backend == "cpu")?;
    } else {
        options.device_memory_limit = bytes(&limits.vram).unwrap_or(0);
        options.pinned_bytes = FIRST_PINNED.min(bytes(&limits.pinned).unwrap_or(FIRST_PINNED));
    }
    let name = backend.name().to_owned();
    let found = Found { backend, index, options };
    let device = found.open()?;
    let pinned = device.memory()?.pinned.capacity;
    // Half of the host's memory stays for everything else.
    let half = report::available_bytes().map_or(pinned, |bytes| bytes / 2);
    let pinned_limit = if name == "cpu" { pinned } else { bytes(&limits.pinned).unwrap_or(half).max(pinned) };
    let chosen = Chosen { device, backend: name, reason, found, pinned_limit };
    tracing::info!("computing on {}", chosen.describe());
    Ok(chosen)
}

/// What is opened, and why: what it was preferred to, and what was passed over.
struct Choice {
    backend: Box<dyn Backend>,
    index: u32,
    reason: String,
}

fn choose(global: &Global) -> Result<Choice, Failure> {
    let asked_for = format!("asked for by --backend {}", global.backend);
    let wanted = global.device.as_deref();
    match global.backend.as_str() {
        "cpu" => settle(Box::new(CpuBackend), wanted, asked_for, Vec::new()),
        "auto" => choose_automatically(global),
        name => {
            // A name with a separator or an ending is a file.
            let path = Path::new(name);
            let plugin = if path.components().count() > 1 || path.extension().is_some() {
                PluginBackend::open(path)?
            } else {
                loader(global).load(name)?
            };
            settle(Box::new(plugin), wanted, asked_for, Vec::new())
        }
    }
}

/// The first plugin with a usable device, else the CPU.
fn choose_automatically(global: &Global) -> Result<Choice, Failure> {
    let wanted = global.device.as_deref();
    let mut passed_over = Vec::new();
    // The CPU backend as a plugin is the one that is linked in.
    for (name, path) in loader(global).available().into_iter().filter(|(name, _)| name != "cpu") {
        let opened = PluginBackend::open(&path).map_err(|e| e.to_string());
        match opened.and_then(|backend| Ok((backend.devices().map_err(|e| e.to_string())?, backend))) {
            Ok((devices, backend)) if devices.iter().any(is_usable) => {
                let reason = format!("auto: {name} is the first plugin with a usable device");
                return settle(Box::new(backend), wanted, reason, passed_over);
            }
            Ok((devices, _)) if devices.is_empty() => passed_over.push(format!("{name}: no device")),
            Ok((devices, _)) => passed_over.extend(devices.iter().map(|device| why_not(&name, device))),
            Err(why) => passed_over.push(format!("{name}: {why}")),
        }
    }
    let reason = match passed_over.as_slice() {
        [] => "auto: the cpu backend, as no other is installed",
        _ => "auto: the cpu backend, as no plugin has a usable device",
    };
    settle(Box::new(CpuBackend), wanted, reason.to_owned(), passed_over)
}

/// The device of a chosen backend: the one that is named, usable or not, else the first usable one. The reason goes on
/// with which it is, and ends with what was passed over.
fn settle(
    backend: Box<dyn Backend>,
    wanted: Option<&str>,
    mut reason: String,
    mut passed_over: Vec<String>,
) -> Result<Choice, Failure> {
    let index = match wanted {
        Some(wanted) => {
            let index = backend.find(wanted)?;
            reason += &format!("; device {index} by --device {wanted}");
            index
        }
        None => {
            let devices = backend.devices()?;
            let usable = devices.iter().position(is_usable);
            let unusable = &devices[..usable.unwrap_or(devices.len())];
            passed_over.extend(unusable.iter().map(|device| why_not(backend.name(), device)));
            let Some(device) = usable.map(|position| &devices[position]) else {
                let text = format!("the {} backend has no usable device{}", backend.name(), told(&passed_over));
                return Err(Failure::new(Class::Device, text));
            };
            reason += &format!("; device {} is its first usable one", device.index);
            device.index
        }
    };
    reason += &told(&passed_over);
    Ok(Choice { backend, index, reason })
}

fn is_usable(device: &DeviceInfo) -> bool {
    device.unusable.is_empty()
}

fn why_not(backend: &str, device: &DeviceInfo) -> String {
    format!("{backend} device {} ({}): {}", device.index, device.name, device.unusable)
}

fn told(passed_over: &[String]) -> String {
    if passed_over.is_empty() { String::new() } else { format!("; passed over: {}", passed_over.join("; ")) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cuzk_backend::{BackendError, DeviceOps};

    use super::*;

    /// A backend that only lists its devices, by why each is unusable.
    struct Listed(&'static [&'static str]);

    impl Backend for Listed {
        fn name(&self) -> &str {
            "listed"
        }

        fn version(&self) -> &str {
            "0"
        }

        fn devices(&self) -> Result<Vec<DeviceInfo>, BackendError> {
            let device = |(index, why): (u32, &&str)| DeviceInfo {
                index,
                uuid: format!("L-{index}"),
                name: format!("model {index}"),
                unusable: (*why).to_owned(),
                ..CpuBackend.devices().unwrap()[0].clone()
            };
            Ok((0..).zip(self.0).map(device).collect())
        }

        fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>, BackendError> {
            CpuBackend.open(index, options)
        }
    }

    fn settled(devices: &'static [&'static str], wanted: Option<&str>) -> Result<(u32, String), Failure> {
        let earlier = vec!["broken: no library".to_owned()];
        let choice = settle(Box::new(Listed(devices)), wanted, "auto: listed".to_owned(), earlier)?;
        Ok((choice.index, choice.reason))
    }

    #[test]
    fn the_first_usable_device_is_taken_and_the_others_are_told() {
        let (index, reason) = settled(&["too old", "too small", "", ""], None).unwrap();
        assert_eq!(index, 2);
        assert_eq!(
            reason,
            "auto: listed; device 2 is its first usable one; passed over: broken: no library; \
             listed device 0 (model 0): too old; listed device 1 (model 1): too small"
        );
        assert_eq!(settled(&[""], None).unwrap().0, 0);
    }

    #[test]
    fn a_device_that_is_named_is_that_one() {
        for wanted in ["1", "L-1"] {
            let (index, reason) = settled(&["", "too small", ""], Some(wanted)).unwrap();
            assert_eq!(index, 1);
            let expected = format!("auto: listed; device 1 by --device {wanted}; passed over: broken: no library");
            assert_eq!(reason, expected);
        }
        assert_eq!(settled(&[""], Some("7")).unwrap_err().class, Class::Device);
    }

    #[test]
    fn a_backend_without_a_usable_device_is_an_error_with_the_reasons() {
        let failure = settled(&["too old"], None).unwrap_err();
        assert_eq!(failure.class, Class::Device);
        assert!(failure.message.ends_with("listed device 0 (model 0): too old"), "{}", failure.message);
        assert_eq!(settled(&[], None).unwrap_err().class, Class::Device);
    }
}
