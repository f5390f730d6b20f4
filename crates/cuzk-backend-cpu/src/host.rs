//! What the operating system says of the machine.

use std::{fs, thread};

use cuzk_backend::DeviceInfo;

use crate::CodePath;

/// The host as a device.
pub(crate) fn info() -> DeviceInfo {
    let system = fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| std::env::consts::OS.to_owned(), |release| format!("Linux {}", release.trim()));
    DeviceInfo {
        index: 0,
        uuid: "cpu-0".to_owned(),
        name: cpu_model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        driver: format!("{system}, cuzk-backend-cpu {}", env!("CARGO_PKG_VERSION")),
        compute_units: cores(),
        memory_bytes: memory("MemTotal").unwrap_or(0),
        features: CodePath::detect().to_string(),
        unusable: String::new(),
    }
}

/// Cores that this process may use.
pub(crate) fn cores() -> u32 {
    thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Bytes that can be allocated without swapping, as the kernel sees them and the control group allows.
pub(crate) fn available_bytes() -> u64 {
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let group = match (number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")) {
        (Some(max), Some(current)) => max.saturating_sub(current),
        _ => u64::MAX,
    };
    memory("MemAvailable").unwrap_or(0).min(group)
}

fn memory(field: &str) -> Option<u64> {
    meminfo_bytes(&fs::read_to_string("/proc/meminfo").ok()?, field)
}

/// A field of /proc/meminfo, which counts in KiB.
fn meminfo_bytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The first "model name" of /proc/cpuinfo.
fn cpu_model(text: &str) -> String {
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.trim_start().strip_prefix(':'));
    model.map_or_else(|| format!("{} processor", std::env::consts::ARCH), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        let text = "MemTotal:       24689520 kB\nMemFree:        1 kB\nMemAvailable:   24000000 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_689_520 * 1024));
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(24_000_000 * 1024));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n"), "A CPU @ 2 GHz");
        assert!(!cpu_model("").is_empty());
    }
}
