//! What a person or a program reads at the end.

use std::time::Duration;

use cuzk_groth16::StageTimes;

use crate::{args::Global, failure::Failure};

/// Prints a result: one JSON object, or text.
pub(crate) fn print(global: &Global, json: impl FnOnce() -> serde_json::Value, text: impl FnOnce() -> String) {
    if global.json {
        println!("{}", json());
    } else {
        println!("{}", text());
    }
}

/// Prints a failure: on standard error, and as JSON on standard output if that is wanted.
pub(crate) fn failure(global: &Global, failure: &Failure) {
    if global.json {
        let class = format!("{:?}", failure.class).to_lowercase();
        println!(
            "{}",
            serde_json::json!({ "error": failure.message, "class": class, "exit_code": failure.class as u8 })
        );
    }
    eprintln!("cuzk: {}", failure.message);
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

/// The largest resident size of this process so far in bytes, where the system tells.
pub(crate) fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Bytes for a person.
pub(crate) fn bytes(n: u64) -> String {
    indicatif::BinaryBytes(n).to_string()
}
