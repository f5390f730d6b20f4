//! The status page in a real browser, over a real socket and in real time: a script in the page plays the person, and
//! posts what it sees to `/report`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    http::{Request, header},
    response::Response,
    routing::{get, post},
};
use cuzk_proto::v1::ProofKind;
use cuzk_server::http::{Access, serve};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tower::ServiceExt;

use super::Service;

/// A caller's name for a job that would like to be markup.
const MARKUP: &str = "</script><img src=x onerror=\"document.title='broken out'\">";

fn browser() -> Command {
    let program = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
    let mut command = Command::new(program);
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
    command.stderr(Stdio::null());
    command
}

/// Ends the browser, whatever becomes of the test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A listening server, with the person's script in its page.
struct Listening {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Listening {
    async fn start(address: &str, service: Router, reports: Option<mpsc::UnboundedSender<Value>>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = match reports {
            Some(reports) => with_person(service, reports),
            None => service,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
            serve(accept, router, 128, async { stopped.await.unwrap_or_default() }).await;
        });
        Self { address, stop, server }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        timeout(Duration::from_secs(10), self.server).await.unwrap().unwrap();
    }
}

/// The page with two more scripts, which its policy allows as they come from the same server.
fn with_person(service: Router, reports: mpsc::UnboundedSender<Value>) -> Router {
    let inner = service.clone();
    let page = move || async move {
        let answer = inner.oneshot(Request::get("/").header("host", "localhost").body(Body::empty()).unwrap()).await;
        let (mut parts, body) = answer.unwrap().into_parts();
        let page = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
        let page = page.replacen("<head>", "<head><script src=\"/watch.js\"></script>", 1).replacen(
            "</body>",
            "<script type=\"module\" src=\"/person.js\"></script></body>",
            1,
        );
        parts.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(parts, Body::from(page))
    };
    let script = |text: &'static str| get(move || async move { ([(header::CONTENT_TYPE, "text/javascript")], text) });
    let report = move |Json(report): Json<Value>| async move {
        reports.send(report).unwrap_or_default();
    };
    Router::new()
        .route("/", get(page))
        .route("/watch.js", script(include_str!("watch.js")))
        .route("/person.js", script(include_str!("person.js")))
        .route("/report", post(report))
        .fallback_service(service)
}

async fn next(reports: &mut mpsc::UnboundedReceiver<Value>, step: &str) -> Value {
    let report = timeout(Duration::from_secs(60), reports.recv()).await.expect("the person reports").unwrap();
    assert_eq!(report["step"], step, "{report}");
    report
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium, by the name in CHROMIUM or as `chromium`: `cargo xtask services` runs it"]
async fn a_person_watches_a_proof_a_failure_and_a_restart() {
    let (reports, mut reported) = mpsc::unbounded_channel();
    let access = || Access { loopback_only: true, ..Access::default() };
    let service = Service::new(1.0, access());
    let listening = Listening::start("127.0.0.1:0", service.router.clone(), Some(reports.clone())).await;
    let address = listening.address.to_string();
    let profile = tempfile::tempdir().unwrap();
    let _browser = Browser(
        browser()
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdout(Stdio::null())
            .args(["--window-size=1400,1000", &format!("http://{address}/#theme=light&minutes=1")])
            .spawn()
            .unwrap(),
    );

    let empty = next(&mut reported, "empty").await;
    assert_eq!(empty["title"], "storage01 – cuzk status");
    assert_eq!((text(&empty["state"]), text(&empty["connection"])), ("●running", "●live"));
    for (section, part) in [
        ("devices", "Staged H200"),
        ("devices", "idle"),
        ("pools", "pinned"),
        ("pools", "porep-32g"),
        ("queue", "WinningPoSt"),
        ("unfinished", "Nothing to do."),
        ("recent", "None has ended"),
        ("errors", "None since the start."),
        ("foot", "cuzk 1.2.3 (0123abc)"),
    ] {
        assert!(text(&empty["sections"][section]).contains(part), "{section}: {part}: {empty}");
    }

    let job = service.submit(ProofKind::PorepSealCommit, "porep-1000-1", "x").await;
    let running = next(&mut reported, "running").await;
    assert!(text(&running["sections"]["unfinished"]).contains(&job), "{running}");
    assert!(text(&running["sections"]["unfinished"]).contains("porep-1000-1"), "{running}");
    assert_eq!(running["synthesis"], "#e69f00", "a witness is drawn in its colour: {running}");
    assert!(text(&running["tip"]).contains("witness") && text(&running["tip"]).contains(&job), "{running}");
    let updated = next(&mut reported, "updated").await;
    let done = |report: &Value| report["done"].as_u64().unwrap();
    assert!(done(&updated) > done(&running), "{updated}");
    assert_eq!(updated["inspected"], true, "a click on the job selects it: {updated}");

    let failing = service.submit(ProofKind::PorepSealCommit, MARKUP, "fail <b>on device 1").await;
    let failed = next(&mut reported, "failed").await;
    for part in [failing.as_str(), MARKUP, "does not verify <b>on device 1; see (a path)"] {
        assert!(text(&failed["sections"]["recent"]).contains(part), "{part}: {failed}");
    }
    assert!(text(&failed["sections"]["errors"]).contains("does not verify"), "{failed}");
    assert!(text(&failed["sections"]["tiles"]).contains("1 failed"), "{failed}");
    service.ended(&job).await;
    let completed = next(&mut reported, "completed").await;
    for part in ["completed", "synthesis", "device", "Staged H200"] {
        assert!(text(&completed["sections"]["recent"]).contains(part), "{part}: {completed}");
    }

    listening.stop().await;
    sleep(Duration::from_secs(3)).await;
    let again = Service::new(1.0, access());
    let listening = Listening::start(&address, again.router.clone(), Some(reports)).await;
    let last = next(&mut reported, "restarted").await;
    assert!(text(&last["lost"]).contains("does not answer"), "{last}");
    assert!(text(&last["notices"]).contains("was restarted"), "{last}");
    assert!(!text(&last["notices"]).contains("does not answer"), "{last}");
    assert!(text(&last["sections"]["recent"]).contains("None has ended"), "it shows the new process: {last}");
    assert_eq!(last["theme"], "dark", "the key t changed it");
    assert_eq!((&last["errors"], &last["images"]), (&serde_json::json!([]), &0.into()), "{last}");
    assert_eq!(last["title"], "storage01 – cuzk status");
    listening.stop().await;
}

/// Opens a page and takes a picture of it.
async fn picture(url: String, size: &'static str, file: PathBuf) -> Vec<u8> {
    let taken = tokio::task::spawn_blocking(move || {
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            format!("--user-data-dir={}", profile.path().display()),
            format!("--window-size={size}"),
            "--virtual-time-budget=3000".to_owned(),
            format!("--screenshot={}", file.display()),
            url,
        ];
        assert!(browser().args(arguments).status().unwrap().success());
        fs::read(file).unwrap()
    });
    timeout(Duration::from_secs(60), taken).await.unwrap().unwrap()
}

