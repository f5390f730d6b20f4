//! Device memory and pinned memory: accounted for before they are allocated, given back when pending work is done.
//!
//! Device memory comes from a pool of the driver that keeps what it has (no trimming, so nothing waits for the whole device).
//! Whoever uses memory on a stream marks it; when the owner lets go, an event is recorded on each marked stream that is still busy,
//! and the memory is free once these have passed. Nobody waits for that: it is noticed at the next allocation or query.
//!
//! Workspaces go by the order of their stream instead: they are made of what earlier work of that stream leaves as soon
//! as its owner has let go, done or not, so that the workspaces of one stream never add up and their sizes do not
//! depend on how far the device has got.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{self, CUresult};
use cuzk_backend::{BackendError, HostId, HostMemory, MemoryPool, Pool, PoolUsage, Reservation, Result};

use crate::driver::{Context, Event, Stream};

/// Locks; what these locks guard is consistent between any two statements, so a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The streams on which memory is used.
#[derive(Default)]
struct Users(Mutex<Vec<Arc<Stream>>>);

impl Users {
    fn unmark(&self, stream: &Arc<Stream>) {
        lock(&self.0).retain(|s| !Arc::ptr_eq(s, stream));
    }

    fn mark(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.0);
        if !streams.iter().any(|s| Arc::ptr_eq(s, stream)) {
            // What lives long, like a key, would otherwise keep every stream that ever used it.
            streams.retain(|s| !(s.is_abandoned() && s.is_idle()));
            streams.push(stream.clone());
        }
    }

    /// The streams that are still busy, and events after the last use on each.
    fn pending(&self) -> (Vec<Arc<Stream>>, Vec<Event>) {
        let streams = lock(&self.0);
        let busy = streams.iter().filter(|s| !s.is_idle());
        let marked = busy.filter_map(|s| match s.record() {
            Ok(event) => Some((s.clone(), event)),
            Err(_) => {
                // Without an event only waiting tells when the memory is free. On a lost device this fails at once, and
                // nothing is pending.
                let _nothing_is_pending = s.synchronize();
                None
            }
        });
        marked.unzip()
    }
}

/// What is to be given back, and when.
struct Deferred<T> {
    after: Vec<Event>,
    /// The streams of these events.
    streams: Vec<Arc<Stream>>,
    what: T,
    account: Reservation,
}

impl<T> Deferred<T> {
    /// Whether only this stream still uses it.
    fn only_on(&self, stream: &Arc<Stream>) -> bool {
        matches!(&self.streams[..], [one] if Arc::ptr_eq(one, stream))
    }
}

fn is_over<T>(deferred: &Deferred<T>) -> bool {
    // The error is reported by whoever waits for the work; here it only means that the work is over.
    deferred.after.iter().all(|e| e.is_done().unwrap_or(true))
}

/// The device's memory.
pub(crate) struct DevicePool {
    context: Arc<Context>,
    raw: sys::CUmemoryPool,
    /// Idle always: allocations and releases on it take effect at once.
    stream: Arc<Stream>,
    account: MemoryPool,
    deferred: Mutex<Vec<Deferred<u64>>>,
    /// Bytes that tables of the backend's own hold: given up when the room is needed.
    cached: AtomicU64,
}

// SAFETY: the pool handle may be used from any thread; the driver locks it.
unsafe impl Send for DevicePool {}
// SAFETY: as above.
unsafe impl Sync for DevicePool {}

