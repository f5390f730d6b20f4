//! The engine as what proves for a server.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak},
    time::{Duration, Instant},
};

use cuzk_curve::Bls12;
use cuzk_engine::{
    Engine, EvictOutcome, JobOptions, KeyRequestError, PreloadOutcome, Progress, Shutdown, SourceError, Status,
};
use cuzk_filecoin::{CircuitId, Statement};
use cuzk_proto::v1::{Priority as Wire, SubmitProofRequest};
use cuzk_prover::{FilecoinCircuit, FilecoinJob, devices};
use cuzk_scheduler::{Health, JobId, KeyTier, PartitionId, Pool, Priority};
use cuzk_server::{
    prover::{
        DeviceLook, Evicted, Failure, KeyError, KeyLook, Look, Observer, Order, PoolLook, Preloaded, Prover, Rejection,
        RequestSource, Running, Summary, Tier,
    },
    server::ProverError,
};
use cuzk_timeline::{
    self as timeline, Limits, PartitionRef, Recorder, Span, Stage, Timeline, Track, TrackId, TrackKind,
};

use crate::{
    Settings,
    circuits::Circuits,
    feasible::{self, Feasible},
    job::Job,
    statement,
};

/// Exit code of a backend or a device that cannot be used.
const DEVICE: u8 = 5;

/// After how long a circuit that could not be had is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// News of partitions that may pile up before the oldest are dropped.
const NEWS: usize = 1 << 14;

/// An engine with Filecoin's circuits.
pub struct EngineProver {
    shared: Arc<Shared>,
    circuits: Circuits,
}

