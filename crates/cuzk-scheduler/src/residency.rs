//! Which keys lie where: reference counts, least recently used first out, and never one in use.
//!
//! A key is *hot* where a device can use it (its own memory, or pinned memory that it reads), *warm* in host memory,
//! and *cold* on disk. The memory of a key is reserved from before it is loaded until it has been evicted.

use std::{collections::BTreeMap, time::Duration};

use crate::{Action, CircuitId, MemoryBudget, OutOfMemory, Pool, Priority, Reservation, Time};

/// How close a key is to its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTier {
    /// At least one device can use it at once.
    Hot,
    /// In host memory.
    Warm,
    /// On disk.
    Cold,
}

/// A key in a pool, for a status page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyStatus {
    /// Whose key.
    pub circuit: CircuitId,
    /// Where.
    pub pool: Pool,
    /// Whether it can be used (not being loaded or evicted).
    pub loaded: bool,
    /// Whether it is being evicted.
    pub leaving: bool,
    /// Bytes reserved for it.
    pub bytes: u64,
    /// Partitions that use it or will.
    pub users: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Loading,
    Loaded,
    Leaving,
}

#[derive(Debug)]
struct Entry {
    state: State,
    reservation: Reservation,
    users: u32,
    last_used: Time,
}

/// What stands between a partition and its key in a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Ready,
    Loading,
    /// It is on its way out and must be gone before it can come back.
    Leaving,
    Refused(OutOfMemory),
}

/// How a key is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) circuit: CircuitId,
    pub(crate) pool: Pool,
    pub(crate) bytes: u64,
    /// Bytes to leave for CRITICAL jobs.
    pub(crate) leave: u64,
}

#[derive(Debug)]
pub(crate) struct Residency {
    entries: BTreeMap<(Pool, CircuitId), Entry>,
    failures: BTreeMap<(Pool, CircuitId), u32>,
    /// The most urgent job that was seen of a circuit: its key is evicted after those of less urgent ones.
    urgency: BTreeMap<CircuitId, Priority>,
    min_idle: Duration,
    /// When a key that is wanted out becomes old enough, if one is.
    wakeup: Option<Time>,
}

impl Residency {
    pub(crate) fn new(min_idle: Duration) -> Self {
        Self { entries: BTreeMap::new(), failures: BTreeMap::new(), urgency: BTreeMap::new(), min_idle, wakeup: None }
    }

    pub(crate) fn saw(&mut self, circuit: CircuitId, priority: Priority) {
        self.urgency.entry(circuit).and_modify(|p| *p = (*p).min(priority)).or_insert(priority);
    }

    /// The state of a key, without any effect.
    pub(crate) fn access(&self, circuit: CircuitId, pool: Pool) -> Option<Access> {
        self.entries.get(&(pool, circuit)).map(|e| match e.state {
            State::Loaded => Access::Ready,
            State::Loading => Access::Loading,
            State::Leaving => Access::Leaving,
        })
    }

    pub(crate) fn is_here(&self, circuit: CircuitId, pool: Pool) -> bool {
        matches!(self.access(circuit, pool), Some(Access::Ready | Access::Loading))
    }

    /// The state of a key, which is loaded if it is absent and its memory can be had, if need be after evicting others.
    pub(crate) fn ensure(&mut self, now: Time, budget: &MemoryBudget, demand: Demand, out: &mut Vec<Action>) -> Access {
        let Demand { circuit, pool, bytes, leave } = demand;
        if let Some(access) = self.access(circuit, pool) {
            return access;
        }
        match budget.reserve_leaving(pool, bytes, leave) {
            Ok(reservation) => {
                self.load(now, circuit, reservation, out);
                Access::Loading
            }
            Err(refused) => {
                self.make_room(now, budget, &refused, demand, out);
                Access::Refused(refused)
            }
        }
    }

    /// Takes over the memory of a key that is absent, and has it loaded.
    pub(crate) fn load(&mut self, now: Time, circuit: CircuitId, reservation: Reservation, out: &mut Vec<Action>) {
        let pool = reservation.pool();
        let entry = Entry { state: State::Loading, reservation, users: 0, last_used: now };
        self.entries.insert((pool, circuit), entry);
        out.push(Action::LoadKey { circuit, pool });
    }

