//! A machine that is too small for a proof says so at the start.

use tonic::Code;

use crate::common::{Daemon, WINDOW, WINNING, accepts, request};

/// A machine, what it has too little of for any circuit, and the setting that the daemon names.
const TOO_SMALL: [(&[&str], &str, &str); 3] = [
    (&["memory.total_budget=1MiB"], "of host memory, but there are 1.0 MiB", "raise memory.total_budget"),
    (&["backend.vram_limit=8MiB"], "of device memory", "raise backend.vram_limit"),
    // So little that a key has to be streamed, and no room to stream it from.
    (&["backend.vram_limit=20MiB", "backend.pinned_limit=4KiB"], "of pinned memory", "raise backend.pinned_limit"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_holds_no_partition_is_told_before_the_first_job() {
    // The sizes of matrices and witnesses are known afterwards.
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &[]);
    let client = daemon.client().await;
    for circuit in [WINDOW, WINNING] {
        let job = client.submit(&request(circuit, "")).await.unwrap().job_id;
        assert!(accepts(circuit, &client.wait(&job, None).await.unwrap().proof));
    }
    assert_eq!(daemon.terminate(), Some(0));
    for (machine, takes, setting) in TOO_SMALL {
        let directory = tempfile::tempdir().unwrap();
        let mut options = vec!["--status-listen", "127.0.0.1:0"];
        machine.iter().for_each(|setting| options.extend(["--set", setting]));
        let daemon = Daemon::start(directory.path(), &options);
        let client = daemon.client().await;
        let (status, body) = daemon.get("/readyz");
        let log = daemon.log();
        let told = |text: &str| text.contains("wpost-2k") && text.contains(takes) && text.contains(setting);
        let line = log.lines().find(|line| line.contains("no circuit that has a key can be proved here"));
        assert!(line.is_some_and(|line| line.contains("ERROR") && told(line)), "{log}");
        assert!(status == 503 && body.starts_with("nothing can be proved: ") && told(&body), "{status} {body}");
        assert_eq!(daemon.get("/healthz").0, 200);
        match client.submit(&request(WINDOW, "")).await {
            Err(cuzk_proto::ClientError::Refused { code: Code::FailedPrecondition, message, .. }) => {
                assert!(told(&message), "{message}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(daemon.terminate(), Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_wanted_from_the_start_and_fits_nowhere_is_a_mistake() {
    let directory = tempfile::tempdir().unwrap();
    // What its key alone tells is enough for that.
    let preload = ["--set", "memory.preload=winning-2k", "--set", "memory.total_budget=1MiB"];
    let daemon = Daemon::start(directory.path(), &preload);
    assert_eq!(daemon.wait(), Some(2));
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.lines().last().is_some_and(|l| l.contains("memory.preload: winning-2k: ")), "{log}");
}

/// Keys may be fetched after the start.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_keys_starts_and_is_ready() {
    let directory = tempfile::tempdir().unwrap();
    let keys = directory.path().to_str().unwrap();
    let options = ["--status-listen", "127.0.0.1:0", "--param-cache", keys, "--set", "memory.total_budget=1MiB"];
    let daemon = Daemon::start(directory.path(), &options);
    daemon.client().await;
    assert_eq!(daemon.get("/readyz").0, 200);
    assert_eq!(daemon.terminate(), Some(0));
}
