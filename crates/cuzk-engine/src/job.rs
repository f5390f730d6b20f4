//! Jobs as their owner sees them: options, a handle to wait for, and how they end.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use cuzk_curve::Curve;
use cuzk_groth16::FinishedProof;
use cuzk_scheduler::{EventError, FailureCause, JobId, Priority, Refusal};

use crate::message::Message;

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

/// Called with a job's result.
pub(crate) type Callback<C> = Box<dyn FnOnce(JobResult<C>) + Send>;

struct State<C: Curve> {
    result: Option<JobResult<C>>,
    wakers: Vec<Waker>,
    callbacks: Vec<Callback<C>>,
}

struct Shared<C: Curve> {
    state: Mutex<State<C>>,
    ended: Condvar,
}

impl<C: Curve> Shared<C> {
    /// No panic can happen while this is locked.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job that was submitted. It goes on when this is dropped; every way to wait for it can be used from several
/// threads. As a [`Future`] it works with any executor.
#[must_use = "the proofs come out of the handle"]
pub struct JobHandle<C: Curve> {
    id: JobId,
    shared: Arc<Shared<C>>,
    engine: mpsc::Sender<Message<C>>,
}

impl<C: Curve> Clone for JobHandle<C> {
    fn clone(&self) -> Self {
        Self { id: self.id, shared: Arc::clone(&self.shared), engine: self.engine.clone() }
    }
}

impl<C: Curve> fmt::Debug for JobHandle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobHandle({}, ended: {})", self.id, self.try_result().is_some())
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
        let mut state = self.shared.lock();
        loop {
            if let Some(result) = &state.result {
                return result.clone();
            }
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for its end, but not longer than this; `None` if it goes on.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<JobResult<C>> {
        let end = Instant::now() + timeout;
        let mut state = self.shared.lock();
        while state.result.is_none() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.result.clone()
    }

    /// The result, if it has ended.
    pub fn try_result(&self) -> Option<JobResult<C>> {
        self.shared.lock().result.clone()
    }

    /// Has a function called with the result: on a thread of the engine's that does nothing else, or at once if it
    /// has ended. It must not shut the engine down, which waits for it.
    pub fn on_end(&self, callback: impl FnOnce(JobResult<C>) + Send + 'static) {
        let mut state = self.shared.lock();
        match state.result.clone() {
            None => state.callbacks.push(Box::new(callback)),
            Some(result) => {
                drop(state);
                callback(result);
            }
        }
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
        let mut state = self.shared.lock();
        if let Some(result) = &state.result {
            return Poll::Ready(result.clone());
        }
        if !state.wakers.iter().any(|w| w.will_wake(context.waker())) {
            state.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

/// The engine's side of a handle. Dropped without a result, it says that the engine has stopped.
pub(crate) struct Completer<C: Curve>(Arc<Shared<C>>);

/// A handle and its other side.
pub(crate) fn handle<C: Curve>(id: JobId, engine: mpsc::Sender<Message<C>>) -> (JobHandle<C>, Completer<C>) {
    let state = State { result: None, wakers: Vec::new(), callbacks: Vec::new() };
    let shared = Arc::new(Shared { state: Mutex::new(state), ended: Condvar::new() });
    (JobHandle { id, shared: Arc::clone(&shared), engine }, Completer(shared))
}

impl<C: Curve> Completer<C> {
    /// Gives the result to everybody who waits, and returns the functions to be called with it.
    pub(crate) fn complete(self, result: JobResult<C>) -> Vec<Callback<C>> {
        self.set(result)
    }

    fn set(&self, result: JobResult<C>) -> Vec<Callback<C>> {
        let (wakers, callbacks) = {
            let mut state = self.0.lock();
            if state.result.is_some() {
                return Vec::new();
            }
            state.result = Some(result);
            (std::mem::take(&mut state.wakers), std::mem::take(&mut state.callbacks))
        };
        self.0.ended.notify_all();
        for waker in wakers {
            // An executor's code: its panic is not the engine's.
            if catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a waker panicked");
            }
        }
        callbacks
    }
}

impl<C: Curve> Drop for Completer<C> {
    fn drop(&mut self) {
        for callback in self.set(Err(JobError::Stopped)) {
            callback(Err(JobError::Stopped));
        }
    }
}
