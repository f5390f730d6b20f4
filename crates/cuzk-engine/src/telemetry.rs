//! The scheduler's and the prover's terms in those of the timeline.

use std::{sync::Arc, time::Instant};

use cuzk_groth16::Stage as Step;
use cuzk_scheduler::{CircuitId, DeviceId, IdleReason, JobId, Pool, Scheduler, Ticket, Time};
use cuzk_timeline as timeline;
use timeline::{JobEvent, JobMark, Nanos, Outcome, PartitionRef, Recorder, Stage, StageClass, TrackId, TrackKind};

use crate::report::Phase;

/// What a span is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject {
    /// An attempt.
    Attempt(Ticket),
    /// A key.
    Key,
}

/// Writes to a recorder. Called by the owner thread alone.
pub(crate) struct Telemetry {
    recorder: Arc<Recorder>,
    /// Where the engine's time zero is in the recorder's.
    offset: Nanos,
    /// What each device computes, and what goes to and from it.
    devices: Vec<(TrackId, TrackId)>,
    synthesis: TrackId,
    finish: TrackId,
    waiting: TrackId,
    prepare: Stage,
    key_wait: Stage,
}

impl Telemetry {
    /// Adds a row for each device and kind of worker. `devices` are their names.
    pub(crate) fn new(recorder: Arc<Recorder>, epoch: Instant, devices: &[String]) -> Self {
        let offset = recorder.at(epoch);
        let rows = |name: &String| {
            let transfers = recorder.add_track(format!("{name}, to and from"), TrackKind::Transfer);
            (recorder.add_track(name.clone(), TrackKind::Device), transfers)
        };
        let devices = devices.iter().map(rows).collect();
        let synthesis = recorder.add_track("synthesis", TrackKind::Synthesis);
        let finish = recorder.add_track("finish", TrackKind::Finish);
        let waiting = recorder.add_track("waiting", TrackKind::Waiting);
        let prepare = recorder.custom_stage("prepare", StageClass::Transfer);
        let key_wait = recorder.custom_stage("key wait", StageClass::Wait);
        Self { recorder, offset, devices, synthesis, finish, waiting, prepare, key_wait }
    }

    fn at(&self, time: Time) -> Nanos {
        self.offset + time.into()
    }

    /// A phase as a stage.
    pub(crate) fn stage(&self, phase: Phase) -> Stage {
        match phase {
            Phase::Admission => Stage::Queue,
            Phase::Synthesis => Stage::Witness,
            Phase::Send => Stage::Send,
            Phase::Queue => Stage::DeviceQueue,
            Phase::Key => self.key_wait,
            Phase::Prepare => self.prepare,
            Phase::Lock => Stage::LockWait,
            Phase::Device => Stage::Kernels,
            Phase::Finish => Stage::Finish,
        }
    }

    /// Where spans of a stage lie.
    fn track(&self, stage: Stage, device: Option<DeviceId>) -> TrackId {
        let rows = device.and_then(|d| self.devices.get(usize::from(d.0)).copied());
        match (stage, rows) {
            (Stage::Witness, _) => self.synthesis,
            (Stage::Finish | Stage::Verify, _) => self.finish,
            (Stage::Queue | Stage::PermitWait | Stage::Send | Stage::DeviceQueue | Stage::LockWait, _) | (_, None) => {
                self.waiting
            }
            (stage, _) if stage == self.key_wait => self.waiting,
            (Stage::Upload | Stage::KeyLoad | Stage::Custom(_), Some((_, transfers))) => transfers,
            (_, Some((device, _))) => device,
        }
    }

    /// Records a span.
    pub(crate) fn span(
        &self,
        stage: Stage,
        (subject, circuit, device): (Subject, CircuitId, Option<DeviceId>),
        (start, end): (Time, Time),
        bytes: u64,
        outcome: Outcome,
    ) {
        let partition = match subject {
            Subject::Attempt(ticket) => Some(partition(ticket)),
            Subject::Key => None,
        };
        self.recorder.span(timeline::Span {
            track: self.track(stage, device),
            stage,
            partition,
            circuit: Some(timeline::CircuitId(circuit.0)),
            start: self.at(start),
            end: self.at(end),
            bytes,
            outcome,
        });
    }

