//! Jobs: requests that were accepted and are proved, whatever happens in between.
//!
//! A request becomes a job in this order: its input is identified, it is [checked](Prover::check), it is on disk, the
//! prover [has it](Prover::start), the caller is told. Its end is on disk before anybody is told. So after a crash,
//! whatever a caller was told still holds, and what was accepted and has not ended is started again.
//!
//! * **The same work twice.** Work is named by the caller's `request_id` and a digest of the input. While a job of that
//!   name has not failed, the same name joins it, whoever asks: it keeps its priority and its deadline. After a failure
//!   or a cancellation it is a new job. The same `request_id` with another input is another name.
//! * **Priorities.** The position of a job counts those that have not begun and are more urgent, or as urgent and
//!   accepted before it.
//! * **A disk that fails** refuses new jobs. If the end of a job cannot be brought to disk, its callers get it all the
//!   same, and the end is kept in memory until the disk takes it.
//! * **A clock that is set** makes no job late or old: a deadline is counted from the acceptance by a clock that nobody
//!   sets, except across a boot of the machine, and an ended job is forgotten for its age when it was too old by the
//!   wall clock for an hour of this process.
//! * **Nobody is waited for.** Callers hold a receiver of the newest state and nothing else.

mod clock;
mod ear;
mod error;
mod inner;
mod look;
mod options;
mod record;
mod request;
mod state;
mod watch;

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use cuzk_journal::{Journal, Record};
use cuzk_proto::v1::{ProofProgress, SubmitProofRequest};
use prost::Message;
use tokio::{runtime::Handle, task::spawn_blocking};
use tokio_stream::Stream;

use self::{
    clock::Agreed,
    inner::{Inner, count_refusal, now_ms},
    record::{End, Meta},
    state::Snapshot,
};
pub use self::{
    error::{JobError, OpenError, SubmitError, UnknownJob},
    look::{
        ErrorLook, Histogram, JobLook, JobState, JobsLook, KINDS, KindLook, PRIORITIES, QueueLook, RefusedLook,
        ServiceState, Stage,
    },
    options::{Abandoned, JobsLimits, JobsOptions},
};
use crate::prover::{Prover, Times};

/// How often the clock is looked at for ended jobs that are too old.
const EXPIRE_EVERY: Duration = Duration::from_secs(600);
/// How often the journal is asked whether it takes jobs: while it does, and while it does not.
const PROBE_EVERY: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(1)];

/// The journal of a server, locked and read, before there is anything that proves.
pub struct OpenJournal {
    options: JobsOptions,
    journal: Journal,
    unfinished: Vec<(Record, Meta)>,
}

impl OpenJournal {
    /// Opens the journal, which one process at a time can. It blocks as long as reading the journal takes.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(options: JobsOptions) -> Result<Self, OpenError> {
        let journal = Journal::open(&options.directory, options.journal.clone())?;
        if let Some((path, mode)) = journal.exposed() {
            tracing::warn!(
                "{} has the mode {mode:04o}: others on this machine can read requests, which can contain secrets of \
                 the sealed data; chmod o= closes it",
                path.display()
            );
        }
        let unfinished = journal.unfinished()?.into_iter().map(|record| match Meta::decode(&record.meta[..]) {
            Ok(meta) => Ok((record, meta)),
            Err(cause) => Err(OpenError::Record { job: record.id, cause: cause.to_string() }),
        });
        let unfinished = unfinished.collect::<Result<_, _>>()?;
        Ok(Self { options, journal, unfinished })
    }

    /// Jobs that go on.
    pub fn unfinished(&self) -> usize {
        self.unfinished.len()
    }
}

/// The jobs of a server. Clones are the same jobs.
#[derive(Clone)]
pub struct Jobs {
    inner: Arc<Inner>,
}

/// Who submits: whatever tells clients apart, such as the name in a certificate or the peer's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientName(pub String);

/// A request was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The job, unique for ever.
    pub job: String,
    /// Whether the work was there already.
    pub joined: bool,
    /// Jobs that are served before it; 0 if it is being worked on or is done.
    pub position: u32,
}

/// What waiting came to.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is moved once")]
pub enum Waited {
    /// The job has ended.
    Ended(Ended),
    /// The time is over, the work goes on.
    StillRunning,
    /// The server stops; the work goes on when it is started again.
    Stopping,
}

/// A job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// The job.
    pub job: String,
    /// Name of the circuit.
    pub circuit: String,
    /// How many partitions it has.
    pub partitions: u32,
    /// How it ended.
    pub ending: Ending,
    /// From acceptance to the first synthesis.
    pub queue: Duration,
    /// From acceptance to the end, across restarts.
    pub total: Duration,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With a verified proof.
    Completed {
        /// 192 bytes a partition.
        proof: Vec<u8>,
        /// Backend and name of the device.
        device: String,
        /// Where the time went.
        times: Times,
    },
    /// Without one, and why.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

impl Jobs {
    /// [`OpenJournal::open`] and [`Jobs::resume`].
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(options: JobsOptions, prover: Arc<dyn Prover>) -> Result<Self, OpenError> {
        Self::resume(OpenJournal::open(options)?, prover)
    }

