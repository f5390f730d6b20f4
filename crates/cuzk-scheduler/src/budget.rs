//! Memory as an account: bytes are reserved before anybody allocates, and a reservation gives them back exactly once.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use crate::{DeviceId, units::show_bytes};

/// A kind of memory with a capacity of its own. It is also where a key can lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Ordinary memory of the host.
    Host,
    /// Host memory that devices read and write directly.
    Pinned,
    /// A device's own memory.
    Device(DeviceId),
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Pinned => f.write_str("pinned"),
            Self::Device(device) => device.fmt(f),
        }
    }
}

/// A pool cannot hold what was asked for. Nothing was reserved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of {pool} memory: {} requested, {} of {} in use and {} held back",
    show_bytes(*requested), show_bytes(*in_use), show_bytes(*capacity), show_bytes(*held_back)
)]
pub struct OutOfMemory {
    /// Which pool.
    pub pool: Pool,
    /// Bytes that were asked for.
    pub requested: u64,
    /// Bytes reserved at that moment.
    pub in_use: u64,
    /// Bytes that this request may not touch: kept for CRITICAL jobs, or measured to be in use beyond the reservations.
    pub held_back: u64,
    /// Bytes of the pool.
    pub capacity: u64,
}

/// State of a pool, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUsage {
    /// What the pool may hold.
    pub capacity: u64,
    /// Reserved now. Never more than `capacity`.
    pub in_use: u64,
    /// The largest `in_use` so far.
    pub high_water: u64,
    /// By how much the last measurement exceeded the reservations of its moment.
    pub unaccounted: u64,
}

#[derive(Debug)]
struct Ledger {
    pool: Pool,
    capacity: u64,
    in_use: AtomicU64,
    high_water: AtomicU64,
    unaccounted: AtomicU64,
}

/// The accounts of all pools. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    pools: BTreeMap<Pool, Arc<Ledger>>,
}

impl MemoryBudget {
    /// A budget of pools with their capacities in bytes. A pool that is absent has none.
    pub fn new(capacities: impl IntoIterator<Item = (Pool, u64)>) -> Self {
        let ledger = |(pool, capacity)| {
            let zero = || AtomicU64::new(0);
            (pool, Arc::new(Ledger { pool, capacity, in_use: zero(), high_water: zero(), unaccounted: zero() }))
        };
        Self { pools: capacities.into_iter().map(ledger).collect() }
    }

    /// Reserves `bytes` of a pool.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they are not free.
    pub fn reserve(&self, pool: Pool, bytes: u64) -> Result<Reservation, OutOfMemory> {
        self.reserve_leaving(pool, bytes, 0)
    }

    /// Reserves `bytes` of a pool such that `leave` further ones stay free for somebody more urgent.
    ///
    /// # Errors
    /// [`OutOfMemory`] if they are not free.
    pub fn reserve_leaving(&self, pool: Pool, bytes: u64, leave: u64) -> Result<Reservation, OutOfMemory> {
        let refuse = |in_use, held_back, capacity| OutOfMemory { pool, requested: bytes, in_use, held_back, capacity };
        let Some(ledger) = self.pools.get(&pool) else { return Err(refuse(0, leave, 0)) };
        let held_back = leave.saturating_add(ledger.unaccounted.load(Relaxed));
        let sum = |in_use: u64| {
            in_use.checked_add(bytes).filter(|t| t.checked_add(held_back).is_some_and(|t| t <= ledger.capacity))
        };
        // Only the numbers are shared, no data is published through them: relaxed order suffices.
        match ledger.in_use.fetch_update(Relaxed, Relaxed, sum) {
            Ok(before) => {
                ledger.high_water.fetch_max(before + bytes, Relaxed);
                Ok(Reservation { ledger: Arc::clone(ledger), bytes })
            }
            Err(in_use) => Err(refuse(in_use, held_back, ledger.capacity)),
        }
    }

    /// Bytes that a request leaving `leave` bytes could get now.
    pub fn free_leaving(&self, pool: Pool, leave: u64) -> u64 {
        self.usage(pool)
            .map_or(0, |u| u.capacity.saturating_sub(u.in_use).saturating_sub(u.unaccounted).saturating_sub(leave))
    }

    /// A pool's numbers; `None` if there is no such pool.
    pub fn usage(&self, pool: Pool) -> Option<PoolUsage> {
        self.pools.get(&pool).map(|l| PoolUsage {
            capacity: l.capacity,
            in_use: l.in_use.load(Relaxed),
            high_water: l.high_water.load(Relaxed),
            unaccounted: l.unaccounted.load(Relaxed),
        })
    }

    /// All pools with their numbers.
    pub fn pools(&self) -> impl Iterator<Item = (Pool, PoolUsage)> + '_ {
        self.pools.keys().filter_map(|&pool| Some((pool, self.usage(pool)?)))
    }

    /// Takes note of how many bytes of a pool are really in use: what exceeds the reservations counts against the
    /// capacity until the next measurement. Says whether there is such a pool.
    pub fn measured(&self, pool: Pool, bytes: u64) -> bool {
        let Some(ledger) = self.pools.get(&pool) else { return false };
        ledger.unaccounted.store(bytes.saturating_sub(ledger.in_use.load(Relaxed)), Relaxed);
        true
    }
}

