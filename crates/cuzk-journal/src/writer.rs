//! The thread that writes. Whatever waits is written in one commit, so that many callers share one wait for the disk.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    io,
    sync::{Arc, mpsc},
};

use redb::{ReadableTable, WriteTransaction};

use crate::{
    Error, Outcome, State,
    bodies::{Bodies, is_full},
    journal::{INLINE_MAX, Shared},
    lock::Lock,
    record::{EPOCHS, JOBS, META, NAMES, REQUESTS, RESULTS, Stored},
    store::{Contents, Store, failed},
};

/// Set aside for each result beside its bytes: its record is written anew, in pages that are not shared yet.
pub(crate) const ROOM_PER_JOB: u64 = 4096;
/// Set aside whatever there is: pages on the way from the roots to the leaves, of a few transactions.
const ROOM: u64 = 1 << 20;
/// Operations of one commit.
const BATCH: usize = 256;

/// Hears what became of an operation.
pub(crate) type Reply = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// Something to write.
pub(crate) enum Operation {
    /// A new job. The request is given here unless it is in a file.
    Accept { number: u64, job: Stored, request: Option<Vec<u8>>, reply: Reply },
    /// A job is begun.
    Begin { number: u64 },
    /// A job has ended.
    Finish { number: u64, outcome: Outcome, at_ms: u64, reply: Reply },
    /// Time has passed.
    Expire { now_ms: u64, reply: Reply },
    /// Whether new jobs would be taken: `room` says whether a file of so many bytes would.
    Probe { room: io::Result<()>, bytes: u64, reply: Reply },
}

impl Operation {
    fn reply(self) -> Option<Reply> {
        match self {
            Self::Accept { reply, .. }
            | Self::Finish { reply, .. }
            | Self::Expire { reply, .. }
            | Self::Probe { reply, .. } => Some(reply),
            Self::Begin { .. } => None,
        }
    }
}

/// A job that has not ended.
struct Open {
    room: u64,
    file_bytes: Option<u64>,
}

impl Open {
    fn of(job: &Stored) -> Self {
        Self { room: job.result_room, file_bytes: job.in_file.then_some(job.request_bytes) }
    }
}

/// The state of the journal, as of the last commit.
pub(crate) struct Writer {
    store: Arc<Store>,
    bodies: Arc<Bodies>,
    shared: Arc<Shared>,
    open: BTreeMap<u64, Open>,
    /// Ended jobs in the order of their ends: when, and number.
    ended: VecDeque<(u64, u64)>,
    /// Refused by a commit that failed and may be on disk for all that.
    withdrawn: BTreeMap<u64, Open>,
    /// The first number and the random half of the ids of this opening, and earlier halves that no job has any more:
    /// written with the first job.
    epoch: Option<Epoch>,
    /// Given back when the database is closed.
    lock: Lock,
}

struct Epoch {
    first: u64,
    random: u32,
    unused: Vec<u64>,
}

/// What changes in memory when a commit has succeeded.
#[derive(Default)]
struct Changes {
    ended: Vec<(u64, u64)>,
    forgotten: HashSet<u64>,
    /// Whether the random half of the new ids is on disk.
    epoch: bool,
    /// Operations that were refused for what they are.
    errors: HashMap<usize, Error>,
}

impl Writer {
    pub(crate) fn new(
        store: Arc<Store>,
        bodies: Arc<Bodies>,
        shared: Arc<Shared>,
        contents: &Contents,
        (first, random): (u64, u32),
        lock: Lock,
    ) -> Self {
        let open = contents.unfinished.iter().map(|(number, job)| (*number, Open::of(job))).collect();
        let ended: VecDeque<_> = contents.ended.iter().copied().collect();
        let numbers: BTreeSet<u64> =
            contents.unfinished.keys().copied().chain(ended.iter().map(|(_, number)| *number)).collect();
        let epoch = Some(Epoch { first, random, unused: contents.epochs.unused(&numbers, first) });
        Self { store, bodies, shared, open, ended, withdrawn: BTreeMap::new(), epoch, lock }
    }

    /// Sets aside what the jobs that are there need, as far as there is room, and says how large the journal is then.
    pub(crate) fn set_aside(&self) -> Result<(), Error> {
        let disk = self.store.disk()?;
        let done = match disk.set_aside(self.room(0) + disk.database_bytes()) {
            Err(cause) if !is_full(&cause) => Err(Error::Database(cause.to_string())),
            _ => Ok(()),
        };
        self.publish();
        done
    }

