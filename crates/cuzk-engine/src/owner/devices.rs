//! Devices: the watchdog, fences and self-tests.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, PoisonError},
    time::Duration,
};

use cuzk_backend::Device;
use cuzk_curve::Curve;
use cuzk_scheduler::{CircuitId, DeviceId, Event, Fault, Time};

use super::Owner;
use crate::{
    DeviceSpec,
    calls::{Call, Lane, Purpose},
    device::LoadedKey,
    message::Outcome,
    pool::Pool,
};

/// A device in use.
pub(crate) struct DeviceState<C: Curve> {
    pub(super) id: DeviceId,
    spec: DeviceSpec,
    /// `None` from a fence until a self-test has passed.
    pub(super) device: Option<Device>,
    /// How often it has been fenced.
    pub(super) generation: u64,
    /// Threads beside the kernels: loading, preparing, freeing, self-tests.
    pub(super) preparing: Pool,
    /// The thread under whose hands the kernels run: one, so that is the compute lock.
    pub(super) computing: Pool,
    pub(super) keys: BTreeMap<CircuitId, Arc<LoadedKey<C>>>,
    /// Keys to be loaded when their matrices are there.
    pub(super) waiting: Vec<CircuitId>,
    /// How long its kernels' thread has worked.
    pub(super) busy: Duration,
    /// Proofs from here that were verified.
    pub(super) proofs: u64,
    /// Attempts that failed here.
    pub(super) failures: u64,
    /// Since when a self-test has been wanted that has not begun, because calls are still under way.
    test_wanted: Option<Time>,
}

impl<C: Curve> DeviceState<C> {
    /// Starts its threads.
    pub(crate) fn new(id: DeviceId, spec: DeviceSpec, device: Device, preparing: usize) -> io::Result<Self> {
        let index = id.0;
        Ok(Self {
            id,
            spec,
            device: Some(device),
            generation: 0,
            preparing: Pool::new(&format!("cuzk-prep-{index}"), preparing, 0)?,
            computing: Pool::new(&format!("cuzk-device-{index}"), 1, 0)?,
            keys: BTreeMap::new(),
            waiting: Vec::new(),
            busy: Duration::ZERO,
            proofs: 0,
            failures: 0,
            test_wanted: None,
        })
    }

    /// Whether a circuit's key waited for its matrices; it does not any more.
    pub(super) fn take_waiting(&mut self, circuit: CircuitId) -> Option<DeviceId> {
        let before = self.waiting.len();
        self.waiting.retain(|c| *c != circuit);
        (self.waiting.len() < before).then_some(self.id)
    }
}

impl<C: Curve> Owner<C> {
    pub(super) fn device(&self, id: DeviceId) -> Option<&DeviceState<C>> {
        self.devices.get(usize::from(id.0))
    }

    pub(super) fn device_mut(&mut self, id: DeviceId) -> Option<&mut DeviceState<C>> {
        self.devices.get_mut(usize::from(id.0))
    }

    /// Gives up devices that do not answer. What hangs there goes on in its thread, which another one replaces; what
    /// comes of it is dropped.
    pub(super) fn watchdog(&mut self) {
        let patience = self.config.watchdog;
        for (id, lane, device, purpose) in self.calls.write_off(patience) {
            let Some(device) = device else { continue };
            let cause = format!("{} has not returned for {} s", purpose.name(), patience.as_secs_f64());
            tracing::error!("{device}: {cause}");
            if let Some(Err(error)) = self.pool(lane).map(Pool::replace_thread) {
                tracing::error!("no thread in place of the one that hangs: {error}");
            }
            let waiting = purpose.ticket().and_then(|t| {
                let partition = self.partition(t.partition).filter(|p| p.call == Some(id))?;
                partition.call = None;
                Some((t, partition.aborting))
            });
            match (purpose, waiting) {
                (Purpose::SelfTest, _) => self.due.push_back(Event::DeviceSelfTest { device, passed: false }),
                // The scheduler has its kernels behind it: this one must be said to have failed.
                (Purpose::Finish(_), Some((ticket, false))) => self.failed(ticket, Fault::Device { cause }),
                (_, waiting) => {
                    if let Some((ticket, _)) = waiting {
                        self.note_failure(ticket, &Fault::Device { cause: cause.clone() });
                    }
                    self.due.push_back(Event::DeviceLost { device, cause });
                    // The thread that hangs only reads the witness, which is its own then.
                    let stopped = waiting.filter(|(_, aborting)| *aborting);
                    self.due.extend(stopped.map(|(ticket, _)| Event::Stopped { ticket }));
                }
            }
        }
        self.settle();
    }

