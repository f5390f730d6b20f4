//! Connections: how many there may be, and how long each may take.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};

/// Connections at a time. Whoever comes then waits in the kernel's queue.
const MAX_CONNECTIONS: usize = 128;
/// For the head of a request, from the connection's begin or the end of the answer before.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// After this, a connection gets no further request, so that one that only lives holds its place no longer.
const LIFETIME: Duration = Duration::from_secs(600);
/// For what is under way when a connection is to end. Whoever reads an answer more slowly than this is cut off.
const LAST_ANSWER: Duration = Duration::from_secs(30);

/// Serves `router` to all connections that `accept` gives, until `shutdown`; then answers what is under way and
/// returns. A failure of `accept` is logged and tried again.
pub async fn serve<Accepting, Io>(
    mut accept: impl FnMut() -> Accepting,
    router: Router,
    shutdown: impl Future<Output = ()>,
) where
    Accepting: Future<Output = io::Result<Io>>,
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (stop, stopped) = watch::channel(());
    let mut shutdown = pin!(shutdown);
    loop {
        let next = async {
            // The semaphore is never closed.
            let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>((place, accept().await?))
        };
        tokio::select! {
            () = &mut shutdown => break,
            connection = next => match connection {
                Ok((place, io)) => {
                    let (router, stopped) = (router.clone(), stopped.clone());
                    tokio::spawn(async move {
                        converse(io, router, stopped).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Most likely there are too many open files: some may be closed in a while.
                    tracing::warn!(%error, "cannot accept an HTTP connection");
                    sleep(Duration::from_millis(200)).await;
                }
            },
        }
    }
    drop((stop, stopped));
    // All places are free when the last connection has ended, which each does in bounded time.
    let _ = places.acquire_many(MAX_CONNECTIONS as u32).await;
}

async fn converse<Io>(io: Io, router: Router, mut stopped: watch::Receiver<()>)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(io), TowerToHyperService::new(router)));
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
