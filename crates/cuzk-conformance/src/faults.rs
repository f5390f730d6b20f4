//! A device that fails when a test says so, around any other one.
//!
//! ```
//! use cuzk_backend::{BackendError, noop::Noop};
//! use cuzk_conformance::faults::{Fault, Faults, Trigger};
//!
//! let faults = Faults::new();
//! let device = faults.around(Noop::new(1 << 20));
//! faults.inject(Trigger::Allocation(1), Fault::OutOfMemory);
//! let first = device.alloc(64)?;
//! assert!(matches!(device.alloc(64), Err(BackendError::OutOfMemory { in_use: 64, .. })));
//! assert!(device.alloc(64).is_ok(), "once");
//! # drop(first);
//! # Ok::<(), BackendError>(())
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use cuzk_backend::{
    AssignmentId, AssignmentView, BackendError, BasesId, BasesSpec, BufferId, DensityId, Device, DeviceInfo, DeviceOps,
    EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView, MemoryUsage, MsmOperands, NttPlan,
    Operation, PendingId, Pool, QuotientPlan, Result, StreamId, Workspace,
};

macro_rules! calls {
    ($($name:ident = $method:literal),* $(,)?) => {
        /// A method of [`DeviceOps`] that can fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each is the method of that name")]
        pub enum Call {
            $($name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The method's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $method,)*
                }
            }
        }
    };
}

calls! {
    Memory = "memory",
    BufferCreate = "buffer_create",
    HostCreate = "host_create",
    StreamCreate = "stream_create",
    EventRecord = "event_record",
    StreamWait = "stream_wait",
    EventQuery = "event_query",
    EventWait = "event_wait",
    EventElapsed = "event_elapsed",
    Upload = "upload",
    Download = "download",
    UploadBytes = "upload_bytes",
    DownloadBytes = "download_bytes",
    FillZero = "fill_zero",
    Ntt = "ntt",
    Quotient = "quotient",
    MatrixCreate = "matrix_create",
    DensityCreate = "density_create",
    AssignmentCreate = "assignment_create",
    Evaluate = "evaluate",
    BasesCreate = "bases_create",
    BasesWrite = "bases_write",
    BasesFinish = "bases_finish",
    Msm = "msm",
    PendingQuery = "pending_query",
    PendingWait = "pending_wait",
    FixedBaseMul = "fixed_base_mul",
}

impl Call {
    /// Whether it takes memory, if only a workspace.
    pub fn allocates(self) -> bool {
        matches!(
            self,
            Self::BufferCreate
                | Self::HostCreate
                | Self::Ntt
                | Self::Quotient
                | Self::MatrixCreate
                | Self::DensityCreate
                | Self::AssignmentCreate
                | Self::BasesCreate
                | Self::Msm
        )
    }
}

/// When something goes wrong. Counts are from 0, and begin when the fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// At that call of a method.
    Call(Call, u64),
    /// At that call of any method that [allocates](Call::allocates).
    Allocation(u64),
    /// At that call of any method.
    Any(u64),
}

impl Trigger {
    /// One call passes: whether this is it, and what is left to wait for if not.
    fn pass(self, call: Call) -> Result<Self, ()> {
        let (concerned, n) = match self {
            Self::Call(of, n) => (of == call, n),
            Self::Allocation(n) => (call.allocates(), n),
            Self::Any(n) => (true, n),
        };
        if !concerned {
            return Ok(self);
        }
        let n = n.checked_sub(1).ok_or(())?;
        Ok(match self {
            Self::Call(of, _) => Self::Call(of, n),
            Self::Allocation(_) => Self::Allocation(n),
            Self::Any(_) => Self::Any(n),
        })
    }
}

/// What goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused for lack of device memory.
    OutOfMemory,
    /// The call and all later ones say that the device is lost, until [`Faults::heal`].
    Lost,
    /// The call does not return until [`Faults::release`], and the device is lost then.
    Hang,
    /// The call does not begin until [`Faults::release`], and goes on as if nothing had been.
    Pause,
    /// The call panics.
    Panic,
    /// The lowest bit of a point or of bytes that come back from the device is flipped. Calls that give nothing back
    /// are not touched.
    WrongResult,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<(Trigger, Fault)>,
    counts: BTreeMap<Call, u64>,
    threads: BTreeMap<Call, BTreeSet<String>>,
    fired: Vec<(Call, Fault)>,
    lost: bool,
    /// Devices that have not been dropped.
    open: usize,
    hanging: usize,
    /// How often those who hang have been released.
    releases: u64,
}

/// The hand that makes devices fail. Clones are the same hand; a device that is wrapped twice shares its faults.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<(Mutex<State>, Condvar)>);

impl Faults {
    /// Nothing fails yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A device that behaves like `inner`, except where this says otherwise.
    pub fn around(&self, inner: impl DeviceOps + 'static) -> Device {
        self.around_shared(Arc::new(inner))
    }

