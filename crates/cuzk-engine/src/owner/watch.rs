//! What is told of all this: spans, memory, idle devices, and bundles of failed attempts.

use std::sync::Arc;

use cuzk_curve::Curve;
use cuzk_groth16::{Stage as Step, StageTimes};
use cuzk_scheduler::{CircuitId, CircuitProfile, DeviceId, Fault, OnDevice, PartitionId, Pool, Ticket, Time};
use cuzk_timeline::{Outcome as End, Stage};

use super::Owner;
use crate::{
    calls::{Lane, Purpose},
    message::Outcome,
    progress::ProgressStage,
    replay::{self, ReplayBundle},
    report::Phase,
    telemetry::{Subject, stage},
};

/// Bytes that a partition holds in a phase: of the host's memory until it is at a device, of the device's then.
fn bytes_of(phase: Phase, profile: &CircuitProfile, device: Option<DeviceId>) -> u64 {
    let on_device = |bytes: fn(OnDevice) -> u64| device.map_or(0, |d| bytes(profile.on_device(d)));
    match phase {
        Phase::Admission => 0,
        Phase::Synthesis => profile.partition.synthesis.host,
        Phase::Send | Phase::Queue | Phase::Key => profile.partition.synthesized.host,
        Phase::Prepare | Phase::Lock => on_device(|d| d.prepared),
        Phase::Device => on_device(|d| d.running),
        Phase::Finish => on_device(|d| d.finishing),
    }
}

impl<C: Curve> Owner<C> {
    /// What a partition did or waited for is over, now; `next` begins, or nothing.
    pub(super) fn enter(&mut self, ticket: Ticket, next: Option<Phase>, end: End) {
        let (now, full_since) = (self.now(), self.permits_full_since);
        let Some(partition) = self.partition(ticket.partition) else { return };
        let since = std::mem::replace(&mut partition.since, now);
        let Some(phase) = std::mem::replace(&mut partition.phase, next) else { return };
        partition.times.add(phase, now.saturating_sub(since));
        let Some(telemetry) = &self.telemetry else { return };
        match (phase, full_since) {
            // Since the permits were all taken it waited for one, before that for what the scheduler says of admission:
            // memory, a key.
            (Phase::Admission, Some(full)) => {
                if full > since {
                    self.span(ticket, Stage::Queue, phase, (since, full), end);
                }
                self.span(ticket, Stage::PermitWait, phase, (full.max(since), now), end);
            }
            // Of a proof that is made these are told step by step.
            (Phase::Device | Phase::Finish, _) if end == End::Ok => {}
            _ => self.span(ticket, telemetry.stage(phase), phase, (since, now), end),
        }
    }

    /// Takes note of whether permits are left, and tells of memory and devices.
    pub(super) fn look(&mut self, now: Time) {
        let counts = self.scheduler.counts();
        let full = counts.permits >= counts.workers;
        self.permits_full_since = full.then(|| self.permits_full_since.unwrap_or(now));
        if let Some(telemetry) = &self.telemetry {
            telemetry.look(now, &self.scheduler);
        }
    }

    fn span(&self, ticket: Ticket, stage: Stage, phase: Phase, times: (Time, Time), end: End) {
        let (Some(telemetry), Some(job)) = (&self.telemetry, self.jobs.get(&ticket.partition.job)) else { return };
        let device = job.partitions.get(ticket.partition.index as usize).and_then(|p| p.device);
        let bytes = self.circuits.get(&job.circuit).map_or(0, |c| bytes_of(phase, &c.plan.profile, device));
        telemetry.span(stage, (Subject::Attempt(ticket), job.circuit, device), times, bytes, end);
    }

    /// Loading a key is over, now.
    pub(super) fn key_span(&self, circuit: CircuitId, device: DeviceId, since: Time, end: End) {
        let Some(telemetry) = &self.telemetry else { return };
        let bytes = self.circuits.get(&circuit).and_then(|c| c.plan.profile.key_in(Pool::Device(device))).unwrap_or(0);
        let times = (since, self.now());
        telemetry.span(Stage::KeyLoad, (Subject::Key, circuit, Some(device)), times, bytes, end);
    }

