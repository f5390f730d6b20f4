//! Spans of one track that overlap go to lanes, such that within each lane none do.

use std::{cmp::Reverse, collections::BTreeMap, collections::BinaryHeap};

use crate::{Nanos, Timeline, TrackId};

/// For each span of a timeline its lane within its track, and the order of the spans by start.
pub(crate) struct Lanes {
    /// Indices of spans, by start, longer ones first.
    pub(crate) order: Vec<usize>,
    /// The lane of the span with this index.
    pub(crate) of: Vec<u32>,
    /// How many lanes each track needs.
    pub(crate) count: BTreeMap<TrackId, u32>,
}

/// Of each track: the free lanes, and the taken ones by the time when they become free.
#[derive(Default)]
struct Track {
    free: BinaryHeap<Reverse<u32>>,
    taken: BinaryHeap<Reverse<(Nanos, u32)>>,
    count: u32,
}

impl Lanes {
    /// Each span gets the lowest lane that is free at its start: the fewest lanes that are possible. O(n log n).
    pub(crate) fn new(timeline: &Timeline) -> Self {
        let spans = &timeline.spans;
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_by_key(|&i| (spans[i].start, Reverse(spans[i].end)));
        let mut of = vec![0; spans.len()];
        let mut tracks: BTreeMap<TrackId, Track> = BTreeMap::new();
        for &i in &order {
            let track = tracks.entry(spans[i].track).or_default();
            while let Some(&Reverse((end, lane))) = track.taken.peek()
                && end <= spans[i].start
            {
                track.taken.pop();
                track.free.push(Reverse(lane));
            }
            let lane = track.free.pop().map_or(track.count, |Reverse(lane)| lane);
            track.count = track.count.max(lane + 1);
            track.taken.push(Reverse((spans[i].end, lane)));
            of[i] = lane;
        }
        Self { order, of, count: tracks.into_iter().map(|(id, track)| (id, track.count)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Span, Stage};

    proptest! {
        /// In no lane do spans overlap, and there are as many lanes as spans at the fullest moment.
        #[test]
        fn lanes_are_disjoint_and_few(spans in prop::collection::vec((0..3_u32, 0..40_u64, 1..20_u64), 0..40)) {
            let span = |&(track, start, length): &(u32, u64, u64)| {
                Span::new(TrackId(track), Stage::Witness, Nanos(start), Nanos(start + length))
            };
            let timeline = Timeline { spans: spans.iter().map(span).collect(), ..Timeline::default() };
            let lanes = Lanes::new(&timeline);
            for track in 0..3 {
                let at = |moment: u64| {
                    let on = timeline.spans.iter().zip(&lanes.of).filter(|(s, _)| s.track == TrackId(track));
                    let mut seen: Vec<u32> =
                        on.filter(|(s, _)| s.start.0 <= moment && moment < s.end.0).map(|(_, lane)| *lane).collect();
                    seen.sort_unstable();
                    seen
                };
                let mut fullest = 0;
                for moment in 0..60 {
                    let seen = at(moment);
                    prop_assert!(seen.windows(2).all(|w| w[0] < w[1]), "two in one lane at {}: {:?}", moment, seen);
                    fullest = fullest.max(seen.len() as u32);
                }
                prop_assert_eq!(lanes.count.get(&TrackId(track)).copied().unwrap_or(0), fullest);
            }
        }
    }
}
