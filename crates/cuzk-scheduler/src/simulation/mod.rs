//! The same scheduler on a machine that is described, not present: a discrete-event simulation.
//!
//! [`simulate`] drives a [`Scheduler`](crate::Scheduler) through a [`Plan`]: a machine, circuits with stage times, a
//! policy, and streams of jobs. Stages are *activities* whose speed depends on what runs beside them (module
//! `contention`); between two events all speeds are constant, so the next event is computed exactly and the same plan
//! always gives the same [`Report`]. The model, its parameters and what it reproduces are described in
//! `docs/simulator.md`.

mod contention;
mod plan;
mod report;
mod run;

pub use plan::{CircuitModel, DeviceModel, DeviceStage, HostStage, MachineModel, Plan, PlanError, Stream};
pub use report::{DeviceReport, MemoryPoint, Report, Span, SpanKind, StreamReport};
pub use run::{SimulationError, simulate};
