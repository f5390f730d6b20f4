//! What every call passes before it is served, and its answer after.
//!
//! * who may: the bearer token, except for health checks and on unix sockets, which are guarded by their mode;
//! * how much: calls that wait, and bytes of requests that arrive or are in hand, are bounded, and a request must
//!   arrive in time;
//! * what went wrong on the way: the transport answers a message that cannot be decoded with `INTERNAL` and one that is
//!   too long with `OUT_OF_RANGE`; by [gRPC's rules](https://grpc.io/docs/guides/status-codes/) they are the caller's
//!   `INVALID_ARGUMENT` and `RESOURCE_EXHAUSTED`.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, Response, header::HeaderMap};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::{Code, Status, body::Body};
use tower::{Layer, Service};
use tracing::Instrument;

use super::{deadline::Deadline, failure::ERROR_ID};
use crate::{
    config::LimitsConfig,
    listen::{Carried, Peer, Token},
};

/// Bounds that all calls share.
#[derive(Clone, Debug)]
pub struct Gate {
    token: Arc<Token>,
    counts: Arc<Counts>,
    /// Bytes of the largest request. Reloading does not change it.
    largest: u64,
}

/// What there is, and what there may be. Relaxed: each stands for itself.
#[derive(Debug)]
struct Counts {
    waiting: AtomicUsize,
    arriving_bytes: AtomicU64,
    most_waiting: AtomicUsize,
    most_arriving_bytes: AtomicU64,
    request_timeout: RwLock<Duration>,
}

impl Gate {
    /// A gate with this token and these limits.
    pub fn new(token: Arc<Token>, limits: &LimitsConfig) -> Self {
        let counts = Counts {
            waiting: AtomicUsize::new(0),
            arriving_bytes: AtomicU64::new(0),
            most_waiting: AtomicUsize::new(0),
            most_arriving_bytes: AtomicU64::new(0),
            request_timeout: RwLock::new(Duration::ZERO),
        };
        let largest = limits.max_message_size.0.saturating_add(PREFIX);
        let gate = Self { token, counts: Arc::new(counts), largest };
        gate.set_limits(limits);
        gate
    }

    /// Other limits from now on; calls that are there stay.
    pub fn set_limits(&self, limits: &LimitsConfig) {
        let Counts { most_waiting, most_arriving_bytes, request_timeout, .. } = &*self.counts;
        most_waiting.store(limits.waiting_calls.get() as usize, Relaxed);
        // One request may always arrive.
        most_arriving_bytes.store(limits.max_arriving_bytes.0.max(self.largest), Relaxed);
        *request_timeout.write().unwrap_or_else(PoisonError::into_inner) = limits.request_timeout;
    }

    /// Calls that wait for a proof.
    pub fn waiting(&self) -> usize {
        self.counts.waiting.load(Relaxed)
    }

    /// Bytes of requests that are arriving, being decoded, checked or written.
    pub fn arriving_bytes(&self) -> u64 {
        self.counts.arriving_bytes.load(Relaxed)
    }

    /// Counts a request that has arrived, as long as it is in hand.
    pub(super) fn hold(&self, bytes: u64) -> InHand {
        self.counts.arriving_bytes.fetch_add(bytes, Relaxed);
        InHand { counts: Arc::clone(&self.counts), bytes }
    }

    /// Whether a call with these headers may be served.
    fn admit(&self, path: &str, peer: Option<&Peer>, headers: &HeaderMap) -> Result<(), Status> {
        if path.starts_with("/grpc.health.v1.Health/") || peer.is_some_and(Peer::is_local_user) {
            return Ok(());
        }
        match self.token.carried(headers) {
            Carried::Right => Ok(()),
            Carried::Absent => Err(Status::unauthenticated("a token is needed: authorization: Bearer TOKEN")),
            Carried::Wrong => Err(Status::unauthenticated("the token is not the right one")),
        }
    }

    /// A place among the calls that wait, for those that do.
    fn place(&self, path: &str) -> Result<Option<Place>, Status> {
        if !WAITING_CALLS.contains(&path) {
            return Ok(None);
        }
        let place = Place(Arc::clone(&self.counts));
        let before = self.counts.waiting.fetch_add(1, Relaxed);
        let limit = self.counts.most_waiting.load(Relaxed);
        if before < limit {
            Ok(Some(place))
        } else {
            let text = format!("{before} calls wait already, limits.waiting_calls is {limit}");
            Err(Status::resource_exhausted(text))
        }
    }
}

/// A place among the calls that wait, until it is dropped.
struct Place(Arc<Counts>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

/// A request that has arrived and is not yet on disk.
pub(super) struct InHand {
    counts: Arc<Counts>,
    bytes: u64,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.counts.arriving_bytes.fetch_sub(self.bytes, Relaxed);
    }
}

/// Length and compression flag of a message.
const PREFIX: u64 = 5;

