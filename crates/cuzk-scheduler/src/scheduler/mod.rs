//! The state machine: its state, and the one place where every trigger is listed.

mod abort;
mod admit;
mod audit;
mod dispatch;
mod faults;
mod order;
mod status;

pub use audit::AuditError;
pub use status::Counts;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Action, CircuitId, CircuitProfile, Config, ConfigError, DeviceId, Event, EventError, FailureCause, JobId,
    JobRequest, MemoryBudget, PartitionId, PermitScope, Pool, Priority, Refusal, Resources, Stage, Ticket, Time,
    Workers,
    autotune::{self, Choice, Measurements},
    device::{Device, Health},
    job::{Ending, Job, Partition, Rank},
    reason::Blocked,
    residency::{Access, Demand, Residency},
};

#[derive(Debug)]
struct Circuit {
    profile: CircuitProfile,
    measured: Measurements,
    /// The most host memory that a synthesis has taken, if somebody has measured it.
    synthesis_peak: Option<u64>,
}

impl Circuit {
    /// Goes by what was measured. No less is reserved than the finished witness needs.
    fn apply_peak(&mut self) {
        if let Some(peak) = self.synthesis_peak {
            let partition = &mut self.profile.partition;
            partition.synthesis.host = peak.saturating_add(peak / 16).max(partition.synthesized.host);
        }
    }
}

/// The decisions of a proving engine. See the crate's documentation.
#[derive(Debug)]
pub struct Scheduler {
    config: Config,
    resources: Resources,
    budget: MemoryBudget,
    circuits: BTreeMap<CircuitId, Circuit>,
    jobs: BTreeMap<JobId, Job>,
    /// The jobs in their strict order.
    order: BTreeMap<(Priority, u64), JobId>,
    /// Witnesses that wait for a place in the queue.
    synthesized: BTreeMap<Rank, PartitionId>,
    /// The device queue.
    queue: BTreeMap<Rank, PartitionId>,
    devices: Vec<Device>,
    residency: Residency,
    /// Jobs accepted so far.
    arrivals: u64,
    /// Witnesses made so far.
    witnesses: u64,
    /// Permits held.
    permits: usize,
    /// Places of the queue that are taken: by what lies in it or is being sent.
    places: usize,
    /// How many of them are taken by CRITICAL partitions.
    critical_places: usize,
    /// Partitions in synthesis.
    synthesizing: usize,
    choice: Choice,
    /// The circuit that was admitted last.
    current_circuit: Option<CircuitId>,
    /// What kept the last round from admitting more.
    admission: Option<Blocked>,
    preloads: Vec<CircuitId>,
    /// Partitions that ran out of host memory: each is repeated with nothing beside it.
    alone_on_host: BTreeSet<PartitionId>,
    /// Whether some job may have become impossible.
    recheck: bool,
    shutting_down: bool,
    shut_down: bool,
    now: Time,
}

impl Scheduler {
    /// A scheduler for an empty machine.
    ///
    /// # Errors
    /// [`ConfigError`] if nothing could ever run.
    pub fn new(config: Config, resources: Resources) -> Result<Self, ConfigError> {
        config.validate(&resources)?;
        let devices = resources.device_ids().zip(&resources.devices).map(|(id, r)| Device::new(id, *r)).collect();
        let choice = Choice::given(config.partition_workers);
        Ok(Self {
            budget: MemoryBudget::new(resources.pools()),
            circuits: BTreeMap::new(),
            jobs: BTreeMap::new(),
            order: BTreeMap::new(),
            synthesized: BTreeMap::new(),
            queue: BTreeMap::new(),
            devices,
            residency: Residency::new(config.eviction_min_idle),
            arrivals: 0,
            witnesses: 0,
            permits: 0,
            places: 0,
            critical_places: 0,
            synthesizing: 0,
            choice,
            current_circuit: None,
            admission: None,
            preloads: Vec::new(),
            alone_on_host: BTreeSet::new(),
            recheck: false,
            shutting_down: false,
            shut_down: false,
            now: Time::ZERO,
            config,
            resources,
        })
    }

    /// Takes an event in and says what to do now, in this order. The same events at the same times always give the same
    /// actions.
    ///
    /// # Errors
    /// [`EventError`] if the event does not fit; nothing has changed then.
    pub fn apply(&mut self, now: Time, event: Event) -> Result<Vec<Action>, EventError> {
        let now = now.max(self.now);
        let mut out = Vec::new();
        self.handle(now, event, &mut out)?;
        self.now = now;
        self.settle(now, &mut out);
        Ok(out)
    }