struct Shared {
    /// `None` once it was stopped.
    engine: RwLock<Option<Arc<Engine<Bls12>>>>,
    recorder: Arc<Recorder>,
    settings: Settings,
    found: devices::Found,
    gpu_workers: u32,
    started: Instant,
    /// The engine's jobs.
    jobs: Mutex<HashMap<JobId, Weak<Job>>>,
    /// What can be proved.
    feasible: Feasible,
    /// Digests of keys that record them, by the names of their circuits.
    digests: Mutex<HashMap<String, String>>,
    /// What is tried again after a while.
    waiting: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl EngineProver {
    /// Finds the devices, starts an engine on them, and begins to load the keys that are wanted from the start.
    ///
    /// # Errors
    /// A device that was asked for cannot be used, or nothing could ever run.
    pub fn start(settings: Settings) -> Result<Self, ProverError> {
        let refused = |message: String| ProverError { message, exit_code: DEVICE };
        let found = devices::find(&settings.devices).map_err(|error| refused(error.to_string()))?;
        tracing::info!("computing on {}: {}", found.backend().name(), found.reason());
        let recorder = Arc::new(Recorder::new("cuzk-daemon", Limits::default()).resident());
        let specs = found.specs(&settings.memory);
        let engine = Engine::start_recorded(settings.engine.clone(), specs, Arc::clone(&recorder))
            .map_err(|error| refused(feasible::start_error(&error)))?;
        let news = engine.subscribe(NEWS);
        let gpu_workers = settings.engine.scheduler.gpu_workers_per_device * found.devices().len();
        let shared = Arc::new(Shared {
            engine: RwLock::new(Some(Arc::new(engine))),
            recorder,
            found,
            gpu_workers: u32::try_from(gpu_workers).unwrap_or(u32::MAX),
            feasible: Feasible::new(settings.directories.clone()),
            settings,
            started: Instant::now(),
            jobs: Mutex::default(),
            digests: Mutex::default(),
            waiting: Mutex::default(),
        });
        let teller = Arc::downgrade(&shared);
        std::thread::Builder::new()
            .name("cuzk-news".to_owned())
            .spawn(move || {
                // Ends with the engine.
                while let Ok(progress) = news.recv() {
                    let Some(shared) = teller.upgrade() else { return };
                    shared.tell(&progress);
                }
            })
            .map_err(|error| refused(format!("a thread cannot be started: {error}")))?;
        let registrar = Arc::downgrade(&shared);
        let circuits = Circuits::new(Arc::new(move |circuit| {
            let shared = registrar.upgrade().ok_or("the prover has stopped")?;
            let engine = shared.engine().ok_or("the prover has stopped")?;
            let directories = &shared.settings.directories;
            let source = FilecoinCircuit::open(circuit, directories).map_err(|error| {
                tracing::error!(%circuit, "{error}");
                feasible::told(&error, directories)
            })?;
            if let Some(digest) = source.recorded_digest().map_err(|e| e.to_string())? {
                shared.digests().insert(circuit.to_string(), digest.to_string());
            }
            let registered = engine.register(source).map_err(|e| e.to_string())?;
            // Its sizes are known by now. What it lacks is in the log, and for who asks for a proof.
            drop(shared.feasible.fits(&engine, circuit));
            Ok(registered)
        }));
        let this = Self { shared, circuits };
        if let Some(engine) = this.shared.engine() {
            this.shared.feasible.look(&engine);
            if let Some(reason) = this.shared.feasible.reason() {
                tracing::error!("no circuit that has a key can be proved here: {reason}");
            }
            if this.shared.feasible.is_empty() {
                let directory = this.shared.settings.directories.parameters.display();
                tracing::warn!(
                    "no circuit has a key in srs.param_cache ({directory}): requests are refused until one is there"
                );
            }
            this.preload_wanted(&engine)?;
        }
        Ok(this)
    }

    /// Begins to load the keys that the configuration names.
    fn preload_wanted(&self, engine: &Engine<Bls12>) -> Result<(), ProverError> {
        for name in &self.shared.settings.preload {
            let circuit: CircuitId =
                name.parse().map_err(|e| ProverError { message: format!("memory.preload: {e}"), exit_code: 2 })?;
            // A key that is missing or too large is found now, not by the first proof.
            self.shared.feasible.has_key(circuit).map_err(|message| ProverError { message, exit_code: 4 })?;
            let too_large = |lacks| ProverError { message: format!("memory.preload: {lacks}"), exit_code: 2 };
            self.shared.feasible.fits(engine, circuit).map_err(too_large)?;
            let shared = Arc::downgrade(&self.shared);
            self.circuits.with(circuit, move |registered| {
                if let (Ok(registered), Some(engine)) = (registered, shared.upgrade().and_then(|s| s.engine())) {
                    // Nobody waits for it; what comes of it is in the log and in the status.
                    drop(engine.preload(registered));
                }
            });
        }
        Ok(())
    }
}

impl Shared {
    fn engine(&self) -> Option<Arc<Engine<Bls12>>> {
        self.engine.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a circuit can be proved here, as far as that is known.
    fn able(&self, circuit: CircuitId) -> Result<(), String> {
        self.feasible.has_key(circuit)?;
        self.engine().map_or(Ok(()), |engine| self.feasible.fits(&engine, circuit))
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Weak<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls something after a while, on the one thread that does that.
    fn later(self: Arc<Self>, call: impl FnOnce() + Send + 'static) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(Box::new(call));
        if waiting.len() > 1 {
            return;
        }
        drop(waiting);
        let this = Arc::downgrade(&self);
        let spawned = std::thread::Builder::new().name("cuzk-later".to_owned()).spawn(move || {
            std::thread::sleep(RETRY);
            if let Some(this) = this.upgrade() {
                let due = std::mem::take(&mut *this.waiting.lock().unwrap_or_else(PoisonError::into_inner));
                due.into_iter().for_each(|call| call());
            }
        });
        if let Err(error) = spawned {
            tracing::error!("a thread cannot be started, jobs wait for the next one: {error}");
        }
    }

    fn digests(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, id: JobId) -> Option<Arc<Job>> {
        self.jobs().get(&id)?.upgrade()
    }

    fn tell(&self, progress: &Progress) {
        let partition = progress.ticket.partition;
        if let Some(job) = self.job(partition.job) {
            job.tell(partition.index, &progress.stage);
        }
    }

    /// Backend and model of a device.
    fn device_name(&self, index: u16) -> String {
        let name = self.found.devices().get(usize::from(index)).map_or("", |device| &device.name);
        format!("{}: {name}", self.found.backend().name())
    }

    /// Gives a job whose circuit is known to the engine.
    fn submit(
        self: &Arc<Self>,
        job: &Arc<Job>,
        circuit: cuzk_scheduler::CircuitId,
        work: FilecoinJob,
        options: JobOptions,
    ) {
        let Some(engine) = self.engine() else { return job.end(Err(Failure::Stopped)) };
        // The table is locked until the job is in it, so that its first news finds it there.
        let mut jobs = self.jobs();
        let handle = job.submit(|| engine.submit(circuit, work, options));
        let Some(handle) = handle else { return };
        jobs.insert(handle.id(), Arc::downgrade(job));
        drop(jobs);
        let (shared, job, ended) = (Arc::clone(self), Arc::clone(job), handle.clone());
        handle.on_end(move |result| {
            job.engine_ended(result, ended.report().as_deref(), |index| shared.device_name(index));
            shared.jobs().remove(&ended.id());
        });
    }

    fn device_looks(&self, status: &Status) -> Vec<DeviceLook> {
        let backend = self.found.backend().name();
        let elapsed = self.started.elapsed().as_secs_f64().max(1e-9);
        let reserved =
            |wanted: Pool| status.memory.iter().find(|(pool, _)| *pool == wanted).map_or(0, |(_, u)| u.in_use);
        let looks = status.devices.iter().zip(self.found.devices()).map(|(device, info)| DeviceLook {
            index: info.index,
            backend: backend.to_owned(),
            name: info.name.clone(),
            uuid: info.uuid.clone(),
            driver: info.driver.clone(),
            health: health(&device.health).to_owned(),
            memory_bytes: info.memory_bytes,
            memory_free_bytes: info.memory_bytes.saturating_sub(reserved(Pool::Device(device.id))),
            job: device.current.and_then(|t| self.job(t.partition.job)).map(|job| job.name().to_owned()),
            idle_reason: device.idle.as_ref().map(ToString::to_string),
            busy: (device.busy.as_secs_f64() / elapsed).min(1.0),
        });
        looks.collect()
    }
}

/// Adds what devices compute now. The steps of a partition are recorded when it has been computed, which can take
/// minutes; until then one span of kernels in general stands for them.
fn add_current(timeline: &mut Timeline, status: &Status) {
    let is_device = |(id, track): (u32, &Track)| (track.kind == TrackKind::Device).then_some(TrackId(id));
    let tracks: Vec<TrackId> = (0..).zip(&timeline.tracks).filter_map(is_device).collect();
    for (device, track) in status.devices.iter().zip(tracks) {
        let Some(ticket) = device.current else { continue };
        let spans = timeline.spans.iter().filter(|span| span.track == track).map(|span| span.end);
        let gaps = timeline.gaps.iter().filter(|gap| gap.track == track).map(|gap| gap.end);
        let since = spans.chain(gaps).max().unwrap_or(timeline.start);
        let PartitionId { job, index } = ticket.partition;
        let partition = PartitionRef { job: timeline::JobId(job.0), index, attempt: ticket.attempt };
        let span = Span::new(track, Stage::Kernels, since, timeline.end);
        timeline.spans.push(Span { partition: Some(partition), ..span });
    }
}

fn health(health: &Health) -> &'static str {
    match health {
        Health::Healthy => "healthy",
        Health::Quarantined { .. } => "fenced",
        Health::Retired => "retired",
    }
}

fn priority(priority: Wire) -> Priority {
    match priority {
        Wire::Low => Priority::Low,
        // A server resolves what is unspecified before.
        Wire::Normal | Wire::Unspecified => Priority::Normal,
        Wire::High => Priority::High,
        Wire::Critical => Priority::Critical,
    }
}

/// Reads the statement of a request that the server keeps.
fn read(source: &dyn RequestSource) -> Result<Statement, SourceError> {
    Ok(statement::read(&source.read()?)?)
}

/// What is to be proved for a job.
struct Wish {
    circuit: CircuitId,
    partitions: u32,
    priority: Priority,
    deadline: Option<Instant>,
    request: Arc<dyn RequestSource>,
}

/// Gives a job to the engine once its circuit is known there.
///
/// A job is accepted only if its key is there. If it cannot be had after that (its disk is not mounted after a restart,
/// its file is being replaced), the job waits for it, and says why, instead of being lost to a fault that is not its
/// own.
fn begin(circuits: &Circuits, shared: &Arc<Shared>, job: Arc<Job>, wish: Wish) {
    let (circuits_again, shared) = (circuits.clone(), Arc::clone(shared));
    circuits.with(wish.circuit, move |registered| {
        let left = wish.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return job.end(Err(Failure::Deadline));
        }
        match registered {
            Ok(registered) => {
                let request = Arc::clone(&wish.request);
                let work = FilecoinJob::from_source(wish.circuit, wish.partitions, move || read(&*request));
                let work = work.named(job.name());
                shared.submit(&job, registered, work, JobOptions { priority: wish.priority, deadline: left });
            }
            Err(_) if shared.engine().is_none() => job.end(Err(Failure::Stopped)),
            Err(cause) => {
                tracing::warn!(job = job.name(), circuit = %wish.circuit, cause, "the job waits for its circuit");
                job.tell_cause(&cause);
                shared.clone().later(move || {
                    if !job.has_ended() {
                        begin(&circuits_again, &shared, job, wish);
                    }
                });
            }
        }
    });
}

impl Prover for EngineProver {
    fn check(&self, request: &SubmitProofRequest) -> Result<Summary, Rejection> {
        let statement = statement::check(request).map_err(|e| Rejection::Invalid(e.to_string()))?;
        let circuit = statement.circuit_id();
        self.shared.able(circuit).map_err(Rejection::Unable)?;
        // Bounded by the size of a message.
        Ok(Summary { circuit: circuit.to_string(), partitions: statement.partitions() as u32 })
    }

