//! Admission: which partition is synthesized next, and into the queue; its permit and its memory.

use std::collections::BTreeSet;

use super::{Circuit, Scheduler};
use crate::{
    Action, CircuitId, JobId, PartitionId, Pool, Priority, Stage, Time,
    job::Partition,
    reason::Blocked,
    residency::{Access, Demand},
};

impl Scheduler {
    /// Starts syntheses in strict order until something is short. Nobody goes past one who waits for memory, so
    /// everybody gets it; only while a key is loaded others go on.
    pub(super) fn admit(&mut self, now: Time, out: &mut Vec<Action>) {
        self.admission = None;
        let mut loading = BTreeSet::new();
        while let Some((id, circuit, skipped)) = self.next_to_admit(&loading) {
            match self.try_admit(now, id, circuit, out) {
                Ok(()) => {
                    self.current_circuit = Some(circuit);
                    if let Some(job) = skipped.and_then(|j| self.jobs.get_mut(&j)) {
                        job.overtaken += 1;
                    }
                }
                Err(blocked @ Blocked::KeyLoad { .. }) => {
                    self.admission.get_or_insert(blocked);
                    loading.insert(circuit);
                }
                Err(blocked) => {
                    self.admission = Some(blocked);
                    break;
                }
            }
        }
    }

    /// The next partition in order that does not wait for one of the keys in `loading`, and the job that it goes before
    /// if that is not its turn: inside a priority, jobs of the current circuit come first.
    fn next_to_admit(&self, loading: &BTreeSet<CircuitId>) -> Option<(PartitionId, CircuitId, Option<JobId>)> {
        let mut first: Option<(PartitionId, CircuitId, Priority)> = None;
        for (&(priority, _), id) in &self.order {
            if first.is_some_and(|(_, _, p)| p != priority) {
                break;
            }
            let Some(job) = self.jobs.get(id) else { continue };
            let circuit = job.request.circuit;
            let Some(index) = job.first_pending().filter(|_| !loading.contains(&circuit)) else { continue };
            let candidate = PartitionId { job: *id, index };
            let grouped = self.config.sort_by_type && self.current_circuit == Some(circuit);
            match first {
                None => {
                    let due = job.overtaken >= self.config.max_overtakes;
                    if grouped || due || !self.config.sort_by_type {
                        return Some((candidate, circuit, None));
                    }
                    first = Some((candidate, circuit, priority));
                }
                Some((skipped, ..)) if grouped => return Some((candidate, circuit, Some(skipped.job))),
                Some(_) => {}
            }
        }
        first.map(|(id, circuit, _)| (id, circuit, None))
    }

    fn try_admit(
        &mut self,
        now: Time,
        id: PartitionId,
        circuit: CircuitId,
        out: &mut Vec<Action>,
    ) -> Result<(), Blocked> {
        let Some(priority) = self.rank(id).map(|r| r.priority) else { return Err(Blocked::Alone) };
        let workers = self.choice.workers;
        let critical = if priority == Priority::Critical { self.config.critical_permits } else { 0 };
        if self.permits >= workers + critical {
            return Err(Blocked::Permits { held: self.permits, workers });
        }
        if self.must_wait_alone(id) {
            return Err(Blocked::Alone);
        }
        let Some(Circuit { profile, .. }) = self.circuits.get(&circuit) else { return Err(Blocked::Alone) };
        let (bytes, key, exceptions) = (profile.partition, profile.key, profile.devices.as_slice().into());
        let shared: Vec<_> = profile.shared_pools().collect();
        for &(pool, key_bytes) in &shared {
            let leave = self.config.critical_reserve.leave(pool, priority);
            let demand = Demand { circuit, pool, bytes: key_bytes, leave };
            match self.residency.ensure(now, &self.budget, demand, out) {
                Access::Ready => {}
                // A key on its way to pinned memory is there before the witness, or the partition waits for it in the
                // queue.
                Access::Loading if pool == Pool::Pinned => {}
                Access::Loading => return Err(Blocked::KeyLoad { circuit, pool }),
                Access::Leaving => return Err(Blocked::KeyEviction { circuit, pool }),
                Access::Refused(refused) => return Err(Blocked::Memory(refused)),
            }
        }
        let needed = bytes.to_synthesize();
        let mut reserve = |pool, bytes| {
            let leave = self.config.critical_reserve.leave(pool, priority);
            self.budget.reserve_leaving(pool, bytes, leave).map_err(|refused| {
                self.residency.make_room(now, &self.budget, &refused, Demand { circuit, pool, bytes, leave }, out);
                Blocked::Memory(refused)
            })
        };
        let host = reserve(Pool::Host, needed.host)?;
        let pinned = reserve(Pool::Pinned, needed.pinned)?;

        for (pool, _) in shared {
            self.residency.acquire(circuit, pool);
        }
        if let Some(p) = self.partition_mut(id) {
            p.stage = Stage::Synthesizing;
            (p.permit, p.shared_key, p.overtaken) = (true, true, 0);
            (p.bytes, p.key, p.exceptions) = (bytes, key, exceptions);
            (p.host, p.pinned) = (Some(host), Some(pinned));
        }
        self.permits += 1;
        self.synthesizing += 1;
        out.extend(self.ticket(id).map(|ticket| Action::StartSynthesis { ticket }));
        self.prefetch(now, circuit, priority, out);
        Ok(())
    }

