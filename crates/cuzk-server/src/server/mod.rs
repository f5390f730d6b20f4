//! A server: jobs, gRPC and HTTP over a [`Prover`], from a configuration.

mod descriptors;
mod process;
mod reload;
mod service_manager;

use std::{
    future::Future,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tower::ServiceExt;

pub use process::{ProverError, RunError, run};
pub use reload::{Effect, Reloaded};

use self::descriptors::Shares;
use crate::{
    config::{Config, LimitsConfig, Loaded, Secret},
    grpc::{Gate, Grpc, Health},
    http::{self, About, Access, Side},
    jobs::{Abandoned, Jobs, JobsLimits, JobsOptions, OpenError, OpenJournal},
    listen::{
        Address, BindError, Bound, Connections, Exposure, Incoming, IncomingOptions, Tls, TlsError, Token, TokenError,
        secret,
    },
    prover::Prover,
};

/// Bytes of the preface of an HTTP/2 connection.
const HTTP2_PREFACE: usize = 24;
/// Windows that let a C1 of 200 MB travel at the speed of a fast network.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Streams of one connection. A client that multiplexes has one connection for all its calls.
const STREAMS_PER_CONNECTION: u32 = 1024;
/// How long connections may take to end after everything is answered.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token cannot be read.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The journal cannot be opened.
    #[error(transparent)]
    Jobs(#[from] OpenError),
    /// The process may have so few open files that it could not serve.
    #[error(
        "{limit} files may be open (ulimit -n, LimitNOFILE), and at least {needed} are needed: some for the journal, \
         keys and devices, some for connections"
    )]
    Descriptors {
        /// The limit.
        limit: u64,
        /// The least that is enough.
        needed: u64,
    },
    /// The descriptors for reflection cannot be used.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The system does not do what it should.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A server that serves.
pub struct Server {
    jobs: Jobs,
    health: Health,
    gate: Gate,
    token: Arc<Token>,
    tls: Vec<Arc<Tls>>,
    side: Option<Swappable>,
    /// What counts of that which only a start can change.
    at_start: Loaded,
    /// What counts now of the rest. Reloading replaces it.
    current: Mutex<Loaded>,
    addresses: Vec<Address>,
    status_address: Option<Address>,
    connections: Connections,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// The HTTP side's service, which reloading replaces.
#[derive(Clone)]
struct Swappable {
    side: Side,
    loopback: bool,
    unix: bool,
    tls: bool,
    /// Who may ask, and what answers them.
    current: Arc<Mutex<(Access, axum::Router)>>,
}

impl Swappable {
    fn new(side: Side, address: &Address, tls: bool, config: &Config, secret: Option<&Secret>) -> Self {
        let current = Arc::new(Mutex::new((Access::default(), axum::Router::new())));
        let loopback = matches!(address, Address::Tcp { .. }) && address.is_local();
        let this = Self { side, loopback, unix: matches!(address, Address::Unix(_)), tls, current };
        this.set(config, secret);
        this
    }

    fn set(&self, config: &Config, secret: Option<&Secret>) {
        self.allow(Access {
            // A unix socket is guarded by its mode.
            token: secret.filter(|_| !self.unix).map(|secret| http::Token::new(secret.reveal())),
            loopback_only: self.loopback,
            hosts: config.daemon.status_hosts.clone(),
            tls: self.tls,
        });
    }

    /// Other names of this machine, with the token as it is.
    fn set_hosts(&self, config: &Config) {
        let access = self.current().0.clone();
        self.allow(Access { hosts: config.daemon.status_hosts.clone(), ..access });
    }

    fn current(&self) -> MutexGuard<'_, (Access, axum::Router)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allow(&self, access: Access) {
        let router = http::router(self.side.clone(), access.clone());
        *self.current() = (access, router);
    }

