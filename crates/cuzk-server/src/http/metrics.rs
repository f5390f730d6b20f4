//! The metrics, of which each scrape gets the values of its moment.

use std::collections::BTreeMap;

use cuzk_proto::v1::{Priority, ProofKind};

use super::{
    About,
    exposition::{Exposition, Kind},
    health::Readiness,
    process::Resident,
};
use crate::{
    jobs::{JobsLook, KindLook, ServiceState, Stage},
    prover::{Look, PoolLook, Tier},
};

/// The name of a kind of proof in labels and in JSON.
pub(super) fn kind_name(kind: ProofKind) -> &'static str {
    match kind {
        ProofKind::Unspecified => "unspecified",
        ProofKind::PorepSealCommit => "porep_seal_commit",
        ProofKind::SnapDealsUpdate => "snap_deals_update",
        ProofKind::WindowPostPartition => "window_post_partition",
        ProofKind::WinningPost => "winning_post",
    }
}

/// The name of a priority in labels and in JSON.
pub(super) fn priority_name(priority: Priority) -> &'static str {
    match priority {
        Priority::Unspecified => "unspecified",
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
        Priority::Critical => "critical",
    }
}

/// The name of a tier in labels and in JSON.
pub(super) fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Hot => "hot",
        Tier::Warm => "warm",
        Tier::Cold => "cold",
    }
}

/// All metrics in Prometheus' text format 0.0.4: what `/metrics` and `GetMetrics` answer.
///
/// Counters count from the start of the process. Times are in seconds, memory is in bytes.
pub fn metrics_text(jobs: &JobsLook, prover: &Look, about: &About) -> String {
    let mut text = Exposition::default();
    service(&mut text, jobs, prover, about);
    proofs(&mut text, jobs, prover);
    queue(&mut text, jobs, prover);
    durations(&mut text, &jobs.kinds);
    memory(&mut text, &prover.pools);
    devices(&mut text, prover);
    keys(&mut text, prover);
    journal(&mut text, &jobs.journal);
    text.finish()
}

fn service(text: &mut Exposition, jobs: &JobsLook, prover: &Look, about: &About) {
    text.family("cuzk_build_info", Kind::Gauge, "Always 1; the labels say what is running.")
        .sample(&[("version", &about.version), ("commit", &about.commit)], 1.0);
    let uptime = about.uptime().as_secs_f64();
    text.single("cuzk_uptime_seconds", Kind::Gauge, "Time since the start of the process.", uptime);
    let readiness = Readiness::of(jobs, prover);
    let ready = f64::from(u8::from(readiness.is_ready()));
    text.single("cuzk_ready", Kind::Gauge, "1 if new work is taken and can be done, else 0; /readyz says why.", ready);
    text.family("cuzk_not_ready", Kind::Gauge, "1 for the reason why new work is not taken or cannot be done, else 0.");
    for reason in Readiness::REASONS {
        text.sample(&[("reason", reason)], f64::from(u8::from(readiness.reason() == Some(reason))));
    }
    let draining = f64::from(u8::from(jobs.state == ServiceState::Draining));
    text.single("cuzk_draining", Kind::Gauge, "1 if no new work is taken because the process is to end.", draining);
    if let Some(Resident { now, peak }) = Resident::read() {
        let help = "Memory of the process that is resident.";
        text.single("process_resident_memory_bytes", Kind::Gauge, help, now as f64);
        let help = "The most memory of the process that was ever resident.";
        text.single("process_resident_memory_peak_bytes", Kind::Gauge, help, peak as f64);
    }
    let started = about.started_unix_ms() as f64 / 1e3;
    text.single("process_start_time_seconds", Kind::Gauge, "Start of the process, since 1970.", started);
}