    /// Writes until the other end is dropped.
    pub(crate) fn run(mut self, operations: &mpsc::Receiver<Operation>) {
        while let Ok(first) = operations.recv() {
            let mut batch = vec![first];
            while batch.len() < BATCH
                && let Ok(next) = operations.try_recv()
            {
                batch.push(next);
            }
            self.write(batch);
            self.publish();
        }
        self.store.close();
    }

    /// Bytes that may be needed for the ends of all open jobs and so many bytes of new ones. The database grows by
    /// doubling, so it needs its own length besides.
    fn room(&self, new: u64) -> u64 {
        let results: u64 = self.open.values().map(|open| open.room.saturating_add(ROOM_PER_JOB)).sum();
        ROOM.saturating_add(results.saturating_add(new).saturating_mul(2))
    }

    fn write(&mut self, batch: Vec<Operation>) {
        if let Err(error) = self.store.reopen() {
            self.shared.broken(&error);
            return self.refuse(batch, &error);
        }
        let batch = self.check_place(batch);
        let mut batch = match self.make_room(self.probe(batch)) {
            Ok(batch) => batch,
            Err((batch, error)) => {
                self.shared.broken(&error);
                return self.refuse(batch, &error);
            }
        };
        if batch.is_empty() {
            return;
        }
        let changes = self.store.write(|transaction| self.apply(transaction, &mut batch));
        match changes {
            Ok(changes) => self.committed(batch, changes),
            Err(error) => {
                self.store.fail();
                self.shared.broken(&error);
                for operation in &batch {
                    if let Operation::Accept { number, job, .. } = operation {
                        self.withdrawn.insert(*number, Open::of(job));
                    }
                }
                reply_all(batch, &error);
            }
        }
    }

    /// Refuses before anything was written.
    fn refuse(&mut self, batch: Vec<Operation>, error: &Error) {
        for operation in &batch {
            if let Operation::Accept { number, job, .. } = operation {
                self.remove_request(*number, &Open::of(job));
            }
        }
        reply_all(batch, error);
    }

    fn remove_request(&self, number: u64, open: &Open) {
        if let Some(bytes) = open.file_bytes {
            self.bodies.remove(number);
            self.shared.release(bytes);
        }
    }

