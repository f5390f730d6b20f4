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
//!
//! Operations take memory as those of a real device do, by a simple model ([`DeviceOps::workspace`]): a quotient takes
//! one vector or two, a transform none or one, a multi-scalar multiplication anything from an eighth of what is best to
//! all of it. They take it when they are executed, from what is free then.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::{
    AssignmentId, AssignmentShape, AssignmentView, Backend, BackendError, BasesId, BasesSpec, BufferId, DensityId,
    DeviceInfo, DeviceOps, DeviceOptions, EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixShape,
    MatrixView, MemoryPool, MemoryUsage, MsmOperands, NttPlan, ObjectTypes, Objects, Operation, PendingId, Pool,
    QuotientPlan, Reservation, Residency, Result, ScalarsShape, StreamId, Workspace, validate,
};

mod memory;
mod model;
mod queue;
#[cfg(test)]
mod tests;

use cuzk_curve::CurveId;
use memory::{DeviceMemory, Pinned, broken};
use model::{domain_bytes, workspace};
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
    taken: AtomicBool,
    account: Reservation,
}

/// What the tables hold.
struct Kinds;

impl ObjectTypes for Kinds {
    type Buffer = DeviceMemory;
    type Host = Arc<Pinned>;
    type Stream = Arc<Queue>;
    type Event = Point;
    type Matrix = Loaded<CurveId>;
    type Density = Loaded<()>;
    type Assignment = Loaded<AssignmentShape>;
    type Bases = Loaded<BasesSpec>;
    type Pending = Infinity;
}

/// A device that computes nothing; see the [module](self).
pub struct Noop {
    info: DeviceInfo,
    device: MemoryPool,
    pinned: MemoryPool,
    uploaded: Arc<AtomicU64>,
    executor: Executor,
    objects: Objects<Kinds>,
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
            uploaded: Arc::default(),
            executor: Executor::default(),
            objects: Objects::default(),
        }
    }

    fn load<T>(&self, pool: &MemoryPool, bytes: u64, what: T) -> Result<Loaded<T>> {
        Ok(Loaded { what, _account: pool.reserve(bytes)? })
    }

    fn count_upload(&self, bytes: u64) {
        self.uploaded.fetch_add(bytes, Ordering::Relaxed);
    }

    fn enqueue(
        &self,
        operation: &str,
        stream: StreamId,
        run: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.objects.streams.get(operation, stream.0)?.push(Work::Run(Box::new(run)));
        Ok(())
    }

    /// Enqueues what needs a workspace: refused now if the pool could never hold it, or else taken when it is executed.
    fn enqueue_with(
        &self,
        name: &str,
        stream: StreamId,
        operation: Operation,
        run: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let pool = self.device.clone();
        let least = workspace(&operation, 0)?.least;
        let usage = pool.usage();
        if least > usage.capacity {
            return Err(out_of_memory(usage, least));
        }
        self.enqueue(name, stream, move || {
            let usage = pool.usage();
            let _scratch = pool.reserve(workspace(&operation, usage.capacity - usage.in_use)?.taken)?;
            run()
        })
    }

    /// A buffer in which a range of bytes lies.
    fn buffer(&self, operation: &str, id: BufferId, offset: u64, bytes: u64) -> Result<Arc<DeviceMemory>> {
        let buffer = self.objects.buffers.get(operation, id.0)?;
        validate::range(operation, "the buffer", offset, bytes, buffer.size)?;
        Ok(buffer)
    }

    fn host(&self, operation: &str, id: HostId, offset: u64, bytes: u64) -> Result<Arc<Pinned>> {
        let host = Arc::clone(&*self.objects.hosts.get(operation, id.0)?);
        validate::range(operation, "the pinned memory", offset, bytes, host.size)?;
        Ok(host)
    }
}

fn out_of_memory(usage: crate::PoolUsage, requested: u64) -> BackendError {
    BackendError::OutOfMemory { pool: Pool::Device, requested, in_use: usage.in_use, capacity: usage.capacity }
}

