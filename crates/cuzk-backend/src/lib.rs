//! The device contract: what an accelerator must be able to do for a Groth16 prover.
//!
//! Two sides meet here. A backend implements [`Backend`] and [`DeviceOps`], in terms of numeric handles and plain-old-data
//! plans, so that the same contract crosses a C boundary unchanged. A prover uses [`Device`] and the objects that it hands
//! out ([`Buffer`], [`HostBuffer`], [`Stream`], [`Matrix`], [`Density`], [`Bases`], [`DeviceAssignment`], [`Pending`]):
//! these own their handles, keep alive what pending work still needs, and check every precondition in one place
//! (module `validate`), so that an implementation may rely on what its documentation says it is given.
//!
//! # Order
//! Work is enqueued on a [`Stream`] and executes in the order of that stream. Different streams are ordered only by
//! [`Event`]s. Nothing is finished until it has been waited for: [`Event::wait`], [`Pending::wait`], a download. From the
//! uploaded assignment to the results of the multi-scalar multiplications everything can stay on the device in one stream's
//! order, and the host may go away meanwhile.
//!
//! # Memory
//! Objects and the workspaces of running operations are accounted for by pool, with a cap. [`Device::workspace`] says
//! what an operation is going to take before anything is allocated, so that a plan can be made of it and work be
//! admitted by it. Workspaces follow the order of a stream, too: an operation may use what earlier ones of its stream
//! leave, so those of one stream do not add up, and memory that only pending work of the same stream still uses counts
//! as free.
//!
//! # Layering
//! Imports `cuzk-curve` (names of curves, sizes of their elements; its arithmetic only for the self-test). Backends, the plugin
//! boundary and the proof system import it. No device API is mentioned here, and nothing is computed here but the self-test.
//!
//! # References
//! * J. Groth, "On the size of pairing-based non-interactive arguments", <https://eprint.iacr.org/2016/260>.
//! * N. Pippenger, "On the evaluation of powers and monomials", SIAM J. Comput. 9 (1980): the bucket method of an MSM.
//!
//! # Example
//! ```
//! use cuzk_backend::{Device, noop::Noop};
//!
//! let device = Device::new(Noop::new(1 << 20));
//! let stream = device.stream()?;
//! let buffer = device.alloc(64)?;
//! stream.upload_bytes(&[7; 64], &buffer, 0)?;
//! let mut back = [0; 64];
//! stream.download_bytes(&buffer, 0, &mut back)?;
//! assert_eq!(back, [7; 64]);
//! assert_eq!(device.memory()?.device.in_use, 64);
//! # Ok::<(), cuzk_backend::BackendError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod density;
mod device;
mod error;
mod info;
pub mod noop;
mod objects;
mod ops;
mod plan;
mod pool;
pub mod self_test;
mod stream;
mod table;
mod validate;
mod workspace;

pub use density::Density;
pub use device::{BasesLoader, Device};
pub use error::{BackendError, Pool, Result};
pub use info::{DeviceInfo, DeviceOptions, MemoryUsage, PoolUsage};
pub use objects::{Bases, Buffer, DeviceAssignment, Event, HostBuffer, Matrix, Pending};
pub use ops::{
    AssignmentId, Backend, BasesId, BufferId, DensityId, DeviceOps, EventId, Handle, HostId, HostMemory, MatrixId,
    MsmOperands, PendingId, StreamId,
};
pub use plan::{
    AssignmentView, BasesSpec, CoefficientIndices, Coset, Direction, FixedBasePlan, MatrixView, MsmScalars, NttPlan,
    Order, QuotientPlan, Residency, RowOffsets,
};
pub use pool::{MemoryPool, Reservation};
pub use stream::Stream;
pub use table::{ObjectTypes, Objects, Table};
pub use validate::range as check_range;
pub use workspace::{AssignmentShape, MatrixShape, Operation, ScalarsShape, Workspace};
