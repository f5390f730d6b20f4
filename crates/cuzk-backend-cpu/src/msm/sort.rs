//! Sorting points by bucket.
//!
//! Two levels of counting sort: by the high bits of the bucket, whose places are few enough for the nearest cache, then
//! each of the parts by the low bits, where its part of the result is small enough for it. One level would write to as many
//! places as there are buckets, and miss the cache nearly every time.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    digits::{SignedScalar, Windows},
    huge::HugeBox,
};

/// At most 2^8 parts at the first level.
const LOG_PARTS: usize = 8;

/// The memory for sorting several windows at once.
pub(super) struct Sorting {
    windows: Windows,
    /// Runs of points that are counted apart, so that several threads can sort one window.
    runs: usize,
    /// Sorted into parts: the bucket's low bits above the signed index.
    parted: HugeBox<u64>,
    entries: HugeBox<u32>,
    ends: Vec<u32>,
}

impl Sorting {
    /// For `together` windows of `len` points at a time, of which a run has at least `run_len`.
    pub(super) fn new(windows: Windows, together: usize, len: usize, run_len: usize) -> Self {
        Sorting {
            windows,
            runs: rayon::current_num_threads().div_ceil(together).min(len.div_ceil(run_len)).max(1),
            parted: HugeBox::zeroed(together * len),
            entries: HugeBox::zeroed(together * len),
            ends: vec![0; together * windows.buckets()],
        }
    }

    /// The points of each bucket of some windows: signed indices, and where each bucket ends.
    pub(super) fn sort(&mut self, range: Range<usize>, scalars: &[SignedScalar]) -> (&[u32], &[u32]) {
        let low_bits = (self.windows.bits - 1).saturating_sub(LOG_PARTS);
        let part_ends = self.part(range.clone(), scalars, low_bits);
        let ends = &mut self.ends[..range.len() * self.windows.buckets()];
        let sorted = part_ends.last().map_or(0, |&end| end as usize);

        // A part owns its range of entries and the ends of its buckets.
        let mut parts = Vec::with_capacity(part_ends.len());
        let mut rest = &mut self.entries[..sorted];
        let mut start = 0;
        for (&end, ends) in part_ends.iter().zip(ends.chunks_mut(1 << low_bits)) {
            let (entries, others) = rest.split_at_mut((end - start) as usize);
            rest = others;
            parts.push((start, &self.parted[start as usize..end as usize], entries, ends));
            start = end;
        }
        parts.into_par_iter().for_each(|(start, parted, entries, ends)| {
            let mut places = [0u32; 1 << (Windows::MAX_BITS - 1 - LOG_PARTS)];
            for parted in parted {
                places[(parted >> 32) as usize] += 1;
            }
            let mut place = 0;
            for (count, end) in places.iter_mut().zip(ends) {
                place += std::mem::replace(count, place);
                *end = start + place;
            }
            for parted in parted {
                let place = &mut places[(parted >> 32) as usize];
                entries[*place as usize] = *parted as u32;
                *place += 1;
            }
        });
        (&self.entries[..sorted], &self.ends[..range.len() * self.windows.buckets()])
    }

    /// The first level. Returns where each part of each window ends.
    fn part(&mut self, range: Range<usize>, scalars: &[SignedScalar], low_bits: usize) -> Vec<u32> {
        let Self { windows, runs, .. } = *self;
        let parts = windows.buckets() >> low_bits;
        let run_len = scalars.len().div_ceil(runs).max(1);
        // Part, and what is kept of the digit, of each point of a run that has a digit in the window.
        let digits = |task: usize| {
            let (window, first) = (windows.window(range.start + task / runs), task % runs * run_len);
            let run = scalars.get(first..scalars.len().min(first + run_len)).unwrap_or(&[]);
            (first as u32..).zip(run).filter_map(move |(i, scalar)| {
                let (bucket, sign) = window.digit(scalar)?;
                let low = bucket & ((1 << low_bits) - 1);
                Some((bucket >> low_bits, (low as u64) << 32 | u64::from(i | sign)))
            })
        };
        // By window, run and part: how many points; then, where they go.
        let mut places = vec![0u32; range.len() * runs * parts];
        places.par_chunks_mut(parts).enumerate().for_each(|(task, counts)| {
            for (part, _) in digits(task) {
                counts[part] += 1;
            }
        });
        let mut ends = Vec::with_capacity(range.len() * parts);
        let mut place = 0;
        for counts in places.chunks_mut(runs * parts) {
            for part in 0..parts {
                for run in 0..runs {
                    place += std::mem::replace(&mut counts[run * parts + part], place);
                }
                ends.push(place);
            }
        }
        let parted = &mut self.parted[..place as usize];
        let base = Shared(parted.as_mut_ptr());
        places.par_chunks_mut(parts).enumerate().for_each(|(task, places)| {
            let base = &base;
            for (part, parted) in digits(task) {
                // SAFETY: the places of a window, run and part are as many as this loop visits, since the same loop counted
                // them; the prefix sums made all of them disjoint and below the length.
                unsafe { base.0.add(places[part] as usize).write(parted) };
                places[part] += 1;
            }
        });
        ends
    }
}

/// A pointer that several threads write through, each to its own places.
struct Shared(*mut u64);

// SAFETY: whoever writes through it shows that the places are disjoint.
unsafe impl Sync for Shared {}
