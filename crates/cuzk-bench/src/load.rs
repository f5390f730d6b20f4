//! Asking for proofs, some at a time, and what becomes of each.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cuzk_proto::{
    Client, ClientError, Code,
    v1::{AwaitProofResponse, await_proof_response::Status},
};
use tokio::task::JoinSet;

use crate::{
    failure::{Class, Failure, class_of},
    statement::Work,
    stop::{CLOSING, Signal, Stop},
};

/// What became of one proof.
#[derive(Debug)]
pub(crate) struct Done {
    /// From the submission to the answer, as its caller saw it.
    pub(crate) elapsed: Duration,
    pub(crate) end: Result<AwaitProofResponse, ClientError>,
}

impl Done {
    /// The proof, if there is one.
    pub(crate) fn proved(&self) -> Option<&AwaitProofResponse> {
        self.end.as_ref().ok().filter(|end| end.status() == Status::Completed)
    }

    /// Milliseconds from the first synthesis to the end, as the daemon says.
    pub(crate) const fn prove_ms(end: &AwaitProofResponse) -> u64 {
        end.total_ms.saturating_sub(end.queue_wait_ms)
    }

    /// What it is called in a line.
    pub(crate) fn line(&self) -> String {
        let seconds = self.elapsed.as_secs_f64();
        match &self.end {
            Ok(end) if end.status() == Status::Completed => {
                let unverified = if end.verified { "" } else { ", not verified by the daemon" };
                let (prove, queue) = (Self::prove_ms(end), end.queue_wait_ms);
                format!("COMPLETED — {seconds:.1}s (prove={prove} ms, queue={queue} ms){unverified}")
            }
            Ok(end) => format!("{} — {seconds:.1}s: {}", end.status().as_str_name(), end.error_message),
            Err(error) => format!("FAILED — {seconds:.1}s: {error}"),
        }
    }

    /// Why nothing more is asked for after it: see [`Cut::Gone`].
    pub(crate) fn gone(&self) -> Option<Cut> {
        let error = self.end.as_ref().err()?;
        let gone = matches!(error, ClientError::Connect { .. } | ClientError::Lost { .. })
            || error.code() == Some(Code::Unavailable);
        gone.then(|| Cut::Gone(error.to_string()))
    }

    /// Why it counts as a failure.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match &self.end {
            // An implementation that says nothing of verification is not one that failed it, but whoever counts on a
            // verified proof must hear of it.
            Ok(end) if end.status() == Status::Completed && !end.verified => {
                Some(Failure::new(Class::Verification, "the daemon does not say that it verified the proof"))
            }
            Ok(end) if end.status() == Status::Completed => None,
            Ok(end) => {
                let status = end.status().as_str_name();
                Some(Failure::new(Class::Device, format!("the proof ended as {status}: {}", end.error_message)))
            }
            Err(error) => Some(Failure::new(class_of(error), error)),
        }
    }
}

/// Why a measurement ended before all was asked for.
#[derive(Debug)]
pub(crate) enum Cut {
    /// A signal asked for it.
    Asked(Signal),
    /// The daemon was not there for as long as a client waits for one. Asking on would wait as long for each proof.
    Gone(String),
}

/// Who asks: hands in, waits, and takes back what is under way when it is interrupted.
#[derive(Clone)]
pub(crate) struct Asker {
    client: Client,
    /// Part of all names of requests, so that no two runs share work.
    run: u64,
    limit: Duration,
    under_way: Arc<Mutex<BTreeSet<String>>>,
}

impl Asker {
    pub(crate) fn new(client: Client, limit: Duration) -> Self {
        let run = RandomState::new().hash_one("a run of the bench");
        Self { client, run, limit, under_way: Arc::default() }
    }

    /// Has one proof made. The number is part of its name.
    pub(crate) async fn ask(&self, work: &Work, number: u64) -> Done {
        let started = Instant::now();
        let end = self.prove(work, number).await;
        Done { elapsed: started.elapsed(), end }
    }

