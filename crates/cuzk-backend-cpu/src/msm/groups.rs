//! Sums of groups of points: every phase of the bucket method is one.
//!
//! A group shrinks by rounds: each adds its points in pairs, so that k points take log₂ k rounds. To share inversions
//! among many additions without many points in the cache, groups are taken up block by block, and one step does the first
//! round of a new block together with the next round of all groups that are not finished: in the long run a step has as many
//! additions as a block has points, and one inversion.

use std::sync::Mutex;

use cuzk_curve::AffineRepr;
use group::Group as _;
use rayon::prelude::*;

use super::{
    batch_add::{Ahead, NEGATIVE, Pairs, Scratch, Segment, batch_add},
    point::{Point, import, to_curve},
};
use crate::field::Lanes;

/// Bytes of points in a block. A step works on eight times as much (points to come, sums before and after, denominators,
/// products), which should fit the second-level cache.
const BLOCK_BYTES: usize = 128 << 10;

/// At most so many blocks are one task, which begins and ends with steps that are not full.
const TASK_BLOCKS: usize = 64;

/// Points in a block.
const fn block_len<F: Lanes>() -> usize {
    BLOCK_BYTES / size_of::<Point<F>>()
}

/// The memory that a thread needs for a block, kept from one block to the next.
pub(crate) struct Workspace<F: Lanes> {
    scratch: Scratch<F>,
    /// Pairs of points that enter with a block, and of sums in `current`.
    new_pairs: Pairs,
    pairs: Pairs,
    /// What is left of the groups that are not finished, and where the next step puts it.
    current: Vec<Point<F>>,
    next: Vec<Point<F>>,
    live: Vec<Group>,
    /// Places in `next` of points that have yet to be negated.
    negated: Vec<u32>,
}

/// A group of which more than one point is left, at consecutive places in `current`.
struct Group {
    out: u32,
    start: u32,
    len: u32,
}

impl<F: Lanes> Workspace<F> {
    pub(crate) fn new() -> Self {
        Workspace {
            scratch: Scratch::new(),
            new_pairs: Pairs::default(),
            pairs: Pairs::default(),
            current: Vec::new(),
            next: Vec::new(),
            live: Vec::new(),
            negated: Vec::new(),
        }
    }
}

/// Workspaces for as many threads as ask at once.
pub(crate) struct Workspaces<F: Lanes>(Mutex<Vec<Workspace<F>>>);

impl<F: Lanes> Workspaces<F> {
    pub(crate) fn new() -> Self {
        Workspaces(Mutex::new(Vec::new()))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Workspace<F>) -> R) -> R {
        // A poisoned lock only says that another thread panicked; the list of workspaces is whole at any time.
        let lock = || self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut workspace = lock().pop().unwrap_or_else(Workspace::new);
        let result = f(&mut workspace);
        lock().push(workspace);
        result
    }
}

/// Consecutive groups.
struct Task<'a, F: Lanes> {
    /// Where the first group begins.
    start: u32,
    ends: &'a [u32],
    out: &'a mut [Point<F>],
}