    /// Sees whether the database still has its name, where that matters: new jobs are refused if not, and what was
    /// accepted may end, since its callers are told that all the same.
    fn check_place(&mut self, batch: Vec<Operation>) -> Vec<Operation> {
        if !batch.iter().any(|operation| matches!(operation, Operation::Accept { .. } | Operation::Probe { .. })) {
            return batch;
        }
        let place = self.lock.check();
        self.shared.replaced(matches!(place, Err(Error::Replaced { .. })));
        let Err(error @ Error::Replaced { .. }) = place else { return batch };
        let (accepts, others): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|operation| matches!(operation, Operation::Accept { .. }));
        self.refuse(accepts, &error);
        others
    }

    /// Answers probes. While the database fails, they stay in the batch: only a commit can tell.
    fn probe(&self, batch: Vec<Operation>) -> Vec<Operation> {
        let mut rest = Vec::new();
        for operation in batch {
            let Operation::Probe { room, bytes, reply } = operation else {
                rest.push(operation);
                continue;
            };
            let no_files = room.as_ref().is_err_and(|error| !is_full(error));
            let database = self.set_aside_for(ROOM_PER_JOB + INLINE_MAX);
            let full = [&room, &database].into_iter().any(|room| room.as_ref().is_err_and(is_full));
            self.shared.probed(full.then_some(bytes), no_files);
            if let Err(error) = database.map_err(|cause| failed(&self.shared.directory, redb::Error::Io(cause)))
                && !error.is_full()
            {
                self.shared.broken(&error);
            }
            if self.shared.is_failing() {
                rest.push(Operation::Probe { room: Ok(()), bytes, reply });
            } else {
                reply(Ok(()));
            }
        }
        rest
    }

    /// Sets aside what new jobs of so many bytes need.
    fn set_aside_for(&self, new: u64) -> io::Result<()> {
        let disk = self.store.disk().map_err(io::Error::other)?;
        disk.set_aside(self.room(new).saturating_add(disk.database_bytes()))
    }

    /// Sets aside what new jobs need for their ends; without that, they are refused and the rest of the batch remains.
    fn make_room(&mut self, batch: Vec<Operation>) -> Result<Vec<Operation>, (Vec<Operation>, Error)> {
        let new = batch.iter().map(|operation| match operation {
            Operation::Accept { job, .. } => {
                let inline = if job.in_file { 0 } else { job.request_bytes };
                job.result_room.saturating_add(ROOM_PER_JOB).saturating_add(inline)
            }
            _ => 0,
        });
        let new: u64 = new.sum();
        if new == 0 {
            return Ok(batch);
        }
        let disk = match self.store.disk() {
            Ok(disk) => disk,
            Err(error) => return Err((batch, error)),
        };
        let needed = self.room(new).saturating_add(disk.database_bytes());
        let Err(cause) = disk.set_aside(needed) else { return Ok(batch) };
        if !is_full(&cause) {
            self.store.fail();
            return Err((batch, Error::Database(cause.to_string())));
        }
        let error = Error::Full { path: self.shared.directory.clone(), needed, cause: Arc::new(cause) };
        let (accepts, others): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|operation| matches!(operation, Operation::Accept { .. }));
        self.shared.disk_full(new, accepts.len());
        self.refuse(accepts, &error);
        Ok(others)
    }

    fn apply(&self, transaction: &WriteTransaction, batch: &mut [Operation]) -> Result<Changes, redb::Error> {
        let mut changes = Changes::default();
        let mut expire_at = None;
        for number in self.withdrawn.keys() {
            forget(transaction, *number)?;
        }
        for (i, operation) in batch.iter_mut().enumerate() {
            match operation {
                Operation::Accept { number, job, request, .. } => {
                    accept(transaction, *number, job, request.as_deref())?;
                    if let Some(epoch) = self.epoch.as_ref().filter(|_| !changes.epoch) {
                        begin_epoch(transaction, epoch)?;
                        changes.epoch = true;
                    }
                }
                Operation::Begin { number } => begin(transaction, *number)?,
                Operation::Finish { number, outcome, at_ms, .. } => {
                    match self.finish(transaction, *number, outcome, *at_ms)? {
                        Ok(()) => changes.ended.push((*at_ms, *number)),
                        Err(error) => drop(changes.errors.insert(i, error)),
                    }
                }
                Operation::Expire { now_ms, .. } => expire_at = expire_at.max(Some(*now_ms)),
                Operation::Probe { .. } => {}
            }
        }
        let options = self.shared.options();
        let count = self.ended.len() + changes.ended.len();
        let keep_for = u64::try_from(options.keep_for.as_millis()).unwrap_or(u64::MAX);
        let too_many = count.saturating_sub(options.keep_ended);
        let mut forgotten = HashSet::new();
        for (i, (at, number)) in self.ended.iter().chain(&changes.ended).enumerate() {
            // They stand in the order of their ends, which is not that of the times if the clock was set.
            if i < too_many || expire_at.is_some_and(|now| at.saturating_add(keep_for) < now) {
                forget(transaction, *number)?;
                forgotten.insert(*number);
            } else if expire_at.is_none() {
                break;
            }
        }
        changes.forgotten = forgotten;
        Ok(changes)
    }

    fn finish(
        &self,
        transaction: &WriteTransaction,
        number: u64,
        outcome: &Outcome,
        at_ms: u64,
    ) -> Result<Result<(), Error>, redb::Error> {
        let mut jobs = transaction.open_table(JOBS)?;
        let Some(mut job) = Stored::read(&jobs, number)? else {
            return Ok(Err(Error::UnknownJob(self.shared.id(number))));
        };
        if job.state != State::Unfinished {
            return Ok(Err(Error::AlreadyEnded(self.shared.id(number))));
        }
        let bytes = match outcome {
            Outcome::Completed(bytes) => {
                job.state = State::Completed(at_ms);
                bytes
            }
            Outcome::Failed(bytes) => {
                job.state = State::Failed(at_ms);
                unname(transaction, &job, number)?;
                bytes
            }
        };
        jobs.insert(number, job.row())?;
        transaction.open_table(RESULTS)?.insert(number, bytes.as_slice())?;
        transaction.open_table(REQUESTS)?.remove(number)?;
        Ok(Ok(()))
    }

    fn committed(&mut self, batch: Vec<Operation>, mut changes: Changes) {
        for (number, open) in std::mem::take(&mut self.withdrawn) {
            self.remove_request(number, &open);
        }
        for operation in &batch {
            if let Operation::Accept { number, job, .. } = operation {
                self.open.insert(*number, Open::of(job));
                if job.in_file {
                    self.bodies.keep(*number);
                }
            }
        }
        for (_, number) in &changes.ended {
            if let Some(open) = self.open.remove(number) {
                self.remove_request(*number, &open);
            }
        }
        self.ended.extend(&changes.ended);
        if !changes.forgotten.is_empty() {
            self.ended.retain(|(_, number)| !changes.forgotten.contains(number));
        }
        if changes.epoch {
            self.epoch = None;
        }
        self.shared.committed();
        self.trim();
        self.publish();
        for (i, operation) in batch.into_iter().enumerate() {
            let result = changes.errors.remove(&i).map_or(Ok(()), Err);
            if let Some(reply) = operation.reply() {
                reply(result);
            }
        }
    }

    /// Gives back room after a rush.
    fn trim(&self) {
        if let Ok(disk) = self.store.disk() {
            let room = self.room(0).saturating_add(disk.database_bytes());
            if disk.bytes() / 2 > room.saturating_add(disk.database_bytes()) {
                // Room that stays set aside does no harm.
                drop(disk.trim(room));
            }
        }
    }

    fn publish(&self) {
        let (database, reserved) = match self.store.disk() {
            Ok(disk) => (disk.bytes(), disk.bytes().saturating_sub(disk.database_bytes())),
            Err(_) => return,
        };
        self.shared.publish(self.open.len() as u64, self.ended.len() as u64, database, reserved);
    }
}