/// `CUZK_SCREENSHOTS` names a folder that keeps the pictures, and `CUZK_SCREENSHOT_SECONDS` how long jobs run before
/// they are taken: with 75, the window of a minute is full.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium, by the name in CHROMIUM or as `chromium`: `cargo xtask services` runs it"]
async fn pictures_in_light_and_dark() {
    let kept = env::var("CUZK_SCREENSHOTS").ok();
    let seconds = env::var("CUZK_SCREENSHOT_SECONDS").map_or(3, |seconds| seconds.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let folder = kept.as_deref().map_or(temporary.path(), Path::new);
    let service = Service::new(5.0, Access { loopback_only: true, ..Access::default() });
    let listening = Listening::start("127.0.0.1:0", service.router.clone(), None).await;
    for second in 0..seconds {
        let (kind, name, input) = match second {
            41 => (ProofKind::PorepSealCommit, "porep-1000-4099".to_owned(), "fail on device 1".to_owned()),
            50 => (ProofKind::WindowPostPartition, "wdpost-1000-12-0".to_owned(), "x".to_owned()),
            _ if second % 40 == 22 => {
                (ProofKind::SnapDealsUpdate, format!("snap-1000-{}", 312 + second), "x".to_owned())
            }
            _ if second % 15 == 0 => {
                (ProofKind::PorepSealCommit, format!("porep-1000-{}", 4711 + second / 15), second.to_string())
            }
            _ => {
                sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        service.submit(kind, &name, &input).await;
        sleep(Duration::from_secs(1)).await;
    }
    let waterfall = format!("http://{}/waterfall?minutes=1#theme=light", listening.address);
    let dom = tokio::task::spawn_blocking(move || {
        let output = browser().args(["--virtual-time-budget=3000", "--dump-dom", &waterfall]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let dom = timeout(Duration::from_secs(60), dom).await.unwrap().unwrap();
    assert!(dom.contains("data-ready=\"true\""), "its policy allows its program: {dom:.500}");
    let page = |theme: &str| format!("http://{}/#minutes=1&theme={theme}", listening.address);
    let light = picture(page("light"), "1400,1600", folder.join("light.png")).await;
    let dark = picture(page("dark"), "1400,1600", folder.join("dark.png")).await;
    let phone = picture(page("dark"), "500,3600", folder.join("phone.png")).await;
    for shown in [&light, &dark, &phone] {
        assert!(shown.starts_with(b"\x89PNG") && shown.len() > 50_000, "{} bytes", shown.len());
    }
    assert_ne!(light, dark);
    listening.stop().await;
}
