//! Finding devices, and opening them.

use std::{ffi::CStr, sync::Arc};

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};
use cuzk_backend::{Backend, BackendError, DeviceInfo, DeviceOps, DeviceOptions, Result};

use crate::{
    device::CudaDevice,
    driver::{Context, attribute, describe},
    kernels,
};

/// The oldest driver that is used: its memory pools and kernels' loading are relied on.
const MIN_DRIVER: i32 = 12_000;
/// Pinned memory when the caller does not say.
const DEFAULT_PINNED: u64 = 1 << 30;
/// The oldest architecture that the kernels are compiled for, major and minor.
const MIN_ARCHITECTURE: (u32, u32) = (7, 5);

/// NVIDIA devices through the driver API, opened at run time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaBackend;

fn unusable(reason: impl Into<String>) -> BackendError {
    BackendError::Unsupported { operation: "cuda".to_owned(), reason: reason.into() }
}

/// Finds and initialises the driver, and returns its version.
fn driver() -> Result<i32> {
    // SAFETY: only looks for the library.
    if !unsafe { sys::is_culib_present() } {
        return Err(unusable("no NVIDIA driver on this machine (libcuda was not found)"));
    }
    let mut version = 0;
    // SAFETY: the library is there; one number is written.
    unsafe {
        match sys::cuDriverGetVersion(&mut version) {
            CUresult::CUDA_SUCCESS if version < MIN_DRIVER => {
                return Err(unusable(format!(
                    "the driver supports CUDA {}, but at least {} is needed",
                    dotted(version),
                    dotted(MIN_DRIVER)
                )));
            }
            CUresult::CUDA_SUCCESS => {}
            code => return Err(unusable(format!("the driver has no version: {}", describe(code)))),
        }
        match sys::cuInit(0) {
            CUresult::CUDA_SUCCESS => Ok(version),
            CUresult::CUDA_ERROR_NO_DEVICE => {
                Err(unusable("the driver shows no device: there is none, or CUDA_VISIBLE_DEVICES hides all of them"))
            }
            code => Err(unusable(format!("the driver does not start: {}", describe(code)))),
        }
    }
}

fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The bytes of a UUID as NVIDIA's tools write it.
fn uuid(bytes: [u8; 16]) -> String {
    let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex[range].concat();
    format!("GPU-{}-{}-{}-{}-{}", part(0..4), part(4..6), part(6..8), part(8..10), part(10..16))
}

fn describe_device(index: u32, version: i32) -> Result<DeviceInfo> {
    let failed = |code| unusable(format!("device {index}: {}", describe(code)));
    let mut device = 0;
    let mut name = [0 as std::ffi::c_char; 256];
    let mut bytes = 0;
    // SAFETY: plain data; zero is a value of it.
    let mut id: sys::CUuuid = unsafe { std::mem::zeroed() };
    // SAFETY: the driver is initialised; each call writes what it is given a place for.
    let codes = unsafe {
        [
            sys::cuDeviceGet(&mut device, index as i32),
            sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as i32, device),
            sys::cuDeviceTotalMem_v2(&mut bytes, device),
            sys::cuDeviceGetUuid_v2(&mut id, device),
        ]
    };
    if let Some(code) = codes.into_iter().find(|c| *c != CUresult::CUDA_SUCCESS) {
        return Err(failed(code));
    }
    let get = |which| attribute(device, which).unwrap_or(0);
    let architecture = (
        get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    );
    let pools = get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) != 0;
    let shared = get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    let unusable = if let Some(reason) = kernels::missing() {
        reason.to_owned()
    } else if architecture < MIN_ARCHITECTURE {
        let (major, minor) = MIN_ARCHITECTURE;
        format!("compute capability {}.{}; the kernels need {major}.{minor}", architecture.0, architecture.1)
    } else if let Some(reason) = kernels::no_code_for(10 * architecture.0 + architecture.1) {
        reason
    } else if !pools {
        "its driver has no memory pools".to_owned()
    } else if shared < kernels::TILE {
        format!("{shared} bytes of shared memory a block; the kernels need {}", kernels::TILE)
    } else {
        String::new()
    };
    Ok(DeviceInfo {
        index,
        uuid: uuid(id.bytes.map(|b| b as u8)),
        // SAFETY: the driver ends the name with zero.
        name: unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned(),
        driver: format!("CUDA {}", dotted(version)),
        compute_units: get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        memory_bytes: bytes as u64,
        features: format!("sm_{}{}", architecture.0, architecture.1),
        unusable,
    })
}

/// A device of which nothing is known but its index, and why.
fn undescribed(index: u32, version: i32, error: &BackendError) -> DeviceInfo {
    DeviceInfo {
        index,
        uuid: String::new(),
        name: "unknown".to_owned(),
        driver: format!("CUDA {}", dotted(version)),
        compute_units: 0,
        memory_bytes: 0,
        features: String::new(),
        unusable: error.to_string(),
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        "cuda"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        if let Some(reason) = kernels::missing() {
            return Err(unusable(reason));
        }
        let version = driver()?;
        let mut count = 0;
        // SAFETY: the driver is initialised; one number is written.
        match unsafe { sys::cuDeviceGetCount(&mut count) } {
            CUresult::CUDA_SUCCESS => {}
            code => return Err(unusable(format!("the driver does not count its devices: {}", describe(code)))),
        }
        // One that cannot be described must not hide the others.
        let described =
            |index| describe_device(index, version).unwrap_or_else(|error| undescribed(index, version, &error));
        Ok((0..u32::try_from(count).unwrap_or(0)).map(described).collect())
    }

    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>> {
        let devices = self.devices()?;
        let Some(info) = devices.iter().find(|d| d.index == index) else {
            return Err(BackendError::NoSuchDevice {
                backend: self.name().to_owned(),
                wanted: index.to_string(),
                available: devices.iter().map(|d| format!("{} ({})", d.index, d.uuid)).collect::<Vec<_>>().join(", "),
            });
        };
        if !info.unusable.is_empty() {
            return Err(unusable(format!("device {index} ({}): {}", info.name, info.unusable)));
        }
        let ordinal = index as i32;
        let context = Context::open(ordinal, info.uuid.clone())?;
        let (free, _) = context.memory()?;
        let capacity = match options.device_memory_limit {
            0 => crate::usable_bytes(free),
            // More than there is would be planned with, and refused half-way.
            limit => limit.min(free),
        };
        let pinned = if options.pinned_bytes == 0 { DEFAULT_PINNED } else { options.pinned_bytes };
        Ok(Arc::new(CudaDevice::new(info.clone(), context, ordinal, capacity, pinned)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_nvidia_does() {
        let bytes = std::array::from_fn(|i| i as u8 * 0x11);
        assert_eq!(uuid(bytes), "GPU-00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(dotted(13_000), "13.0");
        assert_eq!(dotted(12_080), "12.8");
    }
}
