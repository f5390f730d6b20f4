//! The jobs that have not ended, and what is counted of those that have.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_proto::v1::{Priority, ProofKind};
use tokio::sync::watch;

use super::{
    ClientName, Ended, Ending, ErrorLook, Histogram, JobLook, JobState, JobsLimits, JobsLook, KINDS, KindLook,
    PRIORITIES, QueueLook, RefusedLook, ServiceState, Stage, SubmitError,
};
use crate::{
    prover::{News, Running, Step, Summary, Times},
    redact,
};

/// Name of some work: the caller's, and the digest of its input.
pub(crate) type Name = (String, [u8; 32]);

/// A job that has not ended, or whose end is not on disk yet.
pub(crate) struct Live {
    pub(crate) id: String,
    pub(crate) name: Name,
    pub(crate) client: ClientName,
    pub(crate) kind: ProofKind,
    pub(crate) summary: Summary,
    pub(crate) priority: Priority,
    pub(crate) accepted_ms: u64,
    /// The same on the clock that does not jump.
    pub(crate) accepted: Instant,
    pub(crate) deadline: Option<Instant>,
    pub(crate) attempts: u32,
    /// Its place among jobs of its priority.
    pub(crate) order: u64,
    /// When its first synthesis began.
    pub(crate) begun: Option<Instant>,
    pub(crate) done: HashSet<u32>,
    pub(crate) running: Option<Arc<dyn Running>>,
    /// Somebody has decided how it ends, and brings that to disk.
    pub(crate) claimed: bool,
    /// Callers that wait for its end.
    pub(crate) waiters: u32,
    pub(crate) sender: watch::Sender<Snapshot>,
}

impl Live {
    fn key(&self) -> (i32, u64) {
        (-i32::from(self.priority), self.order)
    }

    fn queued(&self) -> bool {
        self.begun.is_none() && !self.claimed
    }
}

/// What is told of a job.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) state: JobState,
    pub(crate) done: u32,
    pub(crate) news: String,
    pub(crate) ended: Option<Arc<Ended>>,
    /// The prover stopped before its end.
    pub(crate) stopped: bool,
}

impl Snapshot {
    pub(crate) fn new() -> Self {
        Self { state: JobState::Queued, done: 0, news: String::new(), ended: None, stopped: false }
    }

    pub(crate) fn of(ended: Ended) -> Self {
        let done = if matches!(ended.ending, Ending::Completed { .. }) { ended.partitions } else { 0 };
        Self { state: ended.ending.state(), done, ended: Some(Arc::new(ended)), ..Self::new() }
    }

    /// Whether nothing follows.
    pub(crate) fn is_last(&self) -> bool {
        self.ended.is_some() || self.stopped
    }
}

/// Who has a name.
pub(crate) enum Holder {
    /// A submission that is not on disk yet; the channel closes when that is decided.
    Submission(watch::Receiver<()>),
    /// A job.
    Job(String),
}

/// The jobs that have not ended, and what is counted of those that have. Only plain data: nothing here waits.
pub(crate) struct State {
    pub(crate) draining: bool,
    pub(crate) limits: JobsLimits,
    pub(crate) jobs: HashMap<String, Live>,
    pub(crate) names: HashMap<Name, Holder>,
    /// Jobs that have not begun, in the order in which they are served.
    queue: BTreeSet<(i32, u64)>,
    /// Jobs and submissions under way.
    clients: HashMap<ClientName, usize>,
    /// Submissions that have a place in the queue and are not jobs yet.
    submissions: usize,
    next_order: u64,
    kinds: BTreeMap<ProofKind, Counts>,
    recent: VecDeque<JobLook>,
    errors: VecDeque<ErrorLook>,
    keep: usize,
    pub(crate) resumed: u64,
    pub(crate) joined: u64,
    pub(crate) refused: RefusedLook,
    pub(crate) waiting: u64,
}

#[derive(Clone, Default)]
struct Counts {
    completed: u64,
    failed: u64,
    cancelled: u64,
    durations: [Histogram; Stage::ALL.len()],
}

impl State {
    pub(crate) fn new(limits: JobsLimits, keep: usize) -> Self {
        Self {
            draining: false,
            limits,
            jobs: HashMap::new(),
            names: HashMap::new(),
            queue: BTreeSet::new(),
            clients: HashMap::new(),
            submissions: 0,
            next_order: 0,
            kinds: BTreeMap::new(),
            recent: VecDeque::new(),
            errors: VecDeque::new(),
            keep,
            resumed: 0,
            joined: 0,
            refused: RefusedLook::default(),
            waiting: 0,
        }
    }

