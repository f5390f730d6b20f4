//! A connection and who is at its other end.

use std::{
    fmt,
    future::Future,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address.
    Address(SocketAddr),
    /// Somebody with a certificate that was verified.
    Certificate {
        /// Its SHA-256, in hexadecimal digits.
        sha256: String,
        /// The address.
        address: SocketAddr,
    },
    /// A user of this machine.
    User(u32),
}

impl Peer {
    /// What tells clients apart: the certificate, the user, or the IP address.
    pub fn client(&self) -> String {
        match self {
            Self::Address(address) => address.ip().to_string(),
            Self::Certificate { sha256, .. } => format!("certificate {}", &sha256[..16]),
            Self::User(user) => format!("user {user}"),
        }
    }

    /// Whether it came through a unix socket, whose mode says who may.
    pub fn is_local_user(&self) -> bool {
        matches!(self, Self::User(_))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Certificate { address, .. } => write!(f, "{} at {address}", self.client()),
            Self::User(_) => f.write_str(&self.client()),
        }
    }
}

/// A connection. It counts to its [`Connections`](super::Connections) until it is dropped, and fails if it does not
/// begin in time.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    peer: Peer,
    start: Option<Start>,
    _counted: OwnedSemaphorePermit,
}

#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

/// What must arrive, and until when.
#[derive(Debug)]
struct Start {
    bytes: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Connection {
    /// A connection on which `first_bytes` must arrive within `patience`.
    pub(super) fn new(
        stream: Stream,
        peer: Peer,
        first_bytes: usize,
        patience: Duration,
        counted: OwnedSemaphorePermit,
    ) -> Self {
        let start = Start { bytes: first_bytes, deadline: Box::pin(sleep(patience)) };
        Self { stream, peer, start: Some(start), _counted: counted }
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

/// The peer behind a TLS stream.
pub(super) fn tls_peer(stream: &TlsStream<TcpStream>, address: SocketAddr) -> Peer {
    let certificates = stream.get_ref().1.peer_certificates();
    match certificates.and_then(|chain| chain.first()) {
        None => Peer::Address(address),
        Some(certificate) => {
            let sha256 = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect();
            Peer::Certificate { sha256, address }
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        let arrived = buffer.filled().len() - before;
        let Some(start) = &mut self.start else { return read };
        start.bytes = start.bytes.saturating_sub(arrived);
        if start.bytes == 0 {
            self.start = None;
        } else if read.is_pending() && start.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
            Stream::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, buffers),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }
}
