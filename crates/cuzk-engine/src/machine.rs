//! What the machine has: cores and memory.

use std::{fmt, fs, path::Path};

use cuzk_scheduler::units::show_bytes;

/// Cores and memory that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Cores that the process may run on.
    pub cores: usize,
    /// Bytes of memory: the machine's, or the limit of the control group if that is lower.
    pub memory_bytes: u64,
}

impl Machine {
    /// Asks the system. What it does not tell counts as one core and no memory: then the configuration has to say.
    pub fn detect() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| mem_total(&text));
        let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| group_limit(&text));
        let memory_bytes = machine.into_iter().chain(group).min().unwrap_or(0);
        Self { cores, memory_bytes }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cores, {}", self.cores, show_bytes(self.memory_bytes))
    }
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The lowest `memory.max` from the process's control group (version 2) up to the root.
fn group_limit(cgroup: &str) -> Option<u64> {
    let group = cgroup.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let path = Path::new("/sys/fs/cgroup").join(group);
    let limit = |p: &Path| fs::read_to_string(p.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    path.ancestors().take_while(|p| p.starts_with("/sys/fs/cgroup")).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(mem_total("MemTotal:       16318480 kB\nMemFree:  1 kB\n"), Some(16_318_480 * 1024));
        assert_eq!(mem_total("MemFree: 1 kB\n"), None);
        assert_eq!(group_limit("1:cpu:/a\n"), None);
    }
}
