//! The client against servers that start late, go away, refuse, keep silent, and want TLS and tokens.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use cuzk_proto::{
    Address, Client, ClientError, ClientOptions, Code, MESSAGE_LIMIT, TlsOptions, Token,
    v1::{
        await_proof_response::Status as End,
        engine_server::{Engine, EngineServer},
        proof_progress::State,
        proving_engine_server::{ProvingEngine, ProvingEngineServer},
        *,
    },
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::{
    net::UnixListener,
    runtime::{self, Runtime},
};
use tokio_stream::{Iter, wrappers::UnixListenerStream};
use tonic::{
    Request, Response, Status,
    transport::{Certificate, Identity, Server, ServerTlsConfig},
};

/// Answers what a test has it answer.
#[derive(Clone, Default)]
struct Canned(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: AtomicU32,
    /// So many calls of AwaitProof time out before the job ends.
    timeouts: AtomicU32,
    /// So many calls of any kind are refused as unavailable first.
    unavailable: AtomicU32,
    /// How long GetStatus takes.
    silence: Mutex<Duration>,
    token: Option<&'static str>,
}

fn count_down(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl Canned {
    fn check<T>(&self, request: &Request<T>) -> Result<(), Status> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        if count_down(&self.0.unavailable) {
            return Err(Status::unavailable("draining"));
        }
        let given = request.metadata().get("authorization").map(|v| v.to_str().unwrap().to_owned());
        match self.0.token {
            Some(token) if given.as_deref() != Some(&format!("Bearer {token}")) => Err(Status::unauthenticated("who?")),
            _ => Ok(()),
        }
    }
}

fn end(job: &str) -> AwaitProofResponse {
    let status = if job == "failing" { End::Failed } else { End::Completed };
    AwaitProofResponse { job_id: job.into(), status: status.into(), ..AwaitProofResponse::default() }
}

#[tonic::async_trait]
impl ProvingEngine for Canned {
    async fn submit_proof(
        &self,
        request: Request<SubmitProofRequest>,
    ) -> Result<Response<SubmitProofResponse>, Status> {
        self.check(&request)?;
        let request = request.into_inner();
        if request.proof_kind() == ProofKind::Unspecified {
            return Err(Status::invalid_argument("proof_kind: is missing"));
        }
        // The size of the input, so that a test sees that it arrived whole.
        let job_id = format!("{} {}", request.request_id, request.vanilla_proof.len());
        Ok(Response::new(SubmitProofResponse { job_id, ..SubmitProofResponse::default() }))
    }

    async fn await_proof(&self, request: Request<AwaitProofRequest>) -> Result<Response<AwaitProofResponse>, Status> {
        self.check(&request)?;
        let request = request.into_inner();
        assert!(request.timeout_ms > 0, "the client never waits without limit");
        if request.job_id == "unknown" {
            return Err(Status::not_found("no such job"));
        }
        let mut answer = end(&request.job_id);
        if count_down(&self.0.timeouts) {
            tokio::time::sleep(Duration::from_millis(request.timeout_ms.min(20))).await;
            answer.set_status(End::Timeout);
        }
        Ok(Response::new(answer))
    }

    async fn prove(&self, request: Request<ProveRequest>) -> Result<Response<ProveResponse>, Status> {
        self.check(&request)?;
        let submit = request.into_inner().submit.ok_or_else(|| Status::invalid_argument("submit: is missing"))?;
        let result = (submit.sector_number != 404).then(|| end(&submit.request_id));
        Ok(Response::new(ProveResponse { result }))
    }

    async fn cancel_proof(
        &self,
        request: Request<CancelProofRequest>,
    ) -> Result<Response<CancelProofResponse>, Status> {
        self.check(&request)?;
        Ok(Response::new(CancelProofResponse { was_running: request.into_inner().job_id == "running" }))
    }

    async fn get_status(&self, request: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        self.check(&request)?;
        let silence = *self.0.silence.lock().unwrap();
        tokio::time::sleep(silence).await;
        Ok(Response::new(GetStatusResponse { version: "canned".into(), ..GetStatusResponse::default() }))
    }

    async fn get_metrics(&self, request: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        self.check(&request)?;
        Ok(Response::new(GetMetricsResponse { prometheus_text: "cuzk_uptime_seconds 1\n".into() }))
    }

