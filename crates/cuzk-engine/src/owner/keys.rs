//! Keys: loaded and evicted as the scheduler says.
//!
//! A circuit's matrices are its copy in the host's memory; devices get theirs from there. Streamed sections lie in
//! each device's pinned memory and come and go with the key on that device: loading a key to the pinned pool moves
//! nothing, and it leaves that pool when the last device has let go of it.

use std::{collections::BTreeMap, sync::Arc};

use cuzk_curve::Curve;
use cuzk_r1cs::{Assignment, R1cs};
use cuzk_scheduler::{CircuitId, DeviceId, Event, Pool};
use cuzk_timeline::Outcome as End;

use super::Owner;
use crate::{
    calls::{Call, Lane, Purpose},
    device,
    message::{KeyFault, Outcome},
    plan::Plan,
    workload::CircuitSource,
};

/// A circuit that is registered.
pub(super) struct CircuitState<C: Curve> {
    pub(super) source: Arc<dyn CircuitSource<C>>,
    pub(super) plan: Plan,
    pub(super) matrices: Option<Arc<R1cs<C::Fr>>>,
    matrices_are_loading: bool,
    /// The matrices leave as soon as no device is being loaded from them.
    matrices_are_leaving: bool,
    /// The key leaves the pinned pool as soon as no device has it.
    pinned_is_leaving: bool,
    /// Proved witnesses that are kept for their memory.
    pub(super) spare: Vec<Assignment<C::Fr>>,
}

impl<C: Curve> CircuitState<C> {
    pub(super) fn new(source: Arc<dyn CircuitSource<C>>, plan: Plan) -> Self {
        Self {
            source,
            plan,
            matrices: None,
            matrices_are_loading: false,
            matrices_are_leaving: false,
            pinned_is_leaving: false,
            spare: Vec::new(),
        }
    }
}

impl<C: Curve> Owner<C> {
    pub(super) fn load_key(&mut self, circuit: CircuitId, pool: Pool) {
        let Some(state) = self.circuits.get_mut(&circuit).filter(|_| !self.over) else {
            let cause = "the engine shuts down".to_owned();
            return self.due.push_back(Event::KeyLoadFailed { circuit, pool, cause });
        };
        match pool {
            Pool::Pinned => self.due.push_back(Event::KeyLoaded { circuit, pool }),
            Pool::Host => {
                state.matrices_are_loading = true;
                let source = Arc::clone(&state.source);
                self.call(Lane::Runtime, None, Purpose::LoadMatrices(circuit), move || {
                    Outcome::Matrices(source.r1cs().map_err(|e| e.to_string()))
                });
            }
            Pool::Device(id) if state.matrices_are_loading => {
                if let Some(device) = self.device_mut(id) {
                    device.waiting.push(circuit);
                }
            }
            Pool::Device(id) => self.load_device_key(circuit, id),
        }
    }

    fn load_device_key(&mut self, circuit: CircuitId, id: DeviceId) {
        let pool = Pool::Device(id);
        let opened = self.device(id).and_then(|d| d.device.clone());
        let state = self.circuits.get(&circuit);
        let parts = state.and_then(|s| Some((Arc::clone(&s.source), s.plan.request.clone(), s.matrices.clone()?)));
        let (Some(device), Some((source, request, matrices))) = (opened, parts) else {
            let cause = "the device is not open, or the matrices are not in memory".to_owned();
            return self.due.push_back(Event::KeyLoadFailed { circuit, pool, cause });
        };
        self.call_with_progress(Lane::Preparing(id), Some(id), Purpose::LoadKey(circuit), move |call| {
            let key = device::load_key(&device, &matrices, &*source, (&request, id), &|| call.sign_of_life());
            drop(matrices);
            Outcome::Key(key)
        });
    }

    pub(super) fn matrices_loaded(&mut self, circuit: CircuitId, outcome: Outcome<C>) {
        let result = match outcome {
            Outcome::Matrices(result) => result,
            Outcome::Panicked(text) => Err(format!("loading the matrices panicked: {text}")),
            _ => Err("nothing was loaded".to_owned()),
        };
        let Some(state) = self.circuits.get_mut(&circuit) else { return };
        state.matrices_are_loading = false;
        let waiting: Vec<_> = self.devices.iter_mut().filter_map(|d| d.take_waiting(circuit)).collect();
        match result {
            Ok(matrices) => {
                state.matrices = Some(matrices);
                self.due.push_back(Event::KeyLoaded { circuit, pool: Pool::Host });
                waiting.into_iter().for_each(|device| self.load_device_key(circuit, device));
            }
            Err(cause) => {
                tracing::error!("the matrices of {} cannot be loaded: {cause}", self.circuit_name(circuit));
                let pools = waiting.into_iter().map(Pool::Device).chain([Pool::Host]);
                let failed = |pool| Event::KeyLoadFailed { circuit, pool, cause: cause.clone() };
                self.due.extend(pools.map(failed));
            }
        }
    }

