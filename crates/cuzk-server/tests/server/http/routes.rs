//! What each path answers, to whom, and what it allows browsers.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode, header},
};
use cuzk_proto::v1::ProofKind;
use cuzk_server::http::{Access, Token};
use cuzk_timeline::{JobEvent, Timeline};

use super::{Answer, Service};

const ALL: [&str; 12] = [
    "/",
    "/assets/status.css",
    "/assets/status.js",
    "/assets/icon.svg",
    "/metrics",
    "/healthz",
    "/readyz",
    "/status",
    "/timeline",
    "/timeline.jsonl",
    "/waterfall",
    "/live",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_path_answers_and_allows_nothing_foreign() {
    let service = Service::new(0.02, Access::default());
    for path in ALL {
        let answer = service.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        assert!(!answer.text.is_empty(), "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(answer.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
    }
    assert_eq!(service.get("/nothing").await.status, StatusCode::NOT_FOUND);
    let preflight = Request::options("/status").header(header::ORIGIN, "https://evil.example");
    let answer = service.ask(preflight.body(Body::empty()).unwrap()).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (StatusCode::METHOD_NOT_ALLOWED, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_hold_no_foreign_address_and_no_inline_code() {
    let service = Service::new(0.02, Access::default());
    let page = service.get("/").await.text;
    assert!(!page.contains("@@"), "nothing is left to be filled in");
    for attribute in page.split('<').filter_map(|tag| tag.split_once('>')).flat_map(|(tag, _)| tag.split_whitespace()) {
        assert!(!attribute.starts_with("on") && !attribute.starts_with("style="), "{attribute}");
        let target = attribute.strip_prefix("src=\"").or_else(|| attribute.strip_prefix("href=\""));
        assert!(target.is_none_or(|target| target.starts_with('/') && !target.starts_with("//")), "{attribute}");
    }
    for path in ["/assets/status.css", "/assets/status.js"] {
        let text = service.get(path).await.text;
        let svg = "http://www.w3.org/2000/svg";
        assert!(!text.replace(svg, "").contains("://"), "{path}");
        assert!(
            !text.contains("innerHTML") && !text.contains("insertAdjacentHTML") && !text.contains("eval("),
            "{path}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_says_why_not() {
    let service = Service::new(0.02, Access::default());
    let ready = async || {
        let answer = service.get("/readyz").await;
        (answer.status, answer.text)
    };
    assert_eq!(ready().await, (StatusCode::OK, "ready\n".to_owned()));
    service.prover.fence(true);
    let fenced = "no device is healthy: device 0 is fenced, device 1 is fenced\n".to_owned();
    assert_eq!(ready().await, (StatusCode::SERVICE_UNAVAILABLE, fenced));
    assert_eq!(service.get("/healthz").await.status, StatusCode::OK, "it lives all the same");
    service.prover.fence(false);
    service.side.jobs.drain(Duration::from_secs(1)).await;
    let draining = "draining: no new work is taken\n".to_owned();
    assert_eq!(ready().await, (StatusCode::SERVICE_UNAVAILABLE, draining));
    assert_eq!(service.get("/healthz").await.status, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_what_became_of_jobs() {
    let service = Service::new(0.02, Access::default());
    let good = service.submit(ProofKind::SnapDealsUpdate, "snap-1000-7", "x").await;
    let bad = service.submit(ProofKind::PorepSealCommit, "porep-1000-8", "fail").await;
    service.ended(&good).await;
    service.ended(&bad).await;
    let under_way = service.submit(ProofKind::PorepSealCommit, "porep-1000-9", "x").await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let status = service.get("/status").await.json();

    assert_eq!((&status["schema"], &status["title"]), (&1.into(), &"storage01".into()));
    assert_eq!((&status["state"], &status["ready"]), (&"running".into(), &true.into()));
    assert_eq!(status["not_ready_because"], serde_json::Value::Null);
    assert_eq!((&status["proofs"]["completed"], &status["proofs"]["failed"]), (&1.into(), &1.into()));
    let snap = &status["proofs"]["by_kind"][1];
    assert_eq!((&snap["kind"], &snap["completed"]), (&"snap_deals_update".into(), &1.into()));
    assert_eq!(status["devices"][1]["name"], "Staged H200");
    assert_eq!(status["pools"][0]["capacity_bytes"], 128_u64 << 30);
    assert_eq!(status["keys"][1]["tier"], "warm");
    let unfinished = &status["unfinished"][0];
    assert_eq!((&unfinished["job"], &unfinished["partitions"]), (&under_way.into(), &10.into()));
    let recent: Vec<_> = status["recent"].as_array().unwrap().iter().map(|j| (&j["request_id"], &j["state"])).collect();
    assert_eq!(recent.len(), 2);
    assert!(recent.contains(&(&"snap-1000-7".into(), &"completed".into())), "{recent:?}");
    assert!(recent.contains(&(&"porep-1000-8".into(), &"failed".into())), "{recent:?}");
    let done = status["recent"].as_array().unwrap().iter().find(|j| j["state"] == "completed").unwrap();
    assert!(done["times"]["device_seconds"].as_f64().unwrap() > 0.0, "{done}");
    assert!(status["errors"][0]["text"].as_str().unwrap().contains("does not verify"), "{}", status["errors"]);
    for path in ["/status", "/timeline", "/timeline.jsonl", "/waterfall", "/live", "/metrics"] {
        assert!(!service.get(path).await.text.contains("/var/lib"), "{path} names a path of this machine");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn timelines_are_of_the_minutes_that_are_asked_for() {
    let service = Service::new(0.02, Access::default());
    let job = service.submit(ProofKind::WinningPost, "w", "x").await;
    service.ended(&job).await;
    let trace = service.get("/timeline?minutes=1").await;
    assert!(trace.header("content-disposition").contains("cuzk-timeline.json"));
    let events = trace.json()["traceEvents"].as_array().unwrap().len();
    assert!(events > 20, "{events}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let late = service.get("/timeline?minutes=0.0001").await.json();
    let slices = late["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X" && e["cat"] == "compute");
    assert_eq!(slices.count(), 0, "of the last six milliseconds");
    let lines = service.get("/timeline.jsonl?minutes=1").await;
    assert!(lines.header("content-disposition").contains("cuzk-timeline.jsonl"));
    let timeline = Timeline::read(lines.text.as_bytes()).unwrap();
    let named = |event: &JobEvent| matches!(event, JobEvent::Submitted { name, .. } if *name == job);
    assert!(timeline.marks.iter().any(|mark| named(&mark.event)) && !timeline.spans.is_empty());
    let page = service.get("/waterfall?minutes=1").await;
    assert!(page.text.contains(&job) && page.text.starts_with("<!doctype html>"));
    let live = service.get("/live?minutes=1").await.json();
    assert_eq!(live["timeline"]["jobs"][0]["name"], job);
    assert_eq!(live["status"]["proofs"]["completed"], 1);
    for wrong in ["0", "-1", "1441", "NaN", "inf", "x", "1e999"] {
        for path in ["timeline", "timeline.jsonl", "waterfall", "live"] {
            let answer = service.get(&format!("/{path}?minutes={wrong}")).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {wrong}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loopback_server_answers_to_no_foreign_name() {
    let service = Service::new(0.02, Access { loopback_only: true, ..Access::default() });
    let ask = async |host: Option<&str>, path: &str| {
        let request = Request::get(path);
        let request = host.into_iter().fold(request, |request, host| request.header(header::HOST, host));
        service.ask(request.body(Body::empty()).unwrap()).await.status
    };
    for path in ALL {
        assert_eq!(ask(Some("127.0.0.1:9821"), path).await, StatusCode::OK, "{path}");
        assert_eq!(ask(Some("rebound.evil.example:9821"), path).await, StatusCode::MISDIRECTED_REQUEST, "{path}");
        assert_eq!(ask(None, path).await, StatusCode::BAD_REQUEST, "{path}");
    }
    let absolute = Request::get("http://evil.example/status").header(header::HOST, "localhost");
    let answer = service.ask(absolute.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "the target counts, not the header");
}

fn with_token() -> Service {
    Service::new(0.02, Access { token: Some(Token::new("open sesame")), ..Access::default() })
}

async fn sign_in(service: &Service, body: &str) -> Answer {
    let request = Request::post("/signin").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    service.ask(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_closes_all_but_the_health() {
    let service = with_token();
    for path in ALL.into_iter().chain(["/nothing"]) {
        let answer = service.get(path).await;
        let open = ["/healthz", "/readyz"].contains(&path);
        assert_eq!(answer.status, if open { StatusCode::OK } else { StatusCode::UNAUTHORIZED }, "{path}");
        assert!(open || answer.header("www-authenticate").starts_with("Bearer"), "{path}");
        for (token, expected) in [("open sesame", StatusCode::OK), ("open sesam", StatusCode::UNAUTHORIZED)] {
            let request = Request::get(path).header(header::AUTHORIZATION, format!("Bearer {token}"));
            let answer = service.ask(request.body(Body::empty()).unwrap()).await;
            let expected = if open { StatusCode::OK } else { expected };
            let missing = path == "/nothing" && expected == StatusCode::OK;
            assert_eq!(answer.status, if missing { StatusCode::NOT_FOUND } else { expected }, "{path} {token}");
        }
    }
    let in_address = service.get("/status?token=open%20sesame").await;
    assert_eq!(in_address.status, StatusCode::UNAUTHORIZED, "a token is not taken from an address");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_a_cookie_for_the_token() {
    let service = with_token();
    let request = Request::get("/").header(header::ACCEPT, "text/html,*/*");
    let page = service.ask(request.body(Body::empty()).unwrap()).await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert!(
        page.text.contains("<form method=\"post\" action=\"/signin\">") && !page.text.contains("@@"),
        "{}",
        page.text
    );
    assert!(page.header("content-security-policy").contains("style-src 'sha256-"));

    let wrong = sign_in(&service, "token=sesame").await;
    assert_eq!((wrong.status, wrong.header("set-cookie")), (StatusCode::UNAUTHORIZED, ""));
    assert!(wrong.text.contains("role=\"alert\""));
    let right = sign_in(&service, "token=open+sesame").await;
    assert_eq!((right.status, right.header("location")), (StatusCode::SEE_OTHER, "/"));
    let cookie = right.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("sesame") && !cookie.contains("Secure"), "{cookie}");

    let pair = cookie.split(';').next().unwrap();
    let with = |service: &Service, cookie: &str| {
        let request = Request::get("/status").header(header::COOKIE, cookie).body(Body::empty()).unwrap();
        let router = service.router.clone();
        async move { tower::ServiceExt::oneshot(router, request).await.unwrap().status() }
    };
    assert_eq!(with(&service, pair).await, StatusCode::OK);
    assert_eq!(with(&with_token(), pair).await, StatusCode::OK, "also after a restart");
    let other = Service::new(0.02, Access { token: Some(Token::new("another")), ..Access::default() });
    assert_eq!(with(&other, pair).await, StatusCode::UNAUTHORIZED);
    assert_eq!(with(&service, "cuzk_status=open sesame").await, StatusCode::UNAUTHORIZED, "it is not the token");

    let tls = Access { token: Some(Token::new("open sesame")), tls: true, ..Access::default() };
    let cookie = sign_in(&Service::new(0.02, tls), "token=open+sesame").await;
    assert!(cookie.header("set-cookie").ends_with("; Secure"));
    let long = sign_in(&service, &format!("token={}", "x".repeat(5000))).await;
    assert_eq!(long.status, StatusCode::PAYLOAD_TOO_LARGE);
}
