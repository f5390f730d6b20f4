//! What can go wrong on a device, with the numbers that a scheduler acts on and a person reads.

use std::fmt;

/// A result of the contract.
pub type Result<T, E = BackendError> = std::result::Result<T, E>;

/// A kind of memory that is accounted for separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Pool {
    /// The device's own memory (of the CPU backend: the part of the host's memory that it may use).
    Device = 1,
    /// Host memory that the device reads and writes directly.
    Pinned = 2,
}

impl Pool {
    /// The pool with this number, if there is one.
    pub fn from_u32(id: u32) -> Option<Self> {
        [Self::Device, Self::Pinned].into_iter().find(|p| *p as u32 == id)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
        })
    }
}

/// A failure of a device or of a call to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A pool cannot hold what was asked for. Nothing was allocated; the device stays usable.
    #[error("out of {pool} memory: {requested} bytes requested, {in_use} of {capacity} in use")]
    OutOfMemory {
        /// Which pool.
        pool: Pool,
        /// Bytes that were asked for.
        requested: u64,
        /// Bytes in use at that moment.
        in_use: u64,
        /// Bytes that the pool may hold.
        capacity: u64,
    },
    /// The device does not answer any more: every handle of it is dead, and every later call fails alike.
    #[error("device {device} is lost: {cause}")]
    DeviceLost {
        /// The device's name.
        device: String,
        /// What the driver said.
        cause: String,
    },
    /// The device cannot do this, now or ever.
    #[error("{operation} is not supported: {reason}")]
    Unsupported {
        /// The operation of the contract.
        operation: String,
        /// Why not, with numbers.
        reason: String,
    },
    /// The caller broke a precondition; nothing was done.
    #[error("{operation}: {what} is {actual}, but must be {expected}")]
    Precondition {
        /// The operation of the contract.
        operation: String,
        /// Which argument or relation.
        what: String,
        /// What it must be.
        expected: String,
        /// What it was.
        actual: String,
    },
    /// There is no such device.
    #[error("{backend} has no device {wanted}; it has: {available}")]
    NoSuchDevice {
        /// The backend's name.
        backend: String,
        /// Index or UUID that was asked for.
        wanted: String,
        /// What there is.
        available: String,
    },
    /// A known answer came out wrong: the device must not be used.
    #[error("self-test of device {device} failed: {check}")]
    SelfTest {
        /// The device's name.
        device: String,
        /// Which answer was wrong.
        check: String,
    },
    /// Code of the backend panicked; the panic was caught, but the state of the device is unknown.
    #[error("{operation} panicked inside the backend: {message}")]
    Panicked {
        /// The operation of the contract.
        operation: String,
        /// The panic's message.
        message: String,
    },
    /// The driver reported something that has no name here.
    #[error("{operation} failed: {message}")]
    Driver {
        /// The operation of the contract.
        operation: String,
        /// The driver's code and text.
        message: String,
    },
}

impl BackendError {
    /// Whether the device must be fenced off after this error, until a self-test has passed.
    pub fn is_device_fault(&self) -> bool {
        matches!(self, Self::DeviceLost { .. } | Self::SelfTest { .. } | Self::Panicked { .. } | Self::Driver { .. })
    }
}
