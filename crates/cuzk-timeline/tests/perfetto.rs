//! The trace JSON, parsed back and held against what its reader demands.

mod made_up;

use std::collections::BTreeMap;

use cuzk_timeline::{
    JobEvent, JobId, JobMark, Limits, Nanos, PartitionRef, Recorder, Span, Stage, Timeline, TrackKind,
};
use serde::de::IgnoredAny;
use serde_json::Value;

fn events(timeline: &Timeline) -> Vec<Value> {
    let mut bytes = Vec::new();
    timeline.write_perfetto(&mut bytes).unwrap();
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

fn of<'a>(events: &'a [Value], ph: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |e| e["ph"] == ph)
}

#[test]
fn one_partition_event_by_event() {
    let recorder = Recorder::new("machine", Limits::default());
    let worker = recorder.add_track("synthesis 0", TrackKind::Synthesis);
    let gpu = recorder.add_track("GPU 0", TrackKind::Device);
    let queue = recorder.add_track("waiting", TrackKind::Waiting);
    let partition = Some(PartitionRef { job: JobId(9), index: 2, attempt: 0 });
    let submitted = JobEvent::Submitted { name: "the job".to_owned(), circuit: None, partitions: 3 };
    recorder.mark(JobMark { job: JobId(9), at: Nanos(0), event: submitted });
    recorder.span(Span { partition, ..Span::new(queue, Stage::Queue, Nanos(0), Nanos(1_000)) });
    recorder.span(Span { partition, bytes: 5, ..Span::new(worker, Stage::Witness, Nanos(1_000), Nanos(3_000)) });
    recorder.span(Span { partition, ..Span::new(gpu, Stage::MsmH, Nanos(3_500), Nanos(4_001)) });
    let events = events(&recorder.snapshot(Nanos(5_000)));

    let process = events.iter().find(|e| e["name"] == "process_name").unwrap();
    assert_eq!(process["args"]["name"], "machine");
    let threads: Vec<&str> =
        events.iter().filter(|e| e["name"] == "thread_name").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert_eq!(threads, ["GPU 0", "GPU 0: idle", "synthesis 0"], "devices first; waits are no thread");

    let slices: Vec<_> =
        of(&events, "X").map(|e| (e["name"].as_str().unwrap(), e["ts"].as_f64(), e["dur"].as_f64())).collect();
    let expected = [
        ("witness", Some(1.0), Some(2.0)),
        ("msm h", Some(3.5), Some(0.501)),
        ("unexplained", Some(0.0), Some(3.5)),
        ("unexplained", Some(4.001), Some(0.999)),
    ];
    assert_eq!(slices, expected, "microseconds, and nanoseconds after the point");
    let witness = of(&events, "X").next().unwrap();
    assert_eq!((&witness["args"]["job"], &witness["args"]["partition"]), (&"the job".into(), &2.into()));
    assert_eq!(witness["args"]["bytes"], 5);

    let arrow: Vec<_> = events.iter().filter(|e| e["cat"] == "partition").collect();
    let [from, to] = arrow.as_slice() else { panic!("{arrow:?}") };
    assert_eq!((&from["ph"], &from["tid"], &to["ph"], &to["tid"]), (&"s".into(), &3.into(), &"f".into(), &1.into()));
    assert_eq!((from["id"].as_u64(), to["bp"].as_str()), (to["id"].as_u64(), Some("e")));
    assert!(from["ts"].as_f64() < Some(3.0) && to["ts"].as_f64() == Some(3.5));
}

#[test]
fn slices_of_a_thread_never_overlap_and_arrows_are_whole() {
    let mut timeline = made_up::made_up_run(20, 10);
    // A second stream on each device: the same operations, of nobody, a little later.
    let second = |s: &Span| Span { partition: None, start: s.start + Nanos(99), end: s.end + Nanos(99), ..*s };
    let kernels: Vec<Span> = timeline.spans.iter().filter(|s| s.stage == Stage::MsmH).map(second).collect();
    timeline.spans.extend(kernels);
    let events = events(&timeline);
    let is_second = |e: &&Value| e["name"] == "thread_name" && e["args"]["name"] == "GPU 1 (2)";
    assert_eq!(events.iter().filter(is_second).count(), 1, "what overlaps gets a thread beside");
    let mut threads: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for event in of(&events, "X") {
        let [ts, dur] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
        threads.entry(event["tid"].as_u64().unwrap()).or_default().push((ts, ts + dur));
    }
    for slices in threads.values_mut() {
        slices.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(slices.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-3));
    }
    assert!(threads.len() > 15, "devices, buses, workers: {}", threads.len());
    let arrows = |ph| of(&events, ph).filter(|e| e["cat"] == "partition").count();
    // 200 partitions, one of them in two attempts, of which the first ends at the device. Its witness was made before
    // it.
    assert_eq!((arrows("s"), arrows("t"), arrows("f")), (201, 199, 201));
    let begins = of(&events, "b").count();
    assert!(begins > 0 && begins == of(&events, "e").count(), "asynchronous events have an end");
    let counters: std::collections::BTreeSet<_> = of(&events, "C").map(|e| e["name"].to_string()).collect();
    assert_eq!(counters.len(), 8, "four pools and their capacities: {counters:?}");
}

#[test]
fn a_large_trace_is_valid_json() {
    let timeline = made_up::made_up_run(625, 10);
    assert!(timeline.spans.len() > 100_000);
    let mut bytes = Vec::new();
    timeline.write_perfetto(&mut bytes).unwrap();
    serde_json::from_slice::<IgnoredAny>(&bytes).unwrap();
}
