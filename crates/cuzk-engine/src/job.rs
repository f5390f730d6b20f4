//! Jobs as their owner sees them: options, a handle to wait for, and how they end.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Poll},
    time::Duration,
};

use cuzk_curve::Curve;
use cuzk_groth16::FinishedProof;
use cuzk_scheduler::{EventError, FailureCause, JobId, Priority, Refusal};

use crate::{
    answer::{self, Answer, Completer},
    message::Message,
    report::JobReport,
};

/// How a job is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOptions {
    /// How urgent it is.
    pub priority: Priority,
    /// After how long it fails if it is not done; `None`: never.
    pub deadline: Option<Duration>,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self { priority: Priority::Normal, deadline: None }
    }
}

/// The verified proofs of a job's partitions, in their order; or why there are none.
pub type JobResult<C> = Result<Arc<[FinishedProof<C>]>, JobError>;

/// Why a job has no proofs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// It failed.
    #[error(transparent)]
    Failed(#[from] FailureCause),
    /// It was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
    /// It was not accepted.
    #[error("the job is refused: {0}")]
    Refused(Refusal),
    /// It contradicts itself or what the engine knows: no partitions, a circuit that is not registered.
    #[error("the job is not valid: {0}")]
    Invalid(#[from] EventError),
    /// It has more partitions than an engine keeps account of.
    #[error("the job has {given} partitions, the limit is {limit}")]
    TooManyPartitions {
        /// How many it has.
        given: u32,
        /// How many it may have.
        limit: u32,
    },
    /// The engine has stopped.
    #[error("the engine has stopped")]
    Stopped,
}

impl JobError {
    /// In words for whoever gave the job and knows none of the engine's numbers: its circuit by name, and the job not at
    /// all.
    pub fn told(&self, circuit: &str) -> String {
        match self {
            Self::Failed(FailureCause::Partition { partition, device, failures, fault }) => {
                let device = device.map_or_else(String::new, |device| format!(", {device}"));
                format!("partition {}: {fault} (failure {failures}{device})", partition.index)
            }
            Self::Failed(FailureCause::KeyLoad { pool, attempts, cause, .. }) => {
                format!("the key of {circuit} cannot be loaded to {pool} memory ({attempts} attempts): {cause}")
            }
            other => other.to_string(),
        }
    }
}

/// How a job ended: its result, and what each of its partitions took.
#[derive(Clone)]
pub(crate) struct Ended<C: Curve> {
    pub(crate) result: JobResult<C>,
    /// None for a job that the engine never had.
    pub(crate) report: Option<Arc<JobReport>>,
}

impl<C: Curve> From<JobError> for Ended<C> {
    fn from(error: JobError) -> Self {
        Self { result: Err(error), report: None }
    }
}

/// A job that was submitted. It goes on when this is dropped; every way to wait for it can be used from several
/// threads. As a [`Future`] it works with any executor.
#[must_use = "the proofs come out of the handle"]
pub struct JobHandle<C: Curve> {
    id: JobId,
    ended: Answer<Ended<C>>,
    engine: mpsc::Sender<Message<C>>,
}

impl<C: Curve> Clone for JobHandle<C> {
    fn clone(&self) -> Self {
        Self { id: self.id, ended: self.ended.clone(), engine: self.engine.clone() }
    }
}

impl<C: Curve> fmt::Debug for JobHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobHandle({}, ended: {})", self.id, self.ended.try_get().is_some())
    }
}

impl<C: Curve> JobHandle<C> {
    /// Its name, as in [`Progress`](crate::Progress).
    pub fn id(&self) -> JobId {
        self.id
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn wait(&self) -> JobResult<C> {
        self.ended.wait().result
    }

    /// Waits for its end, but not longer than this; `None` if it goes on.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<JobResult<C>> {
        self.ended.wait_timeout(timeout).map(|e| e.result)
    }

    /// The result, if it has ended.
    pub fn try_result(&self) -> Option<JobResult<C>> {
        self.ended.try_get().map(|e| e.result)
    }

    /// What each partition took, if the job has ended, however it did. `None` also for a job that never began: with
    /// too many partitions, or when the engine had stopped.
    pub fn report(&self) -> Option<Arc<JobReport>> {
        self.ended.try_get()?.report
    }

    /// Has a function called with the result: on a thread of the engine's that does nothing else, or at once if it
    /// has ended. It must not shut the engine down, which waits for it.
    pub fn on_end(&self, callback: impl FnOnce(JobResult<C>) + Send + 'static) {
        self.ended.on_set(move |ended| callback(ended.result));
    }

    /// The proofs are not wanted any more. What it holds is freed as soon as the kernels and syntheses under way end.
    pub fn cancel(&self) {
        // An engine that has stopped has ended all its jobs.
        let _stopped = self.engine.send(Message::Cancel { job: self.id });
    }
}

impl<C: Curve> Future for JobHandle<C> {
    type Output = JobResult<C>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.ended.poll_value(context).map(|e| e.result)
    }
}

/// A handle and its other side.
pub(crate) fn handle<C: Curve>(id: JobId, engine: mpsc::Sender<Message<C>>) -> (JobHandle<C>, Completer<Ended<C>>) {
    let (ended, completer) = answer::answer(|| JobError::Stopped.into());
    (JobHandle { id, ended, engine }, completer)
}
