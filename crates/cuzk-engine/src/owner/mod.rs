//! The owner of all state: one thread that takes an event, asks the scheduler what to do, and has it done.
//!
//! Nothing here waits for work or touches a device: that happens in calls on other threads, which come back as
//! messages. No lock is held by anybody meanwhile, because there is nothing to lock.

mod attempts;
mod devices;
mod jobs;
mod keys;
mod requests;
mod watch;

use std::{
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use cuzk_curve::Curve;
use cuzk_scheduler::{Action, CircuitId, DeviceId, Event, EventError, JobId, Scheduler, Time};
use cuzk_timeline::Recorder;

use crate::{
    EngineConfig,
    calls::{CallId, CallState, Calls, Lane, Purpose, panic_text},
    device::InUse,
    message::{Message, Outcome},
    pool::{Afterwards, Pool, Task},
    progress::{Progress, ProgressStage, Subscribers},
    replay::DeviceRecord,
    status::Totals,
    telemetry::Telemetry,
};

pub(crate) use devices::DeviceState;
use jobs::JobState;
use keys::CircuitState;
use requests::Requests;

/// Threads that are no device's.
pub(crate) struct Pools {
    pub(crate) synthesis: Pool,
    pub(crate) finish: Pool,
    pub(crate) runtime: Pool,
    pub(crate) callback: Pool,
}

/// Longest time between two looks at the clock.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// All state of an engine.
pub(crate) struct Owner<C: Curve> {
    scheduler: Scheduler,
    epoch: Instant,
    inbox: mpsc::Receiver<Message<C>>,
    /// For calls to come back on.
    outbox: mpsc::Sender<Message<C>>,
    config: Arc<EngineConfig>,
    pools: Pools,
    devices: Vec<DeviceState<C>>,
    in_use: InUse,
    circuits: BTreeMap<CircuitId, CircuitState<C>>,
    jobs: BTreeMap<JobId, JobState<C>>,
    calls: Calls,
    /// Events for the scheduler, in their order.
    due: VecDeque<Event>,
    subscribers: Subscribers,
    requests: Requests,
    totals: Totals,
    telemetry: Option<Telemetry>,
    /// When the last event was applied.
    applied_at: Time,
    /// Since when no permit has been left.
    permits_full_since: Option<Time>,
    /// The devices, for replay bundles.
    records: Vec<DeviceRecord>,
    /// All jobs have ended after a shutdown.
    over: bool,
}

impl<C: Curve> Owner<C> {
    pub(crate) fn new(
        scheduler: Scheduler,
        (outbox, inbox): (mpsc::Sender<Message<C>>, mpsc::Receiver<Message<C>>),
        config: EngineConfig,
        pools: Pools,
        (devices, in_use, records): (Vec<DeviceState<C>>, InUse, Vec<DeviceRecord>),
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        let epoch = Instant::now();
        let names: Vec<_> = records.iter().enumerate().map(|(i, r)| format!("device {i}: {}", r.name)).collect();
        let telemetry = recorder.map(|recorder| Telemetry::new(recorder, epoch, &names));
        if let Some(telemetry) = &telemetry {
            telemetry.capacities(&scheduler);
            telemetry.look(Time::ZERO, &scheduler);
        }
        Self {
            scheduler,
            epoch,
            inbox,
            outbox,
            config: Arc::new(config),
            pools,
            devices,
            in_use,
            circuits: BTreeMap::new(),
            jobs: BTreeMap::new(),
            calls: Calls::default(),
            due: VecDeque::new(),
            subscribers: Subscribers::default(),
            requests: Requests::default(),
            totals: Totals::default(),
            telemetry,
            applied_at: Time::ZERO,
            permits_full_since: None,
            records,
            over: false,
        }
    }

    fn now(&self) -> Time {
        self.epoch.elapsed()
    }

    fn since_epoch(&self, instant: Option<Instant>) -> Time {
        instant.map_or_else(|| self.now(), |i| i.saturating_duration_since(self.epoch))
    }

    /// Until a shutdown is complete. Every trigger is here: a message, or the time of one of three timers.
    pub(crate) fn run(mut self) {
        while !(self.over && self.calls.is_idle()) {
            match self.inbox.recv_timeout(self.until_next_timer()) {
                Ok(message) => self.take(message),
                // This owner holds a sender itself, so there is no other end of the channel to go away.
                Err(mpsc::RecvTimeoutError::Timeout | mpsc::RecvTimeoutError::Disconnected) => {}
            }
            self.settle();
            self.watchdog();
            self.self_tests();
            if self.scheduler.next_wakeup().is_some_and(|t| t <= self.now()) {
                self.due.push_back(Event::Tick);
            }
            self.settle();
            if self.over {
                self.drop_all_keys();
            }
        }
        self.close();
    }

    fn until_next_timer(&self) -> Duration {
        let scheduler = self.scheduler.next_wakeup().map(|t| t.saturating_sub(self.now()));
        let watchdog = self.calls.next_check(self.config.watchdog);
        let self_test = self.next_self_test();
        // A little later rather than a little too early, and again.
        let next = [scheduler, watchdog, self_test].into_iter().flatten().min();
        next.map_or(LONGEST_WAIT, |d| d.saturating_add(Duration::from_micros(100))).min(LONGEST_WAIT)
    }

    fn take(&mut self, message: Message<C>) {
        match message {
            Message::Register { circuit, source, plan } => {
                self.due.push_back(Event::CircuitKnown { circuit, profile: plan.profile.clone() });
                if let Some(telemetry) = &self.telemetry {
                    telemetry.circuit(circuit, &plan.profile.name);
                }
                self.circuits.insert(circuit, CircuitState::new(source, *plan));
            }
            Message::Submit { job, circuit, workload, partitions, options, completer } => {
                self.submit(job, circuit, workload, partitions, options, completer);
            }
            Message::Cancel { job } => self.due.push_back(Event::Cancelled { job }),
            Message::Preload { circuit, completer } => self.preload(circuit, completer),
            Message::Evict { circuit, completer } => self.evict(circuit, completer),
            Message::Subscribe { subscriber } => self.subscribers.add(subscriber),
            Message::Status { reply } => {
                // Who asked may have gone.
                let _gone = reply.send(self.status());
            }
            Message::JobStatus { job, reply } => {
                // As above.
                let _gone = reply.send(self.job_status(job));
            }
            Message::Shutdown { cancel } => self.due.push_back(Event::Shutdown { cancel }),
            Message::Returned { call, outcome } => self.returned(call, outcome),
        }
    }

    /// Tells the scheduler what is due, and does what it says, until nothing is due.
    fn settle(&mut self) {
        while let Some(event) = self.due.pop_front() {
            let submitted = if let Event::JobSubmitted(request) = &event { Some(request.job) } else { None };
            if let Event::KeyEvicted { circuit, pool } = &event {
                self.requests.evicted(*circuit, *pool);
            }
            match (self.apply(event), submitted) {
                (Ok(()), _) => {}
                (Err(error), Some(job)) => self.reject(job, error),
                // News that came too late, or of what somebody named who was wrong.
                (Err(error), None) => tracing::debug!("{error}"),
            }
            self.answer_requests();
        }
    }

    /// Tells the scheduler one thing, and does what it says.
    fn apply(&mut self, event: Event) -> Result<(), EventError> {
        let now = self.now();
        self.applied_at = now;
        let actions = self.scheduler.apply(now, event)?;
        actions.into_iter().for_each(|action| self.perform(action));
        self.look(now);
        Ok(())
    }

    /// Every action.
    fn perform(&mut self, action: Action) {
        match action {
            Action::StartSynthesis { ticket } => self.synthesize(ticket),
            Action::Send { ticket } => self.send(ticket),
            Action::AwaitKey { ticket, device } => self.await_key(ticket, device),
            Action::Prepare { ticket, device } => self.prepare(ticket, device),
            Action::Start { device, batch } => batch.into_iter().for_each(|ticket| self.prove(ticket, device)),
            Action::Finish { ticket } => self.finish(ticket),
            Action::AbortPartition { ticket } => self.abort(ticket),
            Action::Abandon { ticket, device } => self.abandon(ticket, device),
            Action::LoadKey { circuit, pool } => self.load_key(circuit, pool),
            Action::EvictKey { circuit, pool } => self.evict_key(circuit, pool),
            Action::PreloadRefused { circuit, cause } => {
                tracing::warn!("the key of {} is not preloaded: {cause}", self.circuit_name(circuit));
                self.requests.refused(circuit, &cause);
            }
            Action::EvictRefused { circuit, pool, users } => {
                let circuit = self.circuit_name(circuit);
                tracing::info!("the key of {circuit} stays in {pool} memory: {users} partitions use it");
            }
            Action::RunSelfTest { device } => self.fence(device),
            Action::RetireDevice { device, self_tests } => {
                tracing::error!("{device} is retired: it has failed {self_tests} self-tests");
            }
            Action::SetPartitionWorkers { choice } => tracing::info!("{choice}"),
            Action::RefuseJob { job, refusal } => self.refuse_job(job, refusal),
            Action::CompleteJob { job } => self.complete_job(job),
            Action::FailJob { job, cause } => self.fail_job(job, cause),
            Action::CancelledJob { job } => self.cancelled_job(job),
            Action::ShutDown => self.over = true,
        }
    }

    /// Hands work to a thread. A panic in it becomes its outcome. What comes of work that hung and was written off is
    /// dropped right there.
    fn call(
        &mut self,
        lane: Lane,
        device: Option<DeviceId>,
        purpose: Purpose,
        work: impl FnOnce() -> Outcome<C> + Send + 'static,
    ) -> CallId {
        self.call_with_progress(lane, device, purpose, |_| work())
    }

    /// As [`call`](Self::call), for work that gives signs of life.
    fn call_with_progress(
        &mut self,
        lane: Lane,
        device: Option<DeviceId>,
        purpose: Purpose,
        work: impl FnOnce(&CallState) -> Outcome<C> + Send + 'static,
    ) -> CallId {
        let generation = device.and_then(|d| self.device(d)).map_or(0, |d| d.generation);
        let (call, state) = self.calls.add(lane, device.map(|d| (d, generation)), purpose);
        let outbox = self.outbox.clone();
        let task: Task = Box::new(move || {
            state.begin();
            let outcome =
                catch_unwind(AssertUnwindSafe(|| work(&state))).unwrap_or_else(|p| Outcome::Panicked(panic_text(&*p)));
            let wanted = state.is_wanted();
            let outcome = if wanted {
                outcome
            } else {
                catch_unwind(AssertUnwindSafe(|| drop(outcome)))
                    .map_or_else(|p| Outcome::Panicked(panic_text(&*p)), |()| Outcome::Nothing)
            };
            // An owner that does not listen any more has nothing that waits for this.
            let _unheard = outbox.send(Message::Returned { call, outcome });
            if wanted { Afterwards::Continue } else { Afterwards::End }
        });
        if let Some(pool) = self.pool(lane) {
            pool.submit(task);
        }
        call
    }

    fn pool(&self, lane: Lane) -> Option<&Pool> {
        match lane {
            Lane::Synthesis => Some(&self.pools.synthesis),
            Lane::Finish => Some(&self.pools.finish),
            Lane::Runtime => Some(&self.pools.runtime),
            Lane::Callback => Some(&self.pools.callback),
            Lane::Preparing(d) => self.device(d).map(|d| &d.preparing),
            Lane::Computing(d) => self.device(d).map(|d| &d.computing),
        }
    }

    /// Frees what came of a call that nobody waits for.
    fn free(&mut self, device: Option<DeviceId>, outcome: Outcome<C>) {
        let on_device =
            matches!(&outcome, Outcome::Prepared(Ok(_), _) | Outcome::Proved(Ok(_), _) | Outcome::Key(Ok(_)));
        if let Some(device) = device.filter(|_| on_device) {
            self.call(Lane::Preparing(device), Some(device), Purpose::Free, move || {
                drop(outcome);
                Outcome::Nothing
            });
        }
    }

    fn returned(&mut self, id: CallId, outcome: Outcome<C>) {
        let Some(call) = self.calls.remove(id) else { return };
        if call.is_written_off() {
            return;
        }
        if let Lane::Computing(device) = call.lane {
            let held = call.began().map_or(Duration::ZERO, |began| began.elapsed());
            if let Some(device) = self.device_mut(device) {
                device.busy += held;
            }
        }
        match call.purpose {
            Purpose::Stop(ticket) => {
                self.device_may_have_panicked(&call, &outcome);
                self.stopped(id, ticket);
            }
            Purpose::Synthesis(ticket)
            | Purpose::Prepare(ticket)
            | Purpose::Prove(ticket)
            | Purpose::Finish(ticket) => {
                self.attempt_returned(id, &call, ticket, outcome);
            }
            Purpose::LoadMatrices(circuit) => self.matrices_loaded(circuit, outcome),
            Purpose::LoadKey(circuit) => self.key_loaded(&call, circuit, outcome),
            Purpose::EvictKey(circuit, pool) => {
                self.device_may_have_panicked(&call, &outcome);
                self.key_evicted(circuit, pool);
            }
            Purpose::SelfTest => self.self_tested(&call, outcome),
            Purpose::Free => self.device_may_have_panicked(&call, &outcome),
            Purpose::Errand => {
                if let Outcome::Panicked(text) = outcome {
                    tracing::error!("an errand panicked: {text}");
                }
            }
        }
    }

    fn tell(&mut self, ticket: cuzk_scheduler::Ticket, stage: ProgressStage) {
        let at = self.now();
        self.subscribers.tell(&Progress { ticket, stage, at });
    }

    /// Ends the threads, except for those that hang.
    fn close(self) {
        let device_pools = self.devices.iter().flat_map(|d| [&d.preparing, &d.computing]);
        let Pools { synthesis, finish, runtime, callback } = &self.pools;
        let pools = [synthesis, finish, runtime, callback].into_iter().chain(device_pools);
        let hanging: usize = pools.map(|p| p.close(self.config.watchdog)).sum();
        if hanging > 0 {
            tracing::error!("{hanging} threads hang and are left behind");
        }
    }
}
