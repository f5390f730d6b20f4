//! Device 0 is a `Noop`. The others fail: device 1 panics in every call, device 2 fails as the number of the event
//! says that is waited for, device 3 says what it was given.

use std::{fmt, sync::Arc};

use cuzk_backend::{
    AssignmentId, AssignmentView, Backend, BackendError, BasesId, BasesSpec, BufferId, DensityId, DeviceInfo,
    DeviceOps, DeviceOptions, EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView, MemoryUsage,
    MsmOperands, NttPlan, Operation, PendingId, Pool, QuotientPlan, Result, StreamId, Workspace, noop::NoopBackend,
};

pub(crate) const NOOP: u32 = 0;
pub(crate) const PANICKING: u32 = 1;
pub(crate) const FAILING: u32 = 2;
pub(crate) const ECHO: u32 = 3;

/// The backend of the plugin.
pub(crate) struct TestBackend(NoopBackend);

impl TestBackend {
    pub(crate) fn new() -> Self {
        Self(NoopBackend::new(4))
    }
}

impl Backend for TestBackend {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> &str {
        self.0.version()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.0.devices()
    }

    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>> {
        let noop = self.0.open(index, options)?;
        match index {
            PANICKING | FAILING | ECHO => Ok(Arc::new(Broken { info: noop.info().clone() })),
            NOOP if options.threads == u32::MAX => panic!("too many threads"),
            _ => Ok(noop),
        }
    }
}

/// One error of every kind, with texts that a careless boundary would damage.
pub(crate) fn errors() -> Vec<BackendError> {
    let long = "log ".repeat(10_000);
    vec![
        BackendError::OutOfMemory { pool: Pool::Device, requested: u64::MAX, in_use: 1 << 40, capacity: 3 },
        BackendError::OutOfMemory { pool: Pool::Pinned, requested: 4, in_use: 5, capacity: 6 },
        BackendError::DeviceLost { device: "GPU-1".into(), cause: "Xid 79: fallen off the bus".into() },
        BackendError::Unsupported { operation: "ntt".into(), reason: "2^33 scalars; at most 2^32".into() },
        BackendError::Precondition {
            operation: "msm".into(),
            what: "Größe".into(),
            expected: "≤ 3 ✓".into(),
            actual: "4\0\n".into(),
        },
        BackendError::NoSuchDevice { backend: "cuda".into(), wanted: "7".into(), available: String::new() },
        BackendError::SelfTest { device: "GPU-1".into(), check: "P + (-P) is not infinity".into() },
        BackendError::Panicked { operation: "quotient".into(), message: "index out of bounds".into() },
        BackendError::Driver { operation: "build".into(), message: long },
    ]
}

/// Fails in every call.
struct Broken {
    info: DeviceInfo,
}

impl Broken {
    /// Panics, or says what the operation was given.
    fn fail<T>(&self, operation: &str, given: fmt::Arguments<'_>) -> Result<T> {
        match self.info.index {
            ECHO => Err(BackendError::Driver { operation: operation.to_owned(), message: given.to_string() }),
            index => panic!("device {index} panics"),
        }
    }
}

impl DeviceOps for Broken {
    fn info(&self) -> &DeviceInfo {
        // The host asks for this when it opens the device.
        &self.info
    }

    fn release(&self, handle: Handle) {
        if self.info.index == PANICKING {
            panic!("{handle:?} cannot be released");
        }
    }

    fn memory(&self) -> Result<MemoryUsage> {
        self.fail("memory", format_args!(""))
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        self.fail("workspace", format_args!("{operation:?}, {room:?}"))
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        self.fail("buffer_create", format_args!("{bytes:?}"))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        self.fail("host_create", format_args!("{bytes:?}"))
    }

    fn stream_create(&self) -> Result<StreamId> {
        self.fail("stream_create", format_args!(""))
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        self.fail("event_record", format_args!("{stream:?}"))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        self.fail("stream_wait", format_args!("{stream:?}, {event:?}"))
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.fail("event_query", format_args!("{event:?}"))
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        match errors().into_iter().nth(event.0 as usize) {
            Some(error) if self.info.index == FAILING => Err(error),
            _ => self.fail("event_wait", format_args!("{event:?}")),
        }
    }

    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        self.fail("event_elapsed", format_args!("{from:?}, {to:?}"))
    }

    fn upload(&self, stream: StreamId, source: HostId, from: u64, target: BufferId, to: u64, bytes: u64) -> Result<()> {
        self.fail("upload", format_args!("{stream:?}, {source:?}, {from:?}, {target:?}, {to:?}, {bytes:?}"))
    }

    fn download(
        &self,
        stream: StreamId,
        source: BufferId,
        from: u64,
        target: HostId,
        to: u64,
        bytes: u64,
    ) -> Result<()> {
        self.fail("download", format_args!("{stream:?}, {source:?}, {from:?}, {target:?}, {to:?}, {bytes:?}"))
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        self.fail("upload_bytes", format_args!("{stream:?}, {source:?}, {target:?}, {offset:?}"))
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        self.fail("download_bytes", format_args!("{stream:?}, {source:?}, {offset:?}, {target:?}"))
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        self.fail("fill_zero", format_args!("{stream:?}, {buffer:?}, {offset:?}, {bytes:?}"))
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        self.fail("ntt", format_args!("{stream:?}, {plan:?}, {buffer:?}"))
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        self.fail("quotient", format_args!("{stream:?}, {plan:?}, {a:?}, {b:?}"))
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        self.fail("matrix_create", format_args!("{matrix:?}"))
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        self.fail("density_create", format_args!("{bits:?}, {len:?}"))
    }

    fn assignment_create(&self, stream: StreamId, view: &AssignmentView<'_>) -> Result<AssignmentId> {
        self.fail("assignment_create", format_args!("{stream:?}, {view:?}"))
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        self.fail("evaluate", format_args!("{stream:?}, {matrix:?}, {assignment:?}, {out:?}, {out_len:?}"))
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        self.fail("bases_create", format_args!("{spec:?}"))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        self.fail("bases_write", format_args!("{bases:?}, {first:?}, {points:?}"))
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.fail("bases_finish", format_args!("{bases:?}"))
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        self.fail("msm", format_args!("{stream:?}, {bases:?}, {scalars:?}"))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.fail("pending_query", format_args!("{pending:?}"))
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        self.fail("pending_wait", format_args!("{pending:?}, {out:?}"))
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        self.fail("fixed_base_mul", format_args!("{stream:?}, {plan:?}, {scalars:?}, {out:?}"))
    }
}
