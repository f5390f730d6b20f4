//! The metrics: what they say, their form, and their names, which clients and alerts know.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use axum::http::StatusCode;
use cuzk_journal::Refusing;
use cuzk_proto::v1::ProofKind;
use cuzk_server::{
    http::{About, Access, metrics_text},
    jobs::{Histogram, JobsLook, KINDS, KindLook, PRIORITIES, QueueLook, RefusedLook, ServiceState, Stage},
    prover::{DeviceLook, KeyLook, Look, PoolLook, Tier},
};

use super::{Service, exposition};

/// Jobs with a different number in each place.
fn jobs() -> JobsLook {
    let durations = |_| {
        let mut histogram = Histogram::new();
        [1, 40, 80].map(Duration::from_secs).into_iter().for_each(|d| histogram.add(d));
        histogram
    };
    let kind = |(kind, n): (ProofKind, u64)| KindLook {
        kind,
        pending: n as u32,
        in_progress: 10 + n as u32,
        completed: 100 + n,
        failed: 200 + n,
        cancelled: 300 + n,
        durations: Stage::ALL.map(|stage| (stage, durations(stage))).into(),
    };
    let queue = |(priority, n): (_, u32)| QueueLook { priority, pending: n, oldest: Duration::from_millis(n.into()) };
    JobsLook {
        state: ServiceState::Draining,
        kinds: KINDS.into_iter().zip(1..).map(kind).collect(),
        queues: PRIORITIES.into_iter().zip(1..).map(queue).collect(),
        recent: Vec::new(),
        errors: Vec::new(),
        journal: cuzk_journal::Usage {
            unfinished: 41,
            ended: 42,
            database_bytes: 43,
            request_bytes: 44,
            reserved_bytes: 45,
            max_bytes: 46,
            commits: 47,
            refused: 48,
            refusing: None,
        },
        resumed: 31,
        joined: 32,
        refused: RefusedLook { invalid: 33, unable: 34, limited: 35, draining: 36, journal: 37 },
        waiting: 38,
        queued: 49,
        max_queued: 50,
        retained: 39,
    }
}

/// A prover with a device whose name would like to end its label.
fn prover() -> Look {
    let device = DeviceLook {
        index: 3,
        backend: "cuda".to_owned(),
        name: "NVIDIA \"H200\"\\\n".to_owned(),
        uuid: "GPU-1".to_owned(),
        driver: "580.95.05".to_owned(),
        health: "fenced".to_owned(),
        memory_bytes: 1 << 40,
        memory_free_bytes: 51,
        job: None,
        idle_reason: Some("quarantined".to_owned()),
        busy: 0.25,
    };
    let key = |circuit: &str, tier, bytes| KeyLook { circuit: circuit.to_owned(), tier, bytes, users: 2, digest: None };
    let pool = |name: &str, n| PoolLook { name: name.to_owned(), reserved: n, peak: n + 1, capacity: n + 2 };
    Look {
        devices: vec![device],
        pools: vec![pool("host", 60), pool("pinned", 70), pool("device 3", 80)],
        // One key on two devices and in the host's memory.
        keys: vec![key("porep-32g", Tier::Hot, 5), key("porep-32g", Tier::Hot, 6), key("porep-32g", Tier::Warm, 7)],
        workers: "because".to_owned(),
        partition_workers: 91,
        gpu_workers: 92,
        verification_failures: 93,
        unable: None,
    }
}

fn text() -> String {
    metrics_text(&jobs(), &prover(), &About::now("storage01", "1.2.3", "0123abc"))
}

