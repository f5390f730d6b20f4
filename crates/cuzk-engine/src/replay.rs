//! Failed attempts, written down so that they can be looked into and repeated.
//!
//! A bundle is a directory with `bundle.json` and, where that is allowed, `inputs.bin`. It is written beside its
//! place and renamed, so whoever sees one sees all of it. r and s are not in it: whoever knew them and the proof
//! would learn of the witness.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use crate::{EngineConfig, ReplayConfig};

/// What is written down of a failed attempt.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayBundle {
    /// The layout of this file: 1.
    pub version: u32,
    /// Seconds since 1970.
    pub unix_seconds: u64,
    /// The engine's version.
    pub engine: &'static str,
    /// The circuit's name.
    pub circuit: String,
    /// BLAKE3 of its matrices, hexadecimal; absent if they are not in memory.
    pub circuit_digest: Option<String>,
    /// Digest of the key's content, or why there is none.
    pub key_digest: String,
    /// The job's number.
    pub job: u64,
    /// The partition.
    pub partition: u32,
    /// Which attempt it was, from 0.
    pub attempt: u32,
    /// Where it failed; absent: on the host.
    pub device: Option<DeviceRecord>,
    /// What happened.
    pub error: String,
    /// How the engine is set up.
    pub config: EngineConfig,
    /// Whether `inputs.bin` is there.
    pub inputs: bool,
}

/// The device of a failed attempt.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceRecord {
    /// Its name that stays with the hardware.
    pub uuid: String,
    /// What the vendor calls it.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// What its code path relies on.
    pub features: String,
}

/// Names of bundles begin so.
const PREFIX: &str = "replay-";

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// Writes a bundle, and removes the oldest beyond the bound. Returns where it is.
pub(crate) fn write(config: &ReplayConfig, bundle: &ReplayBundle, inputs: Option<&[u8]>) -> io::Result<PathBuf> {
    let ReplayBundle { unix_seconds, job, partition, attempt, .. } = bundle;
    let name = format!("{PREFIX}{unix_seconds:012}-job{job}-partition{partition}-attempt{attempt}");
    let place = config.directory.join(&name);
    let beside = config.directory.join(format!(".{name}.tmp"));
    fs::create_dir_all(&config.directory)?;
    if beside.exists() {
        fs::remove_dir_all(&beside)?;
    }
    fs::create_dir(&beside)?;
    fs::write(beside.join("bundle.json"), serde_json::to_vec_pretty(bundle)?)?;
    if let Some(inputs) = inputs {
        fs::write(beside.join("inputs.bin"), inputs)?;
    }
    fs::rename(&beside, &place)?;
    remove_oldest(&config.directory, config.max_bundles)?;
    Ok(place)
}

/// Their names begin with their time, so the order of names is that of times.
fn remove_oldest(directory: &Path, keep: usize) -> io::Result<()> {
    let mut bundles = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            bundles.push(entry.path());
        }
    }
    bundles.sort();
    let surplus = bundles.len().saturating_sub(keep);
    bundles[..surplus].iter().try_for_each(fs::remove_dir_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(seconds: u64) -> ReplayBundle {
        ReplayBundle {
            version: 1,
            unix_seconds: seconds,
            engine: "test",
            circuit: "toy".to_owned(),
            circuit_digest: None,
            key_digest: String::new(),
            job: 3,
            partition: 1,
            attempt: 0,
            device: None,
            error: "it did not work".to_owned(),
            config: EngineConfig::default(),
            inputs: true,
        }
    }

    #[test]
    fn bundles_are_whole_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let config = ReplayConfig { directory: directory.path().join("replay"), inputs: true, max_bundles: 2 };
        for seconds in [30, 10, 20, 40] {
            write(&config, &bundle(seconds), Some(b"inputs")).unwrap();
        }
        let mut left: Vec<_> =
            fs::read_dir(&config.directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left.len(), 2, "{left:?}");
        assert!(left[0].contains("000000000030") && left[1].contains("000000000040"), "{left:?}");
        let newest = config.directory.join(&left[1]);
        let json: serde_json::Value = serde_json::from_slice(&fs::read(newest.join("bundle.json")).unwrap()).unwrap();
        assert_eq!((json["circuit"].as_str(), json["partition"].as_u64()), (Some("toy"), Some(1)));
        assert_eq!(fs::read(newest.join("inputs.bin")).unwrap(), b"inputs");
    }
}
