//! The verbs that ask one thing: `status`, `metrics`, `preload`, `evict`.

use cuzk_proto::v1::GetStatusResponse;
use serde_json::{Value, json};

use crate::{args::Global, connect, failure::Failure, observe::bytes, output};

/// The verb `status`.
pub(crate) async fn status(global: &Global) -> Result<(), Failure> {
    let status = connect(global).await?.status().await?;
    output::print(global.json, || status_json(&status), || status_text(&status))
}

/// The verb `metrics`.
pub(crate) async fn metrics(global: &Global) -> Result<(), Failure> {
    let text = connect(global).await?.metrics().await?;
    output::print(global.json, || json!({ "prometheus_text": text }), || text.trim_end().to_owned())
}

/// The verb `preload`.
pub(crate) async fn preload(global: &Global, circuit: &str) -> Result<(), Failure> {
    let loaded = connect(global).await?.preload(circuit, None).await?;
    let (was_there, ms) = (loaded.already_loaded, loaded.load_time_ms);
    output::print(
        global.json,
        || json!({ "circuit": circuit, "already_loaded": was_there, "load_time_ms": ms }),
        || if was_there { format!("{circuit} was loaded already") } else { format!("{circuit} loaded in {ms} ms") },
    )
}

/// The verb `evict`.
pub(crate) async fn evict(global: &Global, circuit: &str) -> Result<(), Failure> {
    let evicted = connect(global).await?.evict(circuit).await?;
    output::print(
        global.json,
        || json!({ "circuit": circuit, "was_loaded": evicted.was_loaded, "freed_bytes": evicted.freed_bytes }),
        || {
            if evicted.was_loaded {
                format!("{circuit} evicted, {} freed", bytes(evicted.freed_bytes))
            } else {
                format!("{circuit} was not loaded")
            }
        },
    )
}

fn status_json(status: &GetStatusResponse) -> Value {
    let tier = |key: &cuzk_proto::v1::SrsStatus| key.tier().as_str_name().to_lowercase();
    json!({
        "version": status.version,
        "state": status.state,
        "uptime_s": status.uptime_seconds,
        "completed": status.total_proofs_completed,
        "failed": status.total_proofs_failed,
        "cancelled": status.total_proofs_cancelled,
        "pinned_bytes": status.pinned_memory_bytes,
        "pinned_limit_bytes": status.pinned_memory_limit_bytes,
        "devices": status.gpus.iter().map(|gpu| json!({
            "ordinal": gpu.ordinal, "backend": gpu.backend, "name": gpu.name, "uuid": gpu.uuid, "driver": gpu.driver,
            "health": gpu.health, "memory_bytes": gpu.vram_total_bytes, "memory_free_bytes": gpu.vram_free_bytes,
            "job": gpu.current_job_id, "proof_kind": gpu.current_proof_kind, "idle_reason": gpu.idle_reason,
        })).collect::<Vec<_>>(),
        "keys": status.loaded_srs.iter().map(|key| json!({
            "circuit": key.circuit_id, "tier": tier(key), "bytes": key.size_bytes, "users": key.ref_count,
            "digest": key.key_digest,
        })).collect::<Vec<_>>(),
        "queues": status.queues.iter().map(|queue| json!({
            "proof_kind": queue.proof_kind, "pending": queue.pending, "in_progress": queue.in_progress,
        })).collect::<Vec<_>>(),
        "memory": status.memory.iter().map(|pool| json!({
            "pool": pool.pool, "reserved_bytes": pool.reserved_bytes, "peak_bytes": pool.peak_bytes,
            "capacity_bytes": pool.capacity_bytes,
        })).collect::<Vec<_>>(),
    })
}

fn status_text(status: &GetStatusResponse) -> String {
    let mut lines = vec![format!(
        "daemon  {} {}, up {} s: {} completed, {} failed, {} cancelled",
        status.version,
        status.state,
        status.uptime_seconds,
        status.total_proofs_completed,
        status.total_proofs_failed,
        status.total_proofs_cancelled
    )];
    for gpu in &status.gpus {
        let doing = match (&gpu.current_job_id, &gpu.idle_reason) {
            (job, _) if !job.is_empty() => format!("computes {job} ({})", gpu.current_proof_kind),
            (_, reason) if !reason.is_empty() => format!("idle: {reason}"),
            _ => "idle".to_owned(),
        };
        lines.push(format!(
            "device  {} {}: {}, {}, {} of {} free, {doing}",
            gpu.ordinal,
            gpu.backend,
            gpu.name,
            gpu.health,
            bytes(gpu.vram_free_bytes),
            bytes(gpu.vram_total_bytes)
        ));
    }
    for key in &status.loaded_srs {
        let tier = key.tier().as_str_name().to_lowercase();
        lines.push(format!("key     {} {tier}, {}, {} users", key.circuit_id, bytes(key.size_bytes), key.ref_count));
    }
    for queue in &status.queues {
        let (pending, in_progress) = (queue.pending, queue.in_progress);
        lines.push(format!("queue   {}: {pending} pending, {in_progress} in progress", queue.proof_kind));
    }
    for pool in &status.memory {
        lines.push(format!(
            "memory  {}: {} of {} reserved, at most {} so far",
            pool.pool,
            bytes(pool.reserved_bytes),
            bytes(pool.capacity_bytes),
            bytes(pool.peak_bytes)
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use cuzk_proto::v1::{GpuStatus, MemoryStatus, QueueStatus, SrsStatus, srs_status::Tier};

    use super::*;

    #[test]
    fn a_status_is_shown_whole() {
        let status = GetStatusResponse {
            version: "1.2".into(),
            state: "draining".into(),
            gpus: vec![
                GpuStatus { name: "H200".into(), current_job_id: "j7".into(), ..GpuStatus::default() },
                GpuStatus { ordinal: 1, idle_reason: "no job".into(), ..GpuStatus::default() },
            ],
            loaded_srs: vec![SrsStatus {
                circuit_id: "snap-2k".into(),
                tier: Tier::Warm.into(),
                ..SrsStatus::default()
            }],
            queues: vec![QueueStatus { proof_kind: "winning_post".into(), pending: 3, in_progress: 1 }],
            memory: vec![MemoryStatus { pool: "host".into(), peak_bytes: 1 << 30, ..MemoryStatus::default() }],
            ..GetStatusResponse::default()
        };
        let text = status_text(&status);
        for part in
            ["1.2 draining", "computes j7", "idle: no job", "snap-2k warm", "winning_post: 3 pending", "1.0 GiB"]
        {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        let json = status_json(&status);
        assert_eq!((json["keys"][0]["tier"].as_str(), json["queues"][0]["pending"].as_u64()), (Some("warm"), Some(3)));
    }
}
