//! A made-up run with everything in it that a timeline can show. It is no model of anything: see the simulator for
//! that.

use std::collections::BTreeMap;

use cuzk_timeline::{
    CircuitId, IdleGap, IdleReason, JobEvent, JobId, JobMark, Limits, Nanos, Outcome, PartitionRef, Pool, Recorder,
    Span, Stage, Timeline, TrackId, TrackKind,
};

const GIB: u64 = 1 << 30;
const SYNTHESIS_WORKERS: usize = 10;
const FINISH_WORKERS: usize = 3;
const DEVICES: usize = 2;
/// How many partitions may be between the begin of synthesis and the begin of the kernels.
const IN_FLIGHT: usize = 15;
const KEY_LOAD: f64 = 3.3;
const WITNESS_BYTES: u64 = 71 << 20;
const KERNELS: [(Stage, f64); 7] = [
    (Stage::Evaluate, 0.42),
    (Stage::Quotient, 0.80),
    (Stage::MsmH, 0.86),
    (Stage::MsmL, 0.43),
    (Stage::MsmA, 0.41),
    (Stage::MsmBG1, 0.22),
    (Stage::MsmBG2, 0.58),
];

/// Numbers from 0.8 to 1.2 (and rarely 2), the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (self.0 >> 33) as f64 / (1_u64 << 31) as f64;
        if unit > 0.97 { 2.0 } else { 0.8 + 0.4 * unit }
    }
}

/// A worker, and when it is free.
struct Worker {
    track: TrackId,
    free: f64,
}

struct Device {
    track: TrackId,
    pool: Pool,
    free: f64,
    bus: Worker,
    circuit: Option<CircuitId>,
}

/// A partition on its way.
#[derive(Clone, Copy)]
struct Way {
    partition: PartitionRef,
    circuit: CircuitId,
    submitted: f64,
    /// Whether its device fails at the first attempt.
    fails: bool,
    /// How long it waits for memory of its device.
    short: f64,
}

struct Run {
    recorder: Recorder,
    noise: Noise,
    synthesis: Vec<Worker>,
    finish: Vec<Worker>,
    waiting: TrackId,
    devices: Vec<Device>,
    /// Changes of the memory in use, in GiB.
    memory: Vec<(f64, Pool, i64)>,
    kernels_began: Vec<f64>,
}

fn ns(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds)
}

/// The place of the smallest.
fn earliest(times: impl Iterator<Item = f64>) -> usize {
    times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(place, _)| place)
}

impl Run {
    fn new(spans: usize) -> Self {
        let limits = Limits { spans, ..Limits::default() };
        let recorder = Recorder::new("made-up run: 2 devices, 10 synthesis workers", limits);
        let device = |i: usize| Device {
            track: recorder.add_track(format!("GPU {i}"), TrackKind::Device),
            pool: Pool::Device(i as u16),
            free: 0.0,
            bus: Worker { track: recorder.add_track(format!("GPU {i} bus"), TrackKind::Transfer), free: 0.0 },
            circuit: None,
        };
        let devices: Vec<Device> = (0..DEVICES).map(device).collect();
        let workers = |name: &str, kind, count| -> Vec<Worker> {
            (0..count).map(|i| Worker { track: recorder.add_track(format!("{name} {i}"), kind), free: 0.0 }).collect()
        };
        let synthesis = workers("synthesis", TrackKind::Synthesis, SYNTHESIS_WORKERS);
        let finish = workers("finish", TrackKind::Finish, FINISH_WORKERS);
        let waiting = recorder.add_track("waiting", TrackKind::Waiting);
        [(0, "porep-32g"), (1, "snap-32g")].iter().for_each(|(id, name)| recorder.name_circuit(CircuitId(*id), *name));
        recorder.set_capacity(Pool::Host, 400 * GIB);
        recorder.set_capacity(Pool::Pinned, 64 * GIB);
        devices.iter().for_each(|d| recorder.set_capacity(d.pool, 80 * GIB));
        let memory = vec![(0.0, Pool::Host, 69), (0.0, Pool::Pinned, 8)];
        Self { recorder, noise: Noise(7), synthesis, finish, waiting, devices, memory, kernels_began: Vec::new() }
    }

