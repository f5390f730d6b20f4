//! What operations take, as arithmetic: for the devices of this backend, and for those that are described and not there.

use cuzk_backend::{Operation, Result, Workspace};

use crate::{msm, ntt, sparse};

/// Memory beside the pool that is left to the driver and to other programs, at least.
const MIN_MARGIN: u64 = 512 << 20;

/// What an operation takes on a device with so many multiprocessors, with `room` bytes of device memory to spare: as
/// [`DeviceOps::workspace`](cuzk_backend::DeviceOps::workspace), which goes by it.
///
/// ```
/// use cuzk_backend::{Operation, QuotientPlan};
/// use cuzk_curve::CurveId;
///
/// // The quotient of a 32 GiB partition on an H200: beside its two vectors another one, and tables.
/// let plan = QuotientPlan { curve: CurveId::Bls12_381, log_n: 27 };
/// let workspace = cuzk_backend_cuda::workspace(132, &Operation::Quotient(plan), u64::MAX)?;
/// assert!(workspace.best >= 32 << 27 && workspace.least <= workspace.best);
/// # Ok::<(), cuzk_backend::BackendError>(())
/// ```
///
/// # Errors
/// The backend cannot do it at that size.
pub fn workspace(multiprocessors: u32, operation: &Operation, room: u64) -> Result<Workspace> {
    match operation {
        Operation::Ntt(plan) => ntt::transform_workspace(plan, room),
        Operation::Quotient(plan) => ntt::quotient_workspace(plan, room),
        Operation::Matrix(shape) => Ok(Workspace::fixed(sparse::matrix_bytes(shape), 0)),
        Operation::Density { len } => Ok(Workspace::fixed(sparse::density_bytes(*len), 0)),
        Operation::Assignment(shape) => Ok(Workspace::fixed(sparse::assignment_bytes(shape), 0)),
        Operation::Evaluate(_) => Ok(Workspace::default()),
        Operation::Bases(spec) => msm::bases_workspace(spec),
        Operation::Msm { bases, scalars } => msm::workspace(multiprocessors.max(1), bases, *scalars, room),
        Operation::FixedBase { curve, group, count } => Ok(msm::fixed_base_workspace(*curve, *group, *count)),
    }
}

/// Of so many bytes that are free, those that a device uses unless it is told otherwise: a sixteenth, and at least half
/// a GiB, stays free.
pub fn usable_bytes(free: u64) -> u64 {
    free.saturating_sub((free / 16).max(MIN_MARGIN))
}
