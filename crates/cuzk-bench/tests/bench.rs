//! The program, from its command line to its exit code, against a server with canned answers.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use cuzk_proto::v1::{
    await_proof_response::Status as End,
    proving_engine_server::{ProvingEngine, ProvingEngineServer},
    *,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tokio::{
    net::UnixListener,
    runtime::{self, Runtime},
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status, transport::Server};

/// What the server has been asked, and how it answers.
#[derive(Clone, Default)]
struct Canned(Arc<Inner>);

#[derive(Default)]
struct Inner {
    submitted: Mutex<Vec<SubmitProofRequest>>,
    /// Proofs that are waited for at the moment, and the most at a time.
    waiting: AtomicU32,
    most_waiting: AtomicU32,
    cancelled: Mutex<Vec<String>>,
    preloaded: Mutex<Vec<String>>,
    /// Proofs take so long.
    proof_time: Mutex<Duration>,
    /// From this one on a proof takes a minute.
    slow_from: Option<u32>,
    /// Every so many-th proof fails.
    failing: Option<u32>,
    unverified: bool,
    /// Submissions are refused with this.
    refusal: Option<Status>,
}

#[tonic::async_trait]
impl ProvingEngine for Canned {
    async fn submit_proof(
        &self,
        request: Request<SubmitProofRequest>,
    ) -> Result<Response<SubmitProofResponse>, Status> {
        if let Some(refusal) = &self.0.refusal {
            return Err(Status::new(refusal.code(), refusal.message()));
        }
        let mut submitted = self.0.submitted.lock().unwrap();
        submitted.push(request.into_inner());
        Ok(Response::new(SubmitProofResponse { job_id: submitted.len().to_string(), ..Default::default() }))
    }

    async fn await_proof(&self, request: Request<AwaitProofRequest>) -> Result<Response<AwaitProofResponse>, Status> {
        let job_id = request.into_inner().job_id;
        let waiting = self.0.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_waiting.fetch_max(waiting, Ordering::SeqCst);
        let number: u32 = job_id.parse().unwrap();
        let slow = self.0.slow_from.is_some_and(|first| number >= first);
        let time = if slow { Duration::from_secs(60) } else { *self.0.proof_time.lock().unwrap() };
        tokio::time::sleep(time).await;
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        let mut end = AwaitProofResponse { job_id, queue_wait_ms: 300, total_ms: 74_144, ..Default::default() };
        if self.0.failing.is_some_and(|every| number.is_multiple_of(every)) {
            end.set_status(End::Failed);
            end.error_message = "out of luck".into();
        } else {
            end.set_status(End::Completed);
            end.proof = vec![7; 192].into();
            end.verified = !self.0.unverified;
            end.circuit_id = "porep-2k".into();
        }
        Ok(Response::new(end))
    }

    async fn prove(&self, _: Request<ProveRequest>) -> Result<Response<ProveResponse>, Status> {
        Err(Status::unimplemented("the bench submits and waits"))
    }

    async fn cancel_proof(
        &self,
        request: Request<CancelProofRequest>,
    ) -> Result<Response<CancelProofResponse>, Status> {
        self.0.cancelled.lock().unwrap().push(request.into_inner().job_id);
        Ok(Response::new(CancelProofResponse { was_running: true }))
    }

    async fn get_status(&self, _: Request<GetStatusRequest>) -> Result<Response<GetStatusResponse>, Status> {
        let gpu =
            GpuStatus { name: "Canned".into(), backend: "tin".into(), driver: "1.2".into(), ..Default::default() };
        // The key is loaded by the first proof.
        let proved = !self.0.submitted.lock().unwrap().is_empty();
        let key = SrsStatus { circuit_id: "porep-2k".into(), key_digest: "d1ge57".into(), ..Default::default() };
        let loaded_srs = if proved { vec![key] } else { vec![] };
        Ok(Response::new(GetStatusResponse {
            gpus: vec![gpu],
            loaded_srs,
            version: "canned".into(),
            ..Default::default()
        }))
    }

