//! Sorting points by bucket.
//!
//! Two levels of counting sort: by the high bits of the bucket, whose places are few enough for the nearest cache, then
//! each of the parts by the low bits, where its part of the result is small enough for it. One level would write to as many
//! places as there are buckets, and miss the cache nearly every time.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    digits::{SignedScalar, Window, Windows},
    huge::HugeBox,
};

/// At most 2^8 parts at the first level.
const LOG_PARTS: usize = 8;

/// Scalars that stay in the nearest caches while one window after the other is taken from them.
const PIECE_LEN: usize = 1 << 10;

/// The memory for sorting several windows at once.
pub(super) struct Sorting {
    windows: Windows,
    /// Sorted into parts: the bucket's low bits above the signed index.
    parted: HugeBox<u64>,
    entries: HugeBox<u32>,
    ends: Vec<u32>,
}

impl Sorting {
    /// For `together` windows of `len` points at a time.
    pub(super) fn new(windows: Windows, together: usize, len: usize) -> Self {
        Sorting {
            windows,
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
        let windows: Vec<Window> = range.map(|w| self.windows.window(w)).collect();
        let parts = self.windows.buckets() >> low_bits;
        // The points are counted and placed in runs, which the threads share.
        let run_len = scalars.len().div_ceil(4 * rayon::current_num_threads()).next_multiple_of(PIECE_LEN);
        let runs = scalars.len().div_ceil(run_len);
        // By run, window and part: how many points; then, where they go.
        let mut places = vec![0u32; runs * windows.len() * parts];
        places.par_chunks_mut(windows.len() * parts).zip(scalars.par_chunks(run_len)).for_each(|(counts, run)| {
            for_digits(&windows, low_bits, 0, run, |w, part, _| counts[w * parts + part] += 1);
        });
        let mut ends = Vec::with_capacity(windows.len() * parts);
        let mut place = 0;
        for part in 0..windows.len() * parts {
            for run in places.chunks_mut(windows.len() * parts) {
                place += std::mem::replace(&mut run[part], place);
            }
            ends.push(place);
        }
        let parted = &mut self.parted[..place as usize];
        let base = Shared(parted.as_mut_ptr());
        let tasks = places.par_chunks_mut(windows.len() * parts).zip(scalars.par_chunks(run_len));
        tasks.enumerate().for_each(|(run_number, (places, run))| {
            let base = &base;
            for_digits(&windows, low_bits, run_number * run_len, run, |w, part, parted| {
                let place = &mut places[w * parts + part];
                // SAFETY: the places of a run, window and part are as many as there are calls for them, since the same
                // function counted them; the prefix sums made all of them disjoint and below the length.
                unsafe { base.0.add(*place as usize).write(parted) };
                *place += 1;
            });
        });
        ends
    }
}

/// Calls back for every digit of a run that is not zero, with its window, its part, and what is kept of it beside these.
/// The first point of the run has the number `first`.
#[inline(always)]
fn for_digits(
    windows: &[Window],
    low_bits: usize,
    first: usize,
    run: &[SignedScalar],
    mut f: impl FnMut(usize, usize, u64),
) {
    for (piece, scalars) in run.chunks(PIECE_LEN).enumerate() {
        let first = (first + piece * PIECE_LEN) as u32;
        for (w, window) in windows.iter().enumerate() {
            for (i, scalar) in (first..).zip(scalars) {
                if let Some((bucket, sign)) = window.digit(scalar) {
                    let low = bucket & ((1 << low_bits) - 1);
                    f(w, bucket >> low_bits, (low as u64) << 32 | u64::from(i | sign));
                }
            }
        }
    }
}

/// A pointer that several threads write through, each to its own places.
struct Shared(*mut u64);

// SAFETY: whoever writes through it shows that the places are disjoint.
unsafe impl Sync for Shared {}