    /// The steps of a finished proof: the upload ended when it was prepared, those under the compute lock began with
    /// the kernels, those of the host at `host`. The lock was held from before until after, and what is not a step was
    /// a way to or from the device.
    pub(super) fn steps(&self, ticket: Ticket, steps: &StageTimes, host: Time) {
        let (Some(telemetry), Some(job)) = (&self.telemetry, self.jobs.get(&ticket.partition.job)) else { return };
        let Some(partition) = job.partitions.get(ticket.partition.index as usize) else { return };
        let Some(device) = partition.device else { return };
        let plan = self.circuits.get(&job.circuit).and_then(|c| c.plan.steps.get(usize::from(device.0)));
        let planned = plan.map_or(&[][..], Vec::as_slice);
        let (mut on_device, mut on_host) = (partition.kernels_from, host);
        telemetry.transfer_gap(ticket, device, (partition.locked_at, on_device));
        for (step, took) in steps {
            let mut uploading = partition.prepared_at.saturating_sub(*took);
            let clock = match step {
                Step::Upload => &mut uploading,
                Step::Finish | Step::Verify => &mut on_host,
                _ => &mut on_device,
            };
            let start = *clock;
            *clock += *took;
            let end = *clock;
            let bytes = planned.iter().find(|(s, _)| s == step).map_or(0, |(_, bytes)| *bytes);
            let whose = (Subject::Attempt(ticket), job.circuit, Some(device));
            telemetry.span(stage(*step), whose, (start, end), bytes, End::Ok);
        }
        telemetry.transfer_gap(ticket, device, (on_device, partition.computed_at));
    }

    /// Tells of a failed attempt, and writes it down unless only memory was short.
    pub(super) fn note_failure(&mut self, ticket: Ticket, fault: &Fault) {
        let (job, PartitionId { job: number, index }) = (self.job_name(ticket.partition.job), ticket.partition);
        let attempt = ticket.attempt;
        tracing::warn!(job, number = number.0, partition = index, attempt, "an attempt failed: {fault}");
        self.totals.failed_attempts += 1;
        self.totals.failed_verifications += u64::from(matches!(fault, Fault::WrongProof { .. }));
        self.totals.out_of_memory += u64::from(matches!(fault, Fault::OutOfMemory(_)));
        let partition = self.partition(ticket.partition);
        let device = partition.and_then(|p| {
            p.failures += 1;
            p.device
        });
        if let Some(device) = device.and_then(|id| self.device_mut(id)) {
            device.failures += 1;
        }
        self.tell(ticket, ProgressStage::Failed { cause: fault.to_string() });
        let Some(config) = self.config.replay.clone() else { return };
        if matches!(fault, Fault::OutOfMemory(_)) {
            return;
        }
        let Some(job) = self.jobs.get(&ticket.partition.job) else { return };
        let Some(circuit) = self.circuits.get(&job.circuit) else { return };
        let (source, matrices) = (Arc::clone(&circuit.source), circuit.matrices.clone());
        let workload = config.inputs.then(|| Arc::clone(&job.workload));
        let mut bundle = ReplayBundle {
            version: 1,
            unix_seconds: replay::unix_seconds(),
            engine: env!("CARGO_PKG_VERSION"),
            circuit: circuit.plan.profile.name.clone(),
            circuit_digest: None,
            key_digest: String::new(),
            job: ticket.partition.job.0,
            partition: ticket.partition.index,
            attempt: ticket.attempt,
            device: device.and_then(|d| self.records.get(usize::from(d.0))).cloned(),
            error: fault.to_string(),
            config: (*self.config).clone(),
            inputs: false,
        };
        self.call(Lane::Runtime, None, Purpose::Errand, move || {
            bundle.circuit_digest = matrices.map(|m| hex::encode(m.digest()));
            let digest = source.key().map_err(|e| e.to_string()).and_then(|k| k.digest().map_err(|e| e.to_string()));
            bundle.key_digest = digest.map_or_else(|e| format!("unknown: {e}"), |d| d.to_string());
            let inputs = workload.and_then(|w| w.replay_inputs());
            bundle.inputs = inputs.is_some();
            match replay::write(&config, &bundle, inputs.as_deref()) {
                Ok(place) => tracing::warn!("written down as {}", place.display()),
                Err(error) => tracing::error!("no replay bundle in {}: {error}", config.directory.display()),
            }
            Outcome::Nothing
        });
    }
}
