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
        Self(Arc::new(Account { pool, capacity, in_use: AtomicU64::new(0) }))
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
            .map(|_| Reservation { account: account.clone(), bytes })
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
        PoolUsage { in_use, reserved: in_use, capacity: self.0.capacity }
    }
}

impl Reservation {
    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
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
        assert_eq!(pool.usage().in_use, 0);
    }
}
