//! Cancelling, and callers that vanish.

use std::time::Duration;

use cuzk_server::jobs::{Abandoned, Ending, JobError, JobState, Waited};
use tokio::task::JoinSet;
use tonic::Code;

use super::{Rig, client, until, window};
use crate::fake::FakeOptions;

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_cancelled_at_any_stage() {
    let rig = Rig::new(FakeOptions::default());
    let running = rig.submit(window("", "slow 1")).await;
    until("it runs", || rig.jobs.look().in_progress() == 1).await;
    let queued = rig.submit(window("", "slow 2")).await;
    let behind = rig.submit(window("", "quick")).await;
    assert!(rig.jobs.cancel(&queued.job).await.unwrap());
    assert_eq!(rig.end(&queued.job).await.ending, Ending::Cancelled);
    assert_eq!(rig.jobs.job(&behind.job).await.unwrap().position, 0);
    assert!(rig.jobs.cancel(&running.job).await.unwrap());
    // What it held is free.
    assert!(matches!(rig.end(&behind.job).await.ending, Ending::Completed { .. }));
    for job in [&running.job, &queued.job, &behind.job] {
        assert!(!rig.jobs.cancel(job).await.unwrap());
    }
    let error = rig.jobs.cancel("00000000-1").await.unwrap_err();
    assert!(matches!(&error, JobError::Unknown(unknown) if unknown.0 == "00000000-1"));
    assert_eq!(error.code(), Code::NotFound);
    let look = rig.jobs.look();
    assert_eq!((look.cancelled(), look.completed(), look.retained), (2, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_holds_after_a_restart_and_is_told_once() {
    let rig = Rig::new(FakeOptions::default());
    let mut ids = Vec::new();
    for i in 0..10 {
        ids.push(rig.submit(window("", &format!("slow {i}"))).await.job);
    }
    let mut tasks = JoinSet::new();
    for id in ids.iter().chain(&ids).chain(&ids) {
        let (jobs, id) = (rig.jobs.clone(), id.clone());
        tasks.spawn(async move { jobs.cancel(&id).await.unwrap() });
    }
    let told = tasks.join_all().await.into_iter().filter(|was_running| *was_running).count();
    assert_eq!(told, 10);
    let rig = rig.reopen(FakeOptions::default());
    assert_eq!(rig.jobs.look().resumed, 0);
    for id in ids {
        assert_eq!(rig.jobs.job(&id).await.unwrap().state, JobState::Cancelled);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_vanishes_wastes_nothing() {
    let rig = Rig::new(FakeOptions { partition_time: Duration::from_millis(1), ..FakeOptions::default() });
    let job = rig.submit(window("w", "slow")).await.job;
    let vanished = tokio::time::timeout(Duration::from_millis(20), rig.jobs.wait(&job, None)).await;
    assert!(vanished.is_err());
    let retry = rig.submit(window("w", "slow")).await;
    assert_eq!((retry.joined, &retry.job), (true, &job));
    assert!(matches!(rig.end(&job).await.ending, Ending::Completed { .. }));
    assert_eq!(rig.jobs.look().waiting, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_jobs_are_cancelled_if_that_is_wanted() {
    let rig = Rig::with(FakeOptions::default(), |options| options.limits.abandoned = Abandoned::Cancel);
    let job = rig.submit(window("w", "slow")).await.job;
    // A caller whose time is over has not vanished.
    assert_eq!(rig.jobs.wait(&job, Some(Duration::from_millis(10))).await.unwrap(), Waited::StillRunning);
    let (jobs, id) = (rig.jobs.clone(), job.clone());
    let stays = tokio::spawn(async move { jobs.wait(&id, None).await.unwrap() });
    until("it waits", || rig.jobs.look().waiting == 1).await;
    assert!(tokio::time::timeout(Duration::from_millis(10), rig.jobs.wait(&job, None)).await.is_err());
    // One is still there.
    assert_eq!(rig.jobs.wait(&job, Some(Duration::from_millis(10))).await.unwrap(), Waited::StillRunning);
    stays.abort();
    assert!(stays.await.unwrap_err().is_cancelled());
    assert_eq!(rig.end(&job).await.ending, Ending::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_that_nobody_waits_for_is_whole_or_nothing() {
    let rig = Rig::new(FakeOptions { workers: 4, ..FakeOptions::default() });
    for i in 0..60u64 {
        let name = client("c");
        let submission = rig.jobs.submit(window(&format!("w {i}"), "x"), &name);
        // Left at any moment.
        drop(tokio::time::timeout(Duration::from_micros(i * 200), submission).await);
    }
    until("all have ended", || rig.jobs.look().retained == 0).await;
    let look = rig.jobs.look();
    assert_eq!(look.journal.unfinished, 0);
    assert_eq!(look.completed(), look.journal.ended);
    assert_eq!(look.completed(), 60);
}
