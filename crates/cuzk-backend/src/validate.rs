//! Every precondition of the contract, in one place: what passes here an implementation may rely on.

use std::{fmt::Display, sync::Arc};

use cuzk_curve::{ScalarRepr, pairing::Engine, repr, with_curve};

use crate::{
    BackendError, Device, DeviceOps, Result,
    objects::{Bases, Buffer, DeviceAssignment, Matrix},
    plan::{
        AssignmentView, BasesSpec, CoefficientIndices, Coset, FixedBasePlan, MatrixView, MsmScalars, NttPlan,
        QuotientPlan, Residency, RowOffsets,
    },
    workspace::Operation,
};

fn broken<T>(operation: &str, what: impl Display, expected: impl Display, actual: impl Display) -> Result<T> {
    Err(BackendError::Precondition {
        operation: operation.to_owned(),
        what: what.to_string(),
        expected: expected.to_string(),
        actual: actual.to_string(),
    })
}

pub(crate) fn equal<T: PartialEq + Display>(operation: &str, what: impl Display, expected: T, actual: T) -> Result<()> {
    if expected == actual { Ok(()) } else { broken(operation, what, expected, actual) }
}

pub(crate) fn at_most(operation: &str, what: impl Display, limit: u64, actual: u64) -> Result<()> {
    if actual <= limit { Ok(()) } else { broken(operation, what, format!("at most {limit}"), actual) }
}

pub(crate) fn positive(operation: &str, what: &str, actual: u64) -> Result<()> {
    if actual > 0 { Ok(()) } else { broken(operation, what, "at least 1", actual) }
}

pub(crate) fn product(operation: &str, n: u64, bytes: u64) -> Result<u64> {
    match n.checked_mul(bytes) {
        Some(product) => Ok(product),
        None => broken(operation, "the number of values", format!("at most {}", u64::MAX / bytes), n),
    }
}

/// Whether `len` bytes (or values) from `offset` on lie within `size`.
///
/// # Errors
/// [`BackendError::Precondition`] with both.
pub fn range(operation: &str, what: &str, offset: u64, len: u64, size: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(()),
        _ => {
            broken(operation, format!("the range of {what}"), format!("within 0..{size}"), format!("{offset}..+{len}"))
        }
    }
}

pub(crate) fn same_device(operation: &str, stream: &Arc<dyn DeviceOps>, object: &Arc<dyn DeviceOps>) -> Result<()> {
    if Arc::ptr_eq(stream, object) {
        return Ok(());
    }
    let name = |d: &Arc<dyn DeviceOps>| d.info().uuid.clone();
    broken(
        operation,
        "the device of an operand",
        format!("the stream's, {}", name(stream)),
        format!("another one, {}", name(object)),
    )
}

pub(crate) fn bitmap(operation: &str, what: &str, bits: &[u64], len: u64) -> Result<()> {
    equal(operation, format!("the number of words of {what}"), len.div_ceil(64), bits.len() as u64)?;
    let past = if len.is_multiple_of(64) { 0 } else { bits[bits.len() - 1] >> (len % 64) };
    if past == 0 {
        Ok(())
    } else {
        broken(operation, format!("the bits of {what} past variable {len}"), "zero", format!("{past:#x}"))
    }
}

fn buffer_holds(operation: &str, what: &str, bytes: u64, buffer: &Buffer) -> Result<()> {
    if buffer.bytes >= bytes {
        return Ok(());
    }
    broken(
        operation,
        format!("the size of {what}"),
        format!("at least {bytes} bytes"),
        format!("{} bytes", buffer.bytes),
    )
}

fn different(operation: &str, a: &Buffer, b: &Buffer) -> Result<()> {
    if a.owned.id != b.owned.id {
        Ok(())
    } else {
        broken(operation, "the second buffer", "another one than the first", "the same")
    }
}

pub(crate) fn ntt(plan: &NttPlan, buffer: &Buffer) -> Result<()> {
    const OP: &str = "ntt";
    at_most(OP, "log_n", u64::from(plan.curve.two_adicity()), u64::from(plan.log_n))?;
    buffer_holds(OP, "the buffer", Device::scalar_bytes(plan.curve, 1 << plan.log_n)?, buffer)?;
    if let Coset::Shift(limbs) = plan.coset {
        let canonical = with_curve!(plan.curve, C => is_canonical::<<C as Engine>::Fr>(&limbs));
        if limbs == [0; 4] || !canonical {
            return broken(OP, "the coset shift", "a non-zero canonical scalar", format!("{limbs:x?}"));
        }
    }
    Ok(())
}

fn is_canonical<F: ScalarRepr>(limbs: &[u64; 4]) -> bool {
    let mut scalar = [F::ZERO];
    repr::as_limbs_mut(&mut scalar).copy_from_slice(limbs);
    scalar[0].is_canonical()
}