    /// Every trigger. What an event changes by itself happens here; what becomes possible by it, in
    /// [`settle`](Self::settle).
    fn handle(&mut self, now: Time, event: Event, out: &mut Vec<Action>) -> Result<(), EventError> {
        match event {
            Event::CircuitKnown { circuit, profile } => self.learn(circuit, profile),
            Event::JobSubmitted(request) => self.submit(request, out)?,
            Event::Cancelled { job } => {
                self.known_job(job)?;
                self.end_job(now, job, Ending::Cancelled, out);
            }

            Event::WitnessReady { ticket } => {
                self.expect(ticket, "a witness", |s| s == Stage::Synthesizing)?;
                self.witness_ready(ticket.partition);
            }
            Event::SendDone { ticket } => {
                self.expect(ticket, "a completed send", |s| s == Stage::Sending)?;
                self.sent(ticket.partition);
            }
            Event::DevicePrepared { ticket } => {
                self.expect(ticket, "a completed preparation", |s| matches!(s, Stage::Preparing(_)))?;
                self.prepared(ticket.partition);
            }
            Event::StartReturned { ticket } => {
                self.expect(ticket, "the end of its kernels", |s| matches!(s, Stage::Running(_)))?;
                self.computed(now, ticket, out);
            }
            Event::FinishDone { ticket } => {
                self.expect(ticket, "a finished proof", |s| matches!(s, Stage::Finishing(_)))?;
                self.partition_over(now, ticket.partition, Stage::Done, out);
            }
            Event::Failed { ticket, fault } => {
                let unfit = |s| matches!(s, Stage::Pending | Stage::AwaitingKey(_));
                if self.live(ticket)?.aborting {
                    self.partition_over(now, ticket.partition, Stage::Dropped, out);
                } else {
                    self.expect(ticket, "a failure", |s| !unfit(s))?;
                    self.attempt_failed(now, ticket.partition, fault, out);
                }
            }
            Event::Stopped { ticket } => {
                let partition = self.live(ticket)?;
                if !partition.aborting {
                    return Err(EventError::UnexpectedStage { ticket, stage: partition.stage, event: "a stop" });
                }
                self.partition_over(now, ticket.partition, Stage::Dropped, out);
            }

            Event::KeyLoaded { circuit, pool } => {
                if !self.residency.loaded(now, circuit, pool) {
                    return Err(EventError::UnexpectedKey { circuit, pool, event: "a completed load" });
                }
            }
            Event::KeyLoadFailed { circuit, pool, cause } => {
                let failed = self.residency.load_failed(circuit, pool);
                let unexpected = EventError::UnexpectedKey { circuit, pool, event: "a failed load" };
                self.key_load_failed(now, circuit, pool, failed.ok_or(unexpected)?, cause, out);
            }
            Event::KeyEvicted { circuit, pool } => {
                if !self.residency.evicted(circuit, pool) {
                    return Err(EventError::UnexpectedKey { circuit, pool, event: "an eviction" });
                }
            }
            Event::PreloadRequested { circuit } => {
                self.known_circuit(circuit)?;
                if !self.preloads.contains(&circuit) {
                    self.preloads.push(circuit);
                }
            }
            Event::EvictRequested { circuit } => {
                self.known_circuit(circuit)?;
                self.preloads.retain(|c| *c != circuit);
                self.residency.evict(circuit, out);
            }

            Event::DeviceLost { device, cause } => {
                self.known_device(device)?;
                self.device_lost(now, device, cause, out);
            }
            Event::DeviceSelfTest { device, passed } => self.self_tested(now, device, passed, out)?,

            Event::Measured { circuit, stage, took } => {
                let known = self.circuits.get_mut(&circuit).ok_or(EventError::UnknownCircuit { circuit })?;
                known.measured.note(stage, took);
            }
            Event::SynthesisMeasured { circuit, bytes } => {
                let known = self.circuits.get_mut(&circuit).ok_or(EventError::UnknownCircuit { circuit })?;
                if known.synthesis_peak.is_none_or(|peak| peak < bytes) {
                    known.synthesis_peak = Some(bytes);
                    known.apply_peak();
                    self.recheck = true;
                }
            }
            Event::MemoryMeasured { pool, bytes } => {
                if !self.budget.measured(pool, bytes) {
                    return Err(EventError::UnknownPool { pool });
                }
            }
            Event::Tick => {}
            Event::Shutdown { cancel } => {
                self.shutting_down = true;
                if cancel {
                    for job in self.jobs.keys().copied().collect::<Vec<_>>() {
                        self.end_job(now, job, Ending::Cancelled, out);
                    }
                }
            }
        }
        Ok(())
    }

    /// Everything that can go on, goes on: from the devices backwards, so that what is nearly done frees its place
    /// first.
    fn settle(&mut self, now: Time, out: &mut Vec<Action>) {
        self.residency.begin();
        self.expire(now, out);
        self.begin_self_tests(now, out);
        self.fail_impossible(now, out);
        self.retune(out);
        self.fill_devices(now, out);
        self.send(out);
        self.admit(now, out);
        self.preload(now, out);
        if self.shutting_down && !self.shut_down && self.jobs.is_empty() {
            self.shut_down = true;
            out.push(Action::ShutDown);
        }
    }