impl DevicePool {
    pub(crate) fn new(context: &Arc<Context>, ordinal: i32, capacity: u64) -> Result<Arc<Self>> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: plain data, for which zero means "none".
        let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = ordinal;
        // SAFETY: one handle is written.
        context.check("cuMemPoolCreate", unsafe { sys::cuMemPoolCreate(&mut raw, &properties) })?;
        let mut keep = u64::MAX;
        // SAFETY: the attribute is a number of 64 bits.
        let code = unsafe {
            sys::cuMemPoolSetAttribute(
                raw,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                ptr::from_mut(&mut keep).cast(),
            )
        };
        context.check("cuMemPoolSetAttribute", code)?;
        Ok(Arc::new(Self {
            context: context.clone(),
            raw,
            stream: Stream::new(context)?,
            account: MemoryPool::new(Pool::Device, capacity),
            deferred: Mutex::default(),
            cached: AtomicU64::new(0),
        }))
    }

    /// Gives back what is no longer in use.
    fn collect(&self) {
        let over: Vec<_> = lock(&self.deferred).extract_if(.., |d| is_over(d)).collect();
        for deferred in over {
            self.free(deferred.what);
        }
    }

    fn free(&self, at: u64) {
        if self.context.enter().is_ok() {
            // SAFETY: allocated from this pool, and no work that uses it is pending.
            unsafe { sys::cuMemFreeAsync(at, self.stream.raw()) };
        }
    }

    /// Allocates, aligned to 256.
    pub(crate) fn alloc(self: &Arc<Self>, bytes: u64) -> Result<DeviceMemory> {
        self.context.enter()?;
        self.collect();
        let account = self.account.reserve(bytes)?;
        let mut at = 0;
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory(bytes))?;
        // SAFETY: one address is written; the stream is idle, so the memory is there at once.
        match unsafe { sys::cuMemAllocFromPoolAsync(&mut at, size, self.raw, self.stream.raw()) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                drop(account);
                return Err(self.out_of_memory(bytes));
            }
            code => self.context.check("cuMemAllocFromPoolAsync", code)?,
        }
        self.stream.synchronize()?;
        Ok(DeviceMemory {
            pool: self.clone(),
            at,
            bytes,
            account: Some(account),
            users: Users::default(),
            cached: false,
        })
    }

    /// Allocates for work on one stream, aligned to 256. What only pending work of that stream still uses counts as
    /// free.
    pub(crate) fn alloc_on(self: &Arc<Self>, stream: &Arc<Stream>, bytes: u64) -> Result<DeviceMemory> {
        self.context.enter()?;
        self.collect();
        let size = usize::try_from(bytes).map_err(|_| self.out_of_memory(bytes))?;
        let mut deferred = lock(&self.deferred);
        let mut left: Vec<_> = deferred.extract_if(.., |d| d.only_on(stream)).collect();
        let mut account = self.account.reserve(0)?;
        // From one reservation to the other without a gap, in which somebody else might take it.
        let more = bytes.saturating_sub(left.iter().map(|d| d.account.bytes()).sum());
        match self.account.reserve(more) {
            Ok(more) => account.absorb(more),
            Err(refused) => {
                deferred.append(&mut left);
                return Err(refused);
            }
        }
        drop(deferred);
        for Deferred { what, account: freed, .. } in left {
            // SAFETY: allocated from this pool; all work that uses it stands before this in the stream.
            let code = unsafe { sys::cuMemFreeAsync(what, stream.raw()) };
            self.context.check("cuMemFreeAsync", code)?;
            account.absorb(freed);
        }
        account.resize(bytes)?;
        let mut at = 0;
        // SAFETY: one address is written; the memory is used in the order of the stream only.
        match unsafe { sys::cuMemAllocFromPoolAsync(&mut at, size, self.raw, stream.raw()) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                drop(account);
                return Err(self.out_of_memory(bytes));
            }
            code => self.context.check("cuMemAllocFromPoolAsync", code)?,
        }
        let users = Users::default();
        users.mark(stream);
        Ok(DeviceMemory { pool: self.clone(), at, bytes, account: Some(account), users, cached: false })
    }

    /// Bytes that may still be allocated for work on one stream, if the tables are given up.
    pub(crate) fn room_on(&self, stream: &Arc<Stream>) -> u64 {
        self.collect();
        let usage = self.account.usage();
        let left: u64 = lock(&self.deferred).iter().filter(|d| d.only_on(stream)).map(|d| d.account.bytes()).sum();
        let free = usage.capacity.saturating_sub(usage.in_use);
        (free + left + self.cached.load(Ordering::Acquire)).min(usage.capacity)
    }

    /// Allocates for a table that may be given up again; it does not count as in use.
    pub(crate) fn alloc_cached(self: &Arc<Self>, bytes: u64) -> Result<DeviceMemory> {
        let mut memory = self.alloc(bytes)?;
        self.cached.fetch_add(bytes, Ordering::AcqRel);
        memory.cached = true;
        Ok(memory)
    }

    fn out_of_memory(&self, requested: u64) -> BackendError {
        let usage = self.account.usage();
        BackendError::OutOfMemory { pool: Pool::Device, requested, in_use: usage.in_use, capacity: usage.capacity }
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        self.collect();
        let held = self.account.usage();
        PoolUsage {
            in_use: held.in_use.saturating_sub(self.cached.load(Ordering::Acquire)),
            reserved: held.in_use,
            ..held
        }
    }
}

