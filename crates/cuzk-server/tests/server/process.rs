//! The server as a process: command line, signals, the service manager, logs.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use cuzk_proto::v1::{
    GetStatusRequest, ListProofsRequest, ProofKind, ProveRequest, await_proof_response::Status as Ended,
    engine_client::EngineClient, proving_engine_client::ProvingEngineClient,
};
use cuzk_server::config::Sources;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tonic::transport::{Channel, Endpoint};

use crate::grpc::{SOON, request};

/// The example, which is built beside the tests.
fn program() -> PathBuf {
    let own = env::current_exe().unwrap();
    let built = own.parent().and_then(|deps| deps.parent()).unwrap();
    let program = built.join("examples/fake-daemon");
    static BUILD: Once = Once::new();
    BUILD.call_once(|| {
        // A run of all tests has built the examples as well; one of this test alone has not.
        if program.exists() {
            return;
        }
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--quiet", "--example", "fake-daemon", "--target-dir"]);
        command.arg(built.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR"));
        if built.ends_with("release") {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success(), "the example is built");
    });
    program
}

/// A command in an environment of its own.
fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.env_clear().args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A daemon as a child, with somebody who listens to what it tells the service manager.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) socket: PathBuf,
    manager: UnixDatagram,
    stderr: Option<ChildStderr>,
}

impl Daemon {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(directory: &TempDir, environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let path = |name: &str| directory.path().join(name);
        let notify = path("notify");
        let _absent = fs::remove_file(&notify);
        let manager = UnixDatagram::bind(&notify).unwrap();
        manager.set_read_timeout(Some(SOON)).unwrap();
        let socket = path("cuzk.sock");
        let mut command = command(&["--status-listen", "", "--listen", &format!("unix://{}", socket.display())]);
        command.arg("--journal-dir").arg(path("journal")).args(arguments);
        let mut child = command.env("NOTIFY_SOCKET", &notify).envs(environment.iter().copied()).spawn().unwrap();
        let stderr = child.stderr.take();
        let mut daemon = Self { child, socket, manager, stderr };
        daemon.hear("READY=1");
        daemon
    }

