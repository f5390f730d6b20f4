//! The status page of a daemon that proves, in Chromium, which is told what to do over a pipe by its own protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>). The page and its daemon are as they are for everybody.

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{Daemon, WINDOW, WINNING, accepts, request};

const LIMIT: Duration = Duration::from_secs(60);

/// A browser with one page.
struct Browser {
    child: Child,
    to: ChildStdin,
    from: mpsc::Receiver<Value>,
    /// Of the page.
    session: Value,
    calls: u64,
    /// What the browser has told without being asked.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let program = env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        // It reads from descriptor 3 and writes to 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1", &program])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, from) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                // Who does not listen any more has seen enough.
                let _gone = sender.send(serde_json::from_slice(&message).unwrap());
            }
        });
        let mut this = Self { child, to, from, session: Value::Null, calls: 0, events: Vec::new(), _profile: profile };
        let target = this.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = this.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        this.session = attached["sessionId"].clone();
        let size = json!({"width": 1400, "height": 1600, "deviceScaleFactor": 1, "mobile": false});
        this.call("Emulation.setDeviceMetricsOverride", size);
        for domain in ["Page", "Network", "Runtime", "Log"] {
            this.call(&format!("{domain}.enable"), json!({}));
        }
        this
    }

    /// Calls a method, and waits for its answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": parameters});
        if !self.session.is_null() {
            call["sessionId"] = self.session.clone();
        }
        write!(self.to, "{call}\0").unwrap();
        loop {
            let message = self.from.recv_timeout(LIMIT).unwrap_or_else(|e| panic!("{method}: {e}"));
            if message["id"] == self.calls {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of an expression in the page.
    fn evaluate(&mut self, expression: &str) -> Value {
        let found = self.call("Runtime.evaluate", json!({"expression": expression, "returnByValue": true}));
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].clone()
    }

    /// What a person reads in a part of the page.
    fn text(&mut self, part: &str) -> String {
        let text = self.evaluate(&format!("document.getElementById({part:?})?.innerText ?? ''"));
        text.as_str().unwrap().to_owned()
    }

    /// Waits until a part of the page has these texts.
    fn until(&mut self, part: &str, texts: &[&str]) -> String {
        let since = Instant::now();
        loop {
            let seen = self.text(part);
            if texts.iter().all(|text| seen.contains(text)) {
                return seen;
            }
            assert!(since.elapsed() < LIMIT, "{texts:?} is not in {part}: {seen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Every address that the page has asked for anything.
    fn requested(&mut self) -> Vec<String> {
        // What was told so far is among the events once a call is answered.
        self.evaluate("1");
        let requests = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        requests.map(|event| event["params"]["request"]["url"].as_str().unwrap().to_owned()).collect()
    }

    /// Errors that the page or the browser has told of.
    fn errors(&self) -> Vec<&Value> {
        let is_error = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        self.events.iter().filter(is_error).collect()
    }

    fn picture(&mut self, file: &Path) {
        let taken = self.call("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": false}));
        // The protocol's base64, which nothing else here needs to read.
        let mut base64 = Command::new("base64");
        let picture = fs::File::create(file).unwrap();
        let mut decoder = base64.arg("-d").stdin(Stdio::piped()).stdout(picture).spawn().unwrap();
        decoder.stdin.take().unwrap().write_all(taken["data"].as_str().unwrap().as_bytes()).unwrap();
        assert!(decoder.wait().unwrap().success());
        assert!(fs::read(file).unwrap().starts_with(b"\x89PNG"));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may be gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// `CUZK_SCREENSHOTS` names a folder that keeps a picture of the page under work.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium, by the name in CHROMIUM or as `chromium`: `cargo xtask services` runs it"]
async fn a_browser_shows_a_proof_while_it_is_made_and_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let options = ["--status-listen", "127.0.0.1:0", "--set", "pipeline.partition_workers=1"];
    let daemon = Daemon::start(directory.path(), &options);
    let client = daemon.client().await;
    let origin = format!("http://{}/", daemon.status_address());
    let mut browser = Browser::start();
    browser.call("Page.navigate", json!({"url": format!("{origin}#theme=dark&minutes=1")}));
    browser.until("unfinished", &["Nothing to do."]);
    browser.until("connection", &["live"]);
    // A page that is loaded anew forgets this.
    browser.evaluate("globalThis.opened = 'once'");

    let mut jobs = Vec::new();
    for n in 0..12 {
        let circuit = if n % 4 == 3 { WINNING } else { WINDOW };
        let id = format!("{}-1000-{n}", if circuit == WINNING { "winpost" } else { "wdpost" });
        jobs.push((circuit, client.submit(&request(circuit, &id)).await.unwrap().job_id));
    }
    let running = browser.until("unfinished", &["wdpost-1000-", "running", "partition 0: ", "0 of 1"]);
    browser.until("unfinished", &["queued"]);
    assert!(jobs.iter().any(|(_, job)| running.contains(job)), "{running}");
    // Some under way, some proved.
    browser.until("recent", &["completed"]);
    if let Ok(folder) = env::var("CUZK_SCREENSHOTS") {
        browser.picture(&Path::new(&folder).join("daemon.png"));
    }
    for (circuit, job) in &jobs {
        let result = client.wait(job, Some(Duration::from_secs(300))).await.unwrap();
        assert!(accepts(*circuit, &result.proof));
        browser.until("recent", &[job]);
    }
    browser.until("unfinished", &["Nothing to do."]);
    let recent = browser.until("recent", &["completed", "WinningPoSt", "WindowPoSt", "synthesis", "cpu: "]);
    assert!(!recent.contains("failed"), "{recent}");
    browser.until("tiles", &["12"]);

    assert_eq!(browser.evaluate("globalThis.opened"), "once");
    let requested = browser.requested();
    let elsewhere: Vec<_> = requested.iter().filter(|url| !url.starts_with(&origin)).collect();
    assert!(requested.len() > 5 && elsewhere.is_empty(), "{elsewhere:?} of {requested:?}");
    assert_eq!(browser.errors(), Vec::<&Value>::new());
    assert_eq!(daemon.terminate(), Some(0));
}
