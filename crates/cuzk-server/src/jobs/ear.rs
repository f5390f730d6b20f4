//! What hears of proofs, and hands on what callers may know.

use std::{sync::Weak, time::Instant};

use super::{
    Ending,
    inner::{Inner, now_ms},
};
use crate::{
    prover::{Failure, News, Observer, Outcome, Step},
    redact,
};

/// Hears what becomes of a job.
pub(crate) struct Ear {
    pub(crate) jobs: Weak<Inner>,
    pub(crate) job: String,
}

impl Ear {
    /// A cause as callers hear it; what they do not is in the log, under the job's name.
    fn presentable(&self, cause: &str) -> String {
        let shown = redact::for_callers(cause);
        if *shown == *cause {
            return shown.into_owned();
        }
        tracing::warn!(job = self.job, cause, "what callers are told of this has no paths");
        format!("{shown}; the log has more under the job's id")
    }
}

impl Observer for Ear {
    fn news(&self, mut news: News) {
        let Some(jobs) = self.jobs.upgrade() else { return };
        if let Step::Failed(cause) = &mut news.step {
            *cause = self.presentable(cause);
        }
        tracing::debug!(job = self.job, partition = news.partition, "{}", news.step);
        jobs.state().news(&self.job, &news, Instant::now(), now_ms());
    }

    fn ended(&self, outcome: Outcome) {
        let Some(jobs) = self.jobs.upgrade() else { return };
        let ending = match outcome {
            Ok(proved) => Ending::Completed { proof: proved.proof, device: proved.device, times: proved.times },
            Err(Failure::Cancelled) => Ending::Cancelled,
            Err(Failure::Deadline) => Ending::Failed(Failure::Deadline.to_string()),
            Err(Failure::Failed(cause)) => Ending::Failed(self.presentable(&cause)),
            Err(Failure::Stopped) => {
                if let Some(live) = jobs.state().jobs.get(&self.job) {
                    live.sender.send_modify(|snapshot| snapshot.stopped = true);
                }
                return;
            }
        };
        // Nobody waits here for the disk; the journal's thread goes on with it.
        drop(jobs.conclude(&self.job, ending));
    }
}