    /// Evicts the least recently used idle keys of a pool if, with them gone, what was refused would fit. The key of the
    /// circuit that asks stays: it would only be loaded again, and be in its own way again.
    pub(crate) fn make_room(
        &mut self,
        now: Time,
        budget: &MemoryBudget,
        refused: &OutOfMemory,
        demand: Demand,
        out: &mut Vec<Action>,
    ) {
        let pool = refused.pool;
        let of_pool = || self.entries.iter().filter(|((p, _), _)| *p == pool);
        let leaving = of_pool().filter(|(_, e)| e.state == State::Leaving).map(|(_, e)| e.reservation.bytes());
        let coming = budget.free_leaving(pool, demand.leave).saturating_add(leaving.sum());
        let Some(missing) = refused.requested.checked_sub(coming).filter(|m| *m > 0) else { return };

        let is_idle =
            |circuit: CircuitId, e: &Entry| e.state == State::Loaded && e.users == 0 && circuit != demand.circuit;
        let mut idle: Vec<_> = of_pool().filter(|((_, c), e)| is_idle(*c, e)).collect();
        let young = |e: &&Entry| now < e.last_used.saturating_add(self.min_idle);
        let all: u64 = idle.iter().map(|(_, e)| e.reservation.bytes()).sum();
        idle.retain(|(_, e)| !young(e));
        let old: u64 = idle.iter().map(|(_, e)| e.reservation.bytes()).sum();
        if old < missing {
            if all >= missing {
                let ages = of_pool().filter(|((_, c), e)| is_idle(*c, e)).map(|(_, e)| e);
                let next = ages.filter(young).map(|e| e.last_used.saturating_add(self.min_idle)).min();
                self.wakeup = self.wakeup.into_iter().chain(next).min();
            }
            return;
        }
        let urgency = |circuit: &CircuitId| self.urgency.get(circuit).copied().unwrap_or(Priority::Low);
        // Less urgent circuits first, then what was used longest ago.
        idle.sort_by_key(|((_, c), e)| (std::cmp::Reverse(urgency(c)), e.last_used, *c));
        let mut freed = 0;
        let mut evicted = Vec::new();
        for ((_, circuit), entry) in idle {
            if freed >= missing {
                break;
            }
            freed += entry.reservation.bytes();
            evicted.push(*circuit);
        }
        for circuit in evicted {
            self.leave(circuit, pool, out);
        }
    }

    fn leave(&mut self, circuit: CircuitId, pool: Pool, out: &mut Vec<Action>) {
        if let Some(entry) = self.entries.get_mut(&(pool, circuit)) {
            entry.state = State::Leaving;
            out.push(Action::EvictKey { circuit, pool });
        }
    }

    /// Evicts a key wherever nobody uses it, and says where somebody does.
    pub(crate) fn evict(&mut self, circuit: CircuitId, out: &mut Vec<Action>) {
        let places: Vec<_> = self.status().filter(|k| k.circuit == circuit && k.loaded).collect();
        for KeyStatus { pool, users, .. } in places {
            if users == 0 {
                self.leave(circuit, pool, out);
            } else {
                out.push(Action::EvictRefused { circuit, pool, users });
            }
        }
    }

    pub(crate) fn acquire(&mut self, circuit: CircuitId, pool: Pool) {
        if let Some(entry) = self.entries.get_mut(&(pool, circuit)) {
            entry.users += 1;
        }
    }

    pub(crate) fn release(&mut self, now: Time, circuit: CircuitId, pool: Pool) {
        if let Some(entry) = self.entries.get_mut(&(pool, circuit)) {
            entry.users = entry.users.saturating_sub(1);
            entry.last_used = now;
        }
    }

    /// Whether it was being loaded, and is loaded now.
    pub(crate) fn loaded(&mut self, now: Time, circuit: CircuitId, pool: Pool) -> bool {
        let loading = self.entries.get_mut(&(pool, circuit)).filter(|e| e.state == State::Loading);
        let Some(entry) = loading else { return false };
        (entry.state, entry.last_used) = (State::Loaded, now);
        self.failures.remove(&(pool, circuit));
        true
    }

    /// How often its loading has failed in a row; `None` if it was not being loaded. Its memory stays reserved for
    /// another attempt.
    pub(crate) fn load_failed(&mut self, circuit: CircuitId, pool: Pool) -> Option<u32> {
        self.entries.get(&(pool, circuit)).filter(|e| e.state == State::Loading)?;
        let failures = self.failures.entry((pool, circuit)).or_default();
        *failures += 1;
        Some(*failures)
    }

    /// Gives up on loading it.
    pub(crate) fn forget(&mut self, circuit: CircuitId, pool: Pool) {
        self.entries.remove(&(pool, circuit));
        self.failures.remove(&(pool, circuit));
    }

    /// Whether it was leaving, and is gone now.
    pub(crate) fn evicted(&mut self, circuit: CircuitId, pool: Pool) -> bool {
        let leaving = self.entries.get(&(pool, circuit)).is_some_and(|e| e.state == State::Leaving);
        if leaving {
            self.entries.remove(&(pool, circuit));
        }
        leaving
    }

    /// Everything in a pool is gone.
    pub(crate) fn wipe(&mut self, pool: Pool) {
        self.entries.retain(|(p, _), _| *p != pool);
        self.failures.retain(|(p, _), _| *p != pool);
    }

    /// Whether a key is leaving a pool.
    pub(crate) fn is_making_room(&self, pool: Pool) -> bool {
        self.entries.iter().any(|((p, _), e)| *p == pool && e.state == State::Leaving)
    }

    /// Forgets what the last round waited for.
    pub(crate) fn begin(&mut self) {
        self.wakeup = None;
    }

    pub(crate) fn wakeup(&self) -> Option<Time> {
        self.wakeup
    }

    pub(crate) fn status(&self) -> impl Iterator<Item = KeyStatus> + '_ {
        self.entries.iter().map(|(&(pool, circuit), e)| KeyStatus {
            circuit,
            pool,
            loaded: e.state == State::Loaded,
            leaving: e.state == State::Leaving,
            bytes: e.reservation.bytes(),
            users: e.users,
        })
    }
}
