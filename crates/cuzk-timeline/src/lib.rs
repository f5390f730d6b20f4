//! What a proving engine did, as data: recorded while it runs, summed up, written as Perfetto JSON and as a waterfall.
//!
//! A [`Recorder`] takes [`Span`]s (a stage of a partition, on a track, from when to when), the reason of each idle gap
//! of a device ([`IdleReason`]), bytes in use of memory pools and marks of jobs, from any thread and in bounded
//! memory. Its [`snapshot`](Recorder::snapshot) is a [`Timeline`], from which come:
//!
//! * a [`Summary`]: utilization and idle time by reason of each device, throughput, mean and 95th percentile of each
//!   stage, peaks;
//! * [`Timeline::write_html`]: a waterfall in one self-contained page ([`Waterfall`]: the same as a part of others);
//! * [`Timeline::write_perfetto`]: JSON for <https://ui.perfetto.dev>;
//! * [`Timeline::write`] and [`Timeline::read`]: the native form, to keep it.
//!
//! [`device_activity`] is what all of them rest on: it cuts the time of a device into segments without holes, each
//! busy, idle with a reason, or [unexplained](UNEXPLAINED), so that busy time and idle times add up to the wall clock
//! exactly.
//!
//! All times are [`Nanos`] since the recorder's start and are given by the caller: a simulator records its virtual
//! time.
//!
//! # Layering
//! Imports only `cuzk-units` of this workspace; any other crate of it may import it. Jobs, circuits, devices and
//! pools are plain numbers and names here. Does not print, read the environment or open files.
//!
//! # References
//! * [Trace Event Format](https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), the JSON
//!   of Chrome's tracing, and [Perfetto's notes](https://perfetto.dev/docs/getting-started/other-formats) on what it
//!   takes of that.
//! * U. I. Gupta, D. T. Lee, J. Y.-T. Leung, *An optimal solution for the channel-assignment problem*, IEEE Trans.
//!   Comput. 28, 1979: overlapping spans to the fewest lanes.
//! * M. Okabe, K. Ito, *Color Universal Design*, 2008: hues of the waterfall.
//!
//! # Example
//! ```
//! use cuzk_timeline::{IdleReason, Limits, Nanos, PartitionRef, JobId, Recorder, Span, Stage, Summary, TrackKind};
//!
//! let recorder = Recorder::new("example", Limits::default());
//! let device = recorder.add_track("GPU 0", TrackKind::Device);
//! let starved = IdleReason::NoSynthesizedPartition { synthesizing: 1, because: None };
//! recorder.device_state(device, Nanos(0), Some(starved));
//! recorder.device_state(device, Nanos(400), None);
//! let partition = Some(PartitionRef { job: JobId(1), index: 0, attempt: 0 });
//! recorder.span(Span { partition, ..Span::new(device, Stage::Kernels, Nanos(400), Nanos(1000)) });
//!
//! let timeline = recorder.snapshot(Nanos(1000));
//! let summary = Summary::of(&timeline);
//! assert_eq!(summary.devices[0].utilization, 0.6);
//! assert_eq!(summary.devices[0].idle[0].reason, "no synthesized partition");
//! assert_eq!(summary.devices[0].idle[0].time.total, Nanos(400));
//!
//! let mut page = Vec::new();
//! timeline.write_html(&mut page)?;
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod activity;
mod html;
mod idle;
mod lanes;
mod model;
mod native;
mod perfetto;
mod recorder;
mod stage;
mod summary;
mod units;

pub use activity::{Activity, Segment, device_activity};
pub use html::Waterfall;
pub use idle::{IdleReason, Pool, UNEXPLAINED};
pub use model::{
    CircuitId, Dropped, IdleGap, JobEvent, JobId, JobMark, Outcome, PartitionRef, PoolUse, Sample, Span, Timeline,
    Track, TrackId, TrackKind,
};
pub use native::ReadError;
pub use recorder::{Limits, OpenSpan, Recorder};
pub use stage::{CustomStage, Stage, StageClass, StageId};
pub use summary::{DeviceSummary, Distribution, IdleTime, JobsSummary, PoolSummary, StageSummary, Summary};
pub use units::Nanos;
