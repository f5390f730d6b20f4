//! An opened device: its objects by number, and each operation of the contract.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use cuzk_backend::{
    AssignmentId, AssignmentView, BackendError, BasesId, BasesSpec, BufferId, DensityId, DeviceInfo, DeviceOps,
    EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView, MemoryUsage, MsmOperands, NttPlan,
    PendingId, Pool, QuotientPlan, Result, StreamId,
};
use cuzk_curve::CurveId;

use crate::{
    driver::{Context, Event, Stream},
    kernels::{CurveKernels, Kernels},
    memory::{DeviceMemory, DevicePool, Pinned, PinnedMemory, PinnedPool, lock},
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

    /// As `alloc`; nothing if there is no room.
    pub(crate) fn try_alloc(&self, bytes: u64) -> Result<Option<DeviceMemory>> {
        match self.alloc(bytes) {
            Err(BackendError::OutOfMemory { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    pub(crate) fn alloc_cached(&self, bytes: u64) -> Result<DeviceMemory> {
        self.pool.alloc_cached(bytes)
    }

    /// Bytes of device memory that may still be allocated.
    pub(crate) fn room(&self) -> u64 {
        self.pool.room()
    }

    pub(crate) fn out_of_memory(&self, pool: Pool, requested: u64) -> BackendError {
        let usage = match pool {
            Pool::Device => self.pool.usage(),
            Pool::Pinned => self.pinned.usage(),
        };
        BackendError::OutOfMemory { pool, requested, in_use: usage.in_use, capacity: usage.capacity }
    }
}

/// Live objects of one kind.
struct Table<T> {
    what: &'static str,
    objects: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Table<T> {
    fn new(what: &'static str) -> Self {
        Self { what, objects: Mutex::default() }
    }

    fn get(&self, id: u64) -> Result<Arc<T>> {
        lock(&self.objects).get(&id).cloned().ok_or_else(|| BackendError::Precondition {
            operation: "a call".to_owned(),
            what: format!("the handle of a {}", self.what),
            expected: "a live one of this device".to_owned(),
            actual: id.to_string(),
        })
    }

    fn insert(&self, id: u64, object: T) {
        lock(&self.objects).insert(id, Arc::new(object));
    }

    fn remove(&self, id: u64) {
        // The object is dropped after the lock.
        let removed = lock(&self.objects).remove(&id);
        drop(removed);
    }
}

/// An opened device.
pub(crate) struct CudaDevice {
    shared: Shared,
    next_id: AtomicU64,
    buffers: Table<DeviceMemory>,
    hosts: Table<PinnedMemoryOwner>,
    streams: Table<StreamOwner>,
    events: Table<Event>,
    matrices: Table<Matrix>,
    densities: Table<Density>,
    assignments: Table<Assignment>,
    bases: Table<Bases>,
    pendings: Table<Pending>,
}

struct PinnedMemoryOwner(Arc<PinnedMemory>);
struct StreamOwner(Arc<Stream>);

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
            next_id: AtomicU64::new(1),
            buffers: Table::new("buffer"),
            hosts: Table::new("pinned buffer"),
            streams: Table::new("stream"),
            events: Table::new("event"),
            matrices: Table::new("matrix"),
            densities: Table::new("density"),
            assignments: Table::new("assignment"),
            bases: Table::new("list of bases"),
            pendings: Table::new("pending result"),
        })
    }

    fn add<T>(&self, table: &Table<T>, object: T) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        table.insert(id, object);
        id
    }

    fn stream(&self, id: StreamId) -> Result<Arc<Stream>> {
        Ok(self.streams.get(id.0)?.0.clone())
    }
}

