//! Recording of measurements: one JSON object a line, the same fields in every file under `benches/results`; and what several
//! benchmarks need.
#![forbid(unsafe_code)]

mod engine;
mod process;
mod synthetic;

use std::{fs, io::Write, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

pub use engine::{EngineOptions, budget, proof_bytes};
pub use process::{forget_peak, resident};
pub use synthetic::Synthetic;

/// A measured quantity beside a peer's, from the same run. A ratio above 1 means that ours is better.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What was measured.
    pub what: String,
    /// Which curve.
    pub curve: String,
    /// Of which size: a circuit, or a number of elements.
    pub size: String,
    /// Our value; less is better.
    pub ours: f64,
    /// Unit of both values.
    pub unit: String,
    /// Who else was measured, and the value.
    pub peer: Option<(String, f64)>,
    /// The device's name.
    pub device: String,
    /// The driver.
    pub driver: String,
}

impl Measurement {
    /// The record, with what the machine says of itself.
    pub fn to_json(&self) -> Value {
        let first_line = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
            String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
        };
        let threads = std::thread::available_parallelism().map_or(0, usize::from);
        let program = match std::env::current_exe().ok().and_then(|path| Some(path.file_stem()?.to_str()?.to_owned())) {
            Some(name) if name == "proof" => "cargo xtask bench".to_owned(),
            name => format!("target/device/{}", name.unwrap_or_default()),
        };
        let command = std::env::args().skip(1).fold(program, |all, word| all + " " + &word);
        // Where there is no repository, whoever built the program says what it was built from.
        let commit = std::env::var("CUZK_COMMIT").ok().or_else(|| first_line("git", &["rev-parse", "--short", "HEAD"]));
        json!({
            "what": self.what, "curve": self.curve, "size": self.size, "ours": self.ours, "unit": self.unit,
            "peer": self.peer.as_ref().map(|(name, _)| name), "peer_value": self.peer.as_ref().map(|(_, value)| value),
            "ratio": self.peer.as_ref().map(|(_, value)| value / self.ours),
            "machine": format!("{threads} cores, {}", std::env::consts::ARCH), "device": self.device, "driver": self.driver,
            "commit": commit, "command": command,
            "date": first_line("date", &["-u", "+%Y-%m-%d"]),
        })
    }

    /// Prints the record, and appends it to a file of `benches/results` if one is named.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn report(&self, file: Option<&str>) -> std::io::Result<()> {
        let line = self.to_json().to_string();
        println!("{line}");
        let Some(file) = file else { return Ok(()) };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results").join(file);
        writeln!(fs::OpenOptions::new().create(true).append(true).open(path)?, "{line}")
    }
}

/// The one in the middle; 0 of none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
