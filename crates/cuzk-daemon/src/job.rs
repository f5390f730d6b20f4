//! A proof under way: between the engine's job and the server's.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use cuzk_curve::Bls12;
use cuzk_engine::{JobError, JobHandle, JobReport, JobResult, Phase, ProgressStage};
use cuzk_scheduler::FailureCause;
use cuzk_server::prover::{Failure, News, Observer, Outcome, Proved, Running, Step, Times};

/// Where it is.
enum State {
    /// The engine does not know its circuit yet.
    Waiting,
    /// The engine has it.
    Submitted(JobHandle<Bls12>),
    Ended,
}

/// A proof under way.
pub(crate) struct Job {
    name: String,
    circuit: String,
    observer: Arc<dyn Observer>,
    started: Instant,
    state: Mutex<State>,
    /// Whether its owner does not want it any more. An engine that stops cancels what it has, too, and that is no end
    /// of the job.
    unwanted: AtomicBool,
}

impl Job {
    pub(crate) fn new(name: String, circuit: String, observer: Arc<dyn Observer>) -> Arc<Self> {
        Arc::new(Self {
            name,
            circuit,
            observer,
            started: Instant::now(),
            state: Mutex::new(State::Waiting),
            unwanted: AtomicBool::new(false),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands it to the engine, unless it has ended (been cancelled) meanwhile. `submit` only sends a message.
    pub(crate) fn submit(&self, submit: impl FnOnce() -> JobHandle<Bls12>) -> Option<JobHandle<Bls12>> {
        let mut state = self.lock();
        if !matches!(*state, State::Waiting) {
            return None;
        }
        let handle = submit();
        *state = State::Submitted(handle.clone());
        Some(handle)
    }

    /// Something happened to a partition. Held under the lock, so that nothing comes after the end.
    pub(crate) fn tell(&self, partition: u32, stage: &ProgressStage) {
        let step = match stage {
            ProgressStage::Synthesizing => Step::Synthesizing,
            ProgressStage::Synthesized => Step::Waiting,
            ProgressStage::Preparing(device) => Step::Preparing(device.0.into()),
            ProgressStage::Proving(device) => Step::Proving(device.0.into()),
            ProgressStage::Finishing(_) => Step::Finishing,
            ProgressStage::Proved => Step::Proved,
            ProgressStage::Failed { cause } => Step::Failed(cause.clone()),
            // Stages that there may be one day are no news yet.
            _ => return,
        };
        let state = self.lock();
        if !matches!(*state, State::Ended) {
            self.observer.news(News { partition, step });
        }
    }

    /// It waits, and this is why.
    pub(crate) fn tell_cause(&self, cause: &str) {
        let state = self.lock();
        if matches!(*state, State::Waiting) {
            self.observer.news(News { partition: 0, step: Step::Failed(cause.to_owned()) });
        }
    }

    /// Whether nothing is to be done for it any more.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(*self.lock(), State::Ended)
    }

    /// It has ended, if it had not.
    pub(crate) fn end(&self, outcome: Outcome) {
        let before = std::mem::replace(&mut *self.lock(), State::Ended);
        if !matches!(before, State::Ended) {
            self.observer.ended(outcome);
        }
    }

    /// The engine is done with it. `device` names a device by its number.
    pub(crate) fn engine_ended(
        &self,
        result: JobResult<Bls12>,
        report: Option<&JobReport>,
        device: impl Fn(u16) -> String,
    ) {
        let outcome = match result {
            Ok(proofs) => {
                let last = report.and_then(|report| report.partitions.iter().rev().find_map(|p| p.device));
                Ok(Proved {
                    proof: proofs.iter().flat_map(|p| p.proof.to_bytes()).collect(),
                    device: last.map(|id| device(id.0)).unwrap_or_default(),
                    times: report.map(|report| self.times(report)).unwrap_or_default(),
                })
            }
            Err(JobError::Cancelled) if !self.unwanted.load(Ordering::Relaxed) => Err(Failure::Stopped),
            Err(error) => Err(self.failure(&error)),
        };
        self.end(outcome);
    }

    fn failure(&self, error: &JobError) -> Failure {
        match error {
            JobError::Cancelled => Failure::Cancelled,
            JobError::Stopped => Failure::Stopped,
            JobError::Failed(FailureCause::Deadline { .. }) => Failure::Deadline,
            other => Failure::Failed(other.told(&self.circuit)),
        }
    }

    fn times(&self, report: &JobReport) -> Times {
        let sum = report.times();
        let first = report.partitions.iter().map(|p| p.times.of(Phase::Admission)).min().unwrap_or(Duration::ZERO);
        // What the engine does not know: the time until its circuit was known.
        let before = self.started.elapsed().saturating_sub(report.duration());
        Times {
            queue: before + first,
            key: sum.of(Phase::Key),
            synthesis: sum.of(Phase::Synthesis),
            device: sum.of(Phase::Device),
            finish: sum.of(Phase::Finish),
        }
    }
}

impl Running for Job {
    fn cancel(&self) {
        self.unwanted.store(true, Ordering::Relaxed);
        let handle = match &*self.lock() {
            State::Submitted(handle) => Some(handle.clone()),
            State::Waiting | State::Ended => None,
        };
        match handle {
            // The engine says when it has let go of it.
            Some(handle) => handle.cancel(),
            None => self.end(Err(Failure::Cancelled)),
        }
    }
}