    /// Waits until the service manager is told this, and returns the whole message.
    fn hear(&mut self, what: &str) -> String {
        let started = Instant::now();
        let mut heard = Vec::new();
        while started.elapsed() < SOON {
            let mut buffer = [0; 4096];
            let Ok(length) = self.manager.recv(&mut buffer) else { break };
            let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
            if message.lines().any(|line| line == what) {
                return message;
            }
            heard.push(message);
        }
        let _killed = self.child.kill();
        let mut log = String::new();
        if let Some(stderr) = &mut self.stderr {
            stderr.read_to_string(&mut log).unwrap();
        }
        panic!("{what} was not told, but {heard:?}; {log}");
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < SOON, "it does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn log(&mut self) -> String {
        let mut text = String::new();
        self.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("unix://{}", self.socket.display())).unwrap().connect().await.unwrap()
    }

    async fn proving(&self) -> ProvingEngineClient<Channel> {
        ProvingEngineClient::new(self.channel().await)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn prove(kind: ProofKind, id: &str, input: &str) -> ProveRequest {
    ProveRequest { submit: Some(request(kind, id, input)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_finishes_what_is_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(&directory, &[], &["--log-format", "json"]);
    let mut proving = daemon.proving().await;
    let mut waiting = proving.clone();
    // A second and a half of work.
    let call = tokio::spawn(async move { waiting.prove(prove(ProofKind::PorepSealCommit, "a", "slow")).await });
    while proving.get_status(GetStatusRequest {}).await.unwrap().into_inner().gpus[0].current_job_id.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.signal(Signal::TERM);
    daemon.hear("STOPPING=1");
    let result = call.await.unwrap().unwrap().into_inner().result.unwrap();
    assert_eq!(result.status(), Ended::Completed);
    assert_eq!(daemon.end().code(), Some(0));
    assert!(!daemon.socket.exists());

    // Each line is JSON, and those about the job say so.
    let log = daemon.log();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let about =
        |line: &&serde_json::Value| line["fields"]["job"] == result.job_id || line["span"]["job"] == result.job_id;
    assert!(lines.iter().any(|line| about(&line)), "{log}");
    let told =
        |text: &str| lines.iter().any(|line| line["fields"]["message"].as_str().is_some_and(|m| m.contains(text)));
    for text in ["starting", "gRPC is served", "told to end", "drained"] {
        assert!(told(text), "{text:?} is not in {log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_in_time_goes_on_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon =
        Daemon::start(&directory, &[("FAKE_PARTITION_MS", "1000")], &["--set", "daemon.grace_period=300ms"]);
    let mut waiting = daemon.proving().await;
    let call = tokio::spawn(async move { waiting.prove(prove(ProofKind::PorepSealCommit, "a", "slow")).await });
    let mut proving = daemon.proving().await;
    while proving.get_status(GetStatusRequest {}).await.unwrap().into_inner().gpus[0].current_job_id.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.signal(Signal::INT);
    let refusal = call.await.unwrap().unwrap_err();
    assert_eq!(refusal.code(), tonic::Code::Unavailable, "{refusal:?}");
    assert_eq!(daemon.end().code(), Some(0));
    drop(daemon);
    let mut daemon = Daemon::start(&directory, &[], &[]);
    let listed = EngineClient::new(daemon.channel().await).list_proofs(ListProofsRequest { limit: 0 }).await.unwrap();
    assert_eq!(listed.into_inner().proofs.len(), 1);
    let again = prove(ProofKind::PorepSealCommit, "a", "slow");
    let result = daemon.proving().await.prove(again).await.unwrap().into_inner().result.unwrap();
    assert_eq!(result.status(), Ended::Completed);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(&directory, &[("FAKE_PARTITION_MS", "1000")], &[]);
    let mut proving = daemon.proving().await;
    let slow = request(ProofKind::PorepSealCommit, "a", "slow");
    proving.submit_proof(slow).await.unwrap();
    daemon.signal(Signal::TERM);
    daemon.hear("STOPPING=1");
    let told = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(143));
    assert!(told.elapsed() < Duration::from_secs(10), "five minutes of work are not waited for");
    // As after any other sudden end, nothing is lost.
    let daemon = Daemon::start(&directory, &[("FAKE_PARTITION_MS", "1000")], &[]);
    let status = daemon.proving().await.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.queues.iter().map(|queue| queue.pending + queue.in_progress).sum::<u32>(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reads_the_configuration_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cuzk.toml");
    fs::write(&file, "[logging]\nlevel = 'info'\n[limits]\nqueue_length = 5\n").unwrap();
    let mut daemon = Daemon::start(&directory, &[("CUZK_CONFIG", file.to_str().unwrap())], &[]);
    fs::write(&file, "[logging]\nlevel = 'info'\n[limits]\nqueue_length = 6\nconnections = 9\n").unwrap();
    daemon.signal(Signal::HUP);
    let reloading = daemon.hear("RELOADING=1");
    assert!(reloading.lines().any(|line| line.starts_with("MONOTONIC_USEC=")), "{reloading}");
    daemon.hear("READY=1");
    fs::write(&file, "[logging]\nlevel = 'error'\n[limits]\nqueue_length = 7\nconnections = 9\n").unwrap();
    daemon.signal(Signal::HUP);
    daemon.hear("READY=1");
    for text in ["[logging]\nlevel = 'loud'\n", ""] {
        fs::write(&file, text).unwrap();
        daemon.signal(Signal::HUP);
        daemon.hear("READY=1");
    }
    daemon.proving().await.get_status(GetStatusRequest {}).await.unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(0));
    let log = daemon.log();
    let now = "it counts from now on key=\"limits.queue_length\"";
    assert_eq!(log.matches(now).count(), 1, "from the second time on, only errors are logged: {log}");
    assert!(log.contains("it counts from the next start on key=\"limits.connections\""), "{log}");
    assert!(log.contains("cuzk.toml:2: logging.level = \"loud\": expected"), "{log}");
    assert!(log.contains("cuzk.toml is empty"), "{log}");
    assert!(!log.contains("drained"), "{log}");
}

#[test]
fn the_watchdog_is_fed() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(&directory, &[("WATCHDOG_USEC", "200000")], &[]);
    let started = Instant::now();
    for _ in 0..5 {
        daemon.hear("WATCHDOG=1");
    }
    assert!(started.elapsed() >= Duration::from_millis(300), "twice in the time, not more often");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(0));
}

/// What the example logs when it makes its prover.
const MADE: &str = "the prover is made";

#[test]
fn one_daemon_a_journal() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(&directory, &[], &[]);
    let journal = directory.path().join("journal");
    let other =
        command(&["--listen", "127.0.0.1:0", "--status-listen", "", "--journal-dir", journal.to_str().unwrap()]);
    let (code, _, stderr) = ended(other);
    assert_eq!(code, Some(3), "{stderr}");
    let pid = daemon.child.id().to_string();
    assert!(stderr.contains(&pid), "{pid} is not named: {stderr}");
    assert!(!stderr.contains(MADE), "it is refused before anything is made that proves: {stderr}");
    let same = format!("unix://{}", daemon.socket.display());
    let elsewhere = directory.path().join("elsewhere");
    let other = command(&["--listen", &same, "--status-listen", "", "--journal-dir", elsewhere.to_str().unwrap()]);
    let (code, _, stderr) = ended(other);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("another process does"), "{stderr}");
    assert!(!elsewhere.exists(), "who has no address makes no journal");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(0));
    assert!(daemon.log().contains(MADE));
}

