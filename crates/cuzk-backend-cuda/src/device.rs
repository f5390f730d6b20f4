//! An opened device: its objects by number, and each operation of the contract.

use std::sync::Arc;

use cuzk_backend::{
    AssignmentId, AssignmentView, BackendError, BasesId, BasesSpec, BufferId, DensityId, DeviceInfo, DeviceOps,
    EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView, MemoryUsage, MsmOperands, NttPlan,
    ObjectTypes, Objects, Operation, PendingId, Pool, PoolUsage, QuotientPlan, Result, StreamId, Workspace,
    check_range,
};
use cuzk_curve::CurveId;

use crate::{
    driver::{Context, Event, Stream},
    kernels::{CurveKernels, Kernels},
    memory::{DeviceMemory, DevicePool, Pinned, PinnedMemory, PinnedPool},
    msm::{self, Bases, Pending, Scalars},
    ntt,
    sparse::{self, Assignment, Density, Matrix},
};

/// What the operations share.
pub(crate) struct Shared {
    pub(crate) info: DeviceInfo,
    pub(crate) context: Arc<Context>,
    pub(crate) pinned: Arc<PinnedPool>,
    /// For copies beside the caller's streams.
    pub(crate) copies: Arc<Stream>,
    pub(crate) tables: ntt::Tables,
    kernels: Kernels,
    pool: Arc<DevicePool>,
}

impl Shared {
    pub(crate) fn kernels(&self, curve: CurveId) -> Result<Arc<CurveKernels>> {
        self.kernels.get(&self.context, curve)
    }

    /// Runs what allocates; if it does not fit, once more without the tables that were kept.
    pub(crate) fn with_room<T>(&self, mut run: impl FnMut() -> Result<T>) -> Result<T> {
        match run() {
            Err(BackendError::OutOfMemory { pool: Pool::Device, .. }) => {
                self.tables.clear();
                run()
            }
            result => result,
        }
    }

    pub(crate) fn alloc(&self, bytes: u64) -> Result<DeviceMemory> {
        self.with_room(|| self.pool.alloc(bytes))
    }

    pub(crate) fn alloc_cached(&self, bytes: u64) -> Result<DeviceMemory> {
        self.pool.alloc_cached(bytes)
    }

    /// Memory for work on one stream, in its order: see [`DevicePool::alloc_on`].
    pub(crate) fn alloc_on(&self, stream: &Arc<Stream>, bytes: u64) -> Result<DeviceMemory> {
        self.with_room(|| self.pool.alloc_on(stream, bytes))
    }

