//! What a device did at each moment: computed, or not, and then why.

use std::collections::BTreeSet;

use crate::{IdleGap, Nanos, StageClass, Timeline, TrackId, TrackKind};

/// What a device does during a [`Segment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity<'a> {
    /// At least one span of class [`StageClass::Compute`] lies on its track.
    Busy,
    /// None does, and this gap says why.
    Idle(&'a IdleGap),
    /// None does, and nothing says why.
    Unexplained,
}

/// A time during which a device does one thing. Never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Begin.
    pub start: Nanos,
    /// End.
    pub end: Nanos,
    /// What it does.
    pub activity: Activity<'a>,
}

impl Segment<'_> {
    /// Its length.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }
}

/// The timeline cut into segments, for one device: in order, without holes or overlaps, from the timeline's start to
/// its end.
///
/// Where records contradict each other, computing counts (it was measured, a reason is a statement), and of several
/// gaps the one that began last (the first statement was out of date by then). Takes O(n log n) in the number of the
/// device's records.
pub fn device_activity(timeline: &Timeline, device: TrackId) -> Vec<Segment<'_>> {
    let (from, to) = (timeline.start, timeline.end);
    let clip = |start: Nanos, end: Nanos| {
        let (start, end) = (start.clamp(from, to), end.clamp(from, to));
        (start < end).then_some((start, end))
    };
    let computes = |s: &&crate::Span| s.track == device && timeline.stage_class(s.stage) == StageClass::Compute;
    // (when, change of what): gaps by their rank, computing as a count.
    let mut changes: Vec<(Nanos, Change)> = Vec::new();
    for (start, end) in timeline.spans.iter().filter(computes).filter_map(|s| clip(s.start, s.end)) {
        changes.extend([(start, Change::ComputeBegins), (end, Change::ComputeEnds)]);
    }
    let mut gaps: Vec<&IdleGap> = timeline.gaps.iter().filter(|g| g.track == device).collect();
    gaps.sort_by_key(|g| g.start);
    for (rank, gap) in gaps.iter().enumerate() {
        if let Some((start, end)) = clip(gap.start, gap.end) {
            changes.extend([(start, Change::GapBegins(rank)), (end, Change::GapEnds(rank))]);
        }
    }
    changes.sort_unstable_by_key(|(at, _)| *at);

    let mut segments: Vec<Segment<'_>> = Vec::new();
    let mut push = |start: Nanos, end: Nanos, activity| match segments.last_mut() {
        _ if start == end => {}
        Some(last) if last.activity == activity => last.end = end,
        _ => segments.push(Segment { start, end, activity }),
    };
    // Signed, because of changes at one moment an end can come before its begin.
    let mut computing = 0_i64;
    let mut active = BTreeSet::new();
    let mut since = from;
    let mut now = Activity::Unexplained;
    for (at, change) in changes {
        push(since, at, now);
        since = at;
        match change {
            Change::ComputeBegins => computing += 1,
            Change::ComputeEnds => computing -= 1,
            Change::GapBegins(rank) => _ = active.insert(rank),
            Change::GapEnds(rank) => _ = active.remove(&rank),
        }
        now = match active.last() {
            _ if computing > 0 => Activity::Busy,
            Some(rank) => Activity::Idle(gaps[*rank]),
            None => Activity::Unexplained,
        };
    }
    push(since, to, now);
    segments
}

#[derive(Clone, Copy)]
enum Change {
    ComputeBegins,
    ComputeEnds,
    GapBegins(usize),
    GapEnds(usize),
}

impl Timeline {
    /// The tracks of devices, with their numbers.
    pub fn devices(&self) -> impl Iterator<Item = (TrackId, &crate::Track)> {
        self.tracks().filter(|(_, track)| track.kind == TrackKind::Device)
    }
}
