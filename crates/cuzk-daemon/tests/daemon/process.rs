//! The daemon does what it is for, and ends as it is told.

use std::time::Duration;

use cuzk_proto::v1::{Priority, await_proof_response::Status};
use tonic::Code;

use crate::common::{Daemon, POREP, WINDOW, WINNING, accepts, parameters, request};

const LIMIT: Option<Duration> = Some(Duration::from_secs(300));

fn code(error: &cuzk_proto::ClientError) -> Option<Code> {
    match error {
        cuzk_proto::ClientError::Refused { code, .. } => Some(*code),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_of_both_kinds_are_made_and_verify() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &[]);
    let client = daemon.client().await;
    for (circuit, id) in [(WINNING, "winpost-1"), (WINDOW, "wdpost-1")] {
        let result = client.prove(&request(circuit, id), LIMIT).await.unwrap();
        assert_eq!((result.status(), result.error_message.as_str()), (Status::Completed, ""));
        assert!(result.verified && accepts(circuit, &result.proof));
        assert_eq!((result.circuit_id.as_str(), result.partitions), (circuit.to_string().as_str(), 1));
        assert!(result.device.starts_with("cpu: ") && result.gpu_compute_ms > 0 && result.synthesis_ms > 0);
        assert!(result.total_ms >= result.gpu_compute_ms);
        // The same request again is the same proof; under another name it is another one.
        let again = client.prove(&request(circuit, id), LIMIT).await.unwrap();
        assert_eq!((again.job_id, again.proof), (result.job_id, result.proof));
    }

    let status = client.status().await.unwrap();
    assert_eq!((status.total_proofs_completed, status.total_proofs_failed), (2, 0));
    assert_eq!(status.gpus.len(), 1);
    let mut keys: Vec<_> = status.loaded_srs.iter().map(|key| key.circuit_id.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["winning-2k", "wpost-2k"]);
    assert!(client.evict("winning-2k").await.unwrap().was_loaded);
    assert!(!client.evict("winning-2k").await.unwrap().was_loaded);
    assert!(!client.preload("winning-2k", LIMIT).await.unwrap().already_loaded);
    assert!(client.preload("winning-2k", LIMIT).await.unwrap().already_loaded);

    // A key that is not there is said at once, without where it would be.
    let error = client.submit(&request(POREP, "")).await.unwrap_err();
    assert_eq!(code(&error), Some(Code::FailedPrecondition), "{error}");
    let text = error.to_string();
    assert!(text.contains("there is no key for porep-2k: the directory srs.param_cache has neither v28-"), "{text}");
    assert!(text.contains(".params nor v28-") && text.contains(".cuzkkey; `curio fetch-params 2048`"), "{text}");
    assert!(text.contains("`cuzk setup porep-2k`") && !text.contains('/'), "{text}");
    // The log knows where.
    assert!(daemon.log().contains(&format!("params={}/v28-", parameters().display())), "{}", daemon.log());
    let error = client.preload("porep-3k", LIMIT).await.unwrap_err();
    assert_eq!(code(&error), Some(Code::NotFound), "{error}");
    assert_eq!(daemon.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_or_too_late_ends_so() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &["--set", "pipeline.partition_workers=1"]);
    let client = daemon.client().await;
    let mut jobs = Vec::new();
    for id in 0..6 {
        jobs.push(client.submit(&request(WINNING, &format!("job {id}"))).await.unwrap().job_id);
    }
    let mut late = request(WINNING, "late");
    late.deadline_ms = 1;
    let late = client.submit(&late).await.unwrap().job_id;
    assert!(client.cancel(&jobs[5]).await.unwrap());
    assert!(!client.cancel(&jobs[5]).await.unwrap());
    assert_eq!(client.wait(&jobs[5], LIMIT).await.unwrap().status(), Status::Cancelled);
    assert_eq!(client.wait(&late, LIMIT).await.unwrap().status(), Status::Failed);
    // A WinningPoSt is CRITICAL by itself, and LOW if it is told so: the last one is served before those that wait.
    let mut low = request(WINDOW, "low");
    low.set_priority(Priority::Low);
    let low = client.submit(&low).await.unwrap();
    assert!(low.queue_position >= 1, "{low:?}");
    for job in &jobs[..5] {
        let result = client.wait(job, LIMIT).await.unwrap();
        assert!(result.status() == Status::Completed && accepts(WINNING, &result.proof));
    }
    assert!(accepts(WINDOW, &client.wait(&low.job_id, LIMIT).await.unwrap().proof));
    assert_eq!(daemon.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_work_goes_on_after_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &["--set", "daemon.grace_period=0s"]);
    let client = daemon.client().await;
    // The engine has all of them: its circuit is known, and one of each is under way.
    assert!(accepts(WINDOW, &client.prove(&request(WINDOW, "first"), LIMIT).await.unwrap().proof));
    let mut jobs = Vec::new();
    for id in 0..8 {
        jobs.push(client.submit(&request(WINDOW, &format!("wdpost-{id}"))).await.unwrap().job_id);
    }
    let unwanted = client.submit(&request(WINDOW, "unwanted")).await.unwrap().job_id;
    assert!(client.cancel(&unwanted).await.unwrap());
    assert_eq!(daemon.terminate(), Some(0));
    let daemon = Daemon::start(directory.path(), &[]);
    let client = daemon.client().await;
    for job in &jobs {
        let result = client.wait(job, LIMIT).await.unwrap();
        assert!(result.status() == Status::Completed && accepts(WINDOW, &result.proof));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_wait_for_a_key_that_is_not_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &["--set", "daemon.grace_period=0s"]);
    let job = daemon.client().await.submit(&request(WINDOW, "wdpost-1")).await.unwrap().job_id;
    daemon.kill();
    // As if its disk was not mounted.
    let nowhere = directory.path().join("nowhere");
    let daemon = Daemon::start(
        directory.path(),
        &["--set", "daemon.grace_period=0s", "--param-cache", nowhere.to_str().unwrap()],
    );
    let client = daemon.client().await;
    let waited = client.wait(&job, Some(Duration::from_secs(2))).await;
    assert!(matches!(waited, Err(cuzk_proto::ClientError::Deadline { .. })), "{waited:?}");
    assert_eq!(daemon.terminate(), Some(0));
    let daemon = Daemon::start(directory.path(), &[]);
    let result = daemon.client().await.wait(&job, LIMIT).await.unwrap();
    assert!(result.status() == Status::Completed && accepts(WINDOW, &result.proof));
}

