//! Recording while the engine runs: cheap, from any thread, in bounded memory.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    CircuitId, CustomStage, Dropped, IdleGap, IdleReason, JobEvent, JobId, JobMark, Nanos, Outcome, Pool, PoolUse,
    Sample, Span, Stage, StageClass, StageId, Timeline, Track, TrackId, TrackKind,
};

/// How much a [`Recorder`] keeps. When there is more, the oldest go first, and are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Spans, of 72 bytes each.
    pub spans: usize,
    /// Samples of all pools together, of 24 bytes each.
    pub samples: usize,
    /// Idle gaps of all devices together.
    pub gaps: usize,
    /// Marks of jobs.
    pub marks: usize,
    /// What ended longer ago than this (by the newest record) goes, too.
    pub window: Option<Duration>,
}

impl Default for Limits {
    /// About 40 MB: the last 1,300 proofs of ten partitions with 20 spans each.
    fn default() -> Self {
        Self { spans: 1 << 18, samples: 1 << 18, gaps: 1 << 16, marks: 1 << 15, window: None }
    }
}

/// A span that has begun. Not to be copied: it ends once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a span that is not ended runs for ever"]
pub struct OpenSpan(u64);

/// Records what an engine does.
///
/// All times are given by the caller, as nanoseconds since the recorder's start: [`now`](Self::now) and
/// [`at`](Self::at) give them for real time, a simulator gives its own. Records are expected about in the order of
/// their ends. Recording a span takes a lock for some tens of nanoseconds and allocates nothing. Names, causes and
/// details are cut at 4 KiB.
#[derive(Debug)]
pub struct Recorder {
    title: String,
    origin: Instant,
    started_unix_ms: Option<u64>,
    limits: Limits,
    records: Mutex<Records>,
}

#[derive(Debug)]
struct Records {
    tracks: Vec<Track>,
    circuits: BTreeMap<CircuitId, String>,
    custom_stages: Vec<CustomStage>,
    pools: Vec<PoolState>,
    spans: Ring<Span>,
    gaps: Ring<IdleGap>,
    samples: Ring<(u32, Sample)>,
    marks: Ring<JobMark>,
    /// Spans that have not ended, by the number of their token.
    open_spans: BTreeMap<u64, Span>,
    next_token: u64,
    /// Gaps that have not ended, by track.
    open_gaps: BTreeMap<TrackId, (Nanos, IdleReason)>,
    newest: Nanos,
    complete_from: Nanos,
}

#[derive(Debug)]
struct PoolState {
    pool: Pool,
    capacity: u64,
    /// The last sample that was dropped: it holds until the first one that is kept.
    before: Option<Sample>,
    last: Option<u64>,
}

#[derive(Debug)]
struct Ring<T> {
    items: VecDeque<T>,
    capacity: usize,
    dropped: u64,
}

impl<T> Ring<T> {
    /// Space for all is taken at once (and touched by use), so that no later call pays for growing.
    fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { items: VecDeque::with_capacity(capacity), capacity, dropped: 0 }
    }

    /// Makes the space resident, which use would do little by little.
    fn make_resident(&mut self, any: T)
    where
        T: Clone,
    {
        if self.items.is_empty() {
            self.items.resize(self.capacity, any);
            self.items.clear();
        }
    }

    /// Adds an item and hands those to `drop` that have to go: the oldest if there is no room, and all that ended
    /// before `horizon`.
    fn push(&mut self, item: T, horizon: Nanos, end: impl Fn(&T) -> Nanos, mut drop: impl FnMut(T)) {
        while self.items.len() >= self.capacity || self.items.front().is_some_and(|i| end(i) < horizon) {
            let Some(oldest) = self.items.pop_front() else { break };
            self.dropped += 1;
            drop(oldest);
        }
        self.items.push_back(item);
    }
}

/// Texts are kept up to this length, in bytes.
const MAX_TEXT_BYTES: usize = 4096;

fn cut(text: &mut String) {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    }
}

fn cut_reason(reason: &mut IdleReason) {
    match reason {
        IdleReason::NoSynthesizedPartition { because: Some(text), .. } => cut(text),
        IdleReason::Other { label, detail } => [label, detail].into_iter().for_each(cut),
        _ => {}
    }
}

impl Records {
    /// Takes note of the time of a record and gives the moment before which records are too old.
    fn horizon(&mut self, at: Nanos, limits: &Limits) -> Nanos {
        self.newest = self.newest.max(at);
        limits.window.map_or(Nanos::ZERO, |w| self.newest - w.into())
    }

