//! Jobs: from submission to their end.

use std::sync::Arc;

use cuzk_curve::Curve;
use cuzk_groth16::{FinishedProof, PendingProof};
use cuzk_r1cs::Assignment;
use cuzk_scheduler::{
    CircuitId, DeviceId, Event, EventError, FailureCause, JobId, JobRequest, PartitionId, Refusal, Time,
};
use cuzk_timeline::JobEvent;

use super::Owner;
use crate::{
    answer::Completer,
    calls::{CallId, Lane, Purpose},
    device::Prepared,
    job::{Ended, JobError, JobOptions, JobResult},
    message::Outcome,
    report::{JobReport, PartitionReport, Phase, PhaseTimes},
    workload::{Cancel, Workload},
};

/// A job that has not ended.
pub(super) struct JobState<C: Curve> {
    pub(super) circuit: CircuitId,
    pub(super) workload: Arc<dyn Workload<C>>,
    completer: Completer<Ended<C>>,
    submitted: Time,
    pub(super) partitions: Vec<PartitionState<C>>,
}

/// What a partition has between two calls.
pub(super) enum Held<C: Curve> {
    Nothing,
    Prepared(Prepared<C>),
    Pending(Box<PendingProof<C>>),
}

/// A partition: what the scheduler knows as bytes, in flesh.
pub(super) struct PartitionState<C: Curve> {
    /// Of the attempt under way.
    pub(super) cancel: Cancel,
    /// The call that the attempt waits for.
    pub(super) call: Option<CallId>,
    pub(super) witness: Option<Arc<Assignment<C::Fr>>>,
    pub(super) held: Held<C>,
    /// Where it is.
    pub(super) device: Option<DeviceId>,
    /// Told to stop, has not stopped.
    pub(super) aborting: bool,
    /// Its last proof did not verify: was it the device, or is it the witness?
    pub(super) suspect: bool,
    /// What it does or waits for now, and since when; `None` when it is over.
    pub(super) phase: Option<Phase>,
    pub(super) since: Time,
    pub(super) times: PhaseTimes,
    pub(super) syntheses: u32,
    pub(super) failures: u32,
    /// When its assignment was on the device, when it got the compute lock, when its kernels began, and when it gave
    /// the lock back.
    pub(super) prepared_at: Time,
    pub(super) locked_at: Time,
    pub(super) kernels_from: Time,
    pub(super) computed_at: Time,
    pub(super) proof: Option<FinishedProof<C>>,
}

impl<C: Curve> PartitionState<C> {
    fn new(since: Time) -> Self {
        Self {
            cancel: Cancel::default(),
            call: None,
            witness: None,
            held: Held::Nothing,
            device: None,
            aborting: false,
            suspect: false,
            phase: Some(Phase::Admission),
            since,
            times: PhaseTimes::default(),
            syntheses: 0,
            failures: 0,
            prepared_at: Time::ZERO,
            locked_at: Time::ZERO,
            kernels_from: Time::ZERO,
            computed_at: Time::ZERO,
            proof: None,
        }
    }
}

impl<C: Curve> Owner<C> {
    pub(super) fn submit(
        &mut self,
        job: JobId,
        circuit: CircuitId,
        workload: Arc<dyn Workload<C>>,
        partitions: u32,
        options: JobOptions,
        completer: Completer<Ended<C>>,
    ) {
        let now = self.now();
        let JobOptions { priority, deadline } = options;
        let deadline = deadline.map(|d| now.saturating_add(d));
        let states = (0..partitions).map(|_| PartitionState::new(now)).collect();
        if let (Some(telemetry), Some(state)) = (&self.telemetry, self.circuits.get(&circuit)) {
            let unnamed = || format!("{} {}", state.plan.profile.name, job.0);
            let name = workload.name().map_or_else(unnamed, str::to_owned);
            telemetry.submitted(job, now, name, circuit, partitions);
        }
        self.jobs.insert(job, JobState { circuit, workload, completer, submitted: now, partitions: states });
        self.due.push_back(Event::JobSubmitted(JobRequest { job, circuit, partitions, priority, deadline }));
    }

    pub(super) fn partition(&mut self, id: PartitionId) -> Option<&mut PartitionState<C>> {
        self.jobs.get_mut(&id.job)?.partitions.get_mut(id.index as usize)
    }

    pub(super) fn reject(&mut self, job: JobId, error: EventError) {
        self.end(job, |_| Err(JobError::Invalid(error)));
    }

    /// What a job is called in logs.
    pub(super) fn job_name(&self, job: JobId) -> String {
        let name = self.jobs.get(&job).and_then(|state| state.workload.name());
        name.map_or_else(|| job.0.to_string(), str::to_owned)
    }

    /// What a circuit is called in logs.
    pub(super) fn circuit_name(&self, circuit: CircuitId) -> String {
        self.circuits.get(&circuit).map_or_else(|| circuit.to_string(), |state| state.plan.profile.name.clone())
    }

    pub(super) fn refuse_job(&mut self, job: JobId, refusal: Refusal) {
        tracing::warn!(job = self.job_name(job), number = job.0, "the job is refused: {refusal}");
        self.end(job, |_| Err(JobError::Refused(refusal)));
    }

    pub(super) fn complete_job(&mut self, job: JobId) {
        self.end(job, |proofs| proofs.ok_or(JobError::Stopped));
    }

    pub(super) fn fail_job(&mut self, job: JobId, cause: FailureCause) {
        let error = JobError::Failed(cause);
        let circuit = self.jobs.get(&job).map(|state| self.circuit_name(state.circuit)).unwrap_or_default();
        tracing::error!(job = self.job_name(job), number = job.0, "the job failed: {}", error.told(&circuit));
        self.end(job, |_| Err(error));
    }

    pub(super) fn cancelled_job(&mut self, job: JobId) {
        self.end(job, |_| Err(JobError::Cancelled));
    }

    fn end(&mut self, job: JobId, result: impl FnOnce(Option<Arc<[FinishedProof<C>]>>) -> JobResult<C>) {
        let Some(JobState { circuit, workload, completer, submitted, partitions }) = self.jobs.remove(&job) else {
            return;
        };
        let ended = self.now();
        let report = |(index, p): (u32, &PartitionState<C>)| {
            let mut times = p.times;
            if let Some(phase) = p.phase {
                times.add(phase, ended.saturating_sub(p.since));
            }
            let &PartitionState { syntheses, failures, device, .. } = p;
            PartitionReport { index, syntheses, failures, device, proved: p.proof.is_some(), times }
        };
        let reports = (0..).zip(&partitions).map(report).collect();
        let report = Arc::new(JobReport { job, circuit, submitted, ended, partitions: reports });
        let result = result(partitions.into_iter().map(|p| p.proof).collect());
        *match &result {
            Ok(_) => &mut self.totals.jobs_completed,
            Err(JobError::Cancelled) => &mut self.totals.jobs_cancelled,
            Err(JobError::Refused(_) | JobError::Invalid(_)) => &mut self.totals.jobs_refused,
            Err(_) => &mut self.totals.jobs_failed,
        } += 1;
        if let Some(telemetry) = &self.telemetry {
            let event = match &result {
                Ok(_) => JobEvent::Completed,
                Err(JobError::Cancelled) => JobEvent::Cancelled,
                Err(error) => JobEvent::Failed { cause: error.told(&self.circuit_name(circuit)) },
            };
            telemetry.mark(job, ended, event);
        }
        self.answer(completer, Ended { result, report: Some(report) });
        // Somebody else's code.
        self.call(Lane::Runtime, None, Purpose::Errand, move || {
            drop(workload);
            Outcome::Nothing
        });
    }
}
