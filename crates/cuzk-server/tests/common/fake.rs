//! A prover that only takes time. What it does is written in the request: see [`Wish`].

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use cuzk_server::prover::{
    DeviceLook, Evicted, Failure, KeyError, KeyLook, Look, News, Observer, Order, Outcome, PoolLook, Preloaded, Proved,
    Prover, Rejection, Running, Step, Summary, Tier, Times,
};
use cuzk_timeline::{JobId, Limits, Nanos, PartitionRef, Recorder, Span, Stage, Timeline, TrackId, TrackKind};
use prost::Message;
use sha2::{Digest, Sha256};

/// How the fake proves.
#[derive(Clone, Debug)]
pub(crate) struct FakeOptions {
    /// Jobs that are worked on at a time.
    pub(crate) workers: usize,
    /// Partitions of a PoRep or a SnapDeals update; the others have one.
    pub(crate) partitions: u32,
    /// How long a partition takes.
    pub(crate) partition_time: Duration,
    /// Part of what proofs are made of, for proofs that differ from life to life as real ones do.
    pub(crate) salt: Vec<u8>,
    /// Whether it remembers what it did, which takes memory.
    pub(crate) remember: bool,
}

impl Default for FakeOptions {
    fn default() -> Self {
        Self { workers: 1, partitions: 3, partition_time: Duration::from_millis(5), salt: Vec::new(), remember: true }
    }
}

/// What a request wants to happen: how the first of its vanilla proofs begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// `invalid`: it is rejected as wrong.
    Invalid,
    /// `unable`: it is rejected as impossible here.
    Unable,
    /// `fail`: its first partition fails; what follows is the cause.
    Fail,
    /// `slow`: it takes a hundred times as long.
    Slow,
    /// Anything else: it is proved.
    Prove,
}

impl Wish {
    fn of(request: &SubmitProofRequest) -> Self {
        let input = match request.vanilla_proofs.first() {
            Some(first) if request.vanilla_proof.is_empty() => first,
            _ => &request.vanilla_proof,
        };
        let begins = |prefix: &str| input.starts_with(prefix.as_bytes());
        if begins("invalid") {
            Self::Invalid
        } else if begins("unable") {
            Self::Unable
        } else if begins("fail") {
            Self::Fail
        } else if begins("slow") {
            Self::Slow
        } else {
            Self::Prove
        }
    }
}

/// A request that the fake proves: a kind, a size, and `input` where its kind has it.
pub(crate) fn request(kind: ProofKind, id: &str, input: &[u8]) -> SubmitProofRequest {
    let mut request = SubmitProofRequest {
        request_id: id.to_owned(),
        proof_kind: kind.into(),
        sector_size: 2048,
        sector_number: 1,
        miner_id: 1000,
        ..SubmitProofRequest::default()
    };
    match kind {
        ProofKind::PorepSealCommit => request.vanilla_proof = input.to_vec(),
        _ => request.vanilla_proofs = vec![input.to_vec()],
    }
    request
}

/// The proof that the fake makes of a request: the SHA-256 of its input, again and again, 192 bytes a partition.
pub(crate) fn proof_of(request: &SubmitProofRequest, partitions: u32) -> Vec<u8> {
    salted_proof_of(request, partitions, &[])
}

fn salted_proof_of(request: &SubmitProofRequest, partitions: u32, salt: &[u8]) -> Vec<u8> {
    let digest = digest(request);
    let seed = if salt.is_empty() { digest } else { Sha256::digest([&digest[..], salt].concat()).into() };
    seed.iter().copied().cycle().take(192 * partitions as usize).collect()
}

fn digest(request: &SubmitProofRequest) -> [u8; 32] {
    let mut input = request.clone();
    input.request_id.clear();
    input.priority = 0;
    input.deadline_ms = 0;
    Sha256::digest(input.encode_to_vec()).into()
}

/// Name of the circuit of a request.
fn circuit(kind: ProofKind, sector_size: u64) -> Option<String> {
    let name = match kind {
        ProofKind::Unspecified => return None,
        ProofKind::PorepSealCommit => "porep",
        ProofKind::SnapDealsUpdate => "snap",
        ProofKind::WindowPostPartition => "wpost",
        ProofKind::WinningPost => "winning",
    };
    let size = match sector_size {
        2048 => "2k",
        0x80_0000 => "8m",
        0x8_0000_0000 => "32g",
        _ => return None,
    };
    Some(format!("{name}-{size}"))
}

/// A prover that only takes time.
pub(crate) struct FakeProver {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    options: FakeOptions,
    recorder: Recorder,
    device: TrackId,
    started: Instant,
    state: Mutex<State>,
    /// Signalled at every change of `state`, and when something is cancelled.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By urgency: negative priority, then order of arrival.
    queue: BTreeMap<(i32, u64), Arc<Task>>,
    arrivals: u64,
    stopped: bool,
    current: Option<String>,
    /// How often each input was proved.
    proved: HashMap<[u8; 32], u32>,
    /// Jobs in the order in which they were started.
    order: Vec<String>,
    keys: HashMap<String, bool>,
}

