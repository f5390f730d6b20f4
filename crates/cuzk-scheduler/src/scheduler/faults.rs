//! What goes wrong, and how work gets around it.
//!
//! A partition whose device is lost or whose attempt fails returns to the queue once, for any device; then it goes to a
//! device that has not failed it; then its job fails with the cause. A proof that does not verify goes to another
//! device at once. What ran out of memory is repeated with nothing beside it. A device that was lost, made a fault or
//! gave a wrong proof is fenced until it passes a self-test; its memory counts as empty from then on, because a
//! self-test begins by discarding all.

use super::Scheduler;
use crate::{
    Action, CircuitId, CircuitProfile, DeviceId, EventError, FailureCause, Fault, PartitionId, Pool, Stage, Time,
    device::Health,
    job::{Ending, Failure},
};

impl Scheduler {
    /// An attempt that was not told to stop has failed.
    pub(super) fn attempt_failed(&mut self, now: Time, id: PartitionId, fault: Fault, out: &mut Vec<Action>) {
        let Some(stage) = self.partition(id).map(|p| p.stage) else { return };
        let device = stage.device();
        let witness_intact = stage.device_slot().is_some();
        if let Some(rank) = self.rank(id) {
            self.synthesized.remove(&rank);
            self.queue.remove(&rank);
        }
        let final_fault = matches!(fault, Fault::Synthesis { .. });
        let fence = matches!(fault, Fault::Device { .. } | Fault::WrongProof { .. });
        let hopeless = self.charge(id, device, fault);
        if witness_intact {
            self.return_to_queue(now, id);
        } else {
            self.give_back_all(now, id, Stage::Pending);
        }
        self.next_attempt(id);
        if final_fault || hopeless {
            self.give_up(now, id, out);
        }
        if let Some(device) = device.filter(|_| fence) {
            self.fence(now, device, out);
        }
    }

    /// Takes note of a failure; says whether it was one too many.
    fn charge(&mut self, id: PartitionId, device: Option<DeviceId>, fault: Fault) -> bool {
        self.recheck = true;
        if device.is_none() && matches!(fault, Fault::OutOfMemory(_)) {
            self.alone_on_host.insert(id);
        }
        let Some(p) = self.partition_mut(id) else { return false };
        p.failed(device, fault);
        p.is_hopeless()
    }

    /// Why a partition fails its job: the last of its failures.
    fn last_failure(&self, id: PartitionId) -> Option<FailureCause> {
        let p = self.partition(id)?;
        let Failure { device, fault } = p.failures.last()?;
        let (device, fault) = (*device, fault.clone());
        Some(FailureCause::Partition { partition: id, device, failures: p.failures.len(), fault })
    }

    /// Fails the job of a partition for the last of its failures.
    fn give_up(&mut self, now: Time, id: PartitionId, out: &mut Vec<Action>) {
        if let Some(cause) = self.last_failure(id) {
            self.end_job(now, id.job, Ending::Failed(cause), out);
        }
    }

    /// A partition with an intact witness leaves its device for the queue, where it takes no place: it was in flight
    /// already.
    fn return_to_queue(&mut self, now: Time, id: PartitionId) {
        self.leave_slot(id);
        self.release_device_key(now, id);
        let Some(rank) = self.rank(id) else { return };
        if let Some(p) = self.partition_mut(id) {
            (p.stage, p.device) = (Stage::Queued, None);
        }
        self.queue.insert(rank, id);
    }

    fn next_attempt(&mut self, id: PartitionId) {
        if let Some(p) = self.partition_mut(id) {
            p.attempt += 1;
        }
    }

    /// A device that does not answer any more.
    pub(super) fn device_lost(&mut self, now: Time, device: DeviceId, cause: String, out: &mut Vec<Action>) {
        let Some(state) = self.devices.get(usize::from(device.0)).filter(|d| d.is_healthy()) else { return };
        let working: Vec<_> = state.assigned.values().copied().collect();
        for id in working {
            let at_work = self.partition(id).is_some_and(|p| !p.aborting && p.stage != Stage::AwaitingKey(device));
            if at_work && self.charge(id, Some(device), Fault::Device { cause: cause.clone() }) {
                // Its threads may still read the witness: it is told to stop, and the job ends when it has.
                self.detach(now, id, device, out);
                self.give_up(now, id, out);
            }
        }
        self.fence(now, device, out);
    }

    /// Takes a partition off a device that is given up.
    fn detach(&mut self, now: Time, id: PartitionId, device: DeviceId, out: &mut Vec<Action>) {
        let Some((stage, aborting)) = self.partition(id).map(|p| (p.stage, p.aborting)) else { return };
        if aborting {
            self.leave_slot(id);
            self.release_device_key(now, id);
            if let Some(p) = self.partition_mut(id) {
                (p.stage, p.device) = (Stage::Stopping, None);
            }
            return;
        }
        let ticket = self.ticket(id);
        self.return_to_queue(now, id);
        // The engine has not heard of an assignment that waits for a key: that attempt goes on.
        if stage != Stage::AwaitingKey(device) {
            self.next_attempt(id);
            out.extend(ticket.map(|ticket| Action::Abandon { ticket, device }));
        }
    }