#[test]
fn a_lost_journal_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let requests = directory.path().join("journal/requests");
    fs::create_dir_all(&requests).unwrap();
    fs::write(requests.join(format!("{:016x}", 5)), [0; 100]).unwrap();
    let journal = directory.path().join("journal");
    let start = || {
        let journal = journal.to_str().unwrap();
        ended(command(&["--listen", "127.0.0.1:0", "--status-listen", "", "--journal-dir", journal]))
    };
    let (code, _, stderr) = start();
    assert_eq!(code, Some(3), "{stderr}");
    for part in ["holds requests of accepted jobs (1 files, 100 bytes)", "journal.redb is missing or empty", "Put back"]
    {
        assert!(stderr.contains(part), "{part:?} is not in {stderr}");
    }
    assert!(requests.join(format!("{:016x}", 5)).exists());
}

fn ended(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn mistakes_in_the_configuration_are_told_before_anything_happens() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cuzk.toml");
    fs::write(&file, "[daemon]\nlisten = '0.0.0.0:0'\nlisten_on = 3\n[memory]\nsafety_margin = 'lots'\n").unwrap();
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = ended(command(&["--config", path]));
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    let expected = [
        format!("{path}:3: there is no key \"daemon.listen_on\"; did you mean daemon.listen?"),
        format!("{path}:5: memory.safety_margin = \"lots\": expected a number of bytes"),
    ];
    for line in expected {
        assert!(stderr.contains(&line), "{line} is not in {stderr}");
    }
    fs::write(&file, "[daemon]\nlisten = '0.0.0.0:0'\n").unwrap();
    let (code, _, stderr) = ended(command(&["--config", path]));
    assert_eq!(code, Some(2));
    assert!(stderr.contains("give --insecure-listen"), "{stderr}");
    let (code, _, _) = ended(command(&["--no-such-option"]));
    assert_eq!(code, Some(2));
}

#[test]
fn the_printed_configuration_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cuzk.toml");
    fs::write(&file, "[memory]\ntotal_budget = '256GiB'\n[synthesis]\npartition_workers = 4\n").unwrap();
    let mut printing = command(&["--config", file.to_str().unwrap(), "--log-level", "debug", "--print-config"]);
    printing.env("FIL_PROOFS_PARAMETER_CACHE", "/data/params").env("HOME", "/home/prover");
    let (code, stdout, stderr) = ended(printing);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for line in [
        format!("total_budget = \"256GiB\" # {}:2", file.display()),
        format!("partition_workers = 4 # {}:4", file.display()),
        format!(
            "# warning: {}:4: synthesis.partition_workers is called pipeline.partition_workers now",
            file.display()
        ),
        "param_cache = \"/data/params\" # environment FIL_PROOFS_PARAMETER_CACHE".to_owned(),
        "level = \"debug\" # --log-level".to_owned(),
        "safety_margin = \"5GiB\" # default".to_owned(),
    ] {
        assert!(stdout.lines().any(|l| l == line), "{line} is not in {stdout}");
    }
    let sources = Sources { file: Some("printed.toml".into()), ..Sources::default() };
    let loaded = sources.parse(&stdout).unwrap();
    assert_eq!(loaded.config.logging.level.0, "debug");
    let (code, stdout, _) = ended(command(&["--example-config"]));
    assert_eq!((code, stdout), (Some(0), cuzk_server::config::example()));
}

#[test]
fn logs_for_people_are_lines() {
    let directory = tempfile::tempdir().unwrap();
    let mut daemon = Daemon::start(&directory, &[], &["--set", "scheduler.max_batch_wait_ms=5"]);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.end().code(), Some(0));
    let lines: Vec<String> = BufReader::new(daemon.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
    let warned = "WARN cuzk_server::server::process: --set: scheduler.max_batch_wait_ms has no effect";
    assert!(lines.iter().any(|line| line.contains(warned)), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "colours are for terminals");
}
