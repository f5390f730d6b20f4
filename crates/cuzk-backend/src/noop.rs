//! A device that computes nothing, so that schedulers and engines are tested without hardware.
//!
//! Buffers, pinned memory, streams, events and accounting are real; transfers move bytes. Operations that compute
//! write zeros; a multi-scalar multiplication yields infinity.
//!
//! It is as lazy as the contract allows: work is executed when something waits for it ([`DeviceOps::event_wait`],
//! [`DeviceOps::download_bytes`], [`DeviceOps::pending_wait`], or a wait of another stream that one of these needs),
//! and nothing else is executed with it. A query answers first and executes one entry of the queue then, so a caller
//! who polls gets on, but one who takes work for done because it was enqueued reads old bytes. Releasing a stream
//! finishes its work, as a real device would in the end. Handles that are unknown, and ranges outside of their
//! memory, are errors even when they are used directly.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{
    AssignmentId, AssignmentView, Backend, BackendError, BasesId, BasesSpec, BufferId, CoefficientIndices, DensityId,
    DeviceInfo, DeviceOps, DeviceOptions, EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView,
    MemoryPool, MemoryUsage, MsmOperands, NttPlan, PendingId, Pool, QuotientPlan, Reservation, Residency, Result,
    RowOffsets, StreamId, validate,
};

mod memory;
mod queue;
#[cfg(test)]
mod tests;

use cuzk_curve::CurveId;
use memory::{DeviceMemory, Pinned, Table, broken};
use queue::{Executor, Point, Queue, Work};

/// Locks; the state behind these locks is consistent between any two statements, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A backend whose devices are [`Noop`]s.
#[derive(Clone, Debug)]
pub struct NoopBackend {
    n_devices: u32,
}

impl NoopBackend {
    /// Bytes of each pool of a device that is opened without limits.
    pub const DEFAULT_POOL_BYTES: u64 = 1 << 30;

    /// A backend with this many devices.
    pub fn new(n_devices: u32) -> Self {
        Self { n_devices }
    }
}

impl Backend for NoopBackend {
    fn name(&self) -> &str {
        "noop"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok((0..self.n_devices).map(|index| info(index, Self::DEFAULT_POOL_BYTES)).collect())
    }

    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>> {
        if index >= self.n_devices {
            return Err(BackendError::NoSuchDevice {
                backend: self.name().to_owned(),
                wanted: index.to_string(),
                available: (0..self.n_devices).map(|i| i.to_string()).collect::<Vec<_>>().join(", "),
            });
        }
        let or_default = |bytes| if bytes == 0 { Self::DEFAULT_POOL_BYTES } else { bytes };
        Ok(Arc::new(Noop::with_pools(index, or_default(options.device_memory_limit), or_default(options.pinned_bytes))))
    }
}

fn info(index: u32, memory_bytes: u64) -> DeviceInfo {
    DeviceInfo {
        index,
        uuid: format!("noop-{index}"),
        name: "a device that computes nothing".to_owned(),
        driver: format!("noop {}", env!("CARGO_PKG_VERSION")),
        compute_units: 0,
        memory_bytes,
        features: String::new(),
        unusable: String::new(),
    }
}

/// An object of which only its size matters.
struct Loaded<T> {
    what: T,
    _account: Reservation,
}

/// The result of a multi-scalar multiplication.
struct Infinity {
    done: Point,
    bytes: u64,
    taken: AtomicBool,
}

/// A device that computes nothing; see the [module](self).
pub struct Noop {
    info: DeviceInfo,
    device: MemoryPool,
    pinned: MemoryPool,
    next_id: AtomicU64,
    executor: Executor,
    buffers: Table<Arc<DeviceMemory>>,
    hosts: Table<Arc<Pinned>>,
    streams: Table<Arc<Queue>>,
    events: Table<Point>,
    matrices: Table<Arc<Loaded<CurveId>>>,
    densities: Table<Arc<Loaded<()>>>,
    assignments: Table<Arc<Loaded<()>>>,
    bases: Table<Arc<Loaded<BasesSpec>>>,
    pendings: Table<Arc<Infinity>>,
}

