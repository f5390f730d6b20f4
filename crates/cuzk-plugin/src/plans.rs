//! Plans and views across the boundary. The host's side cannot fail. The plugin's side decodes: numbers that stand for
//! a choice are known ones, pointers and lengths are possible, and a view is consistent in itself. Whether ranges lie
//! within the objects that a plan names is the device's to check, which alone knows their sizes.

use std::{ffi::c_void, fmt::Display, mem::MaybeUninit};

use cuzk_backend::{
    AssignmentId, AssignmentView, BackendError, BasesId, BasesSpec, BufferId, CoefficientIndices, Coset, DensityId,
    DeviceInfo, DeviceOptions, Direction, EventId, FixedBasePlan, Handle, HostId, MatrixId, MatrixView, MemoryUsage,
    MsmOperands, NttPlan, Order, PendingId, PoolUsage, QuotientPlan, Residency, Result, RowOffsets, StreamId,
};
use cuzk_curve::{CurveId, GroupId};

use crate::abi::{self, HandleKind, Slice};

fn broken<T>(operation: &str, what: impl Display, expected: impl Display, actual: impl Display) -> Result<T> {
    Err(BackendError::Precondition {
        operation: operation.to_owned(),
        what: what.to_string(),
        expected: expected.to_string(),
        actual: actual.to_string(),
    })
}

/// The value that a number means.
fn known<T>(operation: &str, what: &str, number: u32, value: Option<T>) -> Result<T> {
    value.map_or_else(|| broken(operation, what, "a known number", number), Ok)
}

fn curve(operation: &str, number: u32) -> Result<CurveId> {
    known(operation, "the curve", number, CurveId::from_u32(number))
}

fn group(operation: &str, number: u32) -> Result<GroupId> {
    known(operation, "the group", number, GroupId::from_u32(number))
}

impl<T> Slice<T> {
    /// The elements.
    ///
    /// # Safety
    /// If `data` is neither null nor misaligned it points to `len` initialized elements, which nobody writes during
    /// `'a`.
    pub(crate) unsafe fn elements<'a>(self, operation: &str, what: &str) -> Result<&'a [T]> {
        if self.len == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() || !self.data.is_aligned() {
            return broken(
                operation,
                what,
                format_args!("{} elements, aligned", self.len),
                format_args!("{:?}", self.data),
            );
        }
        match usize::try_from(self.len) {
            Ok(len) if len <= isize::MAX as usize / size_of::<T>() => {
                // SAFETY: not null, aligned, of a possible length; the rest is the caller's promise.
                Ok(unsafe { std::slice::from_raw_parts(self.data, len) })
            }
            _ => broken(operation, what, "as long as memory can be", self.len),
        }
    }
}

/// What a pointer of the host points to.
///
/// # Safety
/// If the pointer is neither null nor misaligned it points to an initialized `T`, which nobody writes during `'a`.
pub(crate) unsafe fn pointee<'a, T>(operation: &str, pointer: *const T) -> Result<&'a T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return broken(operation, "a pointer", "not null, aligned", format_args!("{pointer:?}"));
    }
    // SAFETY: not null, aligned; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// Where the host wants a result.
///
/// # Safety
/// If the pointer is neither null nor misaligned it points to room for a `T`, which nobody else uses during `'a`.
pub(crate) unsafe fn place<'a, T>(operation: &str, pointer: *mut T) -> Result<&'a mut MaybeUninit<T>> {
    if pointer.is_null() || !pointer.is_aligned() {
        return broken(operation, "a pointer to a result", "not null, aligned", format_args!("{pointer:?}"));
    }
    // SAFETY: not null, aligned, and room is all that MaybeUninit needs; the rest is the caller's promise.
    Ok(unsafe { &mut *pointer.cast() })
}

/// Bytes of the host that are to be overwritten.
///
/// # Safety
/// If the pointer is not null it points to `len` initialized bytes, which nobody else uses during `'a`.
pub(crate) unsafe fn bytes_at<'a>(operation: &str, pointer: *mut u8, len: u64) -> Result<&'a mut [u8]> {
    // SAFETY: the caller's promise; this checks the pointer and the length.
    let checked: &[u8] = unsafe { slice(pointer, len).elements(operation, "the target") }?;
    let len = checked.len();
    if len == 0 {
        return Ok(&mut []);
    }
    // SAFETY: checked above, and `checked` is not used any more; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
}

