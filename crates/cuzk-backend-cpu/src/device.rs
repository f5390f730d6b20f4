//! The host as a device.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use cuzk_backend::{
    AssignmentId, AssignmentShape, AssignmentView, BackendError, BasesId, BasesSpec, BufferId, DensityId, DeviceInfo,
    DeviceOps, DeviceOptions, EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixShape, MatrixView,
    MemoryUsage, MsmOperands, NttPlan, ObjectTypes, Objects, Operation, PendingId, Pool, QuotientPlan, Residency,
    Result, ScalarsShape, StreamId, Workspace,
};
use cuzk_curve::{GroupId, pairing::Engine, with_curve};
use cuzk_r1cs::Assignment;
use rayon::ThreadPool;

use crate::{
    CodePath, host,
    memory::Arena,
    ntt,
    objects::{
        Bitmap, Loaded, Memory, Pinned, Points, broken, byte_range, load_assignment, load_matrix, matrix_bytes,
        values_mut,
    },
    operations::{Scalars, evaluate, fixed_base_multiply, multiply},
    workspace::{bases_bytes, msm_scratch, quotient_scratch, workspace},
};

/// A mark in a stream whose work has all been executed when the mark is made.
#[derive(Debug)]
struct Done;

/// What the tables hold.
struct Kinds;

impl ObjectTypes for Kinds {
    type Buffer = Memory;
    type Host = Arc<Pinned>;
    type Stream = Done;
    type Event = Instant;
    type Matrix = Loaded;
    type Density = Bitmap;
    type Assignment = Loaded;
    type Bases = Points;
    type Pending = Mutex<Option<Vec<u8>>>;
}

/// The host as a device: every operation is executed, on the device's threads, before the call returns. Calls from several
/// threads share these threads.
pub(crate) struct CpuDevice {
    info: DeviceInfo,
    path: CodePath,
    threads: ThreadPool,
    device: Arena,
    pinned: Arena,
    uploaded: AtomicU64,
    objects: Objects<Kinds>,
}

