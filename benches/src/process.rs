//! The memory of this process.

use std::fs;

/// The bytes of a field of /proc/self/status, such as `VmHWM`.
pub fn resident(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'));
    let kib: u64 = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0);
    kib << 10
}

/// Forgets the peak of the resident memory, so that what follows is measured alone.
pub fn forget_peak() {
    if let Err(e) = fs::write("/proc/self/clear_refs", "5") {
        println!("the peak of memory is that of the whole process: {e}");
    }
}