    /// Takes a place in the queue and of the client's share for a submission.
    pub(crate) fn take_place(&mut self, client: &ClientName) -> Result<(), SubmitError> {
        let open = self.clients.get(client).copied().unwrap_or(0);
        self.limits.check(self.queued(), open)?;
        self.submissions += 1;
        self.count_client(client);
        Ok(())
    }

    /// Jobs and submissions that have a place in the queue.
    fn queued(&self) -> usize {
        self.queue.len() + self.submissions
    }

    /// Gives back a submission's place.
    pub(crate) fn leave_place(&mut self, client: &ClientName) {
        self.submissions -= 1;
        self.discount_client(client);
    }

    fn count_client(&mut self, client: &ClientName) {
        *self.clients.entry(client.clone()).or_default() += 1;
    }

    fn discount_client(&mut self, client: &ClientName) {
        if let Some(open) = self.clients.get_mut(client) {
            *open -= 1;
            if *open == 0 {
                self.clients.remove(client);
            }
        }
    }

    /// A new job, behind all of its priority.
    pub(crate) fn insert(&mut self, mut live: Live) {
        live.order = self.next_order;
        self.next_order += 1;
        self.queue.insert(live.key());
        self.count_client(&live.client);
        if !live.name.0.is_empty() {
            self.names.insert(live.name.clone(), Holder::Job(live.id.clone()));
        }
        self.jobs.insert(live.id.clone(), live);
    }

    /// Jobs that are served before this one.
    pub(crate) fn position(&self, job: &str) -> u32 {
        match self.jobs.get(job) {
            Some(live) if live.queued() => self.queue.range(..live.key()).count() as u32,
            _ => 0,
        }
    }

    /// Something happened to a partition.
    pub(crate) fn news(&mut self, job: &str, news: &News, now: Instant, now_ms: u64) {
        let Some(live) = self.jobs.get_mut(job).filter(|live| !live.claimed) else { return };
        if live.begun.is_none() {
            live.begun = Some(now);
            self.queue.remove(&live.key());
        }
        if news.step == Step::Proved {
            live.done.insert(news.partition);
        }
        let done = live.done.len() as u32;
        let text = format!("partition {}: {}", news.partition, news.step);
        live.sender.send_modify(|snapshot| {
            snapshot.state = JobState::Running;
            snapshot.done = done;
            snapshot.news.clone_from(&text);
        });
        if matches!(news.step, Step::Failed(_)) {
            self.error(job, &text, now_ms);
        }
    }

    /// Decides how a job ends, unless that is decided. Returns what was decided and what runs.
    pub(crate) fn claim(
        &mut self,
        job: &str,
        mut ending: Ending,
        now: Instant,
    ) -> Option<(Ended, Option<Arc<dyn Running>>)> {
        if let Ending::Completed { times, .. } = &mut ending {
            let Times { queue, key, synthesis, device, finish } = times;
            for time in [queue, key, synthesis, device, finish] {
                *time = micros(*time);
            }
        }
        let live = self.jobs.get_mut(job).filter(|live| !live.claimed)?;
        live.claimed = true;
        let total = micros(now.saturating_duration_since(live.accepted));
        let queue = live.begun.map_or(total, |begun| micros(begun.saturating_duration_since(live.accepted)));
        let ended = Ended {
            job: job.to_owned(),
            circuit: live.summary.circuit.clone(),
            partitions: live.summary.partitions,
            ending,
            queue,
            total,
        };
        self.queue.remove(&live.key());
        Some((ended, live.running.take()))
    }

    /// A job has ended: counts it and tells everybody. It stays until [`remove`](Self::remove).
    pub(crate) fn settle(&mut self, ended: Ended, now_ms: u64) -> Option<JobLook> {
        let mut look = self.look_of(&ended.job)?;
        let live = self.jobs.get_mut(&ended.job)?;
        look.state = ended.ending.state();
        look.ended_at_ms = Some(now_ms);
        let counts = self.kinds.entry(live.kind).or_default();
        match &ended.ending {
            Ending::Completed { device, times, .. } => {
                counts.completed += 1;
                for (histogram, duration) in counts.durations.iter_mut().zip(durations(&ended, times)) {
                    histogram.add(duration);
                }
                look.times = Some(*times);
                look.device.clone_from(device);
                look.partitions_done = look.partitions;
            }
            Ending::Failed(error) => {
                counts.failed += 1;
                look.error.clone_from(error);
            }
            Ending::Cancelled => counts.cancelled += 1,
        }
        let failed = !matches!(ended.ending, Ending::Completed { .. });
        let id = ended.job.clone();
        live.sender.send_modify(|snapshot| {
            snapshot.state = look.state;
            snapshot.done = look.partitions_done;
            snapshot.ended = Some(Arc::new(ended));
        });
        let client = live.client.clone();
        self.discount_client(&client);
        if failed {
            self.unname(&id);
        }
        if let JobState::Failed = look.state {
            self.error(&id, &look.error, now_ms);
        }
        self.recent.push_front(look.clone());
        self.recent.truncate(self.keep);
        Some(look)
    }

