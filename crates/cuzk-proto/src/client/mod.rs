//! A client that outlives its server's restarts.

mod error;
mod options;
mod patience;
mod watch;

use std::{
    fmt,
    future::Future,
    time::{Duration, Instant},
};

use tonic::{Code, Request, Response, Status, transport::Channel};

pub use error::ClientError;
pub use options::{ClientOptions, TlsOptions, Token};
pub use watch::Watch;

use crate::{
    Address,
    v1::{
        AwaitProofRequest, AwaitProofResponse, CancelProofRequest, EvictSrsRequest, EvictSrsResponse,
        GetMetricsRequest, GetStatusRequest, GetStatusResponse, ListProofsRequest, PreloadSrsRequest,
        PreloadSrsResponse, ProofSummary, ProveRequest, SubmitProofRequest, SubmitProofResponse, await_proof_response,
        engine_client::EngineClient, proving_engine_client::ProvingEngineClient,
    },
};
use error::Fault;
use patience::Patience;

/// The largest message in either direction, in bytes: a C1 has 50 to 200 MB.
pub const MESSAGE_LIMIT: usize = 256 << 20;

/// [`Client::wait`] asks again after so long: a connection that carries nothing for longer is cut by many a router.
const WAIT_SLICE: Duration = Duration::from_secs(60);

/// What an answer may take longer than the time that its request gave the server.
const GRACE: Duration = Duration::from_secs(10);

/// A connection to a server. Clones share it.
///
/// A server that is not there, cannot be reached or drains is tried again, with growing pauses, for
/// [`ClientOptions::connect_limit`]. A call is repeated only where that changes nothing: a proof without a `request_id`
/// is not submitted twice.
#[derive(Clone)]
pub struct Client {
    address: String,
    options: ClientOptions,
    proving: ProvingEngineClient<Channel>,
    engine: EngineClient<Channel>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.address)
    }
}

/// Whether a call may be sent again when nobody knows whether it arrived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// It changes nothing, or nothing more than the first did.
    Allowed,
    Forbidden,
}