/// A kind and a number for a handle, and back.
pub(crate) fn split(handle: Handle) -> (HandleKind, u64) {
    match handle {
        Handle::Buffer(id) => (HandleKind::Buffer, id.0),
        Handle::Host(id) => (HandleKind::Host, id.0),
        Handle::Stream(id) => (HandleKind::Stream, id.0),
        Handle::Event(id) => (HandleKind::Event, id.0),
        Handle::Matrix(id) => (HandleKind::Matrix, id.0),
        Handle::Density(id) => (HandleKind::Density, id.0),
        Handle::Assignment(id) => (HandleKind::Assignment, id.0),
        Handle::Bases(id) => (HandleKind::Bases, id.0),
        Handle::Pending(id) => (HandleKind::Pending, id.0),
    }
}

pub(crate) fn join(kind: u32, id: u64) -> Result<Handle> {
    let handles: [Handle; 9] = [
        BufferId(id).into(),
        HostId(id).into(),
        StreamId(id).into(),
        EventId(id).into(),
        MatrixId(id).into(),
        DensityId(id).into(),
        AssignmentId(id).into(),
        BasesId(id).into(),
        PendingId(id).into(),
    ];
    known("release", "the kind of handle", kind, handles.into_iter().find(|h| split(*h).0 as u32 == kind))
}

impl abi::DeviceInfo {
    pub(crate) fn new(info: &DeviceInfo) -> Self {
        let text = |s: &str| Slice::new(s.as_bytes());
        Self {
            index: info.index,
            compute_units: info.compute_units,
            memory_bytes: info.memory_bytes,
            uuid: text(&info.uuid),
            name: text(&info.name),
            driver: text(&info.driver),
            features: text(&info.features),
            unusable: text(&info.unusable),
        }
    }

    /// # Safety
    /// The texts are valid.
    pub(crate) unsafe fn decode(&self) -> DeviceInfo {
        // SAFETY: the caller's promise.
        let text = |text: abi::Text| unsafe { text.to_text() };
        DeviceInfo {
            index: self.index,
            uuid: text(self.uuid),
            name: text(self.name),
            driver: text(self.driver),
            compute_units: self.compute_units,
            memory_bytes: self.memory_bytes,
            features: text(self.features),
            unusable: text(self.unusable),
        }
    }
}

impl abi::DeviceOptions {
    pub(crate) fn new(options: &DeviceOptions) -> Self {
        let DeviceOptions { device_memory_limit, pinned_bytes, threads } = *options;
        Self { device_memory_limit, pinned_bytes, threads, reserved: 0 }
    }

    pub(crate) fn decode(&self) -> DeviceOptions {
        let Self { device_memory_limit, pinned_bytes, threads, reserved: _ } = *self;
        DeviceOptions { device_memory_limit, pinned_bytes, threads }
    }
}

impl abi::MemoryUsage {
    pub(crate) fn new(usage: &MemoryUsage) -> Self {
        let pool = |p: PoolUsage| {
            let PoolUsage { in_use, reserved, capacity, peak } = p;
            abi::PoolUsage { in_use, reserved, capacity, peak }
        };
        let MemoryUsage { device, pinned, driver_free, uploaded } = *usage;
        Self { device: pool(device), pinned: pool(pinned), driver_free, uploaded }
    }

    pub(crate) fn decode(&self) -> MemoryUsage {
        let pool = |p: abi::PoolUsage| {
            let abi::PoolUsage { in_use, reserved, capacity, peak } = p;
            PoolUsage { in_use, reserved, capacity, peak }
        };
        let Self { device, pinned, driver_free, uploaded } = *self;
        MemoryUsage { device: pool(device), pinned: pool(pinned), driver_free, uploaded }
    }
}

impl abi::NttPlan {
    pub(crate) fn new(plan: &NttPlan) -> Self {
        let (coset, shift) = match plan.coset {
            Coset::One => (0, [0; 4]),
            Coset::Shift(limbs) => (1, limbs),
        };
        let (direction, order) = (plan.direction as u32, plan.order as u32);
        Self { curve: plan.curve as u32, log_n: plan.log_n, direction, order, coset, reserved: 0, shift }
    }

