//! What the device holds: memory and what has been loaded into it.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use cuzk_backend::{
    AssignmentView, BackendError, BasesSpec, CoefficientIndices, HostId, HostMemory, MatrixShape, MatrixView,
    Reservation, Result, RowOffsets,
};
use cuzk_curve::{CurveId, MontgomeryRepr, ScalarRepr, repr};
use cuzk_r1cs::{Assignment, CoeffIndices, CsrMatrix, MatrixBuilder};

use crate::memory::Region;

/// A precondition that does not hold.
pub(crate) fn broken(
    operation: &str,
    what: impl Into<String>,
    expected: impl ToString,
    actual: impl ToString,
) -> BackendError {
    BackendError::Precondition {
        operation: operation.to_owned(),
        what: what.into(),
        expected: expected.to_string(),
        actual: actual.to_string(),
    }
}

/// The first `count` values behind number `first`.
///
/// # Errors
/// The memory is smaller than that.
pub(crate) fn values<'a, T: MontgomeryRepr>(
    operation: &str,
    bytes: &'a [u8],
    first: u64,
    count: u64,
) -> Result<&'a [T]> {
    let range = value_range::<T>(operation, bytes.len(), first, count)?;
    if range.is_empty() {
        // An empty list of bytes may lie anywhere.
        return Ok(&[]);
    }
    repr::from_bytes(&bytes[range]).map_err(|error| broken(operation, "a buffer's place", "aligned", error))
}

/// As [`values`], to be overwritten.
pub(crate) fn values_mut<'a, T: MontgomeryRepr>(
    operation: &str,
    bytes: &'a mut [u8],
    first: u64,
    count: u64,
) -> Result<&'a mut [T]> {
    let range = value_range::<T>(operation, bytes.len(), first, count)?;
    if range.is_empty() {
        return Ok(&mut []);
    }
    repr::from_bytes_mut(&mut bytes[range]).map_err(|error| broken(operation, "a buffer's place", "aligned", error))
}

fn value_range<T>(operation: &str, len: usize, first: u64, count: u64) -> Result<std::ops::Range<usize>> {
    let size = size_of::<T>() as u64;
    let range = first.checked_mul(size).zip(count.checked_mul(size));
    match range {
        Some((offset, bytes)) => byte_range(operation, len, offset, bytes),
        None => Err(broken(operation, "the number of values", "countable in bytes", count)),
    }
}

/// `offset..offset + bytes` within `len` bytes.
pub(crate) fn byte_range(operation: &str, len: usize, offset: u64, bytes: u64) -> Result<std::ops::Range<usize>> {
    match offset.checked_add(bytes) {
        Some(end) if end <= len as u64 => Ok(offset as usize..end as usize),
        _ => Err(broken(operation, "the range of a buffer", format!("within 0..{len}"), format!("{offset}..+{bytes}"))),
    }
}

/// Memory that operations read at the same time, or one of them writes.
///
/// A caller that lets two streams work on one buffer without an event between them gets either order, but never both
/// at a time. What a panicking operation leaves behind is undefined to the contract and initialised memory to Rust.
#[derive(Debug)]
pub(crate) struct Memory(RwLock<Region>);

