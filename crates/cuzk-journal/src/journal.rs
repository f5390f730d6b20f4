//! The journal as its callers see it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use redb::ReadableTable;

use crate::{
    Error, NewJob, Options, Outcome, Record, Refusing, Usage,
    bodies::{Bodies, Body},
    ids::{Epochs, random},
    lock::{Lock, database_path, exposed, keep_names},
    record::{JOBS, NAMES, REQUESTS, RESULTS, Stored},
    store::{Contents, Opener, Store},
    writer::{Operation, ROOM_PER_JOB, Writer},
};

/// Requests up to this size are in the database: writing a file costs two more waits for the disk.
pub(crate) const INLINE_MAX: u64 = 32 * 1024;
/// Room that is looked for where nothing larger was refused.
const PROBE_BYTES: u64 = 1 << 20;

/// A directory of jobs. All methods may be called from several threads; those that write return when it is on disk.
pub struct Journal {
    store: Arc<Store>,
    bodies: Arc<Bodies>,
    shared: Arc<Shared>,
    next: AtomicU64,
    operations: Option<mpsc::Sender<Operation>>,
    thread: Option<JoinHandle<()>>,
}

/// What the callers' side and the writer's side both need.
pub(crate) struct Shared {
    pub(crate) directory: PathBuf,
    epochs: Epochs,
    state: Mutex<Counts>,
}

/// How large the journal is, what it keeps, and what it does not take.
struct Counts {
    usage: Usage,
    options: Options,
    /// Bytes of the largest job that the limit refused and that has not fitted since; 0: none.
    over_limit: u64,
    /// Bytes for which the disk had no room when that was tried last.
    disk_full: Option<u64>,
    /// Whether the database failed when it was used last.
    failing: bool,
    /// Whether a request's file could not be made when that was tried last.
    no_files: bool,
    /// Whether the database's file had not its name any more when that was looked for last.
    replaced: bool,
}

impl Counts {
    fn in_use(&self) -> u64 {
        self.usage.database_bytes.saturating_add(self.usage.request_bytes)
    }

    fn refusing(&self) -> Option<Refusing> {
        let (in_use, limit) = (self.in_use(), self.options.max_bytes);
        let requested = self.over_limit.max(ROOM_PER_JOB);
        if self.replaced {
            Some(Refusing::Replaced)
        } else if self.failing || self.no_files {
            Some(Refusing::Failing)
        } else if let Some(needed) = self.disk_full {
            Some(Refusing::Disk { needed })
        } else if in_use.saturating_add(requested) > limit {
            Some(Refusing::Limit { in_use, requested, limit })
        } else {
            None
        }
    }
}