    pub(crate) fn decode(&self) -> Result<NttPlan> {
        const OP: &str = "ntt";
        let directions = [Direction::Forward, Direction::Inverse];
        let orders = [Order::Natural, Order::NaturalToBitReversed, Order::BitReversedToNatural];
        let coset = match self.coset {
            0 => Some(Coset::One),
            1 => Some(Coset::Shift(self.shift)),
            _ => None,
        };
        Ok(NttPlan {
            curve: curve(OP, self.curve)?,
            log_n: self.log_n,
            direction: known(
                OP,
                "the direction",
                self.direction,
                directions.into_iter().find(|d| *d as u32 == self.direction),
            )?,
            coset: known(OP, "the coset", self.coset, coset)?,
            order: known(OP, "the order", self.order, orders.into_iter().find(|o| *o as u32 == self.order))?,
        })
    }
}

impl abi::QuotientPlan {
    pub(crate) fn new(plan: &QuotientPlan) -> Self {
        Self { curve: plan.curve as u32, log_n: plan.log_n }
    }

    pub(crate) fn decode(&self) -> Result<QuotientPlan> {
        Ok(QuotientPlan { curve: curve("quotient", self.curve)?, log_n: self.log_n })
    }
}

impl abi::MatrixView {
    pub(crate) fn new(matrix: &MatrixView<'_>) -> Self {
        let (row_offset_bytes, row_offsets, n_offsets) = match matrix.row_offsets {
            RowOffsets::U32(offsets) => (4, offsets.as_ptr().cast::<c_void>(), offsets.len()),
            RowOffsets::U64(offsets) => (8, offsets.as_ptr().cast(), offsets.len()),
        };
        let (coefficient_bytes, coefficients) = match matrix.coefficients {
            CoefficientIndices::U8(indices) => (1, indices.as_ptr().cast::<c_void>()),
            CoefficientIndices::U16(indices) => (2, indices.as_ptr().cast()),
            CoefficientIndices::U32(indices) => (4, indices.as_ptr().cast()),
        };
        Self {
            curve: matrix.curve as u32,
            row_offset_bytes,
            coefficient_bytes,
            reserved: 0,
            n_columns: matrix.n_columns,
            // The contract promises one offset more than rows.
            n_rows: (n_offsets as u64).saturating_sub(1),
            n_nonzeros: matrix.columns.len() as u64,
            row_offsets,
            columns: matrix.columns.as_ptr(),
            coefficients,
            dictionary: Slice::new(matrix.dictionary),
        }
    }

    /// # Safety
    /// The pointers point to what the counts say, which nobody writes during `'a`.
    pub(crate) unsafe fn decode<'a>(&self) -> Result<MatrixView<'a>> {
        const OP: &str = "matrix_create";
        let (n_offsets, nnz) = (self.n_rows.saturating_add(1), self.n_nonzeros);
        let (offsets, indices) = (self.row_offsets, self.coefficients);
        // SAFETY: the caller's promise.
        unsafe {
            let row_offsets = match self.row_offset_bytes {
                4 => RowOffsets::U32(slice(offsets.cast(), n_offsets).elements(OP, "the row offsets")?),
                8 => RowOffsets::U64(slice(offsets.cast(), n_offsets).elements(OP, "the row offsets")?),
                other => return broken(OP, "the bytes of a row offset", "4 or 8", other),
            };
            let coefficients = match self.coefficient_bytes {
                1 => CoefficientIndices::U8(slice(indices.cast(), nnz).elements(OP, "the coefficient indices")?),
                2 => CoefficientIndices::U16(slice(indices.cast(), nnz).elements(OP, "the coefficient indices")?),
                4 => CoefficientIndices::U32(slice(indices.cast(), nnz).elements(OP, "the coefficient indices")?),
                other => return broken(OP, "the bytes of a coefficient index", "1, 2 or 4", other),
            };
            Ok(MatrixView {
                curve: curve(OP, self.curve)?,
                n_columns: self.n_columns,
                row_offsets,
                columns: slice(self.columns, nnz).elements(OP, "the columns")?,
                coefficients,
                dictionary: self.dictionary.elements(OP, "the dictionary")?,
            })
        }
    }
}