    /// Starts again what is unfinished in a journal, in the order of acceptance. Call it within a tokio runtime; it
    /// blocks as long as looking for the requests takes.
    ///
    /// # Errors
    /// [`OpenError::NoRuntime`].
    pub fn resume(opened: OpenJournal, prover: Arc<dyn Prover>) -> Result<Self, OpenError> {
        let runtime = Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let OpenJournal { options, journal, unfinished } = opened;
        let inner = Arc::new(Inner::new(options, journal, prover, runtime.clone()));
        inner.resume(unfinished);
        runtime.spawn(look_after(Arc::downgrade(&inner)));
        Ok(Self { inner })
    }

    /// Other limits from now on; what is there stays.
    pub fn set_limits(&self, limits: JobsLimits, journal: cuzk_journal::Options) {
        self.inner.state().limits = limits;
        self.inner.journal.set_options(journal);
    }

    /// Accepts a request: checks it, writes it to disk and starts it, in this order; or joins the work that is there.
    /// If the caller leaves before it returns, the request is accepted or not all the same.
    ///
    /// # Errors
    /// [`SubmitError`]: it was not accepted, and nothing is left of it.
    pub async fn submit(&self, request: SubmitProofRequest, client: &ClientName) -> Result<Submitted, SubmitError> {
        let submission = tokio::spawn(self.inner.clone().submit(request, client.clone()));
        let result = submission.await.unwrap_or_else(|error| Err(SubmitError::Crashed(error.to_string())));
        if let Err(error) = &result {
            count_refusal(&mut self.inner.state(), error);
        }
        result
    }

    /// Waits until a job has ended, for at most `timeout` if there is one. A caller that drops this before it returns
    /// has vanished, which [`JobsLimits::abandoned`] is about.
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn wait(&self, job: &str, timeout: Option<Duration>) -> Result<Waited, JobError> {
        if let Some(waited) = watch::wait(&self.inner, job, timeout).await {
            return Ok(waited);
        }
        Ok(Waited::Ended(self.ended(job).await?.1))
    }

    /// Cancels a job, and returns whether it had not ended. It is on disk before this returns.
    ///
    /// # Errors
    /// [`JobError`]. If the journal fails, the job is cancelled and the journal does not know yet.
    pub async fn cancel(&self, job: &str) -> Result<bool, JobError> {
        if let Some(saved) = self.inner.conclude(job, Ending::Cancelled) {
            saved.await.unwrap_or(Err(cuzk_journal::Error::Closed))?;
            return Ok(true);
        }
        // It has ended, or is about to.
        match self.wait(job, None).await? {
            Waited::Ended(_) => Ok(false),
            Waited::StillRunning | Waited::Stopping => Err(cuzk_journal::Error::Closed.into()),
        }
    }

    /// News of a job: its present state at once, then each change, until it has ended or the server stops. Who reads
    /// slowly gets the newest state and misses those in between.
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn watch(
        &self,
        job: &str,
    ) -> Result<impl Stream<Item = ProofProgress> + Send + Unpin + 'static + use<>, JobError> {
        let live = {
            let state = self.inner.state();
            let live = state.jobs.get(job);
            live.map(|live| (live.accepted_ms, live.summary.partitions, live.sender.subscribe()))
        };
        let (accepted_ms, partitions, receiver) = match live {
            Some(live) => live,
            None => {
                let (record, ended) = self.ended(job).await?;
                let (_, receiver) = tokio::sync::watch::channel(Snapshot::of(ended.clone()));
                (record.accepted_ms, ended.partitions, receiver)
            }
        };
        Ok(watch::Watch::new(self.inner.clone(), job, accepted_ms, partitions, receiver))
    }

    /// One job.
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn job(&self, job: &str) -> Result<JobLook, JobError> {
        if let Some(look) = self.inner.state().look_of(job) {
            return Ok(look);
        }
        let (inner, id) = (self.inner.clone(), job.to_owned());
        let look = blocking(move || {
            let record = inner.journal.record(&id)?;
            let (meta, end) = inner.stored(&record)?;
            Ok(look_of(record, &meta, end))
        });
        unknown(job, look.await)
    }

    /// Jobs that are known, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`JobError`].
    pub async fn list(&self, limit: usize) -> Result<Vec<JobLook>, JobError> {
        let inner = self.inner.clone();
        let looks = blocking(move || {
            let mut looks = Vec::new();
            for record in inner.journal.list(limit)? {
                let live = inner.state().look_of(&record.id);
                looks.push(match live {
                    Some(look) => look,
                    None => {
                        let (meta, end) = inner.stored(&record)?;
                        look_of(record, &meta, end)
                    }
                });
            }
            Ok(looks)
        });
        Ok(looks.await?)
    }

    /// Jobs that have not ended: those under way, then those that wait in the order in which they are served; at most
    /// `limit`. Reads no disk.
    pub fn unfinished(&self, limit: usize) -> Vec<JobLook> {
        self.inner.state().unfinished(limit)
    }

    /// All jobs at one moment. Reads no disk.
    pub fn look(&self) -> JobsLook {
        let usage = self.inner.journal.usage();
        self.inner.state().look(usage, Instant::now())
    }

    /// Takes no new work any more, waits for what is there, for at most `grace`, and stops the prover. What has not
    /// ended then stays in the journal and goes on after the next start.
    pub async fn drain(&self, grace: Duration) {
        self.inner.state().draining = true;
        let mut open = self.inner.open.subscribe();
        tracing::info!(jobs = *open.borrow(), grace_s = grace.as_secs_f64(), "draining");
        // The sender lives as long as this.
        let over = tokio::time::timeout(grace, open.wait_for(|open| *open == 0)).await.is_err();
        if over {
            tracing::warn!(
                jobs = *self.inner.open.borrow(),
                "the grace period is over; these jobs go on after a restart"
            );
        }
        let inner = self.inner.clone();
        let stopped = blocking(move || {
            inner.prover.stop();
            // What ended until now is before this in the journal's order, and nothing is old at that time.
            inner.journal.expire(0)
        });
        if let Err(error) = stopped.await {
            tracing::error!(%error, "the journal could not be brought to disk");
        }
    }

    /// A job that has ended and is not in memory.
    async fn ended(&self, job: &str) -> Result<(Record, Ended), JobError> {
        let (inner, id) = (self.inner.clone(), job.to_owned());
        let found = blocking(move || {
            let record = inner.journal.record(&id)?;
            let (meta, end) = inner.stored(&record)?;
            Ok((record, meta, end))
        });
        match unknown(job, found.await)? {
            (record, meta, Some(end)) => {
                let ended = ended_of(&record, &meta, end);
                Ok((record, ended))
            }
            // Its submission is under way, and nobody knows its id yet.
            (_, _, None) => Err(UnknownJob(job.to_owned()).into()),
        }
    }
}

