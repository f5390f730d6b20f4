//! Which backend and which of its devices to compute on, and why these.
//!
//! There is no fall back: a backend that was named and cannot be used is an error. `auto` takes the first plugin with
//! a usable device, else the CPU, and says so.

use std::{path::Path, sync::Arc};

use cuzk_backend::{Backend, BackendError, Device, DeviceInfo, DeviceOptions, self_test};
use cuzk_backend_cpu::CpuBackend;
use cuzk_curve::CurveId;
use cuzk_engine::DeviceSpec;
use cuzk_plugin::{LoadError, Loader, PluginBackend};

/// Name of the backend that is linked in.
pub const CPU: &str = "cpu";

/// Which of a backend's devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The first that is usable.
    First,
    /// All that are usable.
    #[default]
    All,
    /// These, usable or not: each an index, or a UUID or the beginning of one.
    Named(Vec<String>),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// `cpu`, the name of a plugin, the path of one, or `auto`.
    pub backend: String,
    /// Devices of it.
    pub devices: Wanted,
    /// Where plugins are.
    pub loader: Loader,
}

impl Default for Request {
    /// `auto`, all usable devices, plugins beside the executable.
    fn default() -> Self {
        let nowhere: [&Path; 0] = [];
        Self { backend: "auto".to_owned(), devices: Wanted::All, loader: Loader::new(nowhere, nowhere) }
    }
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// The plugin cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The backend does not list its devices, or has none of that name.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// None can be used.
    #[error("the {backend} backend has no usable device{}", told(passed_over))]
    NoneUsable {
        /// The backend.
        backend: String,
        /// Why not: a line for each device and plugin.
        passed_over: Vec<String>,
    },
}

/// Memory that a device may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of its own memory; 0: what is free, less the backend's margin.
    pub device_limit: u64,
    /// Bytes of pinned host memory; 0: the backend's default.
    pub pinned_bytes: u64,
    /// Threads on the host, for a device that computes there; 0: one a core.
    pub threads: u32,
}

impl From<Memory> for DeviceOptions {
    fn from(memory: Memory) -> Self {
        let Memory { device_limit, pinned_bytes, threads } = memory;
        Self { device_memory_limit: device_limit, pinned_bytes, threads }
    }
}

/// A backend, devices of it, and why these.
#[derive(Clone)]
pub struct Found {
    backend: Arc<dyn Backend>,
    devices: Vec<DeviceInfo>,
    reason: String,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({}, {} devices: {})", self.backend.name(), self.devices.len(), self.reason)
    }
}

impl Found {
    /// The backend.
    pub fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// The devices, at least one.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// What they were preferred to, and what was passed over.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Opens one of [`devices`](Self::devices). Before anything is computed on it, it gives the known answers of the
    /// self-test.
    ///
    /// # Errors
    /// It cannot be opened, or answers wrongly.
    pub fn open(&self, device: &DeviceInfo, options: &DeviceOptions) -> Result<Device, BackendError> {
        let device = Device::open(&*self.backend, device.index, options)?;
        self_test::run(&device, CurveId::Bls12_381)?;
        Ok(device)
    }

    /// All of them, for an engine.
    pub fn specs(&self, memory: &Memory) -> Vec<DeviceSpec> {
        let spec = |device: &DeviceInfo| {
            let (found, device, options) = (self.clone(), device.clone(), DeviceOptions::from(*memory));
            DeviceSpec::reopening(move || found.open(&device, &options))
        };
        self.devices.iter().map(spec).collect()
    }
}

/// Finds what is asked for.
///
/// # Errors
/// [`FindError`].
pub fn find(request: &Request) -> Result<Found, FindError> {
    let asked_for = format!("asked for by --backend {}", request.backend);
    match request.backend.as_str() {
        CPU => settle(Arc::new(CpuBackend), &request.devices, asked_for, Vec::new()),
        "auto" => find_automatically(request),
        name => {
            // A name with a separator or an ending is a file.
            let path = Path::new(name);
            let plugin = if path.components().count() > 1 || path.extension().is_some() {
                PluginBackend::open(path)?
            } else {
                request.loader.load(name)?
            };
            settle(Arc::new(plugin), &request.devices, asked_for, Vec::new())
        }
    }
}

