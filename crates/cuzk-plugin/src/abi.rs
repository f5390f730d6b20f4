//! The boundary itself: what lies in memory on both sides of it. `include/cuzk_plugin.h` says the same in C.
//!
//! Nothing here has a destructor, and nothing is owned across the boundary but the texts of an [`ErrorRecord`].
//! Numbers of curves, groups, directions, orders, residencies and pools are those of the `#[repr(u32)]` enums of the
//! contract.

use std::{ffi::c_void, ptr};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the plugin boundary is defined for 64-bit pointers");

/// The first eight bytes of a table: "cuzkplug" in memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"cuzkplug");

/// The version of this boundary.
pub const VERSION: AbiVersion = AbiVersion { major: 2, minor: 0 };

/// The one symbol that a plugin exports; see [`crate::vtable::Entry`].
pub const ENTRY_SYMBOL: &str = "cuzk_backend_plugin";

/// What every function returns: [`OK`], or which [`cuzk_backend::BackendError`] the [`ErrorRecord`] describes.
pub type Status = u32;

/// Nothing went wrong; the error record has not been touched.
pub const OK: Status = 0;
/// `BackendError::OutOfMemory`: numbers = pool, requested, in use, capacity.
pub const OUT_OF_MEMORY: Status = 1;
/// `BackendError::DeviceLost`: texts = device, cause.
pub const DEVICE_LOST: Status = 2;
/// `BackendError::Unsupported`: texts = operation, reason.
pub const UNSUPPORTED: Status = 3;
/// `BackendError::Precondition`: texts = operation, what, expected, actual.
pub const PRECONDITION: Status = 4;
/// `BackendError::NoSuchDevice`: texts = backend, wanted, available.
pub const NO_SUCH_DEVICE: Status = 5;
/// `BackendError::SelfTest`: texts = device, check.
pub const SELF_TEST: Status = 6;
/// `BackendError::Panicked`: texts = operation, message.
pub const PANICKED: Status = 7;
/// `BackendError::Driver`: texts = operation, message.
pub const DRIVER: Status = 8;

/// A version of the boundary. A host and a plugin of different majors do not understand each other. Within a major, a
/// greater minor has more functions at the end of the table and is otherwise the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct AbiVersion {
    /// Changes when anything but the end of the table changes.
    pub major: u32,
    /// Changes when functions are appended.
    pub minor: u32,
}

impl std::fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Elements that somebody else owns; `data` may be null if there are none.
#[derive(Debug)]
#[repr(C)]
pub struct Slice<T> {
    /// The first element, aligned for its type.
    pub data: *const T,
    /// Number of elements.
    pub len: u64,
}

/// UTF-8, not terminated.
pub type Text = Slice<u8>;

// Not derived: a derive would ask the same of `T`.
impl<T> Clone for Slice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<T> {}

impl<T> Slice<T> {
    /// No elements.
    pub const EMPTY: Self = Self { data: ptr::null(), len: 0 };

    /// The elements of a slice, to be used while that is borrowed.
    pub fn new(elements: &[T]) -> Self {
        Self { data: elements.as_ptr(), len: elements.len() as u64 }
    }
}

/// Details of a failure. The host passes it empty to every call; a call that fails fills what its status says and may
/// leave the rest. The host copies the texts and then calls `release`.
///
/// Texts are owned by whoever failed and not of a fixed size, because they carry what must not be cut off: build
/// logs, lists of devices. The way to free them stands beside them and not in the table, because the entry fails
/// before there is a table; and a plugin whose texts are static leaves it null.
#[derive(Debug)]
#[repr(C)]
pub struct ErrorRecord {
    /// Depends on the status.
    pub numbers: [u64; 4],
    /// Depends on the status.
    pub texts: [Text; 4],
    /// What `release` is called with.
    pub owner: *mut c_void,
    /// Frees the texts; null if there is nothing to free.
    pub release: Option<unsafe extern "C" fn(owner: *mut c_void)>,
}

/// See [`cuzk_backend::DeviceInfo`].
#[derive(Debug)]
#[repr(C)]
pub struct DeviceInfo {
    /// Position among the backend's devices.
    pub index: u32,
    /// What the vendor counts.
    pub compute_units: u32,
    /// Bytes of memory in all.
    pub memory_bytes: u64,
    /// A name that stays with the hardware.
    pub uuid: Text,
    /// What the vendor calls it.
    pub name: Text,
    /// Driver and version.
    pub driver: Text,
    /// What the code path relies on.
    pub features: Text,
    /// Why it cannot be used; empty if it can.
    pub unusable: Text,
}