    fn push_span(&mut self, mut span: Span, limits: &Limits) {
        span.end = span.end.max(span.start);
        let horizon = self.horizon(span.end, limits);
        let complete_from = &mut self.complete_from;
        self.spans.push(span, horizon, |s| s.end, |s| *complete_from = s.end.max(*complete_from));
    }

    fn push_gap(&mut self, gap: IdleGap, limits: &Limits) {
        let horizon = self.horizon(gap.end, limits);
        let complete_from = &mut self.complete_from;
        self.gaps.push(gap, horizon, |g| g.end, |g| *complete_from = g.end.max(*complete_from));
    }
}

impl Recorder {
    /// A recorder that starts now. `title` names the machine or the run.
    pub fn new(title: impl Into<String>, limits: Limits) -> Self {
        let records = Records {
            tracks: Vec::new(),
            circuits: BTreeMap::new(),
            custom_stages: Vec::new(),
            pools: Vec::new(),
            spans: Ring::new(limits.spans),
            gaps: Ring::new(limits.gaps),
            samples: Ring::new(limits.samples),
            marks: Ring::new(limits.marks),
            open_spans: BTreeMap::new(),
            next_token: 0,
            open_gaps: BTreeMap::new(),
            newest: Nanos::ZERO,
            complete_from: Nanos::ZERO,
        };
        let (title, origin) = (title.into(), Instant::now());
        Self { title, origin, started_unix_ms: None, limits, records: Mutex::new(records) }
    }

    /// Makes the space for all that its limits allow resident now. A process that lives long and records all the time
    /// then has its final size from the start, and whatever grows later is something else.
    #[must_use]
    pub fn resident(self) -> Self {
        let (track, zero) = (TrackId(0), Nanos::ZERO);
        let mut records = self.lock();
        records.spans.make_resident(Span::new(track, Stage::Queue, zero, zero));
        records.gaps.make_resident(IdleGap { track, start: zero, end: zero, reason: IdleReason::NoWork });
        records.samples.make_resident((0, Sample { at: zero, in_use: 0 }));
        records.marks.make_resident(JobMark { job: JobId(0), at: zero, event: JobEvent::Completed });
        drop(records);
        self
    }

