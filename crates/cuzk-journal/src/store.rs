//! The database, opened again when it has failed.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::{PoisonError, RwLock},
};

use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, WriteTransaction,
    backends::FileBackend,
};

use crate::{
    Error,
    bodies::is_full,
    disk::{Disk, Storage},
    ids::{Epochs, random},
    lock::Identity,
    record::{EPOCHS, JOBS, META, NAMES, REQUESTS, RESULTS, State, Stored},
};

/// Pages that stay in memory: those of what is under way, of the names that are looked up, and on the ways to them. A
/// kept job has about 600 bytes, so this is what ended jobs take of memory at most.
const CACHE_BYTES: usize = 4 << 20;
/// Below this the database's file is not worth being made smaller.
const COMPACT_FROM: u64 = 4 << 20;

/// Opens the storage; called again after a failure.
pub(crate) type Opener = Box<dyn Fn() -> io::Result<Storage> + Send + Sync>;

/// The database. After an I/O error it is closed, because nobody knows what of it is in memory only, and opened again
/// by the next write, from what is on disk.
pub(crate) struct Store {
    path: PathBuf,
    opener: Opener,
    opened: RwLock<Option<Opened>>,
}

/// Whether a database may be made where there is none.
pub(crate) type Make<'a> = &'a dyn Fn() -> Result<(), Error>;

struct Opened {
    database: Database,
    disk: Disk,
}

/// What a database says when it is opened.
pub(crate) struct Contents {
    /// The random halves of the ids that were given.
    pub(crate) epochs: Epochs,
    /// No job has had this number or a higher one.
    pub(crate) next: u64,
    /// Jobs that have not ended.
    pub(crate) unfinished: BTreeMap<u64, Stored>,
    /// Ended ones: when, and number.
    pub(crate) ended: Vec<(u64, u64)>,
}

/// What is wrong, in this crate's words.
pub(crate) fn failed(path: &Path, error: impl Into<redb::Error>) -> Error {
    match error.into() {
        redb::Error::Corrupted(cause) => Error::Corrupt { path: path.to_owned(), cause },
        redb::Error::Io(cause) if cause.kind() == io::ErrorKind::InvalidData => {
            Error::Corrupt { path: path.to_owned(), cause: cause.to_string() }
        }
        redb::Error::Io(cause) if is_full(&cause) => {
            Error::Full { path: path.to_owned(), needed: 0, cause: cause.into() }
        }
        redb::Error::Io(cause) => Error::Io { doing: "use", path: path.to_owned(), cause: cause.into() },
        error => Error::Database(error.to_string()),
    }
}

impl Store {
    /// Opens the database, or makes one if that is allowed.
    pub(crate) fn open(path: PathBuf, opener: Opener, make: Make<'_>) -> Result<(Self, Contents), Error> {
        let store = Self { path, opener, opened: RwLock::new(None) };
        store.open_or_make(make)?;
        let contents = store.contents()?;
        Ok((store, contents))
    }

    /// A database in a file that is there, and is this one each time.
    pub(crate) fn file(path: &Path, identity: Identity) -> Opener {
        let path = path.to_owned();
        Box::new(move || {
            let file = OpenOptions::new().read(true).write(true).open(&path)?;
            if Identity::of_file(&file)? != identity {
                return Err(io::Error::other("it was replaced by another file"));
            }
            let backend = FileBackend::new(file).map_err(io::Error::other)?;
            Ok(Box::new(backend))
        })
    }

    fn error(&self, error: impl Into<redb::Error>) -> Error {
        failed(&self.path, error)
    }

    /// Opens the database if it is not open.
    pub(crate) fn reopen(&self) -> Result<(), Error> {
        let gone = || Error::Corrupt { path: self.path.clone(), cause: "it was there before and is empty".to_owned() };
        self.open_or_make(&|| Err(gone()))
    }