pub(crate) fn quotient(plan: &QuotientPlan, a: &Buffer, b: &Buffer) -> Result<()> {
    const OP: &str = "quotient";
    // The coset shift is a root of unity of twice the order.
    at_most(OP, "log_n", u64::from(plan.curve.two_adicity()) - 1, u64::from(plan.log_n))?;
    let bytes = Device::scalar_bytes(plan.curve, 1 << plan.log_n)?;
    buffer_holds(OP, "a", bytes, a)?;
    buffer_holds(OP, "b", bytes, b)?;
    different(OP, a, b)
}

pub(crate) fn bases(spec: &BasesSpec) -> Result<()> {
    const OP: &str = "bases_create";
    positive(OP, "the number of multiples", spec.multiples.into())?;
    match spec.residency {
        Residency::Device => Ok(()),
        Residency::Pinned => {
            at_most(OP, "the number of multiples of points in pinned memory", 1, spec.multiples.into())
        }
    }
}

/// What would be refused has no workspace.
pub(crate) fn workspace(operation: &Operation) -> Result<()> {
    match operation {
        Operation::Ntt(plan) => at_most("ntt", "log_n", plan.curve.two_adicity().into(), plan.log_n.into()),
        Operation::Quotient(plan) => {
            at_most("quotient", "log_n", u64::from(plan.curve.two_adicity()) - 1, plan.log_n.into())
        }
        Operation::Bases(spec) | Operation::Msm { bases: spec, .. } => bases(spec),
        _ => Ok(()),
    }
}

/// Checks a matrix and returns its number of rows.
pub(crate) fn matrix(view: &MatrixView<'_>) -> Result<u64> {
    const OP: &str = "load_matrix";
    let (rows, nnz) = match view.row_offsets {
        RowOffsets::U32(offsets) => row_offsets(offsets)?,
        RowOffsets::U64(offsets) => row_offsets(offsets)?,
    };
    equal(OP, "the number of columns listed", nnz, view.columns.len() as u64)?;
    let indices = match view.coefficients {
        CoefficientIndices::U8(i) => i.len(),
        CoefficientIndices::U16(i) => i.len(),
        CoefficientIndices::U32(i) => i.len(),
    };
    equal(OP, "the number of coefficients listed", nnz, indices as u64)?;
    at_most(OP, "the number of columns", 1 << 32, view.n_columns)?;
    if let Some(at) = view.columns.iter().position(|c| u64::from(*c) >= view.n_columns) {
        return broken(OP, format!("column of non-zero {at}"), format!("below {}", view.n_columns), view.columns[at]);
    }
    let scalar = view.curve.scalar_bytes();
    equal(OP, "the dictionary's length modulo a scalar's", 0, view.dictionary.len() % scalar)?;
    let entries = view.dictionary.len() / scalar;
    let worst = match view.coefficients {
        CoefficientIndices::U8(i) => i.iter().max().map(|m| u64::from(*m)),
        CoefficientIndices::U16(i) => i.iter().max().map(|m| u64::from(*m)),
        CoefficientIndices::U32(i) => i.iter().max().map(|m| u64::from(*m)),
    };
    if let Some(worst) = worst.filter(|w| *w >= entries as u64) {
        return broken(OP, "the largest coefficient index", format!("below {entries}"), worst);
    }
    with_curve!(view.curve, C => dictionary::<<C as Engine>::Fr>(view.dictionary))?;
    Ok(rows)
}

fn dictionary<F: ScalarRepr>(bytes: &[u8]) -> Result<()> {
    const OP: &str = "load_matrix";
    let Ok(entries) = repr::copy_from_bytes::<F>(bytes) else {
        return broken(OP, "the dictionary", "whole scalars", format!("{} bytes", bytes.len()));
    };
    at_least_two(entries.len())?;
    if entries[0] != F::ONE || entries[1] != -F::ONE {
        return broken(OP, "the dictionary's first two entries", "1 and -1", format!("{:?}", &entries[..2]));
    }
    match entries.iter().position(|e| !e.is_canonical()) {
        Some(at) => broken(OP, format!("dictionary entry {at}"), "below the modulus", "not canonical"),
        None => Ok(()),
    }
}

fn at_least_two(entries: usize) -> Result<()> {
    if entries >= 2 { Ok(()) } else { broken("load_matrix", "the dictionary's length", "at least 2 entries", entries) }
}

fn row_offsets<T: Copy + Into<u64>>(offsets: &[T]) -> Result<(u64, u64)> {
    const OP: &str = "load_matrix";
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return broken(OP, "the number of row offsets", "one more than the rows", 0);
    };
    equal(OP, "the first row offset", 0, (*first).into())?;
    match offsets.windows(2).position(|w| w[0].into() > w[1].into()) {
        Some(row) => broken(
            OP,
            format!("the end of row {row}"),
            format!("at least {}", offsets[row].into()),
            offsets[row + 1].into(),
        ),
        None => Ok((offsets.len() as u64 - 1, (*last).into())),
    }
}

