//! What operations take, as arithmetic: a device reserves by it, and a machine that is not there is planned with it.

use cuzk_backend::{BackendError, BasesSpec, Operation, QuotientPlan, Residency, Result, ScalarsShape, Workspace};
use cuzk_curve::{pairing::Engine, with_curve};

use crate::{
    msm,
    objects::{broken, matrix_bytes},
};

/// What an operation takes on a device with so many threads: the answer of that device's
/// [`DeviceOps::workspace`](cuzk_backend::DeviceOps::workspace), without opening one.
///
/// # Errors
/// [`BackendError::Unsupported`] for multiples of points; a precondition for more points than can be counted in bytes.
pub fn workspace(threads: usize, operation: &Operation) -> Result<Workspace> {
    Ok(match operation {
        Operation::Quotient(plan) => Workspace::fixed(quotient_scratch(plan), 0),
        Operation::Matrix(shape) => Workspace::fixed(matrix_bytes(shape), 0),
        Operation::Density { len } => Workspace::fixed(8 * len.div_ceil(64), 0),
        Operation::Assignment(shape) => Workspace::fixed(shape.bytes(), 0),
        Operation::Bases(spec) => match spec.residency {
            Residency::Device => Workspace::fixed(bases_bytes(spec)?, 0),
            Residency::Pinned => Workspace::fixed(0, bases_bytes(spec)?),
        },
        Operation::Msm { bases, scalars } => Workspace::fixed(msm_scratch(bases, *scalars, threads), 0),
        // What these need lies outside of the pools; see `CpuBackend`.
        Operation::Ntt(_) | Operation::Evaluate(_) | Operation::FixedBase { .. } => Workspace::default(),
    })
}

/// Bytes beside the bases and the scalars of a multiplication: those of the bucket method over all scalars, or over the
/// wide ones of a packed assignment, which are gathered first.
pub(crate) fn msm_scratch(bases: &BasesSpec, scalars: ScalarsShape, threads: usize) -> u64 {
    let point_bytes = bases.curve.affine_bytes(bases.group).next_power_of_two();
    let (len, gathered) = match scalars {
        ScalarsShape::Dense => (bases.count, 0),
        ScalarsShape::Assignment { assignment, len } => {
            let wide = assignment.n_wide.min(len);
            (wide, wide.saturating_mul(assignment.curve.scalar_bytes() as u64))
        }
    };
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let buckets = with_curve!(bases.curve, C => msm::scratch_bytes::<<C as Engine>::Fr>(len, point_bytes, threads));
    buckets.saturating_add(gathered)
}

/// Bytes beside the vectors of a quotient.
pub(crate) fn quotient_scratch(plan: &QuotientPlan) -> u64 {
    (plan.curve.scalar_bytes() as u64) << plan.log_n
}

/// Bytes of a list of points.
///
/// # Errors
/// Multiples of them, which would serve nothing here; more points than can be counted in bytes.
pub(crate) fn bases_bytes(spec: &BasesSpec) -> Result<u64> {
    const OP: &str = "bases_create";
    if spec.multiples > 1 {
        let reason = format!("{} multiples of each point; the host keeps the points alone", spec.multiples);
        return Err(BackendError::Unsupported { operation: OP.to_owned(), reason });
    }
    let size = spec.curve.affine_bytes(spec.group) as u64;
    spec.count
        .checked_mul(size)
        .ok_or_else(|| broken(OP, "the number of points", format!("at most {}", u64::MAX / size), spec.count))
}

#[cfg(test)]
mod tests {
    use cuzk_backend::{Backend, DeviceOptions};
    use cuzk_curve::{CurveId, GroupId};

    use super::*;
    use crate::CpuBackend;

    #[test]
    fn a_device_says_the_same() {
        let spec = BasesSpec {
            curve: CurveId::Bls12_381,
            group: GroupId::G1,
            count: 1 << 20,
            residency: Residency::Device,
            multiples: 1,
        };
        let operation = Operation::Msm { bases: spec, scalars: ScalarsShape::Dense };
        let scratch = [1, 2, 7].map(|threads| {
            let options = DeviceOptions { device_memory_limit: 1, pinned_bytes: 1, threads };
            let device = CpuBackend.open(0, &options).unwrap();
            let told = workspace(threads as usize, &operation).unwrap();
            assert_eq!(device.workspace(&operation, u64::MAX).unwrap(), told);
            told.taken
        });
        assert!(scratch[0] < scratch[1] && scratch[1] < scratch[2], "each thread has buckets of its own: {scratch:?}");
    }
}
