//! The calls.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use cuzk_proto::v1::{
    AwaitProofRequest, AwaitProofResponse, CancelProofRequest, CancelProofResponse, EvictSrsRequest, EvictSrsResponse,
    GetMetricsRequest, GetMetricsResponse, GetStatusRequest, GetStatusResponse, ListProofsRequest, ListProofsResponse,
    PreloadSrsRequest, PreloadSrsResponse, ProofKind, ProofProgress, ProveRequest, ProveResponse, SubmitProofRequest,
    SubmitProofResponse, WatchProofRequest, engine_server::Engine, proving_engine_server::ProvingEngine,
};
use prost::Message;
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Extensions, Request, Response, Status, metadata::MetadataValue};
use tracing::Span;

use super::{
    Gate, Grpc, convert,
    deadline::Deadline,
    failure::{self, JOB_ID, internal, invalid},
    validate,
};
use crate::{
    http::metrics_text,
    jobs::{ClientName, JobsLook, Submitted, Waited},
    listen::Peer,
    prover::{KeyError, Look},
    redact,
};

/// Keys that are brought or freed at a time. Each takes a thread for as long as it lasts.
const KEYS_AT_A_TIME: usize = 4;

/// Jobs that devices may be working on, for their kinds.
const MOST_UNDER_WAY: usize = 64;

/// Longer than anybody waits, and short enough to be added to now.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// Both services.
#[derive(Clone)]
pub(super) struct Service {
    inner: Grpc,
    keys: Arc<Semaphore>,
}

impl Service {
    pub(super) fn new(inner: Grpc) -> Self {
        Self { inner, keys: Arc::new(Semaphore::new(KEYS_AT_A_TIME)) }
    }

    /// Accepts a request.
    async fn accept(&self, request: SubmitProofRequest, extensions: &Extensions) -> Result<Submitted, Status> {
        validate::submit(&request)?;
        let _in_hand = extensions.get::<Gate>().map(|gate| gate.hold(request.encoded_len() as u64));
        let client = ClientName(extensions.get::<Peer>().map_or_else(|| "unknown".to_owned(), Peer::client));
        let submitted = self.inner.jobs.submit(request, &client).await.map_err(|e| failure::submit(&e))?;
        Span::current().record("job", submitted.job.as_str());
        Ok(submitted)
    }

    /// Both looks. The prover may take its time for its own, and is asked where that holds up nobody.
    async fn look(&self) -> Result<(JobsLook, Look), Status> {
        let Grpc { jobs, prover, .. } = self.inner.clone();
        spawn_blocking(move || (jobs.look(), redact::look(&*prover))).await.map_err(|e| broken(&e))
    }

    /// Does something to a key, which can take minutes.
    async fn key<T: Send + 'static>(
        &self,
        circuit: String,
        deadline: Option<Deadline>,
        act: impl FnOnce(&Grpc, &str) -> Result<T, KeyError> + Send + 'static,
    ) -> Result<T, Status> {
        validate::circuit_id(&circuit)?;
        let Ok(place) = Arc::clone(&self.keys).try_acquire_owned() else {
            let text = format!("{KEYS_AT_A_TIME} keys are brought or freed already, which is the limit");
            return Err(Status::resource_exhausted(text));
        };
        let inner = self.inner.clone();
        let acting = spawn_blocking(move || {
            let outcome = act(&inner, &circuit);
            drop(place);
            outcome
        });
        let outcome = match deadline {
            None => acting.await,
            Some(deadline) => timeout(deadline.remaining(), acting)
                .await
                .map_err(|_| Status::deadline_exceeded("the key is not there yet; its loading goes on"))?,
        };
        outcome.map_err(|e| broken(&e))?.map_err(|e| failure::key(&e))
    }

    /// On which device a job is, if it is on one.
    async fn device_of(&self, job: &str) -> Result<String, Status> {
        let (_, look) = self.look().await?;
        let device = look.devices.iter().find(|device| device.job.as_deref() == Some(job));
        Ok(device.map_or_else(String::new, |device| format!("{}: {}", device.backend, device.name)))
    }
}

/// A task of ours panicked.
fn broken(error: &tokio::task::JoinError) -> Status {
    internal(Code::Internal, "the call failed", error)
}

/// A status that says which job it is about.
fn about_job(mut status: Status, job: &str) -> Status {
    if let Ok(value) = MetadataValue::try_from(job) {
        status.metadata_mut().insert(JOB_ID, value);
    }
    status
}

fn stopping(job: &str) -> Status {
    let text =
        format!("the server is about to stop; job {job} goes on after its next start: send the same request then");
    about_job(Status::unavailable(text), job)
}

fn deadline_of<T>(request: &Request<T>) -> Option<Deadline> {
    request.extensions().get::<Deadline>().copied()
}

#[tonic::async_trait]
impl ProvingEngine for Service {
    async fn submit_proof(
        &self,
        request: Request<SubmitProofRequest>,
    ) -> Result<Response<SubmitProofResponse>, Status> {
        let (_, extensions, request) = request.into_parts();
        let Submitted { job, joined, position } = self.accept(request, &extensions).await?;
        // New work is on no device yet.
        let assigned_gpu = if joined { self.device_of(&job).await? } else { String::new() };
        Ok(Response::new(SubmitProofResponse { job_id: job, queue_position: position, assigned_gpu, joined }))
    }