    async fn preload_srs(&self, request: Request<PreloadSrsRequest>) -> Result<Response<PreloadSrsResponse>, Status> {
        self.check(&request)?;
        Ok(Response::new(PreloadSrsResponse { already_loaded: false, load_time_ms: 7 }))
    }

    async fn evict_srs(&self, request: Request<EvictSrsRequest>) -> Result<Response<EvictSrsResponse>, Status> {
        self.check(&request)?;
        match request.into_inner().circuit_id.as_str() {
            "busy" => Err(Status::failed_precondition("the key of busy is in use")),
            _ => Ok(Response::new(EvictSrsResponse { was_loaded: true, freed_bytes: 9 })),
        }
    }
}

#[tonic::async_trait]
impl Engine for Canned {
    type WatchProofStream = Iter<std::vec::IntoIter<Result<ProofProgress, Status>>>;

    async fn watch_proof(
        &self,
        request: Request<WatchProofRequest>,
    ) -> Result<Response<Self::WatchProofStream>, Status> {
        self.check(&request)?;
        let state = |state: State, done| {
            Ok(ProofProgress { state: state.into(), partitions_done: done, ..ProofProgress::default() })
        };
        // The first stream breaks in the middle, the second is whole.
        let first = self.0.calls.load(Ordering::SeqCst) == 1;
        let news = if first {
            vec![state(State::Queued, 0), Err(Status::unavailable("draining"))]
        } else {
            vec![state(State::Running, 1), state(State::Completed, 2)]
        };
        Ok(Response::new(tokio_stream::iter(news)))
    }

    async fn list_proofs(&self, request: Request<ListProofsRequest>) -> Result<Response<ListProofsResponse>, Status> {
        self.check(&request)?;
        let job = |n: u32| ProofSummary { job_id: n.to_string(), ..ProofSummary::default() };
        Ok(Response::new(ListProofsResponse { proofs: (0..request.into_inner().limit).map(job).collect() }))
    }
}

/// A server on a socket of its own, with threads of its own, so that it can go like a process does: with all
/// connections.
struct Served(Runtime);

impl Served {
    fn start(socket: &PathBuf, canned: Canned) -> Self {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let entered = runtime.enter();
        // A socket whose server is gone stays behind.
        let _ = std::fs::remove_file(socket);
        let incoming = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
        let server = Server::builder()
            .add_service(ProvingEngineServer::new(canned.clone()).max_decoding_message_size(MESSAGE_LIMIT))
            .add_service(EngineServer::new(canned));
        runtime.spawn(server.serve_with_incoming(incoming));
        drop(entered);
        Self(runtime)
    }

    fn stop(self) {
        self.0.shutdown_background();
    }
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("cuzk.sock")
    }

    fn address(&self) -> Address {
        Address::Unix(self.socket())
    }
}

fn patient(millis: u64) -> ClientOptions {
    ClientOptions { connect_limit: Duration::from_millis(millis), ..ClientOptions::default() }
}

#[tokio::test]
async fn a_server_that_starts_late_is_found() {
    let place = Place::new();
    let started = Instant::now();
    let socket = place.socket();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(400)).await;
        Served::start(&socket, Canned::default())
    });
    let client = Client::connect(&place.address(), patient(20_000)).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(400));
    assert_eq!(client.status().await.unwrap().version, "canned");
    late.await.unwrap().stop();
}

#[tokio::test]
async fn a_server_that_never_starts_is_given_up() {
    let place = Place::new();
    let error = Client::connect(&place.address(), patient(300)).await.unwrap_err();
    let ClientError::Connect { address, attempts, elapsed, cause } = error else { panic!("{error}") };
    assert_eq!(address, place.address().to_string());
    assert!(attempts >= 3 && elapsed >= Duration::from_millis(300), "{attempts} attempts in {elapsed:?}");
    assert!(cause.contains("No such file"), "{cause}");
    let error = Client::connect(&place.address(), patient(0)).await.unwrap_err();
    assert!(matches!(error, ClientError::Connect { attempts: 1, .. }), "{error}");
}

