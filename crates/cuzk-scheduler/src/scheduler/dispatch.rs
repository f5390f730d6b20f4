//! Devices: which partition goes to which, who gets the compute lock, and what is given back when.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    Action, DeviceId, PartitionId, Pool, Priority, Stage, Ticket, Time,
    device::Device,
    job::{Partition, Rank, Ranked},
    reason::Blocked,
    residency::{Access, Demand},
};

impl Scheduler {
    /// Gives every free lock to a prepared partition and every free worker slot to a queued one.
    pub(super) fn fill_devices(&mut self, now: Time, out: &mut Vec<Action>) {
        // A device whose lock is free comes first: who is assigned there starts sooner.
        let mut ids: Vec<_> = self.devices.iter().map(|d| (!d.running.is_empty(), d.id)).collect();
        ids.sort_unstable();
        for (_, id) in &ids {
            self.prepare_with_key(*id, out);
            self.start(*id, out);
        }
        // Until nothing changes: what one device left to another may find that one full.
        while ids.iter().fold(false, |any, (_, id)| self.assign(now, *id, out) || any) {}
    }

    /// Partitions whose key has arrived.
    fn prepare_with_key(&mut self, device: DeviceId, out: &mut Vec<Action>) {
        let waiting: Vec<_> = self.assigned(device, |p| p.stage == Stage::AwaitingKey(device)).into_values().collect();
        for id in waiting {
            let key = self.circuit_of(id).and_then(|c| self.residency.access(c, Pool::Device(device)));
            if key == Some(Access::Ready) {
                self.begin_preparing(id, device, out);
            }
        }
    }

    fn begin_preparing(&mut self, id: PartitionId, device: DeviceId, out: &mut Vec<Action>) {
        if let Some(p) = self.partition_mut(id) {
            p.stage = Stage::Preparing(device);
        }
        out.extend(self.ticket(id).map(|ticket| Action::Prepare { ticket, device }));
    }

    /// Partitions in slots of a device that `wanted` accepts, in strict order.
    fn assigned(&self, device: DeviceId, wanted: impl Fn(&Partition) -> bool) -> BTreeMap<Rank, PartitionId> {
        let Some(device) = self.devices.get(usize::from(device.0)) else { return BTreeMap::new() };
        let accepted = |id: &PartitionId| self.partition(*id).is_some_and(&wanted);
        device.assigned.iter().filter(|(_, id)| accepted(id)).map(|(rank, id)| (*rank, *id)).collect()
    }

    /// The compute lock: one holder a device. While a CRITICAL partition is being prepared, the lock is kept for it.
    fn start(&mut self, device: DeviceId, out: &mut Vec<Action>) {
        let Some(state) = self.devices.get(usize::from(device.0)) else { return };
        if !state.is_healthy() || !state.running.is_empty() {
            return;
        }
        let after_critical = state.last_critical;
        let mut prepared = self.assigned(device, |p| p.stage == Stage::Prepared(device) && !p.aborting);
        let Some(chosen) = self.first_of(&prepared, after_critical) else { return };
        let due = after_critical && self.is_due(chosen.1);
        if chosen.0.priority != Priority::Critical && !due && self.critical_in_preparation(device).is_some() {
            return;
        }
        prepared.remove(&chosen.0);
        let circuit = self.circuit_of(chosen.1);
        let alike = |rank: &Rank, id: PartitionId| rank.priority == chosen.0.priority && self.circuit_of(id) == circuit;
        let others = prepared.iter().filter(|(rank, id)| alike(rank, **id)).map(|(rank, id)| (*rank, *id));
        let batch: Vec<_> = std::iter::once(chosen).chain(others.take(self.config.max_batch - 1)).collect();
        for (rank, _) in &batch {
            prepared.remove(rank);
        }
        self.note_overtaken(chosen, &prepared);
        for (_, id) in &batch {
            if let Some(p) = self.partition_mut(*id) {
                p.stage = Stage::Running(device);
            }
        }
        if let Some(state) = self.device_mut(device) {
            state.running = batch.iter().map(|(_, id)| *id).collect();
            state.last_critical = chosen.0.priority == Priority::Critical;
        }
        let batch = batch.into_iter().filter_map(|(_, id)| self.ticket(id)).collect();
        out.push(Action::Start { device, batch });
    }

    /// A CRITICAL partition that is on its way to the lock of a device.
    pub(super) fn critical_in_preparation(&self, device: DeviceId) -> Option<PartitionId> {
        let preparing = self.assigned(device, |p| p.stage == Stage::Preparing(device) && !p.aborting);
        preparing.into_iter().find(|(rank, _)| rank.priority == Priority::Critical).map(|(_, id)| id)
    }

