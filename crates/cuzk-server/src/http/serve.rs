//! Connections: how many there may be, and how long each may take.
//!
//! Whoever comes is served. If there are as many connections as there may be, the one on which nothing was asked for
//! longest makes room: so those who hold connections without asking (a browser that keeps them, or somebody who sends
//! one byte a second) cannot keep out a probe, which asks at once.

use std::{
    collections::BTreeMap,
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::Router;
use hyper::{
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::listen::Seldom;

/// Connections at a time, where the limit of open files allows it.
pub(crate) const MAX_CONNECTIONS: usize = 128;
/// For the head of a request, from the connection's begin or the end of the answer before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// After this, a connection gets no further request, so that one that only lives holds its place no longer.
const LIFETIME: Duration = Duration::from_secs(600);
/// For what is under way when a connection is to end. Whoever reads an answer more slowly than this is cut off.
const LAST_ANSWER: Duration = Duration::from_secs(30);

/// Serves `router` to all connections that `accept` gives, `most` at a time, until `shutdown`; then answers what is
/// under way and returns. A failure of `accept` is logged and tried again.
pub async fn serve<Accepting, Io>(
    mut accept: impl FnMut() -> Accepting,
    router: Router,
    most: usize,
    shutdown: impl Future<Output = ()>,
) where
    Accepting: Future<Output = io::Result<Io>>,
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Places::new(most);
    let mut failures = Seldom::default();
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = accept() => match accepted {
                Ok(io) => {
                    while connections.try_join_next().is_some() {}
                    let (router, stopped) = (router.clone(), stopped.clone());
                    places.enter(|place| connections.spawn(converse(io, router, stopped, place)));
                }
                Err(error) => {
                    // Most likely there are too many open files: some may be closed in a while.
                    if let Some(times) = failures.happened(Instant::now()) {
                        tracing::warn!(%error, times, "HTTP connections cannot be accepted");
                    }
                    sleep(Duration::from_millis(200)).await;
                }
            },
        }
    }
    drop((stop, stopped));
    // Each ends in bounded time.
    while connections.join_next().await.is_some() {}
}

/// The connections, in the order in which something was last asked on them.
#[derive(Clone)]
struct Places {
    order: Arc<Mutex<Order>>,
    most: usize,
}

#[derive(Default)]
struct Order {
    next: u64,
    /// By the number of the last request, or of the beginning.
    connections: BTreeMap<u64, AbortHandle>,
}

impl Order {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Places {
    fn new(most: usize) -> Self {
        Self { order: Arc::default(), most }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a connection; if it is one too many, the one that was silent for longest ends.
    fn enter(&self, start: impl FnOnce(Place) -> AbortHandle) {
        let mut order = self.order();
        if order.connections.len() >= self.most
            && let Some((_, silent)) = order.connections.pop_first()
        {
            tracing::debug!("an HTTP connection makes room for another");
            silent.abort();
        }
        let number = order.number();
        // It can only ask when the lock is free again.
        let handle = start(Place { places: self.clone(), number: Mutex::new(number) });
        order.connections.insert(number, handle);
    }
}

/// A connection's place, until it is dropped.
struct Place {
    places: Places,
    number: Mutex<u64>,
}

impl Place {
    /// Something was asked.
    fn asked(&self) {
        let mut order = self.places.order();
        let mut number = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        // Otherwise it is about to end.
        if let Some(handle) = order.connections.remove(&number) {
            *number = order.number();
            order.connections.insert(*number, handle);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let number = *self.number.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.places.order().connections.remove(&number);
    }
}

async fn converse<Io>(io: Io, router: Router, mut stopped: watch::Receiver<()>, place: Place)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request| {
        place.asked();
        router.call(request)
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), service));
    let ended = tokio::select! {
        ended = &mut connection => Some(ended),
        // An error is the end of the sender: the server stops.
        _ = stopped.changed() => None,
        () = sleep(LIFETIME) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            timeout(LAST_ANSWER, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection failed");
    }
}