    /// Takes everything off a device and asks for its self-test.
    fn fence(&mut self, now: Time, device: DeviceId, out: &mut Vec<Action>) {
        let Some(state) = self.devices.get(usize::from(device.0)).filter(|d| d.is_healthy()) else { return };
        for id in state.assigned.values().copied().collect::<Vec<_>>() {
            self.detach(now, id, device, out);
        }
        let finishing = self.jobs.values_mut().flat_map(|j| &mut j.partitions);
        for p in finishing.filter(|p| p.stage == Stage::Finishing(device)) {
            p.device = None;
        }
        self.residency.wipe(Pool::Device(device));
        self.recheck = true;
        if let Some(state) = self.device_mut(device) {
            state.health = Health::Quarantined { since: now, failed_tests: 0, next_test: None };
            state.blocked = None;
            state.last_critical = false;
        }
        out.push(Action::RunSelfTest { device });
    }

    pub(super) fn self_tested(
        &mut self,
        now: Time,
        device: DeviceId,
        passed: bool,
        out: &mut Vec<Action>,
    ) -> Result<(), EventError> {
        let Health::Quarantined { since, failed_tests, next_test: None } = self.known_device(device)?.health else {
            return Err(EventError::UnexpectedSelfTest { device });
        };
        let failed_tests = failed_tests + 1;
        let health = if passed {
            Health::Healthy
        } else if failed_tests >= self.config.max_self_tests {
            out.push(Action::RetireDevice { device, self_tests: failed_tests });
            self.recheck = true;
            Health::Retired
        } else {
            let next_test = Some(now.saturating_add(self.config.self_test_interval));
            Health::Quarantined { since, failed_tests, next_test }
        };
        if let Some(state) = self.device_mut(device) {
            state.health = health;
        }
        Ok(())
    }

    /// Self-tests whose time has come.
    pub(super) fn begin_self_tests(&mut self, now: Time, out: &mut Vec<Action>) {
        for state in &mut self.devices {
            if let Health::Quarantined { next_test, .. } = &mut state.health
                && next_test.is_some_and(|t| t <= now)
            {
                *next_test = None;
                out.push(Action::RunSelfTest { device: state.id });
            }
        }
    }

    /// A key did not load: again, or what needs it goes elsewhere, or fails.
    pub(super) fn key_load_failed(
        &mut self,
        now: Time,
        circuit: CircuitId,
        pool: Pool,
        attempts: u32,
        cause: String,
        out: &mut Vec<Action>,
    ) {
        if attempts < self.config.key_load_attempts {
            out.push(Action::LoadKey { circuit, pool });
            return;
        }
        self.residency.forget(circuit, pool);
        if let Pool::Device(device) = pool {
            let assigned = self.devices.get(usize::from(device.0)).into_iter().flat_map(|d| d.assigned.values());
            let waiting: Vec<_> = assigned.copied().filter(|id| self.circuit_of(*id) == Some(circuit)).collect();
            for id in waiting {
                let hopeless = self.charge(id, Some(device), Fault::Device { cause: cause.clone() });
                self.detach(now, id, device, out);
                if hopeless {
                    self.give_up(now, id, out);
                }
            }
        } else {
            // Who used it has nothing to give back there any more: a later load begins without users.
            let of_circuit = self.jobs.values_mut().filter(|j| j.request.circuit == circuit);
            for p in of_circuit.flat_map(|j| &mut j.partitions) {
                p.key.forget(pool);
            }
            let of_circuit = self.jobs.values().filter(|j| j.request.circuit == circuit);
            for job in of_circuit.map(|j| j.request.job).collect::<Vec<_>>() {
                let cause = FailureCause::KeyLoad { circuit, pool, attempts, cause: cause.clone() };
                self.end_job(now, job, Ending::Failed(cause), out);
            }
        }
    }

    /// Jobs that cannot be done any more: devices are retired or have failed them, or their circuit has become larger.
    pub(super) fn fail_impossible(&mut self, now: Time, out: &mut Vec<Action>) {
        if !std::mem::take(&mut self.recheck) {
            return;
        }
        let mut impossible = Vec::new();
        for job in self.jobs.values().filter(|j| j.ending.is_none()) {
            let Some(circuit) = self.circuits.get(&job.request.circuit) else { continue };
            for (index, p) in job.partitions.iter().enumerate() {
                if p.stage.is_over() || matches!(p.stage, Stage::Finishing(_)) {
                    continue;
                }
                let profile = if p.stage == Stage::Pending {
                    circuit.profile.clone()
                } else {
                    let devices = p.exceptions.to_vec();
                    CircuitProfile { partition: p.bytes, key: p.key, devices, ..circuit.profile.clone() }
                };
                if let Some(refusal) = self.refusal(&profile, job.request.priority, |d| !p.excludes(d)) {
                    let partition = PartitionId { job: job.request.job, index: index as u32 };
                    let cause = self.last_failure(partition).unwrap_or(FailureCause::Unplaceable(refusal));
                    impossible.push((job.request.job, cause));
                    break;
                }
            }
        }
        for (job, cause) in impossible {
            self.end_job(now, job, Ending::Failed(cause), out);
        }
    }
}