impl DeviceOps for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        let (driver_free, _) = self.shared.context.memory()?;
        Ok(MemoryUsage { device: self.shared.pool.usage(), pinned: self.shared.pinned.usage(), driver_free })
    }

    fn release(&self, handle: Handle) {
        match handle {
            Handle::Buffer(id) => self.buffers.remove(id.0),
            Handle::Host(id) => self.hosts.remove(id.0),
            Handle::Stream(id) => self.streams.remove(id.0),
            Handle::Event(id) => self.events.remove(id.0),
            Handle::Matrix(id) => self.matrices.remove(id.0),
            Handle::Density(id) => self.densities.remove(id.0),
            Handle::Assignment(id) => self.assignments.remove(id.0),
            Handle::Bases(id) => self.bases.remove(id.0),
            Handle::Pending(id) => self.pendings.remove(id.0),
        }
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        Ok(BufferId(self.add(&self.buffers, self.shared.alloc(bytes)?)))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        let memory = Arc::new(self.shared.pinned.alloc(bytes)?);
        let id = HostId(self.add(&self.hosts, PinnedMemoryOwner(memory.clone())));
        Ok(Box::new(Pinned { id, memory }))
    }

    fn stream_create(&self) -> Result<StreamId> {
        Ok(StreamId(self.add(&self.streams, StreamOwner(Stream::new(&self.shared.context)?))))
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        Ok(EventId(self.add(&self.events, self.stream(stream)?.record()?)))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        self.stream(stream)?.wait(&*self.events.get(event.0)?)
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.events.get(event.0)?.is_done()
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.events.get(event.0)?.wait()
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
        let (stream, source, target) = (self.stream(stream)?, self.hosts.get(source.0)?, self.buffers.get(target.0)?);
        // SAFETY: the ranges have been checked; pinned memory is not touched by the host while work on it is pending.
        unsafe {
            let from = std::slice::from_raw_parts(source.0.on(&stream).add(source_offset as usize), bytes as usize);
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
        let (stream, source, target) = (self.stream(stream)?, self.buffers.get(source.0)?, self.hosts.get(target.0)?);
        // SAFETY: as for `upload`.
        unsafe {
            stream.download(
                target.0.on(&stream).add(target_offset as usize),
                source.on(&stream) + source_offset,
                bytes as usize,
            )
        }
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        let (stream, target) = (self.stream(stream)?, self.buffers.get(target.0)?);
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: the range has been checked. A source that happens to be pinned is waited for below.
        unsafe { stream.upload(target.on(&stream) + offset, source)? };
        if self.shared.pinned.contains(source) { stream.synchronize() } else { Ok(()) }
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        let (stream, source) = (self.stream(stream)?, self.buffers.get(source.0)?);
        if !target.is_empty() {
            // SAFETY: the range has been checked; the copy is waited for while `target` is borrowed.
            unsafe { stream.download(target.as_mut_ptr(), source.on(&stream) + offset, target.len())? };
        }
        stream.synchronize()
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        let (stream, buffer) = (self.stream(stream)?, self.buffers.get(buffer.0)?);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range has been checked.
        unsafe { stream.zero(buffer.on(&stream) + offset, bytes as usize) }
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        let (stream, buffer) = (self.stream(stream)?, self.buffers.get(buffer.0)?);
        // SAFETY: the buffer's size has been checked, and it is marked as used by the stream.
        unsafe { ntt::transform(&self.shared, &stream, plan, buffer.on(&stream)) }
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        let (stream, a, b) = (self.stream(stream)?, self.buffers.get(a.0)?, self.buffers.get(b.0)?);
        // SAFETY: the buffers are different and their sizes have been checked; both are marked.
        unsafe { ntt::quotient(&self.shared, &stream, plan, a.on(&stream), b.on(&stream)) }
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        Ok(MatrixId(self.add(&self.matrices, Matrix::new(&self.shared, matrix)?)))
    }

    fn density_create(&self, bits: &[u64], _len: u64) -> Result<DensityId> {
        Ok(DensityId(self.add(&self.densities, Density::new(&self.shared, bits)?)))
    }

    fn assignment_create(&self, _stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        // Copied beside the stream: the memory is new, so no work can be waiting for it, and the slices must have been read.
        Ok(AssignmentId(self.add(&self.assignments, Assignment::new(&self.shared, assignment)?)))
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        let stream = self.stream(stream)?;
        let (matrix, assignment, out) =
            (self.matrices.get(matrix.0)?, self.assignments.get(assignment.0)?, self.buffers.get(out.0)?);
        // SAFETY: the output's size has been checked, and it is marked.
        unsafe { sparse::evaluate(&self.shared, &stream, &matrix, &assignment, out.on(&stream), out_len) }
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        Ok(BasesId(self.add(&self.bases, Bases::new(&self.shared, spec)?)))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        self.bases.get(bases.0)?.write(&self.shared, first, points)
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.bases.get(bases.0).map(|_| ())
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        let (stream, bases) = (self.stream(stream)?, self.bases.get(bases.0)?);
        let pending = match *scalars {
            MsmOperands::Dense { buffer, first, len } => {
                let buffer = self.buffers.get(buffer.0)?;
                let at = buffer.on(&stream) + 32 * first;
                // SAFETY: the range has been checked, and the buffer is marked.
                unsafe { msm::enqueue(&self.shared, &stream, &bases, Scalars::Dense { at, len })? }
            }
            MsmOperands::Assignment { assignment, first, len, density } => {
                let assignment = self.assignments.get(assignment.0)?;
                let density = density.map(|d| self.densities.get(d.0)).transpose()?;
                let scalars =
                    Scalars::Packed { assignment: &assignment, density: density.as_deref(), range: first..first + len };
                // SAFETY: nothing is dense here.
                unsafe { msm::enqueue(&self.shared, &stream, &bases, scalars)? }
            }
        };
        Ok(PendingId(self.add(&self.pendings, pending)))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.pendings.get(pending.0)?.is_done()
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        self.pendings.get(pending.0)?.finish(out)
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        let (stream, scalars, out) = (self.stream(stream)?, self.buffers.get(scalars.0)?, self.buffers.get(out.0)?);
        // SAFETY: the sizes have been checked, and both are marked.
        unsafe { msm::fixed_base(&self.shared, &stream, plan, scalars.on(&stream), out.on(&stream)) }
    }
}
