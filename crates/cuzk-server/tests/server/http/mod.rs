//! The HTTP side: over a prover that shows everything, without a socket where none is needed.

mod browser;
mod connections;
mod exposition;
mod metrics;
mod routes;
mod staged;

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use cuzk_proto::v1::{ProofKind, SubmitProofRequest};
use cuzk_server::{
    http::{About, Access, Side, router},
    jobs::{ClientName, Jobs, JobsOptions, Waited},
};
use staged::Staged;
use tempfile::TempDir;
use tower::ServiceExt;

/// A service with everything that it stands on.
struct Service {
    router: Router,
    side: Side,
    prover: Arc<Staged>,
    /// Has the journal, and is removed at the end.
    _directory: TempDir,
}

impl Service {
    /// One whose proofs take `scale` times what [`Staged`] calls short.
    fn new(scale: f64, access: Access) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let prover = Staged::start(scale);
        let jobs = Jobs::open(JobsOptions::new(directory.path()), prover.clone()).unwrap();
        let about = Arc::new(About::now("storage01", "1.2.3", "0123abc"));
        let side = Side { jobs, prover: prover.clone(), about };
        Self { router: router(side.clone(), access), side, prover, _directory: directory }
    }

    /// Submits a proof and gives the job.
    async fn submit(&self, kind: ProofKind, id: &str, input: &str) -> String {
        let mut request = SubmitProofRequest {
            request_id: id.to_owned(),
            proof_kind: kind.into(),
            sector_size: 32 << 30,
            ..SubmitProofRequest::default()
        };
        match kind {
            ProofKind::PorepSealCommit => request.vanilla_proof = input.as_bytes().to_vec(),
            _ => request.vanilla_proofs = vec![input.as_bytes().to_vec()],
        }
        self.side.jobs.submit(request, &ClientName("test".to_owned())).await.unwrap().job
    }

    async fn ended(&self, job: &str) {
        let waited = self.side.jobs.wait(job, None).await.unwrap();
        assert!(matches!(waited, Waited::Ended(_)), "{waited:?}");
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).body(Body::empty()).unwrap()).await
    }

    async fn ask(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let body = to_bytes(body, 1 << 24).await.unwrap();
        Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(body.to_vec()).unwrap() }
    }
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> serde_json::Value {
        assert_eq!((self.status, self.header("content-type")), (StatusCode::OK, "application/json"), "{}", self.text);
        serde_json::from_str(&self.text).unwrap()
    }
}