    /// Whether a device has a worker slot for a partition of that priority. A CRITICAL one may come on top, if none
    /// waits there already: otherwise a stream of them would keep all slots.
    pub(super) fn has_slot(&self, device: &Device, priority: Priority) -> bool {
        let (taken, slots) = (device.assigned.len(), self.config.gpu_workers_per_device);
        let waits =
            |(rank, id): (&Rank, &PartitionId)| rank.priority == Priority::Critical && !device.running.contains(id);
        let on_top = || priority == Priority::Critical && taken == slots && !device.assigned.iter().any(waits);
        device.is_healthy() && (taken < slots || on_top())
    }

    /// Whether a partition may go to a device: it fits, it was not failed by it, and a last resort is only for those
    /// who have no other.
    pub(super) fn may_go(&self, device: &Device, rank: Rank, p: &Partition) -> bool {
        let fits = |d: &Device| {
            let leave = self.config.critical_reserve.leave(d.pool(), rank.priority);
            p.on_device(d.id).alone() <= d.resources.memory.saturating_sub(leave)
                && !d.is_retired()
                && !p.excludes(d.id)
        };
        fits(device)
            && (!device.resources.last_resort || !self.devices.iter().any(|d| !d.resources.last_resort && fits(d)))
    }

    /// Assigns a queued partition to a free slot of a device; says whether it did.
    fn assign(&mut self, now: Time, device: DeviceId, out: &mut Vec<Action>) -> bool {
        let (chosen, skipped) = match self.next_for(device) {
            Ok(Some(next)) => next,
            Ok(None) => return self.block(device, None),
            Err(blocked) => return self.block(device, Some(blocked)),
        };
        let (rank, id) = chosen;
        let pool = Pool::Device(device);
        let Some((p, circuit)) = self.partition(id).zip(self.circuit_of(id)) else { return false };
        let needs = p.on_device(device);
        let key = needs.key;
        let access = key.map(|_| self.residency.access(circuit, pool));
        if access == Some(Some(Access::Leaving)) {
            return self.block(device, Some(Blocked::KeyEviction { circuit, pool }));
        }
        // Partition, key and what the partition needs under the lock, together or not at all: none of them takes
        // another's place, and nobody who is at a device waits for more of its memory.
        let absent = if access == Some(None) { key.unwrap_or(0) } else { 0 };
        let under_lock = self.devices.get(usize::from(device.0)).map_or(0, Device::bytes_under_lock);
        let growth = needs.under_lock().saturating_sub(under_lock);
        let bytes = needs.own().saturating_add(growth);
        let leave = self.config.critical_reserve.leave(pool, rank.priority);
        let demand = Demand { circuit, pool, bytes: bytes.saturating_add(absent), leave };
        let mut reservation = match self.budget.reserve_leaving(pool, demand.bytes, leave) {
            Ok(reservation) => reservation,
            Err(refused) => {
                self.residency.make_room(now, &self.budget, &refused, demand, out);
                return self.block(device, Some(Blocked::Memory(refused)));
            }
        };
        if access == Some(None) {
            self.residency.load(now, circuit, reservation.split_off(absent), out);
        }
        let growth = reservation.split_off(growth);
        let ready = key.is_none() || access == Some(Some(Access::Ready));
        if key.is_some() {
            self.residency.acquire(circuit, pool);
        }
        self.queue.remove(&rank);
        self.give_up_place(id);
        if let Some(p) = self.partition_mut(id) {
            p.stage = Stage::AwaitingKey(device);
            p.device = Some(reservation);
            p.device_key = key.map(|_| device);
        }
        if let Some(state) = self.device_mut(device) {
            state.assigned.insert(rank, id);
            state.reserve_under_lock(growth);
        }
        let others = self.queue.clone();
        self.note_overtaken(chosen, &others);
        if let Some(skipped) = skipped {
            self.note_skipped(skipped);
        }
        if ready {
            self.begin_preparing(id, device, out);
        } else {
            out.extend(self.ticket(id).map(|ticket| Action::AwaitKey { ticket, device }));
        }
        true
    }

    fn block(&mut self, device: DeviceId, blocked: Option<Blocked>) -> bool {
        if let Some(state) = self.device_mut(device) {
            state.blocked = blocked;
        }
        false
    }

