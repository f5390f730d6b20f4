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