    async fn get_metrics(&self, _: Request<GetMetricsRequest>) -> Result<Response<GetMetricsResponse>, Status> {
        // Busy from the first proof on: 100 s without, then 100 s with.
        let proved = !self.0.submitted.lock().unwrap().is_empty();
        let (uptime, busy) = if proved { (200, 0.5) } else { (100, 0.0) };
        let prometheus_text = format!(
            "cuzk_uptime_seconds {uptime}\ncuzk_device_busy_ratio{{device=\"0\"}} {busy}\n\
             process_resident_memory_bytes 1073741824\nprocess_resident_memory_peak_bytes 2147483648\n"
        );
        Ok(Response::new(GetMetricsResponse { prometheus_text }))
    }

    async fn preload_srs(&self, request: Request<PreloadSrsRequest>) -> Result<Response<PreloadSrsResponse>, Status> {
        self.0.preloaded.lock().unwrap().push(request.into_inner().circuit_id);
        Ok(Response::new(PreloadSrsResponse { already_loaded: false, load_time_ms: 12 }))
    }

    async fn evict_srs(&self, _: Request<EvictSrsRequest>) -> Result<Response<EvictSrsResponse>, Status> {
        Err(Status::failed_precondition("the key of porep-2k is in use"))
    }
}

/// A server with threads of its own, and a folder with its socket.
struct Served {
    canned: Canned,
    folder: tempfile::TempDir,
    runtime: Runtime,
}

fn serve(runtime: &Runtime, socket: &Path, canned: Canned) {
    let _entered = runtime.enter();
    let incoming = UnixListenerStream::new(UnixListener::bind(socket).unwrap());
    let service = ProvingEngineServer::new(canned).max_decoding_message_size(256 << 20);
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
}

impl Served {
    fn new(inner: Inner) -> Self {
        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let canned = Canned(Arc::new(inner));
        serve(&runtime, &folder.path().join("s"), canned.clone());
        Self { canned, folder, runtime }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuzk-bench"));
        command
            .args(["--addr", &format!("unix://{}", self.path("s"))])
            .args(arguments)
            .env_remove("CUZK_AUTH_TOKEN_FILE");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }
}

/// A run of the program that has ended.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    #[track_caller]
    fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "one object: {}", self.out);
        serde_json::from_str(&self.out).unwrap()
    }
}

