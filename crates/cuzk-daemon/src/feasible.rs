//! Which circuits can be proved here: those that have a key, and of which one partition and the key fit the machine's
//! memory. What cannot is said at the start with the setting that would help, not by the first job.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cuzk_backend::BackendError;
use cuzk_curve::Bls12;
use cuzk_engine::{Engine, Estimate, EstimateError, StartError, Status};
use cuzk_filecoin::CircuitId;
use cuzk_groth16::ResidencyError;
use cuzk_prover::{
    CircuitError, Described, Directories, describe,
    keys::{KeyPaths, how_to_get},
};
use cuzk_scheduler::{DeviceId, Health, Pool, Refusal, Shortage, units::show_bytes};

/// After how long it is looked again whether there is a key of which a proof fits, while there was none.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What is known of a circuit that has a key.
struct Verdict {
    /// Whether more cannot be known.
    exact: bool,
    /// What it lacks, if it lacks something.
    lacks: Option<String>,
}

struct Known {
    verdicts: BTreeMap<CircuitId, Verdict>,
    looked: Instant,
}

/// What is known of all circuits.
pub(crate) struct Feasible {
    directories: Directories,
    known: Mutex<Known>,
}

impl Feasible {
    pub(crate) fn new(directories: Directories) -> Self {
        let known = Known { verdicts: BTreeMap::new(), looked: Instant::now() };
        Self { directories, known: Mutex::new(known) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a key for a circuit. The text is for whoever asked: it names settings; the log has the paths.
    ///
    /// # Errors
    /// Where it was looked for, under which names, and how to get it.
    pub(crate) fn has_key(&self, circuit: CircuitId) -> Result<(), String> {
        let paths = KeyPaths::of(circuit, &self.directories.parameters).map_err(|e| e.to_string())?;
        if paths.existing().is_some() {
            return Ok(());
        }
        tracing::warn!(%circuit, params = %paths.params.display(), native = %paths.native.display(), "there is no key");
        Err(no_key(circuit, &paths))
    }

    /// Whether a circuit that has a key fits, as far as that is known before it is loaded.
    ///
    /// # Errors
    /// What it lacks.
    pub(crate) fn fits(&self, engine: &Engine<Bls12>, circuit: CircuitId) -> Result<(), String> {
        if let Some(Verdict { exact: true, lacks }) = self.known().verdicts.get(&circuit) {
            return lacks.clone().map_or(Ok(()), Err);
        }
        // Not under the lock, because it reads files. A key that is damaged is told of by who loads it.
        let Ok(Some(described)) = describe(circuit, &self.directories) else { return Ok(()) };
        self.judge(engine, circuit, &described)
    }

    /// Whether a circuit fits that is described now.
    fn judge(&self, engine: &Engine<Bls12>, circuit: CircuitId, described: &Described) -> Result<(), String> {
        let healthy = |status: Status| status.devices.iter().all(|device| device.health == Health::Healthy);
        if !engine.status().is_some_and(healthy) {
            // What a device that is fenced now could hold is not known.
            return Ok(());
        }
        let lacks = lacks(described, engine.estimate(&described.circuit));
        let verdict = Verdict { exact: described.exact, lacks: lacks.clone() };
        let before = self.known().verdicts.insert(circuit, verdict);
        if let Some(lacks) = &lacks
            && before.is_none_or(|before| before.lacks.is_none())
        {
            tracing::warn!(%circuit, "cannot be proved here: {lacks}");
        }
        lacks.map_or(Ok(()), Err)
    }

    /// Looks at all circuits that have a key.
    pub(crate) fn look(&self, engine: &Engine<Bls12>) {
        self.known().looked = Instant::now();
        for circuit in CircuitId::all() {
            match describe(circuit, &self.directories) {
                Ok(None) => drop(self.known().verdicts.remove(&circuit)),
                Ok(Some(_)) if self.is_settled(circuit) => {}
                Ok(Some(described)) => drop(self.judge(engine, circuit, &described)),
                Err(error) => tracing::warn!(%circuit, "its key cannot be used: {error}"),
            }
        }
    }

    /// Whether more cannot be found out of a circuit.
    fn is_settled(&self, circuit: CircuitId) -> bool {
        self.known().verdicts.get(&circuit).is_some_and(|verdict| verdict.exact)
    }

    /// Whether no circuit had a key when that was looked at last.
    pub(crate) fn is_empty(&self) -> bool {
        self.known().verdicts.is_empty()
    }

    /// Why none of the circuits that have a key can be proved; `None`: one can be, or there is no key yet, which may be
    /// fetched later.
    pub(crate) fn unable(&self, engine: &Engine<Bls12>) -> Option<String> {
        let reason = self.reason()?;
        if self.known().looked.elapsed() < LOOK_AGAIN {
            return Some(reason);
        }
        self.look(engine);
        self.reason()
    }

    /// As [`unable`](Self::unable), by what is known already.
    pub(crate) fn reason(&self) -> Option<String> {
        let known = self.known();
        let lacks = known.verdicts.values().map(|verdict| verdict.lacks.as_deref());
        let lacks: Vec<&str> = lacks.collect::<Option<_>>()?;
        (!lacks.is_empty()).then(|| lacks.join("; "))
    }
}

/// A text for somebody who may not know the paths.
fn no_key(circuit: CircuitId, paths: &KeyPaths) -> String {
    let name = |path: &std::path::Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (params, native) = (name(&paths.params), name(&paths.native));
    let how = how_to_get(circuit);
    format!("there is no key for {circuit}: the directory srs.param_cache has neither {params} nor {native}; {how}")
}

/// Why a circuit cannot be had, for somebody who may not know the paths; the log has them.
pub(crate) fn told(error: &CircuitError, directories: &Directories) -> String {
    match error {
        CircuitError::NoKey { circuit, .. } => {
            KeyPaths::of(*circuit, &directories.parameters).map_or_else(|e| e.to_string(), |p| no_key(*circuit, &p))
        }
        other => other.to_string(),
    }
}

/// What one partition lacks, with what it takes, what there is, and the settings that would help.
fn lacks(described: &Described, estimate: Result<Estimate, EstimateError>) -> Option<String> {
    let lacks = match estimate {
        Ok(Estimate { refusal: Some(Refusal::TooLarge { shortages }), .. }) => {
            let told = shortages.iter().map(|Shortage { pool, requested, capacity }| {
                let (takes, has, setting) = (show_bytes(*requested), show_bytes(*capacity), setting(*pool));
                format!("one partition and its key take {takes} of {pool} memory, but there are {has}: {setting}")
            });
            told.collect::<Vec<_>>().join(", ")
        }
        Err(EstimateError::Residency { cause, .. }) => match *cause {
            ResidencyError::Device { .. } => format!("{cause}: {}", setting(Pool::Device(DeviceId(0)))),
            ResidencyError::Pinned { .. } => format!("{cause}: {}", setting(Pool::Pinned)),
            // Not a matter of memory; whoever asks for a proof is told.
            _ => return None,
        },
        // It fits, or there is no device now, which the devices themselves tell.
        Ok(_) | Err(_) => return None,
    };
    let Described { circuit, exact } = described;
    let more = if *exact { "" } else { " (its matrices were not recorded here yet: it takes more than that)" };
    Some(format!("{}: {lacks}{more}", circuit.name))
}

/// Why an engine does not start, with the setting that would help if that is known: a device takes its pinned memory as
/// it is opened and then tests itself, which takes a few megabytes.
pub(crate) fn start_error(error: &StartError) -> String {
    match error {
        StartError::Device { cause: BackendError::OutOfMemory { pool, .. }, .. } => {
            let setting = match pool {
                cuzk_backend::Pool::Device => setting(Pool::Device(DeviceId(0))),
                cuzk_backend::Pool::Pinned => "backend.pinned_limit decides that",
            };
            format!("{error}: {setting}")
        }
        other => other.to_string(),
    }
}

/// What to change in a configuration so that a pool is larger.
fn setting(pool: Pool) -> &'static str {
    match pool {
        Pool::Host => "raise memory.total_budget, or lower memory.safety_margin",
        Pool::Pinned => "raise backend.pinned_limit",
        Pool::Device(_) => "raise backend.vram_limit, or use a device with more memory",
    }
}
