//! Requests for keys that somebody waits for the end of, and questions.

use std::collections::{BTreeMap, BTreeSet};

use cuzk_curve::Curve;
use cuzk_scheduler::{CircuitId, Event, EventError, JobId, KeyStatus, OutOfMemory, Pool, Time};

use super::{DeviceState, Owner};
use crate::{
    answer::Completer,
    calls::{Lane, Purpose},
    keys::{EvictOutcome, Evicted, KeyRequestError, PreloadOutcome, Preloaded},
    status::{CircuitStatus, DeviceStatus, JobStatus, Status},
};

/// Somebody waits for a key.
pub(super) struct Preload {
    circuit: CircuitId,
    since: Time,
    /// Where it was before.
    before: BTreeSet<Pool>,
    /// Where it has been since.
    loaded: BTreeSet<Pool>,
    refused: BTreeMap<Pool, OutOfMemory>,
    completer: Completer<Result<Preloaded, KeyRequestError>>,
}

/// Somebody waits for a key to be gone.
pub(super) struct Evict {
    circuit: CircuitId,
    /// Where it has not gone yet.
    leaving: BTreeSet<Pool>,
    answer: Evicted,
    completer: Completer<Result<Evicted, KeyRequestError>>,
}

/// All who wait for keys.
#[derive(Default)]
pub(super) struct Requests {
    preloads: Vec<Preload>,
    evictions: Vec<Evict>,
}

impl Requests {
    /// A key does not fit where it was to be loaded in advance.
    pub(super) fn refused(&mut self, circuit: CircuitId, cause: &OutOfMemory) {
        for preload in self.preloads.iter_mut().filter(|p| p.circuit == circuit) {
            preload.refused.insert(cause.pool, cause.clone());
        }
    }

    /// A key has left.
    pub(super) fn evicted(&mut self, circuit: CircuitId, pool: Pool) {
        for eviction in self.evictions.iter_mut().filter(|e| e.circuit == circuit) {
            eviction.leaving.remove(&pool);
        }
    }
}

impl<C: Curve> Owner<C> {
    fn keys_of(&self, circuit: CircuitId) -> Vec<KeyStatus> {
        self.scheduler.keys().filter(|k| k.circuit == circuit).collect()
    }

    pub(super) fn preload(&mut self, circuit: CircuitId, completer: Completer<Result<Preloaded, KeyRequestError>>) {
        let here = self.keys_of(circuit).into_iter().filter(|k| k.loaded).map(|k| k.pool);
        let (before, since) = (here.collect(), self.now());
        let (loaded, refused) = Default::default();
        self.requests.preloads.push(Preload { circuit, since, before, loaded, refused, completer });
        if let Err(error) = self.apply(Event::PreloadRequested { circuit }) {
            tracing::debug!("{error}");
            if let Some(Preload { completer, .. }) = self.requests.preloads.pop() {
                self.answer(completer, Err(unknown(circuit, &error)));
            }
        }
        self.answer_requests();
    }

    pub(super) fn evict(&mut self, circuit: CircuitId, completer: Completer<Result<Evicted, KeyRequestError>>) {
        let before = self.keys_of(circuit);
        if let Err(error) = self.apply(Event::EvictRequested { circuit }) {
            tracing::debug!("{error}");
            return self.answer(completer, Err(unknown(circuit, &error)));
        }
        let outcome = |key: &KeyStatus| match (key.loaded, key.users) {
            (true, 0) => EvictOutcome::Freed,
            (true, users) => EvictOutcome::InUse { users },
            (false, _) if key.leaving => EvictOutcome::Freed,
            (false, _) => EvictOutcome::Loading,
        };
        let pools: Vec<_> = before.iter().map(|key| (key.pool, key.bytes, outcome(key))).collect();
        let freed = pools.iter().filter(|(.., o)| *o == EvictOutcome::Freed);
        let leaving = freed.map(|(pool, ..)| *pool).collect();
        self.requests.evictions.push(Evict { circuit, leaving, answer: Evicted { pools }, completer });
        self.answer_requests();
    }