    /// As [`Faults::around`], for what a backend has opened.
    pub fn around_shared(&self, inner: Arc<dyn DeviceOps>) -> Device {
        self.state().open += 1;
        Device::new(Faulty { inner, faults: self.clone() })
    }

    /// No panic happens while this is locked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many devices of this hand have not been closed: dropped with everything on them.
    pub fn open_devices(&self) -> usize {
        self.state().open
    }

    /// Lets something go wrong.
    pub fn inject(&self, trigger: Trigger, fault: Fault) {
        self.state().pending.push((trigger, fault));
    }

    /// Forgets what has not happened yet.
    pub fn clear(&self) {
        self.state().pending.clear();
    }

    /// How often a method has been called.
    pub fn count(&self, call: Call) -> u64 {
        self.state().counts.get(&call).copied().unwrap_or(0)
    }

    /// The names of the threads that have called a method.
    pub fn threads(&self, call: Call) -> BTreeSet<String> {
        self.state().threads.get(&call).cloned().unwrap_or_default()
    }

    /// How often methods that allocate have been called.
    pub fn allocations(&self) -> u64 {
        self.state().counts.iter().filter(|(call, _)| call.allocates()).map(|(_, n)| n).sum()
    }

    /// What has gone wrong so far.
    pub fn fired(&self) -> Vec<(Call, Fault)> {
        self.state().fired.clone()
    }

    /// How many calls hang or pause.
    pub fn hanging(&self) -> usize {
        self.state().hanging
    }

    /// Lets the calls that hang or pause return.
    pub fn release(&self) {
        self.state().releases += 1;
        self.0.1.notify_all();
    }

    /// A lost device answers again, as after it was opened anew.
    pub fn heal(&self) {
        self.state().lost = false;
    }
}

/// The device with the faults.
struct Faulty {
    inner: Arc<dyn DeviceOps>,
    faults: Faults,
}

impl Faulty {
    /// Before each call: whether its result is to be spoiled, or why it fails.
    fn enter(&self, call: Call) -> Result<bool> {
        let mut state = self.faults.state();
        *state.counts.entry(call).or_default() += 1;
        let current = thread::current();
        let name = current.name().unwrap_or("unnamed");
        let threads = state.threads.entry(call).or_default();
        if !threads.contains(name) {
            threads.insert(name.to_owned());
        }
        if state.lost {
            return Err(self.lost("it was lost before"));
        }
        let mut now = None;
        state.pending.retain_mut(|(trigger, fault)| match trigger.pass(call) {
            Ok(rest) => {
                *trigger = rest;
                true
            }
            // One fault a call; another one that is due comes with the next call.
            Err(()) if now.is_some() => true,
            Err(()) => {
                now = Some(*fault);
                false
            }
        });
        let Some(fault) = now else { return Ok(false) };
        state.fired.push((call, fault));
        match fault {
            Fault::OutOfMemory => {
                drop(state);
                let usage = self.inner.memory()?.device;
                let (in_use, capacity) = (usage.in_use, usage.capacity);
                Err(BackendError::OutOfMemory {
                    pool: Pool::Device,
                    requested: capacity - in_use + 1,
                    in_use,
                    capacity,
                })
            }
            Fault::Lost => {
                state.lost = true;
                Err(self.lost("a test lost it"))
            }
            Fault::Hang | Fault::Pause => {
                state.hanging += 1;
                let before = state.releases;
                let condvar = &self.faults.0.1;
                let mut state =
                    condvar.wait_while(state, |s| s.releases == before).unwrap_or_else(PoisonError::into_inner);
                state.hanging -= 1;
                if fault == Fault::Pause { Ok(false) } else { Err(self.lost("it hung")) }
            }
            Fault::Panic => {
                drop(state);
                panic!("{} panics because a test wants it", call.name())
            }
            Fault::WrongResult => Ok(true),
        }
    }

    fn lost(&self, cause: &str) -> BackendError {
        BackendError::DeviceLost { device: self.inner.info().uuid.clone(), cause: cause.to_owned() }
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.faults.state().open -= 1;
    }
}

/// Flips the lowest bit.
fn spoil(bytes: &mut [u8]) {
    if let Some(first) = bytes.first_mut() {
        *first ^= 1;
    }
}