impl DeviceOps for Noop {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        let (device, pinned) = (self.device.usage(), self.pinned.usage());
        let uploaded = self.uploaded.load(Ordering::Relaxed);
        Ok(MemoryUsage { device, pinned, driver_free: device.capacity - device.in_use, uploaded })
    }

    fn release(&self, handle: Handle) {
        match handle {
            Handle::Stream(id) => {
                if let Some(stream) = self.objects.streams.remove(id.0) {
                    // Whoever holds an event of it will be told what went wrong.
                    let _told_by_events = self.executor.run(&stream.end());
                }
            }
            handle => self.objects.release(handle),
        }
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        workspace(operation, room)
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        validate::positive("buffer_create", "the number of bytes", bytes)?;
        Ok(BufferId(self.objects.buffers.add(DeviceMemory::new(&self.device, bytes)?)))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        validate::positive("host_create", "the number of bytes", bytes)?;
        let (ours, bytes) = Pinned::new(&self.pinned, bytes)?;
        Ok(Box::new(self.objects.hosts.add_with(|id| (ours.clone(), ours.lend_to_host(HostId(id), bytes)))))
    }

    fn stream_create(&self) -> Result<StreamId> {
        Ok(StreamId(self.objects.streams.add(Arc::default())))
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        let end = self.objects.streams.get("event_record", stream.0)?.end();
        Ok(EventId(self.objects.events.add(end)))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        let event = self.objects.events.get("stream_wait", event.0)?;
        self.objects.streams.get("stream_wait", stream.0)?.push(Work::Wait(Point::clone(&event)));
        Ok(())
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.executor.poll(&*self.objects.events.get("event_query", event.0)?)
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.executor.run(&*self.objects.events.get("event_wait", event.0)?)
    }

    /// There is no clock here: work takes no time.
    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        for event in [from, to] {
            if !self.objects.events.get("event_elapsed", event.0)?.is_reached() {
                return Err(broken("event_elapsed", "the work before both events", "done", "pending"));
            }
        }
        Ok(0)
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
        self.count_upload(bytes);
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
        self.count_upload(source.len() as u64);
        self.enqueue("upload_bytes", stream, move || {
            target.write(offset, &source);
            Ok(())
        })
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        let source = self.buffer("download_bytes", source, offset, target.len() as u64)?;
        self.executor.run(&self.objects.streams.get("download_bytes", stream.0)?.end())?;
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
        self.enqueue_with("ntt", stream, Operation::Ntt(*plan), move || {
            buffer.zero(0, bytes);
            Ok(())
        })
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        let bytes = domain_bytes("quotient", plan.curve, plan.log_n)?;
        let (a, b) = (self.buffer("quotient", a, 0, bytes)?, self.buffer("quotient", b, 0, bytes)?);
        self.enqueue_with("quotient", stream, Operation::Quotient(*plan), move || {
            a.zero(0, bytes);
            b.zero(0, bytes);
            Ok(())
        })
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        let bytes = MatrixShape::of(matrix).bytes();
        let loaded = self.load(&self.device, bytes, matrix.curve)?;
        self.count_upload(bytes);
        Ok(MatrixId(self.objects.matrices.add(loaded)))
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        validate::bitmap("density_create", "the bitmap", bits, len)?;
        let bytes = size_of_val(bits) as u64;
        let loaded = self.load(&self.device, bytes, ())?;
        self.count_upload(bytes);
        Ok(DensityId(self.objects.densities.add(loaded)))
    }

    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        const OP: &str = "assignment_create";
        let queue = self.objects.streams.get(OP, stream.0)?;
        let shape = AssignmentShape::of(assignment);
        let id = self.objects.assignments.add(self.load(&self.device, shape.bytes(), shape)?);
        let copied = self.objects.assignments.get(OP, id)?;
        self.count_upload(shape.bytes());
        queue.push(Work::Run(Box::new(move || {
            drop(copied);
            Ok(())
        })));
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
        let operands =
            (self.objects.matrices.get("evaluate", matrix.0)?, self.objects.assignments.get("evaluate", assignment.0)?);
        let bytes = validate::product("evaluate", out_len, operands.0.what.scalar_bytes() as u64)?;
        let out = self.buffer("evaluate", out, 0, bytes)?;
        self.enqueue("evaluate", stream, move || {
            out.zero(0, bytes);
            drop(operands);
            Ok(())
        })
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        let Workspace { taken, pinned, .. } = workspace(&Operation::Bases(*spec), u64::MAX)?;
        let (pool, bytes) = match spec.residency {
            Residency::Device => (&self.device, taken),
            Residency::Pinned => (&self.pinned, pinned),
        };
        Ok(BasesId(self.objects.bases.add(self.load(pool, bytes, *spec)?)))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        let spec = self.objects.bases.get("bases_write", bases.0)?.what;
        let point = spec.curve.affine_bytes(spec.group);
        validate::equal("bases_write", "the bytes modulo a point's", 0, points.len() % point)?;
        validate::range("bases_write", "the points", first, (points.len() / point) as u64, spec.count)?;
        if spec.residency == Residency::Device {
            self.count_upload(points.len() as u64);
        }
        Ok(())
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        self.objects.bases.get("bases_finish", bases.0).map(drop)
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        const OP: &str = "msm";
        let bases = self.objects.bases.get(OP, bases.0)?;
        let spec = bases.what;
        // What the work uses is kept until it is done.
        let mut operands: Vec<Arc<dyn Any + Send + Sync>> = Vec::new();
        let shape = match *scalars {
            MsmOperands::Dense { buffer, first, len } => {
                let scalar = spec.curve.scalar_bytes() as u64;
                let (offset, bytes) = (validate::product(OP, first, scalar)?, validate::product(OP, len, scalar)?);
                operands.push(self.buffer(OP, buffer, offset, bytes)?);
                ScalarsShape::Dense
            }
            MsmOperands::Assignment { assignment, len, density, .. } => {
                let assignment = self.objects.assignments.get(OP, assignment.0)?;
                let shape = ScalarsShape::Assignment { assignment: assignment.what, len };
                operands.push(assignment);
                if let Some(density) = density {
                    operands.push(self.objects.densities.get(OP, density.0)?);
                }
                shape
            }
        };
        let operation = Operation::Msm { bases: spec, scalars: shape };
        let account = self.pinned.reserve(workspace(&operation, 0)?.pinned)?;
        if spec.residency == Residency::Pinned {
            self.count_upload(validate::product(OP, spec.count, spec.curve.affine_bytes(spec.group) as u64)?);
        }
        self.enqueue_with(OP, stream, operation, move || {
            drop((bases, operands));
            Ok(())
        })?;
        let done = self.objects.streams.get(OP, stream.0)?.end();
        Ok(PendingId(self.objects.pendings.add(Infinity { done, taken: AtomicBool::new(false), account })))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.executor.poll(&self.objects.pendings.get("pending_query", pending.0)?.done)
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        let result = self.objects.pendings.get("pending_wait", pending.0)?;
        validate::equal("pending_wait", "the bytes of the point", result.account.bytes(), out.len() as u64)?;
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