    /// States the time of day of its start, for whoever compares a timeline with a log.
    pub fn started_at(mut self, time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).ok();
        self.started_unix_ms = since.and_then(|d| u64::try_from(d.as_millis()).ok());
        self
    }

    /// Now, in real time.
    pub fn now(&self) -> Nanos {
        self.at(Instant::now())
    }

    /// A moment of real time. Moments before the recorder's start count as its start.
    pub fn at(&self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.origin).into()
    }

    /// A panic cannot leave records half-written: each is one `push`. So a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row. Rows are shown in the order of their kinds, then of their addition. They are kept for ever: add one
    /// a device and a worker, not one a job.
    pub fn add_track(&self, name: impl Into<String>, kind: TrackKind) -> TrackId {
        let mut name = name.into();
        cut(&mut name);
        let tracks = &mut self.lock().tracks;
        tracks.push(Track { name, kind });
        // Four thousand million rows would be far beyond any memory.
        TrackId(tracks.len() as u32 - 1)
    }

    /// Names a circuit.
    pub fn name_circuit(&self, circuit: CircuitId, name: impl Into<String>) {
        let mut name = name.into();
        cut(&mut name);
        self.lock().circuits.insert(circuit, name);
    }

    /// A stage with a name of its own. The same name gives the same stage, of the class that it was first given.
    pub fn custom_stage(&self, name: &str, class: StageClass) -> Stage {
        let mut name = name.to_owned();
        cut(&mut name);
        let stages = &mut self.lock().custom_stages;
        let place = stages.iter().position(|s| s.name == name).unwrap_or_else(|| {
            stages.push(CustomStage { name, class });
            stages.len() - 1
        });
        Stage::Custom(StageId(place as u32))
    }

    /// Adds a memory pool, or changes its capacity.
    pub fn set_capacity(&self, pool: Pool, capacity: u64) {
        let pools = &mut self.lock().pools;
        match pools.iter_mut().find(|p| p.pool == pool) {
            Some(known) => known.capacity = capacity,
            None => pools.push(PoolState { pool, capacity, before: None, last: None }),
        }
    }

    /// Records a span. One that ends before it starts counts as empty.
    pub fn span(&self, span: Span) {
        self.lock().push_span(span, &self.limits);
    }

    /// Records that a span has begun (its end and its outcome do not matter), so that it is seen in snapshots that are
    /// taken before it ends. To be ended by [`end`](Self::end); of more than [`Limits::spans`] that are not, the
    /// oldest are dropped.
    pub fn begin(&self, span: Span) -> OpenSpan {
        let mut records = self.lock();
        if records.open_spans.len() >= self.limits.spans.max(1) && records.open_spans.pop_first().is_some() {
            records.spans.dropped += 1;
        }
        let token = records.next_token;
        records.next_token += 1;
        records.open_spans.insert(token, span);
        OpenSpan(token)
    }

    /// Records the end of a span that has begun, with what is known by then.
    pub fn end(&self, open: OpenSpan, at: Nanos, bytes: u64, outcome: Outcome) {
        let mut records = self.lock();
        if let Some(span) = records.open_spans.remove(&open.0) {
            records.push_span(Span { end: at, bytes, outcome, ..span }, &self.limits);
        }
    }

    /// Records how many bytes of a pool are in use from `at` on. A pool that has no capacity yet gets one of zero,
    /// which is shown as unknown; a value that is the last one again is not recorded.
    pub fn memory(&self, pool: Pool, at: Nanos, in_use: u64) {
        let mut records = self.lock();
        let horizon = records.horizon(at, &self.limits);
        let Records { pools, samples, .. } = &mut *records;
        let place = pools.iter().position(|p| p.pool == pool).unwrap_or_else(|| {
            pools.push(PoolState { pool, capacity: 0, before: None, last: None });
            pools.len() - 1
        });
        if pools[place].last.replace(in_use) == Some(in_use) {
            return;
        }
        let sample = Sample { at, in_use };
        samples.push(
            (place as u32, sample),
            horizon,
            |s| s.1.at,
            |(of, sample)| {
                pools[of as usize].before = Some(sample);
            },
        );
    }

    /// States what a device does from `at` on: `None`, it computes; or why it does not. To be called whenever that may
    /// have changed. A gap goes on while the [label](IdleReason::label) of the reason stays the same, with the numbers
    /// of its begin.
    pub fn device_state(&self, device: TrackId, at: Nanos, mut idle: Option<IdleReason>) {
        if let Some(reason) = &mut idle {
            cut_reason(reason);
        }
        let mut records = self.lock();
        let same = match (records.open_gaps.get(&device), &idle) {
            (Some((_, open)), Some(reason)) => open.label() == reason.label(),
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        let closed = match idle {
            Some(reason) => records.open_gaps.insert(device, (at, reason)),
            None => records.open_gaps.remove(&device),
        };
        if let Some((start, reason)) = closed
            && start < at
        {
            records.push_gap(IdleGap { track: device, start, end: at, reason }, &self.limits);
        }
    }

    /// Records a gap of a device whose end is known: the other way beside [`device_state`](Self::device_state).
    pub fn gap(&self, mut gap: IdleGap) {
        gap.end = gap.end.max(gap.start);
        cut_reason(&mut gap.reason);
        self.lock().push_gap(gap, &self.limits);
    }

    /// Records what happened to a job.
    pub fn mark(&self, mut mark: JobMark) {
        match &mut mark.event {
            JobEvent::Submitted { name: text, .. } | JobEvent::Failed { cause: text } => cut(text),
            JobEvent::Completed | JobEvent::Cancelled => {}
        }
        let mut records = self.lock();
        let horizon = records.horizon(mark.at, &self.limits);
        records.marks.push(mark, horizon, |m| m.at, drop);
    }

    /// How much was dropped so far.
    pub fn dropped(&self) -> Dropped {
        self.lock().dropped()
    }

    /// What is recorded, until `at`; spans and gaps that have not ended are cut there. It begins where the record is
    /// complete: at zero, or at the end of the last span or gap that was dropped.
    pub fn snapshot(&self, at: Nanos) -> Timeline {
        let records = self.lock();
        let end = at.max(records.newest);
        let start = records.complete_from.min(end);
        let open = records.open_gaps.iter().filter(|(_, (since, _))| *since < end);
        let open =
            open.map(|(track, (since, reason))| IdleGap { track: *track, start: *since, end, reason: reason.clone() });
        let running = records.open_spans.values().filter(|s| s.start < end);
        let running = running.map(|s| Span { end, outcome: Outcome::Running, ..*s });
        let pool_use = |(place, pool): (usize, &PoolState)| {
            let kept = records.samples.items.iter().filter(|(of, _)| *of as usize == place).map(|(_, sample)| *sample);
            let mut samples: Vec<Sample> = pool.before.into_iter().chain(kept).collect();
            samples.sort_by_key(|s| s.at);
            PoolUse { pool: pool.pool, capacity: pool.capacity, samples }
        };
        let timeline = Timeline {
            title: self.title.clone(),
            started_unix_ms: self.started_unix_ms,
            start,
            end,
            tracks: records.tracks.clone(),
            circuits: records.circuits.clone(),
            custom_stages: records.custom_stages.clone(),
            pools: records.pools.iter().enumerate().map(pool_use).collect(),
            spans: records.spans.items.iter().copied().chain(running).collect(),
            gaps: records.gaps.items.iter().cloned().chain(open).collect(),
            marks: records.marks.items.iter().cloned().collect(),
            dropped: records.dropped(),
        };
        drop(records);
        timeline
    }
}