    fn span(&self, way: &Way, track: TrackId, stage: Stage, (start, end): (f64, f64), bytes: u64, outcome: Outcome) {
        let span = Span::new(track, stage, ns(start), ns(end));
        self.recorder.span(Span { partition: Some(way.partition), circuit: Some(way.circuit), bytes, outcome, ..span });
    }

    fn wait(&self, way: &Way, stage: Stage, start: f64, end: f64) {
        self.span(way, self.waiting, stage, (start, end), 0, Outcome::Ok);
    }

    fn gap(&self, track: TrackId, start: f64, end: f64, reason: IdleReason) {
        if start < end {
            self.recorder.gap(IdleGap { track, start: ns(start), end: ns(end), reason });
        }
    }

    /// Gives the time at which the witness is in the device queue.
    fn synthesize(&mut self, way: &Way) -> f64 {
        let permit = self.kernels_began.len().checked_sub(IN_FLIGHT).map_or(0.0, |k| self.kernels_began[k]);
        let place = earliest(self.synthesis.iter().map(|w| w.free));
        let Worker { track, free } = self.synthesis[place];
        let admitted = free.max(way.submitted);
        let begin = admitted.max(permit);
        self.wait(way, Stage::Queue, way.submitted, admitted);
        self.wait(way, Stage::PermitWait, admitted, begin);
        let witness = begin + if way.circuit.0 == 0 { 19.0 } else { 13.5 } * self.noise.next();
        let sent = witness + 0.12;
        self.span(way, track, Stage::Witness, (begin, witness), 4 * GIB + GIB / 6, Outcome::Ok);
        self.span(way, track, Stage::Send, (witness, sent), WITNESS_BYTES, Outcome::Ok);
        self.synthesis[place].free = sent;
        self.memory.extend([(begin, Pool::Host, 16), (begin, Pool::Pinned, 1)]);
        sent
    }

    /// Loads the key of a partition to a device, unless it is there. Gives the time from which on it is.
    fn load_key(&mut self, way: &Way, place: usize, sent: f64) -> f64 {
        let Device { track, pool, free, ref bus, circuit } = self.devices[place];
        if circuit == Some(way.circuit) {
            return sent.max(bus.free);
        }
        let start = sent.max(bus.free).max(free);
        let load = Span::new(bus.track, Stage::KeyLoad, ns(start), ns(start + KEY_LOAD));
        self.recorder.span(Span { circuit: Some(way.circuit), bytes: 47 * GIB, ..load });
        self.gap(track, start, start + KEY_LOAD, IdleReason::KeyLoad { circuit: way.circuit, pool });
        if circuit.is_none() {
            self.memory.push((start, pool, 44));
        }
        self.devices[place].circuit = Some(way.circuit);
        start + KEY_LOAD
    }

    /// One attempt on a device. Gives the time of its end, and whether it was a success.
    fn compute(&mut self, way: &Way, sent: f64) -> (f64, bool) {
        let place = earliest(self.devices.iter().map(|d| d.free.max(sent)));
        let loaded = self.load_key(way, place, sent);
        let Device { track, pool, free, bus: Worker { track: bus, .. }, .. } = self.devices[place];
        let upload = (loaded + way.short).max(free + way.short - 1.2);
        let uploaded = upload + 0.3 * self.noise.next();
        let begin = free.max(uploaded);
        self.wait(way, Stage::DeviceQueue, sent, upload);
        self.span(way, bus, Stage::Upload, (upload, uploaded), WITNESS_BYTES, Outcome::Ok);
        self.wait(way, Stage::LockWait, uploaded, begin);

        let because = Some("10 of 10 permits are held".to_owned());
        let starved = IdleReason::NoSynthesizedPartition { synthesizing: SYNTHESIS_WORKERS as u32, because };
        let (requested, in_use, held_back, capacity) = (21 * GIB, 66 * GIB, 0, 80 * GIB);
        self.gap(track, free, way.submitted.min(sent), IdleReason::NoWork);
        self.gap(track, free.max(way.submitted), sent, starved);
        if way.short > 0.0 {
            let memory = IdleReason::Memory { pool, requested, in_use, held_back, capacity };
            self.gap(track, loaded.max(free), upload, memory);
        }
        self.gap(track, upload.max(free), begin, IdleReason::Transfer { partition: Some(way.partition) });

        let mut at = begin;
        let mut success = true;
        for (stage, seconds) in &KERNELS {
            let end = at + seconds * self.noise.next().min(1.2);
            success = !(way.fails && *stage == Stage::MsmL);
            self.span(way, track, *stage, (at, end), 0, if success { Outcome::Ok } else { Outcome::Failed });
            at = end;
            if !success {
                break;
            }
        }
        self.memory.extend([(upload, pool, 3), (begin, pool, 21), (at, pool, -24)]);
        let device = &mut self.devices[place];
        (device.bus.free, device.free) = (uploaded, at);
        if success {
            self.kernels_began.push(begin);
        } else {
            device.free += 30.0;
            self.gap(track, at, at + 30.0, IdleReason::Quarantined { failed_tests: 1 });
        }
        (at, success)
    }

