//! `cuzk simulate` and `cuzk timeline` as processes.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

fn cuzk(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cuzk")).args(arguments).env_remove("RUST_LOG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn seed() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuzk-scheduler/profiles/seed.toml").to_str().unwrap().to_owned()
}

#[test]
fn a_simulation_tells_seconds_and_memory_for_each_number_of_workers() {
    let out = cuzk(&["simulate", &seed(), "--partition-workers", "2,12", "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    // The machine that the plan describes was measured: 152 s a proof in 110 GiB with two, 37.7 s with twelve.
    for (run, seconds, workers) in [(0, 152.0, "2"), (1, 37.7, "12")] {
        let run = &json["runs"][run];
        assert_eq!(run["partition_workers"], workers);
        let simulated = run["streams"][0]["seconds_per_job"].as_f64().unwrap();
        assert!((simulated / seconds - 1.0).abs() < 0.1, "{simulated} s, measured {seconds}");
        assert_eq!(run["streams"][0]["completed"], 20);
    }
    let lines = text(&cuzk(&["simulate", &seed(), "--partition-workers", "2,auto"]).stdout);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let one = text(&cuzk(&["simulate", &seed()]).stdout);
    assert!(one.contains("RTX 5070 Ti: busy"), "{one}");
}

#[test]
fn a_bad_plan_is_bad_input_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    let good = fs::read_to_string(seed()).unwrap();
    for (from, to, told) in [
        ("cores = 96", "cores = \"many\"", "line 6"),
        ("[[streams]]\ncircuit = \"porep-32g\"", "[[streams]]\ncircuit = \"no-such\"", "no-such"),
        ("link_bandwidth = \"55 GB\"", "link_bandwidth = \"0 GB\"", "link_bandwidth of RTX 5070 Ti is 0"),
        ("lookahead = 1", "lookahaed = 1", "lookahaed"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        fs::write(&path, bad).unwrap();
        let out = cuzk(&["simulate", path.to_str().unwrap(), "--json"]);
        assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
        let error = text(&out.stderr);
        assert!(error.contains(told) && error.contains("plan.toml"), "{error}");
    }
    assert_eq!(cuzk(&["simulate", &seed(), "--partition-workers", "some"]).status.code(), Some(2));
    assert_eq!(cuzk(&["simulate", "no-such-plan.toml"]).status.code(), Some(3));
}

#[test]
fn an_estimate_that_does_not_fit_ends_so_with_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    let estimate =
        |more: &[&str]| cuzk(&[&["estimate", "wpost-2k", "--cache-dir", cache, "--cores", "16"], more].concat());
    let fits = estimate(&["--memory", "16GiB"]);
    assert_eq!(fits.status.code(), Some(0), "{}", text(&fits.stderr));
    assert!(text(&fits.stderr).contains(&format!("is kept in {cache}")), "{}", text(&fits.stderr));
    let told = text(&fits.stdout);
    assert!(told.contains("cpu (16 cores)") && told.contains("host memory: at most"), "{told}");
    // The second one finds the recording, and says nothing of it.
    let refused = estimate(&["--memory", "16GiB", "--budget", "1MiB"]);
    assert_eq!(refused.status.code(), Some(6), "{}", text(&refused.stderr));
    assert!(!text(&refused.stderr).contains(cache), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).starts_with("cuzk: wpost-2k would be refused: "), "{}", text(&refused.stderr));
    let told = text(&refused.stdout);
    assert!(told.contains("would be refused: ") && told.contains("host memory: at most"), "{told}");
    let json = estimate(&["--memory", "16GiB", "--budget", "1MiB", "--json"]);
    assert_eq!(json.status.code(), Some(6));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(json["refused"].as_str().unwrap().contains("host"), "{json}");
}

