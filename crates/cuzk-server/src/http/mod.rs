//! The HTTP side: metrics, health, status, timelines, and a page for people.
//!
//! | path | answer |
//! |---|---|
//! | `/` | the status page: a live waterfall, devices, memory, queue, recent proofs, errors |
//! | `/metrics` | Prometheus' text format ([`metrics_text`]) |
//! | `/healthz` | 200 while the process answers at all |
//! | `/readyz` | 200, or 503 and why new work is not taken or cannot be done |
//! | `/status` | [`status::Status`] as JSON |
//! | `/timeline?minutes=10` | what was done, for <https://ui.perfetto.dev> |
//! | `/timeline.jsonl?minutes=10` | the same as `cuzk timeline` reads it |
//! | `/waterfall?minutes=10` | the same as one page that can be saved and sent |
//! | `/live?minutes=2` | what the status page polls; its form changes with the page |
//!
//! Nothing here changes anything: whoever may read may do no more. Who may read is said in [`Access`], and by
//! [`serve`] how long a connection may take.

mod about;
mod exposition;
mod guard;
mod health;
mod metrics;
mod page;
mod process;
mod serve;
pub mod status;

use std::{io, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRequestParts, Query, State},
    http::{StatusCode, header::CONTENT_DISPOSITION, header::CONTENT_TYPE, request::Parts},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use cuzk_timeline::{JobEvent, Timeline};
use serde::Deserialize;
use tokio::{sync::Semaphore, task::spawn_blocking};

pub(crate) use self::serve::MAX_CONNECTIONS;
pub use self::{
    about::About,
    guard::{Access, Token},
    metrics::metrics_text,
    serve::serve,
};
use self::{health::Readiness, status::Status};
use crate::{
    jobs::{Jobs, JobsLook},
    prover::{Look, Prover},
    redact,
};

/// Bytes of the body of a request: only the sign-in has one.
const MAX_BODY_BYTES: usize = 4096;
/// Timelines that are written at a time: each takes a core and up to a hundred megabytes while it lasts.
static WRITING: Semaphore = Semaphore::const_new(2);
/// Jobs that have not ended which `/status` shows at most.
const LISTED_JOBS: usize = 200;

/// What the HTTP side shows.
#[derive(Clone)]
pub struct Side {
    /// The jobs.
    pub jobs: Jobs,
    /// What proves them.
    pub prover: Arc<dyn Prover>,
    /// What is running.
    pub about: Arc<About>,
}

/// The service, for [`serve`] or any other server.
pub fn router(side: Side, access: Access) -> Router {
    let access = Arc::new(access);
    Router::new()
        .route("/", get(page::status))
        .route("/assets/status.css", get(page::style))
        .route("/assets/status.js", get(page::program))
        .route("/assets/icon.svg", get(page::icon))
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .route("/timeline", get(perfetto))
        .route("/timeline.jsonl", get(native))
        .route("/waterfall", get(waterfall))
        .route("/live", get(live))
        .route(guard::SIGN_IN_PATH, post(guard::sign_in).with_state(access.clone()))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(middleware::from_fn_with_state(access, guard::check))
        .layer(middleware::from_fn(guard::seal))
        .with_state(side)
}

impl Side {
    /// Both looks. The prover is asked where that may take its time.
    async fn look(&self) -> Result<(JobsLook, Look), Failed> {
        let side = self.clone();
        Ok(spawn_blocking(move || (side.jobs.look(), redact::look(&*side.prover))).await?)
    }

    async fn status(&self) -> Result<Status, Failed> {
        let (jobs, prover) = self.look().await?;
        Ok(Status::of(&jobs, &self.jobs.unfinished(LISTED_JOBS), &prover, &self.about))
    }

    /// Makes something of what was done in the last minutes, where that may take its time.
    async fn with_timeline<T: Send + 'static>(
        &self,
        minutes: f64,
        make: impl FnOnce(&Timeline) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failed> {
        let prover = self.prover.clone();
        // It is never closed.
        let turn = WRITING.acquire().await.ok();
        let made = spawn_blocking(move || {
            // Held by what takes the time, also if its caller leaves.
            let _turn = turn;
            let mut timeline = prover.timeline(minutes);
            for mark in &mut timeline.marks {
                if let JobEvent::Failed { cause } = &mut mark.event {
                    *cause = redact::for_callers(cause).into_owned();
                }
            }
            make(&timeline)
        });
        Ok(made.await??)
    }
}

