//! A device under test.

use std::fmt::Debug;

use cuzk_backend::{Backend, BackendError, Buffer, Device, DeviceOptions, Result, Stream};
use cuzk_curve::{MontgomeryRepr, repr};

/// A backend under test, and how large the tests may be.
pub struct Suite {
    backend: Box<dyn Backend>,
    /// Binary logarithm of the largest transform, or sum in [`crate::large`].
    pub max_log_n: u32,
}

/// Caps that leave room for every check and are small enough to be exceeded.
const POOL_BYTES: u64 = 256 << 20;

impl Suite {
    /// A suite with transforms or sums of up to 2^max_log_n scalars.
    pub fn new(backend: impl Backend + 'static, max_log_n: u32) -> Self {
        Self { backend: Box::new(backend), max_log_n }
    }

    /// A suite that takes seconds.
    pub fn small(backend: impl Backend + 'static) -> Self {
        Self::new(backend, 14)
    }

    /// Opens device 0 with pools of 256 MiB, and more device memory for large transforms.
    pub fn device(&self) -> Device {
        let device_memory_limit = POOL_BYTES.max(256 << self.max_log_n);
        let options = DeviceOptions { device_memory_limit, pinned_bytes: POOL_BYTES, threads: 0 };
        done("opening device 0", Device::open(&*self.backend, 0, &options))
    }

    /// Opens device 0 with all the memory there is, with a stream.
    pub(crate) fn roomy_bench(&self) -> Bench {
        let device = done("opening device 0", Device::open(&*self.backend, 0, &DeviceOptions::default()));
        let stream = done("making a stream", device.stream());
        Bench { device, stream }
    }

    /// Opens device 0, with a stream.
    pub(crate) fn bench(&self) -> Bench {
        let device = self.device();
        let stream = done("making a stream", device.stream());
        Bench { device, stream }
    }
}

/// An open device and a stream.
pub(crate) struct Bench {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
}

impl Bench {
    pub(crate) fn upload<T: MontgomeryRepr>(&self, values: &[T]) -> Buffer {
        // There are no empty buffers.
        let buffer = done("alloc_for", self.device.alloc_for::<T>(values.len().max(1) as u64));
        done("upload_bytes", self.stream.upload_bytes(repr::as_bytes(values), &buffer, 0));
        buffer
    }

    pub(crate) fn download<T: MontgomeryRepr>(&self, buffer: &Buffer, mut values: Vec<T>) -> Vec<T> {
        done("download_bytes", self.stream.download_bytes(buffer, 0, repr::as_bytes_mut(&mut values)));
        values
    }
}

/// What must succeed.
#[track_caller]
pub(crate) fn done<T>(what: &str, result: Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// What must be refused because a precondition does not hold.
#[track_caller]
pub(crate) fn refused<T: Debug>(what: &str, result: Result<T>) {
    match result {
        Err(BackendError::Precondition { .. }) => {}
        other => panic!("{what} must be refused as a broken precondition, not {other:?}"),
    }
}