pub(crate) fn assignment(view: &AssignmentView<'_>) -> Result<()> {
    const OP: &str = "upload_assignment";
    at_most(OP, "the number of variables", 1 << 32, view.n_variables)?;
    bitmap(OP, "ones", view.ones, view.n_variables)?;
    bitmap(OP, "wide", view.wide, view.n_variables)?;
    equal(OP, "the number of ranks", view.wide.len(), view.rank.len())?;
    let mut wide = 0u64;
    for (word, ((ones, bits), rank)) in view.ones.iter().zip(view.wide).zip(view.rank).enumerate() {
        if ones & bits != 0 {
            return broken(OP, format!("word {word} of ones and wide"), "disjoint", format!("{:#x}", ones & bits));
        }
        if wide != u64::from(*rank) {
            return broken(OP, format!("the rank of word {word}"), wide, *rank);
        }
        wide += u64::from(bits.count_ones());
    }
    if view.ones.first().is_none_or(|word| word & 1 == 0) {
        return broken(OP, "variable 0", "1", "another value, or there is none");
    }
    let scalar = view.curve.scalar_bytes() as u64;
    equal(OP, "the bytes of wide scalars", wide * scalar, view.wide_scalars.len() as u64)?;
    with_curve!(view.curve, C => wide_scalars::<<C as Engine>::Fr>(view.wide_scalars))
}

/// Wide scalars are what the bitmaps cannot say, and below the modulus.
fn wide_scalars<F: ScalarRepr>(bytes: &[u8]) -> Result<()> {
    let mut scalar = [F::ZERO];
    for (at, bytes) in bytes.chunks_exact(size_of::<F>()).enumerate() {
        repr::as_bytes_mut(&mut scalar).copy_from_slice(bytes);
        // Any other value is the prover's secret, and an error is logged.
        let fault = match scalar[0] {
            x if !x.is_canonical() => "not canonical",
            x if x == F::ZERO => "0",
            x if x == F::ONE => "1",
            _ => continue,
        };
        return broken("upload_assignment", format!("wide scalar {at}"), "canonical, neither 0 nor 1", fault);
    }
    Ok(())
}

pub(crate) fn evaluate(matrix: &Matrix, assignment: &DeviceAssignment, out: &Buffer, out_len: u64) -> Result<()> {
    const OP: &str = "evaluate";
    equal(OP, "the assignment's curve", matrix.curve, assignment.curve)?;
    equal(OP, "the assignment's number of variables", matrix.n_columns, assignment.n_variables)?;
    if out_len < matrix.n_rows {
        return broken(OP, "the output's length", format!("at least the {} rows", matrix.n_rows), out_len);
    }
    buffer_holds(OP, "the output", Device::scalar_bytes(matrix.curve, out_len)?, out)
}

pub(crate) fn msm(bases: &Bases, scalars: &MsmScalars<'_>) -> Result<()> {
    const OP: &str = "msm";
    let scalar = bases.spec.curve.scalar_bytes() as u64;
    let operands = match scalars {
        MsmScalars::Dense { buffer, first, len } => {
            let (offset, bytes) = (product(OP, *first, scalar)?, product(OP, *len, scalar)?);
            range(OP, "the scalars", offset, bytes, buffer.bytes)?;
            *len
        }
        MsmScalars::Assignment { assignment, variables, density } => {
            equal(OP, "the assignment's curve", bases.spec.curve, assignment.curve)?;
            if variables.start > variables.end {
                return broken(OP, "the range of variables", "ascending", format!("{variables:?}"));
            }
            at_most(OP, "the last variable", assignment.n_variables, variables.end)?;
            let len = variables.end - variables.start;
            match density {
                Some(density) => {
                    equal(OP, "the density's number of variables", assignment.n_variables, density.len())?;
                    density.count(variables.start, len)
                }
                None => len,
            }
        }
    };
    equal(OP, "the number of scalars that have a base", bases.spec.count, operands)
}

pub(crate) fn fixed_base(plan: &FixedBasePlan, scalars: &Buffer, out: &Buffer) -> Result<()> {
    const OP: &str = "fixed_base_mul";
    let point = plan.curve.affine_bytes(plan.group) as u64;
    equal(OP, "the size of the base", point, plan.base.len() as u64)?;
    buffer_holds(OP, "the scalars", Device::scalar_bytes(plan.curve, plan.count)?, scalars)?;
    buffer_holds(OP, "the points", product(OP, plan.count, point)?, out)?;
    different(OP, scalars, out)
}