impl Drop for DevicePool {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            let deferred = std::mem::take(&mut *lock(&self.deferred));
            for Deferred { after, what, .. } in deferred {
                // Freed behind the work that uses it, or, where that cannot be enqueued, when the work is done.
                for event in &after {
                    if self.stream.wait(event).is_err() {
                        let _over = event.wait();
                    }
                }
                self.free(what);
            }
            // SAFETY: every allocation holds an `Arc` of the pool, so none is left but those just freed, for which the driver
            // waits.
            unsafe { sys::cuMemPoolDestroy(self.raw) };
        }
    }
}

/// Device memory with its place in the account.
pub(crate) struct DeviceMemory {
    pool: Arc<DevicePool>,
    at: u64,
    bytes: u64,
    account: Option<Reservation>,
    users: Users,
    cached: bool,
}

impl DeviceMemory {
    /// The address; the memory stays until work enqueued on `stream` so far and until the owner lets go is done.
    pub(crate) fn on(&self, stream: &Arc<Stream>) -> u64 {
        self.users.mark(stream);
        self.at
    }

    /// Uses on `stream` are over before later ones on the other streams that were marked: these have waited for them.
    pub(crate) fn not_on(&self, stream: &Arc<Stream>) {
        self.users.unmark(stream);
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies bytes to it that are there when this returns, without regard to any stream's order: for new memory.
    pub(crate) fn fill(&self, offset: u64, source: &[u8]) -> Result<()> {
        let stream = &self.pool.stream;
        let end = offset.checked_add(source.len() as u64);
        assert!(end.is_some_and(|e| e <= self.bytes), "{} bytes at {offset} of {}", source.len(), self.bytes);
        // SAFETY: the range lies in this memory, as asserted; the source is borrowed until the copy is done.
        unsafe { stream.upload(self.at + offset, source)? };
        stream.synchronize()
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.cached {
            self.pool.cached.fetch_sub(self.bytes, Ordering::AcqRel);
        }
        let Some(account) = self.account.take() else { return };
        let (streams, after) = self.users.pending();
        if after.is_empty() {
            self.pool.free(self.at);
        } else {
            lock(&self.pool.deferred).push(Deferred { after, streams, what: self.at, account });
        }
    }
}

/// Pinned host memory, allocated once.
pub(crate) struct PinnedPool {
    context: Arc<Context>,
    base: *mut u8,
    account: MemoryPool,
    /// Free ranges: offset to length, neighbours joined.
    free: Mutex<BTreeMap<u64, u64>>,
    deferred: Mutex<Vec<Deferred<(u64, u64)>>>,
}

// SAFETY: the base address is only turned into slices by the owners of disjoint ranges.
unsafe impl Send for PinnedPool {}
// SAFETY: as above.
unsafe impl Sync for PinnedPool {}

/// Pinned memory is given out in whole pages.
pub(crate) const PAGE: u64 = 4096;

impl PinnedPool {
    pub(crate) fn new(context: &Arc<Context>, capacity: u64) -> Result<Arc<Self>> {
        context.enter()?;
        let capacity = capacity.next_multiple_of(PAGE);
        let mut base = ptr::null_mut();
        // SAFETY: one address is written. Portable: usable from every context.
        match unsafe { sys::cuMemHostAlloc(&mut base, capacity as usize, sys::CU_MEMHOSTALLOC_PORTABLE) } {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(BackendError::OutOfMemory {
                    pool: Pool::Pinned,
                    requested: capacity,
                    in_use: 0,
                    capacity: 0,
                });
            }
            code => context.check("cuMemHostAlloc", code)?,
        }
        // SAFETY: as many bytes were allocated. The contract calls them undefined; here they are read as bytes, so they are
        // given a value once.
        unsafe { base.cast::<u8>().write_bytes(0, capacity as usize) };
        Ok(Arc::new(Self {
            context: context.clone(),
            base: base.cast(),
            account: MemoryPool::new(Pool::Pinned, capacity),
            free: Mutex::new(BTreeMap::from([(0, capacity)])),
            deferred: Mutex::default(),
        }))
    }