    async fn await_proof(&self, request: Request<AwaitProofRequest>) -> Result<Response<AwaitProofResponse>, Status> {
        let deadline = deadline_of(&request).map(Deadline::remaining);
        let AwaitProofRequest { job_id, timeout_ms } = request.into_inner();
        validate::job_id(&job_id)?;
        Span::current().record("job", job_id.as_str());
        let asked = (timeout_ms > 0).then(|| Duration::from_millis(timeout_ms).min(LONGEST));
        let wait = asked.into_iter().chain(deadline).min();
        match self.inner.jobs.wait(&job_id, wait).await.map_err(|e| failure::job(&e))? {
            Waited::Ended(ended) => Ok(Response::new(convert::ended(ended))),
            Waited::StillRunning => Ok(Response::new(convert::still_running(job_id))),
            Waited::Stopping => Err(stopping(&job_id)),
        }
    }

    async fn prove(&self, request: Request<ProveRequest>) -> Result<Response<ProveResponse>, Status> {
        let deadline = deadline_of(&request);
        let (_, extensions, request) = request.into_parts();
        let submit = request.submit.ok_or_else(|| invalid("submit is absent"))?;
        let job = self.accept(submit, &extensions).await?.job;
        let waited = self.inner.jobs.wait(&job, deadline.map(Deadline::remaining)).await;
        match waited.map_err(|e| failure::job(&e))? {
            Waited::Ended(ended) => Ok(Response::new(ProveResponse { result: Some(convert::ended(ended)) })),
            Waited::StillRunning => {
                let text = format!("job {job} is not done yet and goes on: send the same request again to wait for it");
                Err(about_job(Status::deadline_exceeded(text), &job))
            }
            Waited::Stopping => Err(stopping(&job)),
        }
    }

    async fn cancel_proof(
        &self,
        request: Request<CancelProofRequest>,
    ) -> Result<Response<CancelProofResponse>, Status> {
        let CancelProofRequest { job_id } = request.into_inner();
        validate::job_id(&job_id)?;
        Span::current().record("job", job_id.as_str());
        let was_running = self.inner.jobs.cancel(&job_id).await.map_err(|e| failure::job(&e))?;
        Ok(Response::new(CancelProofResponse { was_running }))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let (jobs, prover) = self.look().await?;
        // Those under way come first. One that has ended meanwhile has no kind any more.
        let kinds: HashMap<String, ProofKind> =
            self.inner.jobs.unfinished(MOST_UNDER_WAY).into_iter().map(|job| (job.job, job.kind)).collect();
        let status = convert::status(&jobs, &prover, &self.inner.about, |job| kinds.get(job).copied());
        Ok(Response::new(status))
    }

    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        let (jobs, prover) = self.look().await?;
        let prometheus_text = metrics_text(&jobs, &prover, &self.inner.about);
        Ok(Response::new(GetMetricsResponse { prometheus_text }))
    }

    async fn preload_srs(&self, request: Request<PreloadSrsRequest>) -> Result<Response<PreloadSrsResponse>, Status> {
        let deadline = deadline_of(&request);
        let circuit = request.into_inner().circuit_id;
        let done = self.key(circuit, deadline, |grpc, circuit| grpc.prover.preload(circuit)).await?;
        let load_time_ms = u64::try_from(done.took.as_millis()).unwrap_or(u64::MAX);
        Ok(Response::new(PreloadSrsResponse { already_loaded: done.already_loaded, load_time_ms }))
    }

    async fn evict_srs(&self, request: Request<EvictSrsRequest>) -> Result<Response<EvictSrsResponse>, Status> {
        let deadline = deadline_of(&request);
        let circuit = request.into_inner().circuit_id;
        let done = self.key(circuit, deadline, |grpc, circuit| grpc.prover.evict(circuit)).await?;
        Ok(Response::new(EvictSrsResponse { was_loaded: done.was_loaded, freed_bytes: done.freed_bytes }))
    }
}

#[tonic::async_trait]
impl Engine for Service {
    type WatchProofStream = Pin<Box<dyn Stream<Item = Result<ProofProgress, Status>> + Send>>;

    async fn watch_proof(
        &self,
        request: Request<WatchProofRequest>,
    ) -> Result<Response<Self::WatchProofStream>, Status> {
        let WatchProofRequest { job_id } = request.into_inner();
        validate::job_id(&job_id)?;
        Span::current().record("job", job_id.as_str());
        let news = self.inner.jobs.watch(&job_id).await.map_err(|e| failure::job(&e))?;
        Ok(Response::new(Box::pin(news.map(Ok))))
    }

    async fn list_proofs(&self, request: Request<ListProofsRequest>) -> Result<Response<ListProofsResponse>, Status> {
        let limit = validate::list_limit(request.into_inner().limit)?;
        let jobs = self.inner.jobs.list(limit).await.map_err(|e| failure::job(&e))?;
        Ok(Response::new(ListProofsResponse { proofs: jobs.into_iter().map(convert::summary).collect() }))
    }
}
