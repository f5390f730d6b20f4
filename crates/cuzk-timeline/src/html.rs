//! The waterfall: one page with everything in it, to be opened from a file, and its parts for pages of others.
//!
//! Its style sheet and its program are the files beside this one; they are put into the page together with the data,
//! which is JSON. No text of the timeline becomes markup: `<` is escaped in the JSON, and the program makes text nodes
//! of names.
//!
//! The program is written for data that change: `load(data)`, then `layOut()` and `draw()`. The page of a file does
//! that once.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use serde::Serialize;

use crate::{
    Activity, CircuitId, JobEvent, JobId, Nanos, Outcome, PoolUse, Stage, StageClass, Summary, Timeline, Track,
    TrackId, TrackKind, UNEXPLAINED, device_activity, lanes::Lanes,
};

/// Text and, between pairs of `@@`, the names of what goes there.
const PAGE: &str = include_str!("html/page.html");
/// What a whole run needs beside the waterfall.
const WHOLE_RUN: [&str; 2] = [include_str!("html/summary.js"), include_str!("html/main.js")];

/// The waterfall for pages of others, which show a run that goes on: its markup, its style sheet and its program.
///
/// The page needs elements with the ids `theme` and `help` (buttons) beside [`MARKUP`](Self::MARKUP). Its own program
/// goes behind [`PROGRAM`](Self::PROGRAM), in the same module: it gets what [`Timeline::write_page_data`] writes and
/// calls `load`, `layOut` and `draw` with it, and at the start `setTheme`, `listenToPointer`, `listenToOverview`,
/// `listenToKeys` and `listenToSize`.
#[derive(Debug)]
pub struct Waterfall;

impl Waterfall {
    /// What goes into the body.
    pub const MARKUP: &str = include_str!("html/waterfall.html");
    /// The style sheet, also of what surrounds the waterfall.
    pub const STYLE: &str = include_str!("html/style.css");
    /// The program: a module's begin.
    pub const PROGRAM: [&str; 5] = [
        include_str!("html/units.js"),
        include_str!("html/model.js"),
        include_str!("html/draw.js"),
        include_str!("html/panels.js"),
        include_str!("html/input.js"),
    ];
}

impl Timeline {
    /// Writes the waterfall: a page that needs nothing else, neither a network nor a server. `out` should be buffered.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn write_html(&self, mut out: impl Write) -> io::Result<()> {
        for (place, part) in PAGE.split("@@").enumerate() {
            match part {
                "style" if place % 2 == 1 => out.write_all(Waterfall::STYLE.as_bytes())?,
                "waterfall" if place % 2 == 1 => out.write_all(Waterfall::MARKUP.as_bytes())?,
                "program" if place % 2 == 1 => {
                    let files = Waterfall::PROGRAM.iter().chain(&WHOLE_RUN);
                    files.map(|file| file.as_bytes()).try_for_each(|file| out.write_all(file))?;
                }
                "data" if place % 2 == 1 => serde_json::to_writer(NoMarkup(&mut out), &Data::of(self))?,
                text => out.write_all(text.as_bytes())?,
            }
        }
        out.flush()
    }

    /// Writes what the program of a [`Waterfall`] takes: JSON, whose form belongs to that program and changes with it.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn write_page_data(&self, out: impl Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, &Data::of(self))?)
    }
}

/// Escapes `<` on the way, which occurs in JSON only within texts: nothing in them can end the element around them.
struct NoMarkup<W>(W);

impl<W: Write> Write for NoMarkup<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (place, part) in bytes.split(|b| *b == b'<').enumerate() {
            if place > 0 {
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// What the page's program gets. Times are in nanoseconds since the timeline's start (negative: before it), records
/// are stored by column.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    /// Time of day of the timeline's start: milliseconds since 1970 UTC.
    started_unix_ms: Option<u64>,
    /// The timeline's start itself, in nanoseconds since the recorder's.
    start: Nanos,
    wall: Nanos,
    stages: Vec<StageData<'a>>,
    circuits: Vec<&'a str>,
    tracks: Vec<TrackData<'a>>,
    jobs: Vec<JobData<'a>>,
    spans: SpanColumns,
    idle: Vec<IdleData<'a>>,
    pools: Vec<PoolData>,
    summary: Summary,
}

#[derive(Serialize)]
struct StageData<'a> {
    label: &'a str,
    class: StageClass,
}

#[derive(Serialize)]
struct TrackData<'a> {
    name: &'a str,
    kind: TrackKind,
    lanes: u32,
}

#[derive(Serialize, Default)]
struct JobData<'a> {
    id: u64,
    name: Option<&'a str>,
    circuit: Option<usize>,
    partitions: Option<u32>,
    submitted: Option<i64>,
    ended: Option<i64>,
    outcome: Option<&'static str>,
    cause: Option<&'a str>,
}

/// Spans by start. `stage`, `job` and `circuit` are places in the lists beside this one, -1 for none.
#[derive(Serialize, Default)]
struct SpanColumns {
    track: Vec<u32>,
    lane: Vec<u32>,
    stage: Vec<i64>,
    job: Vec<i64>,
    partition: Vec<u32>,
    attempt: Vec<u32>,
    circuit: Vec<i64>,
    start: Vec<i64>,
    duration: Vec<u64>,
    bytes: Vec<u64>,
    /// 0: ok, 1: failed, 2: cancelled, 3: still running.
    outcome: Vec<u8>,
}