fn proofs(text: &mut Exposition, jobs: &JobsLook, prover: &Look) {
    let (completed, failed) = (jobs.completed() as f64, jobs.failed() as f64);
    text.single("cuzk_proofs_completed_total", Kind::Counter, "Jobs that ended with a verified proof.", completed);
    text.single("cuzk_proofs_failed_total", Kind::Counter, "Jobs that failed or ran out of time.", failed);
    let cancelled = jobs.cancelled() as f64;
    text.single("cuzk_proofs_cancelled_total", Kind::Counter, "Jobs that were cancelled.", cancelled);
    text.family("cuzk_proofs_completed", Kind::Untyped, "cuzk_proofs_completed_total by kind.");
    jobs.kinds.iter().for_each(|k| text.sample(&[("proof_kind", kind_name(k.kind))], k.completed as f64));
    text.family("cuzk_proofs_failed", Kind::Untyped, "cuzk_proofs_failed_total by kind.");
    jobs.kinds.iter().for_each(|k| text.sample(&[("proof_kind", kind_name(k.kind))], k.failed as f64));
    let help = "Proofs that failed their verification and were not released.";
    text.single("cuzk_verification_failures_total", Kind::Counter, help, prover.verification_failures as f64);

    text.family("cuzk_submissions_refused_total", Kind::Counter, "Submissions that were not taken, by reason.");
    let refused = &jobs.refused;
    let reasons = [
        ("invalid", refused.invalid),
        ("unable", refused.unable),
        ("limited", refused.limited),
        ("draining", refused.draining),
        ("journal", refused.journal),
    ];
    reasons.iter().for_each(|(reason, count)| text.sample(&[("reason", reason)], *count as f64));
    let joined = jobs.joined as f64;
    text.single("cuzk_submissions_joined_total", Kind::Counter, "Submissions of work that was there already.", joined);
    let help = "Jobs that were unfinished at the start and were started again.";
    text.single("cuzk_jobs_resumed_total", Kind::Counter, help, jobs.resumed as f64);
}

fn queue(text: &mut Exposition, jobs: &JobsLook, prover: &Look) {
    let (pending, running) = (f64::from(jobs.pending()), f64::from(jobs.in_progress()));
    text.single("cuzk_queue_depth", Kind::Gauge, "Jobs that have not begun.", pending);
    let help = "Jobs that may wait; more are refused.";
    text.single("cuzk_queue_limit", Kind::Gauge, help, jobs.max_queued as f64);
    text.single("cuzk_running_jobs", Kind::Gauge, "Jobs that have begun and not ended.", running);
    text.family("cuzk_jobs", Kind::Gauge, "Jobs that have not ended, by kind.");
    for KindLook { kind, pending, in_progress, .. } in &jobs.kinds {
        text.sample(&[("proof_kind", kind_name(*kind)), ("state", "pending")], f64::from(*pending));
        text.sample(&[("proof_kind", kind_name(*kind)), ("state", "in_progress")], f64::from(*in_progress));
    }
    text.family("cuzk_queue_jobs", Kind::Gauge, "Jobs that have not begun, by priority.");
    jobs.queues.iter().for_each(|q| text.sample(&[("priority", priority_name(q.priority))], f64::from(q.pending)));
    let help = "How long the oldest job that has not begun has been waiting, by priority; 0 if there is none.";
    text.family("cuzk_queue_oldest_seconds", Kind::Gauge, help);
    let oldest = jobs.queues.iter().map(|q| (priority_name(q.priority), q.oldest.as_secs_f64()));
    oldest.for_each(|(priority, age)| text.sample(&[("priority", priority)], age));
    text.single("cuzk_callers_waiting", Kind::Gauge, "Calls that wait for a job or watch one.", jobs.waiting as f64);
    let help = "Partitions that may be in flight at a time.";
    text.single("cuzk_partition_workers", Kind::Gauge, help, f64::from(prover.partition_workers));
    let help = "Threads that prepare work on devices.";
    text.single("cuzk_gpu_workers", Kind::Gauge, help, f64::from(prover.gpu_workers));
}

fn durations(text: &mut Exposition, kinds: &[KindLook]) {
    let all = |total: bool| {
        let of = move |(stage, _): &&_| (*stage == Stage::Total) == total;
        kinds.iter().flat_map(move |k| k.durations.iter().filter(of).map(|(stage, h)| (kind_name(k.kind), stage, h)))
    };
    let help = "From acceptance to the end, of jobs that ended with a proof.";
    text.family("cuzk_proof_duration_seconds", Kind::Histogram, help);
    all(true).for_each(|(kind, _, histogram)| text.histogram(&[("proof_kind", kind)], histogram));
    let help = "Time in a stage, summed over the partitions of a job, of jobs that ended with a proof.";
    text.family("cuzk_proof_stage_seconds", Kind::Histogram, help);
    all(false).for_each(|(kind, stage, histogram)| {
        text.histogram(&[("proof_kind", kind), ("stage", stage.name())], histogram);
    });
}