struct Task {
    order: Order,
    observer: Arc<dyn Observer>,
    arrived: Instant,
    cancelled: AtomicBool,
    shared: Arc<Shared>,
}

impl Running for Task {
    fn cancel(&self) {
        let _state = self.shared.state();
        self.cancelled.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Passes time, unless the task is to end before.
    fn pass(&self, task: &Task, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        let mut state = self.state();
        loop {
            if state.stopped {
                return Err(Failure::Stopped);
            }
            let now = Instant::now();
            task.over(now)?;
            let next = task.order.deadline.map_or(until, |deadline| until.min(deadline));
            if now >= until {
                return Ok(());
            }
            state = self
                .changed
                .wait_timeout(state, next.saturating_duration_since(now))
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
    }

    fn work(&self) {
        loop {
            let task = {
                let mut state = self.state();
                loop {
                    if state.stopped {
                        return;
                    }
                    let over = state.queue.iter().find(|(_, task)| task.over(Instant::now()).is_err());
                    if let Some(key) = over.map(|(key, _)| *key) {
                        break state.queue.remove(&key);
                    }
                    if let Some((_, task)) = state.queue.pop_first() {
                        break Some(task);
                    }
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            };
            if let Some(task) = task {
                let outcome = self.prove(&task);
                task.observer.ended(outcome);
            }
        }
    }

    fn prove(&self, task: &Task) -> Outcome {
        task.over(Instant::now())?;
        let request = task.order.request.read().map_err(|error| Failure::Failed(error.to_string()))?;
        let wish = Wish::of(&request);
        let queue = task.arrived.elapsed();
        let factor = if wish == Wish::Slow { 100 } else { 1 };
        let time = self.options.partition_time * factor;
        self.state().current = Some(task.order.job.clone());
        for partition in 0..task.order.summary.partitions {
            let tell = |step| task.observer.news(News { partition, step });
            tell(Step::Synthesizing);
            self.pass(task, time / 2)?;
            tell(Step::Proving(0));
            let begin = self.now();
            self.pass(task, time / 2)?;
            let partition_ref = PartitionRef { job: JobId(task.order.job.len() as u64), index: partition, attempt: 0 };
            let span = Span::new(self.device, Stage::Kernels, begin, self.now());
            if self.options.remember {
                self.recorder.span(Span { partition: Some(partition_ref), ..span });
            }
            if wish == Wish::Fail {
                let input = request.vanilla_proofs.first().unwrap_or(&request.vanilla_proof);
                let cause = String::from_utf8_lossy(&input["fail".len()..]).trim().to_owned();
                let cause = if cause.is_empty() { "partition 0 failed as asked".to_owned() } else { cause };
                tell(Step::Failed(cause.clone()));
                return Err(Failure::Failed(cause));
            }
            tell(Step::Finishing);
            tell(Step::Proved);
        }
        let mut state = self.state();
        state.current = None;
        if self.options.remember {
            *state.proved.entry(digest(&request)).or_default() += 1;
        }
        let half = time / 2 * task.order.summary.partitions;
        Ok(Proved {
            proof: salted_proof_of(&request, task.order.summary.partitions, &self.options.salt),
            device: "fake: Fake 9000".to_owned(),
            times: Times { queue, key: Duration::ZERO, synthesis: half, device: half, finish: Duration::ZERO },
        })
    }
}

impl Task {
    fn over(&self, now: Instant) -> Result<(), Failure> {
        if self.cancelled.load(Ordering::Relaxed) {
            Err(Failure::Cancelled)
        } else if self.order.deadline.is_some_and(|deadline| deadline <= now) {
            Err(Failure::Deadline)
        } else {
            Ok(())
        }
    }
}

impl FakeProver {
    /// Starts its threads.
    pub(crate) fn start(options: FakeOptions) -> Arc<Self> {
        let recorder = Recorder::new("fake", Limits::default());
        let device = recorder.add_track("fake 0", TrackKind::Device);
        let shared = Arc::new(Shared {
            options: options.clone(),
            recorder,
            device,
            started: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let threads = (0..options.workers)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || shared.work())
            })
            .collect();
        Arc::new(Self { shared, threads: Mutex::new(threads) })
    }

    /// How often each input was proved: by the SHA-256 of the request without id, priority and deadline.
    pub(crate) fn proved(&self) -> HashMap<[u8; 32], u32> {
        self.shared.state().proved.clone()
    }

    /// Jobs in the order in which they were started.
    pub(crate) fn started(&self) -> Vec<String> {
        self.shared.state().order.clone()
    }
}

impl Prover for FakeProver {
    fn check(&self, request: &SubmitProofRequest) -> Result<Summary, Rejection> {
        let Some(circuit) = circuit(request.proof_kind(), request.sector_size) else {
            return Err(Rejection::Invalid(format!(
                "proof_kind {} with sector_size {}: there is no such circuit",
                request.proof_kind, request.sector_size
            )));
        };
        if request.vanilla_proof.is_empty() && request.vanilla_proofs.is_empty() {
            return Err(Rejection::Invalid("vanilla_proof: empty".to_owned()));
        }
        match Wish::of(request) {
            Wish::Invalid => Err(Rejection::Invalid("vanilla_proof: invalid, as asked".to_owned())),
            Wish::Unable => Err(Rejection::Unable(format!("there is no key of {circuit}, as asked"))),
            Wish::Fail | Wish::Slow | Wish::Prove => {
                let large = matches!(request.proof_kind(), ProofKind::PorepSealCommit | ProofKind::SnapDealsUpdate);
                Ok(Summary { circuit, partitions: if large { self.shared.options.partitions } else { 1 } })
            }
        }
    }

    fn start(&self, order: Order, observer: Arc<dyn Observer>) -> Arc<dyn Running> {
        assert_ne!(order.priority, Priority::Unspecified);
        let mut state = self.shared.state();
        state.arrivals += 1;
        if self.shared.options.remember {
            state.order.push(order.job.clone());
        }
        let key = (-(order.priority as i32), state.arrivals);
        let shared = self.shared.clone();
        let task =
            Arc::new(Task { order, observer, arrived: Instant::now(), cancelled: AtomicBool::new(false), shared });
        let stopped = state.stopped;
        if !stopped {
            state.queue.insert(key, task.clone());
            self.shared.changed.notify_all();
        }
        drop(state);
        if stopped {
            task.observer.ended(Err(Failure::Stopped));
        }
        task
    }

    fn look(&self) -> Look {
        let state = self.shared.state();
        let busy = state.current.is_some();
        Look {
            devices: vec![DeviceLook {
                index: 0,
                backend: "fake".to_owned(),
                name: "Fake 9000".to_owned(),
                uuid: "FAKE-0".to_owned(),
                driver: String::new(),
                health: "healthy".to_owned(),
                memory_bytes: 16 << 30,
                memory_free_bytes: if busy { 4 << 30 } else { 15 << 30 },
                job: state.current.clone(),
                idle_reason: (!busy).then(|| "no job".to_owned()),
                busy: 0.5,
            }],
            pools: vec![
                PoolLook { name: "host".to_owned(), reserved: 1 << 30, peak: 2 << 30, capacity: 8 << 30 },
                PoolLook { name: "pinned".to_owned(), reserved: 1 << 28, peak: 1 << 29, capacity: 1 << 30 },
                PoolLook { name: "device 0".to_owned(), reserved: 1 << 30, peak: 3 << 30, capacity: 16 << 30 },
            ],
            keys: state
                .keys
                .keys()
                .map(|circuit| KeyLook {
                    circuit: circuit.clone(),
                    tier: Tier::Hot,
                    bytes: 1 << 30,
                    users: 0,
                    digest: None,
                })
                .collect(),
            workers: "as many as asked for".to_owned(),
            partition_workers: self.shared.options.workers as u32,
            gpu_workers: 1,
            verification_failures: 0,
            unable: None,
        }
    }

    fn timeline(&self, _minutes: f64) -> Timeline {
        self.shared.recorder.snapshot(self.shared.now())
    }

    fn preload(&self, circuit: &str) -> Result<Preloaded, KeyError> {
        if !["porep-2k", "snap-2k", "wpost-2k", "winning-2k"].contains(&circuit) {
            return Err(KeyError::UnknownCircuit(circuit.to_owned()));
        }
        let already_loaded = self.shared.state().keys.insert(circuit.to_owned(), true).is_some();
        Ok(Preloaded { already_loaded, took: Duration::from_millis(3) })
    }

    fn evict(&self, circuit: &str) -> Result<Evicted, KeyError> {
        let was_loaded = self.shared.state().keys.remove(circuit).is_some();
        Ok(Evicted { was_loaded, freed_bytes: if was_loaded { 1 << 30 } else { 0 } })
    }

    fn stop(&self) {
        let waiting = {
            let mut state = self.shared.state();
            state.stopped = true;
            self.shared.changed.notify_all();
            mem::take(&mut state.queue)
        };
        for task in waiting.into_values() {
            task.observer.ended(Err(Failure::Stopped));
        }
        let threads = mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads.into_iter().filter(|thread| thread.thread().id() != thread::current().id()) {
            thread.join().expect("no worker panics");
        }
    }
}

impl Drop for FakeProver {
    fn drop(&mut self) {
        self.stop();
    }
}