/// Calls that last as long as a proof, or longer.
const WAITING_CALLS: [&str; 5] = [
    "/cuzk.v1.ProvingEngine/Prove",
    "/cuzk.v1.ProvingEngine/AwaitProof",
    "/cuzk.v1.ProvingEngine/PreloadSRS",
    "/cuzk.v1.Engine/WatchProof",
    "/grpc.health.v1.Health/Watch",
];

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated { inner, gate: self.clone() }
    }
}

/// A service behind a gate.
#[derive(Clone, Debug)]
pub struct Gated<S> {
    inner: S,
    gate: Gate,
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let gate = self.gate.clone();
        let path = request.uri().path();
        let peer = request.extensions().get::<Peer>();
        let who = peer.map_or_else(String::new, Peer::to_string);
        let method = path.rsplit('/').next().unwrap_or_default().to_owned();
        let place = gate.admit(path, peer, request.headers()).and_then(|()| gate.place(path));
        let place = match place {
            Ok(place) => place,
            Err(status) => {
                tracing::info!(method, peer = who, code = ?status.code(), "refused: {}", status.message());
                return Box::pin(std::future::ready(Ok(status.into_http())));
            }
        };
        let (mut parts, body) = request.into_parts();
        if let Some(deadline) = Deadline::of(&parts.headers) {
            parts.extensions.insert(deadline);
        }
        parts.extensions.insert(gate.clone());
        let body = Body::new(ArrivingBody::new(body, &gate));
        let answer = self.inner.call(Request::from_parts(parts, body));
        let span = tracing::info_span!("call", method, peer = who, job = tracing::field::Empty);
        let answer = async move {
            let Ok(mut answer) = answer.await;
            correct(answer.headers_mut(), gate.largest - PREFIX);
            if let Some(status) = Status::from_header_map(answer.headers()).filter(|s| s.code() != Code::Ok) {
                // Who asks for what is not there, or not any more, may ask again and again.
                if status.code() == Code::NotFound {
                    tracing::debug!(code = ?status.code(), "answered: {}", status.message());
                } else {
                    tracing::info!(code = ?status.code(), "answered: {}", status.message());
                }
            }
            Ok(answer.map(|body| Body::new(HeldBody { body, _place: place })))
        };
        Box::pin(answer.instrument(span))
    }
}

/// Gives statuses of the transport the code that they should have, and its texts what a caller needs to know.
fn correct(headers: &mut HeaderMap, max_message_size: u64) {
    let right = match headers.get("grpc-status").map(HeaderValue::as_bytes) {
        // OUT_OF_RANGE: a message is longer than the limit. Nothing else here answers so.
        Some(b"11") => {
            let text = Status::from_header_map(headers).map(|status| status.message().to_owned());
            // Its own text has the message's length: "found 300 bytes, the limit is: 256 bytes".
            let found = text.as_deref().and_then(|text| number_after(text, "found "));
            let found = found.map_or_else(|| "more".to_owned(), |bytes| format!("{bytes} bytes"));
            let told =
                format!("the message is too long: it has {found}, limits.max_message_size is {max_message_size} bytes");
            if let Ok(told) = HeaderValue::try_from(told) {
                headers.insert("grpc-message", told);
            }
            Code::ResourceExhausted
        }
        // INTERNAL: a message cannot be decoded. What fails in here has the number of an error.
        Some(b"13") if !headers.contains_key(ERROR_ID) => Code::InvalidArgument,
        _ => return,
    };
    headers.insert("grpc-status", HeaderValue::from(right as i32));
}

/// The digits behind a word.
fn number_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(word)?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(&rest[..digits]).filter(|digits| !digits.is_empty())
}

/// A request's body that must arrive in time, and counts until it is gone.
struct ArrivingBody {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    timeout: Duration,
    counts: Arc<Counts>,
    counted: u64,
}

impl ArrivingBody {
    fn new(body: Body, gate: &Gate) -> Self {
        let counts = Arc::clone(&gate.counts);
        let timeout = *counts.request_timeout.read().unwrap_or_else(PoisonError::into_inner);
        Self { body, deadline: Box::pin(sleep(timeout)), timeout, counts, counted: 0 }
    }
}

impl HttpBody for ArrivingBody {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.counted += bytes;
                let before = self.counts.arriving_bytes.fetch_add(bytes, Relaxed);
                let limit = self.counts.most_arriving_bytes.load(Relaxed);
                if before.saturating_add(bytes) > limit {
                    let text = format!(
                        "requests are arriving with {before} bytes, {bytes} more exceed limits.max_arriving_bytes, \
                         which is {limit} bytes"
                    );
                    return Poll::Ready(Some(Err(Status::resource_exhausted(text))));
                }
            }
            Poll::Ready(_) => {}
            Poll::Pending => {
                if self.deadline.as_mut().poll(cx).is_ready() {
                    let text = format!("the request did not arrive within limits.request_timeout: {:?}", self.timeout);
                    return Poll::Ready(Some(Err(Status::deadline_exceeded(text))));
                }
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.counts.arriving_bytes.fetch_sub(self.counted, Relaxed);
    }
}

/// An answer's body that keeps its call's place until it is sent or the caller is gone.
struct HeldBody {
    body: Body,
    _place: Option<Place>,
}

impl HttpBody for HeldBody {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