    /// Freeing something may go wrong in the device's code, too.
    pub(super) fn device_may_have_panicked(&mut self, call: &Call, outcome: &Outcome<C>) {
        if let (Outcome::Panicked(text), Some(device)) = (outcome, call.device) {
            let cause = format!("{} panicked: {text}", call.purpose.name());
            self.due.push_back(Event::DeviceLost { device, cause });
        }
    }

    /// For those who plan.
    fn set_in_use(&self, id: DeviceId, device: Option<Device>) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = in_use.get_mut(usize::from(id.0)) {
            *place = device;
        }
    }

    /// Takes everything off a device, and wants a self-test.
    pub(super) fn fence(&mut self, id: DeviceId) {
        let now = self.now();
        tracing::warn!("{id} is fenced until it passes a self-test");
        let Some(device) = self.device_mut(id) else { return };
        device.generation += 1;
        device.waiting.clear();
        device.test_wanted = Some(now);
        let gone = (std::mem::take(&mut device.keys), device.device.take());
        self.set_in_use(id, None);
        self.call(Lane::Preparing(id), Some(id), Purpose::Free, move || {
            drop(gone);
            Outcome::Nothing
        });
    }

    /// Begins the self-tests that are wanted, where nothing is under way any more. One that has to wait for calls
    /// that hang has failed when it has waited as long as the watchdog does.
    pub(super) fn self_tests(&mut self) {
        let now = self.now();
        for index in 0..self.devices.len() {
            let DeviceState { id, test_wanted: Some(since), .. } = self.devices[index] else { continue };
            let spec = self.devices[index].spec.clone();
            let hanging = if spec.reopens() { 0 } else { self.calls.hanging(id) };
            if hanging > 0 && now.saturating_sub(since) >= self.config.watchdog {
                tracing::error!("{id} is not tested: {hanging} calls hang there");
                self.devices[index].test_wanted = None;
                self.due.push_back(Event::DeviceSelfTest { device: id, passed: false });
            } else if hanging == 0 && !self.calls.any_at_work(id) {
                self.devices[index].test_wanted = None;
                self.call(Lane::Preparing(id), Some(id), Purpose::SelfTest, move || {
                    Outcome::Tested(spec.open_and_test::<C>().map_err(|e| e.to_string()))
                });
            }
        }
    }

    /// How long until a self-test that waits for calls that hang has failed. Those that wait for others begin when
    /// these return.
    pub(super) fn next_self_test(&self) -> Option<Duration> {
        let held_up = self.devices.iter().filter(|d| !d.spec.reopens() && self.calls.hanging(d.id) > 0);
        let since = held_up.filter_map(|d| d.test_wanted).min()?;
        Some(since.saturating_add(self.config.watchdog).saturating_sub(self.now()))
    }

    pub(super) fn self_tested(&mut self, call: &Call, outcome: Outcome<C>) {
        let Some(id) = call.device else { return };
        let result = match outcome {
            Outcome::Tested(result) => result,
            Outcome::Panicked(text) => Err(format!("the self-test panicked: {text}")),
            _ => Err("the self-test did not run".to_owned()),
        };
        let passed = match result {
            Ok(device) => {
                tracing::info!("{id} has passed its self-test");
                self.set_in_use(id, Some(device.clone()));
                if let Some(state) = self.device_mut(id) {
                    state.device = Some(device);
                }
                true
            }
            Err(cause) => {
                tracing::error!("{id} has failed its self-test: {cause}");
                false
            }
        };
        self.due.push_back(Event::DeviceSelfTest { device: id, passed });
    }
}
