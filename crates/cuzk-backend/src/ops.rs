//! The implementer's side of the contract: handles and plain data only, so that it crosses a C boundary unchanged.
//!
//! Callers never see this: they use [`crate::Device`], which has validated all that is documented here as given.

use std::{fmt, sync::Arc};

use crate::{
    BackendError, DeviceInfo, DeviceOptions, MemoryUsage, Result,
    plan::{AssignmentView, BasesSpec, FixedBasePlan, MatrixView, NttPlan, QuotientPlan},
    workspace::{Operation, Workspace},
};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident => $variant:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            #[repr(transparent)]
            pub struct $name(pub u64);

            impl From<$name> for Handle {
                fn from(id: $name) -> Self {
                    Self::$variant(id)
                }
            }
        )*

        /// A handle of any kind, to be released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Handle {
            $(
                $(#[$doc])*
                $variant($name),
            )*
        }
    };
}

handles! {
    /// Bytes in device memory.
    BufferId => Buffer,
    /// Bytes in pinned host memory.
    HostId => Host,
    /// A queue of work.
    StreamId => Stream,
    /// A point in a queue of work.
    EventId => Event,
    /// A sparse matrix on the device.
    MatrixId => Matrix,
    /// A bitmap over the variables on the device.
    DensityId => Density,
    /// A packed assignment on the device.
    AssignmentId => Assignment,
    /// A list of points.
    BasesId => Bases,
    /// The result of a multi-scalar multiplication, finished or not.
    PendingId => Pending,
}

/// Pinned host memory as the host sees it. Dropping it does not free it: [`DeviceOps::release`] does, and the bytes
/// stay at one address until then.
///
/// At any time it belongs either to the host or to the device. [`crate::HostBuffer`] hands it over: `lend` before a
/// transfer is enqueued, `reclaim` when the transfer has been waited for; either may come twice. An implementation
/// that gives out a pointer has nothing to do there; one that moves ownership needs no unsafe code.
pub trait HostMemory: Send + Sync + fmt::Debug {
    /// The handle.
    fn id(&self) -> HostId;
    /// The bytes; not called while they are lent.
    fn bytes(&self) -> &[u8];
    /// The bytes, to be overwritten; not called while they are lent.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// The device may read and write the bytes from now on, the host may not.
    fn lend(&mut self) {}
    /// The host may read and write the bytes again; no work on them is pending.
    fn reclaim(&mut self) {}
}

/// The scalars of a multi-scalar multiplication by handle; see [`crate::MsmScalars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MsmOperands {
    /// `len` scalars of a buffer, from scalar number `first` on.
    Dense {
        /// Where they lie.
        buffer: BufferId,
        /// Number of the first.
        first: u64,
        /// How many.
        len: u64,
    },
    /// Variables `first .. first + len` of a packed assignment, of which only the dense ones have a base.
    Assignment {
        /// The assignment.
        assignment: AssignmentId,
        /// Number of the first variable.
        first: u64,
        /// How many variables.
        len: u64,
        /// Only those whose bit is set here; `None`: all.
        density: Option<DensityId>,
    },
}

/// Everything that a device does. All methods may be called from any thread.
///
/// # What an implementation is given
/// Handles are live and of this device; plans, ranges and counts fit each other and the objects; views have been
/// checked; a [`HostMemory`] is not touched by the host while work on it is pending.
///
/// # What an implementation must do
/// * Methods with a stream enqueue and may return before the work is done; slices are fully read (or, by
///   `download_bytes`, written) before the call returns. It may execute at once.
/// * `release` returns quickly and is allowed while pending work uses the object: the memory returns to its pool when that work
///   is done. No call here waits for other streams or for the whole device.
/// * Same inputs, same bytes out, on every implementation.
/// * Memory is accounted to a pool before it is allocated; a refusal is [`BackendError::OutOfMemory`] and changes
///   nothing. An operation takes what [`DeviceOps::workspace`] says, and what pending work of the same stream leaves
///   counts as free.
/// * An error of enqueued work is reported by whatever waits for it.
pub trait DeviceOps: Send + Sync {
    /// What this device is.
    fn info(&self) -> &DeviceInfo;
    /// How full its memory is.
    fn memory(&self) -> Result<MemoryUsage>;
    /// Frees an object.
    fn release(&self, handle: Handle);
    /// The memory that an operation is going to take if `room` bytes of device memory are free when it is enqueued:
    /// pure arithmetic, the same answer at any time. The operation itself goes by the same arithmetic.
    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace>;

