//! Sparse matrices and packed assignments on the device, and their product.

use std::sync::Arc;

use cuzk_backend::{AssignmentShape, AssignmentView, CoefficientIndices, MatrixShape, MatrixView, Result, RowOffsets};
use cuzk_curve::{CurveId, ScalarRepr, pairing::Engine, repr, with_curve};

use crate::{
    device::Shared,
    driver::{Stream, launch},
    memory::DeviceMemory,
};

/// Rows of more terms are done by a warp each.
const LONG_ROW: u32 = 48;
const BLOCK: u32 = 256;

/// Several arrays in one piece of device memory, each aligned to 16 bytes.
struct Parts {
    memory: DeviceMemory,
    offsets: Vec<u64>,
}

/// Where arrays of these sizes begin, and the bytes of all.
fn places(sizes: &[u64]) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let offsets = sizes
        .iter()
        .map(|size| {
            let at = end;
            end = end.saturating_add(size.saturating_add(15) / 16 * 16);
            at
        })
        .collect();
    (offsets, end.max(16))
}

/// The arrays of a matrix: offsets, columns, coefficients, dictionary, weights, long rows, of which there may be fewer
/// than there is room for.
fn matrix_sizes(shape: &MatrixShape) -> [u64; 6] {
    let times = |n: u64, bytes: u64| n.saturating_mul(bytes);
    [
        times(shape.n_rows.saturating_add(1), shape.row_offset_bytes.into()),
        times(shape.n_nonzeros, 4),
        times(shape.n_nonzeros, shape.coefficient_bytes.into()),
        times(shape.n_coefficients, shape.curve.scalar_bytes() as u64),
        times(shape.n_coefficients, 4),
        times(shape.n_rows.min(shape.n_nonzeros / u64::from(LONG_ROW + 1)), 4),
    ]
}

/// Bytes that a matrix takes.
pub(crate) fn matrix_bytes(shape: &MatrixShape) -> u64 {
    places(&matrix_sizes(shape)).1
}

/// The arrays of an assignment: two bitmaps, ranks, wide scalars.
fn assignment_sizes(shape: &AssignmentShape) -> [u64; 4] {
    let words = shape.n_variables.div_ceil(64);
    let scalars = shape.n_wide.saturating_mul(shape.curve.scalar_bytes() as u64);
    [8 * words, 8 * words, 4 * words, scalars]
}

/// Bytes that an assignment takes.
pub(crate) fn assignment_bytes(shape: &AssignmentShape) -> u64 {
    places(&assignment_sizes(shape)).1
}

/// Bytes that a bitmap takes.
pub(crate) fn density_bytes(len: u64) -> u64 {
    8 * len.div_ceil(64).max(1)
}

impl Parts {
    /// Room of these sizes, each beginning with what its array holds.
    fn new<const N: usize>(device: &Shared, sizes: &[u64; N], arrays: [&[u8]; N]) -> Result<Self> {
        let (offsets, bytes) = places(sizes);
        let parts = Self { memory: device.alloc(bytes)?, offsets };
        for (array, offset) in arrays.iter().zip(&parts.offsets) {
            if !array.is_empty() {
                parts.memory.fill(*offset, array)?;
            }
        }
        Ok(parts)
    }

    /// The addresses of the arrays, to be used on `stream`.
    fn on<const N: usize>(&self, stream: &Arc<Stream>) -> [u64; N] {
        let base = self.memory.on(stream);
        std::array::from_fn(|i| base + self.offsets[i])
    }
}

