//! The JSON trace format of Chrome, which <https://ui.perfetto.dev> opens.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write},
};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    Activity, JobEvent, JobId, Nanos, Outcome, PartitionRef, Pool, Span, Stage, StageClass, Timeline, TrackId,
    TrackKind, device_activity, lanes::Lanes,
};

/// The one process: the machine.
const MACHINE: u32 = 1;

/// One event. Times are in microseconds, with three decimals.
#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    pid: u32,
    tid: u32,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// What a flow's end is bound to: `e`, the slice around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    /// How far an instant reaches: `p`, the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    args: Map<String, Value>,
}

impl<'a> Event<'a> {
    fn new(ph: &'static str, name: &'a str, tid: u32, at: Nanos) -> Self {
        let (pid, ts) = (MACHINE, microseconds(at));
        Self { ph, name, cat: None, pid, tid, ts, dur: None, id: None, bp: None, s: None, args: Map::new() }
    }
}

fn microseconds(nanos: Nanos) -> f64 {
    nanos.0 as f64 / 1e3
}

fn args<const N: usize>(items: [(&str, Value); N]) -> Map<String, Value> {
    items.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Writes a JSON array item by item, so that nothing but the timeline itself has to be held.
struct Events<W> {
    out: W,
    first: bool,
}

impl<W: Write> Events<W> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.out.write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut self.out, event)?;
        Ok(())
    }

    fn metadata(&mut self, name: &'static str, tid: u32, args: Map<String, Value>) -> io::Result<()> {
        self.put(&Event { args, ..Event::new("M", name, tid, Nanos::ZERO) })
    }
}

/// The numbers of threads: each lane of a track is one, and the gaps of a device are another one.
struct Threads {
    first: BTreeMap<TrackId, u32>,
    gaps: BTreeMap<TrackId, u32>,
}

impl Threads {
    /// Names and sorts the threads: by kind, then by track, the gaps of a device right below it.
    fn write(timeline: &Timeline, lanes: &Lanes, events: &mut Events<impl Write>) -> io::Result<Self> {
        let mut threads = Self { first: BTreeMap::new(), gaps: BTreeMap::new() };
        let mut next = 1;
        let mut name = |name: String| {
            let tid = next;
            next += 1;
            events.metadata("thread_name", tid, args([("name", name.into())]))?;
            events.metadata("thread_sort_index", tid, args([("sort_index", tid.into())]))?;
            io::Result::Ok(tid)
        };
        let mut tracks: Vec<_> = timeline.tracks().collect();
        tracks.sort_by_key(|(id, track)| (track.kind, *id));
        for (id, track) in tracks.iter().filter(|(_, track)| track.kind != TrackKind::Waiting) {
            threads.first.insert(*id, name(track.name.clone())?);
            for lane in 1..lanes.count.get(id).copied().unwrap_or(1) {
                name(format!("{} ({})", track.name, lane + 1))?;
            }
            if track.kind == TrackKind::Device {
                threads.gaps.insert(*id, name(format!("{}: idle", track.name))?);
            }
        }
        Ok(threads)
    }
}

/// Where the arrow of an attempt at a partition touches slices: the thread and the time.
#[derive(Default)]
struct Flow {
    witness: Option<(u32, Nanos)>,
    device: Option<(u32, Nanos)>,
    finish: Option<(u32, Nanos)>,
}

impl Flow {
    fn touch(&mut self, span: &Span, class: StageClass, on_device: bool, tid: u32) {
        let first = |place: &mut Option<(u32, Nanos)>| *place = Some(place.unwrap_or((tid, span.start)));
        match span.stage {
            // The arrow leaves from within the slice, so that it is bound to it even where another one follows at once.
            Stage::Witness => self.witness = Some((tid, Nanos(span.start.0 + span.duration().0 / 2))),
            Stage::Finish => first(&mut self.finish),
            _ if on_device && class == StageClass::Compute => first(&mut self.device),
            _ => {}
        }
    }
}

impl Timeline {
    /// Writes the JSON trace format, which <https://ui.perfetto.dev> and `chrome://tracing` open: the machine is a
    /// process, tracks are threads (spans that overlap get threads beside), waits and jobs are asynchronous events,
    /// pools are counters, and an arrow leads from the witness of each partition to its device and to its finish.
    /// Times are relative to the recorder's start. `out` should be buffered; events are written one by one.
    ///
    /// # Errors
    /// Whatever `out` fails with.
    pub fn write_perfetto(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        let mut events = Events { out, first: true };
        events.metadata("process_name", 0, args([("name", self.title.as_str().into())]))?;
        let lanes = Lanes::new(self);
        let threads = Threads::write(self, &lanes, &mut events)?;
        let names = self.job_names();
        let flows = self.write_spans(&lanes, &threads, &names, &mut events)?;
        write_flows(flows, &mut events)?;
        self.write_gaps(&threads, &names, &mut events)?;
        self.write_jobs(&names, &mut events)?;
        self.write_pools(&mut events)?;
        let mut out = events.out;
        out.write_all(b"\n]}\n")?;
        out.flush()
    }