/// Adds to `out[g]` the points `source[e]` for the entries e of group g, which are those from `ends[g - 1]` to `ends[g]`.
///
/// With `SIGNED`, an entry carries a sign in [`NEGATIVE`] and must not name the point at infinity.
pub(crate) fn sum_groups<F: Lanes, const SIGNED: bool>(
    source: &[Point<F>],
    entries: &[u32],
    ends: &[u32],
    out: &mut [Point<F>],
    workspaces: &Workspaces<F>,
) {
    assert_eq!(ends.len(), out.len());
    let block_len = block_len::<F>();
    // Enough tasks for all threads, and a good deal more of them to even out what they take.
    let task_len = entries.len() / (8 * rayon::current_num_threads());
    let task_len = task_len.clamp(block_len, TASK_BLOCKS * block_len) as u32;
    let block_len = block_len as u32;

    let mut tasks = Vec::new();
    let mut oversized = Vec::new();
    let mut part_ends = Vec::new();
    let (mut ends, mut out, mut start) = (ends, out, 0);
    while let Some(&first_end) = ends.first() {
        let oversize = |end: u32, start: u32| end - start > block_len;
        if oversize(first_end, start) {
            // A group larger than a block is summed in parts, and their sums are added in the end.
            let parts = part_ends.len()..part_ends.len() + (first_end - start).div_ceil(block_len) as usize;
            part_ends
                .extend((start..first_end).step_by(block_len as usize).map(|part| first_end.min(part + block_len)));
            let (own, others) = out.split_at_mut(1);
            oversized.push((start, parts, &mut own[0]));
            (ends, out, start) = (&ends[1..], others, first_end);
        } else {
            let mut count = 1;
            while count < ends.len() && ends[count] - start <= task_len && !oversize(ends[count], ends[count - 1]) {
                count += 1;
            }
            let (own, others) = out.split_at_mut(count);
            tasks.push(Task { start, ends: &ends[..count], out: own });
            (ends, out, start) = (&ends[count..], others, ends[count - 1]);
        }
    }

    let mut part_sums = vec![Point::INFINITY; part_ends.len()];
    let mut rest = part_sums.as_mut_slice();
    for (start, parts, _) in &oversized {
        let (own, others) = rest.split_at_mut(parts.len());
        rest = others;
        let parts_a_task = (task_len / block_len) as usize;
        let mut start = *start;
        for (ends, out) in part_ends[parts.clone()].chunks(parts_a_task).zip(own.chunks_mut(parts_a_task)) {
            tasks.push(Task { start, ends, out });
            start = ends[ends.len() - 1];
        }
    }
    tasks.into_par_iter().for_each(|task| workspaces.with(|w| w.run::<SIGNED>(source, entries, task)));

    if !oversized.is_empty() {
        let entries: Vec<u32> = (0..part_sums.len() as u32).collect();
        let ends: Vec<u32> = oversized.iter().map(|(_, parts, _)| parts.end as u32).collect();
        let mut sums: Vec<_> = oversized.iter().map(|(_, _, out)| **out).collect();
        sum_groups::<F, false>(&part_sums, &entries, &ends, &mut sums, workspaces);
        for ((_, _, out), sum) in oversized.into_iter().zip(sums) {
            *out = sum;
        }
    }
}

impl<F: Lanes> Workspace<F> {
    fn run<const SIGNED: bool>(&mut self, source: &[Point<F>], entries: &[u32], task: Task<'_, F>) {
        self.live.clear();
        let block_len = block_len::<F>();
        let (mut first, mut start) = (0, task.start);
        while first < task.ends.len() || !self.live.is_empty() {
            let rest = &task.ends[first..];
            // At least one group, unless there is none.
            let count = rest.partition_point(|&end| (end - start) as usize <= block_len).max(rest.len().min(1));
            let end = if count > 0 { rest[count - 1] } else { start };
            let ahead = &entries[end as usize..entries.len().min(end as usize + block_len)];
            self.step::<SIGNED>(
                source,
                |workspace, place| {
                    let sums = &task.out[first..];
                    workspace.take_up::<SIGNED>(source, entries, start, &rest[..count], sums, first as u32, place);
                },
                Ahead { points: source, indices: ahead },
            );
            self.retire(task.out);
            (first, start) = (first + count, end);
        }
    }

    /// A round for all groups that are not finished, and the first one for those that `take_up` adds to them.
    fn step<const SIGNED: bool>(
        &mut self,
        source: &[Point<F>],
        take_up: impl FnOnce(&mut Self, &mut u32),
        mut ahead: Ahead<'_, F>,
    ) {
        self.new_pairs.clear();
        self.pairs.clear();
        self.negated.clear();
        let mut place = 0;
        grow(&mut self.next, self.live.iter().map(|group| group.len.div_ceil(2) as usize).sum());
        for group in &mut self.live {
            let first_place = place;
            for pair in 0..group.len / 2 {
                self.pairs.push(group.start + 2 * pair, group.start + 2 * pair + 1, place);
                place += 1;
            }
            if group.len % 2 == 1 {
                self.next[place as usize] = self.current[(group.start + group.len - 1) as usize];
                place += 1;
            }
            (group.start, group.len) = (first_place, place - first_place);
        }
        take_up(self, &mut place);
        negate(&mut self.next, &self.negated);
        let new = Segment::<_, SIGNED> { left: source, right: source, pairs: &mut self.new_pairs };
        let old = Segment { left: &self.current, right: &self.current, pairs: &mut self.pairs };
        batch_add(new, old, &mut self.next, &mut self.scratch, &mut ahead);
        std::mem::swap(&mut self.current, &mut self.next);
    }