/// A slice of parts that are kept apart.
pub(crate) fn slice<T>(data: *const T, len: u64) -> Slice<T> {
    Slice { data, len }
}

impl abi::AssignmentView {
    pub(crate) fn new(view: &AssignmentView<'_>) -> Self {
        Self {
            curve: view.curve as u32,
            reserved: 0,
            n_variables: view.n_variables,
            ones: Slice::new(view.ones),
            wide: Slice::new(view.wide),
            rank: Slice::new(view.rank),
            wide_scalars: Slice::new(view.wide_scalars),
        }
    }

    /// # Safety
    /// The slices are valid, and nobody writes them during `'a`.
    pub(crate) unsafe fn decode<'a>(&self) -> Result<AssignmentView<'a>> {
        const OP: &str = "assignment_create";
        // SAFETY: the caller's promise.
        let (ones, wide, rank, wide_scalars) = unsafe {
            (
                self.ones.elements(OP, "ones")?,
                self.wide.elements(OP, "wide")?,
                self.rank.elements(OP, "the ranks")?,
                self.wide_scalars.elements(OP, "the wide scalars")?,
            )
        };
        Ok(AssignmentView {
            curve: curve(OP, self.curve)?,
            n_variables: self.n_variables,
            ones,
            wide,
            rank,
            wide_scalars,
        })
    }
}

impl abi::BasesSpec {
    pub(crate) fn new(spec: &BasesSpec) -> Self {
        let BasesSpec { curve, group, count, residency, multiples } = *spec;
        Self { curve: curve as u32, group: group as u32, residency: residency as u32, multiples, count }
    }

    pub(crate) fn decode(&self) -> Result<BasesSpec> {
        const OP: &str = "bases_create";
        let residency = [Residency::Device, Residency::Pinned].into_iter().find(|r| *r as u32 == self.residency);
        Ok(BasesSpec {
            curve: curve(OP, self.curve)?,
            group: group(OP, self.group)?,
            count: self.count,
            residency: known(OP, "the residency", self.residency, residency)?,
            multiples: self.multiples,
        })
    }
}

impl abi::MsmOperands {
    pub(crate) fn new(operands: &MsmOperands) -> Self {
        match *operands {
            MsmOperands::Dense { buffer, first, len } => {
                Self { kind: Self::DENSE, has_density: 0, source: buffer.0, first, len, density: 0 }
            }
            MsmOperands::Assignment { assignment, first, len, density } => Self {
                kind: Self::ASSIGNMENT,
                has_density: u32::from(density.is_some()),
                source: assignment.0,
                first,
                len,
                density: density.map_or(0, |d| d.0),
            },
        }
    }

    pub(crate) fn decode(&self) -> Result<MsmOperands> {
        let Self { first, len, .. } = *self;
        match (self.kind, self.has_density) {
            (Self::DENSE, 0) => Ok(MsmOperands::Dense { buffer: BufferId(self.source), first, len }),
            (Self::ASSIGNMENT, has @ (0 | 1)) => {
                let density = (has == 1).then_some(DensityId(self.density));
                Ok(MsmOperands::Assignment { assignment: AssignmentId(self.source), first, len, density })
            }
            (kind, has) => broken(
                "msm",
                "the kind of scalars with the density flag",
                "1 with 0, or 2 with 0 or 1",
                format_args!("{kind} with {has}"),
            ),
        }
    }
}

impl abi::FixedBasePlan {
    pub(crate) fn new(plan: &FixedBasePlan) -> Self {
        let (curve, group) = (plan.curve as u32, plan.group as u32);
        Self { curve, group, count: plan.count, base: Slice::new(&plan.base) }
    }

    /// # Safety
    /// The base is valid.
    pub(crate) unsafe fn decode(&self) -> Result<FixedBasePlan> {
        const OP: &str = "fixed_base_mul";
        // SAFETY: the caller's promise.
        let base = unsafe { self.base.elements(OP, "the base") }?.to_vec();
        Ok(FixedBasePlan { curve: curve(OP, self.curve)?, group: group(OP, self.group)?, base, count: self.count })
    }
}

#[cfg(test)]
mod tests;
mod workspaces;