    /// A device that holds its compute lock does not compute yet, or no more: something is on its way.
    pub(crate) fn transfer_gap(&self, ticket: Ticket, device: DeviceId, (start, end): (Time, Time)) {
        let Some((track, _)) = self.devices.get(usize::from(device.0)) else { return };
        let reason = timeline::IdleReason::Transfer { partition: Some(partition(ticket)) };
        let (start, end) = (self.at(start), self.at(end));
        self.recorder.gap(timeline::IdleGap { track: *track, start, end, reason });
    }

    /// Records memory, and what each device does.
    pub(crate) fn look(&self, now: Time, scheduler: &Scheduler) {
        let at = self.at(now);
        for (name, usage) in scheduler.budget().pools() {
            self.recorder.memory(pool(name), at, usage.in_use);
        }
        for (index, (track, _)) in self.devices.iter().enumerate() {
            let reason = scheduler.idle_reason(DeviceId(index as u16));
            self.recorder.device_state(*track, at, reason.map(|r| idle_reason(&r)));
        }
    }

    /// States the sizes of the pools.
    pub(crate) fn capacities(&self, scheduler: &Scheduler) {
        for (name, usage) in scheduler.budget().pools() {
            self.recorder.set_capacity(pool(name), usage.capacity);
        }
    }

    pub(crate) fn circuit(&self, circuit: CircuitId, name: &str) {
        self.recorder.name_circuit(timeline::CircuitId(circuit.0), name);
    }

    pub(crate) fn submitted(&self, job: JobId, at: Time, name: String, circuit: CircuitId, partitions: u32) {
        let circuit = Some(timeline::CircuitId(circuit.0));
        self.mark(job, at, JobEvent::Submitted { name, circuit, partitions });
    }

    pub(crate) fn mark(&self, job: JobId, at: Time, event: JobEvent) {
        self.recorder.mark(JobMark { job: timeline::JobId(job.0), at: self.at(at), event });
    }
}

fn partition(ticket: Ticket) -> PartitionRef {
    let Ticket { partition, attempt } = ticket;
    PartitionRef { job: timeline::JobId(partition.job.0), index: partition.index, attempt }
}

fn pool(pool: Pool) -> timeline::Pool {
    match pool {
        Pool::Host => timeline::Pool::Host,
        Pool::Pinned => timeline::Pool::Pinned,
        Pool::Device(device) => timeline::Pool::Device(device.0),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn idle_reason(reason: &IdleReason) -> timeline::IdleReason {
    use timeline::IdleReason as Told;
    match reason {
        IdleReason::NoWork => Told::NoWork,
        IdleReason::NoSynthesizedPartition { synthesizing, admission } => Told::NoSynthesizedPartition {
            synthesizing: count(*synthesizing),
            because: admission.as_ref().map(ToString::to_string),
        },
        IdleReason::Memory(refused) => Told::Memory {
            pool: pool(refused.pool),
            requested: refused.requested,
            in_use: refused.in_use,
            held_back: refused.held_back,
            capacity: refused.capacity,
        },
        IdleReason::KeyLoad { circuit, pool: to } => {
            Told::KeyLoad { circuit: timeline::CircuitId(circuit.0), pool: pool(*to) }
        }
        IdleReason::Transfer { ticket } => Told::Transfer { partition: Some(partition(*ticket)) },
        IdleReason::Lock { kept_for } => Told::Lock { kept_for: Some(partition(*kept_for)) },
        IdleReason::Alone => Told::Alone,
        IdleReason::LeftToOthers { queued } => Told::LeftToOthers { queued: count(*queued) },
        IdleReason::Quarantined { failed_tests, .. } => Told::Quarantined { failed_tests: *failed_tests },
        IdleReason::Retired => Told::Retired,
    }
}

/// A step of a proof as a stage.
pub(crate) fn stage(step: Step) -> Stage {
    match step {
        Step::Upload => Stage::Upload,
        Step::Evaluate => Stage::Evaluate,
        Step::Quotient => Stage::Quotient,
        Step::MsmH => Stage::MsmH,
        Step::MsmL => Stage::MsmL,
        Step::MsmA => Stage::MsmA,
        Step::MsmBG1 => Stage::MsmBG1,
        Step::MsmBG2 => Stage::MsmBG2,
        Step::Finish => Stage::Finish,
        Step::Verify => Stage::Verify,
    }
}