    /// Allocates device memory, contents undefined. `bytes` > 0; aligned to 256.
    fn buffer_create(&self, bytes: u64) -> Result<BufferId>;
    /// Takes pinned memory from the pool, contents undefined. `bytes` > 0; aligned to 4096.
    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>>;

    /// Makes a stream.
    fn stream_create(&self) -> Result<StreamId>;
    /// Marks the work enqueued so far.
    fn event_record(&self, stream: StreamId) -> Result<EventId>;
    /// Lets later work of a stream wait for an event.
    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()>;
    /// Whether the work before an event is done.
    fn event_query(&self, event: EventId) -> Result<bool>;
    /// Waits until the work before an event is done.
    fn event_wait(&self, event: EventId) -> Result<()>;
    /// Nanoseconds from when the work before one event was done to when that before another was, as the device's clock has it; 0 if
    /// the second was done first. Both are done when this is called.
    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64>;

    /// Copies from pinned memory to a buffer; byte offsets.
    fn upload(
        &self,
        stream: StreamId,
        source: HostId,
        source_offset: u64,
        target: BufferId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()>;
    /// Copies from a buffer to pinned memory; byte offsets.
    fn download(
        &self,
        stream: StreamId,
        source: BufferId,
        source_offset: u64,
        target: HostId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()>;
    /// Copies from ordinary memory to a buffer.
    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()>;
    /// Copies from a buffer to ordinary memory, after all work enqueued before.
    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()>;
    /// Sets bytes of a buffer to zero.
    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()>;

    /// Transforms the first 2^log_n scalars of a buffer in place.
    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()>;
    /// Turns `a` into the coefficients of the quotient polynomial; `b` is left undefined. See [`QuotientPlan`].
    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()>;

    /// Copies a matrix to the device; done when the call returns.
    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId>;
    /// Copies a bitmap over `len` variables to the device; no bit is set past the last; done when the call returns.
    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId>;
    /// Copies a packed assignment to the device. A view that lies in this device's pinned memory need not be copied
    /// twice.
    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId>;
    /// Matrix times assignment: row i to scalar i of `out`, zeros behind the last row up to `out_len` scalars.
    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()>;

    /// Reserves room for points.
    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId>;
    /// Writes whole points from number `first` on; called from one thread, in ascending order, without gaps.
    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()>;
    /// All points are written: whatever is computed from them in advance is computed now.
    fn bases_finish(&self, bases: BasesId) -> Result<()>;

    /// `Σ scalar[i] · base[i]`. See [`crate::MsmScalars`].
    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId>;
    /// Whether a result can be had without waiting.
    fn pending_query(&self, pending: PendingId) -> Result<bool>;
    /// Waits for a result and writes it as an affine point; may be called once.
    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()>;

    /// `base · scalar[i]` to point i of `out`, affine.
    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()>;
}

/// A device API: a way to find devices and to open them.
pub trait Backend: Send + Sync {
    /// A short name: `cpu`, `cuda`, `opencl`, `wgpu`.
    fn name(&self) -> &str;
    /// The implementation's version.
    fn version(&self) -> &str;
    /// The devices there are, usable or not.
    ///
    /// # Errors
    /// The API itself is not usable (no driver, a driver too old); the text says why.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;
    /// Opens a device.
    ///
    /// # Errors
    /// [`BackendError::NoSuchDevice`], or why this one cannot be used.
    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>>;

    /// The index of the device that a person means: an index, or a UUID or its beginning.
    ///
    /// # Errors
    /// [`BackendError::NoSuchDevice`] with the list of what there is.
    fn find(&self, wanted: &str) -> Result<u32> {
        let devices = self.devices()?;
        let found = match wanted.parse::<u32>() {
            Ok(index) => devices.iter().find(|d| d.index == index),
            Err(_) => devices.iter().find(|d| !wanted.is_empty() && d.uuid.starts_with(wanted)),
        };
        found.map(|d| d.index).ok_or_else(|| BackendError::NoSuchDevice {
            backend: self.name().to_owned(),
            wanted: wanted.to_owned(),
            available: devices.iter().map(|d| format!("{} ({})", d.index, d.uuid)).collect::<Vec<_>>().join(", "),
        })
    }
}
