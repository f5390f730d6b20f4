//! The database's file, with room set aside.
//!
//! A database that grows at the moment when a disk is full fails, and with it the end of a job that was accepted long
//! ago. So the file is longer than the database believes: the part behind the database's end is written with zeros,
//! hence allocated, before the job is accepted that may need it, and growth takes from there.
//!
//! | bytes | content |
//! |---|---|
//! | 0..16 | magic |
//! | 16..20 | version of the format, u32, little-endian |
//! | 20..24 | 1 once the first commit is on disk, u32; before that there is nothing to lose, and opening starts anew |
//! | 24..32 | length of the database, u64 |
//! | 4096.. | the database, then zeros |
//!
//! The length is one write within a sector, so it is the old one or the new one after a crash; both are lengths the
//! database knows, because it makes a new length durable before it relies on it.

use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use redb::StorageBackend;

use crate::Error;

const MAGIC: &[u8; 16] = b"cuzk-journal\0\r\n\x1a";
const HEADER_LEN: u64 = 4096;
const READY_AT: u64 = 20;
const LENGTH_AT: u64 = 24;
const ZEROS: &[u8] = &[0; 64 * 1024];

/// Version of the format of everything in a journal's directory.
pub(crate) const VERSION: u32 = 1;

/// Where bytes are kept.
pub(crate) type Storage = Box<dyn StorageBackend>;

/// A database's file with room set aside. Clones are the same file.
#[derive(Clone)]
pub(crate) struct Disk(Arc<Inner>);

struct Inner {
    storage: Storage,
    lengths: Mutex<Lengths>,
    /// Set when the file is opened anew: who still holds this one must not write any more.
    severed: AtomicBool,
}

#[derive(Clone, Copy)]
struct Lengths {
    /// Of the database.
    database: u64,
    /// Of the storage, without the header.
    storage: u64,
}

impl fmt::Debug for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = *self.lengths();
        write!(f, "Disk({} of {} bytes)", lengths.database, lengths.storage)
    }
}

impl Disk {
    /// Reads the header, or writes one if there is none and `make` allows it.
    pub(crate) fn open(storage: Storage, path: &Path, make: impl FnOnce() -> Result<(), Error>) -> Result<Self, Error> {
        let failed = |doing| move |cause| Error::Io { doing, path: path.to_owned(), cause: Arc::new(cause) };
        let corrupt = |cause: String| Error::Corrupt { path: path.to_owned(), cause };
        let mut len = storage.len().map_err(failed("read"))?;
        let mut header = [0; 32];
        if len >= HEADER_LEN {
            storage.read(0, &mut header).map_err(failed("read"))?;
        }
        let (magic, fields) = header.split_at(16);
        let field = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&fields[at..at + 4]);
            u32::from_le_bytes(bytes)
        };
        if len < HEADER_LEN || header == [0; 32] {
            // New, or its maker died before the header was there.
            if len > HEADER_LEN {
                return Err(corrupt(format!("{len} bytes without a header")));
            }
            make()?;
            let mut header = [0; HEADER_LEN as usize];
            header[..16].copy_from_slice(MAGIC);
            header[16..20].copy_from_slice(&VERSION.to_le_bytes());
            storage.set_len(HEADER_LEN).map_err(failed("write"))?;
            storage.write(0, &header).map_err(failed("write"))?;
            storage.sync_data().map_err(failed("write"))?;
            len = HEADER_LEN;
        } else if magic != MAGIC {
            return Err(corrupt("this is no journal".to_owned()));
        } else if field(0) != VERSION {
            return Err(Error::Version { path: path.to_owned(), found: field(0), supported: VERSION });
        }
        let ready = field(4) == 1;
        let database = if ready { u64::from(field(8)) | u64::from(field(12)) << 32 } else { 0 };
        let lengths = Lengths { database, storage: len - HEADER_LEN };
        if lengths.database > lengths.storage {
            return Err(corrupt(format!("the file ends after {} of {} bytes", lengths.storage, lengths.database)));
        }
        Ok(Self(Arc::new(Inner { storage, lengths: Mutex::new(lengths), severed: AtomicBool::new(false) })))
    }

    fn lengths(&self) -> MutexGuard<'_, Lengths> {
        self.0.lengths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the first commit is on disk.
    pub(crate) fn ready(&self) -> io::Result<()> {
        self.write_through(READY_AT, &1u32.to_le_bytes())?;
        self.0.storage.sync_data()
    }

    /// Bytes of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.lengths().storage + HEADER_LEN
    }

    /// Bytes of the database.
    pub(crate) fn database_bytes(&self) -> u64 {
        self.lengths().database
    }

    /// Sees to it that the database can grow by so much without more room from the system.
    pub(crate) fn set_aside(&self, bytes: u64) -> io::Result<()> {
        let mut lengths = self.lengths();
        let wanted = lengths.database.saturating_add(bytes);
        self.extend(&mut lengths, wanted)
    }

    /// Gives back what is set aside beyond so much.
    pub(crate) fn trim(&self, bytes: u64) -> io::Result<()> {
        let mut lengths = self.lengths();
        let wanted = lengths.database.saturating_add(bytes);
        if wanted < lengths.storage {
            self.check()?;
            self.0.storage.set_len(HEADER_LEN + wanted)?;
            lengths.storage = wanted;
        }
        Ok(())
    }

    /// Whoever holds this file cannot change it any more.
    pub(crate) fn sever(&self) {
        self.0.severed.store(true, Ordering::Release);
    }

    fn check(&self) -> io::Result<()> {
        if self.0.severed.load(Ordering::Acquire) { Err(io::Error::other("the file was opened anew")) } else { Ok(()) }
    }

    fn write_through(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        self.0.storage.write(at, bytes)
    }

    /// Makes the storage so long, with all of it allocated, or leaves it as it was.
    fn extend(&self, lengths: &mut Lengths, wanted: u64) -> io::Result<()> {
        if wanted <= lengths.storage {
            return Ok(());
        }
        self.check()?;
        let result = self.0.storage.set_len(HEADER_LEN + wanted).and_then(|()| self.zero(lengths.storage, wanted));
        match result {
            Ok(()) => lengths.storage = wanted,
            // If even that fails, the file is longer than is known here, which does no harm.
            Err(_) => drop(self.0.storage.set_len(HEADER_LEN + lengths.storage)),
        }
        result
    }

    /// Writes zeros, so that the room is not only promised.
    fn zero(&self, from: u64, to: u64) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let n = (to - at).min(ZEROS.len() as u64);
            self.0.storage.write(HEADER_LEN + at, &ZEROS[..n as usize])?;
            at += n;
        }
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.database_bytes())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.storage.read(HEADER_LEN.saturating_add(offset), out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        let mut lengths = self.lengths();
        let old = lengths.database;
        if len > old {
            // What the database once had there is still there.
            self.zero(old, len.min(lengths.storage))?;
            self.extend(&mut lengths, len)?;
        }
        self.0.storage.write(LENGTH_AT, &len.to_le_bytes())?;
        lengths.database = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()?;
        self.0.storage.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.write_through(HEADER_LEN.saturating_add(offset), data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.storage.close()
    }
}