#[test]
fn each_number_is_where_it_belongs() {
    let families = exposition::read(&text()).unwrap();
    let value = |name: &str, labels: &[(&str, &str)]| {
        families[name].value(name, labels).unwrap_or_else(|| panic!("{name} {labels:?}: {:?}", families[name]))
    };
    let kind = [("proof_kind", "snap_deals_update")];
    for (name, expected) in [
        ("cuzk_proofs_completed_total", 410.0),
        ("cuzk_proofs_failed_total", 810.0),
        ("cuzk_proofs_cancelled_total", 1210.0),
        ("cuzk_queue_depth", 10.0),
        ("cuzk_running_jobs", 50.0),
        ("cuzk_partition_workers", 91.0),
        ("cuzk_gpu_workers", 92.0),
        ("cuzk_verification_failures_total", 93.0),
        ("cuzk_jobs_resumed_total", 31.0),
        ("cuzk_submissions_joined_total", 32.0),
        ("cuzk_callers_waiting", 38.0),
        ("cuzk_ready", 0.0),
        ("cuzk_draining", 1.0),
        ("cuzk_queue_limit", 50.0),
        ("cuzk_journal_limit_bytes", 46.0),
        ("cuzk_journal_commits_total", 47.0),
        ("cuzk_journal_refused_total", 48.0),
    ] {
        assert_eq!(value(name, &[]), expected, "{name}");
    }
    for (reason, expected) in [("draining", 1.0), ("journal_disk", 0.0), ("queue", 0.0)] {
        assert_eq!(value("cuzk_not_ready", &[("reason", reason)]), expected, "{reason}");
    }
    assert_eq!(value("cuzk_proofs_completed", &kind), 102.0);
    assert_eq!(value("cuzk_proofs_failed", &kind), 202.0);
    assert_eq!(value("cuzk_jobs", &[kind[0], ("state", "pending")]), 2.0);
    assert_eq!(value("cuzk_jobs", &[kind[0], ("state", "in_progress")]), 12.0);
    assert_eq!(value("cuzk_submissions_refused_total", &[("reason", "journal")]), 37.0);
    assert_eq!(value("cuzk_queue_jobs", &[("priority", "high")]), 2.0);
    assert_eq!(value("cuzk_queue_oldest_seconds", &[("priority", "low")]), 0.004);
    assert_eq!(value("cuzk_memory_reserved_bytes", &[("pool", "pinned")]), 70.0);
    assert_eq!(value("cuzk_memory_peak_bytes", &[("pool", "device 3")]), 81.0);
    assert_eq!(value("cuzk_memory_capacity_bytes", &[("pool", "host")]), 62.0);
    let device = [("device", "3")];
    assert_eq!(value("cuzk_device_healthy", &device), 0.0);
    assert_eq!(value("cuzk_device_busy_ratio", &device), 0.25);
    assert_eq!(value("cuzk_device_computing", &device), 0.0);
    assert_eq!(value("cuzk_device_memory_bytes", &device), (1_u64 << 40) as f64);
    assert_eq!(value("cuzk_device_memory_free_bytes", &device), 51.0);
    let name = ("name", "NVIDIA \"H200\"\\\n");
    let backend = [device[0], ("backend", "cuda"), name, ("uuid", "GPU-1"), ("driver", "580.95.05")];
    assert_eq!(value("cuzk_backend_info", &backend), 1.0);
    assert_eq!(value("cuzk_build_info", &[("version", "1.2.3"), ("commit", "0123abc")]), 1.0);
    assert_eq!(value("cuzk_keys_resident", &[("tier", "hot")]), 2.0);
    assert_eq!(value("cuzk_key_bytes", &[("circuit", "porep-32g"), ("tier", "hot")]), 11.0);
    assert_eq!(value("cuzk_key_users", &[("circuit", "porep-32g"), ("tier", "warm")]), 2.0);
    assert_eq!(value("cuzk_journal_bytes", &[("part", "requests")]), 44.0);
    assert_eq!(value("cuzk_journal_jobs", &[("state", "ended")]), 42.0);
    assert!(value("cuzk_uptime_seconds", &[]) < 60.0);

    let total = &families["cuzk_proof_duration_seconds"];
    let of = |ending: &str, labels: &[(&str, &str)]| {
        total.value(&format!("cuzk_proof_duration_seconds{ending}"), labels).unwrap()
    };
    assert_eq!(of("_bucket", &[kind[0], ("le", "60")]), 2.0);
    assert_eq!((of("_sum", &kind), of("_count", &kind)), (121.0, 3.0));
    let stages: BTreeSet<&str> =
        families["cuzk_proof_stage_seconds"].samples.keys().map(|(_, labels)| labels["stage"].as_str()).collect();
    assert_eq!(stages, BTreeSet::from(["queue", "key", "synthesis", "device", "finish"]));
}