    /// As `alloc_on`; nothing if there is no room.
    pub(crate) fn try_alloc_on(&self, stream: &Arc<Stream>, bytes: u64) -> Result<Option<DeviceMemory>> {
        match self.alloc_on(stream, bytes) {
            Err(BackendError::OutOfMemory { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Bytes of device memory that work on a stream may still have.
    pub(crate) fn room_on(&self, stream: &Arc<Stream>) -> u64 {
        self.pool.room_on(stream)
    }

    pub(crate) fn usage(&self, pool: Pool) -> PoolUsage {
        match pool {
            Pool::Device => self.pool.usage(),
            Pool::Pinned => self.pinned.usage(),
        }
    }

    pub(crate) fn out_of_memory(&self, pool: Pool, requested: u64) -> BackendError {
        let usage = self.usage(pool);
        BackendError::OutOfMemory { pool, requested, in_use: usage.in_use, capacity: usage.capacity }
    }
}

/// A stream as the caller has it: when that is let go of, nothing more is enqueued on it.
struct CallersStream(Arc<Stream>);

impl Drop for CallersStream {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// What the tables hold.
struct Kinds;

impl ObjectTypes for Kinds {
    type Buffer = DeviceMemory;
    type Host = Arc<PinnedMemory>;
    type Stream = CallersStream;
    type Event = Event;
    type Matrix = Matrix;
    type Density = Density;
    type Assignment = Assignment;
    type Bases = Bases;
    type Pending = Pending;
}

/// An opened device.
pub(crate) struct CudaDevice {
    shared: Shared,
    objects: Objects<Kinds>,
}

impl CudaDevice {
    pub(crate) fn new(
        info: DeviceInfo,
        context: Arc<Context>,
        ordinal: i32,
        device_bytes: u64,
        pinned_bytes: u64,
    ) -> Result<Self> {
        Ok(Self {
            shared: Shared {
                info,
                pinned: PinnedPool::new(&context, pinned_bytes)?,
                copies: Stream::new(&context)?,
                tables: ntt::Tables::default(),
                kernels: Kernels::default(),
                pool: DevicePool::new(&context, ordinal, device_bytes)?,
                context,
            },
            objects: Objects::default(),
        })
    }

    /// The tables, unless the device is lost: then every call fails with the cause, whatever it is given.
    fn live(&self) -> Result<&Objects<Kinds>> {
        self.shared.context.check_live()?;
        Ok(&self.objects)
    }

    fn stream(&self, operation: &str, id: StreamId) -> Result<Arc<Stream>> {
        Ok(Arc::clone(&self.live()?.streams.get(operation, id.0)?.0))
    }
}

impl DeviceOps for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        let context = &self.shared.context;
        let (driver_free, _) = context.memory()?;
        let (device, pinned) = (self.shared.usage(Pool::Device), self.shared.usage(Pool::Pinned));
        Ok(MemoryUsage { device, pinned, driver_free, uploaded: context.uploaded() })
    }

    fn release(&self, handle: Handle) {
        self.objects.release(handle);
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        self.live()?;
        crate::workspace(self.shared.info.compute_units, operation, room)
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        Ok(BufferId(self.live()?.buffers.add(self.shared.alloc(bytes)?)))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        let objects = self.live()?;
        let memory = Arc::new(self.shared.pinned.alloc(bytes)?);
        Ok(Box::new(objects.hosts.add_with(|id| (memory.clone(), Pinned { id: HostId(id), memory }))))
    }

    fn stream_create(&self) -> Result<StreamId> {
        Ok(StreamId(self.live()?.streams.add(CallersStream(Stream::new(&self.shared.context)?))))
    }

    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        let at = |event: EventId| self.live()?.events.get("event_elapsed", event.0);
        at(to)?.nanoseconds_since(&*at(from)?)
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        let event = self.stream("event_record", stream)?.record_timed()?;
        Ok(EventId(self.objects.events.add(event)))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        const OP: &str = "stream_wait";
        self.stream(OP, stream)?.wait(&*self.objects.events.get(OP, event.0)?)
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.live()?.events.get("event_query", event.0)?.is_done()
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.live()?.events.get("event_wait", event.0)?.wait()
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
        let (stream, source, target) = (
            self.stream("upload", stream)?,
            self.objects.hosts.get("upload", source.0)?,
            self.objects.buffers.get("upload", target.0)?,
        );
        check_range("upload", "the pinned memory", source_offset, bytes, source.bytes() as u64)?;
        check_range("upload", "the buffer", target_offset, bytes, target.bytes())?;
        // SAFETY: the ranges have been checked; pinned memory is not touched by the host while work on it is pending.
        unsafe {
            let from = std::slice::from_raw_parts(source.on(&stream).add(source_offset as usize), bytes as usize);
            stream.upload(target.on(&stream) + target_offset, from)
        }
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
        let (stream, source, target) = (
            self.stream("download", stream)?,
            self.objects.buffers.get("download", source.0)?,
            self.objects.hosts.get("download", target.0)?,
        );
        check_range("download", "the buffer", source_offset, bytes, source.bytes())?;
        check_range("download", "the pinned memory", target_offset, bytes, target.bytes() as u64)?;
        // SAFETY: as for `upload`.
        unsafe {
            stream.download(
                target.on(&stream).add(target_offset as usize),
                source.on(&stream) + source_offset,
                bytes as usize,
            )
        }
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        let (stream, target) =
            (self.stream("upload_bytes", stream)?, self.objects.buffers.get("upload_bytes", target.0)?);
        check_range("upload_bytes", "the buffer", offset, source.len() as u64, target.bytes())?;
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: the range has been checked. A source that happens to be pinned is waited for below.
        unsafe { stream.upload(target.on(&stream) + offset, source)? };
        if self.shared.context.knows(source)? { stream.synchronize() } else { Ok(()) }
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        let (stream, source) =
            (self.stream("download_bytes", stream)?, self.objects.buffers.get("download_bytes", source.0)?);
        check_range("download_bytes", "the buffer", offset, target.len() as u64, source.bytes())?;
        if !target.is_empty() {
            // SAFETY: the range has been checked; the copy is waited for while `target` is borrowed.
            unsafe { stream.download(target.as_mut_ptr(), source.on(&stream) + offset, target.len())? };
        }
        stream.synchronize()
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        let (stream, buffer) = (self.stream("fill_zero", stream)?, self.objects.buffers.get("fill_zero", buffer.0)?);
        check_range("fill_zero", "the buffer", offset, bytes, buffer.bytes())?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range has been checked.
        unsafe { stream.zero(buffer.on(&stream) + offset, bytes as usize) }
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        let (stream, buffer) = (self.stream("ntt", stream)?, self.objects.buffers.get("ntt", buffer.0)?);
        // SAFETY: the buffer's size has been checked, and it is marked as used by the stream.
        unsafe { ntt::transform(&self.shared, &stream, plan, buffer.on(&stream)) }
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        let (stream, a, b) = (
            self.stream("quotient", stream)?,
            self.objects.buffers.get("quotient", a.0)?,
            self.objects.buffers.get("quotient", b.0)?,
        );
        // SAFETY: the buffers are different and their sizes have been checked; both are marked.
        unsafe { ntt::quotient(&self.shared, &stream, plan, a.on(&stream), b.on(&stream)) }
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        Ok(MatrixId(self.objects.matrices.add(Matrix::new(&self.shared, matrix)?)))
    }

    fn density_create(&self, bits: &[u64], _len: u64) -> Result<DensityId> {
        Ok(DensityId(self.objects.densities.add(Density::new(&self.shared, bits)?)))
    }

    fn assignment_create(&self, _stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        // Copied beside the stream: the memory is new, so no work can be waiting for it, and the slices must have been read.
        Ok(AssignmentId(self.objects.assignments.add(Assignment::new(&self.shared, assignment)?)))
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        let stream = self.stream("evaluate", stream)?;
        let (matrix, assignment, out) = (
            self.objects.matrices.get("evaluate", matrix.0)?,
            self.objects.assignments.get("evaluate", assignment.0)?,
            self.objects.buffers.get("evaluate", out.0)?,
        );
        // SAFETY: the output's size has been checked, and it is marked.
        unsafe { sparse::evaluate(&self.shared, &stream, &matrix, &assignment, out.on(&stream), out_len) }
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        Ok(BasesId(self.objects.bases.add(Bases::new(&self.shared, spec)?)))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        self.live()?.bases.get("bases_write", bases.0)?.write(&self.shared, first, points)
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.live()?.bases.get("bases_finish", bases.0)?.finish(&self.shared)
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        let (stream, bases) = (self.stream("msm", stream)?, self.objects.bases.get("msm", bases.0)?);
        let pending = match *scalars {
            MsmOperands::Dense { buffer, first, .. } => {
                let buffer = self.objects.buffers.get("msm", buffer.0)?;
                let at = buffer.on(&stream) + 32 * first;
                // SAFETY: the range has been checked, and the buffer is marked.
                unsafe { msm::enqueue(&self.shared, &stream, &bases, Scalars::Dense { at })? }
            }
            MsmOperands::Assignment { assignment, first, len, density } => {
                let assignment = self.objects.assignments.get("msm", assignment.0)?;
                let density = density.map(|d| self.objects.densities.get("msm", d.0)).transpose()?;
                let scalars =
                    Scalars::Packed { assignment: &assignment, density: density.as_deref(), range: first..first + len };
                // SAFETY: nothing is dense here.
                unsafe { msm::enqueue(&self.shared, &stream, &bases, scalars)? }
            }
        };
        Ok(PendingId(self.objects.pendings.add(pending)))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.live()?.pendings.get("pending_query", pending.0)?.is_done()
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        self.live()?.pendings.get("pending_wait", pending.0)?.finish(out)
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        let (stream, scalars, out) = (
            self.stream("fixed_base_mul", stream)?,
            self.objects.buffers.get("fixed_base_mul", scalars.0)?,
            self.objects.buffers.get("fixed_base_mul", out.0)?,
        );
        // SAFETY: the sizes have been checked, and both are marked.
        unsafe { msm::fixed_base(&self.shared, &stream, plan, scalars.on(&stream), out.on(&stream)) }
    }
}