impl Records {
    fn dropped(&self) -> Dropped {
        Dropped {
            spans: self.spans.dropped,
            gaps: self.gaps.dropped,
            samples: self.samples.dropped,
            marks: self.marks.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobId;

    fn span(track: TrackId, start: u64, end: u64) -> Span {
        Span::new(track, Stage::Kernels, Nanos(start), Nanos(end))
    }

    #[test]
    fn the_documented_size_of_a_span() {
        assert_eq!(size_of::<Span>(), 72);
        assert_eq!(size_of::<(u32, Sample)>(), 24);
    }

    #[test]
    fn the_oldest_spans_go_and_are_counted() {
        let recorder = Recorder::new("test", Limits { spans: 4, ..Limits::default() });
        let device = recorder.add_track("device 0", TrackKind::Device);
        (0..10).for_each(|i| recorder.span(span(device, 10 * i, 10 * i + 7)));
        let timeline = recorder.snapshot(Nanos(100));
        assert_eq!(timeline.spans.iter().map(|s| s.start.0).collect::<Vec<_>>(), [60, 70, 80, 90]);
        assert_eq!(timeline.dropped, Dropped { spans: 6, ..Dropped::default() });
        assert_eq!(
            (timeline.start, timeline.end),
            (Nanos(57), Nanos(100)),
            "complete from the end of the last one dropped"
        );
    }

    #[test]
    fn what_is_older_than_the_window_goes() {
        let limits = Limits { window: Some(Duration::from_nanos(25)), ..Limits::default() };
        let recorder = Recorder::new("test", limits);
        let device = recorder.add_track("device 0", TrackKind::Device);
        (0..10).for_each(|i| recorder.span(span(device, 10 * i, 10 * i + 10)));
        let timeline = recorder.snapshot(Nanos(100));
        assert_eq!(timeline.spans.iter().map(|s| s.end.0).collect::<Vec<_>>(), [80, 90, 100]);
        assert_eq!((timeline.start, timeline.dropped.total()), (Nanos(70), 7));
    }

    #[test]
    fn a_dropped_sample_holds_until_the_first_that_is_kept() {
        let recorder = Recorder::new("test", Limits { samples: 3, ..Limits::default() });
        recorder.set_capacity(Pool::Host, 100);
        recorder.set_capacity(Pool::Pinned, 50);
        recorder.memory(Pool::Pinned, Nanos(0), 9);
        (1..=5).for_each(|i| recorder.memory(Pool::Host, Nanos(i), i));
        recorder.memory(Pool::Host, Nanos(6), 5);
        let timeline = recorder.snapshot(Nanos(10));
        let values =
            |place: usize| timeline.pools[place].samples.iter().map(|s| (s.at.0, s.in_use)).collect::<Vec<_>>();
        assert_eq!(values(0), [(2, 2), (3, 3), (4, 4), (5, 5)], "the repeated value is not recorded");
        assert_eq!(values(1), [(0, 9)]);
        assert_eq!(timeline.dropped.samples, 3);
    }

    #[test]
    fn a_recorder_that_is_resident_has_recorded_nothing() {
        let recorder = Recorder::new("resident", Limits::default()).resident();
        let timeline = recorder.snapshot(recorder.now());
        assert!(timeline.spans.is_empty() && timeline.gaps.is_empty() && timeline.marks.is_empty());
        assert_eq!(recorder.dropped(), Dropped::default());
    }

    #[test]
    fn states_of_a_device_become_gaps() {
        let recorder = Recorder::new("test", Limits::default());
        let device = recorder.add_track("device 0", TrackKind::Device);
        let starved = |synthesizing| Some(IdleReason::NoSynthesizedPartition { synthesizing, because: None });
        recorder.device_state(device, Nanos(0), None);
        recorder.device_state(device, Nanos(5), starved(3));
        recorder.device_state(device, Nanos(8), starved(2));
        recorder.device_state(device, Nanos(9), Some(IdleReason::Alone));
        recorder.device_state(device, Nanos(9), Some(IdleReason::NoWork));
        recorder.device_state(device, Nanos(12), None);
        recorder.device_state(device, Nanos(15), Some(IdleReason::Retired));
        let gaps = recorder.snapshot(Nanos(20)).gaps;
        let seen: Vec<_> = gaps.iter().map(|g| (g.start.0, g.end.0, g.reason.to_string())).collect();
        let expected = [(5, 9, "no synthesized partition: 3 in synthesis"), (9, 12, "no work"), (15, 20, "retired")];
        assert_eq!(seen, expected.map(|(start, end, reason)| (start, end, reason.to_owned())));
    }

    #[test]
    fn spans_that_run_are_seen_and_then_end() {
        let recorder = Recorder::new("test", Limits { spans: 2, ..Limits::default() });
        let device = recorder.add_track("device 0", TrackKind::Device);
        let open = recorder.begin(span(device, 3, 3));
        let seen =
            |at| recorder.snapshot(Nanos(at)).spans.iter().map(|s| (s.end.0, s.bytes, s.outcome)).collect::<Vec<_>>();
        assert_eq!(seen(8), [(8, 0, Outcome::Running)]);
        assert_eq!(seen(3), [], "it begins only then");
        recorder.end(open, Nanos(9), 7, Outcome::Failed);
        assert_eq!(seen(12), [(9, 7, Outcome::Failed)]);
        let forgotten = [4, 5, 6].map(|start| recorder.begin(span(device, start, start)));
        assert_eq!(recorder.dropped().spans, 1, "two may be open");
        let [oldest, ..] = forgotten;
        recorder.end(oldest, Nanos(10), 0, Outcome::Ok);
        assert_eq!(seen(12).len(), 3, "the end of one that was dropped is nothing");
    }

    #[test]
    fn custom_stages_are_one_a_name() {
        let recorder = Recorder::new("test", Limits::default());
        let first = recorder.custom_stage("compress", StageClass::Host);
        assert_eq!(recorder.custom_stage("compress", StageClass::Wait), first);
        assert_ne!(recorder.custom_stage("unpack", StageClass::Host), first);
        let timeline = recorder.snapshot(Nanos::ZERO);
        assert_eq!((timeline.stage_label(first), timeline.stage_class(first)), ("compress", StageClass::Host));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let recorder = Recorder::new("test", Limits::default());
        let long = "€".repeat(2000);
        let device = recorder.add_track(&*long, TrackKind::Device);
        recorder.device_state(
            device,
            Nanos(0),
            Some(IdleReason::Other { label: "odd".to_owned(), detail: long.clone() }),
        );
        recorder.mark(JobMark { job: JobId(0), at: Nanos(0), event: JobEvent::Failed { cause: long } });
        let timeline = recorder.snapshot(Nanos(1));
        let kept = "€".repeat(1365);
        assert_eq!(timeline.tracks[0].name, kept, "4095 bytes");
        assert_eq!(timeline.gaps[0].reason.to_string(), format!("odd: {kept}"));
        assert_eq!(timeline.marks[0].event, JobEvent::Failed { cause: kept });
    }

    #[test]
    fn threads_record_at_once_and_nothing_is_lost() {
        let recorder = Recorder::new("test", Limits::default());
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let recorder = &recorder;
                scope.spawn(move || {
                    let track = recorder.add_track(format!("worker {worker}"), TrackKind::Synthesis);
                    for i in 0..1000 {
                        recorder.span(span(track, i, i + 1));
                        recorder.mark(JobMark { job: JobId(i), at: Nanos(i), event: JobEvent::Completed });
                    }
                });
            }
        });
        let timeline = recorder.snapshot(recorder.now());
        assert_eq!((timeline.spans.len(), timeline.marks.len(), timeline.tracks.len()), (4000, 4000, 4));
        assert_eq!(timeline.dropped.total(), 0);
    }
}