fn memory(text: &mut Exposition, pools: &[PoolLook]) {
    type Value = fn(&PoolLook) -> u64;
    let families: [(_, _, Value); 3] = [
        ("cuzk_memory_reserved_bytes", "Memory that is reserved, by pool.", |p| p.reserved),
        ("cuzk_memory_peak_bytes", "The most memory that was ever reserved, by pool.", |p| p.peak),
        ("cuzk_memory_capacity_bytes", "Memory that may be reserved, by pool.", |p| p.capacity),
    ];
    for (name, help, value) in families {
        text.family(name, Kind::Gauge, help);
        pools.iter().for_each(|pool| text.sample(&[("pool", &pool.name)], value(pool) as f64));
    }
}

fn devices(text: &mut Exposition, prover: &Look) {
    let named: Vec<_> = prover.devices.iter().map(|device| (device.index.to_string(), device)).collect();
    text.family("cuzk_backend_info", Kind::Gauge, "Always 1; the labels say which backend drives which device.");
    for (index, device) in &named {
        let labels = [
            ("device", index.as_str()),
            ("backend", &device.backend),
            ("name", &device.name),
            ("uuid", &device.uuid),
            ("driver", &device.driver),
        ];
        text.sample(&labels, 1.0);
    }
    text.family("cuzk_device_healthy", Kind::Gauge, "1 if the device is given work, else 0.");
    named.iter().for_each(|(i, d)| text.sample(&[("device", i)], f64::from(u8::from(d.health == "healthy"))));
    let help = "How much of the time since the start the device computed, from 0 to 1.";
    text.family("cuzk_device_busy_ratio", Kind::Gauge, help);
    named.iter().for_each(|(i, d)| text.sample(&[("device", i)], d.busy));
    text.family("cuzk_device_computing", Kind::Gauge, "1 if the device computes, else 0.");
    named.iter().for_each(|(i, d)| text.sample(&[("device", i)], f64::from(u8::from(d.job.is_some()))));
    text.family("cuzk_device_memory_bytes", Kind::Gauge, "Memory of the device.");
    named.iter().for_each(|(i, d)| text.sample(&[("device", i)], d.memory_bytes as f64));
    let help = "Memory of the device that its driver reports free.";
    text.family("cuzk_device_memory_free_bytes", Kind::Gauge, help);
    named.iter().for_each(|(i, d)| text.sample(&[("device", i)], d.memory_free_bytes as f64));
}

fn keys(text: &mut Exposition, prover: &Look) {
    text.family("cuzk_keys_resident", Kind::Gauge, "Keys that take memory: hot on a device, warm in the host's.");
    for tier in [Tier::Hot, Tier::Warm] {
        let count = prover.keys.iter().filter(|key| key.tier == tier).count();
        text.sample(&[("tier", tier_name(tier))], count as f64);
    }
    // A key that is on several devices has one sample.
    let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for key in &prover.keys {
        let (bytes, users) = sums.entry((key.circuit.as_str(), tier_name(key.tier))).or_default();
        *bytes = bytes.saturating_add(key.bytes);
        *users += u64::from(key.users);
    }
    text.family("cuzk_key_bytes", Kind::Gauge, "Memory that a key takes of all pools.");
    let labels = |(circuit, tier)| [("circuit", circuit), ("tier", tier)];
    sums.iter().for_each(|(key, (bytes, _))| text.sample(&labels(*key), *bytes as f64));
    text.family("cuzk_key_users", Kind::Gauge, "Partitions that use a key.");
    sums.iter().for_each(|(key, (_, users))| text.sample(&labels(*key), *users as f64));
}

fn journal(text: &mut Exposition, usage: &cuzk_journal::Usage) {
    text.family("cuzk_journal_bytes", Kind::Gauge, "Bytes of the journal on disk.");
    text.sample(&[("part", "database")], usage.database_bytes as f64);
    text.sample(&[("part", "requests")], usage.request_bytes as f64);
    let help = "Bytes of the journal above which no new job is taken.";
    text.single("cuzk_journal_limit_bytes", Kind::Gauge, help, usage.max_bytes as f64);
    text.family("cuzk_journal_jobs", Kind::Gauge, "Jobs in the journal.");
    text.sample(&[("state", "unfinished")], usage.unfinished as f64);
    text.sample(&[("state", "ended")], usage.ended as f64);
    let commits = usage.commits as f64;
    text.single("cuzk_journal_commits_total", Kind::Counter, "Times that the journal was made durable.", commits);
    let help = "New jobs that were refused for want of room.";
    text.single("cuzk_journal_refused_total", Kind::Counter, help, usage.refused as f64);
}
