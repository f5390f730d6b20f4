//! An engine that performs actions only when a test says so, and a second bookkeeping of everything, kept from actions
//! and events alone.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod shadow;

use std::time::Duration;

use cuzk_scheduler::*;

use shadow::Shadow;

pub(crate) const SECOND: Time = Duration::from_secs(1);

/// An answer that the engine owes the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Owed {
    Stage(Ticket, &'static str),
    Load(CircuitId, Pool),
    Evict(CircuitId, Pool),
    SelfTest(DeviceId),
    /// From an attempt that was abandoned: the scheduler must not be impressed.
    Late(Event),
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    Completed,
    Failed(FailureCause),
    Cancelled,
    Refused(Refusal),
}

pub(crate) struct Engine {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
    pub(crate) owed: Vec<Owed>,
    pub(crate) ended: Vec<(JobId, End)>,
    pub(crate) shadow: Shadow,
    /// All that was applied and all that came of it, to replay.
    pub(crate) log: Vec<(Time, Event, Result<Vec<Action>, EventError>)>,
    next_job: u64,
}

/// A profile of plain numbers of bytes: `host` through synthesis and queue, `finishing` until the end.
pub(crate) fn profile(name: &str, host: u64, finishing: u64, device: u64) -> CircuitProfile {
    let bytes = |host| HostBytes { host, pinned: 0 };
    CircuitProfile {
        name: name.to_owned(),
        key: KeyBytes::default(),
        partition: PartitionBytes {
            synthesis: bytes(host),
            synthesized: bytes(host),
            finishing: bytes(finishing),
            device_prepared: device / 2,
            device_running: device,
            device_finishing: 0,
        },
        devices: Vec::new(),
        synthesis_cores: 1.0,
        expected: None,
    }
}

/// A machine with `devices` devices of 100 bytes each.
pub(crate) fn machine(host: u64, devices: usize) -> Resources {
    let device = DeviceResources { memory: 100, last_resort: false };
    Resources { cores: 8, host, pinned: 100, devices: vec![device; devices] }
}

/// Everything plain: no grouping, no batches, keys leave at once.
pub(crate) fn config(workers: usize) -> Config {
    Config {
        partition_workers: Workers::Fixed(workers),
        sort_by_type: false,
        eviction_min_idle: Duration::ZERO,
        ..Config::default()
    }
}

impl Engine {
    pub(crate) fn new(config: Config, resources: Resources) -> Self {
        let shadow = Shadow::new(&config, &resources);
        let scheduler = Scheduler::new(config, resources).unwrap();
        let (owed, ended, log) = (Vec::new(), Vec::new(), Vec::new());
        Self { scheduler, now: SECOND, owed, ended, shadow, log, next_job: 0 }
    }

    /// One with circuit 0.
    pub(crate) fn with(config: Config, resources: Resources, profile: CircuitProfile) -> Self {
        let mut engine = Self::new(config, resources);
        engine.apply(Event::CircuitKnown { circuit: CircuitId(0), profile });
        engine
    }

    /// Applies an event that must fit, notes what is owed now, and checks everything.
    pub(crate) fn apply(&mut self, event: Event) -> Vec<Action> {
        self.try_apply(event.clone()).unwrap_or_else(|e| panic!("{event:?}: {e}"))
    }

    pub(crate) fn try_apply(&mut self, event: Event) -> Result<Vec<Action>, EventError> {
        let result = self.scheduler.apply(self.now, event.clone());
        self.log.push((self.now, event.clone(), result.clone()));
        if let Ok(actions) = &result {
            self.shadow.event(&event);
            for action in actions {
                self.shadow.action(action);
                self.note(action);
            }
        }
        self.scheduler.audit().unwrap_or_else(|e| panic!("after {event:?}: {e}"));
        self.shadow.check(&self.scheduler);
        result
    }

    fn note(&mut self, action: &Action) {
        match action {
            Action::StartSynthesis { ticket } => self.owed.push(Owed::Stage(*ticket, "synthesis")),
            Action::Send { ticket } => self.owed.push(Owed::Stage(*ticket, "send")),
            Action::Prepare { ticket, .. } => self.owed.push(Owed::Stage(*ticket, "prepare")),
            Action::Start { batch, .. } => self.owed.extend(batch.iter().map(|t| Owed::Stage(*t, "kernels"))),
            Action::Finish { ticket } => self.owed.push(Owed::Stage(*ticket, "finish")),
            Action::AbortPartition { ticket } => {
                self.forget(*ticket);
                self.owed.push(Owed::Stage(*ticket, "stop"));
            }
            Action::Abandon { ticket, .. } => {
                let late = self.owed.iter().find(|o| matches!(o, Owed::Stage(t, _) if t == ticket)).map(answer);
                self.forget(*ticket);
                self.owed.extend(late.map(Owed::Late));
            }
            Action::LoadKey { circuit, pool } => self.owed.push(Owed::Load(*circuit, *pool)),
            Action::EvictKey { circuit, pool } => self.owed.push(Owed::Evict(*circuit, *pool)),
            Action::RunSelfTest { device } => {
                // It begins by discarding all that is on the device.
                let gone = Pool::Device(*device);
                self.owed.retain(|o| !matches!(o, Owed::Load(_, p) | Owed::Evict(_, p) if *p == gone));
                self.owed.push(Owed::SelfTest(*device));
            }
            Action::CompleteJob { job } => self.ended.push((*job, End::Completed)),
            Action::FailJob { job, cause } => self.ended.push((*job, End::Failed(cause.clone()))),
            Action::CancelledJob { job } => self.ended.push((*job, End::Cancelled)),
            Action::RefuseJob { job, refusal } => self.ended.push((*job, End::Refused(refusal.clone()))),
            Action::AwaitKey { .. }
            | Action::PreloadRefused { .. }
            | Action::EvictRefused { .. }
            | Action::RetireDevice { .. }
            | Action::SetPartitionWorkers { .. }
            | Action::ShutDown => {}
        }
    }