/// Jobs have one name, everywhere.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_called_by_their_ids_in_logs_and_timelines() {
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &["--status-listen", "127.0.0.1:0"]);
    let client = daemon.client().await;
    let job = client.submit(&request(WINNING, "")).await.unwrap().job_id;
    assert!(accepts(WINNING, &client.wait(&job, None).await.unwrap().proof));
    let (status, timeline) = daemon.get("/timeline");
    assert!(status == 200 && timeline.contains(&job), "{status} {timeline}");
    assert!(!timeline.contains("\"winning-2k 0\""), "{timeline}");
    let (_, metrics) = daemon.get("/metrics");
    let commit = metrics.split_once("commit=\"").unwrap().1.split('"').next().unwrap();
    assert!(commit == "unknown" || matches!(commit.len(), 40 | 64), "{commit}");
    let log = daemon.log();
    assert!(log.contains(&format!("job={job}")) || log.contains(&format!("job=\"{job}\"")), "{log}");
    // Libraries that are not ours are quiet unless something is wrong.
    let foreign = log.lines().find(|l| ["storage_proofs", "filecoin_proofs"].iter().any(|name| l.contains(name)));
    assert_eq!(foreign, None);
}

#[test]
fn mistakes_end_with_a_line_and_their_code() {
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_cuzk-daemon"))
            .args(["--journal-dir", directory.path().to_str().unwrap(), "--status-listen="])
            .args(arguments)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["--set", "gpus.gpu_thread=1"]);
    assert!(code == Some(2) && said.contains("gpus.gpu_threads"), "{code:?} {said}");
    let (code, said) = run(&["--listen", "0.0.0.0:0", "--backend", "cpu"]);
    assert!(code == Some(2) && said.contains("insecure"), "{code:?} {said}");
    let (code, said) = run(&["--backend", "none", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(5) && said.contains("libcuzk_backend_none"), "{code:?} {said}");
    let (code, said) = run(&["--backend", "cpu", "--device", "7", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(5) && said.contains('7'), "{code:?} {said}");
    let (code, said) = run(&["--backend", "cpu", "--set", "pipeline.partition_workers=100000"]);
    assert!(code == Some(2) && said.contains("at most 4096"), "{code:?} {said}");
    let (code, said) = run(&["--backend", "cpu", "--set", "backend.vram_limit=1MiB", "--listen", "127.0.0.1:0"]);
    assert!(code == Some(5) && said.contains("device memory") && said.contains("raise backend.vram_limit"), "{said}");
    let preload = ["--backend", "cpu", "--set", "memory.preload=porep-2k", "--listen", "127.0.0.1:0"];
    let (code, said) = run(&[&preload[..], &["--param-cache", directory.path().to_str().unwrap()]].concat());
    assert!(code == Some(4) && said.contains("no key for porep-2k"), "{code:?} {said}");

    // The service manager does not try again what stays so, and does try what may not.
    let unit = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/cuzk-daemon.service")).unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).unwrap();
    assert_eq!(line.split(' ').collect::<Vec<_>>(), ["2", "4"]);
}
