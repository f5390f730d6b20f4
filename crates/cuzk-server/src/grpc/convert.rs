//! Our words in those of the wire.

use std::time::Duration;

use cuzk_proto::v1::{
    AwaitProofResponse, GetStatusResponse, GpuStatus, MemoryStatus, ProofKind, ProofSummary, QueueStatus, SrsStatus,
    await_proof_response::Status as WireStatus, proof_progress::State, srs_status::Tier as WireTier,
};

use crate::{
    http::About,
    jobs::{Ended, Ending, JobLook, JobState, JobsLook},
    prover::{Look, Tier},
};

/// Whole milliseconds.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A kind of proof as clients read it.
pub(super) fn kind_name(kind: ProofKind) -> String {
    kind.as_str_name().to_ascii_lowercase()
}

/// A job that has ended.
pub(super) fn ended(ended: Ended) -> AwaitProofResponse {
    let mut response = AwaitProofResponse {
        job_id: ended.job,
        queue_wait_ms: milliseconds(ended.queue),
        total_ms: milliseconds(ended.total),
        partitions: ended.partitions,
        circuit_id: ended.circuit,
        ..AwaitProofResponse::default()
    };
    match ended.ending {
        Ending::Completed { proof, device, times } => {
            response.set_status(WireStatus::Completed);
            response.proof = proof.into();
            response.verified = true;
            response.device = device;
            response.srs_load_ms = milliseconds(times.key);
            response.synthesis_ms = milliseconds(times.synthesis);
            response.gpu_compute_ms = milliseconds(times.device);
            response.finish_ms = milliseconds(times.finish);
        }
        Ending::Failed(cause) => {
            response.set_status(WireStatus::Failed);
            response.error_message = cause;
        }
        Ending::Cancelled => {
            response.set_status(WireStatus::Cancelled);
            response.error_message = "cancelled".to_owned();
        }
    }
    response
}

/// A job that goes on, though the time of the request is over.
pub(super) fn still_running(job: String) -> AwaitProofResponse {
    let mut response = AwaitProofResponse { job_id: job, ..AwaitProofResponse::default() };
    response.set_status(WireStatus::Timeout);
    response
}

/// The server at one moment; `kind_of` knows the kinds of the jobs on the devices.
pub(super) fn status(
    jobs: &JobsLook,
    prover: &Look,
    about: &About,
    kind_of: impl Fn(&str) -> Option<ProofKind>,
) -> GetStatusResponse {
    let gpus = prover.devices.iter().map(|device| {
        let job = device.job.clone().unwrap_or_default();
        GpuStatus {
            ordinal: device.index,
            name: device.name.clone(),
            vram_total_bytes: device.memory_bytes,
            vram_free_bytes: device.memory_free_bytes,
            current_proof_kind: kind_of(&job).map(kind_name).unwrap_or_default(),
            current_job_id: job,
            backend: device.backend.clone(),
            uuid: device.uuid.clone(),
            driver: device.driver.clone(),
            health: device.health.clone(),
            idle_reason: device.idle_reason.clone().unwrap_or_default(),
        }
    });
    let loaded = prover.keys.iter().map(|key| {
        let tier = match key.tier {
            Tier::Hot => WireTier::Hot,
            Tier::Warm => WireTier::Warm,
            Tier::Cold => WireTier::Cold,
        };
        SrsStatus {
            circuit_id: key.circuit.clone(),
            tier: tier.into(),
            size_bytes: key.bytes,
            ref_count: key.users,
            key_digest: key.digest.clone().unwrap_or_default(),
        }
    });
    let queues = jobs.kinds.iter().map(|kind| QueueStatus {
        proof_kind: kind_name(kind.kind),
        pending: kind.pending,
        in_progress: kind.in_progress,
    });
    let memory = prover.pools.iter().map(|pool| MemoryStatus {
        pool: pool.name.clone(),
        reserved_bytes: pool.reserved,
        peak_bytes: pool.peak,
        capacity_bytes: pool.capacity,
    });
    let pinned = prover.pools.iter().find(|pool| pool.name == "pinned");
    GetStatusResponse {
        gpus: gpus.collect(),
        loaded_srs: loaded.collect(),
        queues: queues.collect(),
        total_proofs_completed: jobs.completed(),
        total_proofs_failed: jobs.failed(),
        uptime_seconds: about.uptime().as_secs(),
        pinned_memory_bytes: pinned.map_or(0, |pool| pool.reserved),
        pinned_memory_limit_bytes: pinned.map_or(0, |pool| pool.capacity),
        total_proofs_cancelled: jobs.cancelled(),
        version: about.version.clone(),
        state: jobs.state.name().to_owned(),
        memory: memory.collect(),
    }
}

/// A job in a list.
pub(super) fn summary(job: JobLook) -> ProofSummary {
    let state = match job.state {
        JobState::Queued => State::Queued,
        JobState::Running => State::Running,
        JobState::Completed => State::Completed,
        JobState::Failed => State::Failed,
        JobState::Cancelled => State::Cancelled,
    };
    ProofSummary {
        job_id: job.job,
        request_id: job.request_id,
        circuit_id: job.circuit,
        priority: job.priority.into(),
        state: state.into(),
        accepted_at_ms: job.accepted_at_ms,
        ended_at_ms: job.ended_at_ms.unwrap_or(0),
        error_message: job.error,
    }
}