    fn forget(&mut self, ticket: Ticket) {
        self.owed.retain(|o| !matches!(o, Owed::Stage(t, _) if *t == ticket));
    }

    pub(crate) fn submit(&mut self, circuit: u32, partitions: u32, priority: Priority) -> JobId {
        self.submit_by(circuit, partitions, priority, None)
    }

    pub(crate) fn submit_by(
        &mut self,
        circuit: u32,
        partitions: u32,
        priority: Priority,
        deadline: Option<Time>,
    ) -> JobId {
        let job = JobId(self.next_job);
        self.next_job += 1;
        let circuit = CircuitId(circuit);
        self.apply(Event::JobSubmitted(JobRequest { job, circuit, partitions, priority, deadline }));
        job
    }

    /// Gives an answer that is owed, the good one.
    pub(crate) fn answer(&mut self, index: usize) -> Vec<Action> {
        let owed = self.owed.remove(index);
        match owed {
            Owed::Late(event) => {
                assert!(matches!(self.try_apply(event), Err(EventError::Stale { .. })), "late news are recognised");
                Vec::new()
            }
            owed => self.apply(answer(&owed)),
        }
    }

    /// Answers the first that is owed for a stage of that name; says for which attempt.
    pub(crate) fn finish_a(&mut self, stage: &str) -> Option<Ticket> {
        let of = |o: &Owed| matches!(o, Owed::Stage(_, name) if *name == stage);
        let index = self.owed.iter().position(of)?;
        let Owed::Stage(ticket, _) = self.owed[index] else { unreachable!("of this kind") };
        self.answer(index);
        Some(ticket)
    }

    /// Answers all that is owed for stages of these names, again and again.
    pub(crate) fn finish_all(&mut self, stages: &[&str]) {
        while stages.iter().any(|s| self.finish_a(s).is_some()) {}
    }

    /// Answers all loads and evictions.
    pub(crate) fn move_keys(&mut self) {
        while let Some(index) = self.owed.iter().position(|o| matches!(o, Owed::Load(..) | Owed::Evict(..))) {
            self.answer(index);
        }
    }

    /// Fails what is owed for an attempt at that stage.
    pub(crate) fn fail_a(&mut self, stage: &str, fault: Fault) -> Ticket {
        let of = |o: &Owed| matches!(o, Owed::Stage(_, name) if *name == stage);
        let index = self.owed.iter().position(of).unwrap_or_else(|| panic!("no {stage} in {:?}", self.owed));
        let Owed::Stage(ticket, _) = self.owed.remove(index) else { unreachable!("of this kind") };
        self.apply(Event::Failed { ticket, fault });
        ticket
    }

    pub(crate) fn self_test(&mut self, device: DeviceId, passed: bool) -> Vec<Action> {
        self.owed.retain(|o| *o != Owed::SelfTest(device));
        self.apply(Event::DeviceSelfTest { device, passed })
    }

    pub(crate) fn lose(&mut self, device: DeviceId) -> Vec<Action> {
        self.apply(Event::DeviceLost { device, cause: "fell off the bus".into() })
    }

    /// Attempts of which a stage of that name is under way.
    pub(crate) fn at(&self, stage: &str) -> Vec<Ticket> {
        let of = |o: &Owed| match o {
            Owed::Stage(ticket, name) if *name == stage => Some(*ticket),
            _ => None,
        };
        self.owed.iter().filter_map(of).collect()
    }

    /// Answers everything, passing time where nothing is owed, until all jobs have ended. Panics if that does not
    /// happen.
    pub(crate) fn drain(&mut self) {
        for _ in 0..20_000 {
            if !self.owed.is_empty() {
                self.answer(0);
            } else if self.scheduler.counts().jobs == 0 {
                return;
            } else if let Some(wakeup) = self.scheduler.next_wakeup() {
                self.now = self.now.max(wakeup);
                self.apply(Event::Tick);
            } else {
                panic!("nothing is owed and jobs are left: {:?}", self.scheduler);
            }
        }
        panic!("no end: {:?}", self.scheduler.counts());
    }

    pub(crate) fn in_use(&self, pool: Pool) -> u64 {
        self.scheduler.budget().usage(pool).unwrap().in_use
    }

    pub(crate) fn end_of(&self, job: JobId) -> Option<&End> {
        self.ended.iter().find(|(j, _)| *j == job).map(|(_, end)| end)
    }
}

/// The good answer.
pub(crate) fn answer(owed: &Owed) -> Event {
    match owed.clone() {
        Owed::Stage(ticket, "synthesis") => Event::WitnessReady { ticket },
        Owed::Stage(ticket, "send") => Event::SendDone { ticket },
        Owed::Stage(ticket, "prepare") => Event::DevicePrepared { ticket },
        Owed::Stage(ticket, "kernels") => Event::StartReturned { ticket },
        Owed::Stage(ticket, "finish") => Event::FinishDone { ticket },
        Owed::Stage(ticket, _) => Event::Stopped { ticket },
        Owed::Load(circuit, pool) => Event::KeyLoaded { circuit, pool },
        Owed::Evict(circuit, pool) => Event::KeyEvicted { circuit, pool },
        Owed::SelfTest(device) => Event::DeviceSelfTest { device, passed: true },
        Owed::Late(event) => event,
    }
}
