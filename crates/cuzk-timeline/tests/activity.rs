//! The account of a device's time against an oracle that paints each nanosecond by itself.

use std::collections::BTreeMap;

use cuzk_timeline::{
    Activity, IdleGap, IdleReason, Nanos, Span, Stage, Summary, Timeline, Track, TrackId, TrackKind, UNEXPLAINED,
    device_activity,
};
use proptest::prelude::*;

const WALL: u64 = 60;
const DEVICE: TrackId = TrackId(0);

/// Stages of which some compute and some do not.
fn stage(number: u8) -> Stage {
    [Stage::MsmH, Stage::Upload, Stage::Kernels, Stage::LockWait][usize::from(number) % 4]
}

fn reason(number: u8) -> IdleReason {
    match number % 3 {
        0 => IdleReason::NoWork,
        1 => IdleReason::Transfer { partition: None },
        _ => IdleReason::NoSynthesizedPartition { synthesizing: number.into(), because: None },
    }
}

/// Spans and gaps on two devices, also beyond the timeline's ends, empty ones among them.
fn timelines() -> impl Strategy<Value = Timeline> {
    let record = || (0..2_u32, 0..WALL + 20, 0..25_u64, any::<u8>());
    let records = || prop::collection::vec(record(), 0..14);
    (records(), records()).prop_map(|(spans, gaps)| {
        let span = |(track, start, length, kind): (u32, u64, u64, u8)| {
            Span::new(TrackId(track), stage(kind), Nanos(start), Nanos(start + length))
        };
        let gap = |(track, start, length, kind): (u32, u64, u64, u8)| IdleGap {
            track: TrackId(track),
            start: Nanos(start),
            end: Nanos(start + length),
            reason: reason(kind),
        };
        let device = |i: usize| Track { name: format!("device {i}"), kind: TrackKind::Device };
        Timeline {
            start: Nanos(10),
            end: Nanos(10 + WALL),
            tracks: (0..2).map(device).collect(),
            spans: spans.into_iter().map(span).collect(),
            gaps: gaps.into_iter().map(gap).collect(),
            ..Timeline::default()
        }
    })
}

/// What the device does in the nanosecond that begins at `at`, straight from the records.
fn painted(timeline: &Timeline, at: u64) -> Option<&str> {
    let covers = |start: Nanos, end: Nanos| start.0 <= at && at < end.0;
    let computes = |s: &&Span| matches!(s.stage, Stage::MsmH | Stage::Kernels);
    let mut spans = timeline.spans.iter().filter(|s| s.track == DEVICE).filter(computes);
    if spans.any(|s| covers(s.start, s.end)) {
        return None;
    }
    let gaps = timeline.gaps.iter().filter(|g| g.track == DEVICE && covers(g.start, g.end));
    // Of several that began at the same time, the last one stated: `max_by_key` gives the last maximum.
    Some(gaps.max_by_key(|g| g.start).map_or(UNEXPLAINED, |g| g.reason.label()))
}

proptest! {
    #[test]
    fn segments_are_what_each_nanosecond_says(timeline in timelines()) {
        let segments = device_activity(&timeline, DEVICE);
        let mut at = timeline.start;
        for segment in &segments {
            prop_assert_eq!(segment.start, at, "without holes and overlaps");
            prop_assert!(segment.end > segment.start);
            for moment in segment.start.0..segment.end.0 {
                let said = match segment.activity {
                    Activity::Busy => None,
                    Activity::Idle(gap) => Some(gap.reason.label()),
                    Activity::Unexplained => Some(UNEXPLAINED),
                };
                prop_assert_eq!(said, painted(&timeline, moment), "at {}", moment);
            }
            at = segment.end;
        }
        prop_assert_eq!(at, timeline.end);
        prop_assert!(segments.windows(2).all(|w| w[0].activity != w[1].activity), "neighbours are merged");
    }

    #[test]
    fn busy_and_idle_reasons_add_up_to_the_wall_clock(timeline in timelines()) {
        let mut expected: BTreeMap<Option<&str>, u64> = BTreeMap::new();
        (10..10 + WALL).for_each(|at| *expected.entry(painted(&timeline, at)).or_default() += 1);
        let summary = Summary::of(&timeline);
        prop_assert_eq!(summary.wall, Nanos(WALL));
        for device in &summary.devices {
            let idle: Nanos = device.idle.iter().map(|i| i.time.total).sum();
            prop_assert_eq!(device.busy + idle, Nanos(WALL));
        }
        let device = &summary.devices[0];
        let mut found: BTreeMap<Option<&str>, u64> =
            device.idle.iter().map(|i| (Some(i.reason.as_str()), i.time.total.0)).collect();
        if device.busy > Nanos::ZERO {
            found.insert(None, device.busy.0);
        }
        prop_assert_eq!(found, expected);
    }

    /// A part of a timeline accounts for the device's time as the whole does in that part.
    #[test]
    fn a_part_says_what_the_whole_says(timeline in timelines(), from in 0..70_u64, length in 0..40_u64) {
        let part = timeline.between(Nanos(from), Nanos(from + length));
        for segment in device_activity(&part, DEVICE) {
            for moment in segment.start.0..segment.end.0 {
                prop_assert_eq!(matches!(segment.activity, Activity::Busy), painted(&timeline, moment).is_none());
            }
        }
        prop_assert_eq!(part.start, Nanos(from).clamp(timeline.start, timeline.end));
        prop_assert!(part.spans.len() <= timeline.spans.len());
    }
}