/// The first plugin with a usable device, else the CPU.
fn find_automatically(request: &Request) -> Result<Found, FindError> {
    let mut passed_over = Vec::new();
    // The CPU backend as a plugin is the one that is linked in.
    for (name, path) in request.loader.available().into_iter().filter(|(name, _)| name != CPU) {
        let opened = PluginBackend::open(&path).map_err(|e| e.to_string());
        match opened.and_then(|backend| Ok((backend.devices().map_err(|e| e.to_string())?, backend))) {
            Ok((devices, backend)) if devices.iter().any(is_usable) => {
                let reason = format!("auto: {name} is the first plugin with a usable device");
                return settle(Arc::new(backend), &request.devices, reason, passed_over);
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
    settle(Arc::new(CpuBackend), &request.devices, reason.to_owned(), passed_over)
}

/// The wanted devices of a chosen backend. The reason goes on with which they are, and ends with what was passed over.
fn settle(
    backend: Arc<dyn Backend>,
    wanted: &Wanted,
    mut reason: String,
    mut passed_over: Vec<String>,
) -> Result<Found, FindError> {
    let all = backend.devices()?;
    let devices = match wanted {
        Wanted::Named(names) => {
            let mut devices: Vec<DeviceInfo> = Vec::with_capacity(names.len());
            for name in names {
                let index = backend.find(name)?;
                reason += &format!("; device {index} by --device {name}");
                // The same device twice is that device.
                if devices.iter().all(|d| d.index != index) {
                    devices.extend(all.iter().find(|d| d.index == index).cloned());
                }
            }
            devices
        }
        Wanted::First => {
            let usable = all.iter().position(is_usable);
            let unusable = &all[..usable.unwrap_or(all.len())];
            passed_over.extend(unusable.iter().map(|device| why_not(backend.name(), device)));
            let device = usable.map(|position| all[position].clone());
            device.iter().for_each(|d| reason += &format!("; device {} is its first usable one", d.index));
            device.into_iter().collect()
        }
        Wanted::All => {
            let (usable, unusable): (Vec<_>, Vec<_>) = all.into_iter().partition(is_usable);
            passed_over.extend(unusable.iter().map(|device| why_not(backend.name(), device)));
            let indices: Vec<_> = usable.iter().map(|d| d.index.to_string()).collect();
            match indices.as_slice() {
                [one] => reason += &format!("; device {one} is its only usable one"),
                many => reason += &format!("; devices {} are usable", many.join(", ")),
            }
            usable
        }
    };
    if devices.is_empty() {
        return Err(FindError::NoneUsable { backend: backend.name().to_owned(), passed_over });
    }
    reason += &told(&passed_over);
    Ok(Found { backend, devices, reason })
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
    use cuzk_backend::DeviceOps;

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

    fn settled(devices: &'static [&'static str], wanted: &Wanted) -> Result<(Vec<u32>, String), FindError> {
        let earlier = vec!["broken: no library".to_owned()];
        let found = settle(Arc::new(Listed(devices)), wanted, "auto: listed".to_owned(), earlier)?;
        Ok((found.devices().iter().map(|d| d.index).collect(), found.reason().to_owned()))
    }

    fn named(names: &[&str]) -> Wanted {
        Wanted::Named(names.iter().map(|n| (*n).to_owned()).collect())
    }

    #[test]
    fn the_first_usable_device_is_taken_and_the_others_are_told() {
        let (indices, reason) = settled(&["too old", "too small", "", ""], &Wanted::First).unwrap();
        assert_eq!(indices, [2]);
        assert_eq!(
            reason,
            "auto: listed; device 2 is its first usable one; passed over: broken: no library; \
             listed device 0 (model 0): too old; listed device 1 (model 1): too small"
        );
        assert_eq!(settled(&[""], &Wanted::First).unwrap().0, [0]);
    }

    #[test]
    fn all_usable_devices_are_taken() {
        let (indices, reason) = settled(&["", "too small", ""], &Wanted::All).unwrap();
        assert_eq!(indices, [0, 2]);
        assert_eq!(
            reason,
            "auto: listed; devices 0, 2 are usable; passed over: broken: no library; \
             listed device 1 (model 1): too small"
        );
    }

    #[test]
    fn devices_that_are_named_are_those() {
        for wanted in ["1", "L-1"] {
            let (indices, reason) = settled(&["", "too small", ""], &named(&[wanted])).unwrap();
            assert_eq!(indices, [1]);
            let expected = format!("auto: listed; device 1 by --device {wanted}; passed over: broken: no library");
            assert_eq!(reason, expected);
        }
        assert_eq!(settled(&["", "", ""], &named(&["2", "L-0", "2"])).unwrap().0, [2, 0]);
        assert!(matches!(settled(&[""], &named(&["7"])), Err(FindError::Backend(BackendError::NoSuchDevice { .. }))));
    }

    #[test]
    fn a_backend_without_a_usable_device_is_an_error_with_the_reasons() {
        for wanted in [Wanted::First, Wanted::All] {
            let error = settled(&["too old"], &wanted).unwrap_err();
            assert!(matches!(error, FindError::NoneUsable { .. }));
            assert!(error.to_string().ends_with("listed device 0 (model 0): too old"), "{error}");
            assert!(settled(&[], &wanted).is_err());
        }
    }
}