    /// Forgets a job whose end is on disk.
    pub(crate) fn remove(&mut self, job: &str) {
        self.unname(job);
        self.jobs.remove(job);
    }

    fn unname(&mut self, job: &str) {
        if let Some(live) = self.jobs.get(job)
            && matches!(self.names.get(&live.name), Some(Holder::Job(holder)) if holder == job)
        {
            self.names.remove(&live.name);
        }
    }

    /// Something went wrong.
    pub(crate) fn error(&mut self, job: &str, text: &str, now_ms: u64) {
        let text = redact::for_callers(text).into_owned();
        self.errors.push_front(ErrorLook { at_ms: now_ms, job: job.to_owned(), text });
        self.errors.truncate(self.keep);
    }

    /// A job that has not been removed.
    pub(crate) fn look_of(&self, job: &str) -> Option<JobLook> {
        let live = self.jobs.get(job)?;
        let snapshot = live.sender.borrow();
        Some(JobLook {
            job: live.id.clone(),
            request_id: live.name.0.clone(),
            client: live.client.0.clone(),
            kind: live.kind,
            circuit: live.summary.circuit.clone(),
            priority: live.priority,
            state: snapshot.state,
            partitions: live.summary.partitions,
            partitions_done: snapshot.done,
            news: snapshot.news.clone(),
            position: self.position(job),
            accepted_at_ms: live.accepted_ms,
            ended_at_ms: None,
            times: None,
            device: String::new(),
            error: String::new(),
            attempts: live.attempts,
        })
    }

    /// Those that have not ended: under way first, then in the order in which they are served; at most `limit`.
    pub(crate) fn unfinished(&self, limit: usize) -> Vec<JobLook> {
        let mut open: Vec<&Live> = self.jobs.values().filter(|live| !live.claimed).collect();
        open.sort_by_key(|live| (live.queued(), live.key()));
        open.into_iter().take(limit).filter_map(|live| self.look_of(&live.id)).collect()
    }

    pub(crate) fn look(&self, journal: cuzk_journal::Usage, now: Instant) -> JobsLook {
        let open = || self.jobs.values().filter(|live| !live.claimed);
        let kinds = KINDS.map(|kind| {
            let counts = self.kinds.get(&kind).cloned().unwrap_or_default();
            KindLook {
                kind,
                pending: open().filter(|live| live.kind == kind && live.queued()).count() as u32,
                in_progress: open().filter(|live| live.kind == kind && !live.queued()).count() as u32,
                completed: counts.completed,
                failed: counts.failed,
                cancelled: counts.cancelled,
                durations: Stage::ALL.into_iter().zip(counts.durations).collect(),
            }
        });
        let queues = PRIORITIES.map(|priority| {
            let queued = || open().filter(|live| live.priority == priority && live.queued());
            let oldest = queued().map(|live| now.saturating_duration_since(live.accepted)).max();
            QueueLook { priority, pending: queued().count() as u32, oldest: oldest.unwrap_or(Duration::ZERO) }
        });
        JobsLook {
            state: if self.draining { ServiceState::Draining } else { ServiceState::Running },
            kinds: kinds.to_vec(),
            queues: queues.to_vec(),
            recent: self.recent.iter().cloned().collect(),
            errors: self.errors.iter().cloned().collect(),
            journal,
            resumed: self.resumed,
            joined: self.joined,
            refused: self.refused,
            waiting: self.waiting,
            queued: self.queued(),
            max_queued: self.limits.max_queued,
            retained: self.jobs.len() + self.names.len() + self.queue.len() + self.clients.len() + self.submissions,
        }
    }
}

/// As exact as the journal keeps it, so that the same is told now and later.
fn micros(duration: Duration) -> Duration {
    Duration::from_micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// In the order of [`Stage::ALL`].
fn durations(ended: &Ended, times: &Times) -> [Duration; Stage::ALL.len()] {
    [ended.queue, times.key, times.synthesis, times.device, times.finish, ended.total]
}