    fn start(&self, order: Order, observer: Arc<dyn Observer>) -> Arc<dyn Running> {
        let Order { job: name, summary, priority: wire, deadline, request } = order;
        let job = Job::new(name, summary.circuit.clone(), observer);
        let circuit = match summary.circuit.parse::<CircuitId>() {
            Ok(circuit) => circuit,
            Err(error) => {
                job.end(Err(Failure::Failed(error.to_string())));
                return job;
            }
        };
        let wish = Wish { circuit, partitions: summary.partitions, priority: priority(wire), deadline, request };
        begin(&self.circuits, &self.shared, Arc::clone(&job), wish);
        job
    }

    fn look(&self) -> Look {
        let Some(engine) = self.shared.engine() else { return Look::default() };
        let Some(status) = engine.status() else { return Look::default() };
        let pools = status.memory.iter().map(|(pool, usage)| PoolLook {
            name: pool.to_string(),
            reserved: usage.in_use,
            peak: usage.high_water,
            capacity: usage.capacity,
        });
        let keys = status.circuits.iter().filter_map(|circuit| {
            let of_key = || status.keys.iter().filter(|key| key.circuit == circuit.id);
            let bytes = of_key().map(|key| key.bytes).sum();
            (bytes > 0).then(|| KeyLook {
                circuit: circuit.name.clone(),
                tier: match circuit.tier {
                    KeyTier::Hot => Tier::Hot,
                    KeyTier::Warm => Tier::Warm,
                    KeyTier::Cold => Tier::Cold,
                },
                bytes,
                digest: self.shared.digests().get(&circuit.name).cloned(),
                users: of_key().map(|key| key.users).max().unwrap_or(0),
            })
        });
        Look {
            devices: self.shared.device_looks(&status),
            pools: pools.collect(),
            keys: keys.collect(),
            workers: status.workers.clone(),
            partition_workers: u32::try_from(status.counts.workers).unwrap_or(u32::MAX),
            gpu_workers: self.shared.gpu_workers,
            verification_failures: status.totals.failed_verifications,
            unable: self.shared.feasible.unable(&engine),
        }
    }