    fn write_spans(
        &self,
        lanes: &Lanes,
        threads: &Threads,
        names: &BTreeMap<JobId, &str>,
        events: &mut Events<impl Write>,
    ) -> io::Result<HashMap<PartitionRef, Flow>> {
        let mut flows: HashMap<PartitionRef, Flow> = HashMap::new();
        for &i in &lanes.order {
            let span = &self.spans[i];
            let (label, class) = (self.stage_label(span.stage), self.stage_class(span.stage));
            let circuit = span.circuit.map(|c| self.circuits.get(&c).cloned().unwrap_or_else(|| c.0.to_string()));
            let job =
                span.partition.map(|p| names.get(&p.job).map_or_else(|| p.job.0.to_string(), |n| (*n).to_owned()));
            let args = args([
                ("job", job.into()),
                ("partition", span.partition.map(|p| p.index).into()),
                ("attempt", span.partition.map(|p| p.attempt).filter(|a| *a > 0).into()),
                ("circuit", circuit.into()),
                ("bytes", Some(span.bytes).filter(|b| *b > 0).into()),
                ("outcome", (span.outcome != Outcome::Ok).then(|| json!(span.outcome)).into()),
            ]);
            let Some(first) = threads.first.get(&span.track) else {
                // A wait, or of a track that does not exist. Asynchronous events may overlap.
                let begin = Event { cat: Some("wait"), id: Some(i as u64), ..Event::new("b", label, 0, span.start) };
                events.put(&Event { args, ..begin })?;
                events.put(&Event { cat: Some("wait"), id: Some(i as u64), ..Event::new("e", label, 0, span.end) })?;
                continue;
            };
            let tid = first + lanes.of[i];
            let dur = Some(microseconds(span.duration()));
            let cat = Some(category(class));
            events.put(&Event { cat, dur, args, ..Event::new("X", label, tid, span.start) })?;
            if let Some(partition) = span.partition {
                let on_device = threads.gaps.contains_key(&span.track);
                flows.entry(partition).or_default().touch(span, class, on_device, tid);
            }
        }
        Ok(flows)
    }

    fn write_gaps(
        &self,
        threads: &Threads,
        names: &BTreeMap<JobId, &str>,
        events: &mut Events<impl Write>,
    ) -> io::Result<()> {
        for (device, tid) in &threads.gaps {
            for segment in device_activity(self, *device) {
                let (label, detail) = match segment.activity {
                    Activity::Busy => continue,
                    Activity::Idle(gap) => (gap.reason.label(), self.explain(&gap.reason, names)),
                    Activity::Unexplained => (crate::UNEXPLAINED, String::new()),
                };
                let dur = Some(microseconds(segment.duration()));
                let args = args([("reason", detail.into())]);
                events.put(&Event { cat: Some("idle"), dur, args, ..Event::new("X", label, *tid, segment.start) })?;
            }
        }
        Ok(())
    }

    fn write_jobs(&self, names: &BTreeMap<JobId, &str>, events: &mut Events<impl Write>) -> io::Result<()> {
        for mark in &self.marks {
            let own = format!("job {}", mark.job.0);
            let name = names.get(&mark.job).map_or(own.as_str(), |name| name);
            let (ph, args) = match &mark.event {
                JobEvent::Submitted { circuit, partitions, .. } => {
                    let circuit = circuit.and_then(|c| self.circuits.get(&c).cloned());
                    ("b", args([("circuit", circuit.into()), ("partitions", (*partitions).into())]))
                }
                // Without its begin, an end would be refused.
                _ if !names.contains_key(&mark.job) => continue,
                JobEvent::Completed => ("e", args([("outcome", "completed".into())])),
                JobEvent::Failed { cause } => {
                    ("e", args([("outcome", "failed".into()), ("cause", cause.as_str().into())]))
                }
                JobEvent::Cancelled => ("e", args([("outcome", "cancelled".into())])),
            };
            let id = Some(mark.job.0);
            events.put(&Event { cat: Some("job"), id, args, ..Event::new(ph, name, 0, mark.at) })?;
            if let JobEvent::Failed { .. } = mark.event {
                let name = format!("{name} failed");
                events.put(&Event { cat: Some("job"), s: Some("p"), ..Event::new("i", &name, 0, mark.at) })?;
            }
        }
        Ok(())
    }

    fn write_pools(&self, events: &mut Events<impl Write>) -> io::Result<()> {
        for pool in &self.pools {
            let memory = match pool.pool {
                Pool::Host => "host memory".to_owned(),
                Pool::Pinned => "pinned memory".to_owned(),
                Pool::Device(device) => format!("device {device} memory"),
            };
            // Two counters, because several values of one would be stacked.
            let capacity = format!("{memory}, capacity (bytes)");
            for at in [self.start, self.end] {
                events.put(&Event {
                    args: args([("bytes", pool.capacity.into())]),
                    ..Event::new("C", &capacity, 0, at)
                })?;
            }
            let in_use = format!("{memory}, in use (bytes)");
            for sample in &pool.samples {
                let args = args([("bytes", sample.in_use.into())]);
                events.put(&Event { args, ..Event::new("C", &in_use, 0, sample.at) })?;
            }
        }
        Ok(())
    }
}

fn category(class: StageClass) -> &'static str {
    match class {
        StageClass::Wait => "wait",
        StageClass::Host => "host",
        StageClass::Transfer => "transfer",
        StageClass::Compute => "compute",
    }
}

/// Arrows, in the order of partitions, so that the same timeline gives the same bytes.
fn write_flows(flows: HashMap<PartitionRef, Flow>, events: &mut Events<impl Write>) -> io::Result<()> {
    let mut flows: Vec<_> = flows.into_iter().collect();
    flows.sort_unstable_by_key(|(partition, _)| *partition);
    for (id, (_, flow)) in (1..).zip(flows) {
        let points: Vec<(u32, Nanos)> = [flow.witness, flow.device, flow.finish].into_iter().flatten().collect();
        for (place, (tid, at)) in points.iter().enumerate().filter(|_| points.len() > 1) {
            let (ph, bp) = match place {
                0 => ("s", None),
                _ if place + 1 < points.len() => ("t", Some("e")),
                _ => ("f", Some("e")),
            };
            events.put(&Event {
                cat: Some("partition"),
                id: Some(id),
                bp,
                ..Event::new(ph, "partition", *tid, *at)
            })?;
        }
    }
    Ok(())
}