    fn learn(&mut self, circuit: CircuitId, profile: CircuitProfile) {
        self.recheck = true;
        match self.circuits.get_mut(&circuit) {
            Some(known) => {
                known.profile = profile;
                known.apply_peak();
            }
            None => {
                let measured = Measurements::start(profile.expected);
                self.circuits.insert(circuit, Circuit { profile, measured, synthesis_peak: None });
            }
        }
    }

    fn submit(&mut self, request: JobRequest, out: &mut Vec<Action>) -> Result<(), EventError> {
        let job = request.job;
        let circuit = self.known_circuit(request.circuit)?;
        if self.jobs.contains_key(&job) {
            return Err(EventError::DuplicateJob { job });
        }
        if request.partitions == 0 {
            return Err(EventError::NoPartitions { job });
        }
        let refusal = if self.shutting_down {
            Some(Refusal::ShuttingDown)
        } else {
            self.refusal(&circuit.profile, request.priority, |_| true)
        };
        if let Some(refusal) = refusal {
            out.push(Action::RefuseJob { job, refusal });
            return Ok(());
        }
        self.residency.saw(request.circuit, request.priority);
        self.order.insert((request.priority, self.arrivals), job);
        self.jobs.insert(job, Job::new(request, self.arrivals));
        self.arrivals += 1;
        Ok(())
    }

    /// Why an empty machine could not prove one partition, if it could not: on no device that `allowed` names.
    fn refusal(
        &self,
        profile: &CircuitProfile,
        priority: Priority,
        allowed: impl Fn(DeviceId) -> bool,
    ) -> Option<Refusal> {
        let usable = |pool| {
            let leave = self.config.critical_reserve.leave(pool, priority);
            self.resources.capacity(pool).saturating_sub(leave)
        };
        let shortage = |pool| profile.shortage(pool, usable(pool));
        let mut shortages: Vec<_> = [Pool::Host, Pool::Pinned].into_iter().filter_map(shortage).collect();
        let mut at_devices = Vec::new();
        let mut placeable = false;
        for device in self.devices.iter().filter(|d| !d.is_retired() && allowed(d.id)) {
            match shortage(device.pool()) {
                Some(s) => at_devices.push(s),
                None => placeable = true,
            }
        }
        if !placeable {
            if at_devices.is_empty() {
                return Some(Refusal::NoDevice);
            }
            shortages.extend(at_devices);
        }
        (!shortages.is_empty()).then_some(Refusal::TooLarge { shortages })
    }

    /// Jobs whose time is over.
    fn expire(&mut self, now: Time, out: &mut Vec<Action>) {
        let late = |j: &&Job| j.ending.is_none() && j.request.deadline.is_some_and(|d| d <= now);
        let late: Vec<_> = self.jobs.values().filter(late).map(|j| (j.request.job, j.request.deadline)).collect();
        for (job, deadline) in late {
            let deadline = deadline.unwrap_or(now);
            self.end_job(now, job, Ending::Failed(FailureCause::Deadline { deadline, now }), out);
        }
    }

    /// The number of workers, for the most demanding of the circuits that have work.
    fn retune(&mut self, out: &mut Vec<Action>) {
        if self.config.partition_workers != Workers::Auto {
            return;
        }
        let healthy = self.devices.iter().filter(|d| d.is_healthy() && !d.resources.last_resort).count().max(1);
        let mut wanted: Vec<_> = self.jobs.values().map(|j| j.request.circuit).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let choose = |circuit| {
            let Circuit { profile, measured, synthesis_peak } = self.circuits.get(&circuit)?;
            let choice = autotune::choose(&self.config, &self.resources, healthy, profile, measured.times());
            Some(Choice { bytes_are_measured: synthesis_peak.is_some(), ..choice })
        };
        let Some(best) = wanted.into_iter().filter_map(choose).max_by_key(|c| c.workers) else { return };
        // One less is within the noise of the measurements, unless memory asks for it.
        let noise = best.workers + 1 == self.choice.workers && best.limit == autotune::Limit::Devices;
        if best.workers == self.choice.workers {
            // For other reasons, perhaps.
            self.choice = best;
        } else if !noise {
            self.choice = best.clone();
            out.push(Action::SetPartitionWorkers { choice: best });
        }
    }