/// Bytes of a pool that belong to whoever holds this. Dropping it gives them back; it cannot be copied, so that happens
/// once.
#[derive(Debug)]
#[must_use = "a reservation that is dropped is given back at once"]
pub struct Reservation {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Reservation {
    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Of which pool.
    pub fn pool(&self) -> Pool {
        self.ledger.pool
    }

    /// Takes a part out, at most all of it: the first phase of a release is to drop that part, the second to drop the
    /// rest.
    pub fn split_off(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { ledger: Arc::clone(&self.ledger), bytes }
    }

    /// Takes in another reservation of the same pool of the same budget; any other one comes back.
    ///
    /// # Errors
    /// The other reservation.
    pub fn absorb(&mut self, mut other: Self) -> Result<(), Self> {
        if !Arc::ptr_eq(&self.ledger, &other.ledger) {
            return Err(other);
        }
        self.bytes += std::mem::take(&mut other.bytes);
        Ok(())
    }

    /// Gives back everything above `bytes`. It never grows.
    pub fn shrink_to(&mut self, bytes: u64) {
        drop(self.split_off(self.bytes.saturating_sub(bytes)));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.in_use.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_refusal_carries_the_numbers() {
        let budget = MemoryBudget::new([(Pool::Host, 100)]);
        let held = budget.reserve(Pool::Host, 60).unwrap();
        let refused = budget.reserve_leaving(Pool::Host, 31, 10).unwrap_err();
        let expected = OutOfMemory { pool: Pool::Host, requested: 31, in_use: 60, held_back: 10, capacity: 100 };
        assert_eq!(refused, expected);
        assert_eq!(refused.to_string(), "out of host memory: 31 B requested, 60 B of 100 B in use and 10 B held back");
        drop(held);
        assert!(budget.reserve_leaving(Pool::Host, 90, 10).is_ok());
        assert!(budget.reserve(Pool::Host, u64::MAX).is_err());
        assert_eq!(budget.reserve(Pool::Pinned, 1).unwrap_err().capacity, 0);
    }

    #[test]
    fn a_measurement_above_the_reservations_counts_against_the_capacity() {
        let budget = MemoryBudget::new([(Pool::Host, 100)]);
        let held = budget.reserve(Pool::Host, 50).unwrap();
        assert!(budget.measured(Pool::Host, 70));
        assert_eq!(budget.reserve(Pool::Host, 31).unwrap_err().held_back, 20);
        assert!(budget.measured(Pool::Host, 10));
        assert_eq!(budget.free_leaving(Pool::Host, 0), 50);
        assert!(!budget.measured(Pool::Pinned, 10));
        drop(held);
    }

    #[test]
    fn a_reservation_takes_in_only_its_own_kind() {
        let budget = MemoryBudget::new([(Pool::Host, 100), (Pool::Pinned, 100)]);
        let mut held = budget.reserve(Pool::Host, 10).unwrap();
        held.absorb(budget.reserve(Pool::Host, 20).unwrap()).unwrap();
        let refused = held.absorb(budget.reserve(Pool::Pinned, 30).unwrap()).unwrap_err();
        assert_eq!((held.bytes(), refused.bytes(), refused.pool()), (30, 30, Pool::Pinned));
        let other = MemoryBudget::new([(Pool::Host, 100)]);
        assert!(held.absorb(other.reserve(Pool::Host, 1).unwrap()).is_err());
        drop(held);
        assert_eq!(budget.usage(Pool::Host).unwrap().in_use, 0);
    }

    proptest! {
        /// Whatever is reserved, split, joined, shrunk and dropped: the account is the sum of what is held, and ends at zero.
        #[test]
        fn the_account_is_the_sum_of_what_is_held(
            steps in prop::collection::vec((0..5u8, 0..200u64, 0..64usize), 0..200),
        ) {
            let budget = MemoryBudget::new([(Pool::Host, 1000)]);
            let mut held: Vec<Reservation> = Vec::new();
            let mut peak = 0;
            for (what, bytes, which) in steps {
                match (what, held.len()) {
                    (0, _) => held.extend(budget.reserve(Pool::Host, bytes)),
                    (_, 0) => {}
                    (1, n) => drop(held.swap_remove(which % n)),
                    (2, n) => {
                        let part = held[which % n].split_off(bytes);
                        held.push(part);
                    }
                    (3, n) => {
                        let other = held.swap_remove(which % n);
                        match held.first_mut() {
                            Some(first) => prop_assert!(first.absorb(other).is_ok()),
                            None => drop(other),
                        }
                    }
                    (_, n) => held[which % n].shrink_to(bytes),
                }
                let sum: u64 = held.iter().map(Reservation::bytes).sum();
                peak = peak.max(sum);
                let usage = budget.usage(Pool::Host).unwrap();
                prop_assert_eq!((usage.in_use, usage.high_water), (sum, peak));
                prop_assert!(sum <= 1000);
            }
            drop(held);
            prop_assert_eq!(budget.usage(Pool::Host).unwrap().in_use, 0);
        }
    }
}
