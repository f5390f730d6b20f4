//! The backend: one device, the host.

use std::sync::Arc;

use cuzk_backend::{Backend, BackendError, DeviceInfo, DeviceOps, DeviceOptions, Pool, Result};

use crate::{device::CpuDevice, host};

/// The CPU backend, named `cpu`. Its one device, with index 0 and UUID `cpu-0`, is the host.
///
/// # Options
/// * `device_memory_limit` caps the part of the host's memory that live objects and the scratch of running operations may hold. By
///   default it is what the kernel calls available when the device is opened (and the control group allows), less the pinned pool
///   and a margin for everything else: an eighth of it, 1 GiB at least, but never more than a half.
/// * `pinned_bytes` caps the pool of "pinned" memory: ordinary pages here, mapped when they are first asked for and reused. By
///   default an eighth of what is available, at most 1 GiB.
/// * `threads` is the size of the device's own thread pool; by default one for each core.
///
/// The pools count what objects hold, and the scratch of quotients and multiplications. Beside that an operation needs
/// less than 1 MiB a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuBackend;

const GIB: u64 = 1 << 30;

impl Backend for CpuBackend {
    fn name(&self) -> &str {
        "cpu"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(vec![host::info()])
    }

    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>> {
        let info = host::info();
        if index != info.index {
            return Err(BackendError::NoSuchDevice {
                backend: self.name().to_owned(),
                wanted: index.to_string(),
                available: format!("{} ({})", info.index, info.uuid),
            });
        }
        Ok(Arc::new(CpuDevice::new(info, &with_defaults(options, host::available_bytes(), host::cores())?)?))
    }
}

/// The options with every zero replaced.
///
/// # Errors
/// So much was given to the pinned pool that nothing is left for the device's.
fn with_defaults(options: &DeviceOptions, available: u64, cores: u32) -> Result<DeviceOptions> {
    let or = |given: u64, default: u64| if given == 0 { default } else { given };
    let pinned_bytes = or(options.pinned_bytes, (available / 8).min(GIB));
    let margin = (available / 8).max(GIB).min(available / 2);
    let usable = available - margin;
    if options.device_memory_limit == 0 && pinned_bytes >= usable {
        let (pool, requested, capacity) = (Pool::Pinned, pinned_bytes, usable);
        return Err(BackendError::OutOfMemory { pool, requested, in_use: 0, capacity });
    }
    let device_memory_limit = or(options.device_memory_limit, usable.saturating_sub(pinned_bytes));
    let threads = if options.threads == 0 { cores } else { options.threads };
    Ok(DeviceOptions { device_memory_limit, pinned_bytes, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_is_kept_and_the_rest_leaves_a_margin() {
        let given = DeviceOptions { device_memory_limit: 5, pinned_bytes: 6, threads: 7 };
        assert_eq!(with_defaults(&given, 100 * GIB, 2).unwrap(), given);
        let defaults = with_defaults(&DeviceOptions::default(), 64 * GIB, 3).unwrap();
        assert_eq!(defaults, DeviceOptions { device_memory_limit: (64 - 8 - 1) * GIB, pinned_bytes: GIB, threads: 3 });
        let small = with_defaults(&DeviceOptions::default(), GIB, 1).unwrap();
        assert_eq!(small.device_memory_limit, GIB / 2 - GIB / 8);
        let all_pinned = DeviceOptions { pinned_bytes: 100 * GIB, ..DeviceOptions::default() };
        let Err(BackendError::OutOfMemory { pool: Pool::Pinned, requested, capacity, .. }) =
            with_defaults(&all_pinned, 64 * GIB, 3)
        else {
            panic!("more than there is was given to the pinned pool");
        };
        assert_eq!((requested, capacity), (100 * GIB, (64 - 8) * GIB));
    }

    #[test]
    fn there_is_one_device() {
        assert_eq!(CpuBackend.find("0").unwrap(), 0);
        assert_eq!(CpuBackend.find("cpu").unwrap(), 0);
        let options = DeviceOptions { device_memory_limit: 1, pinned_bytes: 1, threads: 1 };
        let Err(BackendError::NoSuchDevice { wanted, available, .. }) = CpuBackend.open(1, &options) else {
            panic!("device 1 was opened");
        };
        assert_eq!((wanted.as_str(), available.as_str()), ("1", "0 (cpu-0)"));
    }
}