impl Noop {
    /// A device whose two pools, its own and the pinned one, hold `capacity_bytes` each.
    pub fn new(capacity_bytes: u64) -> Self {
        Self::with_pools(0, capacity_bytes, capacity_bytes)
    }

    /// Device number `index` with pools of these capacities in bytes.
    pub fn with_pools(index: u32, device_bytes: u64, pinned_bytes: u64) -> Self {
        Self {
            info: info(index, device_bytes),
            device: MemoryPool::new(Pool::Device, device_bytes),
            pinned: MemoryPool::new(Pool::Pinned, pinned_bytes),
            next_id: AtomicU64::new(1),
            executor: Executor::default(),
            buffers: Table::new("buffer"),
            hosts: Table::new("pinned memory"),
            streams: Table::new("stream"),
            events: Table::new("event"),
            matrices: Table::new("matrix"),
            densities: Table::new("density"),
            assignments: Table::new("assignment"),
            bases: Table::new("bases"),
            pendings: Table::new("pending result"),
        }
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn load<T>(&self, pool: &MemoryPool, bytes: u64, what: T) -> Result<(u64, Arc<Loaded<T>>)> {
        Ok((self.next_id(), Arc::new(Loaded { what, _account: pool.reserve(bytes)? })))
    }

    fn enqueue(
        &self,
        operation: &str,
        stream: StreamId,
        run: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.streams.get(operation, stream.0)?.push(Work::Run(Box::new(run)));
        Ok(())
    }

    /// A buffer in which a range of bytes lies.
    fn buffer(&self, operation: &str, id: BufferId, offset: u64, bytes: u64) -> Result<Arc<DeviceMemory>> {
        let buffer = self.buffers.get(operation, id.0)?;
        validate::range(operation, "the buffer", offset, bytes, buffer.size)?;
        Ok(buffer)
    }

    fn host(&self, operation: &str, id: HostId, offset: u64, bytes: u64) -> Result<Arc<Pinned>> {
        let host = self.hosts.get(operation, id.0)?;
        validate::range(operation, "the pinned memory", offset, bytes, host.size)?;
        Ok(host)
    }
}

/// Bytes of 2^log_n scalars.
fn domain_bytes(operation: &str, curve: CurveId, log_n: u32) -> Result<u64> {
    validate::at_most(operation, "log_n", u64::from(curve.two_adicity()), u64::from(log_n))?;
    validate::product(operation, 1 << log_n, curve.scalar_bytes() as u64)
}

fn matrix_bytes(matrix: &MatrixView<'_>) -> u64 {
    let offsets = match matrix.row_offsets {
        RowOffsets::U32(offsets) => size_of_val(offsets),
        RowOffsets::U64(offsets) => size_of_val(offsets),
    };
    let coefficients = match matrix.coefficients {
        CoefficientIndices::U8(indices) => size_of_val(indices),
        CoefficientIndices::U16(indices) => size_of_val(indices),
        CoefficientIndices::U32(indices) => size_of_val(indices),
    };
    (offsets + size_of_val(matrix.columns) + coefficients + matrix.dictionary.len()) as u64
}

fn assignment_bytes(view: &AssignmentView<'_>) -> u64 {
    (size_of_val(view.ones) + size_of_val(view.wide) + size_of_val(view.rank) + view.wide_scalars.len()) as u64
}

impl DeviceOps for Noop {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        let (device, pinned) = (self.device.usage(), self.pinned.usage());
        Ok(MemoryUsage { device, pinned, driver_free: device.capacity - device.in_use })
    }

