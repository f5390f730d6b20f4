//! The memory of this process, as the kernel counts it.

use std::fs;

/// Bytes that are resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resident {
    /// Now.
    pub(super) now: u64,
    /// The most that ever were.
    pub(super) peak: u64,
}

impl Resident {
    /// Of this process; `None` where there is no `/proc`.
    pub(super) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/status").ok()?)
    }

    fn parse(status: &str) -> Option<Self> {
        let bytes = |name: &str| -> Option<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
            rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(Self { now: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_kernel_writes_it() {
        let status = "Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n";
        assert_eq!(Resident::parse(status), Some(Resident { now: 10 << 20, peak: 20 << 20 }));
        assert_eq!(Resident::parse("VmRSS:\t1 kB\n"), None);
        assert_eq!(Resident::parse("VmHWM: 1\nVmRSS: x kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn of_this_process() {
        let resident = Resident::read().unwrap();
        assert!(resident.peak >= resident.now && resident.now > 100 << 10, "{resident:?}");
    }
}