    /// A service that passes each request to what counts when it comes.
    fn service(&self) -> axum::Router {
        let this = self.clone();
        axum::Router::new().fallback_service(tower::service_fn(move |request: axum::extract::Request| {
            let now = this.current().1.clone();
            now.oneshot(request)
        }))
    }
}

/// Addresses that are listened on, with what protects them, and the journal, which no other process can have any more;
/// nothing is accepted yet.
pub struct Prepared {
    loaded: Loaded,
    secret: Option<Secret>,
    shares: Shares,
    grpc_tls: Option<Arc<Tls>>,
    http_tls: Option<Arc<Tls>>,
    bound: Vec<Bound>,
    status_bound: Option<Bound>,
    journal: OpenJournal,
}

impl Prepared {
    /// Reads the token and certificates, binds all addresses and opens the journal, which finds most mistakes before
    /// anything that takes long, and a second server before it touches a device. Call it within a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn new(loaded: Loaded) -> Result<Self, StartError> {
        let config = &loaded.config;
        let shares = descriptors::shares(config.limits.connections.get())?;
        let secret = secret(&config.auth)?;
        let grpc_tls = Tls::new(&config.tls, &["h2"])?.map(Arc::new);
        let http_tls = Tls::new(&config.tls, &["http/1.1"])?.map(Arc::new);
        let exposure = exposure(config, secret.is_some(), grpc_tls.is_some());
        let mut bound = Vec::new();
        for address in &config.daemon.listen {
            bound.push(Bound::bind(address, exposure).await?);
        }
        let status_bound = match &config.daemon.status_listen {
            Some(address) => Some(Bound::bind(address, exposure).await?),
            None => None,
        };
        let options = jobs_options(&loaded);
        let journal = spawn_blocking(move || OpenJournal::open(options)).await.map_err(io::Error::other)??;
        Ok(Self { loaded, secret, shares, grpc_tls, http_tls, bound, status_bound, journal })
    }

    /// Resumes what is unfinished in the journal, and serves. Call it within a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`]; then nothing is served.
    pub async fn start(self, prover: Arc<dyn Prover>, about: About) -> Result<Server, StartError> {
        let Self { loaded, secret, shares, grpc_tls, http_tls, bound, status_bound, journal } = self;
        let config = loaded.config.clone();
        let addresses = bound.iter().map(Bound::address).collect::<Result<Vec<_>, _>>()?;
        let status_address = status_bound.as_ref().map(Bound::address).transpose()?;

        let proving = Arc::clone(&prover);
        let jobs = spawn_blocking(move || Jobs::resume(journal, proving)).await.map_err(io::Error::other)??;

        let about = Arc::new(about);
        let token = Arc::new(Token::new(secret.as_ref()));
        let gate = Gate::new(Arc::clone(&token), &config.limits);
        let (stop, stopped) = watch::channel(false);
        let grpc = Grpc {
            jobs: jobs.clone(),
            prover: Arc::clone(&prover),
            about: Arc::clone(&about),
            max_message_size: usize::try_from(config.limits.max_message_size.0).unwrap_or(usize::MAX),
        };
        let (routes, health) = grpc.routes()?;
        health.set(true).await;
        let incoming =
            Incoming::new(bound, &incoming_options(&config.limits, shares.grpc, grpc_tls.clone(), HTTP2_PREFACE));
        let connections = incoming.connections();
        let mut tasks = vec![tokio::spawn(serve_grpc(routes, gate.clone(), incoming, config.limits.clone(), {
            let stopped = stopped.clone();
            async move { until_true(stopped).await }
        }))];

        let mut side = None;
        if let (Some(bound), Some(address)) = (status_bound, &status_address) {
            let shown = Side { jobs: jobs.clone(), prover: Arc::clone(&prover), about };
            let swappable = Swappable::new(shown, address, http_tls.is_some(), &config, secret.as_ref());
            let options = incoming_options(&config.limits, shares.http, http_tls.clone(), 1);
            let incoming = Incoming::new(vec![bound], &options);
            // Half are served, which make room for each other, and half begin.
            let most = shares.http / 2;
            tasks.push(tokio::spawn(serve_http(swappable.service(), incoming, most, until_true(stopped))));
            side = Some(swappable);
        }
        Ok(Server {
            jobs,
            health,
            gate,
            token,
            tls: grpc_tls.into_iter().chain(http_tls).collect(),
            side,
            at_start: loaded.clone(),
            current: Mutex::new(loaded),
            addresses,
            status_address,
            connections,
            stop,
            tasks,
        })
    }
}