    /// Lists the pairs of new groups. A point without a partner and the group's sum so far move to `next` as they are.
    #[expect(clippy::too_many_arguments, reason = "the parts of a block, which is nothing else")]
    fn take_up<const SIGNED: bool>(
        &mut self,
        source: &[Point<F>],
        entries: &[u32],
        mut start: u32,
        ends: &[u32],
        sums: &[Point<F>],
        first_group: u32,
        place: &mut u32,
    ) {
        let Some(&last_end) = ends.last() else { return };
        // A group has at most a place for each entry and one for its sum.
        grow(&mut self.next, *place as usize + (last_end - start) as usize + ends.len());
        for (group, (&end, sum)) in (first_group..).zip(ends.iter().zip(sums)) {
            let first_place = *place;
            let mut unpaired = None;
            for &entry in &entries[start as usize..end as usize] {
                if !SIGNED && source[entry as usize].is_infinity() {
                    continue;
                }
                if let Some(left) = unpaired.take() {
                    self.new_pairs.push(left, entry, *place);
                    *place += 1;
                } else {
                    unpaired = Some(entry);
                }
            }
            start = end;
            if let Some(entry) = unpaired {
                self.next[*place as usize] = source[(entry & !NEGATIVE) as usize];
                if entry & NEGATIVE != 0 {
                    self.negated.push(*place);
                }
                *place += 1;
            }
            if *place > first_place {
                if !sum.is_infinity() {
                    self.next[*place as usize] = *sum;
                    *place += 1;
                }
                self.live.push(Group { out: group, start: first_place, len: *place - first_place });
            }
        }
    }

    /// Hands out the groups of which one point is left.
    fn retire(&mut self, out: &mut [Point<F>]) {
        self.live.retain(|group| {
            if group.len == 1 {
                out[group.out as usize] = self.current[group.start as usize];
            }
            group.len > 1
        });
    }

    /// The sum of points that come one by one.
    pub(crate) fn sum_stream<'a, A: AffineRepr>(&mut self, points: impl Iterator<Item = &'a A>) -> A::Curve {
        let mut points = points.filter(|point| !bool::from(point.is_identity()));
        let block_len = block_len::<F>();
        let entries: Vec<u32> = (0..block_len as u32).collect();
        let mut source = vec![Point::INFINITY; block_len];
        let mut batch = Vec::with_capacity(block_len);
        let mut len = 0;
        loop {
            batch.clear();
            batch.extend(points.by_ref().take(block_len));
            import(&mut source[..batch.len()], |i| batch[i]);
            // All points are one group: what is left of it and what is new.
            self.live.clear();
            self.live.extend((len > 0).then_some(Group { out: 0, start: 0, len }));
            let ends = [batch.len() as u32];
            self.step::<false>(
                &source,
                |workspace, place| {
                    workspace.take_up::<false>(&source, &entries, 0, &ends, &[Point::INFINITY], 0, place);
                },
                Ahead::nothing(),
            );
            len = self.live.iter().map(|group| group.len).sum();
            if batch.is_empty() && len <= 1 {
                break;
            }
        }
        if len == 0 { A::Curve::identity() } else { to_curve::<F, A>(&self.current[0]) }
    }
}

fn grow<F: Lanes>(points: &mut Vec<Point<F>>, len: usize) {
    if points.len() < len {
        points.resize(len, Point::INFINITY);
    }
}

/// Negates the points at the given places, a row at a time.
fn negate<F: Lanes>(points: &mut [Point<F>], places: &[u32]) {
    for row in places.chunks(F::LANES) {
        let last = row.len() - 1; // the lanes past a short row repeat its last point
        let place = |lane: usize| row[lane.min(last)] as usize;
        let y = F::zero().sub_tight(&F::load(|lane| &points[place(lane)].y), 0);
        let base = points.as_mut_ptr();
        // SAFETY: the same places were just read through the slice; lanes that share one write the same.
        unsafe { y.store(|lane| &raw mut (*base.add(place(lane))).y) };
    }
}
