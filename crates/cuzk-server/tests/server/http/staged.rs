//! A prover that plans every step of a job when it is started and then only lets time pass: for what a person sees.
//!
//! It has two devices, six workers and rather short proofs. A request whose input begins with `fail` fails, and what
//! follows is part of the cause.

use std::{
    collections::{BTreeMap, BinaryHeap, HashMap, HashSet},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use cuzk_proto::v1::{ProofKind, SubmitProofRequest};
use cuzk_server::prover::{
    DeviceLook, Evicted, Failure, KeyError, KeyLook, Look, News, Observer, Order, PoolLook, Preloaded, Proved, Prover,
    Rejection, Running, Step, Summary, Tier, Times,
};
use cuzk_timeline::{
    CircuitId, IdleGap, IdleReason, JobEvent, JobId, JobMark, Nanos, Outcome, PartitionRef, Pool, PoolUse, Sample,
    Span, Stage, Timeline, Track, TrackId, TrackKind,
};

const WORKERS: usize = 6;
const DEVICES: usize = 2;
const GIB: u64 = 1 << 30;
const CIRCUITS: [(ProofKind, &str, u32, f64); 4] = [
    (ProofKind::PorepSealCommit, "porep-32g", 10, 1.0),
    (ProofKind::SnapDealsUpdate, "snap-32g", 16, 0.6),
    (ProofKind::WindowPostPartition, "wpost-32g", 1, 1.2),
    (ProofKind::WinningPost, "winning-32g", 1, 0.05),
];
/// Of a partition, in seconds.
const WITNESS: f64 = 2.3;
const KERNELS: [(Stage, f64); 7] = [
    (Stage::Evaluate, 0.04),
    (Stage::Quotient, 0.11),
    (Stage::MsmH, 0.16),
    (Stage::MsmL, 0.06),
    (Stage::MsmA, 0.07),
    (Stage::MsmBG1, 0.04),
    (Stage::MsmBG2, 0.12),
];

/// Tracks in the order of [`Staged::timeline`].
const WAITING: TrackId = TrackId((2 * DEVICES + WORKERS + 1) as u32);
const FINISH: TrackId = TrackId((2 * DEVICES + WORKERS) as u32);

pub(super) struct Staged {
    shared: Arc<Shared>,
    clock: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    begin: Instant,
    /// Times of all stages are multiplied by this.
    scale: f64,
    plan: Mutex<Plan>,
    changed: Condvar,
}

/// What happens to a job and when; the earliest is the greatest.
struct Due(Nanos, u64, String, What);

enum What {
    News(News),
    End(Result<Proved, Failure>),
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

#[derive(Default)]
struct Plan {
    stopped: bool,
    due: BinaryHeap<Due>,
    observers: HashMap<String, Arc<dyn Observer>>,
    cancelled: HashSet<String>,
    worker_free: [f64; WORKERS],
    device_free: [f64; DEVICES],
    spans: Vec<Span>,
    marks: Vec<JobMark>,
    names: Vec<String>,
    /// Changes of the bytes in use.
    memory: Vec<(f64, Pool, i64)>,
    fenced: bool,
}

struct Handle {
    job: String,
    shared: Arc<Shared>,
}

impl Running for Handle {
    fn cancel(&self) {
        self.shared.plan().cancelled.insert(self.job.clone());
        self.shared.changed.notify_all();
    }
}

fn earliest(times: &[f64]) -> usize {
    (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0)
}

fn s(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

impl Shared {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Nanos {
        self.begin.elapsed().into()
    }

    fn run(&self) {
        let mut plan = self.plan();
        loop {
            if plan.stopped {
                let ended = mem::take(&mut plan.observers);
                drop(plan);
                ended.into_values().for_each(|observer| observer.ended(Err(Failure::Stopped)));
                return;
            }
            let now = self.now();
            if let Some(job) = plan.cancelled.iter().find(|job| plan.observers.contains_key(*job)).cloned() {
                plan.cut(&job, now, JobEvent::Cancelled);
                let observer = plan.observers.remove(&job);
                drop(plan);
                observer.inspect(|observer| observer.ended(Err(Failure::Cancelled)));
                plan = self.plan();
                continue;
            }
            match plan.due.peek() {
                Some(due) if due.0 <= now => {
                    let Some(Due(_, _, job, what)) = plan.due.pop() else { continue };
                    let observer = match what {
                        What::News(_) => plan.observers.get(&job).cloned(),
                        What::End(_) => plan.observers.remove(&job),
                    };
                    drop(plan);
                    match (observer, what) {
                        (Some(observer), What::News(news)) => observer.news(news),
                        (Some(observer), What::End(outcome)) => observer.ended(outcome),
                        (None, _) => {}
                    }
                    plan = self.plan();
                }
                due => {
                    let wait = due.map_or(Duration::from_secs(1), |due| (due.0 - now).into());
                    plan = self.changed.wait_timeout(plan, wait).map_or_else(|p| p.into_inner().0, |(plan, _)| plan);
                }
            }
        }
    }
}

impl Plan {
    /// Forgets what a job would have done after `now`.
    fn cut(&mut self, job: &str, now: Nanos, event: JobEvent) {
        let Some(id) = self.names.iter().position(|name| name == job).map(|place| JobId(place as u64)) else { return };
        self.spans.retain(|span| span.start < now || span.partition.is_none_or(|p| p.job != id));
        for span in self.spans.iter_mut().filter(|s| s.end > now && s.partition.is_some_and(|p| p.job == id)) {
            (span.end, span.outcome) = (now, Outcome::Cancelled);
        }
        self.marks.retain(|mark| mark.job != id || mark.at < now);
        self.marks.push(JobMark { job: id, at: now, event });
    }

    /// Plans a job that starts now.
    fn add(&mut self, order: &Order, now: f64, scale: f64, failing: Option<&str>) {
        let id = JobId(self.names.len() as u64);
        let place = CIRCUITS.iter().position(|c| c.1 == order.summary.circuit).unwrap_or(0);
        let factor = CIRCUITS[place].3 * scale;
        let circuit = Some(CircuitId(place as u32));
        self.names.push(order.job.clone());
        let submitted = JobEvent::Submitted { name: order.job.clone(), circuit, partitions: order.summary.partitions };
        self.marks.push(JobMark { job: id, at: s(now), event: submitted });
        let mut times = Times::default();
        let mut over = now;
        for index in 0..order.summary.partitions {
            let partition = Some(PartitionRef { job: id, index, attempt: 0 });
            let noise = 0.85 + 0.3 * ((id.0 * 31 + u64::from(index) * 17) % 10) as f64 / 10.0;
            let span = |track, stage, from, to| Span { partition, circuit, ..Span::new(track, stage, s(from), s(to)) };
            let worker = earliest(&self.worker_free);
            let begin = now.max(self.worker_free[worker]);
            let synthesized = begin + WITNESS * factor * noise;
            self.worker_free[worker] = synthesized;
            let device = earliest(&self.device_free);
            let upload = synthesized.max(self.device_free[device] - 0.1 * scale);
            let kernels = (upload + 0.05 * factor).max(self.device_free[device]);
            if index == 0 {
                times.queue = Duration::from_secs_f64(begin - now);
            }
            self.spans.push(span(WAITING, Stage::Queue, now, begin));
            self.spans.push(span(TrackId((2 * DEVICES + worker) as u32), Stage::Witness, begin, synthesized));
            self.spans.push(span(WAITING, Stage::DeviceQueue, synthesized, upload));
            let bus = TrackId((DEVICES + device) as u32);
            self.spans.push(Span { bytes: 71 << 20, ..span(bus, Stage::Upload, upload, kernels) });
            let mut at = kernels;
            for (stage, seconds) in KERNELS {
                let end = at + seconds * factor * noise;
                let outcome = if failing.is_some() && stage == Stage::MsmL { Outcome::Failed } else { Outcome::Ok };
                self.spans.push(Span { outcome, ..span(TrackId(device as u32), stage, at, end) });
                at = end;
            }
            self.device_free[device] = at;
            let end = at + 0.15 * factor;
            self.spans.push(span(FINISH, Stage::Finish, at, end - 0.02 * factor));
            self.spans.push(span(FINISH, Stage::Verify, end - 0.02 * factor, end));
            let of_device = Pool::Device(device as u16);
            self.memory.extend([(begin, Pool::Host, 4), (at, Pool::Host, -4)]);
            self.memory.extend([(upload, Pool::Pinned, 1), (kernels, Pool::Pinned, -1)]);
            self.memory.extend([(upload, of_device, 9), (kernels, of_device, 14), (at, of_device, -23)]);
            let steps = [
                (begin, Step::Synthesizing),
                (synthesized, Step::Waiting),
                (upload, Step::Preparing(device as u32)),
                (kernels, Step::Proving(device as u32)),
                (at, Step::Finishing),
                (end, Step::Proved),
            ];
            for (sequence, (at, step)) in steps.into_iter().enumerate() {
                let news = What::News(News { partition: index, step });
                self.due.push(Due(s(at), sequence as u64, order.job.clone(), news));
            }
            times.synthesis += Duration::from_secs_f64(synthesized - begin);
            times.device += Duration::from_secs_f64(at - kernels);
            times.finish += Duration::from_secs_f64(end - at);
            over = over.max(end);
            if failing.is_some() {
                break;
            }
        }
        let proof = vec![7; 192 * order.summary.partitions as usize];
        let (event, outcome) = if let Some(how) = failing {
            let cause = format!("partition 0: the proof does not verify{how}; see /var/lib/cuzk/replay");
            (JobEvent::Failed { cause: cause.clone() }, Err(Failure::Failed(cause)))
        } else {
            (JobEvent::Completed, Ok(Proved { proof, device: "staged: Staged H200".to_owned(), times }))
        };
        self.marks.push(JobMark { job: id, at: s(over), event });
        self.due.push(Due(s(over), 9, order.job.clone(), What::End(outcome)));
    }

    /// Samples of each pool until `now`, in the order of time.
    fn samples(&self, now: f64) -> BTreeMap<Pool, Vec<Sample>> {
        let base = [(Pool::Host, 12), (Pool::Pinned, 4), (Pool::Device(0), 46), (Pool::Device(1), 46)];
        let mut in_use: BTreeMap<Pool, i64> = base.into_iter().collect();
        let mut samples: BTreeMap<Pool, Vec<Sample>> =
            base.map(|(pool, n)| (pool, vec![Sample { at: Nanos::ZERO, in_use: n as u64 * GIB }])).into();
        let mut changes: Vec<_> = self.memory.iter().filter(|c| c.0 <= now).collect();
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (at, pool, change) in changes {
            let sum = in_use.entry(*pool).or_default();
            *sum += change;
            samples.entry(*pool).or_default().push(Sample { at: s(*at), in_use: (*sum).max(0) as u64 * GIB });
        }
        samples
    }
}

fn capacity(pool: Pool) -> u64 {
    match pool {
        Pool::Host => 128 * GIB,
        Pool::Pinned => 16 * GIB,
        Pool::Device(_) => 132 * GIB,
    }
}

impl Staged {
    pub(super) fn start(scale: f64) -> Arc<Self> {
        let shared = Arc::new(Shared { begin: Instant::now(), scale, plan: Mutex::default(), changed: Condvar::new() });
        let clock = thread::spawn({
            let shared = shared.clone();
            move || shared.run()
        });
        Arc::new(Self { shared, clock: Mutex::new(Some(clock)) })
    }

    /// Fences both devices, or ends that.
    pub(super) fn fence(&self, fenced: bool) {
        self.shared.plan().fenced = fenced;
    }
}

impl Prover for Staged {
    fn check(&self, request: &SubmitProofRequest) -> Result<Summary, Rejection> {
        let found = CIRCUITS.iter().find(|c| c.0 == request.proof_kind());
        let wrong = || Rejection::Invalid("proof_kind: unknown".to_owned());
        found.map(|c| Summary { circuit: c.1.to_owned(), partitions: c.2 }).ok_or_else(wrong)
    }

    fn start(&self, order: Order, observer: Arc<dyn Observer>) -> Arc<dyn Running> {
        let request = order.request.read();
        let input = request.map(|r| String::from_utf8_lossy(&r.vanilla_proof).into_owned()).unwrap_or_default();
        let now = self.shared.now().as_secs_f64();
        let mut plan = self.shared.plan();
        plan.observers.insert(order.job.clone(), observer);
        plan.add(&order, now, self.shared.scale, input.strip_prefix("fail"));
        self.shared.changed.notify_all();
        Arc::new(Handle { job: order.job, shared: self.shared.clone() })
    }

    fn look(&self) -> Look {
        let now = self.shared.now();
        let plan = self.shared.plan();
        let samples = plan.samples(now.as_secs_f64());
        let device = |index: u32| {
            let here = || plan.spans.iter().filter(move |span| span.track == TrackId(index) && span.start <= now);
            let busy: Nanos = here().map(|span| span.end.min(now) - span.start).sum();
            let job = here().find(|span| span.end > now).and_then(|span| span.partition);
            let in_use = samples[&Pool::Device(index as u16)].last().map_or(0, |sample| sample.in_use);
            DeviceLook {
                index,
                backend: "staged".to_owned(),
                name: "Staged H200".to_owned(),
                uuid: format!("GPU-5d1c7e2a-{index}"),
                driver: "580.95.05".to_owned(),
                health: if plan.fenced { "fenced" } else { "healthy" }.to_owned(),
                memory_bytes: 140 * GIB,
                memory_free_bytes: 140 * GIB - in_use,
                job: job.map(|p| plan.names[p.job.0 as usize].clone()),
                idle_reason: job.is_none().then(|| "no synthesized partition: 6 in synthesis".to_owned()),
                busy: busy.share_of(now),
            }
        };
        let pool = |(pool, samples): (&Pool, &Vec<Sample>)| PoolLook {
            name: pool.to_string(),
            reserved: samples.last().map_or(0, |sample| sample.in_use),
            peak: samples.iter().map(|sample| sample.in_use).max().unwrap_or(0),
            capacity: capacity(*pool),
        };
        let key = |circuit: &str, tier, gib| KeyLook {
            circuit: circuit.to_owned(),
            tier,
            bytes: gib * GIB,
            users: 2,
            digest: Some("5f3a".to_owned()),
        };
        Look {
            devices: (0..DEVICES as u32).map(device).collect(),
            pools: samples.iter().map(pool).collect(),
            keys: vec![key("porep-32g", Tier::Hot, 44), key("snap-32g", Tier::Warm, 32)],
            workers: "as many as are synthesized while the devices work".to_owned(),
            partition_workers: WORKERS as u32,
            gpu_workers: 4,
            verification_failures: 0,
            unable: None,
        }
    }

    fn timeline(&self, minutes: f64) -> Timeline {
        let now = self.shared.now();
        let plan = self.shared.plan();
        let track = |name: String, kind| Track { name, kind };
        let devices = (0..DEVICES).map(|i| track(format!("GPU {i}"), TrackKind::Device));
        let buses = (0..DEVICES).map(|i| track(format!("GPU {i} bus"), TrackKind::Transfer));
        let workers = (0..WORKERS).map(|i| track(format!("synthesis {i}"), TrackKind::Synthesis));
        let others = [track("finish".to_owned(), TrackKind::Finish), track("waiting".to_owned(), TrackKind::Waiting)];
        let begun = plan.spans.iter().filter(|span| span.start < now && span.start < span.end);
        let cut = |span: &Span| {
            if span.end > now { Span { end: now, outcome: Outcome::Running, ..*span } } else { *span }
        };
        let spans: Vec<Span> = begun.map(cut).collect();
        let gaps_of = |device: u32| {
            let mut ends = vec![(Nanos::ZERO, Nanos::ZERO), (now, now)];
            ends.extend(spans.iter().filter(|span| span.track == TrackId(device)).map(|span| (span.start, span.end)));
            ends.sort_unstable();
            let between: Vec<_> = ends.windows(2).map(|pair| (pair[0].1, pair[1].0)).collect();
            between.into_iter().filter(|(start, end)| start < end).map(move |(start, end)| IdleGap {
                track: TrackId(device),
                start,
                end,
                reason: IdleReason::NoSynthesizedPartition { synthesizing: WORKERS as u32, because: None },
            })
        };
        let gaps = (0..DEVICES as u32).flat_map(gaps_of).collect();
        let pool = |(pool, samples)| PoolUse { pool, capacity: capacity(pool), samples };
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() - self.shared.begin.elapsed();
        let timeline = Timeline {
            title: "staged".to_owned(),
            started_unix_ms: Some(started.as_millis() as u64),
            start: Nanos::ZERO,
            end: now,
            tracks: devices.chain(buses).chain(workers).chain(others).collect(),
            circuits: CIRCUITS.iter().zip(0..).map(|(c, id)| (CircuitId(id), c.1.to_owned())).collect(),
            pools: plan.samples(now.as_secs_f64()).into_iter().map(pool).collect(),
            marks: plan.marks.iter().filter(|mark| mark.at <= now).cloned().collect(),
            spans,
            gaps,
            ..Timeline::default()
        };
        timeline.between(now - s(60.0 * minutes), now)
    }

    fn preload(&self, circuit: &str) -> Result<Preloaded, KeyError> {
        Err(KeyError::UnknownCircuit(circuit.to_owned()))
    }

    fn evict(&self, circuit: &str) -> Result<Evicted, KeyError> {
        Err(KeyError::UnknownCircuit(circuit.to_owned()))
    }

    fn stop(&self) {
        self.shared.plan().stopped = true;
        self.shared.changed.notify_all();
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(clock) = clock {
            clock.join().expect("the clock does not panic");
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.stop();
    }
}