impl Server {
    /// [`Prepared::new`] and [`Prepared::start`].
    ///
    /// # Errors
    /// [`StartError`]; then nothing is served.
    pub async fn start(loaded: Loaded, prover: Arc<dyn Prover>, about: About) -> Result<Self, StartError> {
        Prepared::new(loaded).await?.start(prover, about).await
    }

    /// Where gRPC is served.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where HTTP is served.
    pub fn status_address(&self) -> Option<&Address> {
        self.status_address.as_ref()
    }

    /// Its jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The count of its gRPC connections.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The bounds of its calls, with what there is of them.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Takes no new work any more, finishes what can be finished within `grace`, leaves the rest to the next start, and
    /// ends. Calls are answered until then: those that wait hear that the server stops.
    pub async fn drain(self, grace: Duration) {
        self.health.set(false).await;
        self.jobs.drain(grace).await;
        // Nobody may be listening any more.
        let _told = self.stop.send(true);
        for mut task in self.tasks {
            if timeout(LAST_ANSWERS, &mut task).await.is_err() {
                // Somebody keeps a connection open on which nothing is to be said any more.
                task.abort();
            }
        }
    }
}

/// What protects addresses that strangers can reach.
fn exposure(config: &Config, token: bool, tls: bool) -> Exposure {
    if token || tls {
        Exposure::Protected
    } else if config.daemon.insecure_listen {
        Exposure::Insecure
    } else {
        Exposure::Unprotected
    }
}

fn jobs_options(loaded: &Loaded) -> JobsOptions {
    let Config { journal, limits, daemon, .. } = &loaded.config;
    let mut options = JobsOptions::new(&loaded.journal_directory);
    options.journal.keep_for = journal.retention;
    options.journal.keep_ended = journal.max_ended_jobs.get() as usize;
    options.journal.max_bytes = journal.max_bytes.0;
    options.limits = JobsLimits {
        max_queued: limits.queue_length.get() as usize,
        max_per_client: match limits.jobs_per_client {
            0 => usize::MAX,
            limit => limit as usize,
        },
        abandoned: if daemon.cancel_on_disconnect { Abandoned::Cancel } else { Abandoned::GoOn },
    };
    options
}

fn incoming_options(limits: &LimitsConfig, limit: usize, tls: Option<Arc<Tls>>, first_bytes: usize) -> IncomingOptions {
    IncomingOptions { tls, handshake_timeout: limits.handshake_timeout, first_bytes, limit }
}

/// Until it is true, or nobody can make it true any more.
async fn until_true(mut flag: watch::Receiver<bool>) {
    let _gone = flag.wait_for(|stop| *stop).await;
}

async fn serve_grpc(
    routes: tonic::service::Routes,
    gate: Gate,
    incoming: Incoming,
    limits: LimitsConfig,
    stop: impl Future<Output = ()>,
) {
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .layer(gate)
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "gRPC is not served any more");
    }
}

async fn serve_http(router: axum::Router, incoming: Incoming, most: usize, stop: impl Future<Output = ()>) {
    let incoming = Arc::new(AsyncMutex::new(incoming));
    let accept = || {
        let incoming = Arc::clone(&incoming);
        async move {
            match incoming.lock().await.next().await {
                Some(connection) => connection,
                // The tasks that accept have ended, which they do with the runtime.
                None => std::future::pending().await,
            }
        }
    };
    http::serve(accept, router, most, stop).await;
}