    fn timeline(&self, minutes: f64) -> Timeline {
        let recorder = &self.shared.recorder;
        let now = recorder.now();
        // Negative, infinite and no numbers are "everything".
        let back = Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(Duration::MAX);
        let start = cuzk_timeline::Nanos(now.0.saturating_sub(u64::try_from(back.as_nanos()).unwrap_or(u64::MAX)));
        let mut timeline = recorder.snapshot(now);
        if let Some(status) = self.shared.engine().and_then(|engine| engine.status()) {
            add_current(&mut timeline, &status);
        }
        timeline.between(start, now)
    }

    fn preload(&self, circuit: &str) -> Result<Preloaded, KeyError> {
        let id: CircuitId = circuit.parse().map_err(|_| KeyError::UnknownCircuit(circuit.to_owned()))?;
        self.shared.able(id).map_err(KeyError::Unable)?;
        let started = Instant::now();
        let registered = self.circuits.wait(id).map_err(KeyError::Unable)?;
        let stopped = || KeyError::Unable("the prover has stopped".to_owned());
        let engine = self.shared.engine().ok_or_else(stopped)?;
        let preloaded = engine.preload(registered).wait().map_err(|e| KeyError::Unable(e.to_string()))?;
        for (pool, bytes, outcome) in &preloaded.pools {
            match outcome {
                PreloadOutcome::AlreadyThere | PreloadOutcome::Loaded => {}
                PreloadOutcome::Refused(error) => return Err(KeyError::Unable(error.to_string())),
                PreloadOutcome::Absent => {
                    return Err(KeyError::Unable(format!(
                        "the key of {circuit} ({bytes} bytes) was not loaded to {pool}"
                    )));
                }
            }
        }
        let already_loaded = preloaded.pools.iter().all(|(.., o)| matches!(o, PreloadOutcome::AlreadyThere));
        Ok(Preloaded { already_loaded, took: started.elapsed() })
    }