/// Looks after the journal as long as there are jobs: that old ones are forgotten, and that it says so in time, and is
/// told, when it takes none any more or takes them again.
async fn look_after(jobs: Weak<Inner>) {
    let mut noted = Instant::now();
    let mut agreed = Agreed::default();
    agreed.note(noted, now_ms());
    let mut refusing = None;
    loop {
        let [seldom, often] = PROBE_EVERY;
        tokio::time::sleep(if refusing.is_some() { often } else { seldom }).await;
        let Some(jobs) = jobs.upgrade() else { return };
        let mut expire_at = None;
        if noted.elapsed() >= EXPIRE_EVERY {
            noted = Instant::now();
            expire_at = agreed.note(noted, now_ms());
        }
        let looked = spawn_blocking(move || {
            jobs.journal.probe();
            let expired = expire_at.map_or(Ok(()), |at_ms| jobs.journal.expire(at_ms));
            (jobs.journal.usage().refusing, expired)
        });
        // A panic in there was told by its own hook.
        let Ok((now, expired)) = looked.await else { continue };
        if let Err(error) = expired {
            tracing::warn!(%error, "old jobs stay in the journal");
        }
        match (refusing, now) {
            (None, Some(reason)) => tracing::error!(?reason, "the journal takes no new jobs"),
            (Some(_), None) => tracing::info!("the journal takes new jobs again"),
            _ => {}
        }
        refusing = now;
    }
}

/// Runs what waits for the disk.
async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, cuzk_journal::Error> + Send + 'static,
) -> Result<T, cuzk_journal::Error> {
    spawn_blocking(run).await.unwrap_or(Err(cuzk_journal::Error::Closed))
}

fn unknown<T>(job: &str, result: Result<T, cuzk_journal::Error>) -> Result<T, JobError> {
    result.map_err(|error| match error {
        cuzk_journal::Error::UnknownJob(_) => UnknownJob(job.to_owned()).into(),
        error => error.into(),
    })
}

fn ended_of(record: &Record, meta: &Meta, end: End) -> Ended {
    let (summary, queue, total) = (meta.summary(), end.queue(), end.total());
    let (circuit, partitions) = (summary.circuit, summary.partitions);
    Ended { job: record.id.clone(), circuit, partitions, ending: end.ending(), queue, total }
}

/// A job that is not in memory.
fn look_of(record: Record, meta: &Meta, end: Option<End>) -> JobLook {
    let summary = meta.summary();
    let mut look = JobLook {
        job: record.id,
        request_id: record.request_id,
        client: meta.client.clone(),
        kind: meta.proof_kind(),
        circuit: summary.circuit,
        priority: meta.urgency(),
        state: JobState::Queued,
        partitions: summary.partitions,
        partitions_done: 0,
        news: String::new(),
        position: 0,
        accepted_at_ms: record.accepted_ms,
        ended_at_ms: record.state.ended_ms(),
        times: None,
        device: String::new(),
        error: String::new(),
        attempts: record.attempts,
    };
    let Some(ending) = end.map(End::ending) else { return look };
    look.state = ending.state();
    match ending {
        Ending::Completed { device, times, .. } => {
            look.partitions_done = look.partitions;
            look.device = device;
            look.times = Some(times);
        }
        Ending::Failed(error) => look.error = error,
        Ending::Cancelled => {}
    }
    look
}