    /// Gives the time at which the proof is there.
    fn finish(&mut self, way: &Way, computed: f64) -> f64 {
        let place = earliest(self.finish.iter().map(|w| w.free));
        let Worker { track, free } = self.finish[place];
        let begin = computed.max(free);
        let end = begin + 0.9 * self.noise.next();
        self.span(way, track, Stage::Finish, (begin, end), 192, Outcome::Ok);
        self.span(way, track, Stage::Verify, (end, end + 0.08), 192, Outcome::Ok);
        self.finish[place].free = end + 0.08;
        self.memory.extend([(computed, Pool::Host, -12), (computed, Pool::Pinned, -1), (end, Pool::Host, -4)]);
        end + 0.08
    }

    fn partition(&mut self, mut way: Way) -> f64 {
        let sent = self.synthesize(&way);
        loop {
            let (at, success) = self.compute(&way, sent);
            if success {
                return self.finish(&way, at);
            }
            (way.fails, way.partition.attempt) = (false, way.partition.attempt + 1);
        }
    }

    fn job(&mut self, number: u64, partitions: u32, fails: Option<u32>) -> f64 {
        let submitted = 0.4 * number as f64 + if number % 7 == 6 { 60.0 } else { 0.0 };
        let circuit = CircuitId(u32::from(number % 5 == 3));
        let name = format!("{}-1000-{}", if circuit.0 == 0 { "porep" } else { "snap" }, 4711 + number);
        let job = JobId(number);
        let submission = JobEvent::Submitted { name, circuit: Some(circuit), partitions };
        self.recorder.mark(JobMark { job, at: ns(submitted), event: submission });
        let mut over = submitted;
        for index in 0..partitions {
            let partition = PartitionRef { job, index, attempt: 0 };
            let short = if number % 9 == 5 && index % 4 == 1 { 2.5 } else { 0.0 };
            over = over.max(self.partition(Way { partition, circuit, submitted, fails: fails == Some(index), short }));
        }
        let failed = || JobEvent::Failed { cause: "partition 3 does not verify on any device".to_owned() };
        let event = if number % 13 == 11 { failed() } else { JobEvent::Completed };
        self.recorder.mark(JobMark { job, at: ns(over), event });
        over
    }

    /// Records the memory in use, from its changes.
    fn record_memory(&mut self) {
        self.memory.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut in_use = BTreeMap::<Pool, i64>::new();
        for (at, pool, change) in &self.memory {
            let sum = in_use.entry(*pool).or_default();
            *sum += change;
            self.recorder.memory(*pool, ns(*at), (*sum).max(0) as u64 * GIB);
        }
    }
}

/// The run: `jobs` of `partitions` each, of two circuits, on two devices, of which one fails for a while.
pub(crate) fn made_up_run(jobs: u64, partitions: u32) -> Timeline {
    let mut run = Run::new(jobs as usize * partitions as usize * 30);
    let fails = |job| (job == jobs / 2).then_some(partitions / 2);
    let over = (0..jobs).map(|job| run.job(job, partitions, fails(job))).fold(0.0, f64::max);
    run.record_memory();
    for device in &run.devices {
        run.recorder.device_state(device.track, ns(device.free), Some(IdleReason::NoWork));
    }
    run.recorder.snapshot(ns(over))
}