    fn open_or_make(&self, make: Make<'_>) -> Result<(), Error> {
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            let storage = (self.opener)().map_err(|cause| self.error(redb::Error::Io(cause)))?;
            let disk = Disk::open(storage, &self.path, make)?;
            let new = disk.len().map_err(|cause| self.error(redb::Error::Io(cause)))? == 0;
            if new {
                make()?;
            }
            let mut builder = Builder::new();
            builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(!new);
            let mut database = builder.create_with_backend(disk.clone()).map_err(|error| self.error(error))?;
            if new {
                self.set_up(&database)?;
                disk.ready().map_err(|cause| self.error(redb::Error::Io(cause)))?;
            } else if disk.database_bytes() > COMPACT_FROM {
                self.compact(&mut database, &disk)?;
            }
            *opened = Some(Opened { database, disk });
        }
        Ok(())
    }

    fn set_up(&self, database: &Database) -> Result<(), Error> {
        let transaction = database.begin_write().map_err(|error| self.error(error))?;
        (|| {
            transaction.open_table(JOBS)?;
            transaction.open_table(REQUESTS)?;
            transaction.open_table(RESULTS)?;
            transaction.open_table(NAMES)?;
            transaction.open_table(EPOCHS)?;
            let mut meta = transaction.open_table(META)?;
            // Ids below the first entry of the table of their random halves have this one.
            meta.insert("journal", u64::from(random()))?;
            meta.insert("next", 1)?;
            Ok(())
        })()
        .map_err(|error: redb::TableError| self.error(error))?;
        transaction.commit().map_err(|error| self.error(error))
    }

    /// Makes the file smaller if three quarters of it are free.
    fn compact(&self, database: &mut Database, disk: &Disk) -> Result<(), Error> {
        let transaction = database.begin_write().map_err(|error| self.error(error))?;
        let stats = transaction.stats().map_err(|error| self.error(error))?;
        transaction.abort().map_err(|error| self.error(error))?;
        if stats.stored_bytes() + stats.metadata_bytes() < disk.database_bytes() / 4 {
            database.compact().map_err(|error| self.error(error))?;
            let kept = disk.database_bytes();
            disk.trim(kept).map_err(|cause| self.error(redb::Error::Io(cause)))?;
        }
        Ok(())
    }

    /// Closes the database after a failure.
    pub(crate) fn fail(&self) {
        let opened = self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(opened) = opened {
            opened.disk.sever();
        }
    }

    /// Closes the database for good.
    pub(crate) fn close(&self) {
        self.opened.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// The database's file, if it is open.
    pub(crate) fn disk(&self) -> Result<Disk, Error> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref().map(|opened| opened.disk.clone()).ok_or_else(unopened)
    }

    /// Reads.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>) -> Result<T, Error> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.as_ref().ok_or_else(unopened)?;
        let transaction = opened.database.begin_read().map_err(|error| self.error(error))?;
        read(&transaction).map_err(|error| self.error(error))
    }

    /// Writes in one transaction, which is on disk when this returns.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&WriteTransaction) -> Result<T, redb::Error>) -> Result<T, Error> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        let opened = opened.as_ref().ok_or_else(unopened)?;
        let transaction = opened.database.begin_write().map_err(|error| self.error(error))?;
        let result = write(&transaction).map_err(|error| self.error(error))?;
        transaction.commit().map_err(|error| self.error(error))?;
        Ok(result)
    }

    fn contents(&self) -> Result<Contents, Error> {
        self.read(|transaction| {
            let meta = transaction.open_table(META)?;
            let number = |name| -> Result<u64, redb::Error> {
                let value = meta.get(name)?.map(|value| value.value());
                value.ok_or_else(|| redb::Error::Corrupted(format!("the number {name:?} is missing")))
            };
            let journal = number("journal")?;
            let journal = u32::try_from(journal)
                .map_err(|_| redb::Error::Corrupted(format!("the journal's number {journal} has more than 32 bits")))?;
            let (mut unfinished, mut ended) = (BTreeMap::new(), Vec::new());
            for entry in transaction.open_table(JOBS)?.iter()? {
                let (number, row) = entry?;
                let stored = Stored::from_row(row.value()).map_err(redb::Error::Corrupted)?;
                match stored.state {
                    State::Unfinished => drop(unfinished.insert(number.value(), stored)),
                    State::Completed(at) | State::Failed(at) => ended.push((at, number.value())),
                }
            }
            ended.sort_unstable();
            let mut epochs = Epochs::new(journal);
            match transaction.open_table(EPOCHS) {
                Ok(table) => {
                    for entry in table.iter()? {
                        let (first, random) = entry?;
                        epochs.insert(first.value(), random.value());
                    }
                }
                // An earlier version of this crate made it; the first job makes the table.
                Err(redb::TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(Contents { epochs, next: number("next")?, unfinished, ended })
        })
    }
}

fn unopened() -> Error {
    Error::Database("it failed and is not open again yet".to_owned())
}
