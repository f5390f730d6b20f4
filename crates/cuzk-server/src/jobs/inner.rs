//! From a request to a job to its end.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use cuzk_journal::{Journal, NewJob, Record};
use cuzk_proto::v1::SubmitProofRequest;
use prost::Message;
use tokio::{
    runtime::Handle,
    sync::{oneshot, watch},
    task::{JoinError, spawn_blocking},
};

use super::{
    ClientName, Ended, Ending, JobLook, JobState, JobsOptions, SubmitError, Submitted,
    clock::{self, Moment, SinceBoot},
    ear::Ear,
    record::{End, Meta},
    request::{Kept, Prepared},
    state::{Holder, Live, Name, Snapshot, State},
};
use crate::prover::{Order, Prover, Rejection};

/// Between attempts to bring the end of a job to disk, at first and at last.
const SAVE_AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// What clones of `Jobs` share.
pub(crate) struct Inner {
    pub(crate) options: JobsOptions,
    pub(crate) journal: Journal,
    pub(crate) prover: Arc<dyn Prover>,
    pub(crate) runtime: Handle,
    /// Held for as long as it takes to look and change, never while something is waited for.
    state: Mutex<State>,
    /// Number of jobs that have not ended.
    pub(crate) open: watch::Sender<usize>,
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Inner {
    pub(crate) fn new(options: JobsOptions, journal: Journal, prover: Arc<dyn Prover>, runtime: Handle) -> Self {
        let state = Mutex::new(State::new(options.limits, options.recent));
        Self { options, journal, prover, runtime, state, open: watch::Sender::new(0) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts again what is unfinished. A job whose request is lost fails at once, so that its caller can send it
    /// again.
    pub(crate) fn resume(self: &Arc<Self>, unfinished: Vec<(Record, Meta)>) {
        for (record, meta) in unfinished {
            let request = self.journal.check_request(&record);
            let Record { id: job, request_id, digest, accepted_ms, attempts, .. } = record;
            let live = live(&job, (request_id.clone(), digest), &meta, accepted_ms, attempts);
            let circuit = live.summary.circuit.clone();
            let mut state = self.state();
            state.resumed += 1;
            self.insert(&mut state, live);
            drop(state);
            match request {
                Err(error @ cuzk_journal::Error::RequestLost { .. }) => {
                    tracing::error!(job, request = request_id, circuit, %error, "a job cannot be resumed");
                    // Nobody asks for it yet; the journal's thread goes on with it.
                    drop(self.conclude(&job, Ending::Failed(error.to_string())));
                }
                // What cannot be read now can perhaps when its turn comes.
                Ok(()) | Err(_) => {
                    tracing::info!(job, request = request_id, circuit, attempts, "job resumed");
                    self.start(&job);
                }
            }
        }
    }

    fn insert(&self, state: &mut State, live: Live) {
        state.insert(live);
        self.open.send_replace(state.jobs.len());
    }

    /// Accepts a request or joins the work that is there. To be run to its end, or a job may be on disk and not start.
    pub(crate) async fn submit(
        self: Arc<Self>,
        request: SubmitProofRequest,
        client: ClientName,
    ) -> Result<Submitted, SubmitError> {
        let prepared = spawn_blocking(move || Prepared::new(request)).await.map_err(crashed)??;
        let name = (prepared.request.request_id.clone(), prepared.digest);
        // Whoever has the name now, it is either a job, or a submission that becomes one or not.
        let _ticket = if name.0.is_empty() {
            self.check_draining()?;
            None
        } else {
            match self.take_name(&name).await? {
                Ok(ticket) => Some(ticket),
                Err(submitted) => return Ok(submitted),
            }
        };
        let place = self.take_place(&client)?;
        let jobs = self.clone();
        let accepted = spawn_blocking(move || jobs.accept(&prepared, &client)).await.map_err(crashed)?;
        let (id, meta, accepted_ms) = accepted?;
        let live = live(&id, name, &meta, accepted_ms, 0);
        tracing::info!(
            job = id,
            request = live.name.0,
            client = live.client.0,
            circuit = live.summary.circuit,
            priority = live.priority.as_str_name(),
            "job accepted"
        );
        let mut state = self.state();
        place.leave(&mut state);
        self.insert(&mut state, live);
        drop(state);
        self.start(&id);
        let position = self.state().position(&id);
        Ok(Submitted { job: id, joined: false, position })
    }

    fn check_draining(&self) -> Result<(), SubmitError> {
        if self.state().draining { Err(SubmitError::Draining) } else { Ok(()) }
    }

    /// Takes a name, or finds the job that has it.
    async fn take_name(self: &Arc<Self>, name: &Name) -> Result<Result<Ticket, Submitted>, SubmitError> {
        let ticket = loop {
            let mut other = {
                let mut state = self.state();
                match state.names.get(name) {
                    Some(Holder::Job(job)) => {
                        let job = job.clone();
                        state.joined += 1;
                        let position = state.position(&job);
                        tracing::info!(job, request = name.0, "joined");
                        return Ok(Err(Submitted { job, joined: true, position }));
                    }
                    Some(Holder::Submission(other)) => other.clone(),
                    None if state.draining => return Err(SubmitError::Draining),
                    None => {
                        let (sender, receiver) = watch::channel(());
                        state.names.insert(name.clone(), Holder::Submission(receiver));
                        break Ticket { jobs: self.clone(), name: name.clone(), _sender: sender };
                    }
                }
            };
            // It never sends: this returns when the other submission has come to an end.
            drop(other.changed().await);
        };
        let (jobs, key) = (self.clone(), name.clone());
        let found = spawn_blocking(move || jobs.journal.by_request(&key.0, &key.1)).await.map_err(crashed)?;
        match found.map_err(SubmitError::Journal)? {
            Some(record) if record.state.ended_ms().is_some() => {
                tracing::info!(job = record.id, request = name.0, "joined a job that has ended");
                self.state().joined += 1;
                Ok(Err(Submitted { job: record.id, joined: true, position: 0 }))
            }
            _ => Ok(Ok(ticket)),
        }
    }

    fn take_place(self: &Arc<Self>, client: &ClientName) -> Result<Place, SubmitError> {
        self.state().take_place(client)?;
        Ok(Place { jobs: self.clone(), client: client.clone(), left: false })
    }

    /// Checks a request and brings it to disk.
    fn accept(&self, prepared: &Prepared, client: &ClientName) -> Result<(String, Meta, u64), SubmitError> {
        let request = &prepared.request;
        let summary = self.prover.check(request)?;
        let accepted_ms = now_ms();
        let deadline = (request.deadline_ms != 0).then(|| accepted_ms.saturating_add(request.deadline_ms));
        let meta = Meta::new(request.proof_kind(), prepared.priority(), &summary, &client.0, deadline);
        let job = NewJob {
            request_id: request.request_id.clone(),
            digest: prepared.digest,
            meta: meta.encode_to_vec(),
            accepted_ms,
            result_room: Meta::result_room(summary.partitions),
        };
        match self.journal.accept(job, &prepared.parts()) {
            Ok(id) => Ok((id, meta, accepted_ms)),
            Err(error) => {
                tracing::error!(request = request.request_id, %error, "the journal does not take a job");
                self.state().error("", &error.to_string(), now_ms());
                Err(SubmitError::Journal(error))
            }
        }
    }

    /// Hands a job to the prover.
    fn start(self: &Arc<Self>, job: &str) {
        self.journal.begin(job);
        let order = {
            let mut state = self.state();
            let Some(live) = state.jobs.get_mut(job) else { return };
            live.attempts += 1;
            let source = Kept {
                jobs: Arc::downgrade(self),
                job: job.to_owned(),
                request_id: live.name.0.clone(),
                priority: live.priority,
                digest: live.name.1,
            };
            Order {
                job: job.to_owned(),
                summary: live.summary.clone(),
                priority: live.priority,
                deadline: live.deadline,
                request: Arc::new(source),
            }
        };
        let ear = Arc::new(Ear { jobs: Arc::downgrade(self), job: job.to_owned() });
        let running = self.prover.start(order, ear);
        let unwanted = {
            let mut state = self.state();
            match state.jobs.get_mut(job) {
                Some(live) if !live.claimed => {
                    live.running = Some(running);
                    None
                }
                _ => Some(running),
            }
        };
        // It was cancelled before its handle was known, or has ended, which makes this do nothing.
        if let Some(running) = unwanted {
            running.cancel();
        }
    }

    /// Brings the end of a job to disk, then tells everybody. Returns what the first attempt at that came to, or
    /// nothing if its end was decided before.
    pub(crate) fn conclude(
        self: &Arc<Self>,
        job: &str,
        ending: Ending,
    ) -> Option<oneshot::Receiver<Result<(), cuzk_journal::Error>>> {
        let (ended, running) = self.state().claim(job, ending, Instant::now())?;
        if let (Ending::Cancelled, Some(running)) = (&ended.ending, running) {
            running.cancel();
        }
        let (sender, receiver) = oneshot::channel();
        let jobs = self.clone();
        let outcome = End::new(&ended.ending, ended.queue, ended.total).outcome();
        let at_ms = now_ms();
        self.journal.finish_then(job, outcome, at_ms, move |result| {
            let saved = matches!(result, Ok(()) | Err(cuzk_journal::Error::AlreadyEnded(_)));
            jobs.settle(ended, at_ms, result.as_ref().err().filter(|_| !saved));
            // Whoever asked may have left.
            drop(sender.send(if saved { Ok(()) } else { result }));
        });
        Some(receiver)
    }

    /// The end of a job is on disk, or could not be brought there.
    fn settle(self: &Arc<Self>, ended: Ended, at_ms: u64, error: Option<&cuzk_journal::Error>) {
        let job = ended.job.clone();
        let look = {
            let mut state = self.state();
            let look = state.settle(ended.clone(), at_ms);
            match error {
                None => state.remove(&job),
                Some(error) => state.error(&job, &format!("its end is not on disk yet: {error}"), at_ms),
            }
            self.open.send_replace(state.jobs.len());
            look
        };
        if let Some(look) = look {
            log_end(&look, &ended);
        }
        if let Some(error) = error {
            tracing::error!(job, %error, "the end of a job is not on disk yet");
            let end = End::new(&ended.ending, ended.queue, ended.total);
            self.runtime.spawn(save_later(Arc::downgrade(self), job, end, at_ms));
        }
    }

    /// A job that is not in memory, as the journal has it.
    pub(crate) fn stored(&self, record: &Record) -> Result<(Meta, Option<End>), cuzk_journal::Error> {
        let corrupt = |cause: prost::DecodeError| cuzk_journal::Error::Corrupt {
            path: self.options.directory.clone(),
            cause: format!("job {}: {cause}", record.id),
        };
        let meta = Meta::decode(&record.meta[..]).map_err(corrupt)?;
        let outcome = match record.state.ended_ms() {
            Some(_) => self.journal.outcome(&record.id)?,
            None => None,
        };
        let end = outcome.map(|bytes| End::decode(&bytes[..])).transpose().map_err(corrupt)?;
        Ok((meta, end))
    }
}

/// Tries again to bring the end of a job to disk.
async fn save_later(jobs: Weak<Inner>, job: String, end: End, at_ms: u64) {
    let [mut pause, longest] = SAVE_AGAIN;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
        let Some(jobs) = jobs.upgrade() else { return };
        let (sender, receiver) = oneshot::channel();
        jobs.journal.finish_then(&job, end.outcome(), at_ms, move |result| drop(sender.send(result)));
        if let Ok(Ok(()) | Err(cuzk_journal::Error::AlreadyEnded(_))) = receiver.await {
            tracing::info!(job, "the end of the job is on disk");
            let mut state = jobs.state();
            state.remove(&job);
            jobs.open.send_replace(state.jobs.len());
            return;
        }
    }
}

/// The line of a job that has ended.
fn log_end(look: &JobLook, ended: &Ended) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let times = look.times.unwrap_or_default();
    macro_rules! log {
        ($level:ident, $text:literal) => {
            tracing::$level!(
                job = look.job,
                request = look.request_id,
                client = look.client,
                circuit = look.circuit,
                priority = look.priority.as_str_name(),
                partitions = look.partitions,
                attempts = look.attempts,
                device = look.device,
                queue_ms = ms(ended.queue),
                key_ms = ms(times.key),
                synthesis_ms = ms(times.synthesis),
                device_ms = ms(times.device),
                finish_ms = ms(times.finish),
                total_ms = ms(ended.total),
                error = look.error,
                $text
            )
        };
    }
    match look.state {
        JobState::Completed => log!(info, "proof completed"),
        JobState::Cancelled => log!(info, "proof cancelled"),
        _ => log!(warn, "proof failed"),
    }
}

fn crashed(error: JoinError) -> SubmitError {
    SubmitError::Crashed(error.to_string())
}

fn live(id: &str, name: Name, meta: &Meta, accepted_ms: u64, attempts: u32) -> Live {
    let (now, since_boot) = (Instant::now(), SinceBoot::now());
    let accepted = meta.accepted_since_boot();
    let ago = clock::elapsed(
        &Moment { since_boot: &accepted, wall_ms: accepted_ms },
        &Moment { since_boot: &since_boot, wall_ms: now_ms() },
    );
    let left =
        meta.deadline_at_ms().map(|at| Duration::from_millis(at.saturating_sub(accepted_ms)).saturating_sub(ago));
    Live {
        id: id.to_owned(),
        name,
        client: ClientName(meta.client.clone()),
        kind: meta.proof_kind(),
        summary: meta.summary(),
        priority: meta.urgency(),
        accepted_ms,
        accepted: now.checked_sub(ago).unwrap_or(now),
        // A time that cannot be reached is none.
        deadline: left.and_then(|left| now.checked_add(left)),
        attempts,
        order: 0,
        begun: None,
        done: HashSet::new(),
        running: None,
        claimed: false,
        waiters: 0,
        sender: watch::Sender::new(Snapshot::new()),
    }
}

/// A name that a submission holds. Dropping it gives the name back, unless a job has it now.
struct Ticket {
    jobs: Arc<Inner>,
    name: Name,
    _sender: watch::Sender<()>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.jobs.state();
        if matches!(state.names.get(&self.name), Some(Holder::Submission(_))) {
            state.names.remove(&self.name);
        }
    }
}

/// A submission's place in the queue and of its client's share.
struct Place {
    jobs: Arc<Inner>,
    client: ClientName,
    left: bool,
}

impl Place {
    fn leave(mut self, state: &mut State) {
        self.left = true;
        state.leave_place(&self.client);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.left {
            self.jobs.state().leave_place(&self.client);
        }
    }
}

/// A refusal, counted.
pub(crate) fn count_refusal(state: &mut State, error: &SubmitError) {
    let refused = &mut state.refused;
    match error {
        SubmitError::Rejected(Rejection::Invalid(_)) => refused.invalid += 1,
        SubmitError::Rejected(Rejection::Unable(_)) => refused.unable += 1,
        SubmitError::QueueFull { .. } | SubmitError::ClientFull { .. } => refused.limited += 1,
        SubmitError::Draining => refused.draining += 1,
        SubmitError::Journal(_) | SubmitError::Crashed(_) => refused.journal += 1,
    }
}
