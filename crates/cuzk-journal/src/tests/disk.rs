//! A disk that loses what was not synced, fails on demand, and has a size.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use redb::StorageBackend;

/// Written as one or not at all.
const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(super) struct Simulated(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What is on the platter for sure.
    synced: Vec<u8>,
    /// Since the last sync.
    pending: Vec<Change>,
    /// Changes and syncs so far.
    steps: u64,
    /// The step at which it fails for good.
    fails_at: Option<u64>,
    /// Bytes that it holds.
    capacity: Option<usize>,
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Simulated {
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Inner { seen: bytes.clone(), synced: bytes, ..Inner::default() })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn steps(&self) -> u64 {
        self.inner().steps
    }

    pub(super) fn fail_at(&self, step: Option<u64>) {
        self.inner().fails_at = step;
    }

    pub(super) fn set_capacity(&self, capacity: Option<usize>) {
        self.inner().capacity = capacity;
    }

    /// Somebody empties it.
    pub(super) fn lose(&self) {
        *self.inner() = Inner::default();
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.inner().seen.clone()
    }

    /// What is on the disk after the power was cut: all that was synced, and any part of what was not, by sectors.
    pub(super) fn after_power_cut(&self, seed: u64) -> Vec<u8> {
        let inner = self.inner();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Everything, nothing, or a coin for each.
        let odds = [0.0, 1.0, 0.5, 0.9][random.gen_range(0..4)];
        let mut bytes = inner.synced.clone();
        for change in &inner.pending {
            match change {
                Change::Write(at, data) => {
                    for (i, sector) in data.chunks(SECTOR).enumerate() {
                        let at = at + i * SECTOR;
                        if random.gen_bool(odds) && at + sector.len() <= bytes.len() {
                            bytes[at..at + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
                // A longer file is not lost before what is written there: the journal relies on no order between them.
                Change::Length(len) if *len > bytes.len() || random.gen_bool(odds) => bytes.resize(*len, 0),
                Change::Length(_) => {}
            }
        }
        bytes
    }
}

impl Inner {
    fn step(&mut self) -> io::Result<()> {
        if self.fails_at.is_some_and(|at| self.steps >= at) {
            return Err(io::Error::other("as asked"));
        }
        self.steps += 1;
        Ok(())
    }
}

impl StorageBackend for Simulated {
    fn len(&self) -> io::Result<u64> {
        Ok(self.inner().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        let from = inner.seen.get(offset as usize..).and_then(|from| from.get(..out.len()));
        out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        let len = len as usize;
        if inner.capacity.is_some_and(|capacity| len > capacity.max(inner.seen.len())) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inner.seen.resize(len, 0);
        inner.pending.push(Change::Length(len));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        for change in std::mem::take(&mut inner.pending) {
            match change {
                Change::Write(at, data) => inner.synced[at..at + data.len()].copy_from_slice(&data),
                Change::Length(len) => inner.synced.resize(len, 0),
            }
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        inner.step()?;
        let at = offset as usize;
        let to = inner.seen.get_mut(at..at + data.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        to.copy_from_slice(data);
        inner.pending.push(Change::Write(at, data.to_vec()));
        Ok(())
    }
}
