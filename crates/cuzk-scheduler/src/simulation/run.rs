//! The event loop.

use std::collections::{BTreeMap, VecDeque};

use super::{
    CircuitModel, DeviceModel, DeviceReport, MemoryPoint, Plan, PlanError, Report, Span, SpanKind, StreamReport,
    contention::{Demand, Load, Supply},
};
use crate::{
    Action, CircuitId, DeviceId, Event, EventError, FailureCause, IdleReason, JobId, JobRequest, MeasuredStage, Pool,
    Refusal, Scheduler, Ticket, Time, Workers, autotune::Choice,
};

/// Why a simulation ended early.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The plan cannot be simulated.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The scheduler and the simulated engine contradict each other: a mistake in this crate.
    #[error(transparent)]
    Event(#[from] EventError),
    /// Jobs are left, and nothing will happen any more.
    #[error("{jobs} jobs are left at {seconds:.1} s and nothing goes on: {reason}")]
    Stuck {
        /// How many.
        jobs: usize,
        /// When.
        seconds: f64,
        /// Why the first device is idle.
        reason: String,
    },
}

/// Something that takes time.
#[derive(Debug)]
struct Activity {
    /// Seconds left at full speed.
    left: f64,
    /// Seconds at full speed from beginning to end.
    full: f64,
    demand: Demand,
    start: f64,
    what: What,
}

#[derive(Debug)]
enum What {
    Stage { ticket: Ticket, kind: SpanKind, device: Option<DeviceId> },
    KeyLoad { circuit: CircuitId, pool: Pool },
    SelfTest { device: DeviceId },
}

/// Jobs of a stream that have arrived and ended.
#[derive(Debug, Default)]
struct Progress {
    arrived: u32,
    ended: u32,
    last_arrival: Option<f64>,
    last_end: f64,
    latencies: Vec<f64>,
}

struct Simulation<'a> {
    plan: &'a Plan,
    models: Vec<&'a DeviceModel>,
    scheduler: Scheduler,
    now: f64,
    activities: Vec<Activity>,
    events: VecDeque<Event>,
    /// Stream and arrival of the jobs under way.
    jobs: BTreeMap<JobId, (usize, f64)>,
    progress: Vec<Progress>,
    next_job: u64,
    devices: Vec<DeviceReport>,
    memory: Vec<MemoryPoint>,
    spans: Vec<Span>,
    failed: Vec<(JobId, FailureCause)>,
    refused: Vec<(JobId, Refusal)>,
    choices: Vec<(f64, Choice)>,
}

/// Runs a plan to its end.
///
/// # Errors
/// [`SimulationError`] if the plan is impossible, or gets stuck.
pub fn simulate(plan: &Plan) -> Result<Report, SimulationError> {
    plan.validate()?;
    let scheduler = Scheduler::new(plan.config.clone(), plan.resources()).map_err(PlanError::from)?;
    let models: Vec<_> = plan.devices().collect();
    let report = |d: &&DeviceModel| DeviceReport { name: d.name.clone(), busy: 0.0, gaps: BTreeMap::new() };
    let mut simulation = Simulation {
        plan,
        scheduler,
        now: 0.0,
        activities: Vec::new(),
        events: VecDeque::new(),
        jobs: BTreeMap::new(),
        progress: plan.streams.iter().map(|_| Progress::default()).collect(),
        next_job: 0,
        devices: models.iter().map(report).collect(),
        models,
        memory: Vec::new(),
        spans: Vec::new(),
        failed: Vec::new(),
        refused: Vec::new(),
        choices: Vec::new(),
    };
    if plan.config.partition_workers != Workers::Auto {
        simulation.choices.push((0.0, simulation.scheduler.choice().clone()));
    }
    simulation.introduce()?;
    simulation.run()?;
    Ok(simulation.finish())
}

