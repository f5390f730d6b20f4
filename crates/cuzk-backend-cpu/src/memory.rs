//! The device's memory: regions of the host's, accounted for before they are mapped and kept for reuse when they are freed.
//!
//! Returning gigabytes to the kernel and faulting them in again costs more than many of the operations in between, and every
//! thread pays for it (TLB shoot-downs); so a freed region waits for the next allocation of about its size.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cuzk_backend::{BackendError, MemoryPool, Pool, PoolUsage, Reservation, Result};
use memmap2::MmapMut;

/// Regions are whole pages.
const PAGE: u64 = 4096;

/// From here on it is worth to ask for huge pages.
const HUGE_PAGE: usize = 2 << 20;

/// A pool of host memory of which at most `capacity` bytes are in use.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    pool: Pool,
    account: MemoryPool,
    cache: Arc<Mutex<Cache>>,
}

/// Freed regions by size.
#[derive(Debug, Default)]
struct Cache {
    regions: BTreeMap<u64, Vec<MmapMut>>,
    bytes: u64,
}

/// Page-aligned, initialised memory. Dropping it gives it back to its arena.
#[derive(Debug)]
pub(crate) struct Region {
    /// Always there until the region is dropped.
    pages: Option<MmapMut>,
    len: usize,
    cache: Arc<Mutex<Cache>>,
    _account: Reservation,
}

fn lock(cache: &Mutex<Cache>) -> MutexGuard<'_, Cache> {
    // Nothing that can panic runs between two changes that belong together.
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    /// The smallest region that holds `bytes` and wastes at most an eighth.
    fn take(&mut self, bytes: u64) -> Option<MmapMut> {
        let (&size, regions) = self.regions.range_mut(bytes..=bytes.saturating_add(bytes / 8)).next()?;
        let region = regions.pop();
        if regions.is_empty() {
            self.regions.remove(&size);
        }
        self.bytes -= size;
        region
    }

    fn put(&mut self, region: MmapMut) {
        let size = region.len() as u64;
        self.regions.entry(size).or_default().push(region);
        self.bytes += size;
    }

    /// Takes regions out, the largest that fit first, of at most so many bytes together.
    fn take_within(&mut self, mut bytes: u64) -> Vec<MmapMut> {
        let mut removed = Vec::new();
        while let Some((&size, _)) = self.regions.range(..=bytes).next_back()
            && let Some(region) = self.take(size)
        {
            bytes -= size;
            removed.push(region);
        }
        removed
    }

    /// Takes the largest regions out until at most `bytes` are left.
    fn shrink(&mut self, bytes: u64) -> Vec<MmapMut> {
        let mut removed = Vec::new();
        while self.bytes > bytes
            && let Some((size, regions)) = self.regions.pop_last()
        {
            self.bytes -= size * regions.len() as u64;
            removed.extend(regions);
        }
        removed
    }
}

impl Arena {
    pub(crate) fn new(pool: Pool, capacity: u64) -> Self {
        Self { pool, account: MemoryPool::new(pool, capacity), cache: Arc::default() }
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        let usage = self.account.usage();
        PoolUsage { reserved: usage.in_use + lock(&self.cache).bytes, ..usage }
    }

    /// Accounts for bytes that are allocated elsewhere for a while. Kept regions that fit into them go back to the system,
    /// so that the process does not hold both.
    ///
    /// # Errors
    /// [`BackendError::OutOfMemory`].
    pub(crate) fn reserve_outside(&self, bytes: u64) -> Result<Reservation> {
        let reservation = self.reserve(bytes)?;
        let surplus = lock(&self.cache).take_within(bytes);
        // Unmapped without the lock.
        drop(surplus);
        Ok(reservation)
    }

