//! The table of functions that a plugin gives to the host.

use std::ffi::c_void;

use crate::abi::{
    AbiVersion, AssignmentView, BasesSpec, DeviceInfoSink, DeviceOptions, ErrorRecord, FixedBasePlan, HostMemory,
    MatrixView, MemoryUsage, MsmOperands, NttPlan, Operation, QuotientPlan, Status, Text, Workspace,
};

/// The symbol that a plugin exports: stores the address of its table, which stays valid and unchanged for the life of
/// the process, or fails. It may be called more than once. Its signature and that of the error record are the same
/// for all majors.
pub type Entry = unsafe extern "C" fn(table: *mut *const Vtable, error: *mut ErrorRecord) -> Status;

/// What every table begins with, whatever its major version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// [`crate::abi::MAGIC`].
    pub magic: u64,
    /// The version of the boundary that the plugin was built with.
    pub version: AbiVersion,
    /// Bytes of the whole table.
    pub size: u64,
}

macro_rules! table {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// The table. Every function returns a [`Status`] and fills the record if that is not [`crate::abi::OK`].
        ///
        /// `context` is the table's; `device` is what `open` stored. Handles are never zero and are unique among the live
        /// ones of their kind and device. All functions may be called from any thread at any time, except that
        /// `close` is the last call for its device. Pointers are valid during the call only. What a call means and
        /// what it is given is said at [`cuzk_backend::DeviceOps`].
        #[derive(Debug)]
        #[repr(C)]
        pub struct Vtable {
            /// Says what follows.
            pub header: Header,
            /// The backend's short name.
            pub name: Text,
            /// The backend's version.
            pub version: Text,
            /// Passed to the functions of the backend.
            pub context: *const c_void,
            $(
                $(#[$doc])*
                pub $name: Option<unsafe extern "C" fn($($argument: $type,)* error: *mut ErrorRecord) -> Status>,
            )*
        }

        /// The functions of a table in which none is missing.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument: $type,)* error: *mut ErrorRecord) -> Status,)*
        }

        impl Functions {
            /// # Errors
            /// The name of a function that is null.
            pub(crate) fn of(table: &Vtable) -> Result<Self, &'static str> {
                Ok(Self { $($name: table.$name.ok_or(stringify!($name))?,)* })
            }
        }
    };
}

table! {
    /// Describes every device to the sink, in the order of their indices.
    fn devices(context: *const c_void, sink: DeviceInfoSink, sink_context: *mut c_void);
    /// Opens a device.
    fn open(context: *const c_void, index: u32, options: *const DeviceOptions, device: *mut *mut c_void);
    /// Closes a device; nothing of it is used any more. Pending work on memory of the plugin is the plugin's concern.
    fn close(device: *mut c_void);

    /// Describes the device to the sink, once.
    fn info(device: *mut c_void, sink: DeviceInfoSink, sink_context: *mut c_void);
    /// How full its memory is.
    fn memory(device: *mut c_void, usage: *mut MemoryUsage);
    /// Frees an object; `kind` is a [`crate::abi::HandleKind`].
    fn release(device: *mut c_void, kind: u32, id: u64);
    /// The memory that an operation takes if `room` bytes are free then.
    fn workspace(device: *mut c_void, operation: *const Operation, room: u64, workspace: *mut Workspace);

    /// Allocates device memory.
    fn buffer_create(device: *mut c_void, bytes: u64, id: *mut u64);
    /// Takes exactly `bytes` of pinned memory.
    fn host_create(device: *mut c_void, bytes: u64, memory: *mut HostMemory);

    /// Makes a stream.
    fn stream_create(device: *mut c_void, id: *mut u64);
    /// Marks the work enqueued so far.
    fn event_record(device: *mut c_void, stream: u64, id: *mut u64);
    /// Lets later work of a stream wait for an event.
    fn stream_wait(device: *mut c_void, stream: u64, event: u64);
    /// Stores 1 if the work before an event is done, else 0.
    fn event_query(device: *mut c_void, event: u64, done: *mut u32);
    /// Waits for an event.
    fn event_wait(device: *mut c_void, event: u64);
    /// Stores the nanoseconds from one event to another, both done; 0 if the second was done first.
    fn event_elapsed(device: *mut c_void, from: u64, to: u64, nanoseconds: *mut u64);

    /// Copies from pinned memory to a buffer.
    fn upload(
        device: *mut c_void,
        stream: u64,
        source: u64,
        source_offset: u64,
        target: u64,
        target_offset: u64,
        bytes: u64,
    );
    /// Copies from a buffer to pinned memory.
    fn download(
        device: *mut c_void,
        stream: u64,
        source: u64,
        source_offset: u64,
        target: u64,
        target_offset: u64,
        bytes: u64,
    );
    /// Copies from ordinary memory to a buffer.
    fn upload_bytes(device: *mut c_void, stream: u64, source: *const u8, bytes: u64, target: u64, offset: u64);
    /// Copies from a buffer to ordinary memory.
    fn download_bytes(device: *mut c_void, stream: u64, source: u64, offset: u64, target: *mut u8, bytes: u64);
    /// Sets bytes of a buffer to zero.
    fn fill_zero(device: *mut c_void, stream: u64, buffer: u64, offset: u64, bytes: u64);

    /// Transforms scalars in place.
    fn ntt(device: *mut c_void, stream: u64, plan: *const NttPlan, buffer: u64);
    /// Computes the quotient polynomial in `a`.
    fn quotient(device: *mut c_void, stream: u64, plan: *const QuotientPlan, a: u64, b: u64);

    /// Copies a matrix to the device.
    fn matrix_create(device: *mut c_void, matrix: *const MatrixView, id: *mut u64);
    /// Copies a bitmap over `len` variables, ⌈len / 64⌉ words, to the device.
    fn density_create(device: *mut c_void, bits: *const u64, len: u64, id: *mut u64);
    /// Copies an assignment to the device.
    fn assignment_create(device: *mut c_void, stream: u64, assignment: *const AssignmentView, id: *mut u64);
    /// Matrix times assignment.
    fn evaluate(device: *mut c_void, stream: u64, matrix: u64, assignment: u64, out: u64, out_len: u64);

    /// Reserves room for points.
    fn bases_create(device: *mut c_void, spec: *const BasesSpec, id: *mut u64);
    /// Writes whole points, `bytes` in all.
    fn bases_write(device: *mut c_void, bases: u64, first: u64, points: *const u8, bytes: u64);
    /// All points are written.
    fn bases_finish(device: *mut c_void, bases: u64);

    /// Starts a multi-scalar multiplication.
    fn msm(device: *mut c_void, stream: u64, bases: u64, scalars: *const MsmOperands, id: *mut u64);
    /// Stores 1 if a result can be had without waiting, else 0.
    fn pending_query(device: *mut c_void, pending: u64, done: *mut u32);
    /// Waits for a result and writes it to `bytes` bytes at `out`.
    fn pending_wait(device: *mut c_void, pending: u64, out: *mut u8, bytes: u64);

    /// Multiples of one point.
    fn fixed_base_mul(device: *mut c_void, stream: u64, plan: *const FixedBasePlan, scalars: u64, out: u64);
}

// SAFETY: a table is immutable once the entry has given it out, as `Entry` demands, and so is what it points to.
unsafe impl Sync for Vtable {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Vtable {}

// The version, the name, the context, and 33 functions.
const _: () = {
    assert!(size_of::<Header>() == 24);
    assert!(size_of::<Vtable>() == 24 + 32 + 8 + 8 * 33);
};
