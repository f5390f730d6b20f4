//! Accounting of a pool of memory by bytes, before anything is allocated.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{BackendError, Pool, PoolUsage, Result};

/// A pool's account: how many bytes there are and how many are taken. It holds no memory itself.
#[derive(Clone, Debug)]
pub struct MemoryPool(Arc<Account>);

#[derive(Debug)]
struct Account {
    pool: Pool,
    capacity: u64,
    in_use: AtomicU64,
    peak: AtomicU64,
}

/// Bytes taken from a pool; dropping it gives them back.
#[derive(Debug)]
pub struct Reservation {
    account: Arc<Account>,
    bytes: u64,
}

impl MemoryPool {
    /// An empty pool of `capacity` bytes.
    pub fn new(pool: Pool, capacity: u64) -> Self {
        Self(Arc::new(Account { pool, capacity, in_use: AtomicU64::new(0), peak: AtomicU64::new(0) }))
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// [`BackendError::OutOfMemory`] if fewer are left; the pool is unchanged then.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let account = &self.0;
        account
            .in_use
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |in_use| {
                in_use.checked_add(bytes).filter(|sum| *sum <= account.capacity)
            })
            .map(|before| {
                account.peak.fetch_max(before + bytes, Ordering::AcqRel);
                Reservation { account: account.clone(), bytes }
            })
            .map_err(|in_use| BackendError::OutOfMemory {
                pool: account.pool,
                requested: bytes,
                in_use,
                capacity: account.capacity,
            })
    }

    /// How full it is.
    pub fn usage(&self) -> PoolUsage {
        let in_use = self.0.in_use.load(Ordering::Acquire);
        PoolUsage { in_use, reserved: in_use, capacity: self.0.capacity, peak: self.0.peak.load(Ordering::Acquire) }
    }
}

impl Reservation {
    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes how many bytes it holds, without giving any up in between. What it holds more must be free.
    ///
    /// # Errors
    /// [`BackendError::OutOfMemory`] if it is not; nothing is changed then.
    pub fn resize(&mut self, bytes: u64) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                let mut more = MemoryPool(self.account.clone()).reserve(more)?;
                self.bytes += std::mem::take(&mut more.bytes);
            }
            None => {
                self.account.in_use.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
                self.bytes = bytes;
            }
        }
        Ok(())
    }

    /// Takes over the bytes of another reservation of the same pool.
    pub fn absorb(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.account, &other.account), "reservations of two pools");
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.in_use.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_numbers_and_changes_nothing() {
        let pool = MemoryPool::new(Pool::Pinned, 100);
        let first = pool.reserve(60).unwrap();
        assert_eq!(
            pool.reserve(41).unwrap_err(),
            BackendError::OutOfMemory { pool: Pool::Pinned, requested: 41, in_use: 60, capacity: 100 }
        );
        assert!(pool.reserve(u64::MAX).is_err());
        let second = pool.reserve(40).unwrap();
        assert_eq!(pool.usage().in_use, 100);
        drop(first);
        drop(second);
        let empty = PoolUsage { in_use: 0, reserved: 0, capacity: 100, peak: 100 };
        assert_eq!(pool.usage(), empty);
    }

    #[test]
    fn a_reservation_grows_shrinks_and_absorbs_without_a_gap() {
        let pool = MemoryPool::new(Pool::Device, 100);
        let mut first = pool.reserve(60).unwrap();
        first.absorb(pool.reserve(30).unwrap());
        assert_eq!((first.bytes(), pool.usage().in_use), (90, 90));
        assert!(first.resize(101).is_err());
        assert_eq!((first.bytes(), pool.usage().in_use), (90, 90));
        first.resize(100).unwrap();
        first.resize(20).unwrap();
        assert_eq!((first.bytes(), pool.usage().in_use, pool.usage().peak), (20, 20, 100));
        drop(first);
        assert_eq!(pool.usage().in_use, 0);
    }
}