    fn collect(&self) {
        let over: Vec<_> = lock(&self.deferred).extract_if(.., |d| is_over(d)).collect();
        for deferred in over {
            self.give_back(deferred.what);
        }
    }

    fn give_back(&self, (mut offset, mut len): (u64, u64)) {
        let mut free = lock(&self.free);
        if let Some((before, size)) = free.range(..offset).next_back().map(|(o, l)| (*o, *l))
            && before + size == offset
        {
            free.remove(&before);
            (offset, len) = (before, len + size);
        }
        if let Some(size) = free.remove(&(offset + len)) {
            len += size;
        }
        free.insert(offset, len);
    }

    /// Takes memory, aligned to a page.
    pub(crate) fn alloc(self: &Arc<Self>, bytes: u64) -> Result<PinnedMemory> {
        self.context.enter()?;
        self.collect();
        let size = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
        let account = self.account.reserve(size)?;
        let mut free = lock(&self.free);
        let Some((offset, len)) = free.iter().find(|(_, len)| **len >= size).map(|(o, l)| (*o, *l)) else {
            // The bytes are there, but not in one piece.
            drop(account);
            let usage = self.account.usage();
            return Err(BackendError::OutOfMemory {
                pool: Pool::Pinned,
                requested: size,
                in_use: usage.in_use,
                capacity: usage.capacity,
            });
        };
        free.remove(&offset);
        if len > size {
            free.insert(offset + size, len - size);
        }
        drop(free);
        // SAFETY: within the allocation.
        let at = unsafe { self.base.add(offset as usize) };
        Ok(PinnedMemory {
            pool: self.clone(),
            offset,
            size,
            at,
            bytes: bytes as usize,
            account: Some(account),
            users: Users::default(),
        })
    }

    pub(crate) fn usage(&self) -> PoolUsage {
        self.collect();
        let usage = self.account.usage();
        PoolUsage { reserved: usage.capacity, ..usage }
    }
}

impl Drop for PinnedPool {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            for deferred in std::mem::take(&mut *lock(&self.deferred)) {
                for event in &deferred.after {
                    let _over = event.wait();
                }
            }
            // SAFETY: allocated in `new`; every range in use holds an `Arc` of the pool, so none is left, and the work on those that
            // were let go of is over.
            unsafe { sys::cuMemFreeHost(self.base.cast()) };
        }
    }
}

/// A range of pinned memory.
pub(crate) struct PinnedMemory {
    pool: Arc<PinnedPool>,
    offset: u64,
    size: u64,
    at: *mut u8,
    bytes: usize,
    account: Option<Reservation>,
    users: Users,
}

// SAFETY: the range belongs to this value; who reads or writes it when is the contract of `HostMemory`.
unsafe impl Send for PinnedMemory {}
// SAFETY: as above.
unsafe impl Sync for PinnedMemory {}

impl PinnedMemory {
    /// The address, for a transfer on `stream`.
    pub(crate) fn on(&self, stream: &Arc<Stream>) -> *mut u8 {
        self.users.mark(stream);
        self.at
    }

    /// The address, for the host.
    pub(crate) fn address(&self) -> *const u8 {
        self.at
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let Some(account) = self.account.take() else { return };
        let (streams, after) = self.users.pending();
        if after.is_empty() {
            self.pool.give_back((self.offset, self.size));
        } else {
            lock(&self.pool.deferred).push(Deferred { after, streams, what: (self.offset, self.size), account });
        }
    }
}

/// What the caller holds of pinned memory.
pub(crate) struct Pinned {
    pub(crate) id: HostId,
    pub(crate) memory: Arc<PinnedMemory>,
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pinned bytes, {:?}", self.memory.bytes, self.id)
    }
}

impl HostMemory for Pinned {
    fn id(&self) -> HostId {
        self.id
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: initialised when the pool was filled; not called while lent, so the device does not write.
        unsafe { std::slice::from_raw_parts(self.memory.at, self.memory.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is the only such handle of this range.
        unsafe { std::slice::from_raw_parts_mut(self.memory.at, self.memory.bytes) }
    }
}
