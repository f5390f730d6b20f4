//! The decisions of a proving engine as a deterministic state machine: which partition is synthesized, which device
//! proves it, with whose memory, and what happens when something fails.
//!
//! Ten partitions a proof, many proofs at once, a few devices, and memory that holds only some of it. An engine tells a
//! [`Scheduler`] what has happened ([`Event`]) and when, and performs what it answers ([`Action`]). Everything that
//! must never happen is kept from happening here, where no thread, clock or device makes it hard to test:
//!
//! * **Memory**: [`MemoryBudget`]. Three kinds of [`Pool`]: host, pinned, one for each device. Bytes are reserved
//!   before anybody allocates them, for the largest stage to come, and only given back from then on: nobody holds
//!   memory while waiting for more of the same pool.
//! * **Admission**: a permit and memory in both pools of the host before a witness is made; the permit is held through
//!   the send into the device queue, whose capacity is max(lookahead, workers).
//! * **Order**: (priority, arrival, partition), strictly. Exceptions are named and bounded by
//!   [`max_overtakes`](Config::max_overtakes): jobs of the current circuit, partitions whose key is on the device, and,
//!   for what holds a permit, a way past an endless stream of more urgent ones. A CRITICAL job starts within one
//!   partition's kernel time: it has permits, a place in the queue, a worker slot and memory of its own, and the
//!   compute lock is kept for it while it is prepared.
//! * **Devices**: one compute lock each; beside it workers prepare, with device memory that was reserved. Lost and
//!   faulty devices are fenced until they pass a self-test, and their partitions go elsewhere with their witness.
//! * **Keys**: hot, warm or cold; counted by their users; evicted least recently used first, under pressure only, never
//!   in use.
//! * **Reasons**: [`Scheduler::idle_reason`] says at any time why a device does not compute,
//!   [`Scheduler::waiting_reason`] why a partition does not go on, both with numbers.
//! * **Workers**: [`autotune`] chooses `partition_workers` from memory, cores and measured times, and says why.
//!
//! # A partition's life
//! Actions lead to the stage on their right, and events answer them:
//! ```text
//! Pending ── StartSynthesis ─▶ Synthesizing ── WitnessReady ─▶ Synthesized ── Send ─▶ Sending ── SendDone ─▶ Queued
//! Queued ── (a device's slot, its key: LoadKey, KeyLoaded) ─▶ AwaitingKey ── Prepare ─▶ Preparing ── DevicePrepared ─▶
//! Prepared ── Start ─▶ Running ── StartReturned, Finish ─▶ Finishing ── FinishDone ─▶ Done
//! ```
//! From any of them `AbortPartition` leads out, answered by `Stopped`, and `Failed` leads back: to `Queued` if the
//! witness is intact, else to `Pending`.
//!
//! [`simulation`] drives the same scheduler through a machine that is described, not present.
//!
//! # Layering
//! Imports of this project `cuzk-units`, and of others only `thiserror` and `serde` (for profiles). The engine imports it,
//! and the command line for [`simulation`]. It knows no curve, proof system, device API, thread or clock, and reads no
//! file.
//!
//! # References
//! * E. G. Coffman, M. Elphick, A. Shoshani, "System deadlocks", ACM Computing Surveys 3 (1971): of its four
//!   conditions, hold-and-wait is the one that is absent here.
//! * J. D. C. Little, "A proof for the queuing formula L = λW", Operations Research 9 (1961): the number of workers.
//! * The recorded figures of the engine whose lessons these are: `docs/simulator.md`.
//!
//! # Example
//! ```
//! use std::time::Duration;
//!
//! use cuzk_scheduler::*;
//!
//! let device = DeviceResources { memory: 16 << 30, last_resort: false };
//! let machine = Resources { cores: 16, host: 64 << 30, pinned: 8 << 30, devices: vec![device] };
//! let mut scheduler = Scheduler::new(Config { partition_workers: Workers::Fixed(2), ..Config::default() }, machine)?;
//!
//! // What a partition costs: 16 GiB until `prove_start` returns, 4 GiB until it is finished.
//! let host = |gib: u64| HostBytes { host: gib << 30, pinned: 0 };
//! let partition = PartitionBytes {
//!     synthesis: host(16),
//!     synthesized: host(16),
//!     finishing: host(4),
//!     device_running: 6 << 30,
//!     ..PartitionBytes::default()
//! };
//! let key = KeyBytes::default();
//! let name = "porep-32g".to_owned();
//! let profile = CircuitProfile { name, key, partition, devices: vec![], synthesis_cores: 4.0, expected: None };
//! let circuit = CircuitId(0);
//! let now = Duration::from_secs(1);
//! scheduler.apply(now, Event::CircuitKnown { circuit, profile })?;
//!
//! // Two permits: two of the ten partitions begin.
//! let (job, priority) = (JobId(0), Priority::Normal);
//! let request = JobRequest { job, circuit, partitions: 10, priority, deadline: None };
//! let ticket = |index| Ticket::first(PartitionId { job, index });
//! let actions = scheduler.apply(now, Event::JobSubmitted(request))?;
//! assert_eq!(actions, [0, 1].map(|i| Action::StartSynthesis { ticket: ticket(i) }));
//! assert_eq!(scheduler.idle_reason(DeviceId(0)).unwrap().label(), "no synthesized partition");
//!
//! // A witness goes to the device, and its permit to the next.
//! assert_eq!(
//!     scheduler.apply(now, Event::WitnessReady { ticket: ticket(0) })?,
//!     [Action::Send { ticket: ticket(0) }]
//! );
//! let device = DeviceId(0);
//! assert_eq!(
//!     scheduler.apply(now, Event::SendDone { ticket: ticket(0) })?,
//!     [Action::Prepare { ticket: ticket(0), device }, Action::StartSynthesis { ticket: ticket(2) }]
//! );
//! // 48 GiB are reserved: a fourth would fit the memory, but waits for a permit.
//! assert_eq!(scheduler.budget().usage(Pool::Host).unwrap().in_use, 48 << 30);
//! let reason = scheduler.waiting_reason(PartitionId { job, index: 3 }).unwrap();
//! assert_eq!(reason, Blocked::Permits { held: 2, workers: 2 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod action;
pub mod autotune;
mod budget;
mod config;
mod device;
mod event;
mod ids;
mod job;
mod profile;
mod reason;
mod residency;
mod scheduler;
pub mod simulation;

// Under this name, so that whoever writes a configuration or a profile needs this crate alone.
pub use cuzk_units as units;

pub use action::{Action, FailureCause, Refusal};
pub use budget::{MemoryBudget, OutOfMemory, Pool, PoolUsage, Reservation};
pub use config::{
    Ablation, Config, ConfigError, CriticalReserve, DeviceResources, PermitScope, Resources, TotalBudget, Workers,
};
pub use device::Health;
pub use event::{Event, EventError, Fault, JobRequest, MeasuredStage};
pub use ids::{CircuitId, DeviceId, JobId, PartitionId, Priority, Ticket, Time};
pub use job::Stage;
pub use profile::{CircuitProfile, HostBytes, KeyBytes, OnDevice, PartitionBytes, Shortage, StageTimes};
pub use reason::{Blocked, IdleReason};
pub use residency::{KeyStatus, KeyTier};
pub use scheduler::{AuditError, Counts, Scheduler};