    /// Whether a partition that ran out of host memory stands in the way: it is repeated when nothing else is in
    /// flight.
    fn must_wait_alone(&self, id: PartitionId) -> bool {
        if self.alone_on_host.contains(&id) {
            return self.jobs.values().flat_map(|j| &j.partitions).any(|p| p.host.is_some());
        }
        let synthesizing = |p: &Partition| p.stage == Stage::Synthesizing;
        self.alone_on_host.iter().any(|alone| self.partition(*alone).is_some_and(synthesizing))
    }

    /// Brings the key to a device while the witness is made, if that costs nobody anything.
    fn prefetch(&mut self, now: Time, circuit: CircuitId, priority: Priority, out: &mut Vec<Action>) {
        let Some(profile) = self.circuits.get(&circuit).map(|c| &c.profile) else { return };
        let leave = |pool| self.config.critical_reserve.leave(pool, priority);
        // Where a partition could go afterwards.
        let usable = || {
            let healthy = self.devices.iter().filter(|d| d.is_healthy() && !d.resources.last_resort);
            healthy.filter_map(|d| {
                let needs = profile.on_device(d.id);
                let fits = needs.alone() <= d.resources.memory.saturating_sub(leave(d.pool()));
                Some((d.pool(), needs.key?)).filter(|_| fits)
            })
        };
        if usable().any(|(pool, _)| self.residency.is_here(circuit, pool)) {
            return;
        }
        let free = |pool| self.budget.free_leaving(pool, leave(pool));
        let freest = usable().max_by_key(|(pool, _)| (free(*pool), std::cmp::Reverse(*pool)));
        let Some((pool, bytes)) = freest else { return };
        if free(pool) >= bytes && self.residency.access(circuit, pool).is_none() {
            let leave = self.config.critical_reserve.leave(pool, priority);
            self.residency.ensure(now, &self.budget, Demand { circuit, pool, bytes, leave }, out);
        }
    }

    /// Sends witnesses to the device queue while it has room. A CRITICAL one finds a place even if it is full, unless
    /// as many of them as may come on top are in it already.
    pub(super) fn send(&mut self, out: &mut Vec<Action>) {
        loop {
            let mut candidates = self.synthesized.clone();
            if self.places >= self.queue_capacity() {
                let on_top = self.critical_places < self.config.critical_permits;
                candidates.retain(|rank, _| on_top && rank.priority == Priority::Critical);
            }
            let Some((rank, id)) = self.first_of(&candidates, true) else { return };
            candidates.remove(&rank);
            self.note_overtaken((rank, id), &candidates);
            self.synthesized.remove(&rank);
            if let Some(p) = self.partition_mut(id) {
                (p.stage, p.place) = (Stage::Sending, true);
            }
            self.places += 1;
            self.critical_places += usize::from(rank.priority == Priority::Critical);
            out.extend(self.ticket(id).map(|ticket| Action::Send { ticket }));
        }
    }
}