    fn evict(&self, circuit: &str) -> Result<Evicted, KeyError> {
        let id: CircuitId = circuit.parse().map_err(|_| KeyError::UnknownCircuit(circuit.to_owned()))?;
        let nowhere = Evicted { was_loaded: false, freed_bytes: 0 };
        let Some(registered) = self.circuits.known(id) else { return Ok(nowhere) };
        let Some(engine) = self.shared.engine() else { return Ok(nowhere) };
        let evicted = engine.evict(registered).wait().map_err(|e: KeyRequestError| KeyError::Unable(e.to_string()))?;
        let in_use = |outcome: &EvictOutcome| !matches!(outcome, EvictOutcome::Freed);
        if evicted.pools.iter().any(|(.., outcome)| in_use(outcome)) {
            return Err(KeyError::InUse(circuit.to_owned()));
        }
        Ok(Evicted { was_loaded: !evicted.pools.is_empty(), freed_bytes: evicted.bytes_freed() })
    }

    fn stop(&self) {
        let engine = self.shared.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        match engine.map(Arc::try_unwrap) {
            Some(Ok(engine)) => engine.shutdown(Shutdown::Cancel),
            // Whoever still asks it something or registers a circuit ends it by letting go of it.
            Some(Err(engine)) => drop(engine),
            None => {}
        }
    }
}

impl std::fmt::Debug for EngineProver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EngineProver({:?})", self.shared.found)
    }
}
