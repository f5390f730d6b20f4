//! The end of a process, in good order and by a kill.

use std::{
    collections::BTreeMap,
    env, fmt,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use cuzk_proto::v1::SubmitProofRequest;
use cuzk_server::jobs::{Ending, JobState, SubmitError, Waited};
use rand::{Rng, SeedableRng, seq::IteratorRandom};
use rand_chacha::ChaCha8Rng;
use tonic::Code;

use super::{Rig, client, end, open, proof, until, window};
use crate::fake::{FakeOptions, proof_of};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unfinished_starts_again_in_order() {
    let rig = Rig::new(FakeOptions::default());
    let done = rig.submit(window("done", "x")).await.job;
    let made = rig.end(&done).await;
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(rig.submit(window(&format!("w {i}"), &format!("slow {i}"))).await.job);
    }
    let late = rig.submit(SubmitProofRequest { deadline_ms: 1, ..window("late", "slow late") }).await.job;
    rig.jobs.drain(Duration::ZERO).await;
    assert_eq!(rig.jobs.wait(&ids[0], None).await.unwrap(), Waited::Stopping);
    let quick = FakeOptions { partition_time: Duration::from_millis(1), ..FakeOptions::default() };
    let rig = rig.reopen(quick);
    assert_eq!(rig.jobs.look().resumed, 6);
    let mut all = ids.clone();
    all.push(late.clone());
    assert_eq!(rig.prover.started(), all);
    // The same names join them; the deadline is that of the first life.
    for (i, id) in ids.iter().enumerate() {
        let joined = rig.submit(window(&format!("w {i}"), &format!("slow {i}"))).await;
        assert_eq!((joined.joined, &joined.job), (true, id));
    }
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(proof(&rig.end(id).await), proof_of(&window("", &format!("slow {i}")), 1));
        assert_eq!(rig.jobs.job(id).await.unwrap().attempts, 2);
    }
    assert_eq!(rig.end(&late).await.ending, Ending::Failed("the deadline has passed".to_owned()));
    assert_eq!(rig.end(&done).await, made);
    let listed: Vec<_> = rig.jobs.list(3).await.unwrap().into_iter().map(|look| look.job).collect();
    assert_eq!(listed, [&late, &ids[4], &ids[3]].map(String::clone));
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_finishes_what_is_there_and_takes_nothing_new() {
    let rig = Rig::new(FakeOptions { partition_time: Duration::from_millis(20), ..FakeOptions::default() });
    let mut ids = Vec::new();
    for i in 0..5 {
        ids.push(rig.submit(window(&format!("w {i}"), "x")).await.job);
    }
    let jobs = rig.jobs.clone();
    let drained = tokio::spawn(async move { jobs.drain(Duration::from_secs(60)).await });
    until("it drains", || rig.jobs.look().state.name() == "draining").await;
    let error = rig.jobs.submit(window("", "y"), &client("c")).await.unwrap_err();
    assert!(matches!(error, SubmitError::Draining) && error.code() == Code::Unavailable);
    // The work that is there can still be joined.
    assert_eq!(rig.submit(window("w 4", "x")).await.job, ids[4]);
    drained.await.unwrap();
    for id in &ids {
        assert_eq!(rig.jobs.job(id).await.unwrap().state, JobState::Completed);
    }
    assert_eq!((rig.jobs.look().retained, rig.jobs.look().journal.unfinished), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_are_dropped_are_found_again() {
    let rig = Rig::new(FakeOptions::default());
    let id = rig.submit(window("w", "slow")).await.job;
    until("it runs", || rig.jobs.look().in_progress() == 1).await;
    let rig = rig.reopen(FakeOptions { partition_time: Duration::from_millis(1), ..FakeOptions::default() });
    assert!(matches!(rig.end(&id).await.ending, Ending::Completed { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_lost_or_damaged_costs_its_own_job() {
    let rig = Rig::new(FakeOptions::default());
    let large = |name: &str| window(name, &format!("slow {name} {}", "x".repeat(40_000)));
    let mut ids = Vec::new();
    for name in ["lost", "short", "damaged", "whole"] {
        ids.push(rig.submit(large(name)).await.job);
    }
    rig.jobs.drain(Duration::ZERO).await;
    let file = |id: &str| {
        let number: u64 = id.split_once('-').unwrap().1.parse().unwrap();
        rig.directory.path().join(format!("requests/{number:016x}"))
    };
    std::fs::remove_file(file(&ids[0])).unwrap();
    std::fs::write(file(&ids[1]), b"short").unwrap();
    let mut damaged = std::fs::read(file(&ids[2])).unwrap();
    damaged[30_000] ^= 1;
    std::fs::write(file(&ids[2]), damaged).unwrap();
    let rig = rig.reopen(FakeOptions { partition_time: Duration::from_millis(1), ..FakeOptions::default() });
    for (id, told) in ids.iter().zip(["is lost: 0 of 40", "is lost: 5 of 40", "is damaged"]) {
        let Ending::Failed(cause) = rig.end(id).await.ending else { panic!("{id} is proved") };
        assert!(cause.contains(told) && !cause.contains('/'), "{cause}");
    }
    assert!(matches!(rig.end(&ids[3]).await.ending, Ending::Completed { .. }));
    // Its caller sends it again.
    let again = rig.submit(large("lost")).await;
    assert!(!again.joined);
    assert!(matches!(rig.end(&again.job).await.ending, Ending::Completed { .. }));
}

const DIRECTORY: &str = "CUZK_JOBS_TEST_DIRECTORY";
const WORKS: u64 = 3;
const KILLS: u64 = 100;

/// What the child has to tell: `accepted WORK JOB JOINED` and `ended WORK JOB PROOF`.
fn tell(line: fmt::Arguments<'_>) {
    let mut stdout = std::io::stdout().lock();
    // One write a line; nobody listening is the end of the test.
    drop(stdout.write_all(format!("\n{line}\n").as_bytes()));
    drop(stdout.flush());
}

/// Input of a work.
fn work(number: u64) -> SubmitProofRequest {
    let len = if number.is_multiple_of(4) { 60_000 } else { 100 };
    window(&format!("work {number}"), &format!("{number} {}", "x".repeat(len)))
}

/// Not a test of its own: the process that is killed. It is told numbers of works and has them proved, all at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let fake = FakeOptions {
        workers: 2,
        partition_time: Duration::from_millis(8),
        // Like real proofs, those of another life are others.
        salt: std::process::id().to_le_bytes().to_vec(),
        ..FakeOptions::default()
    };
    let (_prover, jobs) = open(Path::new(&directory), fake);
    tell(format_args!("open {}", jobs.look().resumed));
    let mut input = String::new();
    std::io::stdin().read_line(&mut input).unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in input.split_whitespace().map(|number| number.parse().unwrap()) {
        let jobs = jobs.clone();
        tasks.spawn(async move {
            let submitted = jobs.submit(work(number), &client("parent")).await.unwrap();
            tell(format_args!("accepted {number} {} {}", submitted.job, submitted.joined));
            let ended = end(&jobs, &submitted.job).await;
            let hex: String = proof(&ended).iter().take(32).map(|byte| format!("{byte:02x}")).collect();
            tell(format_args!("ended {number} {} {hex}", submitted.job));
        });
    }
    tasks.join_all().await;
    tell(format_args!("done"));
    // Until it is killed.
    std::future::pending::<()>().await;
}

fn start(directory: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "jobs::restart::child", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What the caller was told of a work.
#[derive(Debug, Default)]
struct Told {
    job: Option<String>,
    proof: Option<String>,
}

#[test]
fn nothing_is_lost_by_a_hundred_kills() {
    let seed = 7;
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let mut works: BTreeMap<u64, Told> = BTreeMap::new();
    let (mut next, mut resumed, mut again) = (0, 0, 0);
    for life in 0..=KILLS {
        let mut child = start(directory.path());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("open") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "life {life}: it does not open");
        }
        resumed += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        // New works, those without a proof, and one whose proof is fetched again.
        for _ in 0..WORKS {
            works.insert(next, Told::default());
            next += 1;
        }
        let mut asked: Vec<_> = works.iter().filter(|(_, told)| told.proof.is_none()).map(|(n, _)| *n).collect();
        let last = life == KILLS;
        if last {
            asked = works.keys().copied().collect();
        } else {
            asked.extend(works.keys().filter(|n| !asked.contains(n)).choose(&mut random));
        }
        let input: Vec<_> = asked.iter().map(u64::to_string).collect();
        writeln!(child.stdin.as_mut().unwrap(), "{}", input.join(" ")).unwrap();
        let mut told = String::new();
        if last {
            while !told.ends_with("\ndone\n") {
                assert_ne!(output.read_line(&mut told).unwrap(), 0, "the last life does not end");
            }
        } else {
            std::thread::sleep(Duration::from_micros(random.gen_range(0..70_000)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut told).unwrap();
        for line in told.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let words: Vec<_> = line.split_whitespace().collect();
            match words[..] {
                ["accepted", number, job, joined] => {
                    let told = works.get_mut(&number.parse().unwrap()).unwrap();
                    if let Some(known) = &told.job {
                        assert_eq!((known.as_str(), joined), (job, "true"), "life {life}: work {number} is lost");
                    }
                    told.job = Some(job.to_owned());
                }
                ["ended", number, job, proof] => {
                    let told = works.get_mut(&number.parse().unwrap()).unwrap();
                    assert_eq!(told.job.as_deref(), Some(job));
                    if let Some(known) = &told.proof {
                        assert_eq!(known, proof, "life {life}: two proofs of work {number}");
                        again += 1;
                    }
                    told.proof = Some(proof.to_owned());
                }
                _ => {}
            }
        }
    }
    assert!(works.values().all(|told| told.proof.is_some()));
    let mut jobs: Vec<_> = works.values().map(|told| told.job.clone().unwrap()).collect();
    jobs.sort();
    jobs.dedup();
    assert_eq!(jobs.len(), works.len(), "two works have one job");
    // Otherwise it showed nothing.
    assert!(resumed > KILLS / 2, "{resumed} jobs were resumed");
    assert!(again > works.len() / 2, "{again} proofs were told again");
}