    fn release(&self, handle: Handle) {
        match handle {
            Handle::Buffer(id) => drop(self.buffers.remove(id.0)),
            Handle::Host(id) => drop(self.hosts.remove(id.0)),
            Handle::Stream(id) => {
                if let Some(stream) = self.streams.remove(id.0) {
                    // Whoever holds an event of it will be told what went wrong.
                    let _told_by_events = self.executor.run(&stream.end());
                }
            }
            Handle::Event(id) => drop(self.events.remove(id.0)),
            Handle::Matrix(id) => drop(self.matrices.remove(id.0)),
            Handle::Density(id) => drop(self.densities.remove(id.0)),
            Handle::Assignment(id) => drop(self.assignments.remove(id.0)),
            Handle::Bases(id) => drop(self.bases.remove(id.0)),
            Handle::Pending(id) => drop(self.pendings.remove(id.0)),
        }
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        validate::positive("buffer_create", "the number of bytes", bytes)?;
        let (id, buffer) = (self.next_id(), DeviceMemory::new(&self.device, bytes)?);
        self.buffers.insert(id, Arc::new(buffer));
        Ok(BufferId(id))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        validate::positive("host_create", "the number of bytes", bytes)?;
        let id = self.next_id();
        let (ours, theirs) = Pinned::new(&self.pinned, HostId(id), bytes)?;
        self.hosts.insert(id, ours);
        Ok(Box::new(theirs))
    }