/// Takes one description; it has been copied when the call returns.
pub type DeviceInfoSink = unsafe extern "C" fn(sink_context: *mut c_void, info: *const DeviceInfo);

/// See [`cuzk_backend::DeviceOptions`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DeviceOptions {
    /// Cap of the device pool; 0: what is free.
    pub device_memory_limit: u64,
    /// Bytes of pinned memory; 0: the backend's default.
    pub pinned_bytes: u64,
    /// Threads on the host; 0: all.
    pub threads: u32,
    /// Zero.
    pub reserved: u32,
}

/// See [`cuzk_backend::PoolUsage`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct PoolUsage {
    /// Bytes that live objects hold.
    pub in_use: u64,
    /// Bytes that the pool holds.
    pub reserved: u64,
    /// Bytes that it may hold.
    pub capacity: u64,
    /// The most bytes taken at a time.
    pub peak: u64,
}

/// See [`cuzk_backend::MemoryUsage`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MemoryUsage {
    /// The device's memory.
    pub device: PoolUsage,
    /// Pinned memory.
    pub pinned: PoolUsage,
    /// Free bytes as the driver sees them.
    pub driver_free: u64,
    /// Bytes copied to the device's memory.
    pub uploaded: u64,
}

/// Pinned memory: `data` stays where it is until `id` is released.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HostMemory {
    /// The handle.
    pub id: u64,
    /// The bytes, aligned to 4096.
    pub data: *mut u8,
    /// How many.
    pub len: u64,
}

/// The kind of a handle that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum HandleKind {
    /// Device memory.
    Buffer = 1,
    /// Pinned memory.
    Host = 2,
    /// A stream.
    Stream = 3,
    /// An event.
    Event = 4,
    /// A matrix.
    Matrix = 5,
    /// A bitmap.
    Density = 6,
    /// An assignment.
    Assignment = 7,
    /// A list of points.
    Bases = 8,
    /// A result.
    Pending = 9,
}

/// See [`cuzk_backend::NttPlan`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct NttPlan {
    /// Number of the curve.
    pub curve: u32,
    /// Binary logarithm of the number of scalars.
    pub log_n: u32,
    /// Number of the direction.
    pub direction: u32,
    /// Number of the order.
    pub order: u32,
    /// 0: g = 1. 1: g = `shift`.
    pub coset: u32,
    /// Zero.
    pub reserved: u32,
    /// g as Montgomery limbs; zero if `coset` is 0.
    pub shift: [u64; 4],
}

/// See [`cuzk_backend::QuotientPlan`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QuotientPlan {
    /// Number of the curve.
    pub curve: u32,
    /// Binary logarithm of the domain's size.
    pub log_n: u32,
}

/// See [`cuzk_backend::MatrixView`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MatrixView {
    /// Number of the curve.
    pub curve: u32,
    /// Bytes of a row offset: 4 or 8.
    pub row_offset_bytes: u32,
    /// Bytes of a coefficient index: 1, 2 or 4.
    pub coefficient_bytes: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of variables.
    pub n_columns: u64,
    /// Number of constraints.
    pub n_rows: u64,
    /// Number of non-zeros.
    pub n_nonzeros: u64,
    /// `n_rows + 1` offsets.
    pub row_offsets: *const c_void,
    /// `n_nonzeros` variables.
    pub columns: *const u32,
    /// `n_nonzeros` indices.
    pub coefficients: *const c_void,
    /// The different coefficients, as bytes of scalars.
    pub dictionary: Slice<u8>,
}

/// See [`cuzk_backend::AssignmentView`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AssignmentView {
    /// Number of the curve.
    pub curve: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of variables.
    pub n_variables: u64,
    /// Bitmap of the variables that are 1.
    pub ones: Slice<u64>,
    /// Bitmap of the variables whose values stand in `wide_scalars`.
    pub wide: Slice<u64>,
    /// Wide variables before each word.
    pub rank: Slice<u32>,
    /// Their values, as bytes of scalars.
    pub wide_scalars: Slice<u8>,
}

/// See [`cuzk_backend::BasesSpec`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct BasesSpec {
    /// Number of the curve.
    pub curve: u32,
    /// Number of the group.
    pub group: u32,
    /// Number of the residency.
    pub residency: u32,
    /// Multiples of each point, itself counted.
    pub multiples: u32,
    /// Number of points.
    pub count: u64,
}