/// The bytes of numbers.
pub(crate) fn bytes_of<T: Number>(values: &[T]) -> &[u8] {
    // SAFETY: integers have no padding, and any byte may be read as one.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// Integers.
pub(crate) trait Number: Copy {}
impl Number for u8 {}
impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for i32 {}

/// A matrix on the device.
pub(crate) struct Matrix {
    curve: CurveId,
    parts: Parts,
    n_rows: u64,
    n_long_rows: u32,
    offset_bytes: u32,
    coefficient_bytes: u32,
}

impl Matrix {
    pub(crate) fn new(device: &Shared, view: &MatrixView<'_>) -> Result<Self> {
        let (offsets, offset_bytes, n_rows, long_rows) = match view.row_offsets {
            RowOffsets::U32(o) => (bytes_of(o), 4, o.len() as u64 - 1, long_rows(o)),
            RowOffsets::U64(o) => (bytes_of(o), 8, o.len() as u64 - 1, long_rows(o)),
        };
        let (coefficients, coefficient_bytes) = match view.coefficients {
            CoefficientIndices::U8(i) => (bytes_of(i), 1),
            CoefficientIndices::U16(i) => (bytes_of(i), 2),
            CoefficientIndices::U32(i) => (bytes_of(i), 4),
        };
        let weights = with_curve!(view.curve, C => weights::<<C as Engine>::Fr>(view.dictionary));
        let parts = Parts::new(
            device,
            &matrix_sizes(&MatrixShape::of(view)),
            [offsets, bytes_of(view.columns), coefficients, view.dictionary, bytes_of(&weights), bytes_of(&long_rows)],
        )?;
        let n_long_rows = long_rows.len() as u32;
        Ok(Self { curve: view.curve, parts, n_rows, n_long_rows, offset_bytes, coefficient_bytes })
    }
}

fn long_rows<T: Copy + Into<u64>>(offsets: &[T]) -> Vec<u32> {
    let long = |w: &[T]| w[1].into() - w[0].into() > u64::from(LONG_ROW);
    // Rows are numbered in 32 bits: a domain has at most 2^28 elements here.
    offsets.windows(2).zip(0u32..).filter(|(w, _)| long(w)).map(|(_, row)| row).collect()
}

/// For each coefficient the integer of up to 30 bits that it is, or 0.
fn weights<F: ScalarRepr>(dictionary: &[u8]) -> Vec<i32> {
    let scalars: Vec<F> = repr::copy_from_bytes(dictionary).unwrap_or_default();
    let magnitude = |x: F| {
        let bytes = x.to_repr();
        let (low, high) = bytes.as_ref().split_at(4);
        let value = u32::from_le_bytes([low[0], low[1], low[2], low[3]]);
        i32::try_from(value).ok().filter(|v| *v <= 1 << 30 && high.iter().all(|b| *b == 0))
    };
    scalars.iter().map(|x| magnitude(*x).or_else(|| magnitude(-*x).map(|v| -v)).unwrap_or(0)).collect()
}

/// A packed assignment on the device.
pub(crate) struct Assignment {
    parts: Parts,
    pub(crate) n_variables: u64,
    pub(crate) n_ones: u64,
    pub(crate) n_wide: u64,
}

/// Where an assignment's arrays lie.
#[derive(Clone, Copy)]
pub(crate) struct AssignmentAt {
    pub(crate) ones: u64,
    pub(crate) wide: u64,
    pub(crate) rank: u64,
    pub(crate) scalars: u64,
}

impl Assignment {
    pub(crate) fn new(device: &Shared, view: &AssignmentView<'_>) -> Result<Self> {
        let shape = AssignmentShape::of(view);
        let arrays = [bytes_of(view.ones), bytes_of(view.wide), bytes_of(view.rank), view.wide_scalars];
        let AssignmentShape { n_variables, n_ones, n_wide, .. } = shape;
        Ok(Self { parts: Parts::new(device, &assignment_sizes(&shape), arrays)?, n_variables, n_ones, n_wide })
    }

    pub(crate) fn on(&self, stream: &Arc<Stream>) -> AssignmentAt {
        let [ones, wide, rank, scalars] = self.parts.on(stream);
        AssignmentAt { ones, wide, rank, scalars }
    }
}

/// `r1cs_product_t` of kernels/cuda/r1cs/row.h, which documents the fields.
#[derive(Clone, Copy)]
#[repr(C)]
struct Product {
    offsets: u64,
    columns: u64,
    coefficients: u64,
    dictionary: u64,
    weights: u64,
    ones: u64,
    wide: u64,
    rank: u64,
    scalars: u64,
    long_rows: u64,
    out: u64,
    n_rows: u64,
    out_len: u64,
    n_long_rows: u32,
    long_row: u32,
    offset_bytes: u32,
    coefficient_bytes: u32,
}

const _: () = assert!(size_of::<Product>() == 120);

/// Matrix times assignment to `out`, zeros behind the last row.
///
/// # Safety
/// * `out` is memory of this device for `out_len` scalars that stays until the stream's work is done.
pub(crate) unsafe fn evaluate(
    device: &Shared,
    stream: &Arc<Stream>,
    matrix: &Matrix,
    w: &Assignment,
    out: u64,
    out_len: u64,
) -> Result<()> {
    let kernels = device.kernels(matrix.curve)?;
    let [offsets, columns, coefficients, dictionary, weights, long_rows] = matrix.parts.on(stream);
    let AssignmentAt { ones, wide, rank, scalars } = w.on(stream);
    let product = Product {
        offsets,
        columns,
        coefficients,
        dictionary,
        weights,
        ones,
        wide,
        rank,
        scalars,
        long_rows,
        out,
        n_rows: matrix.n_rows,
        out_len,
        n_long_rows: matrix.n_long_rows,
        long_row: LONG_ROW,
        offset_bytes: matrix.offset_bytes,
        coefficient_bytes: matrix.coefficient_bytes,
    };
    let blocks = |threads: u64| (threads.div_ceil(u64::from(BLOCK)) as u32, 1, 1);
    // SAFETY: the caller's promise; the arrays are what their views were checked to be; the kernels' signatures.
    unsafe {
        if out_len > 0 {
            launch!(stream, kernels.sparse.rows, blocks(out_len), BLOCK, 0; product)?;
        }
        if matrix.n_long_rows > 0 {
            launch!(stream, kernels.sparse.long_rows, blocks(32 * u64::from(matrix.n_long_rows)), BLOCK, 0; product)?;
        }
    }
    Ok(())
}

/// A bitmap on the device and on the host.
pub(crate) struct Density {
    memory: DeviceMemory,
    pub(crate) bits: Vec<u64>,
}

impl Density {
    pub(crate) fn new(device: &Shared, bits: &[u64]) -> Result<Self> {
        let memory = device.alloc(density_bytes(64 * bits.len() as u64))?;
        if !bits.is_empty() {
            memory.fill(0, bytes_of(bits))?;
        }
        Ok(Self { memory, bits: bits.to_vec() })
    }

    pub(crate) fn on(&self, stream: &Arc<Stream>) -> u64 {
        self.memory.on(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;

    #[test]
    fn small_coefficients_are_integers_and_others_are_not() {
        let largest = Scalar::from(1 << 30);
        let dictionary =
            [Scalar::from(1), -Scalar::from(1), largest, -largest, largest + Scalar::from(1), Scalar::from(1 << 32)];
        assert_eq!(weights::<Scalar>(repr::as_bytes(&dictionary)), [1, -1, 1 << 30, -(1 << 30), 0, 0]);
    }

    #[test]
    fn arrays_fit_the_places_that_are_kept_for_them() {
        let limit = u64::from(LONG_ROW);
        // As many long rows as the non-zeros allow.
        let offsets: Vec<u64> = (0..=100).map(|row| row * (limit + 1)).collect();
        let view = MatrixView {
            curve: CurveId::Bls12_381,
            n_columns: 1,
            row_offsets: RowOffsets::U64(&offsets),
            columns: &vec![0; 100 * (limit as usize + 1)],
            coefficients: CoefficientIndices::U16(&vec![0; 100 * (limit as usize + 1)]),
            dictionary: &[0; 96],
        };
        let sizes = matrix_sizes(&MatrixShape::of(&view));
        assert_eq!(sizes[5], 4 * long_rows(&offsets).len() as u64);
        let (places, bytes) = places(&sizes);
        for (i, place) in places.iter().enumerate() {
            assert!(place % 16 == 0 && place + sizes[i] <= *places.get(i + 1).unwrap_or(&bytes));
        }
    }

    #[test]
    fn long_rows_are_those_above_the_limit() {
        let limit = LONG_ROW;
        assert_eq!(long_rows(&[0, 1, 1 + limit, 2 + 2 * limit, 2 + 2 * limit]), [2]);
        assert!(long_rows(&[0u64]).is_empty());
    }
}
