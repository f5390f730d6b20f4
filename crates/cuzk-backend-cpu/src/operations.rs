//! Operations on bytes: what a device's objects hold becomes typed values, once the curve and the group are known.

use cuzk_backend::{BackendError, FixedBasePlan, Result};
use cuzk_curve::{Curve, repr};
use cuzk_r1cs::{Assignment, CsrMatrix, evaluate_into};
use group::Curve as _;

use crate::{
    CodePath, fixed_base,
    msm::{self, Bits, MsmError, MsmPoint, PackedAssignment},
    objects::{Bitmap, Loaded, broken, values, values_mut},
};

/// What the contract excludes, in the words of this crate.
fn mismatch(error: MsmError) -> BackendError {
    match error {
        MsmError::Length { what, expected, actual } => broken("msm", what, expected, actual),
        MsmError::Rank { word, expected, actual } => {
            broken("msm", format!("the rank of word {word}"), expected, actual)
        }
    }
}

/// The scalars of an MSM, held while it runs.
pub(crate) enum Scalars<'a> {
    /// Of a buffer: number of the first, how many.
    Dense(&'a [u8], u64, u64),
    /// Of an assignment: which variables, which of them have a base.
    Packed(&'a Loaded, std::ops::Range<u64>, Option<&'a Bitmap>),
}

/// Σ scalar[i] · base[i] over the first `count` points, as the bytes of an affine point.
pub(crate) fn multiply<A: MsmPoint>(
    path: CodePath,
    points: &[u8],
    count: u64,
    scalars: &Scalars<'_>,
) -> Result<Vec<u8>> {
    let bases = values::<A>("msm", points, 0, count)?;
    let sum = match scalars {
        Scalars::Dense(bytes, first, len) => {
            msm::msm(path, bases, values::<A::Scalar>("msm", bytes, *first, *len)?).map_err(mismatch)?
        }
        Scalars::Packed(assignment, variables, density) => {
            let assignment = assignment.get::<Assignment<A::Scalar>>("msm")?;
            let n = assignment.n_variables();
            let density = density.map(|d| Bits::new(&d.words, d.len as usize)).transpose().map_err(mismatch)?;
            let packed = PackedAssignment {
                ones: Bits::new(assignment.ones(), n).map_err(mismatch)?,
                wide: Bits::new(assignment.wide(), n).map_err(mismatch)?,
                rank: assignment.rank(),
                wide_scalars: assignment.wide_scalars(),
            };
            let range = variables.start as usize..variables.end as usize;
            msm::msm_packed(path, bases, density, packed, range).map_err(mismatch)?
        }
    };
    Ok(repr::as_bytes(&[sum.to_affine()]).to_vec())
}

/// Matrix times assignment, zeros behind it.
pub(crate) fn evaluate<C: Curve>(matrix: &Loaded, assignment: &Loaded, out: &mut [u8], out_len: u64) -> Result<()> {
    const OP: &str = "evaluate";
    let matrix = matrix.get::<CsrMatrix<C::Fr>>(OP)?;
    let assignment = assignment.get::<Assignment<C::Fr>>(OP)?;
    let out = values_mut::<C::Fr>(OP, out, 0, out_len)?;
    let Some((rows, padding)) = out.split_at_mut_checked(matrix.n_rows()) else {
        return Err(broken(OP, "the output's length", format!("at least the {} rows", matrix.n_rows()), out_len));
    };
    evaluate_into(matrix, assignment, rows).map_err(|error| broken(OP, "the operands", "of one shape", error))?;
    padding.fill(ff::Field::ZERO);
    Ok(())
}

/// base · scalar[i] to point i of `out`.
pub(crate) fn fixed_base_multiply<A: MsmPoint>(
    path: CodePath,
    plan: &FixedBasePlan,
    scalars: &[u8],
    out: &mut [u8],
) -> Result<()> {
    const OP: &str = "fixed_base_mul";
    let base = repr::copy_from_bytes::<A>(&plan.base).ok().and_then(|points| points.first().copied());
    let base = base.ok_or_else(|| broken(OP, "the size of the base", size_of::<A>(), plan.base.len()))?;
    let scalars = values::<A::Scalar>(OP, scalars, 0, plan.count)?;
    let out = values_mut::<A>(OP, out, 0, plan.count)?;
    fixed_base::fixed_base_mul(path, &base, scalars, out).map_err(mismatch)
}