/// Why there is no answer. The cause is for the log, not for the caller.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// What was to be shown could not be made.
    #[error("a task failed: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// It could not be written.
    #[error("cannot write it: {0}")]
    Write(#[from] io::Error),
    /// It is no JSON.
    #[error("cannot write it as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        tracing::error!(error = %self, "an HTTP request failed");
        (StatusCode::INTERNAL_SERVER_ERROR, "this cannot be shown now; the log says why\n").into_response()
    }
}

/// How far to look back, as `?minutes=` says or by default: more than none, a day at most.
#[derive(Clone, Copy, Debug)]
struct Minutes<const DEFAULT: u32>(f64);

impl<S: Send + Sync, const DEFAULT: u32> FromRequestParts<S> for Minutes<DEFAULT> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        const MOST: f64 = 24.0 * 60.0;
        let asked = Query::<Asked>::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
        let minutes = asked.minutes.unwrap_or(DEFAULT.into());
        if minutes > 0.0 && minutes <= MOST {
            Ok(Self(minutes))
        } else {
            Err((StatusCode::BAD_REQUEST, "minutes: a number above 0, 1440 at most\n").into_response())
        }
    }
}

#[derive(Deserialize)]
struct Asked {
    minutes: Option<f64>,
}

const JSON: &str = "application/json";

async fn metrics(State(side): State<Side>) -> Result<Response, Failed> {
    let (jobs, prover) = side.look().await?;
    let text = metrics_text(&jobs, &prover, &side.about);
    Ok(([(CONTENT_TYPE, exposition::CONTENT_TYPE)], text).into_response())
}

async fn readyz(State(side): State<Side>) -> Result<Response, Failed> {
    let (jobs, prover) = side.look().await?;
    let readiness = Readiness::of(&jobs, &prover);
    let code = if readiness.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((code, format!("{readiness}\n")).into_response())
}

async fn status(State(side): State<Side>) -> Result<Response, Failed> {
    let text = serde_json::to_vec(&side.status().await?)?;
    Ok(([(CONTENT_TYPE, JSON)], text).into_response())
}

async fn perfetto(State(side): State<Side>, Minutes(minutes): Minutes<10>) -> Result<Response, Failed> {
    saved(&side, minutes, (JSON, "cuzk-timeline.json"), |timeline, out| timeline.write_perfetto(out)).await
}

async fn native(State(side): State<Side>, Minutes(minutes): Minutes<10>) -> Result<Response, Failed> {
    saved(&side, minutes, ("application/jsonl", "cuzk-timeline.jsonl"), |timeline, out| timeline.write(out)).await
}

/// A timeline as a file of a media type and a name.
async fn saved(
    side: &Side,
    minutes: f64,
    (media_type, name): (&'static str, &'static str),
    write: fn(&Timeline, &mut Vec<u8>) -> io::Result<()>,
) -> Result<Response, Failed> {
    let text = side.with_timeline(minutes, move |timeline| written(|out| write(timeline, out))).await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    Ok(([(CONTENT_TYPE, media_type.to_owned()), (CONTENT_DISPOSITION, disposition)], text).into_response())
}

async fn waterfall(State(side): State<Side>, Minutes(minutes): Minutes<10>) -> Result<Response, Failed> {
    Ok(page::waterfall(side.with_timeline(minutes, |timeline| written(|out| timeline.write_html(out))).await?))
}

async fn live(State(side): State<Side>, Minutes(minutes): Minutes<2>) -> Result<Response, Failed> {
    let timeline = side.with_timeline(minutes, |timeline| written(|out| timeline.write_page_data(out))).await?;
    let status = serde_json::to_vec(&side.status().await?)?;
    let text = [b"{\"status\":".as_slice(), &status, b",\"timeline\":", &timeline, b"}"].concat();
    Ok(([(CONTENT_TYPE, JSON)], text).into_response())
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    write(&mut text)?;
    Ok(text)
}
