//! The memory of a device that computes nothing.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use super::lock;
use crate::{BackendError, HostId, HostMemory, MemoryPool, Pool, Reservation, Result};

/// A precondition that does not hold.
pub(super) fn broken(operation: &str, what: impl fmt::Display, expected: &str, actual: &str) -> BackendError {
    BackendError::Precondition {
        operation: operation.to_owned(),
        what: what.to_string(),
        expected: expected.to_owned(),
        actual: actual.to_owned(),
    }
}

/// Empty room for `bytes` bytes: a refusal of the system is an error like that of the pool, not an abort.
fn room(pool: Pool, account: &MemoryPool, bytes: u64, slack: u64) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    let fits = usize::try_from(bytes.saturating_add(slack)).is_ok_and(|n| room.try_reserve_exact(n).is_ok());
    let usage = account.usage();
    fits.then_some(room).ok_or(BackendError::OutOfMemory {
        pool,
        requested: bytes,
        in_use: usage.in_use,
        capacity: usage.capacity,
    })
}

/// A buffer. Bytes that nobody wrote read as zero and cost no page of the host, so that a test may allocate what a
/// real card has.
pub(super) struct DeviceMemory {
    /// The bytes up to the last one ever written; room for all is reserved.
    written: Mutex<Vec<u8>>,
    pub(super) size: u64,
    _account: Reservation,
}

impl DeviceMemory {
    pub(super) fn new(account: &MemoryPool, size: u64) -> Result<Self> {
        let reservation = account.reserve(size)?;
        let written = Mutex::new(room(Pool::Device, account, size, 0)?);
        Ok(Self { written, size, _account: reservation })
    }

    /// The range must lie within the buffer, here and below.
    pub(super) fn write(&self, offset: u64, source: &[u8]) {
        let mut written = lock(&self.written);
        let (start, end) = (offset as usize, offset as usize + source.len());
        if written.len() < end {
            written.resize(end, 0);
        }
        written[start..end].copy_from_slice(source);
    }

    pub(super) fn read(&self, offset: u64, target: &mut [u8]) {
        let written = lock(&self.written);
        let source = written.get(offset as usize..).unwrap_or_default();
        let known = source.len().min(target.len());
        target[..known].copy_from_slice(&source[..known]);
        target[known..].fill(0);
    }

    pub(super) fn zero(&self, offset: u64, bytes: u64) {
        let mut written = lock(&self.written);
        let end = written.len().min((offset + bytes) as usize);
        if let Some(part) = written.get_mut(offset as usize..end) {
            part.fill(0);
        }
    }
}

/// Bytes that begin at a multiple of [`Aligned::TO`].
pub(super) struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    const TO: usize = 4096;

    fn new(mut room: Vec<u8>, len: usize) -> Self {
        let start = room.as_ptr().addr().next_multiple_of(Self::TO) - room.as_ptr().addr();
        // Within the room, so the vector stays where it is.
        room.resize(start + len, 0);
        Self { bytes: room, start, len }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

/// The device's part of pinned memory. The bytes are here while they are lent, else in [`PinnedByHost`].
pub(super) struct Pinned {
    lent: Mutex<Option<Aligned>>,
    pub(super) size: u64,
    _account: Reservation,
}

impl Pinned {
    /// The device's part, and the bytes for the host.
    pub(super) fn new(account: &MemoryPool, size: u64) -> Result<(Arc<Self>, Aligned)> {
        let reservation = account.reserve(size)?;
        let room = room(Pool::Pinned, account, size, Aligned::TO as u64)?;
        let bytes = Aligned::new(room, size as usize);
        Ok((Arc::new(Self { lent: Mutex::new(None), size, _account: reservation }), bytes))
    }

    /// The host's part, which holds the bytes at first.
    pub(super) fn lend_to_host(self: &Arc<Self>, id: HostId, bytes: Aligned) -> PinnedByHost {
        PinnedByHost { id, pinned: self.clone(), own: Some(bytes) }
    }

    /// Uses the bytes, which the host must have lent.
    pub(super) fn with(&self, operation: &str, use_bytes: impl FnOnce(&mut [u8])) -> Result<()> {
        match &mut *lock(&self.lent) {
            Some(bytes) => {
                use_bytes(bytes.get_mut());
                Ok(())
            }
            None => Err(broken(operation, "the pinned memory", "lent to the device", "with the host")),
        }
    }
}

/// The host's part of pinned memory.
pub(super) struct PinnedByHost {
    id: HostId,
    pinned: Arc<Pinned>,
    own: Option<Aligned>,
}

impl fmt::Debug for PinnedByHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes", self.id, self.pinned.size)
    }
}

impl HostMemory for PinnedByHost {
    fn id(&self) -> HostId {
        self.id
    }

    fn bytes(&self) -> &[u8] {
        self.own.as_ref().map_or(&[], Aligned::get)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.own.as_mut().map_or(&mut [], Aligned::get_mut)
    }

    fn lend(&mut self) {
        if let Some(bytes) = self.own.take() {
            *lock(&self.pinned.lent) = Some(bytes);
        }
    }

    fn reclaim(&mut self) {
        if self.own.is_none() {
            self.own = lock(&self.pinned.lent).take();
        }
    }
}
