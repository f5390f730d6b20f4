//! Waiting for jobs and watching them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use cuzk_proto::v1::{ProofProgress, proof_progress};
use tokio::sync::watch;
use tokio_stream::{Stream, wrappers::WatchStream};

use super::{Ending, JobState, Waited, inner::Inner, inner::now_ms, options::Abandoned, state::Snapshot};

/// Counts a caller for as long as it is there.
struct Present(Arc<Inner>);

impl Present {
    fn new(jobs: Arc<Inner>) -> Self {
        jobs.state().waiting += 1;
        Self(jobs)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

/// A caller that waits for a job, and may vanish.
struct Waiter {
    present: Present,
    job: String,
    vanished: bool,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let jobs = &self.present.0;
        let abandoned = {
            let mut state = jobs.state();
            let Some(live) = state.jobs.get_mut(&self.job) else { return };
            live.waiters -= 1;
            let abandoned = self.vanished && live.waiters == 0 && !live.claimed;
            // A server that stops sends its callers away.
            abandoned && !state.draining && state.limits.abandoned == Abandoned::Cancel
        };
        if abandoned {
            tracing::info!(job = self.job, "nobody waits for the job any more");
            drop(jobs.conclude(&self.job, Ending::Cancelled));
        }
    }
}

/// Waits for a job that is in memory; nothing if it is not.
pub(crate) async fn wait(jobs: &Arc<Inner>, job: &str, timeout: Option<Duration>) -> Option<Waited> {
    let mut receiver = {
        let mut state = jobs.state();
        let live = state.jobs.get_mut(job)?;
        live.waiters += 1;
        live.sender.subscribe()
    };
    let mut waiter = Waiter { present: Present::new(jobs.clone()), job: job.to_owned(), vanished: true };
    let last = async { receiver.wait_for(Snapshot::is_last).await.map(|snapshot| snapshot.ended.clone()) };
    let ended = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, last).await.ok(),
        None => Some(last.await),
    };
    waiter.vanished = false;
    Some(match ended {
        None => Waited::StillRunning,
        Some(Ok(Some(ended))) => Waited::Ended(ended.as_ref().clone()),
        // The prover stopped, or the jobs are closed.
        Some(Ok(None) | Err(_)) => Waited::Stopping,
    })
}

/// News of a job. A state that nobody took when the next one came is not told.
pub(crate) struct Watch {
    job: String,
    accepted_ms: u64,
    partitions: u32,
    snapshots: Option<WatchStream<Snapshot>>,
    present: Present,
}

impl Watch {
    pub(crate) fn new(
        jobs: Arc<Inner>,
        job: &str,
        accepted_ms: u64,
        partitions: u32,
        receiver: watch::Receiver<Snapshot>,
    ) -> Self {
        let snapshots = Some(WatchStream::new(receiver));
        Self { job: job.to_owned(), accepted_ms, partitions, snapshots, present: Present::new(jobs) }
    }

    fn progress(&self, snapshot: &Snapshot) -> ProofProgress {
        let (elapsed, error) = match &snapshot.ended {
            None => (Duration::from_millis(now_ms().saturating_sub(self.accepted_ms)), String::new()),
            Some(ended) => match &ended.ending {
                Ending::Failed(error) => (ended.total, error.clone()),
                Ending::Completed { .. } | Ending::Cancelled => (ended.total, String::new()),
            },
        };
        let queued = snapshot.state == JobState::Queued;
        ProofProgress {
            job_id: self.job.clone(),
            state: snapshot.state.on_the_wire().into(),
            partitions: self.partitions,
            partitions_done: snapshot.done,
            news: snapshot.news.clone(),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            queue_position: if queued { self.present.0.state().position(&self.job) } else { 0 },
            error_message: error,
        }
    }
}

impl Stream for Watch {
    type Item = ProofProgress;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ProofProgress>> {
        let Some(snapshots) = &mut self.snapshots else { return Poll::Ready(None) };
        let snapshot = match Pin::new(snapshots).poll_next(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {
                self.snapshots = None;
                return Poll::Ready(None);
            }
            Poll::Ready(Some(snapshot)) => snapshot,
        };
        if snapshot.is_last() {
            self.snapshots = None;
        }
        Poll::Ready(Some(self.progress(&snapshot)))
    }
}

impl JobState {
    /// As `cuzk.v1` has it.
    pub fn on_the_wire(self) -> proof_progress::State {
        match self {
            Self::Queued => proof_progress::State::Queued,
            Self::Running => proof_progress::State::Running,
            Self::Completed => proof_progress::State::Completed,
            Self::Failed => proof_progress::State::Failed,
            Self::Cancelled => proof_progress::State::Cancelled,
        }
    }
}