    /// Accounts for bytes, and makes room for them.
    ///
    /// # Errors
    /// [`BackendError::OutOfMemory`].
    pub(crate) fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let reservation = self.account.reserve(bytes)?;
        let usage = self.account.usage();
        let surplus = lock(&self.cache).shrink(usage.capacity - usage.in_use);
        // Unmapped without the lock.
        drop(surplus);
        Ok(reservation)
    }

    /// Allocates; the contents are some earlier use's, or zeros.
    ///
    /// # Errors
    /// [`BackendError::OutOfMemory`]: of the pool, or of the system.
    pub(crate) fn alloc(&self, bytes: u64) -> Result<Region> {
        let account = self.reserve(bytes)?;
        let refused = || {
            let usage = self.account.usage();
            let in_use = usage.in_use - bytes;
            BackendError::OutOfMemory { pool: self.pool, requested: bytes, in_use, capacity: usage.capacity }
        };
        let size = bytes.checked_next_multiple_of(PAGE).ok_or_else(refused)?;
        let (size_in_memory, len) = match (usize::try_from(size), usize::try_from(bytes)) {
            (Ok(size), Ok(len)) => (size, len),
            _ => return Err(refused()),
        };
        let cached = lock(&self.cache).take(size);
        let pages = match cached {
            Some(pages) => pages,
            None => {
                let pages = MmapMut::map_anon(size_in_memory).map_err(|_| refused())?;
                #[cfg(target_os = "linux")]
                if size_in_memory >= HUGE_PAGE
                    && let Err(error) = pages.advise(memmap2::Advice::HugePage)
                {
                    tracing::debug!(bytes, %error, "no huge pages");
                }
                pages
            }
        };
        Ok(Region { pages: Some(pages), len, cache: self.cache.clone(), _account: account })
    }
}

impl Deref for Region {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages.as_ref().map_or(&[], |pages| &pages[..self.len])
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pages.as_mut().map_or(&mut [], |pages| &mut pages[..self.len])
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            lock(&self.cache).put(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_outside_takes_the_place_of_what_is_kept() {
        let arena = Arena::new(Pool::Device, 1 << 20);
        drop([16, 32, 64].map(|pages| arena.alloc(pages * PAGE).unwrap()));
        let kept = |arena: &Arena| arena.usage().reserved - arena.usage().in_use;
        assert_eq!(kept(&arena), 112 * PAGE);
        let scratch = arena.reserve_outside(60 * PAGE).unwrap();
        // The regions of 32 and 16 pages fit, that of 64 does not.
        assert_eq!((kept(&arena), arena.usage().in_use), (64 * PAGE, 60 * PAGE));
        drop(scratch);
        assert_eq!((kept(&arena), arena.usage().in_use), (64 * PAGE, 0));
        drop(arena.reserve_outside(1 << 20).unwrap());
        assert_eq!(kept(&arena), 0);
    }

    #[test]
    fn regions_are_aligned_accounted_and_reused() {
        let arena = Arena::new(Pool::Device, 100 * PAGE);
        let mut first = arena.alloc(3 * PAGE + 1).unwrap();
        assert_eq!(first.as_ptr().addr() % PAGE as usize, 0);
        assert_eq!(first.len() as u64, 3 * PAGE + 1);
        first[0] = 7;
        let at = first.as_ptr();
        assert_eq!(
            arena.usage(),
            PoolUsage { in_use: 3 * PAGE + 1, reserved: 3 * PAGE + 1, capacity: 100 * PAGE, peak: 3 * PAGE + 1 }
        );
        drop(first);
        assert_eq!(
            arena.usage(),
            PoolUsage { in_use: 0, reserved: 4 * PAGE, capacity: 100 * PAGE, peak: 3 * PAGE + 1 }
        );
        let again = arena.alloc(4 * PAGE).unwrap();
        assert_eq!((again.as_ptr(), again[0]), (at, 7));
        // Much larger than what is asked for: not reused.
        drop(again);
        let small = arena.alloc(1).unwrap();
        assert_ne!(small.as_ptr(), at);
    }

    #[test]
    fn what_is_kept_for_reuse_never_stands_in_the_way() {
        let arena = Arena::new(Pool::Pinned, 10 * PAGE);
        drop(arena.alloc(8 * PAGE).unwrap());
        let all = arena.alloc(10 * PAGE).unwrap();
        assert_eq!(arena.usage().reserved, 10 * PAGE);
        let refused =
            BackendError::OutOfMemory { pool: Pool::Pinned, requested: 1, in_use: 10 * PAGE, capacity: 10 * PAGE };
        assert_eq!(arena.alloc(1).unwrap_err(), refused);
        drop(all);
        assert!(arena.alloc(u64::MAX).is_err());
        assert_eq!(arena.usage().in_use, 0);
    }

    #[test]
    fn a_refusal_of_the_system_is_out_of_memory() {
        let arena = Arena::new(Pool::Device, u64::MAX);
        assert!(
            matches!(arena.alloc(1 << 62), Err(BackendError::OutOfMemory { requested, in_use: 0, .. }) if requested == 1 << 62)
        );
        assert!(arena.alloc(1).is_ok());
    }
}