    /// The queued partition that a device with a free slot should take, and the one that it goes before if that is not
    /// its turn.
    fn next_for(&self, device: DeviceId) -> Result<Option<(Ranked, Option<PartitionId>)>, Blocked> {
        let Some(state) = self.devices.get(usize::from(device.0)) else { return Ok(None) };
        let mut key_loading = None;
        let mut candidates = BTreeMap::new();
        for (&rank, &id) in &self.queue {
            let Some((p, circuit)) = self.partition(id).zip(self.circuit_of(id)) else { continue };
            if !self.has_slot(state, rank.priority) || !self.may_go(state, rank, p) {
                continue;
            }
            let pinned_missing =
                p.key.pinned.is_some() && self.residency.access(circuit, Pool::Pinned) != Some(Access::Ready);
            if pinned_missing {
                key_loading.get_or_insert(Blocked::KeyLoad { circuit, pool: Pool::Pinned });
            } else {
                candidates.insert(rank, id);
            }
        }
        while let Some(head) = self.first_of(&candidates, state.last_critical) {
            let chosen = match self.with_affinity(state, head, &candidates) {
                Affinity::Take => (head, None),
                Affinity::Before(other) => (other, Some(head.1)),
                Affinity::LeaveToOther => {
                    candidates.remove(&head.0);
                    continue;
                }
            };
            let alone = |id: PartitionId| self.partition(id).is_some_and(|p| p.alone);
            let crowded =
                !state.assigned.is_empty() && (alone(chosen.0.1) || state.assigned.values().any(|p| alone(*p)));
            return if crowded { Err(Blocked::Alone) } else { Ok(Some(chosen)) };
        }
        key_loading.map_or(Ok(None), Err)
    }

    /// Whose turn it is when keys are looked at: `head` if its key is here (or nowhere better); another one of its
    /// priority whose key is here, unless `head` was skipped too often; nobody, if another device has `head`'s key and
    /// a slot.
    fn with_affinity(&self, device: &Device, head: Ranked, candidates: &BTreeMap<Rank, PartitionId>) -> Affinity {
        let key_here = |id: PartitionId, device: &Device| {
            let needed = self.partition(id).is_some_and(|p| p.on_device(device.id).key.is_some());
            !needed || self.circuit_of(id).is_some_and(|c| self.residency.is_here(c, device.pool()))
        };
        let (rank, id) = head;
        if key_here(id, device) {
            return Affinity::Take;
        }
        let elsewhere = |d: &Device| {
            let may = self.partition(id).is_some_and(|p| self.may_go(d, rank, p));
            d.id != device.id && may && self.has_slot(d, rank.priority) && key_here(id, d)
        };
        if self.devices.iter().any(elsewhere) {
            return Affinity::LeaveToOther;
        }
        let same_priority = candidates.iter().filter(|(r, _)| r.priority == rank.priority);
        match same_priority.map(|(r, i)| (*r, *i)).find(|(_, i)| key_here(*i, device)) {
            Some(other) if !self.is_due(id) => Affinity::Before(other),
            _ => Affinity::Take,
        }
    }

    pub(super) fn prepared(&mut self, id: PartitionId) {
        if let Some(p) = self.partition_mut(id)
            && let Stage::Preparing(device) = p.stage
        {
            p.stage = Stage::Prepared(device);
        }
    }

    /// The first phase of the release: evaluation vectors, the slot, the lock. What finishing needs stays.
    pub(super) fn computed(&mut self, now: Time, ticket: Ticket, out: &mut Vec<Action>) {
        let id = ticket.partition;
        let early_free = self.config.ablation.early_free;
        let Some(device) = self.leave_slot(id) else { return };
        self.release_device_key(now, id);
        if let Some(p) = self.partition_mut(id) {
            p.stage = Stage::Finishing(device);
            let (host, on_device) = (p.bytes.held_finishing(), p.on_device(device).finishing);
            if let Some(r) = &mut p.device {
                r.shrink_to(on_device);
            }
            if early_free {
                p.shrink_host(host);
            }
        }
        self.give_up_permit(id);
        out.push(Action::Finish { ticket });
    }

    /// Takes a partition out of its device's slot and, if it computed, from the lock. Says which device that was.
    pub(super) fn leave_slot(&mut self, id: PartitionId) -> Option<DeviceId> {
        let device = self.partition(id)?.stage.device_slot()?;
        let rank = self.rank(id)?;
        self.device_mut(device)?.unassign(rank, id);
        let most = self.most_under_lock(device);
        self.device_mut(device)?.shrink_under_lock(most);
        Some(device)
    }

    /// What the most demanding of the partitions in a device's slots needs beyond its own under the lock.
    pub(super) fn most_under_lock(&self, device: DeviceId) -> u64 {
        let here = self.devices.get(usize::from(device.0)).into_iter().flat_map(|d| d.assigned.values());
        here.filter_map(|id| self.partition(*id)).map(|p| p.on_device(device).under_lock()).max().unwrap_or(0)
    }

    pub(super) fn release_device_key(&mut self, now: Time, id: PartitionId) {
        let Some(circuit) = self.circuit_of(id) else { return };
        if let Some(device) = self.partition_mut(id).and_then(|p| p.device_key.take()) {
            self.residency.release(now, circuit, Pool::Device(device));
        }
    }
}

enum Affinity {
    Take,
    Before(Ranked),
    LeaveToOther,
}