#[tokio::test]
async fn every_call_has_its_answer() {
    let place = Place::new();
    let served = Served::start(&place.socket(), Canned::default());
    let client = Client::connect(&place.address(), patient(5000)).await.unwrap();
    let request = SubmitProofRequest {
        request_id: "r".into(),
        proof_kind: ProofKind::WinningPost.into(),
        // More than the 4 MiB that gRPC takes by default.
        vanilla_proof: vec![b'x'; 20 << 20],
        ..SubmitProofRequest::default()
    };
    assert_eq!(client.submit(&request).await.unwrap().job_id, format!("r {}", 20 << 20));
    assert_eq!(client.prove(&request, None).await.unwrap().status(), End::Completed);
    assert_eq!(client.wait("failing", None).await.unwrap().status(), End::Failed);
    assert!(client.cancel("running").await.unwrap() && !client.cancel("ended").await.unwrap());
    assert_eq!(client.metrics().await.unwrap(), "cuzk_uptime_seconds 1\n");
    assert_eq!(client.preload("porep-32g", None).await.unwrap().load_time_ms, 7);
    assert_eq!(client.evict("porep-32g").await.unwrap().freed_bytes, 9);
    assert_eq!(client.list(3).await.unwrap().len(), 3);
    served.stop();
}

#[tokio::test]
async fn a_refusal_keeps_its_status_and_is_not_repeated() {
    let place = Place::new();
    let canned = Canned::default();
    let served = Served::start(&place.socket(), canned.clone());
    let client = Client::connect(&place.address(), patient(5000)).await.unwrap();
    let error = client.submit(&SubmitProofRequest::default()).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidArgument));
    assert!(error.to_string().contains("SubmitProof was refused") && error.to_string().contains("proof_kind: is"));
    assert_eq!(client.evict("busy").await.unwrap_err().code(), Some(Code::FailedPrecondition));
    assert_eq!(client.wait("unknown", None).await.unwrap_err().code(), Some(Code::NotFound));
    let no_result = SubmitProofRequest { sector_number: 404, ..SubmitProofRequest::default() };
    assert_eq!(client.prove(&no_result, None).await.unwrap_err().code(), Some(Code::Internal));
    assert_eq!(canned.0.calls.load(Ordering::SeqCst), 4);
    served.stop();
}

#[tokio::test]
async fn a_silent_server_costs_no_more_than_the_deadline() {
    let place = Place::new();
    let canned = Canned::default();
    *canned.0.silence.lock().unwrap() = Duration::from_secs(30);
    canned.0.timeouts.store(u32::MAX, Ordering::SeqCst);
    let served = Served::start(&place.socket(), canned);
    let options = ClientOptions { call_limit: Duration::from_millis(200), ..patient(5000) };
    let client = Client::connect(&place.address(), options).await.unwrap();
    let limit = Duration::from_millis(200);
    let error = client.status().await.unwrap_err();
    assert!(matches!(error, ClientError::Deadline { call: "GetStatus", limit: l } if l == limit), "{error}");
    let error = client.wait("j", Some(limit)).await.unwrap_err();
    assert!(matches!(error, ClientError::Deadline { call: "AwaitProof", limit: l } if l == limit), "{error}");
    served.stop();
}

#[tokio::test]
async fn a_wait_survives_restarts_of_the_server() {
    let place = Place::new();
    let canned = Canned::default();
    canned.0.timeouts.store(u32::MAX, Ordering::SeqCst);
    let served = Served::start(&place.socket(), canned.clone());
    let client = Client::connect(&place.address(), patient(20_000)).await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.wait("j", None).await }
    });
    while canned.0.calls.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    served.stop();
    // While it is away, the wait goes on; the first answers of the next life are that it is not ready.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    let next = Canned::default();
    next.0.unavailable.store(2, Ordering::SeqCst);
    next.0.timeouts.store(3, Ordering::SeqCst);
    let served = Served::start(&place.socket(), next.clone());
    assert_eq!(waiting.await.unwrap().unwrap().status(), End::Completed);
    assert_eq!(next.0.calls.load(Ordering::SeqCst), 2 + 3 + 1);
    served.stop();
}

#[tokio::test]
async fn only_named_work_is_submitted_twice() {
    let place = Place::new();
    let canned = Canned::default();
    let served = Served::start(&place.socket(), canned.clone());
    let client = Client::connect(&place.address(), patient(5000)).await.unwrap();
    let named = SubmitProofRequest {
        request_id: "r".into(),
        proof_kind: ProofKind::WinningPost.into(),
        ..SubmitProofRequest::default()
    };
    canned.0.unavailable.store(2, Ordering::SeqCst);
    assert_eq!(client.submit(&named).await.unwrap().job_id, "r 0");
    assert_eq!(canned.0.calls.load(Ordering::SeqCst), 3);
    canned.0.unavailable.store(2, Ordering::SeqCst);
    let nameless = SubmitProofRequest { request_id: String::new(), ..named };
    assert_eq!(client.submit(&nameless).await.unwrap_err().code(), Some(Code::Unavailable));
    assert_eq!(canned.0.calls.load(Ordering::SeqCst), 4);
    served.stop();
    // Nobody is there: nothing was sent, so even nameless work is tried again, until the patience ends.
    let client_error = client.submit(&nameless).await.unwrap_err();
    assert!(matches!(client_error, ClientError::Connect { .. } | ClientError::Lost { .. }), "{client_error}");
}

