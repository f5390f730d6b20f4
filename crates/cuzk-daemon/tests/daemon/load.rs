//! Many jobs from many clients, some of them cancelled and some of them wrong.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_proto::{Client, ClientError, v1::await_proof_response::Status};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tonic::Code;

use crate::common::{Daemon, WINDOW, accepts, request};

const CLIENTS: u64 = 8;
const SEED: u64 = 0x2026_1131;

/// What became of a client's requests.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    proved: usize,
    cancelled: usize,
    refused: usize,
}

/// A twentieth is wrong, a twentieth is cancelled; everything is submitted before anything is waited for.
async fn work(client: Client, number: u64, requests: usize) -> Tally {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED + number);
    let (mut tally, mut jobs) = (Tally::default(), Vec::new());
    for index in 0..requests {
        let mut request = request(WINDOW, &format!("client {number}, job {index}"));
        let fate = rng.gen_range(0..20);
        if fate == 0 {
            request.randomness.truncate(rng.gen_range(0..32));
            match client.submit(&request).await {
                Err(ClientError::Refused { code: Code::InvalidArgument, .. }) => tally.refused += 1,
                other => panic!("{other:?}"),
            }
            continue;
        }
        let job = client.submit(&request).await.unwrap().job_id;
        let cancelled = fate == 1 && client.cancel(&job).await.unwrap();
        jobs.push((job, cancelled));
    }
    for (job, cancelled) in jobs {
        let result = client.wait(&job, Some(Duration::from_secs(3600))).await.unwrap();
        if cancelled {
            assert_eq!(result.status(), Status::Cancelled);
            tally.cancelled += 1;
        } else {
            assert_eq!(result.status(), Status::Completed, "{}", result.error_message);
            assert!(accepts(WINDOW, &result.proof));
            tally.proved += 1;
        }
    }
    tally
}

fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// Every request has one fate; what the daemon counts is what its clients saw; memory and GetStatus are told.
async fn load(jobs: usize) {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &["--set", "logging.level=warn"]);
    let client = daemon.client().await;
    let started = Instant::now();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(tokio::spawn(work(daemon.client().await, number, jobs / CLIENTS as usize)));
    }
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (watcher, over, pid) = (client.clone(), Arc::clone(&done), daemon.pid());
    let watching = tokio::spawn(async move {
        let (mut latencies, mut sizes) = (Vec::new(), Vec::new());
        while !over.load(std::sync::atomic::Ordering::Relaxed) {
            let asked = Instant::now();
            let status = watcher.status().await.unwrap();
            latencies.push(asked.elapsed());
            sizes.push((status.total_proofs_completed, resident(pid)));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        latencies.sort_unstable();
        (latencies, sizes)
    });
    let mut total = Tally::default();
    for client in clients {
        let Tally { proved, cancelled, refused } = client.await.unwrap();
        total.proved += proved;
        total.cancelled += cancelled;
        total.refused += refused;
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    let (latencies, sizes) = watching.await.unwrap();
    let status = client.status().await.unwrap();
    let counted = (status.total_proofs_completed, status.total_proofs_failed, status.total_proofs_cancelled);
    assert_eq!(counted, (total.proved as u64, 0, total.cancelled as u64));
    assert_eq!(total.proved + total.cancelled + total.refused, jobs / CLIENTS as usize * CLIENTS as usize);
    let p99 = latencies[latencies.len() * 99 / 100];
    println!("{total:?} in {:.1?}; GetStatus asked {} times, p99 {p99:.1?}", started.elapsed(), latencies.len());
    // A process of which little was asked still grows into its threads' memory.
    if jobs < 500 {
        return;
    }
    let warm: Vec<(f64, f64)> = sizes
        .iter()
        .filter(|(proved, _)| *proved >= total.proved as u64 / 10)
        .map(|(proved, bytes)| (*proved as f64, *bytes as f64))
        .collect();
    let growth = growth(&warm);
    let (first, last) = (warm[0].1 / 1e6, warm[warm.len() - 1].1 / 1e6);
    println!(
        "resident after a tenth of them {first:.1} MB, at the end {last:.1} MB, slope {growth:+.2} % over the run"
    );
    assert!(growth < 1.0, "memory grows by {growth:.2} % over the run");
}

/// By how many percent of its mean the second number grows over all points, by the line of least squares.
fn growth(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    slope * (points[points.len() - 1].0 - points[0].0) / y * 100.0
}

#[test]
fn growth_is_that_of_a_line() {
    let line: Vec<_> = (0..=100).map(|n| (f64::from(n), 99.0 + f64::from(n) / 50.0)).collect();
    assert!((growth(&line) - 2.0).abs() < 1e-9);
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_jobs_from_eight_clients_have_one_fate_each() {
    load(40).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: `cargo xtask services` runs it"]
async fn five_hundred_jobs_from_eight_clients_have_one_fate_each() {
    load(504).await;
}