impl CpuDevice {
    /// Opens the host with options that have no zeros left to be replaced.
    ///
    /// # Errors
    /// The system refuses the threads.
    pub(crate) fn new(info: DeviceInfo, options: &DeviceOptions) -> Result<Self> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads as usize)
            .thread_name(|i| format!("cuzk-cpu-{i}"))
            .build()
            .map_err(|error| BackendError::Driver {
                operation: "open".to_owned(),
                message: format!("{} threads: {error}", options.threads),
            })?;
        Ok(Self {
            info,
            path: CodePath::detect(),
            threads,
            device: Arena::new(Pool::Device, options.device_memory_limit),
            pinned: Arena::new(Pool::Pinned, options.pinned_bytes),
            uploaded: AtomicU64::new(0),
            objects: Objects::default(),
        })
    }

    /// Executes work of a stream on the device's threads.
    ///
    /// # Errors
    /// The stream is unknown; what the work returns; its panic.
    fn execute<R: Send>(
        &self,
        operation: &str,
        stream: StreamId,
        work: impl FnOnce() -> Result<R> + Send,
    ) -> Result<R> {
        self.objects.streams.get(operation, stream.0)?;
        self.on_threads(operation, work)
    }

    fn count_upload(&self, bytes: u64) {
        self.uploaded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Executes work on the device's threads.
    fn on_threads<R: Send>(&self, operation: &str, work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
        // What a panic leaves half done is memory whose contents are undefined from then on; tables and accounts are
        // changed outside.
        catch_unwind(AssertUnwindSafe(|| self.threads.install(work))).unwrap_or_else(|panic| {
            Err(BackendError::Panicked { operation: operation.to_owned(), message: message(panic.as_ref()) })
        })
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a text").to_owned()
}

/// Runs `$body` with `$point` the type of a curve's and group's points.
macro_rules! with_group {
    ($curve:expr, $group:expr, $point:ident => $body:expr) => {
        with_curve!($curve, C => match $group {
            GroupId::G1 => {
                type $point = <C as Engine>::G1Affine;
                $body
            }
            GroupId::G2 => {
                type $point = <C as Engine>::G2Affine;
                $body
            }
        })
    };
}

/// Refuses the same buffer twice: it cannot be locked twice.
fn different(operation: &str, a: BufferId, b: BufferId) -> Result<()> {
    if a == b { Err(broken(operation, "the second buffer", "another one than the first", "the same")) } else { Ok(()) }
}

impl DeviceOps for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        Ok(MemoryUsage {
            device: self.device.usage(),
            pinned: self.pinned.usage(),
            driver_free: host::available_bytes(),
            uploaded: self.uploaded.load(Ordering::Relaxed),
        })
    }

    fn release(&self, handle: Handle) {
        self.objects.release(handle);
    }

    fn workspace(&self, operation: &Operation, _room: u64) -> Result<Workspace> {
        workspace(self.threads.current_num_threads(), operation)
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        if bytes == 0 {
            return Err(broken("alloc", "the number of bytes", "at least 1", 0));
        }
        Ok(BufferId(self.objects.buffers.add(Memory::new(self.device.alloc(bytes)?))))
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        if bytes == 0 {
            return Err(broken("alloc_pinned", "the number of bytes", "at least 1", 0));
        }
        let region = self.pinned.alloc(bytes)?;
        Ok(Box::new(self.objects.hosts.add_with(|handle| Pinned::new(HostId(handle), region))))
    }

    fn stream_create(&self) -> Result<StreamId> {
        Ok(StreamId(self.objects.streams.add(Done)))
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        self.objects.streams.get("event_record", stream.0)?;
        Ok(EventId(self.objects.events.add(Instant::now())))
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        self.objects.streams.get("stream_wait", stream.0)?;
        self.objects.events.get("stream_wait", event.0).map(drop)
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        self.objects.events.get("event_query", event.0).map(|_| true)
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        self.objects.events.get("event_wait", event.0).map(drop)
    }

    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        let at = |event: EventId| self.objects.events.get("event_elapsed", event.0);
        let elapsed = at(to)?.saturating_duration_since(*at(from)?);
        Ok(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
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
        const OP: &str = "upload";
        self.objects.hosts.get(OP, source.0)?.with(OP, |source| {
            let range = byte_range(OP, source.len(), source_offset, bytes)?;
            self.upload_bytes(stream, &source[range], target, target_offset)
        })
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
        const OP: &str = "download";
        self.objects.hosts.get(OP, target.0)?.with(OP, |target| {
            let range = byte_range(OP, target.len(), target_offset, bytes)?;
            self.download_bytes(stream, source, source_offset, &mut target[range])
        })
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        const OP: &str = "upload_bytes";
        self.objects.streams.get(OP, stream.0)?;
        let target = self.objects.buffers.get(OP, target.0)?;
        let mut target = target.write();
        let range = byte_range(OP, target.len(), offset, source.len() as u64)?;
        target[range].copy_from_slice(source);
        self.count_upload(source.len() as u64);
        Ok(())
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        const OP: &str = "download_bytes";
        self.objects.streams.get(OP, stream.0)?;
        let source = self.objects.buffers.get(OP, source.0)?;
        let source = source.read();
        let range = byte_range(OP, source.len(), offset, target.len() as u64)?;
        target.copy_from_slice(&source[range]);
        Ok(())
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        const OP: &str = "fill_zero";
        self.objects.streams.get(OP, stream.0)?;
        let buffer = self.objects.buffers.get(OP, buffer.0)?;
        let mut buffer = buffer.write();
        let range = byte_range(OP, buffer.len(), offset, bytes)?;
        buffer[range].fill(0);
        Ok(())
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        const OP: &str = "ntt";
        let buffer = self.objects.buffers.get(OP, buffer.0)?;
        self.execute(OP, stream, || {
            let mut bytes = buffer.write();
            with_curve!(plan.curve, C => {
                let scalars = values_mut::<<C as Engine>::Fr>(OP, &mut bytes, 0, 1 << plan.log_n)?;
                ntt::ntt(self.path, plan, scalars);
            });
            Ok(())
        })
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        const OP: &str = "quotient";
        different(OP, a, b)?;
        let buffers = (self.objects.buffers.get(OP, a.0)?, self.objects.buffers.get(OP, b.0)?);
        let n = 1u64 << plan.log_n;
        let mut scratch = self.device.alloc(quotient_scratch(plan))?;
        self.execute(OP, stream, || {
            // Everybody locks in the order of the handles.
            let (mut a_bytes, mut b_bytes);
            if a < b {
                a_bytes = buffers.0.write();
                b_bytes = buffers.1.write();
            } else {
                b_bytes = buffers.1.write();
                a_bytes = buffers.0.write();
            }
            with_curve!(plan.curve, C => {
                type F = <C as Engine>::Fr;
                let a = values_mut::<F>(OP, &mut a_bytes, 0, n)?;
                let b = values_mut::<F>(OP, &mut b_bytes, 0, n)?;
                let scratch = values_mut::<F>(OP, &mut scratch, 0, n)?;
                ntt::quotient(self.path, plan, a, b, scratch);
            });
            Ok(())
        })
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        let bytes = matrix_bytes(&MatrixShape::of(matrix));
        let account = self.device.reserve(bytes)?;
        let loaded = self.on_threads("load_matrix", || {
            Ok(with_curve!(matrix.curve, C => {
                Loaded::new(matrix.curve, load_matrix::<<C as Engine>::Fr>(matrix)?, account)
            }))
        })?;
        self.count_upload(bytes);
        Ok(MatrixId(self.objects.matrices.add(loaded)))
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        if bits.len() as u64 != len.div_ceil(64) {
            return Err(broken("load_density", "the number of words of the bitmap", len.div_ceil(64), bits.len()));
        }
        let bytes = size_of_val(bits) as u64;
        let account = self.device.reserve(bytes)?;
        self.count_upload(bytes);
        Ok(DensityId(self.objects.densities.add(Bitmap { words: bits.to_vec(), len, _account: account })))
    }

    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        let bytes = AssignmentShape::of(assignment).bytes();
        let account = self.device.reserve(bytes)?;
        let loaded = self.execute("upload_assignment", stream, || {
            Ok(with_curve!(assignment.curve, C => {
                Loaded::new(assignment.curve, load_assignment::<<C as Engine>::Fr>(assignment)?, account)
            }))
        })?;
        self.count_upload(bytes);
        Ok(AssignmentId(self.objects.assignments.add(loaded)))
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        const OP: &str = "evaluate";
        let matrix = self.objects.matrices.get(OP, matrix.0)?;
        let assignment = self.objects.assignments.get(OP, assignment.0)?;
        let out = self.objects.buffers.get(OP, out.0)?;
        self.execute(
            OP,
            stream,
            || with_curve!(matrix.curve(), C => evaluate::<C>(&matrix, &assignment, &mut out.write(), out_len)),
        )
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        let bytes = bases_bytes(spec)?;
        let arena = match spec.residency {
            Residency::Device => &self.device,
            Residency::Pinned => &self.pinned,
        };
        let memory = if bytes == 0 { None } else { Some(Memory::new(arena.alloc(bytes)?)) };
        Ok(BasesId(self.objects.bases.add(Points { spec: *spec, memory })))
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        const OP: &str = "bases_write";
        let bases = self.objects.bases.get(OP, bases.0)?;
        let size = bases.spec.curve.affine_bytes(bases.spec.group) as u64;
        let Some(memory) = &bases.memory else {
            return Err(broken(OP, "the number of points", 0, points.len() as u64 / size));
        };
        let mut memory = memory.write();
        let offset = first.saturating_mul(size);
        let range = byte_range(OP, memory.len(), offset, points.len() as u64)?;
        memory[range].copy_from_slice(points);
        if bases.spec.residency == Residency::Device {
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
        let BasesSpec { curve, group, count, .. } = bases.spec;
        let run = |shape: ScalarsShape, scalars: &Scalars<'_>| {
            let threads = self.threads.current_num_threads();
            let _scratch = self.device.reserve_outside(msm_scratch(&bases.spec, shape, threads))?;
            self.execute(OP, stream, || {
                let points = bases.memory.as_ref().map(Memory::read);
                let points = points.as_ref().map_or(&[][..], |points| points);
                with_group!(curve, group, Point => multiply::<Point>(self.path, points, count, scalars))
            })
        };
        let point = match *scalars {
            MsmOperands::Dense { buffer, first, len } => {
                let buffer = self.objects.buffers.get(OP, buffer.0)?;
                let bytes = buffer.read();
                run(ScalarsShape::Dense, &Scalars::Dense(&bytes, first, len))?
            }
            MsmOperands::Assignment { assignment, first, len, density } => {
                let assignment = self.objects.assignments.get(OP, assignment.0)?;
                let density = density.map(|id| self.objects.densities.get(OP, id.0)).transpose()?;
                let n_wide = with_curve!(curve, C => {
                    assignment.get::<Assignment<<C as Engine>::Fr>>(OP)?.wide_scalars().len() as u64
                });
                // What a multiplication takes depends on the wide scalars alone.
                let assignment_shape = AssignmentShape { curve, n_variables: len, n_ones: 0, n_wide };
                let shape = ScalarsShape::Assignment { assignment: assignment_shape, len };
                run(shape, &Scalars::Packed(&assignment, first..first.saturating_add(len), density.as_deref()))?
            }
        };
        Ok(PendingId(self.objects.pendings.add(Mutex::new(Some(point)))))
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        self.objects.pendings.get("pending_query", pending.0).map(|_| true)
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        const OP: &str = "pending_wait";
        let result = self.objects.pendings.get(OP, pending.0)?;
        let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(point) = result.take_if(|point| point.len() == out.len()) else {
            let left =
                result.as_ref().map_or("none, it was taken".to_owned(), |point| format!("{} bytes", point.len()));
            return Err(broken(OP, "the result", format!("{} bytes", out.len()), left));
        };
        out.copy_from_slice(&point);
        Ok(())
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        const OP: &str = "fixed_base_mul";
        different(OP, scalars, out)?;
        let buffers = (self.objects.buffers.get(OP, scalars.0)?, self.objects.buffers.get(OP, out.0)?);
        self.execute(OP, stream, || {
            let (scalar_bytes, mut out_bytes);
            if scalars < out {
                scalar_bytes = buffers.0.read();
                out_bytes = buffers.1.write();
            } else {
                out_bytes = buffers.1.write();
                scalar_bytes = buffers.0.read();
            }
            with_group!(plan.curve, plan.group, Point => {
                fixed_base_multiply::<Point>(self.path, plan, &scalar_bytes, &mut out_bytes)
            })
        })
    }
}