    /// Loads keys that somebody asked for in advance.
    fn preload(&mut self, now: Time, out: &mut Vec<Action>) {
        let mut waiting = Vec::new();
        for circuit in std::mem::take(&mut self.preloads) {
            let mut again = false;
            for (pool, bytes) in self.key_pools(circuit) {
                let leave = self.config.critical_reserve.leave(pool, Priority::Low);
                let demand = Demand { circuit, pool, bytes, leave };
                match self.residency.ensure(now, &self.budget, demand, out) {
                    Access::Ready | Access::Loading => {}
                    Access::Leaving => again = true,
                    Access::Refused(_) if self.residency.is_making_room(pool) => again = true,
                    Access::Refused(cause) => {
                        out.push(Action::PreloadRefused { circuit, cause });
                    }
                }
            }
            if again {
                waiting.push(circuit);
            }
        }
        self.preloads = waiting;
    }

    fn known_circuit(&self, circuit: CircuitId) -> Result<&Circuit, EventError> {
        self.circuits.get(&circuit).ok_or(EventError::UnknownCircuit { circuit })
    }

    fn known_job(&self, job: JobId) -> Result<&Job, EventError> {
        self.jobs.get(&job).ok_or(EventError::UnknownJob { job })
    }

    fn known_device(&self, device: DeviceId) -> Result<&Device, EventError> {
        self.devices.get(usize::from(device.0)).ok_or(EventError::UnknownDevice { device })
    }

    /// The partition of a ticket, if that attempt is under way.
    fn live(&self, ticket: Ticket) -> Result<&Partition, EventError> {
        self.partition(ticket.partition)
            .filter(|p| p.attempt == ticket.attempt && !p.stage.is_over())
            .ok_or(EventError::Stale { ticket })
    }

    /// Checks that an attempt is under way, not told to stop, and where `fits` wants it.
    fn expect(&self, ticket: Ticket, event: &'static str, fits: impl Fn(Stage) -> bool) -> Result<(), EventError> {
        match self.live(ticket)? {
            p if p.aborting => Err(EventError::Stale { ticket }),
            p if !fits(p.stage) => Err(EventError::UnexpectedStage { ticket, stage: p.stage, event }),
            _ => Ok(()),
        }
    }

    fn partition(&self, id: PartitionId) -> Option<&Partition> {
        self.jobs.get(&id.job)?.partitions.get(id.index as usize)
    }

    fn partition_mut(&mut self, id: PartitionId) -> Option<&mut Partition> {
        self.jobs.get_mut(&id.job)?.partitions.get_mut(id.index as usize)
    }

    fn rank(&self, id: PartitionId) -> Option<Rank> {
        Some(self.jobs.get(&id.job)?.rank(id.index))
    }

    fn circuit_of(&self, id: PartitionId) -> Option<CircuitId> {
        Some(self.jobs.get(&id.job)?.request.circuit)
    }

    fn ticket(&self, id: PartitionId) -> Option<Ticket> {
        self.jobs.get(&id.job)?.ticket(id.index)
    }

    fn device_mut(&mut self, id: DeviceId) -> Option<&mut Device> {
        self.devices.get_mut(usize::from(id.0))
    }

    /// Places of the device queue.
    fn queue_capacity(&self) -> usize {
        if self.config.ablation.capacity_scaling {
            self.config.lookahead.max(self.choice.workers)
        } else {
            self.config.lookahead
        }
    }

    fn give_up_permit(&mut self, id: PartitionId) {
        if self.partition_mut(id).is_some_and(|p| std::mem::take(&mut p.permit)) {
            self.permits -= 1;
        }
    }

    fn give_up_place(&mut self, id: PartitionId) {
        let critical = self.rank(id).is_some_and(|r| r.priority == Priority::Critical);
        if self.partition_mut(id).is_some_and(|p| std::mem::take(&mut p.place)) {
            self.places -= 1;
            self.critical_places -= usize::from(critical);
        }
    }

    fn witness_ready(&mut self, id: PartitionId) {
        let ready = self.witnesses;
        let Some(rank) = self.rank(id) else { return };
        let Some(p) = self.partition_mut(id) else { return };
        (p.stage, p.ready) = (Stage::Synthesized, ready);
        let held = p.bytes.held_synthesized();
        p.shrink_host(held);
        self.witnesses += 1;
        self.synthesizing -= 1;
        self.synthesized.insert(rank, id);
        if self.config.permit == PermitScope::Synthesis {
            self.give_up_permit(id);
        }
    }

    fn sent(&mut self, id: PartitionId) {
        let Some(rank) = self.rank(id) else { return };
        if let Some(p) = self.partition_mut(id) {
            p.stage = Stage::Queued;
        }
        self.queue.insert(rank, id);
        if self.config.permit == PermitScope::Send {
            self.give_up_permit(id);
        }
    }
}

impl Health {
    fn next_test(self) -> Option<Time> {
        match self {
            Self::Quarantined { next_test, .. } => next_test,
            _ => None,
        }
    }
}
