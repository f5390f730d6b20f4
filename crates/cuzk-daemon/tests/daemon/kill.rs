//! `kill -9` at any moment: nothing is lost, and nothing comes out twice.

use std::{collections::BTreeMap, time::Duration};

use cuzk_proto::{Client, v1::await_proof_response::Status};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{Daemon, WINDOW, accepts, request};

/// How often the daemon is killed.
const KILLS: usize = 100;
const JOBS: usize = 40;
const SEED: u64 = 0x2026_1129;

/// What the caller knows.
#[derive(Default)]
struct Caller {
    /// Acknowledged requests, with their jobs.
    accepted: BTreeMap<usize, String>,
    /// Proofs that were fetched.
    proofs: BTreeMap<usize, Vec<u8>>,
}

impl Caller {
    /// Submits what was not acknowledged, again and again under the same names, and fetches what is there.
    async fn work(&mut self, client: &Client) {
        for index in 0..JOBS {
            let Ok(answer) = client.submit(&request(WINDOW, &format!("wdpost-{index}"))).await else { return };
            if let Some(known) = self.accepted.insert(index, answer.job_id.clone()) {
                assert_eq!(known, answer.job_id, "the same request is the same job");
                assert!(answer.joined);
            }
        }
        for (index, job) in &self.accepted {
            let Ok(result) = client.wait(job, Some(Duration::from_secs(300))).await else { return };
            assert_eq!(result.status(), Status::Completed, "{index}: {}", result.error_message);
            if let Some(known) = self.proofs.insert(*index, result.proof.to_vec()) {
                assert_eq!(known, result.proof, "a proof that was fetched stays that proof");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_by_kills_at_any_moment() {
    println!("seed {SEED:#x}");
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let directory = tempfile::tempdir().unwrap();
    let mut caller = Caller::default();
    let mut kills = 0;
    while kills < KILLS {
        let daemon = Daemon::start(directory.path(), &["--set", "pipeline.partition_workers=2"]);
        // From before it serves to some proofs later; the caller's calls break wherever they are.
        let moment = Duration::from_millis(rng.gen_range(0..900));
        let started = std::time::Instant::now();
        let client = tokio::time::timeout(moment, daemon.client()).await;
        if let Ok(client) = client {
            let left = moment.saturating_sub(started.elapsed());
            let _cut_off = tokio::time::timeout(left, caller.work(&client)).await;
        }
        daemon.kill();
        kills += 1;
    }
    let before = caller.proofs.len();
    let daemon = Daemon::start(directory.path(), &[]);
    caller.work(&daemon.client().await).await;
    println!("{before} of {JOBS} proofs were fetched between {kills} kills");
    assert_eq!((caller.accepted.len(), caller.proofs.len()), (JOBS, JOBS));
    assert!(caller.proofs.values().all(|proof| accepts(WINDOW, proof)));
    // No two jobs share a name, and no job was proved for two requests.
    let jobs: std::collections::BTreeSet<_> = caller.accepted.values().collect();
    assert_eq!(jobs.len(), JOBS);
}