impl DeviceOps for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn memory(&self) -> Result<MemoryUsage> {
        self.enter(Call::Memory)?;
        self.inner.memory()
    }

    fn release(&self, handle: Handle) {
        self.inner.release(handle);
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        self.inner.workspace(operation, room)
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        self.enter(Call::BufferCreate)?;
        self.inner.buffer_create(bytes)
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        self.enter(Call::HostCreate)?;
        self.inner.host_create(bytes)
    }

    fn stream_create(&self) -> Result<StreamId> {
        self.enter(Call::StreamCreate)?;
        self.inner.stream_create()
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        self.enter(Call::EventRecord)?;
        self.inner.event_record(stream)
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        self.enter(Call::StreamWait)?;
        self.inner.stream_wait(stream, event)
    }

    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        self.enter(Call::EventElapsed)?;
        self.inner.event_elapsed(from, to)
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.enter(Call::EventQuery)?;
        self.inner.event_query(event)
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.enter(Call::EventWait)?;
        self.inner.event_wait(event)
    }

    fn upload(
        &self,
        stream: StreamId,
        source: HostId,
        source_offset: u64,
        target: BufferId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        self.enter(Call::Upload)?;
        self.inner.upload(stream, source, source_offset, target, target_offset, bytes)
    }

    fn download(
        &self,
        stream: StreamId,
        source: BufferId,
        source_offset: u64,
        target: HostId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        self.enter(Call::Download)?;
        self.inner.download(stream, source, source_offset, target, target_offset, bytes)
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        self.enter(Call::UploadBytes)?;
        self.inner.upload_bytes(stream, source, target, offset)
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        let wrong = self.enter(Call::DownloadBytes)?;
        self.inner.download_bytes(stream, source, offset, target)?;
        if wrong {
            spoil(target);
        }
        Ok(())
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        self.enter(Call::FillZero)?;
        self.inner.fill_zero(stream, buffer, offset, bytes)
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        self.enter(Call::Ntt)?;
        self.inner.ntt(stream, plan, buffer)
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        self.enter(Call::Quotient)?;
        self.inner.quotient(stream, plan, a, b)
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        self.enter(Call::MatrixCreate)?;
        self.inner.matrix_create(matrix)
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        self.enter(Call::DensityCreate)?;
        self.inner.density_create(bits, len)
    }

    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        self.enter(Call::AssignmentCreate)?;
        self.inner.assignment_create(stream, assignment)
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        self.enter(Call::Evaluate)?;
        self.inner.evaluate(stream, matrix, assignment, out, out_len)
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        self.enter(Call::BasesCreate)?;
        self.inner.bases_create(spec)
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        self.enter(Call::BasesWrite)?;
        self.inner.bases_write(bases, first, points)
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.enter(Call::BasesFinish)?;
        self.inner.bases_finish(bases)
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        self.enter(Call::Msm)?;
        self.inner.msm(stream, bases, scalars)
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.enter(Call::PendingQuery)?;
        self.inner.pending_query(pending)
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        let wrong = self.enter(Call::PendingWait)?;
        self.inner.pending_wait(pending, out)?;
        if wrong {
            spoil(out);
        }
        Ok(())
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        self.enter(Call::FixedBaseMul)?;
        self.inner.fixed_base_mul(stream, plan, scalars, out)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        time::Duration,
    };

    use cuzk_backend::noop::Noop;

    use super::*;

    #[test]
    fn without_faults_the_device_is_the_inner_one() {
        let faults = Faults::new();
        let device = faults.around(Noop::new(1 << 16));
        let stream = device.stream().unwrap();
        let buffer = device.alloc(64).unwrap();
        stream.upload_bytes(&[5; 64], &buffer, 0).unwrap();
        let mut back = [0; 64];
        faults.inject(Trigger::Call(Call::DownloadBytes, 1), Fault::WrongResult);
        stream.download_bytes(&buffer, 0, &mut back).unwrap();
        assert_eq!(back, [5; 64]);
        stream.download_bytes(&buffer, 0, &mut back).unwrap();
        assert_eq!((back[0], &back[1..]), (4, &[5; 63][..]));
        assert_eq!((faults.count(Call::DownloadBytes), faults.allocations()), (2, 1));
        assert_eq!(faults.fired(), [(Call::DownloadBytes, Fault::WrongResult)]);
    }

    #[test]
    fn a_lost_device_stays_lost_until_it_is_healed() {
        let faults = Faults::new();
        let device = faults.around(Noop::new(1 << 16));
        faults.inject(Trigger::Any(1), Fault::Lost);
        let buffer = device.alloc(64).unwrap();
        for _ in 0..2 {
            assert!(matches!(device.stream(), Err(BackendError::DeviceLost { .. })));
        }
        drop(buffer);
        faults.heal();
        assert_eq!(device.memory().unwrap().device.in_use, 0, "releasing works on a lost device");
        assert_eq!(faults.open_devices(), 1);
        drop(device);
        assert_eq!(faults.open_devices(), 0);
    }

    #[test]
    fn a_panic_and_a_hang_come_once() {
        let faults = Faults::new();
        let device = faults.around(Noop::new(1 << 16));
        faults.inject(Trigger::Call(Call::StreamCreate, 0), Fault::Panic);
        assert!(catch_unwind(AssertUnwindSafe(|| device.stream())).is_err());
        assert!(device.stream().is_ok());
        faults.inject(Trigger::Call(Call::BufferCreate, 0), Fault::Hang);
        thread::scope(|scope| {
            let hung = scope.spawn(|| device.alloc(1).is_err());
            while faults.hanging() == 0 {
                thread::sleep(Duration::from_millis(1));
            }
            faults.release();
            assert!(hung.join().unwrap());
        });
        assert!(device.alloc(1).is_ok());
    }
}
