//! What operations of a device that computes nothing take.

use cuzk_curve::CurveId;

use crate::{Operation, Order, Residency, Result, ScalarsShape, Workspace, validate};

/// Bytes of 2^log_n scalars.
pub(super) fn domain_bytes(operation: &str, curve: CurveId, log_n: u32) -> Result<u64> {
    validate::at_most(operation, "log_n", u64::from(curve.two_adicity()), u64::from(log_n))?;
    validate::product(operation, 1 << log_n, curve.scalar_bytes() as u64)
}

/// Points of a buffer that streamed bases pass through.
const CHUNK: u64 = 1 << 16;

/// See [`crate::DeviceOps::workspace`].
pub(super) fn workspace(operation: &Operation, room: u64) -> Result<Workspace> {
    let between =
        |least: u64, best: u64, pinned| Workspace { least, taken: room.clamp(least, best), best, kept: 0, pinned };
    // All of it or a part, nothing in between.
    let either = |least, best| Workspace { taken: if room >= best { best } else { least }, ..between(least, best, 0) };
    Ok(match *operation {
        Operation::Ntt(plan) => match plan.order {
            Order::Natural => either(0, domain_bytes("ntt", plan.curve, plan.log_n)?),
            _ => Workspace::default(),
        },
        Operation::Quotient(plan) => {
            let vector = domain_bytes("quotient", plan.curve, plan.log_n)?;
            either(vector, 2 * vector)
        }
        Operation::Matrix(shape) => Workspace::fixed(shape.bytes(), 0),
        Operation::Density { len } => Workspace::fixed(8 * len.div_ceil(64), 0),
        Operation::Assignment(shape) => Workspace::fixed(shape.bytes(), 0),
        Operation::Evaluate(_) | Operation::FixedBase { .. } => Workspace::default(),
        Operation::Bases(spec) => {
            let points = validate::product("bases_create", spec.count, u64::from(spec.multiples))?;
            let bytes = validate::product("bases_create", points, spec.curve.affine_bytes(spec.group) as u64)?;
            match spec.residency {
                Residency::Device => Workspace::fixed(bytes, 0),
                Residency::Pinned => Workspace::fixed(0, bytes),
            }
        }
        Operation::Msm { bases, scalars } => {
            let n = match scalars {
                ScalarsShape::Dense => bases.count,
                ScalarsShape::Assignment { assignment, .. } => bases.count.min(assignment.n_wide),
            };
            let point = bases.curve.affine_bytes(bases.group) as u64;
            let buffers = match bases.residency {
                Residency::Device => 0,
                Residency::Pinned => 2 * point * bases.count.min(CHUNK),
            };
            let best = validate::product("msm", n, 64)?;
            between(buffers + best / 8, buffers + best, point)
        }
    })
}