/// See [`cuzk_backend::MsmOperands`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MsmOperands {
    /// [`MsmOperands::DENSE`] or [`MsmOperands::ASSIGNMENT`].
    pub kind: u32,
    /// 1 if `density` is meant, else 0.
    pub has_density: u32,
    /// Handle of a buffer or of an assignment.
    pub source: u64,
    /// Number of the first scalar or variable.
    pub first: u64,
    /// How many.
    pub len: u64,
    /// Handle of a bitmap.
    pub density: u64,
}

impl MsmOperands {
    /// Scalars of a buffer.
    pub const DENSE: u32 = 1;
    /// Variables of an assignment.
    pub const ASSIGNMENT: u32 = 2;
}

/// See [`cuzk_backend::FixedBasePlan`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct FixedBasePlan {
    /// Number of the curve.
    pub curve: u32,
    /// Number of the group.
    pub group: u32,
    /// Number of scalars.
    pub count: u64,
    /// The point, as bytes.
    pub base: Slice<u8>,
}

/// See [`cuzk_backend::MatrixShape`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct MatrixShape {
    /// Number of the curve.
    pub curve: u32,
    /// Bytes of a row offset: 4 or 8.
    pub row_offset_bytes: u32,
    /// Bytes of a coefficient index: 1, 2 or 4.
    pub coefficient_bytes: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of constraints.
    pub n_rows: u64,
    /// Number of non-zeros.
    pub n_nonzeros: u64,
    /// Number of different coefficients.
    pub n_coefficients: u64,
}

/// See [`cuzk_backend::AssignmentShape`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct AssignmentShape {
    /// Number of the curve.
    pub curve: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of variables.
    pub n_variables: u64,
    /// How many are 1, or a bound.
    pub n_ones: u64,
    /// How many are neither 0 nor 1, or a bound.
    pub n_wide: u64,
}

/// The kind of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum OperationKind {
    /// `ntt`.
    Ntt = 1,
    /// `log_n` and the curve of `ntt`.
    Quotient = 2,
    /// `matrix`.
    Matrix = 3,
    /// `len`.
    Density = 4,
    /// `assignment`.
    Assignment = 5,
    /// `matrix`.
    Evaluate = 6,
    /// `bases`.
    Bases = 7,
    /// `bases`, `scalars`; of an assignment `assignment` and `len`, too.
    Msm = 8,
    /// Curve, group and count of `bases`.
    FixedBase = 9,
}

/// See [`cuzk_backend::Operation`]. What the kind does not name is zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Operation {
    /// An [`OperationKind`].
    pub kind: u32,
    /// [`MsmOperands::DENSE`] or [`MsmOperands::ASSIGNMENT`] for a multi-scalar multiplication.
    pub scalars: u32,
    /// Number of variables: of a bitmap, or of a range.
    pub len: u64,
    /// A transform; the shift of its coset is zero, because it does not matter here.
    pub ntt: NttPlan,
    /// A list of points.
    pub bases: BasesSpec,
    /// A matrix.
    pub matrix: MatrixShape,
    /// An assignment.
    pub assignment: AssignmentShape,
}

/// See [`cuzk_backend::Workspace`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Workspace {
    /// The least device memory.
    pub least: u64,
    /// The device memory that is taken with the room asked about.
    pub taken: u64,
    /// The device memory that is taken with any room.
    pub best: u64,
    /// The part of `taken` that is kept afterwards until the room is needed.
    pub kept: u64,
    /// Pinned memory.
    pub pinned: u64,
}

// The boundary does not change by accident.
const _: () = {
    assert!(size_of::<Slice<u64>>() == 16);
    assert!(size_of::<ErrorRecord>() == 112);
    assert!(size_of::<DeviceInfo>() == 96);
    assert!(size_of::<DeviceOptions>() == 24);
    assert!(size_of::<MemoryUsage>() == 80);
    assert!(size_of::<HostMemory>() == 24);
    assert!(size_of::<NttPlan>() == 56);
    assert!(size_of::<QuotientPlan>() == 8);
    assert!(size_of::<MatrixView>() == 80);
    assert!(size_of::<AssignmentView>() == 80);
    assert!(size_of::<BasesSpec>() == 24);
    assert!(size_of::<MsmOperands>() == 40);
    assert!(size_of::<FixedBasePlan>() == 32);
    assert!(size_of::<MatrixShape>() == 40);
    assert!(size_of::<AssignmentShape>() == 32);
    assert!(size_of::<Operation>() == 168);
    assert!(size_of::<Workspace>() == 40);
};
