//! Summaries of timelines that are small enough to be worked out by hand.

mod made_up;

use cuzk_timeline::{
    CircuitId, Distribution, IdleReason, JobEvent, JobId, JobMark, Limits, Nanos, Outcome, PartitionRef, Pool,
    Recorder, Span, Stage, StageClass, Summary, Timeline, TrackKind,
};

/// Two jobs on one device; times in seconds:
///
/// ```text
///        0    1    2    3    4    5    6    7    8    9   10
/// GPU    no synth. │ h  │ h+l│ l  │lock│  kernels │unexpl.│
/// bus              │up│
/// host   16 ───────│ 40 ───────────────────│ 4 ───────────│
/// ```
fn by_hand() -> Timeline {
    let s = |seconds: f64| Nanos::from_secs_f64(seconds);
    let recorder = Recorder::new("by hand", Limits::default());
    let gpu = recorder.add_track("GPU", TrackKind::Device);
    let bus = recorder.add_track("bus", TrackKind::Transfer);
    let host = recorder.add_track("finish", TrackKind::Finish);
    let partition = |job| Some(PartitionRef { job: JobId(job), index: 0, attempt: 0 });
    let submitted =
        |name: &str| JobEvent::Submitted { name: name.to_owned(), circuit: Some(CircuitId(0)), partitions: 1 };
    let mark = |job, at, event| recorder.mark(JobMark { job: JobId(job), at: s(at), event });
    mark(1, 0.0, submitted("first"));
    mark(2, 1.0, submitted("second"));
    mark(3, 1.0, submitted("third"));
    recorder.set_capacity(Pool::Host, 100);
    [(0.0, 16), (2.0, 40), (7.0, 4)].iter().for_each(|(at, bytes)| recorder.memory(Pool::Host, s(*at), *bytes));

    recorder.device_state(gpu, s(0.0), Some(IdleReason::NoSynthesizedPartition { synthesizing: 2, because: None }));
    recorder.device_state(gpu, s(2.0), None);
    recorder.span(Span { partition: partition(1), bytes: 71, ..Span::new(bus, Stage::Upload, s(2.0), s(2.5)) });
    // Two sums at once, as on two streams: the device is busy from 2 to 5.
    recorder.span(Span { partition: partition(1), ..Span::new(gpu, Stage::MsmH, s(2.0), s(4.0)) });
    recorder.span(Span { partition: partition(1), ..Span::new(gpu, Stage::MsmL, s(3.0), s(5.0)) });
    recorder.device_state(gpu, s(5.0), Some(IdleReason::Lock { kept_for: partition(2) }));
    recorder.device_state(gpu, s(6.0), None);
    recorder.span(Span { partition: partition(2), ..Span::new(gpu, Stage::Kernels, s(6.0), s(8.0)) });
    recorder.span(Span { partition: partition(1), ..Span::new(host, Stage::Finish, s(5.0), s(6.0)) });
    let failed = Span { outcome: Outcome::Failed, ..Span::new(host, Stage::Finish, s(8.0), s(9.0)) };
    recorder.span(Span { partition: partition(2), ..failed });
    mark(1, 6.0, JobEvent::Completed);
    mark(2, 9.0, JobEvent::Failed { cause: "no luck".to_owned() });
    mark(3, 9.5, JobEvent::Cancelled);
    recorder.snapshot(s(10.0))
}