impl Shared {
    pub(crate) fn id(&self, number: u64) -> String {
        self.epochs.id(number)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn options(&self) -> Options {
        self.counts().options.clone()
    }

    pub(crate) fn publish(&self, unfinished: u64, ended: u64, database_bytes: u64, reserved_bytes: u64) {
        let mut counts = self.counts();
        counts.usage = Usage { unfinished, ended, database_bytes, reserved_bytes, ..counts.usage };
        // What fits now is not refused any more.
        if counts.in_use().saturating_add(counts.over_limit) <= counts.options.max_bytes {
            counts.over_limit = 0;
        }
    }

    /// A commit succeeded, so the database works.
    pub(crate) fn committed(&self) {
        let mut counts = self.counts();
        counts.usage.commits += 1;
        counts.failing = false;
    }

    /// The database failed.
    pub(crate) fn broken(&self, error: &Error) {
        if error.is_full() {
            self.disk_full(PROBE_BYTES, 0);
        } else {
            self.counts().failing = true;
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.counts().failing
    }

    /// Whether the database's file has not its name any more.
    pub(crate) fn replaced(&self, replaced: bool) {
        self.counts().replaced = replaced;
    }

    /// What a probe found: whether there is no room for so many bytes, and whether no file can be made.
    pub(crate) fn probed(&self, disk_full: Option<u64>, no_files: bool) {
        let mut counts = self.counts();
        counts.disk_full = disk_full;
        counts.no_files = no_files;
    }

    /// The disk has no room for so many bytes, which `jobs` new jobs needed.
    pub(crate) fn disk_full(&self, needed: u64, jobs: usize) {
        let mut counts = self.counts();
        counts.usage.refused += jobs as u64;
        counts.disk_full = Some(counts.disk_full.map_or(needed, |before| before.max(needed)));
    }

    /// Claims disk for a request, if the limit allows it.
    fn claim(&self, request: u64, room: u64, in_file: bool) -> Result<(), Error> {
        let mut counts = self.counts();
        let (in_use, limit) = (counts.in_use(), counts.options.max_bytes);
        let requested = request.saturating_add(room);
        if in_use.saturating_add(requested) > limit {
            counts.usage.refused += 1;
            // What is larger than the limit never fits, which says nothing of other jobs.
            if requested <= limit {
                counts.over_limit = counts.over_limit.max(requested);
            }
            return Err(Error::OverBudget { in_use, requested, limit });
        }
        if in_file {
            counts.usage.request_bytes += request;
        }
        Ok(())
    }

    pub(crate) fn release(&self, request: u64) {
        let mut counts = self.counts();
        counts.usage.request_bytes = counts.usage.request_bytes.saturating_sub(request);
    }
}

impl Journal {
    /// Opens the journal in a directory, which is made if it does not exist.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process has it; [`Error::Orphans`], [`Error::Version`], [`Error::Corrupt`],
    /// [`Error::Io`]. Then everything in the directory is as it was.
    pub fn open(directory: &Path, options: Options) -> Result<Self, Error> {
        let lock = Lock::take(directory)?;
        let path = database_path(directory);
        let opener = Store::file(&path, lock.identity());
        let journal = Self::open_in(directory, options, path, opener, lock)?;
        keep_names(directory)?;
        Ok(journal)
    }

    pub(crate) fn open_in(
        directory: &Path,
        options: Options,
        path: PathBuf,
        opener: Opener,
        lock: Lock,
    ) -> Result<Self, Error> {
        let bodies = Arc::new(Bodies::open(directory.join("requests"))?);
        let found = bodies.all()?;
        let (store, contents) = Store::open(path.clone(), opener, &|| no_orphans(&bodies, &found, 0, &path, true))?;
        no_orphans(&bodies, &found, contents.next, &path, false)?;
        let store = Arc::new(store);
        settle_bodies(&bodies, &found, &contents)?;
        let in_files = contents.unfinished.values().filter(|job| job.in_file);
        let usage = Usage { request_bytes: in_files.map(|job| job.request_bytes).sum(), ..Usage::default() };
        let counts =
            Counts { usage, options, over_limit: 0, disk_full: None, failing: false, no_files: false, replaced: false };
        let mut epochs = contents.epochs.clone();
        let epoch = (contents.next, random());
        epochs.insert(epoch.0, epoch.1);
        let shared = Arc::new(Shared { directory: directory.to_owned(), epochs, state: Mutex::new(counts) });
        let writer = Writer::new(store.clone(), bodies.clone(), shared.clone(), &contents, epoch, lock);
        writer.set_aside()?;
        let (operations, receiver) = mpsc::channel();
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(&receiver));
        let thread = thread.map_err(|cause| Error::Io {
            doing: "start a thread for",
            path: directory.to_owned(),
            cause: Arc::new(cause),
        })?;
        Ok(Self {
            store,
            bodies,
            shared,
            next: AtomicU64::new(contents.next),
            operations: Some(operations),
            thread: Some(thread),
        })
    }

    fn send(&self, operation: Operation) {
        // The other end lives as long as this; if its thread panicked, the reply is dropped, which its waiter notices.
        if let Some(operations) = &self.operations {
            drop(operations.send(operation));
        }
    }

    /// Sends an operation and waits for what becomes of it.
    fn call(&self, operation: impl FnOnce(crate::writer::Reply) -> Operation) -> Result<(), Error> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.send(operation(Box::new(move |result| drop(sender.send(result)))));
        receiver.recv().unwrap_or(Err(Error::Closed))
    }

    /// Takes a job, whose request consists of `request`, one part after the other, and returns its id. When this
    /// returns, the job is on disk.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverBudget`] if there is no room, [`Error::Replaced`] if the database's file is
    /// not in its place any more; then, as with every error, nothing is left of it,
    /// unless the disk failed in such a way that it cannot be removed: then it may be there after the next opening.
    pub fn accept(&self, job: NewJob, request: &[&[u8]]) -> Result<String, Error> {
        let bytes: u64 = request.iter().map(|part| part.len() as u64).sum();
        let in_file = bytes > INLINE_MAX;
        self.shared.claim(bytes, job.result_room, in_file)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if in_file && let Err(error) = self.bodies.write(number, request) {
            self.shared.release(bytes);
            if error.is_full() {
                self.shared.disk_full(bytes, 1);
            } else {
                self.shared.counts().no_files = true;
            }
            return Err(error);
        }
        let request = (!in_file).then(|| request.concat());
        let job = Stored::new(job, bytes, in_file);
        self.call(|reply| Operation::Accept { number, job, request, reply })?;
        Ok(self.shared.id(number))
    }

