//! Accepting connections.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::{
    net::{TcpStream, UnixStream},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_stream::Stream;

use super::{
    Bound, Connection, Peer, Tls,
    bind::Kind,
    connection::{self, tls_peer},
    seldom::Seldom,
};

/// How connections are accepted.
#[derive(Clone, Debug)]
pub struct IncomingOptions {
    /// TLS of TCP addresses.
    pub tls: Option<Arc<Tls>>,
    /// How long the TLS handshake, and then the first bytes, may take.
    pub handshake_timeout: Duration,
    /// How many bytes are the beginning: 24 for HTTP/2 (its preface), 1 for HTTP/1.
    pub first_bytes: usize,
    /// Connections at a time, with those that begin. The oldest that has not begun makes room for another; if all
    /// have, others wait.
    pub limit: usize,
}

/// Counts connections.
#[derive(Clone, Debug)]
pub struct Connections {
    free: Arc<Semaphore>,
    limit: usize,
}

impl Connections {
    /// Connections that are open, with those that begin.
    pub fn open(&self) -> usize {
        self.limit.saturating_sub(self.free.available_permits())
    }
}

/// The connections of several addresses, as they come. When it is dropped, nothing more is accepted.
#[derive(Debug)]
pub struct Incoming {
    ready: mpsc::Receiver<io::Result<Connection>>,
    connections: Connections,
    /// Accept connections, one task an address.
    _accepting: JoinSet<()>,
}

/// Connections whose handshake is done and which nobody has taken yet.
const READY: usize = 16;

/// How long accepting rests when the process has no more file descriptors, or the like.
const REST: Duration = Duration::from_millis(100);

impl Incoming {
    /// Accepts connections of these addresses from now on. Call it within a tokio runtime.
    pub fn new(bound: Vec<Bound>, options: &IncomingOptions) -> Self {
        let limit = options.limit.clamp(1, Semaphore::MAX_PERMITS);
        let connections = Connections { free: Arc::new(Semaphore::new(limit)), limit };
        let (sender, ready) = mpsc::channel(READY);
        let mut accepting = JoinSet::new();
        for bound in bound {
            accepting.spawn(accept(bound, options.clone(), Arc::clone(&connections.free), sender.clone()));
        }
        Self { ready, connections, _accepting: accepting }
    }

    /// The count of its connections.
    pub fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// The next connection; `None` if there are no addresses.
    pub async fn next(&mut self) -> Option<io::Result<Connection>> {
        self.ready.recv().await
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(cx)
    }
}

enum Accepted {
    Tcp(TcpStream, std::net::SocketAddr),
    Unix(UnixStream),
}

async fn accept(
    bound: Bound,
    options: IncomingOptions,
    free: Arc<Semaphore>,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let mut beginning = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    let mut failures = Seldom::default();
    loop {
        let accepted = match bound.kind() {
            Kind::Tcp(listener) => listener.accept().await.map(|(stream, address)| Accepted::Tcp(stream, address)),
            Kind::Unix(listener, _) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
        };
        match accepted {
            Ok(accepted) => {
                while beginning.try_join_next().is_some() {}
                by_age.retain(|begun| !begun.is_finished());
                if free.available_permits() == 0
                    && let Some(oldest) = by_age.pop_front()
                {
                    oldest.abort();
                }
                // It is never closed.
                let Ok(permit) = Arc::clone(&free).acquire_owned().await else { return };
                by_age.push_back(beginning.spawn(begin(accepted, options.clone(), permit, sender.clone())));
            }
            Err(error) => {
                if let Some(times) = failures.happened(Instant::now()) {
                    tracing::warn!(%error, times, "connections cannot be accepted");
                }
                sleep(REST).await;
            }
        }
    }
}

/// Brings a connection to where it can be served.
async fn begin(
    accepted: Accepted,
    options: IncomingOptions,
    permit: OwnedSemaphorePermit,
    sender: mpsc::Sender<io::Result<Connection>>,
) {
    let IncomingOptions { tls, handshake_timeout, first_bytes, .. } = options;
    let begun = async {
        match accepted {
            Accepted::Unix(stream) => {
                let peer = Peer::User(stream.peer_cred()?.uid());
                Ok((connection::Stream::Unix(stream), peer))
            }
            Accepted::Tcp(stream, address) => {
                stream.set_nodelay(true)?;
                let Some(tls) = tls else { return Ok((connection::Stream::Tcp(stream), Peer::Address(address))) };
                let stream = tls.acceptor().accept(stream).await?;
                let peer = tls_peer(&stream, address);
                Ok((connection::Stream::Tls(Box::new(stream)), peer))
            }
        }
    };
    let begun: io::Result<_> = match timeout(handshake_timeout, begun).await {
        Ok(begun) => begun,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    };
    match begun {
        Ok((stream, peer)) => {
            let connection = Connection::new(stream, peer, first_bytes, handshake_timeout, permit);
            // Nobody takes connections any more: the server stops.
            let _taken = sender.send(Ok(connection)).await;
        }
        // A stranger's failure is no event for the operator.
        Err(error) => tracing::debug!(%error, "a connection did not begin"),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{
        config::Setting,
        listen::{Address, Exposure},
    };

    async fn incoming(limit: usize) -> (Incoming, String) {
        let bound = Bound::bind(&Address::from_text("127.0.0.1:0").unwrap(), Exposure::Unprotected).await.unwrap();
        let address = bound.address().unwrap().to_string();
        let options =
            IncomingOptions { tls: None, handshake_timeout: Duration::from_millis(200), first_bytes: 4, limit };
        (Incoming::new(vec![bound], &options), address)
    }

    #[tokio::test]
    async fn a_connection_begins_in_time_or_not_at_all() {
        let (mut incoming, address) = incoming(10).await;
        let mut client = TcpStream::connect(&address).await.unwrap();
        let mut server = incoming.next().await.unwrap().unwrap();
        assert_eq!(server.peer().client(), "127.0.0.1");
        assert_eq!(incoming.connections().open(), 1);
        client.write_all(b"abc").await.unwrap();
        let started = Instant::now();
        let mut buffer = [0; 4];
        let error = server.read_exact(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(5));
        // Once it has begun, it may rest.
        let mut client = TcpStream::connect(&address).await.unwrap();
        let mut server = incoming.next().await.unwrap().unwrap();
        client.write_all(b"abcd").await.unwrap();
        server.read_exact(&mut buffer).await.unwrap();
        assert!(timeout(Duration::from_millis(400), server.read_u8()).await.is_err(), "it waits and does not fail");
    }

    #[tokio::test]
    async fn there_are_at_most_so_many() {
        let (mut incoming, address) = incoming(2).await;
        let _clients = [TcpStream::connect(&address).await.unwrap(), TcpStream::connect(&address).await.unwrap()];
        let first = incoming.next().await.unwrap().unwrap();
        let _second = incoming.next().await.unwrap().unwrap();
        let mut third = TcpStream::connect(&address).await.unwrap();
        third.write_all(b"abcd").await.unwrap();
        assert!(timeout(Duration::from_millis(100), incoming.next()).await.is_err(), "it waits to be accepted");
        drop(first);
        assert!(incoming.next().await.unwrap().is_ok());
    }
}