#[test]
fn what_makes_no_sense_is_refused_before_a_circuit_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    for (given, told) in [
        (&["--memory", "0"][..], "at least 1 byte"),
        (&["--budget", "0"], "at least 1 byte"),
        (&["--memory", "4GiB"], "no memory is left for proofs"),
        (&["--memory", "4GiB", "--safety-margin", "4GiB"], "no memory is left for proofs"),
        (&["--synthesis", "0s", "--device-time", "1s"], "more than no time"),
        (&["--synthesis", "1s", "--device-time", "0"], "more than no time"),
        (&["--partition-workers", "0"], "at least 1, or auto"),
        (&["--cores", "0"], "--cores"),
        (&["--gpu", "0x8GiB"], "--gpu"),
    ] {
        // One that takes minutes to record.
        let out = cuzk(&[&["estimate", "porep-32g", "--cache-dir", cache.to_str().unwrap()], given].concat());
        assert_eq!(out.status.code(), Some(2), "{given:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(told), "{given:?}: {}", text(&out.stderr));
        assert!(!cache.exists(), "{given:?}");
    }
    let out = cuzk(&["simulate", &seed(), "--partition-workers", "2,0"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
}

#[test]
fn an_output_that_cannot_be_written_is_found_before_the_work() {
    let prove = cuzk(&["prove", "--c1", "/nonexistent/c1.json", "--out", "/nonexistent/proof.bin"]);
    assert_eq!(prove.status.code(), Some(3));
    assert!(text(&prove.stderr).contains("cannot write /nonexistent/proof.bin"), "{}", text(&prove.stderr));
}

#[test]
fn an_estimate_is_for_the_machine_that_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().to_str().unwrap();
    let estimate = |more: &[&str]| -> Value {
        let out =
            cuzk(&[&["estimate", "wpost-2k", "--cache-dir", cache, "--memory", "64GiB", "--json"], more].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let peak = |json: &Value| json["devices"][0]["predicted_peak_bytes"].as_u64().unwrap();
    let device_pool = |json: &Value| json["pools"][2]["capacity_bytes"].as_u64().unwrap();
    // Each core sums into buckets of its own.
    assert!(peak(&estimate(&["--cores", "1"])) < peak(&estimate(&["--cores", "64"])));
    let (whole, capped) = (estimate(&["--gpu", "h200"]), estimate(&["--gpu", "h200", "--vram-limit", "1GiB"]));
    assert!(device_pool(&whole) > 130 << 30);
    assert_eq!(device_pool(&capped), 1 << 30);
    let without_gpu = cuzk(&["estimate", "wpost-2k", "--vram-limit", "1GiB"]);
    assert_eq!(without_gpu.status.code(), Some(2), "{}", text(&without_gpu.stderr));
    assert!(text(&without_gpu.stderr).contains("--gpu"), "{}", text(&without_gpu.stderr));
}

/// A device that is busy for 3 of 4 seconds, in the native form of a timeline.
fn timeline() -> Vec<u8> {
    use cuzk_timeline::{IdleReason, JobId, Limits, Nanos, PartitionRef, Recorder, Span, Stage, TrackKind};
    let second = |s: u64| Nanos(s * 1_000_000_000);
    let recorder = Recorder::new("a machine", Limits::default());
    let device = recorder.add_track("GPU 0", TrackKind::Device);
    let starved = IdleReason::NoSynthesizedPartition { synthesizing: 1, because: None };
    recorder.device_state(device, Nanos(0), Some(starved));
    recorder.device_state(device, second(1), None);
    let mut span = Span::new(device, Stage::MsmH, second(1), second(4));
    span.partition = Some(PartitionRef { job: JobId(1), index: 0, attempt: 0 });
    recorder.span(span);
    let mut out = Vec::new();
    recorder.snapshot(second(4)).write(&mut out).unwrap();
    out
}

#[test]
fn a_timeline_becomes_a_summary_a_page_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("run.jsonl"), timeline()).unwrap();
    let out = cuzk(&["timeline", &at("run.jsonl"), "--html", &at("run.html"), "--perfetto", &at("run.json"), "--json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(json["summary"]["devices"][0]["utilization"], 0.75);
    assert!(fs::read_to_string(at("run.html")).unwrap().starts_with("<!doctype html>"));
    let trace: Value = serde_json::from_slice(&fs::read(at("run.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 2));
    let shown = text(&cuzk(&["timeline", &at("run.jsonl")]).stdout);
    assert!(shown.contains("GPU 0") && shown.contains("75.0 %"), "{shown}");
}

#[test]
fn a_bad_timeline_is_bad_input_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let good = timeline();
    for cut in [0, 10, good.len() / 2, good.len() - 3] {
        fs::write(at("cut.jsonl"), &good[..cut]).unwrap();
        let out = cuzk(&["timeline", &at("cut.jsonl"), "--html", &at("out.html")]);
        assert_eq!(out.status.code(), Some(3), "cut at {cut}: {}", text(&out.stdout));
        assert!(text(&out.stderr).contains("cut.jsonl"), "{}", text(&out.stderr));
        assert!(!Path::new(&at("out.html")).exists());
    }
    fs::write(at("run.jsonl"), &good).unwrap();
    let out = cuzk(&["timeline", &at("run.jsonl"), "--html", &at("run.jsonl")]);
    assert_eq!(out.status.code(), Some(2), "a timeline over itself: {}", text(&out.stderr));
    assert_eq!(fs::read(at("run.jsonl")).unwrap(), good);
}