    async fn prove(&self, work: &Work, number: u64) -> Result<AwaitProofResponse, ClientError> {
        let mut request = work.request.clone();
        request.request_id = format!("bench-{:016x}-{}-{number}", self.run, work.kind.name());
        let job = self.client.submit(&request).await?.job_id;
        // It can be 200 MB.
        drop(request);
        let under_way = || self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way().insert(job.clone());
        let end = self.client.wait(&job, Some(self.limit)).await;
        under_way().remove(&job);
        if matches!(end, Err(ClientError::Deadline { .. })) {
            // Nobody waits for it any more. Where that fails too, the time-out is what counts.
            let _ = self.client.cancel(&job).await;
        }
        end
    }

    /// Cancels what is under way.
    pub(crate) async fn take_back(&self) {
        let jobs = std::mem::take(&mut *self.under_way.lock().unwrap_or_else(PoisonError::into_inner));
        let mut calls = JoinSet::new();
        for job in jobs {
            let client = self.client.clone();
            calls.spawn(async move { client.cancel(&job).await });
        }
        // The program ends in any case.
        let _ = tokio::time::timeout(CLOSING, calls.join_all()).await;
    }
}

/// Asks for the same proof `count` times, at most `concurrency` at a time, and tells of each as it completes. When it
/// shall stop, it takes back what is under way; when the daemon is gone, it waits for what is under way. What was done
/// by then is returned, and why that is not all.
pub(crate) async fn batch(
    asker: &Asker,
    work: &Arc<Work>,
    (count, concurrency): (u32, u32),
    stop: &Stop,
    mut tell: impl FnMut(&Done),
) -> Result<(Vec<Done>, Option<Cut>), Failure> {
    let mut tasks = JoinSet::new();
    let mut all = Vec::new();
    let mut next = 0;
    let mut cut = None;
    loop {
        while cut.is_none() && next < count && (tasks.len() as u64) < u64::from(concurrency) {
            let (asker, work, number) = (asker.clone(), work.clone(), u64::from(next));
            tasks.spawn(async move { asker.ask(&work, number).await });
            next += 1;
        }
        tokio::select! {
            done = tasks.join_next() => match done {
                None => return Ok((all, cut)),
                Some(Ok(done)) => {
                    tell(&done);
                    cut = cut.or_else(|| done.gone());
                    all.push(done);
                }
                Some(Err(error)) => return Err(Failure::new(Class::Device, format!("a task of the bench: {error}"))),
            },
            signal = stop.asked() => {
                tasks.shutdown().await;
                asker.take_back().await;
                return Ok((all, Some(Cut::Asked(signal))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cuzk_proto::Code;

    use super::*;

    fn done(millis: u64, end: Result<AwaitProofResponse, ClientError>) -> Done {
        Done { elapsed: Duration::from_millis(millis), end }
    }

    #[test]
    fn lines_and_classes() {
        let mut end = AwaitProofResponse { total_ms: 74_144, queue_wait_ms: 300, ..AwaitProofResponse::default() };
        end.set_status(Status::Completed);
        end.verified = true;
        let proved = done(92_700, Ok(end.clone()));
        assert_eq!(proved.line(), "COMPLETED — 92.7s (prove=73844 ms, queue=300 ms)");
        assert!(proved.failure().is_none() && proved.proved().is_some());

        end.verified = false;
        let unverified = done(92_700, Ok(end.clone()));
        assert!(unverified.line().ends_with("queue=300 ms), not verified by the daemon"));
        assert_eq!(unverified.failure().unwrap().class, Class::Verification);

        end.set_status(Status::Failed);
        end.error_message = "out of luck".into();
        let failed = done(1_240, Ok(end));
        assert_eq!(failed.line(), "FAILED — 1.2s: out of luck");
        assert_eq!(failed.failure().unwrap().class, Class::Device);
        assert!(failed.proved().is_none());

        let refusal = |code| {
            let error = ClientError::Refused { call: "SubmitProof", code, message: "no".into() };
            done(0, Err(error)).failure().unwrap().class
        };
        assert_eq!(refusal(Code::InvalidArgument), Class::Input);
        assert_eq!(refusal(Code::FailedPrecondition), Class::Key);
        assert_eq!(refusal(Code::ResourceExhausted), Class::Memory);
        assert_eq!(refusal(Code::Unauthenticated), Class::Usage);
        assert_eq!(refusal(Code::Unavailable), Class::Device);
    }
}
