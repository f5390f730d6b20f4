//! What a person or a program reads at the end.

use std::{path::Path, time::Duration};

use cuzk_groth16::StageTimes;

use crate::{args::Global, failure::Failure};

/// Prints a result: one JSON object, or text.
///
/// # Errors
/// Standard output cannot be written; a reader that has gone away is none.
pub(crate) fn print(
    global: &Global,
    json: impl FnOnce() -> serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    Ok(cuzk_bench::output::print(global.json, json, text)?)
}

/// A path for JSON, which has no other bytes than UTF-8.
pub(crate) fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Seconds with three digits.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}

/// Stage times as JSON, in milliseconds.
pub(crate) fn stages_json(times: &StageTimes) -> serde_json::Value {
    times
        .iter()
        .map(|(stage, time)| (stage.to_string(), serde_json::json!(time.as_secs_f64() * 1e3)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Bytes of the host's memory that are available, where the system tells.
pub(crate) fn available_bytes() -> Option<u64> {
    let memory = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The largest resident size of this process so far in bytes, where the system tells.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Bytes for a person.
pub(crate) fn bytes(n: u64) -> String {
    cuzk_units::show_bytes(n)
}