#[test]
fn a_run_worked_out_by_hand() {
    let summary = Summary::of(&by_hand());
    let s = Nanos::from_secs_f64;
    assert_eq!(summary.wall, s(10.0));

    let [gpu] = summary.devices.as_slice() else { panic!("one device, not {}", summary.devices.len()) };
    assert_eq!((gpu.busy, gpu.utilization), (s(5.0), 0.5));
    let idle: Vec<_> = gpu.idle.iter().map(|i| (i.reason.as_str(), i.time.total, i.time.count)).collect();
    let expected =
        [("no synthesized partition", s(2.0), 1), ("unexplained", s(2.0), 1), ("waiting for the lock", s(1.0), 1)];
    assert_eq!(idle, expected);
    assert_eq!(summary.utilization(), Some(0.5));

    let jobs = summary.jobs;
    assert_eq!((jobs.submitted, jobs.completed, jobs.failed, jobs.cancelled), (3, 1, 1, 1));
    assert_eq!(jobs.partitions, 1, "the other one's finish failed");
    assert_eq!((jobs.per_hour, jobs.wall_per_job), (360.0, Some(s(10.0))));
    assert_eq!(jobs.latency, Distribution { count: 1, total: s(6.0), mean: s(6.0), p95: s(6.0), max: s(6.0) });

    let stage = |wanted| summary.stages.iter().find(|x| x.stage == wanted).unwrap_or_else(|| panic!("{wanted:?}"));
    assert_eq!(summary.stages.len(), 5);
    assert_eq!((stage(Stage::MsmH).time.total, stage(Stage::MsmH).class), (s(2.0), StageClass::Compute));
    assert_eq!((stage(Stage::Upload).time.mean, stage(Stage::Upload).bytes), (s(0.5), 71));
    let finish = stage(Stage::Finish);
    assert_eq!((finish.time.count, finish.time.mean, finish.not_ok), (2, s(1.0), 1));

    // (16·2 + 40·5 + 4·3) / 10
    let [host] = summary.pools.as_slice() else { panic!("one pool, not {}", summary.pools.len()) };
    assert_eq!((host.peak, host.mean, host.capacity), (40, 24.4, 100));
}

#[test]
fn the_text_states_the_numbers() {
    let text = Summary::of(&by_hand()).to_string();
    for part in [
        "by hand: 10.0 s",
        "jobs: 3 submitted, 1 completed, 1 failed, 1 cancelled",
        "partitions: 1 finished",
        "throughput: 10.0 s a job, 360.0 jobs an hour",
        "GPU: busy 50.0 % (5.00 s)",
        "no synthesized partition    20.0 %        2.00 s in 1 gaps, longest 2.00 s",
        "waiting for the lock        10.0 %        1.00 s",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains("not kept"));
}

#[test]
fn the_95th_percentile_is_the_nearest_rank() {
    let of = |n: u64| Distribution::of((1..=n).rev().map(Nanos).collect());
    assert_eq!(of(0), Distribution::default());
    assert_eq!(of(1).p95, Nanos(1));
    assert_eq!(of(19).p95, Nanos(19), "⌈18.05⌉");
    assert_eq!(of(20).p95, Nanos(19));
    assert_eq!(of(21).p95, Nanos(20), "⌈19.95⌉");
    assert_eq!(
        of(100),
        Distribution { count: 100, total: Nanos(5050), mean: Nanos(50), p95: Nanos(95), max: Nanos(100) }
    );
}

#[test]
fn a_part_of_a_run() {
    let s = Nanos::from_secs_f64;
    let summary = Summary::of(&by_hand().between(s(4.0), s(7.0)));
    assert_eq!((summary.wall, summary.devices[0].busy), (s(3.0), s(2.0)));
    assert_eq!(summary.jobs.completed, 1);
    assert_eq!(summary.jobs.latency.max, s(6.0), "the mark of its submission, which is earlier, was kept");
    assert_eq!(summary.jobs.submitted, 0);
    assert_eq!((summary.pools[0].peak, summary.pools[0].mean), (40, 40.0));
}

#[test]
fn an_empty_timeline_has_a_summary() {
    let summary = Summary::of(&Timeline::default());
    assert_eq!((summary.wall, summary.utilization(), summary.jobs.wall_per_job), (Nanos::ZERO, None, None));
    assert!(!summary.to_string().contains("NaN"));
}

#[test]
fn a_summary_survives_json() {
    let summary = Summary::of(&by_hand());
    let json = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
}

#[test]
fn the_made_up_run_is_explained() {
    let summary = Summary::of(&made_up::made_up_run(20, 10));
    assert_eq!((summary.devices.len(), summary.jobs.partitions), (2, 200));
    for device in &summary.devices {
        assert!((0.5..1.0).contains(&device.utilization), "{device:?}");
        let unexplained = device.idle.iter().find(|i| i.reason == cuzk_timeline::UNEXPLAINED);
        assert!(unexplained.is_none_or(|i| i.time.total < Nanos(100)), "more than rounding: {device:?}");
    }
}
