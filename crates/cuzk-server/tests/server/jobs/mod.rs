//! Jobs, without a network.

mod cancel;
mod disk;
mod load;
mod restart;
mod rules;
mod watch;

use std::{path::Path, sync::Arc, time::Duration};

use cuzk_proto::v1::{ProofKind, SubmitProofRequest};
use cuzk_server::jobs::{ClientName, Ended, Ending, Jobs, JobsOptions, Submitted, Waited};
use tempfile::TempDir;

use crate::fake::{FakeOptions, FakeProver, request};

/// Jobs over a fake prover, in a directory of their own.
struct Rig {
    directory: TempDir,
    prover: Arc<FakeProver>,
    jobs: Jobs,
}

impl Rig {
    fn new(fake: FakeOptions) -> Self {
        Self::with(fake, |_| {})
    }

    fn with(fake: FakeOptions, set: impl FnOnce(&mut JobsOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = JobsOptions::new(directory.path());
        set(&mut options);
        let prover = FakeProver::start(fake);
        let jobs = Jobs::open(options, prover.clone()).unwrap();
        Self { directory, prover, jobs }
    }

    /// A new life in the same directory, after the old one was drained or not.
    fn reopen(self, fake: FakeOptions) -> Self {
        let Self { directory, prover, jobs } = self;
        drop((jobs, prover));
        let (prover, jobs) = open(directory.path(), fake);
        Self { directory, prover, jobs }
    }

    async fn submit(&self, request: SubmitProofRequest) -> Submitted {
        self.jobs.submit(request, &client("anybody")).await.unwrap()
    }

    async fn end(&self, job: &str) -> Ended {
        end(&self.jobs, job).await
    }
}

/// Opens jobs; their journal may be closing still, on another thread.
fn open(directory: &Path, fake: FakeOptions) -> (Arc<FakeProver>, Jobs) {
    let prover = FakeProver::start(fake);
    for _ in 0..200 {
        match Jobs::open(JobsOptions::new(directory), prover.clone()) {
            Ok(jobs) => return (prover, jobs),
            Err(cuzk_server::jobs::OpenError::Journal(cuzk_journal::Error::Locked { .. })) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the journal stays locked");
}

async fn end(jobs: &Jobs, job: &str) -> Ended {
    match jobs.wait(job, Some(Duration::from_secs(60))).await.unwrap() {
        Waited::Ended(ended) => ended,
        other => panic!("{job}: {other:?}"),
    }
}

fn proof(ended: &Ended) -> &[u8] {
    match &ended.ending {
        Ending::Completed { proof, .. } => proof,
        other => panic!("{other:?}"),
    }
}

fn client(name: &str) -> ClientName {
    ClientName(name.to_owned())
}

/// A WindowPoSt, which is one partition.
fn window(id: &str, input: &str) -> SubmitProofRequest {
    request(ProofKind::WindowPostPartition, id, input.as_bytes())
}

/// Waits until something holds, which takes a moment.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..4000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never holds that {what}");
}