fn reply_all(batch: Vec<Operation>, error: &Error) {
    for operation in batch {
        if let Some(reply) = operation.reply() {
            reply(Err(error.clone()));
        }
    }
}

fn accept(
    transaction: &WriteTransaction,
    number: u64,
    job: &Stored,
    request: Option<&[u8]>,
) -> Result<(), redb::Error> {
    let mut meta = transaction.open_table(META)?;
    let next = meta.get("next")?.map_or(0, |next| next.value());
    meta.insert("next", next.max(number + 1))?;
    transaction.open_table(JOBS)?.insert(number, job.row())?;
    if let Some(request) = request {
        transaction.open_table(REQUESTS)?.insert(number, request)?;
    }
    if !job.request_id.is_empty() {
        transaction.open_table(NAMES)?.insert((job.request_id.as_str(), job.digest), number)?;
    }
    Ok(())
}

/// The ids of the numbers from here on have another random half.
fn begin_epoch(transaction: &WriteTransaction, epoch: &Epoch) -> Result<(), redb::Error> {
    let mut epochs = transaction.open_table(EPOCHS)?;
    for unused in &epoch.unused {
        epochs.remove(unused)?;
    }
    epochs.insert(epoch.first, epoch.random)?;
    Ok(())
}

fn begin(transaction: &WriteTransaction, number: u64) -> Result<(), redb::Error> {
    let mut jobs = transaction.open_table(JOBS)?;
    if let Some(mut job) = Stored::read(&jobs, number)? {
        job.attempts = job.attempts.saturating_add(1);
        jobs.insert(number, job.row())?;
    }
    Ok(())
}

/// Removes all that is known of a job.
fn forget(transaction: &WriteTransaction, number: u64) -> Result<(), redb::Error> {
    let mut jobs = transaction.open_table(JOBS)?;
    if let Some(job) = Stored::read(&jobs, number)? {
        unname(transaction, &job, number)?;
        jobs.remove(number)?;
        transaction.open_table(RESULTS)?.remove(number)?;
        transaction.open_table(REQUESTS)?.remove(number)?;
    }
    Ok(())
}

/// The job is not found by its name any more.
fn unname(transaction: &WriteTransaction, job: &Stored, number: u64) -> Result<(), redb::Error> {
    let mut names = transaction.open_table(NAMES)?;
    let name = (job.request_id.as_str(), job.digest);
    let newest = names.get(name)?.map(|newest| newest.value());
    if newest == Some(number) {
        names.remove(name)?;
    }
    Ok(())
}