impl Memory {
    pub(crate) fn new(region: Region) -> Self {
        Self(RwLock::new(region))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Region> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Region> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The device's part of pinned memory: it holds the region while that is lent to it.
#[derive(Debug)]
pub(crate) struct Pinned {
    lent: Mutex<Option<Region>>,
}

impl Pinned {
    /// Both parts of a region, which is the host's at first.
    pub(crate) fn new(id: HostId, region: Region) -> (Arc<Self>, HostPinned) {
        let device = Arc::new(Self { lent: Mutex::new(None) });
        (device.clone(), HostPinned { id, device, own: Some(region) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Region>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the bytes.
    ///
    /// # Errors
    /// The host has not lent them.
    pub(crate) fn with<R>(&self, operation: &str, f: impl FnOnce(&mut [u8]) -> Result<R>) -> Result<R> {
        match &mut *self.lock() {
            Some(region) => f(region),
            None => Err(broken(operation, "the pinned memory", "lent to the device", "the host's")),
        }
    }
}

/// The host's part of pinned memory.
pub(crate) struct HostPinned {
    id: HostId,
    device: Arc<Pinned>,
    own: Option<Region>,
}

impl fmt::Debug for HostPinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of cpu-0", self.id)
    }
}

impl HostMemory for HostPinned {
    fn id(&self) -> HostId {
        self.id
    }

    fn bytes(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(&[])
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.own.as_deref_mut().unwrap_or(&mut [])
    }

    fn lend(&mut self) {
        if let Some(region) = self.own.take() {
            *self.device.lock() = Some(region);
        }
    }

    fn reclaim(&mut self) {
        if self.own.is_none() {
            self.own = self.device.lock().take();
        }
    }
}

/// Something of one curve, whose type only [`Loaded::get`] knows.
pub(crate) struct Loaded {
    curve: CurveId,
    value: Box<dyn Any + Send + Sync>,
    _account: Reservation,
}

impl Loaded {
    /// Keeps a value with the bytes that are reserved for it.
    pub(crate) fn new<T: Any + Send + Sync>(curve: CurveId, value: T, account: Reservation) -> Self {
        Self { curve, value: Box::new(value), _account: account }
    }

    pub(crate) fn curve(&self) -> CurveId {
        self.curve
    }

    /// The value.
    ///
    /// # Errors
    /// It is another curve's.
    pub(crate) fn get<T: Any>(&self, operation: &str) -> Result<&T> {
        self.value
            .downcast_ref()
            .ok_or_else(|| broken(operation, "the curve of an operand", "that of the others", self.curve))
    }
}

/// A bitmap over the variables.
#[derive(Debug)]
pub(crate) struct Bitmap {
    pub(crate) words: Vec<u64>,
    pub(crate) len: u64,
    pub(crate) _account: Reservation,
}

/// Points, written part by part.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) spec: BasesSpec,
    /// No region if there are no points.
    pub(crate) memory: Option<Memory>,
}

/// Bytes that a matrix takes at most: what its parts take in the widths of the view, and 4 more for each dictionary
/// entry.
pub(crate) fn matrix_bytes(shape: &MatrixShape) -> u64 {
    shape.bytes().saturating_add(shape.n_coefficients.saturating_mul(4))
}

/// Copies a matrix.
///
/// `cuzk-r1cs` evaluates matrices in one canonical form (columns ascending, the narrowest widths, coefficients numbered by first
/// use), which is how it also hands them out: then this is a copy and a check. Any other matrix of the contract is rebuilt.
///
/// # Errors
/// Parts that do not fit each other, which the contract excludes.
pub(crate) fn load_matrix<F: ScalarRepr>(view: &MatrixView<'_>) -> Result<CsrMatrix<F>> {
    const OP: &str = "load_matrix";
    let n_columns = usize::try_from(view.n_columns).unwrap_or(usize::MAX);
    let dictionary: Vec<F> =
        repr::copy_from_bytes(view.dictionary).map_err(|error| broken(OP, "the dictionary", "whole scalars", error))?;
    let canonical = CsrMatrix::from_parts(
        n_columns,
        match view.row_offsets {
            RowOffsets::U32(offsets) => cuzk_r1cs::RowOffsets::U32(offsets.to_vec()),
            RowOffsets::U64(offsets) => cuzk_r1cs::RowOffsets::U64(offsets.to_vec()),
        },
        view.columns.to_vec(),
        match view.coefficients {
            CoefficientIndices::U8(indices) => CoeffIndices::U8(indices.to_vec()),
            CoefficientIndices::U16(indices) => CoeffIndices::U16(indices.to_vec()),
            CoefficientIndices::U32(indices) => CoeffIndices::U32(indices.to_vec()),
        },
        dictionary.clone(),
    );
    match canonical {
        Ok(matrix) => Ok(matrix),
        Err(reason) => {
            tracing::debug!(%reason, "rebuilding a matrix in canonical form");
            rebuild(view, n_columns, &dictionary)
        }
    }
}

fn rebuild<F: ScalarRepr>(view: &MatrixView<'_>, n_columns: usize, dictionary: &[F]) -> Result<CsrMatrix<F>> {
    const OP: &str = "load_matrix";
    let n_rows = match view.row_offsets {
        RowOffsets::U32(offsets) => offsets.len(),
        RowOffsets::U64(offsets) => offsets.len(),
    }
    .saturating_sub(1);
    let offset = |i: usize| match view.row_offsets {
        RowOffsets::U32(offsets) => u64::from(offsets[i]),
        RowOffsets::U64(offsets) => offsets[i],
    };
    let term = |at: usize| {
        let index = match view.coefficients {
            CoefficientIndices::U8(indices) => indices.get(at).map(|i| u32::from(*i)),
            CoefficientIndices::U16(indices) => indices.get(at).map(|i| u32::from(*i)),
            CoefficientIndices::U32(indices) => indices.get(at).copied(),
        }?;
        Some((*view.columns.get(at)?, *dictionary.get(index as usize)?))
    };
    let mut builder = MatrixBuilder::new();
    for row in 0..n_rows {
        let range = offset(row) as usize..offset(row + 1) as usize;
        let terms: Option<Vec<_>> = range.map(term).collect();
        builder.push_row(terms.ok_or_else(|| {
            broken(OP, format!("the non-zeros of row {row}"), "within the lists and the dictionary", "past their end")
        })?);
    }
    builder.finish(n_columns).map_err(|error| refused(OP, &error))
}

/// What `cuzk-r1cs` does not take.
fn refused(operation: &str, error: &dyn fmt::Display) -> BackendError {
    BackendError::Unsupported { operation: operation.to_owned(), reason: error.to_string() }
}

/// Copies an assignment.
///
/// # Errors
/// Parts that do not fit each other, which the contract excludes.
pub(crate) fn load_assignment<F: ScalarRepr>(view: &AssignmentView<'_>) -> Result<Assignment<F>> {
    const OP: &str = "upload_assignment";
    let wide_scalars = repr::copy_from_bytes(view.wide_scalars)
        .map_err(|error| broken(OP, "the wide scalars", "whole scalars", error))?;
    // Which variables are inputs does not matter here.
    let n_aux = usize::try_from(view.n_variables.saturating_sub(1)).unwrap_or(usize::MAX);
    Assignment::from_parts(1, n_aux, view.ones.to_vec(), view.wide.to_vec(), view.rank.to_vec(), wide_scalars)
        .map_err(|error| refused(OP, &error))
}