    /// Answers those whose request is done.
    pub(super) fn answer_requests(&mut self) {
        let Requests { mut preloads, mut evictions } = std::mem::take(&mut self.requests);
        for done in evictions.extract_if(.., |e| e.leaving.is_empty()) {
            self.answer(done.completer, Ok(done.answer));
        }
        for preload in &mut preloads {
            preload.loaded.extend(self.keys_of(preload.circuit).into_iter().filter(|k| k.loaded).map(|k| k.pool));
        }
        let under_way = |p: &mut Preload| {
            self.scheduler.is_preloading(p.circuit) || self.keys_of(p.circuit).iter().any(|k| !k.loaded)
        };
        for done in preloads.extract_if(.., |p| !under_way(p)).collect::<Vec<_>>() {
            let outcome = |pool| match done.refused.get(&pool) {
                _ if done.before.contains(&pool) => PreloadOutcome::AlreadyThere,
                _ if done.loaded.contains(&pool) => PreloadOutcome::Loaded,
                Some(refused) => PreloadOutcome::Refused(refused.clone()),
                None => PreloadOutcome::Absent,
            };
            let pools = self.scheduler.key_pools(done.circuit);
            let pools = pools.into_iter().map(|(pool, bytes)| (pool, bytes, outcome(pool))).collect();
            let took = self.now().saturating_sub(done.since);
            self.answer(done.completer, Ok(Preloaded { pools, took }));
        }
        self.requests.preloads.append(&mut preloads);
        self.requests.evictions.append(&mut evictions);
    }

    /// Gives an answer, and calls back whoever wants that.
    pub(super) fn answer<T: Clone + Send + 'static>(&mut self, completer: Completer<T>, value: T) {
        let callbacks = completer.complete(value.clone());
        if !callbacks.is_empty() {
            self.call(Lane::Callback, None, Purpose::Errand, move || {
                callbacks.into_iter().for_each(|callback| callback(value.clone()));
                crate::message::Outcome::Nothing
            });
        }
    }

    pub(super) fn status(&self) -> Status {
        let scheduler = &self.scheduler;
        let circuits = self.circuits.iter().filter_map(|(id, state)| {
            Some(CircuitStatus { id: *id, name: state.plan.profile.name.clone(), tier: scheduler.key_tier(*id)? })
        });
        Status {
            at: self.now(),
            counts: scheduler.counts(),
            totals: self.totals,
            memory: scheduler.budget().pools().collect(),
            circuits: circuits.collect(),
            keys: scheduler.keys().collect(),
            devices: self.devices.iter().filter_map(|d| self.device_status(d)).collect(),
            workers: scheduler.choice().to_string(),
            audit: scheduler.audit(),
        }
    }

    fn device_status(&self, device: &DeviceState<C>) -> Option<DeviceStatus> {
        let id = device.id;
        let record = self.records.get(usize::from(id.0))?;
        let (current, since) = self.calls.computing(id).unzip();
        Some(DeviceStatus {
            id,
            name: record.name.clone(),
            uuid: record.uuid.clone(),
            health: self.scheduler.health(id)?,
            idle: self.scheduler.idle_reason(id),
            busy: device.busy + since.map_or_else(Default::default, |since| since.elapsed()),
            current,
            proofs: device.proofs,
            failures: device.failures,
        })
    }

    pub(super) fn job_status(&self, job: JobId) -> Option<JobStatus> {
        let stages = self.scheduler.stages(job)?;
        let reason = |index| self.scheduler.waiting_reason(cuzk_scheduler::PartitionId { job, index });
        Some(JobStatus {
            circuit: self.jobs.get(&job)?.circuit,
            position: self.scheduler.queue_position(job)?,
            partitions: (0..).zip(stages).map(|(index, stage)| (stage, reason(index))).collect(),
        })
    }
}

/// The only thing that can be wrong with a request for a key.
fn unknown(circuit: CircuitId, error: &EventError) -> KeyRequestError {
    debug_assert!(matches!(error, EventError::UnknownCircuit { .. }), "{error}");
    KeyRequestError::UnknownCircuit { circuit }
}
