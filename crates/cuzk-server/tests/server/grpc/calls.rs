//! Every call and every code.

use std::time::{Duration, Instant};

use cuzk_proto::v1::{
    AwaitProofRequest, CancelProofRequest, EvictSrsRequest, GetMetricsRequest, GetStatusRequest, ListProofsRequest,
    PreloadSrsRequest, ProofKind, ProveRequest, SubmitProofRequest, WatchProofRequest,
    await_proof_response::Status as Ended, proof_progress::State,
};
use tonic::{Code, Request, Status};

use super::{Running, SOON, request, start, start_over, until};
use crate::fake::{FakeOptions, FakeProver, proof_of};

fn wait(job: &str, timeout_ms: u64) -> AwaitProofRequest {
    AwaitProofRequest { job_id: job.to_owned(), timeout_ms }
}

fn prove(submit: SubmitProofRequest) -> ProveRequest {
    ProveRequest { submit: Some(submit) }
}

fn within<T>(timeout: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(timeout);
    request
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_are_made_and_fetched() {
    let running = start(&[]).await;
    let mut proving = running.proving().await;
    for (kind, partitions) in [
        (ProofKind::PorepSealCommit, 3),
        (ProofKind::SnapDealsUpdate, 3),
        (ProofKind::WindowPostPartition, 1),
        (ProofKind::WinningPost, 1),
    ] {
        let request = request(kind, &format!("id-{kind:?}"), "input");
        let result = proving.prove(prove(request.clone())).await.unwrap().into_inner().result.unwrap();
        assert_eq!(result.status(), Ended::Completed, "{}", result.error_message);
        assert_eq!(result.proof, proof_of(&request, partitions));
        assert_eq!((result.partitions, result.verified), (partitions, true));
        assert!(!result.device.is_empty() && result.total_ms >= result.queue_wait_ms);
        // The same again is the same job.
        let again = proving.submit_proof(request).await.unwrap().into_inner();
        assert_eq!((again.job_id.as_str(), again.joined), (result.job_id.as_str(), true));
        let fetched = proving.await_proof(wait(&again.job_id, 0)).await.unwrap().into_inner();
        assert_eq!(fetched.proof, result.proof);
    }
    let fail = request(ProofKind::WinningPost, "", "fail");
    let result = proving.prove(prove(fail)).await.unwrap().into_inner().result.unwrap();
    assert_eq!((result.status(), result.proof.is_empty(), result.verified), (Ended::Failed, true, false));
    assert!(!result.error_message.is_empty());

    let status = proving.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!((status.total_proofs_completed, status.total_proofs_failed), (4, 1));
    assert_eq!((status.version.as_str(), status.state.as_str()), ("1.2.3", "running"));
    assert_eq!((status.queues.len(), status.gpus.len(), status.memory.len()), (4, 1, 3));
    assert_eq!((status.pinned_memory_bytes, status.pinned_memory_limit_bytes), (1 << 28, 1 << 30));
    let metrics = proving.get_metrics(GetMetricsRequest {}).await.unwrap().into_inner().prometheus_text;
    assert!(metrics.lines().any(|line| line == "cuzk_proofs_completed_total 4"), "{metrics}");
    let listed = running.engine().await.list_proofs(ListProofsRequest { limit: 2 }).await.unwrap().into_inner().proofs;
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].state(), State::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_watched_and_cancelled() {
    let running = start(&[]).await;
    let mut proving = running.proving().await;
    let slow = request(ProofKind::PorepSealCommit, "slow", "slow");
    let job = proving.submit_proof(slow).await.unwrap().into_inner().job_id;
    let next = request(ProofKind::PorepSealCommit, "next", "x");
    let next = proving.submit_proof(next).await.unwrap().into_inner();
    assert!(next.queue_position <= 1);
    let mut engine = running.engine().await;
    let mut news = engine.watch_proof(WatchProofRequest { job_id: job.clone() }).await.unwrap().into_inner();
    let mut state = news.message().await.unwrap().unwrap();
    assert_eq!((state.job_id.as_str(), state.partitions), (job.as_str(), 3));
    while state.state() != State::Running {
        state = news.message().await.unwrap().unwrap();
    }
    // Whoever computes it is named, with its kind.
    loop {
        let status = proving.get_status(GetStatusRequest {}).await.unwrap().into_inner();
        if status.gpus[0].current_job_id == job {
            assert_eq!(status.gpus[0].current_proof_kind, "porep_seal_commit");
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let cancelled = proving.cancel_proof(CancelProofRequest { job_id: job.clone() }).await.unwrap().into_inner();
    assert!(cancelled.was_running);
    while let Some(news) = news.message().await.unwrap() {
        state = news;
    }
    assert_eq!(state.state(), State::Cancelled);
    let again = proving.cancel_proof(CancelProofRequest { job_id: job.clone() }).await.unwrap().into_inner();
    assert!(!again.was_running);
    let ended = proving.await_proof(wait(&job, 0)).await.unwrap().into_inner();
    assert_eq!(ended.status(), Ended::Cancelled);
    let next = proving.await_proof(wait(&next.job_id, 0)).await.unwrap().into_inner();
    assert_eq!(next.status(), Ended::Completed, "what waited behind it is done");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_brought_and_freed() {
    let running = start(&[]).await;
    let mut proving = running.proving().await;
    let preload = |circuit: &str| PreloadSrsRequest { circuit_id: circuit.to_owned() };
    let evict = |circuit: &str| EvictSrsRequest { circuit_id: circuit.to_owned() };
    assert!(!proving.preload_srs(preload("porep-2k")).await.unwrap().into_inner().already_loaded);
    let status = proving.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.loaded_srs[0].circuit_id, "porep-2k");
    assert!(proving.preload_srs(preload("porep-2k")).await.unwrap().into_inner().already_loaded);
    assert!(!proving.preload_srs(preload("snap-2k")).await.unwrap().into_inner().already_loaded);
    let evicted = proving.evict_srs(evict("porep-2k")).await.unwrap().into_inner();
    assert_eq!((evicted.was_loaded, evicted.freed_bytes), (true, 1 << 30));
    assert!(!proving.evict_srs(evict("porep-2k")).await.unwrap().into_inner().was_loaded);
    let unknown = proving.preload_srs(preload("porep-3k")).await.unwrap_err();
    assert_eq!((unknown.code(), unknown.message()), (Code::NotFound, "no circuit is called \"porep-3k\""));
    let absent = proving.evict_srs(evict("")).await.unwrap_err();
    assert_eq!(absent.code(), Code::InvalidArgument);
}

fn refused<T: std::fmt::Debug>(answer: Result<T, Status>, code: Code, told: &str) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().contains(told), "{} does not say {told:?}", status.message());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_has_its_code() {
    let running =
        start(&[("limits.queue_length", "2"), ("limits.jobs_per_client", "3"), ("limits.max_message_size", "64KiB")])
            .await;
    let mut proving = running.proving().await;
    let submit = |id: &str, input: &str| request(ProofKind::PorepSealCommit, id, input);
    refused(proving.submit_proof(submit("", "invalid")).await, Code::InvalidArgument, "");
    refused(proving.submit_proof(submit("", "unable")).await, Code::FailedPrecondition, "");
    refused(proving.prove(ProveRequest { submit: None }).await, Code::InvalidArgument, "submit is absent");
    refused(proving.prove(prove(submit("", ""))).await, Code::InvalidArgument, "vanilla_proof is absent");
    refused(proving.await_proof(wait("nobody", 1)).await, Code::NotFound, "\"nobody\"");
    refused(proving.await_proof(wait("", 1)).await, Code::InvalidArgument, "job_id is absent");
    refused(proving.cancel_proof(CancelProofRequest { job_id: "x".repeat(500) }).await, Code::InvalidArgument, "500");
    let mut engine = running.engine().await;
    refused(engine.watch_proof(WatchProofRequest { job_id: "nobody".to_owned() }).await, Code::NotFound, "nobody");
    refused(engine.list_proofs(ListProofsRequest { limit: u32::MAX }).await, Code::InvalidArgument, "limit is");
    let long = "x".repeat(70_000);
    refused(proving.submit_proof(submit("", &long)).await, Code::ResourceExhausted, "65536");

    // One is worked on, two wait.
    let mut jobs = Vec::new();
    for id in ["a", "b", "c"] {
        let job = proving.submit_proof(submit(id, &format!("slow {id}"))).await.unwrap().into_inner().job_id;
        if jobs.is_empty() {
            let jobs = running.server.jobs().clone();
            until("the first has begun", move || jobs.look().in_progress() == 1).await;
        }
        jobs.push(job);
    }
    refused(proving.submit_proof(submit("d", "slow d")).await, Code::ResourceExhausted, "");
    proving.cancel_proof(CancelProofRequest { job_id: jobs.remove(2) }).await.unwrap();
    proving.submit_proof(submit("e", "slow e")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_has_so_much_time_and_the_proof_goes_on() {
    let options = FakeOptions { partition_time: Duration::from_millis(20), ..FakeOptions::default() };
    let running = start_over(FakeProver::start(options), &[]).await.unwrap();
    let mut proving = running.proving().await;
    // Six seconds of work.
    let slow = request(ProofKind::PorepSealCommit, "slow", "slow");
    let status = proving.prove(within(Duration::from_millis(500), prove(slow.clone()))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    let job = proving.submit_proof(slow).await.unwrap().into_inner();
    assert!(job.joined);
    let answer = proving.await_proof(wait(&job.job_id, 1)).await.unwrap().into_inner();
    assert_eq!((answer.status(), answer.job_id.as_str()), (Ended::Timeout, job.job_id.as_str()));
    // The call's own time counts if that is shorter.
    let answer = proving.await_proof(within(Duration::from_millis(500), wait(&job.job_id, u64::MAX))).await;
    assert_eq!(answer.unwrap().into_inner().status(), Ended::Timeout);
    let answer = proving.await_proof(wait(&job.job_id, u64::MAX)).await.unwrap().into_inner();
    assert_eq!(answer.status(), Ended::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_drains_answers_what_it_has_and_takes_nothing_new() {
    let options = FakeOptions { partition_time: Duration::from_millis(2), ..FakeOptions::default() };
    let running = start_over(FakeProver::start(options), &[]).await.unwrap();
    let mut proving = running.proving().await;
    let channel = running.channel().await;
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    let check = |service: &str| tonic_health::pb::HealthCheckRequest { service: service.to_owned() };
    let serving = tonic_health::ServingStatus::Serving as i32;
    for service in ["", "cuzk.v1.ProvingEngine", "cuzk.v1.Engine"] {
        assert_eq!(health.check(check(service)).await.unwrap().into_inner().status as i32, serving);
    }
    assert_eq!(health.check(check("other")).await.unwrap_err().code(), Code::NotFound);

    // Six tenths of a second of work within the grace period, and then some that is not.
    let first = request(ProofKind::PorepSealCommit, "first", "slow 1");
    let second = request(ProofKind::PorepSealCommit, "second", "slow 2");
    let third = request(ProofKind::PorepSealCommit, "third", "slow 3");
    let waiting: Vec<_> = [first, second.clone(), third]
        .into_iter()
        .map(|request| {
            let mut proving = proving.clone();
            tokio::spawn(async move { proving.prove(prove(request)).await })
        })
        .collect();
    let jobs = running.server.jobs().clone();
    until("the first has begun", || jobs.look().in_progress() == 1 && jobs.look().pending() == 2).await;
    let Running { server, directory, .. } = running;
    let draining = tokio::spawn(server.drain(Duration::from_millis(900)));
    until("it drains", || jobs.look().state.name() == "draining").await;
    let new = request(ProofKind::PorepSealCommit, "new", "new");
    refused(proving.submit_proof(new).await, Code::Unavailable, "");
    let status = health.check(check("")).await.unwrap().into_inner().status;
    assert_eq!(status, tonic_health::ServingStatus::NotServing as i32);
    assert_eq!(proving.get_status(GetStatusRequest {}).await.unwrap().into_inner().state, "draining");
    let (mut done, mut told) = (0, 0);
    for answer in waiting {
        match answer.await.unwrap() {
            Ok(answer) => {
                assert_eq!(answer.into_inner().result.unwrap().status(), Ended::Completed);
                done += 1;
            }
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                assert!(status.message().contains("goes on after its next start"), "{status:?}");
                told += 1;
            }
        }
    }
    assert_eq!(done + told, 3);
    assert!(told >= 1, "1.8 seconds of work do not fit into 0.9");
    tokio::time::timeout(SOON, draining).await.unwrap().unwrap();
    drop(jobs);

    // The next start goes on.
    let loaded = super::load(&directory, &[]).unwrap();
    let prover = FakeProver::start(FakeOptions::default());
    let about = cuzk_server::http::About::now("test", "1", "");
    let server = cuzk_server::server::Server::start(loaded, prover, about).await.unwrap();
    let address = server.addresses()[0].to_string();
    let running = Running { server, address, directory };
    let result = running.proving().await.prove(prove(second)).await.unwrap().into_inner().result.unwrap();
    assert_eq!(result.status(), Ended::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn services_are_described() {
    use tonic_reflection::pb::{v1, v1alpha};
    let running = start(&[]).await;
    let mut names = Vec::new();
    {
        use v1::{
            ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
            server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
        };
        let ask = |message| {
            tokio_stream::iter([ServerReflectionRequest { host: String::new(), message_request: Some(message) }])
        };
        let mut client = ServerReflectionClient::new(running.channel().await);
        let list = ask(MessageRequest::ListServices(String::new()));
        let mut answers = client.server_reflection_info(list).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
        names.extend(list.service.into_iter().map(|service| service.name));
        let file = ask(MessageRequest::FileContainingSymbol("cuzk.v1.ProvingEngine".to_owned()));
        let mut answers = client.server_reflection_info(file).await.unwrap().into_inner();
        let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::FileDescriptorResponse(file) = answer else { panic!("{answer:?}") };
        assert!(!file.file_descriptor_proto.is_empty());
    }
    for name in ["cuzk.v1.ProvingEngine", "cuzk.v1.Engine", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|n| n == name), "{name} is not in {names:?}");
    }
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(running.channel().await);
    let mut answers = client.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some());
}

/// GetStatus while eight clients submit and wait. The time is printed; the bound is for a machine that is busy.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_does_not_wait_for_proofs() {
    let running = start(&[]).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut clients = Vec::new();
    for client in 0..8 {
        let mut proving = running.proving().await;
        let stopped = stopped.clone();
        clients.push(tokio::spawn(async move {
            let mut done = 0;
            while !*stopped.borrow() {
                let request =
                    request(ProofKind::WinningPost, &format!("{client}-{done}"), "input ".repeat(1000).as_str());
                proving.prove(prove(request)).await.unwrap();
                done += 1;
            }
            done
        }));
    }
    let mut proving = running.proving().await;
    let mut times = Vec::new();
    for _ in 0..300 {
        let started = Instant::now();
        proving.get_status(GetStatusRequest {}).await.unwrap();
        times.push(started.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.send(true).unwrap();
    let mut done = 0;
    for client in clients {
        done += client.await.unwrap();
    }
    times.sort_unstable();
    println!("GetStatus beside {done} proofs: median {:?}, p99 {:?}, worst {:?}", times[150], times[297], times[299]);
    assert!(done > 8, "there was something to wait for");
    assert!(times[297] < Duration::from_secs(5));
}
