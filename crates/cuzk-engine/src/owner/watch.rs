//! What is told of all this: spans, memory, idle devices, and bundles of failed attempts.

use std::sync::Arc;

use cuzk_curve::Curve;
use cuzk_groth16::{Stage as Step, StageTimes};
use cuzk_scheduler::{CircuitId, DeviceId, Fault, PartitionBytes, Ticket, Time};
use cuzk_timeline::{Outcome as End, Stage};

use super::Owner;
use crate::{
    calls::{Lane, Purpose},
    message::Outcome,
    progress::ProgressStage,
    replay::{self, ReplayBundle},
    telemetry::{Subject, stage},
};

/// Bytes that a partition holds meanwhile: of the host's memory until it is at a device, of the device's then.
fn bytes_of(stage: Stage, bytes: &PartitionBytes) -> u64 {
    match stage {
        Stage::Queue | Stage::PermitWait => 0,
        Stage::Witness => bytes.synthesis.host,
        Stage::Send | Stage::DeviceQueue => bytes.synthesized.host,
        Stage::Kernels => bytes.device_running,
        _ => bytes.device_prepared,
    }
}

impl<C: Curve> Owner<C> {
    /// What a partition did or waited for is over, now; something else begins.
    pub(super) fn span(&mut self, ticket: Ticket, stage: Stage, end: End) {
        let now = self.now();
        let Some(start) = self.partition(ticket.partition).map(|p| std::mem::replace(&mut p.since, now)) else {
            return;
        };
        self.span_between(ticket, stage, (start, now), end);
    }

    /// A partition is admitted now. Since the permits were all taken it waited for one, before that for what the
    /// scheduler says of admission: memory, a key.
    pub(super) fn admission_spans(&mut self, ticket: Ticket) {
        let full_since = self.permits_full_since;
        let Some(partition) = self.partition(ticket.partition) else { return };
        let Some(full) = full_since else { return self.span(ticket, Stage::Queue, End::Ok) };
        let since = partition.since;
        if full > since {
            partition.since = full;
            self.span_between(ticket, Stage::Queue, (since, full), End::Ok);
        }
        self.span(ticket, Stage::PermitWait, End::Ok);
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

    fn span_between(&self, ticket: Ticket, stage: Stage, times: (Time, Time), end: End) {
        let (Some(telemetry), Some(job)) = (&self.telemetry, self.jobs.get(&ticket.partition.job)) else { return };
        let device = job.partitions.get(ticket.partition.index as usize).and_then(|p| p.device);
        let bytes = self.circuits.get(&job.circuit).map_or(0, |c| bytes_of(stage, &c.plan.profile.partition));
        telemetry.span(stage, (Subject::Attempt(ticket), job.circuit, device), times, bytes, end);
    }

    /// Bringing a partition to its device is over.
    pub(super) fn prepare_span(&mut self, ticket: Ticket, end: End) {
        if let Some(stage) = self.telemetry.as_ref().map(|t| t.prepare_stage()) {
            self.span(ticket, stage, end);
        }
    }

    /// Loading a key is over, now.
    pub(super) fn key_span(&self, circuit: CircuitId, device: DeviceId, since: Time, end: End) {
        let Some(telemetry) = &self.telemetry else { return };
        let bytes = self.circuits.get(&circuit).and_then(|c| c.plan.profile.key.device).unwrap_or(0);
        let times = (since, self.now());
        telemetry.span(Stage::KeyLoad, (Subject::Key, circuit, Some(device)), times, bytes, end);
    }

    /// The steps of a finished proof: those of the device began at `kernels`, those of the host at `host`. The device
    /// held the lock from before until after, and what is not a step was a way to or from it.
    pub(super) fn steps(&self, ticket: Ticket, steps: &StageTimes, host: Time) {
        let (Some(telemetry), Some(job)) = (&self.telemetry, self.jobs.get(&ticket.partition.job)) else { return };
        let Some(partition) = job.partitions.get(ticket.partition.index as usize) else { return };
        let Some(device) = partition.device else { return };
        let planned = self.circuits.get(&job.circuit).map_or(&[][..], |c| &c.plan.steps);
        let (mut on_device, mut on_host) = (partition.kernels_from, host);
        let mut first = Some(partition.locked_at);
        for (step, took) in steps {
            let clock = if matches!(step, Step::Finish | Step::Verify) { &mut on_host } else { &mut on_device };
            let start = *clock;
            *clock += *took;
            if !matches!(step, Step::Upload | Step::Finish | Step::Verify)
                && let Some(locked_at) = first.take()
            {
                telemetry.transfer_gap(ticket, device, (locked_at, start));
            }
            let bytes = planned.iter().find(|(s, _)| s == step).map_or(0, |(_, bytes)| *bytes);
            let whose = (Subject::Attempt(ticket), job.circuit, Some(device));
            telemetry.span(stage(*step), whose, (start, *clock), bytes, End::Ok);
        }
        telemetry.transfer_gap(ticket, device, (on_device, partition.computed_at));
    }

    /// Tells of a failed attempt, and writes it down unless only memory was short.
    pub(super) fn note_failure(&mut self, ticket: Ticket, fault: &Fault) {
        tracing::warn!("{ticket} failed: {fault}");
        self.tell(ticket, ProgressStage::Failed { cause: fault.to_string() });
        let Some(config) = self.config.replay.clone() else { return };
        if matches!(fault, Fault::OutOfMemory(_)) {
            return;
        }
        let Some(job) = self.jobs.get(&ticket.partition.job) else { return };
        let Some(circuit) = self.circuits.get(&job.circuit) else { return };
        let device = job.partitions.get(ticket.partition.index as usize).and_then(|p| p.device);
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
