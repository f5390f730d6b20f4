//! The caller's side of the contract: a device, and the objects that live as long as it.

use std::{fmt, sync::Arc};

use cuzk_curve::{CurveId, MontgomeryRepr, repr};

use crate::{
    Backend, DeviceInfo, DeviceOps, DeviceOptions, MemoryUsage, Result, Stream,
    density::{Bitmap, Density},
    objects::{Bases, Buffer, HostBuffer, Matrix, Owned},
    plan::{BasesSpec, MatrixView},
    validate,
    workspace::{Operation, Workspace},
};

/// An opened device. Cloning it is cheap; it closes with the last clone and the last object on it.
#[derive(Clone)]
pub struct Device {
    pub(crate) ops: Arc<dyn DeviceOps>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.info().uuid)
    }
}

impl Device {
    /// The caller's side of an implementation.
    pub fn new(ops: impl DeviceOps + 'static) -> Self {
        Self { ops: Arc::new(ops) }
    }

    /// Opens a device of a backend.
    ///
    /// # Errors
    /// There is no such device, or why it cannot be used.
    pub fn open(backend: &dyn Backend, index: u32, options: &DeviceOptions) -> Result<Self> {
        Ok(Self { ops: backend.open(index, options)? })
    }

    /// What this device is.
    pub fn info(&self) -> &DeviceInfo {
        self.ops.info()
    }

    /// How full its memory is.
    ///
    /// # Errors
    /// The device is lost.
    pub fn memory(&self) -> Result<MemoryUsage> {
        self.ops.memory()
    }

    /// The memory that an operation is going to take if `room` bytes of device memory are free then; `u64::MAX` asks
    /// what would be fastest. Nothing is allocated.
    ///
    /// # Errors
    /// The device cannot do this, whatever is free; the device is lost.
    pub fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        validate::workspace(operation)?;
        self.ops.workspace(operation, room)
    }

    /// Whether two handles mean the same opened device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ops, &other.ops)
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// The device is lost, or has no room for one.
    pub fn stream(&self) -> Result<Stream> {
        Ok(Stream { owned: Owned::new(&self.ops, self.ops.stream_create()?) })
    }

    /// Allocates device memory; its contents are undefined.
    ///
    /// # Errors
    /// Zero bytes; out of memory.
    pub fn alloc(&self, bytes: u64) -> Result<Buffer> {
        validate::positive("alloc", "the number of bytes", bytes)?;
        Ok(Buffer { owned: Owned::new(&self.ops, self.ops.buffer_create(bytes)?), bytes })
    }

    /// Allocates device memory for `n` values; their contents are undefined.
    ///
    /// # Errors
    /// Zero values; out of memory.
    pub fn alloc_for<T: MontgomeryRepr>(&self, n: u64) -> Result<Buffer> {
        self.alloc(validate::product("alloc", n, size_of::<T>() as u64)?)
    }

    /// Takes pinned host memory from the pool; its contents are undefined.
    ///
    /// # Errors
    /// Zero bytes; the pool is exhausted.
    pub fn alloc_pinned(&self, bytes: u64) -> Result<HostBuffer> {
        validate::positive("alloc_pinned", "the number of bytes", bytes)?;
        let memory = self.ops.host_create(bytes)?;
        let (owned, len) = (Owned::new(&self.ops, memory.id()), memory.bytes().len());
        Ok(HostBuffer { memory, owned, len, in_flight: Vec::new() })
    }

    /// Copies a matrix to the device.
    ///
    /// # Errors
    /// The view contradicts itself (the message says where and with which numbers); out of memory.
    pub fn load_matrix(&self, view: &MatrixView<'_>) -> Result<Matrix> {
        let n_rows = validate::matrix(view)?;
        Ok(Matrix {
            owned: Arc::new(Owned::new(&self.ops, self.ops.matrix_create(view)?)),
            curve: view.curve,
            n_rows,
            n_columns: view.n_columns,
        })
    }

    /// Copies a bitmap over `len` variables to the device: bit v mod 64 of word v / 64 is variable v's.
    ///
    /// # Errors
    /// The number of words does not fit `len`, or a bit is set past the last variable; out of memory.
    pub fn load_density(&self, bits: &[u64], len: u64) -> Result<Density> {
        validate::bitmap("load_density", "the bitmap", bits, len)?;
        Ok(Density {
            owned: Arc::new(Owned::new(&self.ops, self.ops.density_create(bits, len)?)),
            bits: Bitmap::new(bits, len),
        })
    }

    /// Reserves room for points, to be filled part by part.
    ///
    /// # Errors
    /// No multiple at all, or multiples of points that are not kept on the device; out of memory in the pool that the
    /// residency names.
    pub fn bases_loader(&self, spec: BasesSpec) -> Result<BasesLoader> {
        validate::bases(&spec)?;
        let owned = Owned::new(&self.ops, self.ops.bases_create(&spec)?);
        Ok(BasesLoader { bases: Bases { owned: Arc::new(owned), spec }, written: 0 })
    }

    /// Copies all points at once; see [`Device::bases_loader`] for keys that do not fit into memory.
    ///
    /// # Errors
    /// The number or size of the points does not fit the specification; out of memory.
    pub fn load_bases<T: MontgomeryRepr>(&self, spec: BasesSpec, points: &[T]) -> Result<Bases> {
        let mut loader = self.bases_loader(spec)?;
        loader.write(points)?;
        loader.finish()
    }

    pub(crate) fn scalar_bytes(curve: CurveId, n: u64) -> Result<u64> {
        validate::product("scalars", n, curve.scalar_bytes() as u64)
    }
}

/// Points on their way to a device.
#[derive(Debug)]
pub struct BasesLoader {
    bases: Bases,
    written: u64,
}

impl BasesLoader {
    /// How many points have been written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the next points.
    ///
    /// # Errors
    /// Points of another size than the specification's, or more of them than it says.
    pub fn write<T: MontgomeryRepr>(&mut self, points: &[T]) -> Result<()> {
        let spec = &self.bases.spec;
        let expected = spec.curve.affine_bytes(spec.group) as u64;
        validate::equal("bases_write", "the size of a point", expected, size_of::<T>() as u64)?;
        let left = spec.count - self.written;
        validate::at_most("bases_write", "the number of points", left, points.len() as u64)?;
        if points.is_empty() {
            return Ok(());
        }
        let owned = &self.bases.owned;
        owned.device.bases_write(owned.id, self.written, repr::as_bytes(points))?;
        self.written += points.len() as u64;
        Ok(())
    }

    /// All points are written.
    ///
    /// # Errors
    /// Some are missing.
    pub fn finish(self) -> Result<Bases> {
        validate::equal("bases_finish", "the number of points written", self.bases.spec.count, self.written)?;
        self.bases.owned.device.bases_finish(self.bases.owned.id)?;
        Ok(self.bases)
    }
}