#[track_caller]
fn until(what: &str, is: impl Fn() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn send(process: u32, signal: Signal) {
    kill_process(Pid::from_raw(process.try_into().unwrap()).unwrap(), signal).unwrap();
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin/2kib")
}

fn c1() -> String {
    fixtures().join("porep/c1.json").display().to_string()
}

#[test]
fn a_batch_prints_each_proof_and_sums_up() {
    let served = Served::new(Inner { proof_time: Mutex::new(Duration::from_millis(100)), ..Inner::default() });
    let ran = served.run(&["batch", "-t", "porep", "--c1", &c1(), "-c", "6", "-j", "3", "--miner", "1000"]);
    let ran = ran.ended_with(0);
    let lines: Vec<&str> = ran.out.lines().collect();
    for (i, line) in lines[..6].iter().enumerate() {
        let rest = line.strip_prefix(&format!("[{}/6] COMPLETED — ", i + 1)).unwrap_or_else(|| panic!("{line}"));
        let seconds = rest.strip_suffix("s (prove=73844 ms, queue=300 ms)").unwrap_or_else(|| panic!("{line}"));
        assert!(seconds.parse::<f64>().unwrap() >= 0.1 && seconds.split_once('.').unwrap().1.len() == 1, "{line}");
    }
    let text = &ran.out;
    for part in [
        "6 completed, 0 failed, 6 verified",
        "s/proof",
        "proofs/min (3 at a time",
        "peak RSS 2.0 GiB",
        "tin: Canned, driver 1.2, 100.0 % busy",
        "porep-2k, cold at the start, digest d1ge57",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(served.canned.0.most_waiting.load(Ordering::SeqCst), 3, "as many at a time as were asked for");
    let submitted = served.canned.0.submitted.lock().unwrap();
    let mut names: Vec<_> = submitted.iter().map(|r| r.request_id.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 6, "no proof joins another");
    let request = &submitted[0];
    assert_eq!((request.proof_kind(), request.registered_proof), (ProofKind::PorepSealCommit, 5));
    assert_eq!((request.sector_size, request.sector_number, request.miner_id), (2048, 1, 1000));
    assert_eq!(request.vanilla_proof, fs::read(c1()).unwrap());
}

#[test]
fn a_batch_as_json_is_one_object_with_all_that_a_measurement_needs() {
    let served = Served::new(Inner { failing: Some(3), ..Inner::default() });
    let ran = served.run(&["--json", "batch", "--type", "porep", "--c1", &c1(), "--count", "4"]).ended_with(5);
    let json = ran.json();
    assert_eq!(
        (json["completed"].as_u64(), json["failed"].as_u64(), json["verified"].as_u64()),
        (Some(3), Some(1), Some(3))
    );
    assert_eq!((json["latency"]["count"].as_u64(), json["mean_ms"]["prove"].as_f64()), (Some(3), Some(73_844.0)));
    assert_eq!(json["errors"][0], "the proof ended as FAILED: out of luck");
    let (per_proof, per_minute) = (json["seconds_per_proof"].as_f64(), json["proofs_per_minute"].as_f64());
    assert!((per_proof.unwrap() * per_minute.unwrap() - 60.0).abs() < 1e-6);
    let daemon = &json["daemon"];
    assert_eq!(
        (daemon["peak_rss_bytes"].as_f64(), json["key"]["digest"].as_str()),
        (Some(2_147_483_648.0), Some("d1ge57"))
    );
    assert_eq!((json["key"]["cold"].as_bool(), daemon["devices"][0]["utilization"].as_f64()), (Some(true), Some(1.0)));
    assert_eq!(
        (daemon["devices"][0]["name"].as_str(), daemon["devices"][0]["driver"].as_str()),
        (Some("Canned"), Some("1.2"))
    );
    assert!(ran.err.contains("[3/4] FAILED — ") && ran.err.contains("1 of 4, the first: "), "{}", ran.err);
}

#[test]
fn exit_codes_tell_the_class() {
    let batch = |inner: Inner| Served::new(inner).run(&["batch", "-t", "porep", "--c1", &c1()]).code;
    let refusing = |refusal: Status| batch(Inner { refusal: Some(refusal), ..Inner::default() });
    assert_eq!(batch(Inner { unverified: true, ..Inner::default() }), 1);
    assert_eq!(refusing(Status::unauthenticated("who?")), 2);
    assert_eq!(refusing(Status::invalid_argument("no")), 3);
    assert_eq!(refusing(Status::failed_precondition("no key")), 4);
    assert_eq!(refusing(Status::internal("no")), 5);
    assert_eq!(refusing(Status::resource_exhausted("full")), 6);
    let served = Served::new(Inner::default());
    assert_eq!(served.run(&["batch", "-t", "winning"]).code, 2);
    assert_eq!(served.run(&["batch", "-t", "porep", "--c1", "/nonexistent"]).code, 3);
    let mut nobody = Command::new(env!("CARGO_BIN_EXE_cuzk-bench"));
    let ran = nobody.args(["--json", "status", "--connect-limit", "0", "--addr", "unix:///nonexistent/s"]).output();
    let ran = Ran::from(ran.unwrap());
    let json = ran.ended_with(5).json();
    assert_eq!((json["class"].as_str(), json["exit_code"].as_u64()), (Some("device"), Some(5)));
    let json = served.run(&["--json", "batch", "--colour", "red"]).ended_with(2).json();
    assert_eq!((json["class"].as_str(), json["exit_code"].as_u64()), (Some("usage"), Some(2)));
    assert!(json["error"].as_str().unwrap().contains("--colour"), "{json}");
}

#[test]
fn verbs_that_ask_one_thing() {
    let served = Served::new(Inner::default());
    assert!(served.run(&["status"]).ended_with(0).out.contains("tin: Canned"));
    assert_eq!(served.run(&["preload", "porep-2k"]).ended_with(0).out, "porep-2k loaded in 12 ms\n");
    assert!(served.run(&["evict", "porep-2k"]).ended_with(4).err.contains("is in use"));
    assert!(served.run(&["metrics"]).ended_with(0).out.starts_with("cuzk_uptime_seconds 100\n"));
    let out = served.path("proof.bin");
    served.run(&["single", "-t", "porep", "--c1", &c1(), "--out", &out]).ended_with(0);
    assert_eq!(fs::read(out).unwrap(), [7; 192]);
}

/// A folder with this program, and a program `cuzk` that shows its arguments, if there is to be one.
fn installed(with_cuzk: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(env!("CARGO_BIN_EXE_cuzk-bench"), folder.path().join("cuzk-bench")).unwrap();
    if with_cuzk {
        script(&folder.path().join("cuzk"), "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 4\n");
    }
    folder
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn gen_vanilla_is_done_by_the_program_beside_it() {
    let run = |folder: &tempfile::TempDir, arguments: &[&str]| {
        let mut command = Command::new(folder.path().join("cuzk-bench"));
        // No other cuzk than the one beside it.
        Ran::from(command.args(arguments).env("PATH", "/nonexistent").output().unwrap())
    };
    let folder = installed(true);
    for (given, passed) in [
        (&["gen-vanilla", "-t", "winning", "--out", "v.json"][..], "<gen-vanilla><-t><winning><--out><v.json>"),
        (&["gen-vanilla", "--help"], "<gen-vanilla><--help>"),
        (&["--json", "gen-vanilla", "-t", "snap"], "<gen-vanilla><-t><snap><--json>"),
    ] {
        assert_eq!(run(&folder, given).ended_with(4).out, passed, "its end is that of the other");
    }
    let ran = run(&installed(false), &["--json", "gen-vanilla", "-t", "snap"]).ended_with(5);
    assert!(ran.json()["error"].as_str().unwrap().contains("the program cuzk"), "{}", ran.out);
}

#[test]
fn a_sweep_finds_the_daemon_that_came_with_it() {
    let c1 = c1();
    let sweep = |folder: &tempfile::TempDir| {
        let mut command = Command::new(folder.path().join("cuzk-bench"));
        command.args(["sweep", "--c1", &c1, "--partition-workers", "1", "-j", "1", "-c", "1"]);
        // Results go where the program stands.
        Ran::from(command.current_dir(folder.path()).env("PATH", "/nonexistent").output().unwrap()).ended_with(5)
    };
    let folder = installed(true);
    let told = sweep(&folder).out;
    assert!(told.contains("ended with exit status: 4: <daemon><--config><"), "{told}");
    script(&folder.path().join("cuzk-daemon"), "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 7\n");
    let told = sweep(&folder).out;
    assert!(told.contains("ended with exit status: 7: <--config><"), "{told}");
    let told = sweep(&installed(false)).out;
    assert!(told.contains("cannot start cuzk-daemon: "), "{told}");
}

#[test]
fn an_interrupt_takes_back_what_is_under_way_and_reports_the_rest() {
    let served = Served::new(Inner { proof_time: Mutex::new(Duration::from_secs(60)), ..Inner::default() });
    let arguments = ["batch", "-t", "porep", "--c1", &c1(), "-c", "9", "-j", "2"];
    let child = served.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("two are asked for", || served.canned.0.waiting.load(Ordering::SeqCst) == 2);
    send(child.id(), Signal::INT);
    let ran = Ran::from(child.wait_with_output().unwrap()).ended_with(130);
    assert!(ran.err.contains("interrupted after 0 of 9 proofs"), "{}", ran.err);
    let mut cancelled = served.canned.0.cancelled.lock().unwrap().clone();
    cancelled.sort();
    assert_eq!(cancelled, ["1", "2"]);
}

#[test]
fn each_signal_stops_and_tells_what_was_done() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        // The first proof is made at once, the others are not.
        let served = Served::new(Inner { slow_from: Some(2), ..Inner::default() });
        let batch = served.command(&["--json", "batch", "--c1", &c1(), "-c", "9"]);
        // Whatever the tests run under.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,TERM").arg(batch.get_program()).args(batch.get_args());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        until("the second is asked for", || served.canned.0.submitted.lock().unwrap().len() == 2);
        until("it is waited for", || served.canned.0.waiting.load(Ordering::SeqCst) == 1);
        send(child.id(), signal);
        let json = Ran::from(child.wait_with_output().unwrap()).ended_with(code).json();
        assert_eq!((&json["completed"], &json["interrupted"]), (&1.into(), &true.into()), "{json}");
        assert_eq!((&json["class"], &json["exit_code"]), (&"interrupted".into(), &code.into()), "{json}");
        assert_eq!(*served.canned.0.cancelled.lock().unwrap(), ["2"]);
    }
}

#[test]
fn a_hang_up_that_nohup_ignores_stays_ignored() {
    let served = Served::new(Inner { slow_from: Some(1), ..Inner::default() });
    let batch = served.command(&["batch", "--c1", &c1()]);
    let mut command = Command::new("nohup");
    command.arg(batch.get_program()).args(batch.get_args()).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("it is waited for", || served.canned.0.waiting.load(Ordering::SeqCst) == 1);
    send(child.id(), Signal::HUP);
    send(child.id(), Signal::TERM);
    let ran = Ran::from(child.wait_with_output().unwrap()).ended_with(143);
    assert!(ran.err.contains("interrupted after 0 of 1 proofs (SIGTERM)"), "{}", ran.err);
}

#[test]
fn a_daemon_that_dies_leaves_what_was_measured() {
    // It dies when it is asked for the third proof.
    let dying = || Served::new(Inner { slow_from: Some(3), ..Inner::default() });
    let kill = |served: Served, arguments: &[&str]| {
        let mut command = served.command(arguments);
        command.args(["--connect-limit", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        until("the third is waited for", || {
            let waiting = served.canned.0.waiting.load(Ordering::SeqCst);
            waiting > 0 && served.canned.0.submitted.lock().unwrap().len() > 2
        });
        let Served { folder, runtime, .. } = served;
        fs::remove_file(folder.path().join("s")).unwrap();
        runtime.shutdown_background();
        Ran::from(child.wait_with_output().unwrap()).ended_with(5)
    };
    let json = kill(dying(), &["--json", "batch", "--c1", &c1(), "-c", "1000"]).json();
    assert_eq!((&json["completed"], &json["failed"]), (&2.into(), &1.into()), "the rest is not asked for: {json}");
    assert_eq!((&json["class"], &json["exit_code"]), (&"device".into(), &5.into()), "{json}");
    assert!(json["error"].as_str().unwrap().contains("gone, 2 of 1000"), "{json}");
    let daemon = &json["daemon"];
    assert!(daemon["not_seen_at_the_end"].is_string() && daemon["rss_after_bytes"].is_null(), "{daemon}");
    assert_eq!((&daemon["version"], &daemon["devices"][0]["name"]), (&"canned".into(), &"Canned".into()));

    let served = dying();
    let plan = served.path("plan.toml");
    fs::write(&plan, format!("[[load]]\nper_minute = 600\n[load.statement]\ntype = 'porep'\nc1 = '{}'\n", c1()))
        .unwrap();
    let json = kill(served, &["--json", "stress", &plan, "--duration", "600", "-j", "1"]).json();
    assert_eq!((&json["loads"][0]["completed"], &json["interrupted"]), (&2.into(), &false.into()), "{json}");
    assert!(json["error"].as_str().unwrap().contains("gone, 2 proofs"), "{json}");
}

#[test]
fn an_output_that_cannot_be_written_is_found_first() {
    let served = Served::new(Inner::default());
    let sweep = ["sweep", "--c1", "nothing", "--partition-workers", "1", "-j", "1"];
    for output in [["--svg", "/nonexistent/x"], ["--results", "/nonexistent/x"]] {
        let mut command = served.command(&[&sweep[..], &output].concat());
        let ran = Ran::from(command.current_dir(served.folder.path()).output().unwrap()).ended_with(3);
        assert!(ran.err.contains("/nonexistent/x"), "{}", ran.err);
    }
    let ran = served.run(&["single", "--c1", &c1(), "--out", "/nonexistent/x"]).ended_with(3);
    assert!(ran.err.contains("/nonexistent/x") && served.canned.0.submitted.lock().unwrap().is_empty(), "{}", ran.err);
}

#[test]
fn stress_asks_at_its_rates() {
    let served = Served::new(Inner::default());
    let plan = served.path("plan.toml");
    let vanilla = fixtures().join("winning/vanilla.json").display().to_string();
    let text = format!(
        "[[load]]\nper_minute = 600\n[load.statement]\ntype = 'porep'\nc1 = '{}'\n[[load]]\nper_minute = 120.0\n\
         [load.statement]\ntype = 'winning'\nvanilla = '{vanilla}'\nsector_size = '2k'\nminer = 't01000'\nrandomness = '{}'\n",
        c1(),
        "00".repeat(32)
    );
    fs::write(&plan, text).unwrap();
    let json = served.run(&["--json", "stress", &plan, "--duration", "1.9"]).ended_with(0).json();
    // Ten a second from 0 on, and two a second from a quarter of a second on.
    let asked: Vec<_> = (0..2).map(|k| json["loads"][k]["asked"].as_u64().unwrap()).collect();
    assert_eq!(asked, [19, 4]);
    assert_eq!(
        (json["loads"][0]["completed"].as_u64(), json["loads"][1]["circuit"].as_str()),
        (Some(19), Some("winning-2k"))
    );
    assert!(json["get_status"]["count"].as_u64().unwrap() > 1 && json["get_status_failed"] == 0, "{json}");
    let daemon = &json["daemon"];
    assert_eq!((&daemon["rss_after_bytes"], &daemon["devices"][0]["driver"]), (&1_073_741_824.into(), &"1.2".into()));
    let (key, verified) = (&json["loads"][0]["key"], &json["loads"][0]["verified"]);
    assert_eq!((&key["digest"], &key["cold"], verified), (&"d1ge57".into(), &true.into(), &19.into()));

    *served.canned.0.proof_time.lock().unwrap() = Duration::from_secs(3);
    let json = served.run(&["--json", "stress", &plan, "-d", "1", "-j", "5"]).ended_with(0).json();
    let held: u64 = (0..2).map(|k| json["loads"][k]["held_back"].as_u64().unwrap()).sum();
    assert_eq!(held, 12 - 5, "what is beyond the bound is counted, not queued: {json}");
}

/// A program that a sweep starts as its daemon: it notes its arguments and waits for its end. The test answers instead
/// of it, on the socket that its configuration names.
const STAND_IN: &str = "#!/bin/sh\ntrap 'kill $!; exit 0' TERM\necho \"$2\" >> \"$STARTED\"\nsleep 60 & wait\n";

#[test]
fn a_sweep_has_a_daemon_for_each_point_and_writes_what_it_measured() {
    let served = Served::new(Inner::default());
    let daemon = served.path("daemon");
    script(Path::new(&daemon), STAND_IN);
    let config = served.path("base.toml");
    fs::write(&config, "[synthesis]\npartition_workers = 1\nthreads = 3\n[daemon]\nlisten = '0.0.0.0:1'\n").unwrap();
    let (started, svg, results) = (served.path("started"), served.path("s.svg"), served.path("s.json"));
    let mut command = served.command(&["sweep", "-t", "porep", "--c1", &c1(), "-c", "2", "-j", "1,2"]);
    command.args(["--partition-workers", "10,12", "--config", &config, "--daemon", &daemon]);
    command.args(["--svg", &svg, "--results", &results, "--start-limit", "30"]).env("STARTED", &started);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut workers = Vec::new();
    let since = Instant::now();
    while workers.len() < 4 {
        assert!(since.elapsed() < Duration::from_secs(60), "four daemons are started, not {}", workers.len());
        let paths = fs::read_to_string(&started).unwrap_or_default();
        for path in paths.lines().skip(workers.len()) {
            let config: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
            let socket = config["daemon"]["listen"].as_str().unwrap().strip_prefix("unix://").unwrap();
            assert_eq!(config["synthesis"].as_table().unwrap().len(), 1, "the old name of the key is gone");
            assert_eq!(config["daemon"]["status_listen"].as_str(), Some(""));
            assert!(config["journal"]["directory"].as_str().is_some());
            workers.push(config["pipeline"]["partition_workers"].as_integer().unwrap());
            serve(&runtime, Path::new(socket), Canned::default());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let ran = Ran::from(child.wait_with_output().unwrap()).ended_with(0);
    assert_eq!(workers, [10, 10, 12, 12]);
    let written: Value = serde_json::from_slice(&fs::read(results).unwrap()).unwrap();
    assert_eq!(written["points"].as_array().unwrap().len(), 4);
    let measured = &written["points"][3]["measured"];
    assert_eq!((&measured["completed"], &measured["key"]["digest"]), (&2.into(), &"d1ge57".into()), "{written}");
    assert_eq!(measured["daemon"]["devices"][0]["name"], "Canned");
    assert!(
        ran.out.matches("COMPLETED").count() == 8 && ran.out.contains("workers at a time    s/proof"),
        "{}",
        ran.out
    );
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg "));
}

#[test]
fn a_sweep_that_is_ended_leaves_results_and_neither_daemon_nor_folder() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let served = Served::new(Inner::default());
        let (daemon, started, temporary) = (served.path("daemon"), served.path("started"), served.path("tmp"));
        // A daemon that notes its process, and does not end when it is told to.
        script(Path::new(&daemon), "#!/bin/sh\ntrap '' TERM INT HUP\necho \"$$ $2\" >> \"$STARTED\"\nexec sleep 300\n");
        fs::create_dir(&temporary).unwrap();
        let (svg, results) = (served.path("s.svg"), served.path("s.json"));
        let sweep = served.command(&["--json", "sweep", "--c1", &c1(), "-c", "2", "-j", "1,2,3"]);
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,TERM").arg(sweep.get_program()).args(sweep.get_args());
        command.args(["--partition-workers", "10", "--daemon", &daemon, "--svg", &svg, "--results", &results]);
        command.args(["--start-limit", "60"]).env("STARTED", &started).env("TMPDIR", &temporary);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

        let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let noted = || fs::read_to_string(&started).unwrap_or_default();
        until("a daemon is started", || noted().lines().count() == 1);
        let config = noted().trim().split_once(' ').unwrap().1.to_owned();
        let canned = Canned(Arc::new(Inner { slow_from: Some(2), ..Inner::default() }));
        serve(&runtime, &Path::new(&config).with_file_name("cuzk.sock"), canned.clone());
        until("its second proof is waited for", || {
            canned.0.submitted.lock().unwrap().len() == 2 && canned.0.waiting.load(Ordering::SeqCst) == 1
        });
        send(child.id(), signal);
        let json = Ran::from(child.wait_with_output().unwrap()).ended_with(code).json();
        assert_eq!((&json["class"], &json["interrupted"]), (&"interrupted".into(), &true.into()), "{json}");
        let written: Value = serde_json::from_slice(&fs::read(results).unwrap()).unwrap();
        let points = written["points"].as_array().unwrap();
        assert_eq!((points.len(), &points[0]["measured"]["completed"]), (1, &1.into()), "{written}");
        assert_eq!(written["interrupted"], true);
        let process: i32 = noted().split(' ').next().unwrap().parse().unwrap();
        assert!(test_kill_process(Pid::from_raw(process).unwrap()).is_err(), "the daemon runs on");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "its folder is left");
    }
}
