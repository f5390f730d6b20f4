//! Limits: what is told when one is reached, that readiness knows it before, and that other ones count at once.

use std::time::{Duration, Instant};

use cuzk_proto::v1::{
    AwaitProofRequest, CancelProofRequest, ListProofsRequest, ProofKind, SubmitProofRequest, WatchProofRequest,
    await_proof_response::Status as Ended,
};
use cuzk_server::server::Effect;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{Code, Status};

use super::{Running, SOON, load, request, start, start_over, until};
use crate::fake::{FakeOptions, FakeProver};

fn told<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(!status.message().contains('/'), "{status:?}");
    status.message().to_owned()
}

fn slow(id: &str) -> SubmitProofRequest {
    request(ProofKind::PorepSealCommit, id, &format!("slow {id}"))
}

/// An answer over HTTP, head and body.
async fn get(running: &Running, path: &str) -> String {
    let address = running.server.status_address().unwrap().to_string();
    let asking = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::time::timeout(SOON, asking).await.unwrap()
}

/// Whether it is ready, and what it says.
async fn ready(running: &Running) -> (bool, String) {
    let answer = get(running, "/readyz").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.starts_with("HTTP/1.1 200"), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_is_told_with_its_key_and_both_numbers() {
    let journal = ("journal.max_bytes", "2500000");
    let settings = [("limits.queue_length", "2"), ("limits.jobs_per_client", "3"), ("limits.max_message_size", "2MiB")];
    let running = start(&[&settings[..], &[journal, ("daemon.status_listen", "127.0.0.1:0")]].concat()).await;
    let mut proving = running.proving().await;
    let long = request(ProofKind::PorepSealCommit, "", &"x".repeat(3 << 20));
    let text = told(proving.submit_proof(long).await);
    assert!(
        text.starts_with("the message is too long: it has 3145")
            && text.contains(" bytes, limits.max_message_size is 2097152 bytes"),
        "{text}"
    );
    assert_eq!(ready(&running).await, (true, "ready\n".to_owned()));
    let large = request(ProofKind::PorepSealCommit, "", &"x".repeat(1_900_000));
    let text = told(proving.submit_proof(large).await);
    assert!(
        text.starts_with("the journal is full: it has ") && text.ends_with("journal.max_bytes is 2500000 bytes"),
        "{text}"
    );
    let (is_ready, reason) = ready(&running).await;
    assert!(!is_ready && reason.contains("journal.max_bytes is 2500000 bytes"), "{reason}");

    let mut jobs = Vec::new();
    for id in ["a", "b", "c"] {
        jobs.push(proving.submit_proof(slow(id)).await.unwrap().into_inner().job_id);
        let look = running.server.jobs().clone();
        until("the first has begun", move || look.look().in_progress() == 1).await;
    }
    let text = told(proving.submit_proof(slow("d")).await);
    assert_eq!(text, "the queue is full: 2 jobs wait, limits.queue_length is 2");
    // More of each, from now on.
    let more = [("limits.queue_length", "9"), ("limits.jobs_per_client", "3"), ("limits.max_message_size", "2MiB")];
    let more = [&more[..], &[("journal.max_bytes", "64MiB"), ("daemon.status_listen", "127.0.0.1:0")]].concat();
    let done = running.server.reload(load(&running.directory, &more).unwrap(), None);
    assert_eq!(done, [("journal.max_bytes", Effect::Now), ("limits.queue_length", Effect::Now)]);
    assert_eq!(ready(&running).await, (true, "ready\n".to_owned()));
    let text = told(proving.submit_proof(slow("d")).await);
    assert_eq!(text, "this client has 3 jobs that have not ended, limits.jobs_per_client is 3");
    let most: Vec<_> =
        more.iter().map(|(k, v)| if *k == "limits.jobs_per_client" { (*k, "0") } else { (*k, *v) }).collect();
    let done = running.server.reload(load(&running.directory, &most).unwrap(), None);
    assert_eq!(done, [("limits.jobs_per_client", Effect::Now)]);
    let large = request(ProofKind::PorepSealCommit, "", &"x".repeat(1_900_000));
    jobs.push(proving.submit_proof(large).await.unwrap().into_inner().job_id);
    // And less: what is there stays.
    let done = running.server.reload(load(&running.directory, &[("limits.queue_length", "1")]).unwrap(), None);
    assert!(done.contains(&("limits.queue_length", Effect::Now)), "{done:?}");
    let (is_ready, reason) = ready(&running).await;
    assert_eq!((is_ready, reason.as_str()), (false, "the queue is full: 3 jobs wait, limits.queue_length is 1\n"));
    for job_id in jobs {
        proving.cancel_proof(CancelProofRequest { job_id }).await.unwrap();
    }
    assert_eq!(ready(&running).await, (true, "ready\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_takes_nothing_is_told_by_readiness_and_found_to_take_again() {
    let running = start(&[("daemon.status_listen", "127.0.0.1:0")]).await;
    // A directory that is not there any more stands for every disk that takes nothing.
    let requests = running.directory.path().join("journal/requests");
    let aside = running.directory.path().join("aside");
    std::fs::rename(&requests, &aside).unwrap();
    let mut proving = running.proving().await;
    let large = || request(ProofKind::PorepSealCommit, "large", &"x".repeat(100_000));
    let status = proving.submit_proof(large()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(!status.message().contains('/'), "{status:?}");
    let (is_ready, reason) = ready(&running).await;
    assert_eq!((is_ready, reason.as_str()), (false, "the journal cannot be written; the log says why\n"));
    let metrics = get(&running, "/metrics").await;
    assert!(metrics.contains("cuzk_not_ready{reason=\"journal_failing\"} 1\n"), "{metrics}");
    assert!(metrics.contains("cuzk_ready 0\n"));
    std::fs::rename(&aside, &requests).unwrap();
    // Nobody has to submit anything for that.
    let began = Instant::now();
    while !ready(&running).await.0 {
        assert!(began.elapsed() < SOON, "it does not recover");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    proving.submit_proof(large()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_was_removed_takes_no_jobs_and_is_told() {
    let running = start(&[("daemon.status_listen", "127.0.0.1:0")]).await;
    let database = running.directory.path().join("journal/journal.redb");
    let aside = running.directory.path().join("aside");
    let mut proving = running.proving().await;
    std::fs::rename(&database, &aside).unwrap();
    let status = proving.submit_proof(slow("a")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    let (is_ready, reason) = ready(&running).await;
    assert!(!is_ready && reason.contains("put journal.redb back"), "{reason}");
    std::fs::rename(&aside, &database).unwrap();
    proving.submit_proof(slow("a")).await.unwrap();
    assert_eq!(ready(&running).await, (true, "ready\n".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_prover_says_callers_hear_no_path_and_no_number_of_its_own() {
    let options = FakeOptions { partition_time: Duration::from_millis(100), ..FakeOptions::default() };
    let running = start_over(FakeProver::start(options), &[("daemon.status_listen", "127.0.0.1:0")]).await.unwrap();
    let mut proving = running.proving().await;
    let mut engine = running.engine().await;
    let cause =
        "fail partition 0 of job 4711: keys/secret.params, \"C:\\\\top secret\\\\x\" and /srv/secret (os error 2)";
    let submit = request(ProofKind::WindowPostPartition, "a", cause);
    let job = proving.submit_proof(submit).await.unwrap().into_inner().job_id;
    let mut heard = Vec::new();
    let mut news = engine.watch_proof(WatchProofRequest { job_id: job.clone() }).await.unwrap().into_inner();
    while let Some(progress) = news.message().await.unwrap() {
        heard.extend([progress.news, progress.error_message]);
    }
    let ended =
        proving.await_proof(AwaitProofRequest { job_id: job.clone(), timeout_ms: 0 }).await.unwrap().into_inner();
    assert_eq!(ended.status(), Ended::Failed);
    let shown = "partition 0: (a path), \"(a path)\" and (a path) (os error 2); the log has more under the job's id";
    assert_eq!(ended.error_message, shown);
    let listed = engine.list_proofs(ListProofsRequest { limit: 9 }).await.unwrap().into_inner().proofs;
    heard.extend(listed.into_iter().map(|proof| proof.error_message));
    for path in ["/status", "/live", "/timeline", "/metrics"] {
        heard.push(get(&running, path).await);
    }
    assert!(heard.iter().filter(|text| text.contains("(a path)")).count() >= 5, "{heard:?}");
    for text in heard {
        assert!(!text.contains("secret") && !text.contains("job 4711"), "{text}");
    }
}