#[derive(Serialize)]
struct IdleData<'a> {
    track: u32,
    start: i64,
    duration: u64,
    label: &'a str,
    detail: String,
}

#[derive(Serialize)]
struct PoolData {
    name: String,
    capacity: u64,
    at: Vec<i64>,
    in_use: Vec<u64>,
}

/// The place of `key` in a list that `places` gives, or -1.
fn place<K: Ord>(places: &BTreeMap<K, usize>, key: Option<K>) -> i64 {
    key.and_then(|k| places.get(&k)).map_or(-1, |p| *p as i64)
}

fn places<K: Ord>(keys: impl IntoIterator<Item = K>) -> BTreeMap<K, usize> {
    let keys: BTreeSet<K> = keys.into_iter().collect();
    keys.into_iter().zip(0..).collect()
}

impl<'a> Data<'a> {
    fn of(timeline: &'a Timeline) -> Self {
        let since = |at: Nanos| at.0 as i64 - timeline.start.0 as i64;
        let spans = &timeline.spans;
        let stage_places = places(spans.iter().map(|s| s.stage));
        let circuit_places = places(timeline.circuits.keys().copied());
        let marked = timeline.marks.iter().map(|m| m.job);
        let job_places = places(marked.chain(spans.iter().filter_map(|s| s.partition.map(|p| p.job))));
        let lanes = Lanes::new(timeline);

        let mut columns = SpanColumns::default();
        for &i in &lanes.order {
            let span = &spans[i];
            columns.track.push(span.track.0);
            columns.lane.push(lanes.of[i]);
            columns.stage.push(place(&stage_places, Some(span.stage)));
            columns.job.push(place(&job_places, span.partition.map(|p| p.job)));
            columns.partition.push(span.partition.map_or(0, |p| p.index));
            columns.attempt.push(span.partition.map_or(0, |p| p.attempt));
            columns.circuit.push(place(&circuit_places, span.circuit));
            columns.start.push(since(span.start));
            columns.duration.push(span.duration().0);
            columns.bytes.push(span.bytes);
            columns.outcome.push(match span.outcome {
                Outcome::Ok => 0,
                Outcome::Failed => 1,
                Outcome::Cancelled => 2,
                Outcome::Running => 3,
            });
        }

        let names = &timeline.job_names();
        let idle_of = |device: TrackId| {
            device_activity(timeline, device).into_iter().filter_map(move |segment| {
                let (label, detail) = match segment.activity {
                    Activity::Busy => return None,
                    Activity::Idle(gap) => (gap.reason.label(), timeline.explain(&gap.reason, names)),
                    Activity::Unexplained => (UNEXPLAINED, UNEXPLAINED.to_owned()),
                };
                let (start, duration) = (since(segment.start), segment.duration().0);
                Some(IdleData { track: device.0, start, duration, label, detail })
            })
        };

        let stage =
            |stage: &Stage| StageData { label: timeline.stage_label(*stage), class: timeline.stage_class(*stage) };
        let pool = |pool: &PoolUse| PoolData {
            name: pool.pool.to_string(),
            capacity: pool.capacity,
            at: pool.samples.iter().map(|s| since(s.at)).collect(),
            in_use: pool.samples.iter().map(|s| s.in_use).collect(),
        };
        let track = |(id, track): (TrackId, &'a Track)| TrackData {
            name: &track.name,
            kind: track.kind,
            lanes: lanes.count.get(&id).copied().unwrap_or(0),
        };
        Self {
            title: &timeline.title,
            started_unix_ms: timeline.started_unix_ms.map(|ms| ms.saturating_add(timeline.start.0 / 1_000_000)),
            start: timeline.start,
            wall: timeline.wall(),
            stages: stage_places.keys().map(stage).collect(),
            circuits: timeline.circuits.values().map(String::as_str).collect(),
            tracks: timeline.tracks().map(track).collect(),
            jobs: jobs(timeline, &job_places, &circuit_places),
            spans: columns,
            idle: timeline.devices().flat_map(|(id, _)| idle_of(id)).collect(),
            pools: timeline.pools.iter().map(pool).collect(),
            summary: Summary::of(timeline),
        }
    }
}

fn jobs<'a>(
    timeline: &'a Timeline,
    places: &BTreeMap<JobId, usize>,
    circuits: &BTreeMap<CircuitId, usize>,
) -> Vec<JobData<'a>> {
    let mut jobs: Vec<JobData<'_>> = places.keys().map(|job| JobData { id: job.0, ..JobData::default() }).collect();
    for mark in &timeline.marks {
        let Some(job) = places.get(&mark.job).and_then(|p| jobs.get_mut(*p)) else { continue };
        let at = Some(mark.at.0 as i64 - timeline.start.0 as i64);
        match &mark.event {
            JobEvent::Submitted { name, circuit, partitions } => {
                (job.name, job.submitted, job.partitions) = (Some(name.as_str()), at, Some(*partitions));
                job.circuit = circuit.and_then(|c| circuits.get(&c).copied());
            }
            JobEvent::Completed => (job.outcome, job.ended) = (Some("completed"), at),
            JobEvent::Failed { cause } => {
                (job.outcome, job.ended, job.cause) = (Some("failed"), at, Some(cause.as_str()));
            }
            JobEvent::Cancelled => (job.outcome, job.ended) = (Some("cancelled"), at),
        }
    }
    jobs
}