#[test]
fn one_reason_is_told_for_not_being_ready() {
    let mut looks = vec![(None, jobs())];
    for (reason, refusing) in [
        ("journal_limit", Refusing::Limit { in_use: 5, requested: 6, limit: 7 }),
        ("journal_disk", Refusing::Disk { needed: 8 }),
        ("journal_failing", Refusing::Failing),
        ("journal_replaced", Refusing::Replaced),
    ] {
        let mut look = jobs();
        look.journal.refusing = Some(refusing);
        looks.push((Some(reason), look));
    }
    looks.push((Some("queue"), JobsLook { queued: 50, ..jobs() }));
    let mut healthy = prover();
    healthy.devices[0].health = "healthy".to_owned();
    let about = About::now("storage01", "1.2.3", "0123abc");
    let told = |jobs: &JobsLook, prover: &Look| {
        let families = exposition::read(&metrics_text(jobs, prover, &about)).unwrap();
        let reasons = families["cuzk_not_ready"].samples.iter().filter(|(_, value)| **value == 1.0);
        let reasons: Vec<String> = reasons.map(|((_, labels), _)| labels["reason"].clone()).collect();
        (families["cuzk_ready"].value("cuzk_ready", &[]).unwrap() == 1.0, reasons)
    };
    for (reason, look) in looks {
        let look = JobsLook { state: ServiceState::Running, ..look };
        let expected: Vec<String> = reason.into_iter().map(str::to_owned).collect();
        assert_eq!(told(&look, &healthy), (reason.is_none(), expected));
    }
    let running = JobsLook { state: ServiceState::Running, ..jobs() };
    assert_eq!(told(&running, &prover()), (false, vec!["device".to_owned()]));
    healthy.unable = Some("nothing fits".to_owned());
    assert_eq!(told(&running, &healthy), (false, vec!["unable".to_owned()]));
}

#[test]
#[cfg(target_os = "linux")]
fn the_memory_of_the_process_is_told() {
    let families = exposition::read(&text()).unwrap();
    let bytes = |name: &str| families[name].value(name, &[]).unwrap();
    let (now, peak) = (bytes("process_resident_memory_bytes"), bytes("process_resident_memory_peak_bytes"));
    assert!(1e6 < now && now <= peak, "{now} {peak}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_server_and_a_busy_one_are_well_formed() {
    let service = Service::new(0.02, Access::default());
    let read = async || {
        let answer = service.get("/metrics").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        exposition::read(&answer.text).unwrap()
    };
    let before = read().await;
    assert_eq!(before["cuzk_proofs_completed_total"].value("cuzk_proofs_completed_total", &[]), Some(0.0));
    let kind = [("proof_kind", "winning_post")];
    assert_eq!(
        before["cuzk_proofs_completed"].value("cuzk_proofs_completed", &kind),
        Some(0.0),
        "there from the start"
    );
    let job = service.submit(ProofKind::WinningPost, "w", "x").await;
    service.ended(&job).await;
    let job = service.submit(ProofKind::PorepSealCommit, "p", "fail").await;
    service.ended(&job).await;
    let after = read().await;
    assert_eq!(after["cuzk_proofs_completed"].value("cuzk_proofs_completed", &kind), Some(1.0));
    assert_eq!(after["cuzk_proofs_failed_total"].value("cuzk_proofs_failed_total", &[]), Some(1.0));
    let count = "cuzk_proof_duration_seconds_count";
    assert_eq!(after["cuzk_proof_duration_seconds"].value(count, &kind), Some(1.0));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "no family comes or goes");
}

fn document(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../docs/operations", name].iter().collect();
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words that look like names of our metrics.
fn names_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("cuzk_") || word.starts_with("process_")).map(str::to_owned).collect()
}

#[test]
fn the_documentation_names_each_metric_and_alerts_use_no_other() {
    let families = exposition::read(&text()).unwrap();
    let documented = names_in(&document("http.md"));
    for name in families.keys() {
        assert!(documented.contains(name), "docs/operations/http.md does not name {name}");
    }
    let samples: BTreeSet<&String> = families
        .values()
        .flat_map(|family| family.samples.keys())
        .map(|(name, _)| name)
        .chain(families.keys())
        .collect();
    for name in names_in(&document("http.md")).union(&names_in(&rules())) {
        assert!(samples.contains(name), "there is no metric {name}");
    }
}

/// The rules in the page on alerts.
fn rules() -> String {
    let page = document("alerts.md");
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let rules: Vec<&str> = blocks.filter(|block| block.starts_with("groups:")).collect();
    assert_eq!(rules.len(), 1, "one file of rules");
    rules.concat()
}

fn promtool(arguments: &[&str], input: &str) {
    let program = env::var("CUZK_PROMTOOL").unwrap_or_else(|_| "promtool".to_owned());
    let mut child = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&said));
}

#[test]
#[ignore = "needs promtool, by the name in CUZK_PROMTOOL or as `promtool`: `cargo xtask services` runs it"]
fn promtool_finds_nothing_wrong() {
    promtool(&["check", "metrics"], &text());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.yml");
    fs::write(&file, rules()).unwrap();
    promtool(&["check", "rules", "--lint-fatal", file.to_str().unwrap()], "");
}