    fn stream_create(&self) -> Result<StreamId> {
        let id = self.next_id();
        self.streams.insert(id, Arc::default());
        Ok(StreamId(id))
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        let (id, end) = (self.next_id(), self.streams.get("event_record", stream.0)?.end());
        self.events.insert(id, end);
        Ok(EventId(id))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        let event = self.events.get("stream_wait", event.0)?;
        self.streams.get("stream_wait", stream.0)?.push(Work::Wait(event));
        Ok(())
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.executor.poll(&self.events.get("event_query", event.0)?)
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.executor.run(&self.events.get("event_wait", event.0)?)
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
        let source = self.host("upload", source, source_offset, bytes)?;
        let target = self.buffer("upload", target, target_offset, bytes)?;
        let range = source_offset as usize..(source_offset + bytes) as usize;
        self.enqueue("upload", stream, move || source.with("upload", |s| target.write(target_offset, &s[range])))
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
        let source = self.buffer("download", source, source_offset, bytes)?;
        let target = self.host("download", target, target_offset, bytes)?;
        let range = target_offset as usize..(target_offset + bytes) as usize;
        self.enqueue("download", stream, move || target.with("download", |t| source.read(source_offset, &mut t[range])))
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        let target = self.buffer("upload_bytes", target, offset, source.len() as u64)?;
        let source = source.to_vec();
        self.enqueue("upload_bytes", stream, move || {
            target.write(offset, &source);
            Ok(())
        })
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        let source = self.buffer("download_bytes", source, offset, target.len() as u64)?;
        self.executor.run(&self.streams.get("download_bytes", stream.0)?.end())?;
        source.read(offset, target);
        Ok(())
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        let buffer = self.buffer("fill_zero", buffer, offset, bytes)?;
        self.enqueue("fill_zero", stream, move || {
            buffer.zero(offset, bytes);
            Ok(())
        })
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        let bytes = domain_bytes("ntt", plan.curve, plan.log_n)?;
        let buffer = self.buffer("ntt", buffer, 0, bytes)?;
        self.enqueue("ntt", stream, move || {
            buffer.zero(0, bytes);
            Ok(())
        })
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        let bytes = domain_bytes("quotient", plan.curve, plan.log_n)?;
        let (a, b) = (self.buffer("quotient", a, 0, bytes)?, self.buffer("quotient", b, 0, bytes)?);
        self.enqueue("quotient", stream, move || {
            a.zero(0, bytes);
            b.zero(0, bytes);
            Ok(())
        })
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        let (id, loaded) = self.load(&self.device, matrix_bytes(matrix), matrix.curve)?;
        self.matrices.insert(id, loaded);
        Ok(MatrixId(id))
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        validate::bitmap("density_create", "the bitmap", bits, len)?;
        let (id, loaded) = self.load(&self.device, size_of_val(bits) as u64, ())?;
        self.densities.insert(id, loaded);
        Ok(DensityId(id))
    }

    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        let (id, loaded) = self.load(&self.device, assignment_bytes(assignment), ())?;
        let copied = loaded.clone();
        self.enqueue("assignment_create", stream, move || {
            drop(copied);
            Ok(())
        })?;
        self.assignments.insert(id, loaded);
        Ok(AssignmentId(id))
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        let operands = (self.matrices.get("evaluate", matrix.0)?, self.assignments.get("evaluate", assignment.0)?);
        let bytes = validate::product("evaluate", out_len, operands.0.what.scalar_bytes() as u64)?;
        let out = self.buffer("evaluate", out, 0, bytes)?;
        self.enqueue("evaluate", stream, move || {
            out.zero(0, bytes);
            drop(operands);
            Ok(())
        })
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        let bytes = validate::product("bases_create", spec.count, spec.curve.affine_bytes(spec.group) as u64)?;
        let pool = match spec.residency {
            Residency::Device => &self.device,
            Residency::Pinned => &self.pinned,
        };
        let (id, loaded) = self.load(pool, bytes, *spec)?;
        self.bases.insert(id, loaded);
        Ok(BasesId(id))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        let spec = self.bases.get("bases_write", bases.0)?.what;
        let point = spec.curve.affine_bytes(spec.group);
        validate::equal("bases_write", "the bytes modulo a point's", 0, points.len() % point)?;
        validate::range("bases_write", "the points", first, (points.len() / point) as u64, spec.count)
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.bases.get("bases_finish", bases.0).map(drop)
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        let bases = self.bases.get("msm", bases.0)?;
        let spec = bases.what;
        // What the work uses is kept until it is done.
        let mut operands: Vec<Arc<dyn Any + Send + Sync>> = Vec::new();
        match *scalars {
            MsmOperands::Dense { buffer, first, len } => {
                let scalar = spec.curve.scalar_bytes() as u64;
                let (offset, bytes) =
                    (validate::product("msm", first, scalar)?, validate::product("msm", len, scalar)?);
                operands.push(self.buffer("msm", buffer, offset, bytes)?);
            }
            MsmOperands::Assignment { assignment, density, .. } => {
                operands.push(self.assignments.get("msm", assignment.0)?);
                if let Some(density) = density {
                    operands.push(self.densities.get("msm", density.0)?);
                }
            }
        }
        let queue = self.streams.get("msm", stream.0)?;
        queue.push(Work::Run(Box::new(move || {
            drop((bases, operands));
            Ok(())
        })));
        let id = self.next_id();
        let bytes = spec.curve.affine_bytes(spec.group) as u64;
        self.pendings.insert(id, Arc::new(Infinity { done: queue.end(), bytes, taken: AtomicBool::new(false) }));
        Ok(PendingId(id))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.executor.poll(&self.pendings.get("pending_query", pending.0)?.done)
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        let result = self.pendings.get("pending_wait", pending.0)?;
        validate::equal("pending_wait", "the bytes of the point", result.bytes, out.len() as u64)?;
        if result.taken.swap(true, Ordering::Relaxed) {
            return Err(broken("pending_wait", "the result", "still to be taken", "taken already"));
        }
        self.executor.run(&result.done)?;
        out.fill(0);
        Ok(())
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        const OP: &str = "fixed_base_mul";
        let scalar_bytes = validate::product(OP, plan.count, plan.curve.scalar_bytes() as u64)?;
        let point_bytes = validate::product(OP, plan.count, plan.curve.affine_bytes(plan.group) as u64)?;
        let (scalars, out) = (self.buffer(OP, scalars, 0, scalar_bytes)?, self.buffer(OP, out, 0, point_bytes)?);
        self.enqueue(OP, stream, move || {
            out.zero(0, point_bytes);
            drop(scalars);
            Ok(())
        })
    }
}
