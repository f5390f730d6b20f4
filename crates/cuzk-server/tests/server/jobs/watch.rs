//! Watching jobs.

use std::time::Duration;

use cuzk_proto::v1::{ProofKind, proof_progress::State};
use tokio_stream::StreamExt;

use super::{Rig, until, window};
use crate::fake::{FakeOptions, request};

#[tokio::test(flavor = "multi_thread")]
async fn news_lead_from_the_present_to_the_end() {
    let rig = Rig::new(FakeOptions { partition_time: Duration::from_millis(40), ..FakeOptions::default() });
    let running = rig.submit(window("", "slow")).await;
    until("it runs", || rig.jobs.look().in_progress() == 1).await;
    let job = rig.submit(request(ProofKind::PorepSealCommit, "", b"x")).await.job;
    let mut news = rig.jobs.watch(&job).await.unwrap();
    let first = news.next().await.unwrap();
    assert_eq!((first.state(), first.queue_position, first.partitions), (State::Queued, 0, 3));
    assert_eq!(first.job_id, job);
    rig.jobs.cancel(&running.job).await.unwrap();
    let rest: Vec<_> = news.collect().await;
    let (last, between) = rest.split_last().unwrap();
    assert_eq!((last.state(), last.partitions_done), (State::Completed, 3));
    assert!(between.len() > 3, "{between:?}");
    assert!(between.iter().all(|progress| progress.state() == State::Running));
    assert!(rest.is_sorted_by_key(|progress| progress.partitions_done));
    assert!(between.is_sorted_by_key(|progress| progress.elapsed_ms));
    assert!(between.iter().any(|progress| progress.news == "partition 1: proving on device 0"), "{between:?}");
    // What has ended is told at once.
    let told: Vec<_> = rig.jobs.watch(&job).await.unwrap().collect().await;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].state(), told[0].elapsed_ms), (State::Completed, last.elapsed_ms));
    assert!(rig.jobs.watch("nothing").await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_slowly_or_not_at_all_is_not_waited_for() {
    let rig = Rig::new(FakeOptions::default());
    let mut watchers = Vec::new();
    let mut jobs = Vec::new();
    for i in 0..20 {
        let job = rig.submit(request(ProofKind::PorepSealCommit, "", format!("{i}").as_bytes())).await.job;
        for _ in 0..10 {
            watchers.push(rig.jobs.watch(&job).await.unwrap());
        }
        jobs.push(job);
    }
    for job in &jobs {
        rig.end(job).await;
    }
    assert_eq!((rig.jobs.look().retained, rig.jobs.look().waiting), (0, 200));
    let states: Vec<_> = watchers.pop().unwrap().map(|progress| progress.state()).collect().await;
    assert_eq!(states, [State::Completed]);
    drop(watchers);
    assert_eq!(rig.jobs.look().waiting, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_told_with_their_reason() {
    let rig = Rig::new(FakeOptions { partition_time: Duration::from_millis(50), ..FakeOptions::default() });
    let job = rig.submit(window("", "fail")).await.job;
    let news: Vec<_> = rig.jobs.watch(&job).await.unwrap().collect().await;
    let last = news.last().unwrap();
    assert_eq!((last.state(), last.error_message.as_str()), (State::Failed, "partition 0 failed as asked"));
}