    pub(super) fn key_loaded(&mut self, call: &Call, circuit: CircuitId, outcome: Outcome<C>) {
        let Some(id) = call.device else { return };
        let (pool, since) = (Pool::Device(id), self.since_epoch(call.began()));
        // A device that was fenced meanwhile has lost it.
        if self.device(id).is_none_or(|d| d.generation != call.generation) {
            self.free(Some(id), outcome);
            return self.let_go(circuit);
        }
        let result = match outcome {
            Outcome::Key(result) => result,
            Outcome::Panicked(text) => {
                Err(KeyFault { cause: format!("loading the key panicked: {text}"), device: true })
            }
            _ => Err(KeyFault { cause: "nothing was loaded".to_owned(), device: false }),
        };
        self.key_span(circuit, id, since, if result.is_ok() { End::Ok } else { End::Failed });
        match result {
            Ok(key) => {
                if let Some(device) = self.device_mut(id) {
                    device.keys.insert(circuit, key);
                }
                self.due.push_back(Event::KeyLoaded { circuit, pool });
            }
            Err(KeyFault { cause, device }) => {
                tracing::error!("the key of {} cannot be loaded to {id}: {cause}", self.circuit_name(circuit));
                self.due.push_back(match device {
                    true => Event::DeviceLost { device: id, cause },
                    false => Event::KeyLoadFailed { circuit, pool, cause },
                });
            }
        }
        self.let_go(circuit);
    }

    pub(super) fn evict_key(&mut self, circuit: CircuitId, pool: Pool) {
        match pool {
            Pool::Device(id) => {
                let key = self.device_mut(id).and_then(|d| d.keys.remove(&circuit));
                self.call(Lane::Preparing(id), Some(id), Purpose::EvictKey(circuit, pool), move || {
                    drop(key);
                    Outcome::Nothing
                });
            }
            Pool::Pinned => {
                if let Some(state) = self.circuits.get_mut(&circuit) {
                    state.pinned_is_leaving = true;
                }
                self.let_go(circuit);
            }
            Pool::Host => {
                if let Some(state) = self.circuits.get_mut(&circuit) {
                    state.matrices_are_leaving = true;
                }
                self.let_go(circuit);
            }
        }
    }

    /// Lets matrices and streamed sections go that are to leave, once nobody uses them.
    fn let_go(&mut self, circuit: CircuitId) {
        let loading = self.calls.is_under_way(|c| c.purpose == Purpose::LoadKey(circuit));
        let on_devices = self.devices.iter().any(|d| d.keys.contains_key(&circuit))
            || self
                .calls
                .is_under_way(|c| matches!(c.purpose, Purpose::EvictKey(of, Pool::Device(_)) if of == circuit));
        let Some(state) = self.circuits.get_mut(&circuit) else { return };
        if state.pinned_is_leaving {
            if loading || on_devices {
                self.due.push_back(Event::EvictRequested { circuit });
            } else {
                state.pinned_is_leaving = false;
                self.due.push_back(Event::KeyEvicted { circuit, pool: Pool::Pinned });
            }
        }
        if state.matrices_are_leaving && !loading {
            state.matrices_are_leaving = false;
            let freed = (state.matrices.take(), std::mem::take(&mut state.spare));
            self.call(Lane::Runtime, None, Purpose::EvictKey(circuit, Pool::Host), move || {
                drop(freed);
                Outcome::Nothing
            });
        }
    }

    pub(super) fn key_evicted(&mut self, circuit: CircuitId, pool: Pool) {
        self.due.push_back(Event::KeyEvicted { circuit, pool });
        self.let_go(circuit);
    }

    /// Everything that is loaded is freed: the engine stops.
    pub(super) fn drop_all_keys(&mut self) {
        for index in 0..self.devices.len() {
            let keys = std::mem::take(&mut self.devices[index].keys);
            let id = self.devices[index].id;
            if !keys.is_empty() {
                self.call(Lane::Preparing(id), Some(id), Purpose::Free, move || {
                    BTreeMap::clear(&mut { keys });
                    Outcome::Nothing
                });
            }
        }
    }
}