impl Client {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`ClientError::Options`] if address and options do not go together, [`ClientError::Connect`] if there is no
    /// server within [`ClientOptions::connect_limit`].
    pub async fn connect(address: &Address, options: ClientOptions) -> Result<Self, ClientError> {
        let endpoint = options::endpoint(address, &options)?;
        let mut patience = Patience::new(options.connect_limit);
        let channel = loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(error) => {
                    if error::is_permanent(&error) || !patience.pause(None).await {
                        let (attempts, elapsed) = patience.spent();
                        let cause = error::in_words(&error);
                        return Err(ClientError::Connect { address: address.to_string(), attempts, elapsed, cause });
                    }
                }
            }
        };
        Ok(Self {
            address: address.to_string(),
            options,
            proving: ProvingEngineClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            engine: EngineClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT),
        })
    }

    /// Hands a proof in and returns when the server has it safe.
    ///
    /// # Errors
    /// [`ClientError`]; the codes of a refusal are those of `SubmitProof` in the proto file.
    pub async fn submit(&self, request: &SubmitProofRequest) -> Result<SubmitProofResponse, ClientError> {
        let limit = Some(self.options.call_limit);
        self.call("SubmitProof", limit, repeat_of(request), |client, left| async move {
            client.proving.clone().submit_proof(client.request(request.clone(), left)).await
        })
        .await
    }

    /// Waits for the end of a job, through lost connections and restarts of the server.
    ///
    /// # Errors
    /// [`ClientError::Deadline`] after `limit`, which leaves the job as it is; [`ClientError::Refused`] with
    /// [`Code::NotFound`] if there is no such job. A job that failed is no error here: its status says so.
    pub async fn wait(&self, job: &str, limit: Option<Duration>) -> Result<AwaitProofResponse, ClientError> {
        let started = Instant::now();
        loop {
            let slice = match limit {
                None => WAIT_SLICE,
                Some(limit) => match limit.saturating_sub(started.elapsed()) {
                    Duration::ZERO => return Err(ClientError::Deadline { call: "AwaitProof", limit }),
                    left => left.min(WAIT_SLICE),
                },
            };
            // Zero would be without limit.
            let timeout_ms = slice.as_millis().max(1) as u64;
            let answer = self
                .call("AwaitProof", Some(slice + GRACE), Repeat::Allowed, |client, left| async move {
                    let request = AwaitProofRequest { job_id: job.to_owned(), timeout_ms };
                    client.proving.clone().await_proof(client.request(request, left)).await
                })
                .await?;
            if answer.status() != await_proof_response::Status::Timeout {
                return Ok(answer);
            }
        }
    }

    /// Hands a proof in and waits for it in one call, as Curio does. With a `request_id` it survives lost connections:
    /// the repeated call joins the work.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`wait`](Self::wait). After `limit` the work goes on at the server.
    pub async fn prove(
        &self,
        request: &SubmitProofRequest,
        limit: Option<Duration>,
    ) -> Result<AwaitProofResponse, ClientError> {
        let response = self
            .call("Prove", limit, repeat_of(request), |client, left| async move {
                let request = ProveRequest { submit: Some(request.clone()) };
                client.proving.clone().prove(client.request(request, left)).await
            })
            .await?;
        let empty =
            || ClientError::Refused { call: "Prove", code: Code::Internal, message: "the answer has no result".into() };
        response.result.ok_or_else(empty)
    }

    /// Ends a job, and tells whether it had not ended before.
    ///
    /// # Errors
    /// [`ClientError`]; [`Code::NotFound`] if there is no such job.
    pub async fn cancel(&self, job: &str) -> Result<bool, ClientError> {
        // Repeated, it might say that the job had ended: because of the first time.
        let limit = Some(self.options.call_limit);
        self.call("CancelProof", limit, Repeat::Forbidden, |client, left| async move {
            let request = CancelProofRequest { job_id: job.to_owned() };
            client.proving.clone().cancel_proof(client.request(request, left)).await
        })
        .await
        .map(|response| response.was_running)
    }

    /// Devices, keys, queues and memory at this moment.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn status(&self) -> Result<GetStatusResponse, ClientError> {
        let limit = Some(self.options.call_limit);
        self.call("GetStatus", limit, Repeat::Allowed, |client, left| async move {
            client.proving.clone().get_status(client.request(GetStatusRequest {}, left)).await
        })
        .await
    }

    /// The server's metrics in Prometheus' text format.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let limit = Some(self.options.call_limit);
        self.call("GetMetrics", limit, Repeat::Allowed, |client, left| async move {
            client.proving.clone().get_metrics(client.request(GetMetricsRequest {}, left)).await
        })
        .await
        .map(|response| response.prometheus_text)
    }

    /// Brings the key of a circuit, such as `porep-32g`, to the devices. Takes as long as reading it does.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn preload(&self, circuit: &str, limit: Option<Duration>) -> Result<PreloadSrsResponse, ClientError> {
        self.call("PreloadSRS", limit, Repeat::Allowed, |client, left| async move {
            let request = PreloadSrsRequest { circuit_id: circuit.to_owned() };
            client.proving.clone().preload_srs(client.request(request, left)).await
        })
        .await
    }

    /// Frees the key of a circuit unless it is in use.
    ///
    /// # Errors
    /// [`ClientError`]; [`Code::FailedPrecondition`] if it is in use.
    pub async fn evict(&self, circuit: &str) -> Result<EvictSrsResponse, ClientError> {
        let limit = Some(self.options.call_limit);
        self.call("EvictSRS", limit, Repeat::Forbidden, |client, left| async move {
            let request = EvictSrsRequest { circuit_id: circuit.to_owned() };
            client.proving.clone().evict_srs(client.request(request, left)).await
        })
        .await
    }

    /// Follows a job: its present state at once, then each change.
    ///
    /// # Errors
    /// [`ClientError`]; [`Code::NotFound`] if there is no such job.
    pub async fn watch(&self, job: &str) -> Result<Watch, ClientError> {
        Watch::open(self.clone(), job.to_owned()).await
    }

    /// The newest jobs, at most so many; 0: 100.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn list(&self, limit: u32) -> Result<Vec<ProofSummary>, ClientError> {
        let time = Some(self.options.call_limit);
        self.call("ListProofs", time, Repeat::Allowed, |client, left| async move {
            client.engine.clone().list_proofs(client.request(ListProofsRequest { limit }, left)).await
        })
        .await
        .map(|response| response.proofs)
    }

    /// A message with the token and the time that is left.
    fn request<T>(&self, message: T, left: Option<Duration>) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.options.token {
            request.metadata_mut().insert("authorization", token.header().clone());
        }
        if let Some(left) = left {
            request.set_timeout(left);
        }
        request
    }

    /// Makes a call until it is answered, its time is over, or patience is. `attempt` gets the time that is left.
    async fn call<'a, T, F>(
        &'a self,
        call: &'static str,
        limit: Option<Duration>,
        repeat: Repeat,
        attempt: impl Fn(&'a Self, Option<Duration>) -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let started = Instant::now();
        let mut patience = Patience::new(self.options.connect_limit);
        loop {
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            let outcome = match left {
                None => attempt(self, None).await.map_err(Fault::from),
                Some(left) => match tokio::time::timeout(left, attempt(self, Some(left))).await {
                    Ok(answered) => answered.map_err(Fault::from),
                    Err(_) => Err(Fault::Deadline),
                },
            };
            let fault = match outcome {
                Ok(response) => return Ok(response.into_inner()),
                Err(fault) => fault,
            };
            let again = match &fault {
                Fault::NotSent(_) => true,
                Fault::Lost(_) | Fault::Refused(Code::Unavailable, _) => repeat == Repeat::Allowed,
                Fault::Refused(..) | Fault::Deadline => false,
            };
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            if !again || !patience.pause(left).await {
                return Err(self.error(call, limit.unwrap_or(started.elapsed()), fault, &patience));
            }
        }
    }

    fn error(&self, call: &'static str, limit: Duration, fault: Fault, patience: &Patience) -> ClientError {
        let address = self.address.clone();
        match fault {
            Fault::NotSent(cause) => {
                let (attempts, elapsed) = patience.spent();
                ClientError::Connect { address, attempts, elapsed, cause }
            }
            Fault::Lost(cause) => ClientError::Lost { call, address, cause },
            Fault::Refused(code, message) => ClientError::Refused { call, code, message },
            Fault::Deadline => ClientError::Deadline { call, limit },
        }
    }
}

/// A request with a name joins the work that is there, one without is new work each time.
const fn repeat_of(request: &SubmitProofRequest) -> Repeat {
    if request.request_id.is_empty() { Repeat::Forbidden } else { Repeat::Allowed }
}
