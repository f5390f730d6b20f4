//! Many jobs.

use std::{
    env, fs,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_proto::v1::ProofKind;
use cuzk_server::jobs::{Ending, SubmitError};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;
use tokio::{sync::Semaphore, task::JoinSet};
use tonic::Code;

use super::{Rig, client, end, proof, window};
use crate::fake::{FakeOptions, proof_of, request};

/// Jobs, bytes of each request, and ended jobs that are kept.
const ALONE: &str = "CUZK_JOBS_TEST_ALONE";

/// Kilobytes of this process in memory.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn five_thousand_jobs_leave_nothing() {
    // In a process of its own, because the memory of others is none of its business.
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "jobs::load::alone", "--nocapture"])
        .env(ALONE, "5000 2000 500")
        .env("MALLOC_ARENA_MAX", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stdout));
}

/// Not a test of its own: see above.
#[test]
fn alone() {
    let Ok(numbers) = env::var(ALONE) else { return };
    let numbers: Vec<usize> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    let [count, bytes, keep] = numbers[..] else { panic!("{numbers:?}") };
    // Few threads, or most of what is measured is their stacks.
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).max_blocking_threads(4).enable_all().build().unwrap();
    runtime.block_on(many(count as u64, bytes, keep));
}

async fn many(count: u64, bytes: usize, keep: usize) {
    let fake = FakeOptions { partition_time: Duration::ZERO, workers: 2, remember: false, ..FakeOptions::default() };
    let rig = Rig::with(fake, |options| {
        options.journal.keep_ended = keep;
        options.limits.max_per_client = 100;
        options.recent = 50;
    });
    let permits = Arc::new(Semaphore::new(64));
    let mut tasks = JoinSet::new();
    let mut measured = Vec::new();
    for i in 0..count {
        let permit = permits.clone().acquire_owned().await.unwrap();
        let jobs = rig.jobs.clone();
        tasks.spawn(async move {
            let request = window(&format!("w {i}"), &format!("{i} {}", "x".repeat(bytes)));
            let expected = proof_of(&request, 1);
            let submitted = jobs.submit(request, &client("c")).await.unwrap();
            assert_eq!(proof(&end(&jobs, &submitted.job).await), expected);
            drop(permit);
        });
        while tasks.try_join_next().is_some_and(|result| result.is_ok()) {}
        if i % (count / 5) == count / 5 - 1 {
            measured.push((resident(), rig.jobs.look().journal.database_bytes));
        }
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    let look = rig.jobs.look();
    println!("KiB in memory and bytes on disk after each fifth: {measured:?}, {} commits", look.journal.commits);
    assert_eq!((look.completed(), look.retained, look.waiting), (count, 0, 0));
    assert_eq!((look.journal.unfinished, look.journal.ended, look.recent.len()), (0, (keep as u64).min(count), 50));
    let [_, second, .., last] = measured[..] else { panic!("{measured:?}") };
    assert!(last.0 < second.0 + second.0 / 20, "memory grows: {measured:?}");
    assert!(last.1 <= second.1 * 2, "the disk fills: {measured:?}");
}

/// What a job of the mix below is for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    Prove,
    Cancel,
    Bad,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mix_of_clients_cancels_and_bad_inputs_loses_nothing() {
    let seed = 3;
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let fake = FakeOptions { workers: 2, partition_time: Duration::from_millis(1), ..FakeOptions::default() };
    let rig = Rig::new(fake);
    let mut roles = [vec![Role::Cancel; 25], vec![Role::Bad; 25], vec![Role::Prove; 450]].concat();
    roles.shuffle(&mut random);
    let mut tasks = JoinSet::new();
    for (worker, roles) in roles.chunks(63).enumerate() {
        let (jobs, roles) = (rig.jobs.clone(), roles.to_vec());
        let mut random = ChaCha8Rng::seed_from_u64(worker as u64);
        tasks.spawn(async move {
            let name = client(&format!("client {worker}"));
            let mut submitted = Vec::new();
            let mut counts = [0; 3];
            for (i, role) in roles.into_iter().enumerate() {
                let kind = match random.gen_range(0..3) {
                    0 => ProofKind::PorepSealCommit,
                    1 => ProofKind::WindowPostPartition,
                    _ => ProofKind::WinningPost,
                };
                let input = if role == Role::Bad { "invalid".to_owned() } else { format!("{worker} {i}") };
                let request = request(kind, &format!("work {worker} {i}"), input.as_bytes());
                match (role, jobs.submit(request.clone(), &name).await) {
                    (Role::Bad, Err(error)) => {
                        assert!(matches!(&error, SubmitError::Rejected(_)) && error.code() == Code::InvalidArgument);
                        counts[0] += 1;
                    }
                    (Role::Prove | Role::Cancel, Ok(job)) => submitted.push((role, request, job.job)),
                    (role, result) => panic!("{role:?}: {result:?}"),
                }
            }
            let mut proved = 0;
            for (role, request, job) in submitted {
                let cancelled = role == Role::Cancel && jobs.cancel(&job).await.unwrap();
                let ended = end(&jobs, &job).await;
                let partitions = if request.proof_kind() == ProofKind::PorepSealCommit { 3 } else { 1 };
                match ended.ending {
                    Ending::Cancelled => {
                        assert!(cancelled);
                        counts[1] += 1;
                    }
                    Ending::Completed { proof, .. } => {
                        assert!(!cancelled && proof == proof_of(&request, partitions));
                        proved += 1;
                    }
                    Ending::Failed(error) => panic!("{job}: {error}"),
                }
            }
            counts[2] = proved;
            counts
        });
    }
    let mut slowest = Duration::ZERO;
    let mut counts = [0; 3];
    while let Some(result) = {
        let began = Instant::now();
        let look = rig.jobs.look();
        slowest = slowest.max(began.elapsed());
        assert!(look.pending() + look.in_progress() <= 500);
        tokio::time::timeout(Duration::from_millis(1), tasks.join_next()).await.unwrap_or(Some(Ok([0; 3])))
    } {
        counts = std::array::from_fn(|i| counts[i] + result.as_ref().unwrap()[i]);
    }
    println!("the slowest look took {slowest:?}");
    let [bad, cancelled, proved] = counts;
    assert_eq!((bad, cancelled + proved), (25, 475));
    let look = rig.jobs.look();
    assert_eq!((look.completed(), look.cancelled(), look.failed()), (proved, cancelled, 0));
    assert_eq!((look.refused.invalid, look.retained, look.journal.unfinished), (25, 0, 0));
}