#[tokio::test]
async fn a_watch_goes_on_after_a_lost_connection_and_ends_with_the_job() {
    let place = Place::new();
    let served = Served::start(&place.socket(), Canned::default());
    let client = Client::connect(&place.address(), patient(5000)).await.unwrap();
    let mut watch = client.watch("j").await.unwrap();
    let mut states = Vec::new();
    while let Some(progress) = watch.next().await.unwrap() {
        states.push((progress.state(), progress.partitions_done));
    }
    assert_eq!(states, [(State::Queued, 0), (State::Running, 1), (State::Completed, 2)]);
    assert!(watch.next().await.unwrap().is_none(), "it stays ended");
    served.stop();
}

/// An authority, and what it signs.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    fn sign(&self, name: &str) -> (Vec<u8>, Vec<u8>) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        (certificate.pem().into_bytes(), key.serialize_pem().into_bytes())
    }
}

/// A server with TLS that knows its clients by certificate and token, and its address.
async fn secure(authority: &Authority) -> Address {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (certificate, key) = authority.sign("prover.example");
    let tls = ServerTlsConfig::new()
        .identity(Identity::from_pem(certificate, key))
        .client_ca_root(Certificate::from_pem(authority.pem()));
    let canned = Canned(Arc::new(Inner { token: Some("s3cret"), ..Inner::default() }));
    let server = Server::builder().tls_config(tls).unwrap().add_service(ProvingEngineServer::new(canned));
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
    address
}

#[tokio::test]
async fn both_sides_know_each_other_by_certificate_and_token() {
    let authority = Authority::new("authority");
    let address = secure(&authority).await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let (certificate, key) = authority.sign("client.example");
    let (ca, certificate, key) = (file("ca", &authority.pem()), file("cert", &certificate), file("key", &key));
    let token = Token::read(&file("token", b"s3cret\n")).unwrap();
    let server_name = Some("prover.example".to_owned());
    let known = TlsOptions { server_name, ..TlsOptions::read(&ca, Some((&certificate, &key))).unwrap() };
    let options = ClientOptions { tls: Some(known.clone()), token: Some(token), ..patient(5000) };
    let client = Client::connect(&address, options.clone()).await.unwrap();
    assert_eq!(client.status().await.unwrap().version, "canned");

    // Without its token, the caller is refused by the server.
    let client = Client::connect(&address, ClientOptions { token: None, ..options.clone() }).await.unwrap();
    assert_eq!(client.status().await.unwrap_err().code(), Some(Code::Unauthenticated));

    // Without its certificate, TLS does not come about: with TLS 1.3 that shows at the first call.
    let tls = Some(TlsOptions { identity_pem: None, ..known.clone() });
    let options_anonymous = ClientOptions { tls, ..ClientOptions { connect_limit: Duration::ZERO, ..options.clone() } };
    let error = match Client::connect(&address, options_anonymous).await {
        Ok(client) => client.status().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, ClientError::Connect { .. } | ClientError::Lost { .. }), "{error}");

    // A server with another name, or of another authority, is not talked to, and not tried again.
    let name = TlsOptions { server_name: None, ..known.clone() };
    let stranger = TlsOptions { ca_pem: Authority::new("stranger").pem(), ..known };
    for (tls, reason) in [(name, "not valid for name"), (stranger, "UnknownIssuer")] {
        let error = Client::connect(&address, ClientOptions { tls: Some(tls), ..options.clone() }).await.unwrap_err();
        let ClientError::Connect { attempts: 1, cause, .. } = &error else { panic!("{error}") };
        assert!(cause.contains(reason), "{cause}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = TlsOptions::read("/nonexistent/ca.pem".as_ref(), None).unwrap_err();
    assert!(error.to_string().starts_with("cannot read /nonexistent/ca.pem: "), "{error}");
    assert!(Token::read("/nonexistent/token".as_ref()).is_err());
}
