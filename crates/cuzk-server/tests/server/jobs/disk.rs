//! A disk without room, while jobs run.

use std::{env, path::Path, process::Command, time::Duration};

use cuzk_server::jobs::Ending;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tonic::Code;

use super::{client, open, until, window};
use crate::fake::FakeOptions;

const DIRECTORY: &str = "CUZK_JOBS_TEST_FULL";

/// The most bytes of a file, for this process.
fn limit_files(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum }).unwrap();
}

#[test]
fn a_proof_is_delivered_though_the_disk_fails_and_kept_until_it_works() {
    let directory = tempfile::tempdir().unwrap();
    // Ignored, a file that grows too long is an error and not a signal.
    let output = Command::new("sh")
        .args(["-c", r#"trap '' XFSZ; exec "$@""#, "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "jobs::disk::child", "--nocapture"])
        .env(DIRECTORY, directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

/// Not a test of its own: see above.
#[tokio::test(flavor = "multi_thread")]
async fn child() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let fake = || FakeOptions { partition_time: Duration::from_millis(3), ..FakeOptions::default() };
    let (prover, jobs) = open(Path::new(&directory), fake());
    let submitted = jobs.submit(window("w", "slow"), &client("c")).await.unwrap();
    until("it runs", || jobs.look().in_progress() == 1).await;
    limit_files(Some(4096));
    let ended = super::end(&jobs, &submitted.job).await;
    assert!(matches!(ended.ending, Ending::Completed { .. }));
    let look = jobs.look();
    assert!(look.errors.iter().any(|error| error.job == submitted.job && error.text.contains("not on disk")));
    let error = jobs.submit(window("new", "x"), &client("c")).await.unwrap_err();
    assert!(matches!(error.code(), Code::ResourceExhausted | Code::Unavailable), "{error}");
    assert!(jobs.look().journal.refusing.is_some());
    // Still there, for who asks again.
    let joined = jobs.submit(window("w", "slow"), &client("c")).await.unwrap();
    assert_eq!((joined.joined, &joined.job), (true, &submitted.job));
    assert_eq!(super::end(&jobs, &submitted.job).await, ended);
    assert_eq!(jobs.look().completed(), 1);
    limit_files(None);
    until("its end is on disk", || jobs.look().retained == 0).await;
    until("it finds out that there is room", || jobs.look().journal.refusing.is_none()).await;
    assert!(!jobs.submit(window("new", "x"), &client("c")).await.unwrap().joined);
    drop((jobs, prover));
    let (_prover, jobs) = open(Path::new(&directory), fake());
    assert_eq!(super::end(&jobs, &submitted.job).await, ended);
}