    /// Counts an attempt at a job. It is written with the next commit, and nobody waits for that.
    pub fn begin(&self, id: &str) {
        if let Some(number) = self.shared.epochs.number(id) {
            self.send(Operation::Begin { number });
        }
    }

    /// Ends a job, and removes its request. When this returns, it is on disk.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], [`Error::AlreadyEnded`]; or it cannot be written: then ending it may be tried again,
    /// which is [`Error::AlreadyEnded`] if it had come as far as the disk.
    pub fn finish(&self, id: &str, outcome: Outcome, at_ms: u64) -> Result<(), Error> {
        let number = self.number(id)?;
        self.call(|reply| Operation::Finish { number, outcome, at_ms, reply })
    }

    /// As [`finish`](Self::finish), without waiting: the journal's thread calls `reply`, and waits for it.
    pub fn finish_then(
        &self,
        id: &str,
        outcome: Outcome,
        at_ms: u64,
        reply: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        match self.number(id) {
            Ok(number) => self.send(Operation::Finish { number, outcome, at_ms, reply: Box::new(reply) }),
            Err(error) => reply(Err(error)),
        }
    }

    /// Forgets jobs that ended more than [`Options::keep_for`] before `now_ms`. Nothing else does: `now_ms` should not
    /// be a clock's word alone, which may be wrong for a while. When this returns, whatever was asked for before is on
    /// disk; with a `now_ms` of 0, that is all it is for.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn expire(&self, now_ms: u64) -> Result<(), Error> {
        self.call(|reply| Operation::Expire { now_ms, reply })
    }

    /// Sees whether new jobs would be taken now, where the last answer was that they would not, or the disk may have
    /// filled up since: [`Usage::refusing`] tells. To be called every few seconds; it waits for the disk.
    pub fn probe(&self) {
        let bytes = self.shared.counts().disk_full.unwrap_or(0).max(PROBE_BYTES);
        let room = self.bodies.probe(bytes);
        // The reply is in the counts.
        drop(self.call(|reply| Operation::Probe { room, bytes, reply }));
    }

    /// Other options from now on. What is there and too much by them is forgotten with the next commit.
    pub fn set_options(&self, options: Options) {
        self.shared.counts().options = options;
    }

    fn number(&self, id: &str) -> Result<u64, Error> {
        self.shared.epochs.number(id).ok_or_else(|| Error::UnknownJob(id.to_owned()))
    }

    /// What is known of a job.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], or it cannot be read.
    pub fn record(&self, id: &str) -> Result<Record, Error> {
        let number = self.number(id)?;
        let stored = self.store.read(|transaction| Ok(Stored::read(&transaction.open_table(JOBS)?, number)?))?;
        stored.map(|stored| stored.record(id.to_owned())).ok_or_else(|| Error::UnknownJob(id.to_owned()))
    }

    /// The newest job of this name and input that has not failed.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn by_request(&self, request_id: &str, digest: &[u8; 32]) -> Result<Option<Record>, Error> {
        self.store.read(|transaction| {
            let Some(number) = transaction.open_table(NAMES)?.get((request_id, *digest))? else { return Ok(None) };
            let number = number.value();
            let stored = Stored::read(&transaction.open_table(JOBS)?, number)?;
            Ok(stored.map(|stored| stored.record(self.shared.id(number))))
        })
    }

    /// Jobs that have not ended, in the order of their ids' numbers, which is that of acceptance.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn unfinished(&self) -> Result<Vec<Record>, Error> {
        self.store.read(|transaction| {
            let mut records = Vec::new();
            for entry in transaction.open_table(JOBS)?.iter()? {
                let (number, row) = entry?;
                let stored = Stored::from_row(row.value()).map_err(redb::Error::Corrupted)?;
                if stored.state.ended_ms().is_none() {
                    records.push(stored.record(self.shared.id(number.value())));
                }
            }
            Ok(records)
        })
    }

    /// Jobs, newest first, at most `limit`.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Record>, Error> {
        self.store.read(|transaction| {
            let mut records = Vec::new();
            for entry in transaction.open_table(JOBS)?.iter()?.rev().take(limit) {
                let (number, row) = entry?;
                let stored = Stored::from_row(row.value()).map_err(redb::Error::Corrupted)?;
                records.push(stored.record(self.shared.id(number.value())));
            }
            Ok(records)
        })
    }

    /// The request of a job that has not ended.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], [`Error::AlreadyEnded`], [`Error::RequestLost`], or it cannot be read.
    pub fn request(&self, id: &str) -> Result<Vec<u8>, Error> {
        let number = self.number(id)?;
        let found = self.store.read(|transaction| {
            let Some(job) = Stored::read(&transaction.open_table(JOBS)?, number)? else { return Ok(None) };
            let inline = transaction.open_table(REQUESTS)?.get(number)?.map(|bytes| bytes.value().to_vec());
            Ok(Some((job, inline)))
        })?;
        match found {
            None => Err(Error::UnknownJob(id.to_owned())),
            Some((job, _)) if job.state.ended_ms().is_some() => Err(Error::AlreadyEnded(id.to_owned())),
            Some((_, Some(inline))) => Ok(inline),
            Some((job, None)) => match self.bodies.read(number) {
                Ok(bytes) if bytes.len() as u64 == job.request_bytes => Ok(bytes),
                Ok(bytes) => Err(lost(id, Some(bytes.len() as u64), job.request_bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Err(lost(id, None, job.request_bytes)),
                Err(cause) => Err(self.cannot_read(cause)),
            },
        }
    }

    /// Whether the request of an unfinished job is there, in full; its content is not read.
    ///
    /// # Errors
    /// [`Error::RequestLost`], or it cannot be told.
    pub fn check_request(&self, job: &Record) -> Result<(), Error> {
        if job.request_bytes <= INLINE_MAX {
            return Ok(());
        }
        match self.bodies.bytes(self.number(&job.id)?) {
            Ok(Some(bytes)) if bytes == job.request_bytes => Ok(()),
            Ok(found) => Err(lost(&job.id, found, job.request_bytes)),
            Err(cause) => Err(self.cannot_read(cause)),
        }
    }

    fn cannot_read(&self, cause: io::Error) -> Error {
        Error::Io { doing: "read", path: self.bodies.directory().to_owned(), cause: Arc::new(cause) }
    }

    /// The result, or the error, of a job that has ended; nothing if it has not.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], or it cannot be read.
    pub fn outcome(&self, id: &str) -> Result<Option<Vec<u8>>, Error> {
        let number = self.number(id)?;
        let found = self.store.read(|transaction| {
            if transaction.open_table(JOBS)?.get(number)?.is_none() {
                return Ok(None);
            }
            Ok(Some(transaction.open_table(RESULTS)?.get(number)?.map(|bytes| bytes.value().to_vec())))
        })?;
        found.ok_or_else(|| Error::UnknownJob(id.to_owned()))
    }

    /// What in the directory anybody on this machine can read, with its mode, if there is such a thing. What a journal
    /// makes is its owner's alone, but it may have been there before.
    pub fn exposed(&self) -> Option<(PathBuf, u32)> {
        exposed(&self.shared.directory, self.bodies.directory())
    }

    /// How large it is, as of the last commit. Reads no disk.
    pub fn usage(&self) -> Usage {
        let counts = self.shared.counts();
        Usage { max_bytes: counts.options.max_bytes, refusing: counts.refusing(), ..counts.usage }
    }
}

fn lost(job: &str, found: Option<u64>, expected: u64) -> Error {
    Error::RequestLost { job: job.to_owned(), found, expected }
}

/// That there is no request of an accepted job whose number the database, which gives `next` next, has not given.
fn no_orphans(bodies: &Bodies, found: &[Body], next: u64, database: &Path, empty: bool) -> Result<(), Error> {
    let orphans = || found.iter().filter(|body| !body.part && body.number >= next);
    if orphans().next().is_none() {
        return Ok(());
    }
    Err(Error::Orphans {
        requests: bodies.directory().to_owned(),
        files: orphans().count() as u64,
        bytes: orphans().map(|body| body.bytes).sum(),
        database: database.to_owned(),
        empty,
    })
}

/// Finishes what a crash interrupted: a request whose job is on record gets its lasting name, and what no unfinished
/// job needs is removed.
fn settle_bodies(bodies: &Bodies, found: &[Body], contents: &Contents) -> Result<(), Error> {
    let needed = |body: &Body| contents.unfinished.get(&body.number).is_some_and(|job| job.in_file);
    for body in found {
        if !needed(body) {
            bodies.clear(body)?;
        } else if body.part {
            bodies.keep(body.number);
        }
    }
    Ok(())
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.operations = None;
        // The last owner may be a reply, on the thread itself. Then it goes on to its end alone.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            // A panic was heard of by those who waited for a reply.
            drop(thread.join());
        }
    }
}