impl Simulation<'_> {
    /// Circuits, and keys that are loaded before the clock starts.
    fn introduce(&mut self) -> Result<(), SimulationError> {
        for (index, model) in self.plan.circuits.iter().enumerate() {
            let circuit = CircuitId(index as u32);
            self.events.push_back(Event::CircuitKnown { circuit, profile: model.profile.clone() });
            if self.plan.preload {
                self.events.push_back(Event::PreloadRequested { circuit });
            }
        }
        self.handle_events()?;
        let loaded: Vec<_> = self.activities.drain(..).collect();
        self.events.extend(loaded.into_iter().filter_map(|a| match a.what {
            What::KeyLoad { circuit, pool } => Some(Event::KeyLoaded { circuit, pool }),
            _ => None,
        }));
        self.handle_events()
    }

    fn run(&mut self) -> Result<(), SimulationError> {
        loop {
            self.arrive();
            self.handle_events()?;
            self.note_memory();
            let load = self.load();
            let ends = self.activities.iter().map(|a| self.now + a.left / load.speed(a.demand));
            let wakeup = self.scheduler.next_wakeup().map(|t| t.as_secs_f64()).filter(|_| !self.jobs.is_empty());
            let Some(next) = ends.chain(self.next_arrival()).chain(wakeup).min_by(f64::total_cmp) else {
                return match self.jobs.len() {
                    0 => Ok(()),
                    jobs => {
                        let reason = self.scheduler.idle_reason(DeviceId(0)).map_or(String::new(), |r| r.to_string());
                        Err(SimulationError::Stuck { jobs, seconds: self.now, reason })
                    }
                };
            };
            self.advance(next.max(self.now), load);
            if wakeup.is_some_and(|w| w <= self.now) {
                self.events.push_back(Event::Tick);
            }
        }
    }

    fn time(&self) -> Time {
        Time::from_secs_f64(self.now)
    }

    fn load(&self) -> Load {
        let machine = &self.plan.machine;
        let supply = Supply { cores: machine.cores as f64, bandwidth: machine.memory_bandwidth as f64 };
        Load::of(supply, self.activities.iter().map(|a| a.demand))
    }

    /// When the next job arrives by itself.
    fn next_arrival(&self) -> Option<f64> {
        let streams = self.plan.streams.iter().zip(&self.progress);
        streams.filter_map(|(s, p)| arrival(s, p)).min_by(f64::total_cmp)
    }

    /// Jobs whose time has come.
    fn arrive(&mut self) {
        for (index, stream) in self.plan.streams.iter().enumerate() {
            let circuit = self.plan.circuits.iter().position(|c| c.profile.name == stream.circuit);
            let Some(circuit) = circuit.map(|i| CircuitId(i as u32)) else { continue };
            while arrival(stream, &self.progress[index]).is_some_and(|t| t <= self.now) {
                let job = JobId(self.next_job);
                self.next_job += 1;
                self.jobs.insert(job, (index, self.now));
                let progress = &mut self.progress[index];
                progress.arrived += 1;
                progress.last_arrival = Some(self.now);
                let (partitions, priority) = (stream.partitions, stream.priority);
                let request = JobRequest { job, circuit, partitions, priority, deadline: None };
                self.events.push_back(Event::JobSubmitted(request));
            }
        }
    }

    fn handle_events(&mut self) -> Result<(), SimulationError> {
        while let Some(event) = self.events.pop_front() {
            for action in self.scheduler.apply(self.time(), event)? {
                self.perform(action);
            }
        }
        Ok(())
    }

    fn circuit(&self, ticket: Ticket) -> Option<&CircuitModel> {
        let (stream, _) = self.jobs.get(&ticket.partition.job)?;
        let name = &self.plan.streams.get(*stream)?.circuit;
        self.plan.circuits.iter().find(|c| c.profile.name == *name)
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::StartSynthesis { ticket } => self.host_stage(ticket, SpanKind::Synthesis),
            Action::Send { ticket } => self.events.push_back(Event::SendDone { ticket }),
            Action::Prepare { ticket, device } => self.device_stage(ticket, SpanKind::Prepare, device, 1),
            Action::Start { device, batch } => {
                for ticket in &batch {
                    self.device_stage(*ticket, SpanKind::Compute, device, batch.len());
                }
            }
            Action::Finish { ticket } => self.host_stage(ticket, SpanKind::Finish),
            Action::AbortPartition { ticket } => {
                self.drop_stages(ticket);
                self.events.push_back(Event::Stopped { ticket });
            }
            Action::Abandon { ticket, .. } => self.drop_stages(ticket),
            Action::LoadKey { circuit, pool } => {
                let bytes = self.plan.circuits.get(circuit.0 as usize).and_then(|c| c.profile.key_in(pool));
                let seconds = bytes.unwrap_or(0) as f64 / self.plan.machine.disk_bandwidth as f64;
                let demand = Demand { cores: 0.0, traffic: 0.0, sensitivity: 0.0 };
                self.begin(seconds, demand, What::KeyLoad { circuit, pool });
            }
            Action::EvictKey { circuit, pool } => self.events.push_back(Event::KeyEvicted { circuit, pool }),
            Action::RunSelfTest { device } => {
                let demand = Demand { cores: 0.0, traffic: 0.0, sensitivity: 0.0 };
                self.begin(1.0, demand, What::SelfTest { device });
            }
            Action::CompleteJob { job } => {
                if let Some((stream, arrived)) = self.job_ended(job) {
                    self.progress[stream].latencies.push(self.now - arrived);
                }
            }
            Action::FailJob { job, cause } => {
                self.job_ended(job);
                self.failed.push((job, cause));
            }
            Action::RefuseJob { job, refusal } => {
                self.job_ended(job);
                self.refused.push((job, refusal));
            }
            Action::CancelledJob { job } => {
                self.job_ended(job);
            }
            Action::SetPartitionWorkers { choice } => self.choices.push((self.now, choice)),
            Action::AwaitKey { .. }
            | Action::PreloadRefused { .. }
            | Action::EvictRefused { .. }
            | Action::RetireDevice { .. }
            | Action::ShutDown => {}
        }
    }

    fn job_ended(&mut self, job: JobId) -> Option<(usize, f64)> {
        let (stream, arrived) = self.jobs.remove(&job)?;
        let progress = self.progress.get_mut(stream)?;
        progress.ended += 1;
        progress.last_end = self.now;
        Some((stream, arrived))
    }

    fn begin(&mut self, seconds: f64, demand: Demand, what: What) {
        self.activities.push(Activity { left: seconds, full: seconds, demand, start: self.now, what });
    }

    fn host_stage(&mut self, ticket: Ticket, kind: SpanKind) {
        let Some(circuit) = self.circuit(ticket) else { return };
        let stage = if kind == SpanKind::Finish { circuit.finish } else { circuit.synthesis };
        let demand = Demand { cores: stage.cores, traffic: stage.traffic as f64, sensitivity: stage.sensitivity };
        self.begin(stage.seconds, demand, What::Stage { ticket, kind, device: None });
    }

    fn device_stage(&mut self, ticket: Ticket, kind: SpanKind, device: DeviceId, batch: usize) {
        let Some((circuit, model)) = self.circuit(ticket).zip(self.models.get(usize::from(device.0))) else { return };
        let stage = if kind == SpanKind::Prepare { circuit.prepare } else { circuit.compute };
        let transfer = stage.transfer as f64 / model.link_bandwidth as f64;
        let one = (stage.seconds / model.speed).max(transfer);
        let seconds = one * (1.0 + (batch - 1) as f64 * (1.0 - stage.batch_saving));
        let traffic = if one > 0.0 { stage.transfer as f64 / one } else { 0.0 };
        let demand = Demand { cores: 0.0, traffic: traffic / batch as f64, sensitivity: stage.sensitivity };
        self.begin(seconds, demand, What::Stage { ticket, kind, device: Some(device) });
    }

    fn drop_stages(&mut self, dropped: Ticket) {
        self.activities.retain(|a| !matches!(a.what, What::Stage { ticket, .. } if ticket == dropped));
    }

    /// Lets time pass until `next`, and collects what has ended then.
    fn advance(&mut self, next: f64, load: Load) {
        let passed = next - self.now;
        for (index, device) in self.devices.iter_mut().enumerate() {
            match self.scheduler.idle_reason(DeviceId(index as u16)).as_ref().map(IdleReason::label) {
                None => device.busy += passed,
                Some(label) => *device.gaps.entry(label).or_default() += passed,
            }
        }
        self.now = next;
        let mut going_on = Vec::with_capacity(self.activities.len());
        for mut activity in std::mem::take(&mut self.activities) {
            activity.left -= passed * load.speed(activity.demand);
            // What ends within a nanosecond ends now: sums of floating-point times are not exact.
            if activity.left <= 1e-9 {
                activity.left = 0.0;
            }
            going_on.push(activity);
        }
        self.activities = going_on;
        self.note_memory();
        let (ended, going_on) = std::mem::take(&mut self.activities).into_iter().partition(|a| a.left <= 0.0);
        self.activities = going_on;
        let ended: Vec<Activity> = ended;
        for activity in ended {
            self.end(activity);
        }
    }

    fn end(&mut self, activity: Activity) {
        let (start, end) = (activity.start, self.now);
        match activity.what {
            What::KeyLoad { circuit, pool } => self.events.push_back(Event::KeyLoaded { circuit, pool }),
            What::SelfTest { device } => self.events.push_back(Event::DeviceSelfTest { device, passed: true }),
            What::Stage { ticket, kind, device } => {
                self.spans.push(Span { ticket, kind, device, start, end });
                let measured = match kind {
                    SpanKind::Synthesis => Some(MeasuredStage::Synthesis),
                    SpanKind::Compute => Some(MeasuredStage::Device),
                    SpanKind::Prepare | SpanKind::Finish => None,
                };
                let name = self.circuit(ticket).map(|c| &c.profile.name);
                let circuit = self.plan.circuits.iter().position(|c| Some(&c.profile.name) == name);
                if let Some((stage, circuit)) = measured.zip(circuit) {
                    let (circuit, took) = (CircuitId(circuit as u32), Time::from_secs_f64(end - start));
                    self.events.push_back(Event::Measured { circuit, stage, took });
                }
                self.events.push_back(match kind {
                    SpanKind::Synthesis => Event::WitnessReady { ticket },
                    SpanKind::Prepare => Event::DevicePrepared { ticket },
                    SpanKind::Compute => Event::StartReturned { ticket },
                    SpanKind::Finish => Event::FinishDone { ticket },
                });
            }
        }
    }

    /// What is reserved, less what syntheses have not touched yet.
    fn resident(&self) -> u64 {
        let in_use = |pool| self.scheduler.budget().usage(pool).map_or(0, |u| u.in_use);
        let reserved = self.plan.machine.process + in_use(Pool::Host) + in_use(Pool::Pinned);
        let untouched = |a: &Activity| match a.what {
            What::Stage { ticket, kind: SpanKind::Synthesis, .. } if a.full > 0.0 => {
                self.circuit(ticket).map_or(0.0, |c| {
                    let bytes = c.profile.partition.to_synthesize();
                    (1.0 - c.touched_at_once) * (a.left / a.full) * (bytes.host + bytes.pinned) as f64
                })
            }
            _ => 0.0,
        };
        reserved.saturating_sub(self.activities.iter().map(untouched).sum::<f64>() as u64)
    }

    fn note_memory(&mut self) {
        let point = MemoryPoint { seconds: self.now, resident: self.resident() };
        if self.memory.last() != Some(&point) {
            self.memory.push(point);
        }
    }

    fn finish(self) -> Report {
        let streams = self.plan.streams.iter().zip(self.progress).map(|(stream, mut p)| {
            p.latencies.sort_by(f64::total_cmp);
            let seconds = p.last_end - stream.first;
            let completed = p.latencies.len();
            StreamReport { completed, seconds_per_job: seconds / (completed.max(1) as f64), latencies: p.latencies }
        });
        Report {
            streams: streams.collect(),
            seconds: self.now,
            devices: self.devices,
            peak_resident: self.memory.iter().map(|p| p.resident).max().unwrap_or(0),
            pools: self.scheduler.budget().pools().collect(),
            memory: self.memory,
            spans: self.spans,
            failed: self.failed,
            refused: self.refused,
            choices: self.choices,
        }
    }
}

/// When the next job of a stream arrives, if that depends on time alone.
fn arrival(stream: &super::Stream, progress: &Progress) -> Option<f64> {
    let room = progress.arrived < stream.jobs && progress.arrived - progress.ended < stream.concurrency;
    room.then(|| progress.last_arrival.map_or(stream.first, |last| last + stream.every))
}
