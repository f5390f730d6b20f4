//! What is accepted, what is joined, what is served first.

use std::time::Duration;

use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use cuzk_server::jobs::{Ending, JobState, SubmitError};
use tokio::task::JoinSet;
use tonic::Code;

use super::{Rig, client, proof, window};
use crate::fake::{FakeOptions, proof_of, request};

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_an_id_and_an_input() {
    let rig = Rig::new(FakeOptions { workers: 8, ..FakeOptions::default() });
    let first = rig.submit(window("wdpost-1", "slow input")).await;
    assert!(!first.joined);
    let again = rig.submit(window("wdpost-1", "slow input")).await;
    assert_eq!((again.joined, &again.job), (true, &first.job));
    // Neither urgency nor deadline make it other work.
    let urgent = SubmitProofRequest { priority: Priority::Low.into(), ..window("wdpost-1", "slow input") };
    assert_eq!(rig.submit(urgent).await.job, first.job);
    let other_input = rig.submit(window("wdpost-1", "another")).await;
    let other_id = rig.submit(window("wdpost-2", "slow input")).await;
    let moved = rig.submit(SubmitProofRequest { sector_number: 2, ..window("wdpost-1", "slow input") }).await;
    let none = rig.submit(window("", "slow input")).await;
    let none_again = rig.submit(window("", "slow input")).await;
    let mut jobs = vec![first.job.clone(), other_input.job, other_id.job, moved.job, none.job, none_again.job];
    let made = rig.end(&first.job).await;
    assert_eq!(proof(&made), proof_of(&window("", "slow input"), 1));
    for job in &jobs {
        rig.end(job).await;
    }
    jobs.sort();
    jobs.dedup();
    assert_eq!(jobs.len(), 6);
    // What has ended is joined, too, also after it left the memory.
    let late = rig.submit(window("wdpost-1", "slow input")).await;
    assert_eq!((late.joined, &late.job, late.position), (true, &first.job, 0));
    assert_eq!(rig.end(&late.job).await, made);
    let look = rig.jobs.look();
    assert_eq!((look.joined, look.completed(), look.retained), (3, 6, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_or_was_cancelled_is_tried_anew() {
    let rig = Rig::new(FakeOptions::default());
    let failed = rig.submit(window("a", "fail")).await;
    let ended = rig.end(&failed.job).await;
    assert_eq!(ended.ending, Ending::Failed("partition 0 failed as asked".to_owned()));
    let again = rig.submit(window("a", "fail")).await;
    assert!(!again.joined && again.job != failed.job);
    let cancelled = rig.submit(window("b", "slow")).await;
    assert!(rig.jobs.cancel(&cancelled.job).await.unwrap());
    let again = rig.submit(window("b", "slow")).await;
    assert!(!again.joined && again.job != cancelled.job);
    // The first attempt's end is what it was.
    assert_eq!(rig.end(&failed.job).await, ended);
    let errors = rig.jobs.look().errors;
    assert!(errors.iter().any(|error| error.job == failed.job && error.text.contains("as asked")));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_one_job() {
    let rig = Rig::new(FakeOptions::default());
    let mut tasks = JoinSet::new();
    for i in 0..40 {
        let jobs = rig.jobs.clone();
        let request = window(&format!("work {}", i % 2), "the same");
        tasks.spawn(async move { jobs.submit(request, &client("c")).await.unwrap() });
    }
    let submitted = tasks.join_all().await;
    let mut jobs: Vec<_> = submitted.iter().map(|submitted| submitted.job.clone()).collect();
    jobs.sort();
    jobs.dedup();
    assert_eq!((jobs.len(), submitted.iter().filter(|submitted| submitted.joined).count()), (2, 38));
    for job in &jobs {
        rig.end(job).await;
    }
    // One input, under two names.
    assert_eq!(rig.prover.proved().into_values().collect::<Vec<_>>(), [2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_answered_with_numbers() {
    let rig = Rig::with(FakeOptions::default(), |options| {
        options.limits.max_queued = 4;
        options.limits.max_per_client = 3;
    });
    let (a, b) = (client("a"), client("b"));
    let running = rig.jobs.submit(window("", "slow"), &a).await.unwrap();
    super::until("it runs", || rig.jobs.look().in_progress() == 1).await;
    for _ in 0..2 {
        rig.jobs.submit(window("", "slow"), &a).await.unwrap();
    }
    let error = rig.jobs.submit(window("", "slow"), &a).await.unwrap_err();
    assert!(matches!(error, SubmitError::ClientFull { open: 3, limit: 3 }), "{error}");
    assert_eq!(error.code(), Code::ResourceExhausted);
    for _ in 0..2 {
        rig.jobs.submit(window("x", &format!("slow {:?}", std::time::Instant::now())), &b).await.unwrap();
    }
    let error = rig.jobs.submit(window("", "slow"), &b).await.unwrap_err();
    assert!(matches!(error, SubmitError::QueueFull { queued: 4, limit: 4 }), "{error}");
    assert_eq!(error.code(), Code::ResourceExhausted);
    // Joining takes no place.
    rig.jobs.cancel(&running.job).await.unwrap();
    super::until("the next runs", || rig.jobs.look().in_progress() == 1).await;
    let there = rig.jobs.submit(window("y", "slow y"), &b).await.unwrap();
    assert!(rig.jobs.submit(window("y", "slow y"), &b).await.unwrap().job == there.job);
    assert_eq!(rig.jobs.look().refused.limited, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_leave_nothing() {
    let rig = Rig::new(FakeOptions::default());
    let wrong = [
        (window("a", "invalid"), Code::InvalidArgument),
        (window("a", "unable"), Code::FailedPrecondition),
        (SubmitProofRequest { vanilla_proofs: Vec::new(), ..window("a", "") }, Code::InvalidArgument),
        (window(&"n".repeat(257), "x"), Code::InvalidArgument),
        (SubmitProofRequest { priority: 77, ..window("a", "x") }, Code::InvalidArgument),
    ];
    for (request, code) in wrong {
        let error = rig.jobs.submit(request, &client("c")).await.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let look = rig.jobs.look();
    assert_eq!((look.refused.invalid, look.refused.unable, look.retained), (4, 1, 0));
    assert_eq!((look.journal.unfinished, look.journal.ended), (0, 0));
    assert!(rig.jobs.list(10).await.unwrap().is_empty());
    assert!(!rig.submit(window("a", "x")).await.joined);
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_are_the_order_in_which_jobs_are_served() {
    let rig = Rig::new(FakeOptions { partition_time: Duration::from_millis(2), ..FakeOptions::default() });
    let first = rig.submit(window("", "slow")).await;
    super::until("it runs", || rig.jobs.look().in_progress() == 1).await;
    let mut expected = Vec::new();
    let priorities = [
        Priority::Normal,
        Priority::Low,
        Priority::High,
        Priority::Critical,
        Priority::Normal,
        Priority::Low,
        Priority::Critical,
    ];
    for (priority, position) in priorities.into_iter().zip([0, 1, 0, 0, 3, 5, 1]) {
        let request = SubmitProofRequest { priority: priority.into(), ..window("", "x") };
        let submitted = rig.submit(request).await;
        assert_eq!(submitted.position, position, "{priority:?}");
        expected.push((submitted.job, priority));
    }
    // Stable: as urgent ones are in the order of acceptance.
    expected.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
    let looks = rig.jobs.list(100).await.unwrap();
    for (position, (job, _)) in expected.iter().enumerate() {
        let look = looks.iter().find(|look| look.job == *job).unwrap();
        assert_eq!((look.position, look.state), (position as u32, JobState::Queued));
    }
    let queues: Vec<_> = rig.jobs.look().queues.iter().map(|queue| (queue.priority, queue.pending)).collect();
    assert_eq!(queues, [(Priority::Critical, 2), (Priority::High, 1), (Priority::Normal, 2), (Priority::Low, 2)]);
    assert!(rig.jobs.look().queues.iter().all(|queue| queue.oldest > Duration::ZERO));
    rig.jobs.cancel(&first.job).await.unwrap();
    for (job, _) in &expected {
        rig.end(job).await;
    }
    let mut served: Vec<_> = rig.jobs.look().recent.into_iter().map(|look| look.job).collect();
    served.reverse();
    assert_eq!(served[1..], expected.into_iter().map(|(job, _)| job).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_have_their_own_priority() {
    let rig = Rig::new(FakeOptions::default());
    for (kind, priority) in [
        (ProofKind::PorepSealCommit, Priority::Normal),
        (ProofKind::SnapDealsUpdate, Priority::Normal),
        (ProofKind::WindowPostPartition, Priority::High),
        (ProofKind::WinningPost, Priority::Critical),
    ] {
        let submitted = rig.submit(request(kind, "", b"x")).await;
        assert_eq!(rig.jobs.job(&submitted.job).await.unwrap().priority, priority);
        rig.end(&submitted.job).await;
        assert_eq!(rig.jobs.job(&submitted.job).await.unwrap().priority, priority);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_kept() {
    let rig = Rig::new(FakeOptions::default());
    let request = SubmitProofRequest { deadline_ms: 50, ..window("", "slow") };
    let submitted = rig.submit(request).await;
    let ended = rig.end(&submitted.job).await;
    assert_eq!(ended.ending, Ending::Failed("the deadline has passed".to_owned()));
    assert!(ended.total >= Duration::from_millis(45), "{:?}", ended.total);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_adds_up() {
    let rig = Rig::new(FakeOptions::default());
    let porep = rig.submit(request(ProofKind::PorepSealCommit, "porep", b"x")).await;
    let ended = rig.end(&porep.job).await;
    assert_eq!((ended.partitions, ended.circuit.as_str(), proof(&ended).len()), (3, "porep-2k", 576));
    let window = rig.submit(window("", "fail")).await;
    rig.end(&window.job).await;
    let look = rig.jobs.look();
    let kind = |kind| look.kinds.iter().find(|look| look.kind == kind).unwrap();
    assert_eq!((look.completed(), look.failed(), look.cancelled()), (1, 1, 0));
    assert_eq!(kind(ProofKind::PorepSealCommit).completed, 1);
    assert_eq!(kind(ProofKind::WindowPostPartition).failed, 1);
    for (stage, histogram) in &kind(ProofKind::PorepSealCommit).durations {
        assert_eq!(histogram.count(), 1, "{}", stage.name());
    }
    let total = &kind(ProofKind::PorepSealCommit).durations[5].1;
    assert!((total.sum - ended.total.as_secs_f64()).abs() < 1e-9);
    let listed = rig.jobs.list(10).await.unwrap();
    assert_eq!(listed[1].job, porep.job);
    // What is told from memory and from the journal is the same, but for what happened last.
    let mut recent = look.recent[1].clone();
    recent.news.clear();
    assert_eq!(listed[1], recent);
}
