//! Multi-scalar multiplication: launches as kernels/cuda/msm/README.md describes them, bases resident or streamed.

mod bases;
mod layout;
mod plan;
mod sum;

use std::{ops::Range, sync::Arc};

use cuzk_backend::{AssignmentShape, BackendError, BasesSpec, FixedBasePlan, Pool, Result, ScalarsShape, Workspace};
use cuzk_curve::{CurveId, GroupId, repr, with_curve};
use group::Curve as _;

use self::bases::Points;
pub(crate) use self::bases::{Bases, bases_workspace};
use self::layout::{Layout, Sizes};
use crate::{
    device::Shared,
    driver::{Event, Stream, launch},
    kernels::{CurveKernels, SORT_SHARED},
    memory::{DeviceMemory, PinnedMemory},
    sparse::{Assignment, Density},
};
use plan::{ACCUMULATE_BLOCK, MERGE_BLOCK, PACKED_BLOCK, PAIR_BLOCK, Params, Plan, REDUCE_BLOCK, SCAN_TILE, SORT_TILE};
use sum::{FromXyzz, weighted_sum};

/// What a multiplication takes beside its operands.
///
/// # Errors
/// More points than can be numbered.
pub(crate) fn workspace(multiprocessors: u32, spec: &BasesSpec, scalars: ScalarsShape, room: u64) -> Result<Workspace> {
    layout::table_points(spec)?;
    Ok(layout::workspace(&Sizes { spec: *spec, scalars, multiprocessors }, room))
}

fn sizes(device: &Shared, spec: &BasesSpec, scalars: ScalarsShape) -> Sizes {
    Sizes { spec: *spec, scalars, multiprocessors: device.info.compute_units }
}

/// The scalars of a multiplication.
pub(crate) enum Scalars<'a> {
    /// As many scalars as bases, at an address.
    Dense { at: u64 },
    /// The variables of a range, those with a base.
    Packed { assignment: &'a Assignment, density: Option<&'a Density>, range: Range<u64> },
}

impl Scalars<'_> {
    /// The part that belongs to `bases`, which ascend from call to call; `from` is where the last part ended.
    fn part(&self, bases: Range<u64>, from: u64) -> Scalars<'_> {
        match self {
            Self::Dense { at } => Scalars::Dense { at: at + 32 * bases.start },
            Self::Packed { assignment, density, range } => {
                let end = match density {
                    None => range.start + bases.end,
                    Some(density) => after(&density.bits, from, range.end, bases.end - bases.start),
                };
                Scalars::Packed { assignment, density: *density, range: from..end }
            }
        }
    }

    fn start(&self) -> u64 {
        match self {
            Self::Dense { .. } => 0,
            Self::Packed { range, .. } => range.start,
        }
    }

    fn end(&self) -> u64 {
        match self {
            Self::Dense { .. } => 0,
            Self::Packed { range, .. } => range.end,
        }
    }

    fn shape(&self, curve: CurveId) -> ScalarsShape {
        match self {
            Self::Dense { .. } => ScalarsShape::Dense,
            Self::Packed { assignment, range, .. } => {
                let Assignment { n_variables, n_ones, n_wide, .. } = **assignment;
                let assignment = AssignmentShape { curve, n_variables, n_ones, n_wide };
                ScalarsShape::Assignment { assignment, len: range.end - range.start }
            }
        }
    }
}

/// The end of the shortest range from `from` on with `count` bits set; at most `end`.
fn after(bits: &[u64], from: u64, end: u64, count: u64) -> u64 {
    let mut left = count;
    let mut at = from;
    while at < end && left > 0 {
        let word = bits[(at / 64) as usize] >> (at % 64);
        let ones = u64::from(word.count_ones());
        if ones < left {
            left -= ones;
            at = (at / 64 + 1) * 64;
        } else {
            let mut word = word;
            for _ in 1..left {
                word &= word - 1;
            }
            return (at + u64::from(word.trailing_zeros()) + 1).min(end);
        }
    }
    at.min(end)
}

/// A result that is not there yet.
pub(crate) struct Pending {
    curve: CurveId,
    group: GroupId,
    /// What the device leaves of each chunk of the bases, one after the other.
    points: Option<PinnedMemory>,
    plans: Vec<Plan>,
    done: Event,
}

impl Pending {
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.done.is_done()
    }

    /// Waits, and writes the point.
    pub(crate) fn finish(&self, out: &mut [u8]) -> Result<()> {
        self.done.wait()?;
        with_curve!(self.curve, C => match self.group {
            GroupId::G1 => self.sum::<<C as cuzk_curve::pairing::Engine>::G1Affine>(out),
            GroupId::G2 => self.sum::<<C as cuzk_curve::pairing::Engine>::G2Affine>(out),
        });
        Ok(())
    }

    fn sum<G: FromXyzz>(&self, out: &mut [u8]) {
        let mut sum = <G::Curve as group::Group>::identity();
        if let Some(points) = &self.points {
            // SAFETY: pinned memory is aligned to a page; the copies to it are done.
            let mut limbs = unsafe { std::slice::from_raw_parts(points.address().cast::<u64>(), points.bytes() / 8) };
            for plan in &self.plans {
                let (first, rest) = limbs.split_at(plan.out_points as usize * 2 * size_of::<G>() / 8);
                sum += weighted_sum::<G>(plan.weights(), first);
                limbs = rest;
            }
        }
        out.copy_from_slice(repr::as_bytes(&[sum.to_affine()]));
    }
}

/// Enqueues Σ scalar[i] · base[i].
///
/// # Safety
/// * Dense scalars are memory of this device that stays until the stream's work is done.
pub(crate) unsafe fn enqueue(
    device: &Shared,
    stream: &Arc<Stream>,
    bases: &Bases,
    scalars: Scalars<'_>,
) -> Result<Pending> {
    let BasesSpec { curve, group, count, .. } = bases.spec;
    if let Points::None = bases.points {
        return Ok(Pending { curve, group, points: None, plans: Vec::new(), done: stream.record()? });
    }
    let kernels = device.kernels(curve)?;
    let (layout, memory) = allocate(device, stream, &sizes(device, &bases.spec, scalars.shape(curve)))?;
    let points = device.pinned.alloc(layout.result)?;
    let on = On { device, stream, kernels: &kernels, curve, group };
    // SAFETY: the caller's promise; the memory has the layout's size.
    let plans = unsafe {
        match &bases.points {
            Points::None => Vec::new(),
            Points::Resident(table) => {
                let (at, plan) = (memory.on(stream), layout.plan(count));
                on.one(plan, table.on(stream), at, scalars, points.on(stream))?;
                vec![*plan]
            }
            Points::Streamed(source) => on.streamed(source, &layout, &memory, scalars, &points)?,
        }
    };
    Ok(Pending { curve, group, points: Some(points), plans, done: stream.record()? })
}

/// The memory of the fastest way that there is room for.
fn allocate(device: &Shared, stream: &Arc<Stream>, sizes: &Sizes) -> Result<(Layout, DeviceMemory)> {
    let (room, layouts) = (device.room_on(stream), sizes.layouts());
    for layout in layouts.iter().filter(|l| l.bytes <= room) {
        // Others may have been faster, and what remains may still be enough for another way.
        if let Some(memory) = device.try_alloc_on(stream, layout.bytes)? {
            return Ok((*layout, memory));
        }
    }
    let least = layouts.iter().map(|l| l.bytes).min().unwrap_or(0);
    Err(device.out_of_memory(Pool::Device, least))
}

struct On<'a> {
    device: &'a Shared,
    stream: &'a Arc<Stream>,
    kernels: &'a CurveKernels,
    curve: CurveId,
    group: GroupId,
}

/// `PackedRange` of kernels/cuda/msm/msm.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct PackedRange {
    first: u64,
    len: u64,
    word: u32,
    words: u32,
}

impl On<'_> {
    /// Streams the bases through two buffers: while one is computed with, the other is filled.
    ///
    /// # Safety
    /// * `memory` has the layout's size, `results` that of its results; and as for [`enqueue`].
    unsafe fn streamed(
        &self,
        source: &PinnedMemory,
        layout: &Layout,
        memory: &DeviceMemory,
        scalars: Scalars<'_>,
        results: &PinnedMemory,
    ) -> Result<Vec<Plan>> {
        let point = self.curve.affine_bytes(self.group) as u64;
        let count = source.bytes() as u64 / point;
        let copies = &self.device.copies;
        let (base, scratch) = (memory.on(copies), memory.on(self.stream) + 2 * layout.buffer);
        let mut used: [Option<Event>; 2] = [None, None];
        // The copies do not overtake what was enqueued before: what the memory is made of may still be in use there.
        copies.wait(&self.stream.record()?)?;
        let mut plans = Vec::new();
        let (mut from, mut result) = (scalars.start(), 0);
        for (i, first) in (0..count).step_by(layout.chunk as usize).enumerate() {
            let (n, buffer) = (layout.chunk.min(count - first), base + (i as u64 % 2) * layout.buffer);
            if let Some(event) = &used[i % 2] {
                copies.wait(event)?;
            }
            // SAFETY: `n` points from `first` on lie in the pinned memory, which is not written any more, and fit the buffer.
            unsafe {
                let source = source.on(copies).add((first * point) as usize);
                copies.upload(buffer, std::slice::from_raw_parts(source, (n * point) as usize))?;
            }
            self.stream.wait(&copies.record()?)?;
            let part = scalars.part(first..first + n, from);
            from = part.end();
            let plan = layout.plan(n);
            // SAFETY: the caller's promise, and the buffer; the results of the chunks lie one behind the other.
            unsafe { self.one(plan, buffer, scratch, part, results.on(self.stream).add(result))? };
            result += plan.out_points as usize * 2 * point as usize;
            plans.push(*plan);
            used[i % 2] = Some(self.stream.record()?);
        }
        // The stream has waited for each copy.
        memory.not_on(copies);
        Ok(plans)
    }

    /// With the bases at one address.
    ///
    /// # Safety
    /// * `bases` is memory of this device for the plan's bases, `base` for its scratch, and `result` pinned memory for
    ///   its results.
    /// * As for [`enqueue`].
    unsafe fn one(&self, plan: &Plan, bases: u64, base: u64, scalars: Scalars<'_>, result: *mut u8) -> Result<()> {
        let at = plan.at;
        // SAFETY: the scratch memory was laid out by the plan for these launches.
        unsafe {
            self.stream.zero(base + at.counters, 32)?;
            let (scalars, scalar_index, base_index) = match &scalars {
                Scalars::Dense { at } => (*at, 0, 0),
                Scalars::Packed { assignment, density, range } => {
                    let packed = assignment.on(self.stream);
                    let density = density.map_or(0, |d| d.on(self.stream));
                    self.packed(plan, base, range, [packed.ones, packed.wide, density, packed.rank])?;
                    (packed.scalars, base + at.scalar_index, base + at.base_index)
                }
            };
            for k in 0..plan.passes {
                self.pass(plan, plan.pass(k), base, bases, [scalars, scalar_index, base_index])?;
            }
            let bytes = plan.out_points as usize * 2 * self.curve.affine_bytes(self.group);
            self.stream.download(result, base + at.out, bytes)
        }
    }

    /// # Safety
    /// * `base` is scratch memory of the plan; the arrays are the assignment's.
    unsafe fn packed(
        &self,
        plan: &Plan,
        base: u64,
        range: &Range<u64>,
        [ones, wide, density, rank]: [u64; 4],
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let (at, sort) = (plan.at, &self.kernels.sort);
        let word = range.start / 64;
        let words = (range.end.div_ceil(64) - word) as u32;
        let packed = PackedRange { first: range.start, len: range.end - range.start, word: word as u32, words };
        let tiles = words.div_ceil(PACKED_BLOCK);
        let (grid, block) = ((tiles, 1, 1), PACKED_BLOCK);
        let (tiles_at, counters) = (base + at.tiles, base + at.counters);
        // SAFETY: the caller's promise; the kernels' signatures.
        unsafe {
            launch!(self.stream, sort.packed_count, grid, block, 0; packed, ones, wide, density, tiles_at)?;
            launch!(self.stream, sort.packed_scan, (1, 1, 1), 1024, 0; tiles, tiles_at, counters)?;
            launch!(self.stream, sort.packed_emit, grid, block, 0; packed, ones, wide, density, rank, tiles_at,
                plan.pass(0).keys, base + at.sorted, base + at.scalar_index, base + at.base_index)
        }
    }

    /// # Safety
    /// * `base` is scratch memory of the plan, `bases` the points; the scalars are those of the list.
    unsafe fn pass(
        &self,
        plan: &Plan,
        p: Params,
        base: u64,
        bases: u64,
        [scalars, scalar_index, base_index]: [u64; 3],
    ) -> Result<()> {
        let (at, sort, group) = (plan.at, &self.kernels.sort, self.kernels.group(self.group));
        let (stream, one) = (self.stream, (1, 1, 1));
        let point = 2 * self.curve.affine_bytes(self.group) as u64;
        let [counters, coarse, bucket_count, offset, sums] =
            [at.counters, at.coarse, at.bucket_count, at.offset, at.sums].map(|o| base + o);
        let [digits, entries, sorted, buckets, heads, tails] =
            [at.digits, at.entries, at.sorted, at.buckets, at.heads, at.tails].map(|o| base + o);
        let [flags, tail_keys, runs, run_sums, out] =
            [at.flags, at.tail_keys, at.runs, at.run_sums, at.out].map(|o| base + o);
        let entry_tiles = (u64::from(p.n) * u64::from(p.levels) * u64::from(p.set_count)).div_ceil(SORT_TILE) as u32;
        let scans = p.keys.div_ceil(SCAN_TILE);
        let shared = self.device.context.shared(SORT_SHARED);
        // SAFETY: the caller's promise; the kernels' signatures; grids and blocks are the README's.
        unsafe {
            stream.zero(coarse, 4 * p.coarse_bins as usize)?;
            stream.zero(bucket_count, 4 * p.keys as usize)?;
            if p.n > 0 {
                launch!(stream, sort.digits, (p.n.div_ceil(p.tile), 1, 1), 512, 0; p, scalars, scalar_index, counters, coarse, digits)?;
            }
            launch!(stream, sort.scan_small, one, 1024, 0; p.coarse_bins, coarse, counters)?;
            if p.n > 0 {
                let tiles = u64::from(p.n).div_ceil(SORT_TILE) as u32;
                launch!(stream, sort.partition, (tiles, p.set_count * p.levels, 1), 512, shared;
                    p, digits, base_index, counters, coarse, entries)?;
                launch!(stream, sort.fine_count, (entry_tiles, 1, 1), 512, 0; p, entries, counters, bucket_count)?;
                launch!(stream, sort.scan_local, (scans, 1, 1), 1024, 0; p.keys, bucket_count, offset, sums)?;
                launch!(stream, sort.scan_small, one, 1024, 0; scans, sums, 0u64)?;
                launch!(stream, sort.scatter, (entry_tiles, 1, 1), 512, shared; p, entries, counters, offset, sums, sorted)?;
            }
            let (threads, chunks) = (plan.accumulate_threads, (plan.accumulate_threads / ACCUMULATE_BLOCK, 1, 1));
            let [pool, products, left] = [at.pool, at.products, at.chunks].map(|o| base + o);
            let (pairs, prefixes) = (at.pairs.map(|o| base + o), at.prefixes.map(|o| base + o));
            let pair_blocks = (threads / PAIR_BLOCK, 1, 1);
            if plan.rounds > 0 {
                launch!(stream, group.pair, pair_blocks, PAIR_BLOCK, 0;
                    p, sorted, counters, bases, left, pairs[0], prefixes[0], products)?;
            }
            for round in 0..plan.rounds {
                let (now, next) = (round as usize % 2, (round as usize + 1) % 2);
                let (backward, last) = (u32::from(now == 0), u32::from(round + 1 == plan.rounds));
                launch!(stream, group.invert, (threads.div_ceil(1024), 1, 1), 128, 0; threads, products)?;
                launch!(stream, group.halve, pair_blocks, PAIR_BLOCK, 0;
                    p, backward, last, sorted, bases, pool, left, pairs[now], prefixes[now], pairs[next], prefixes[next], products)?;
            }
            let (left, pool) = if plan.rounds > 0 { (left, pool) } else { (0, 0) };
            launch!(stream, group.accumulate, chunks, ACCUMULATE_BLOCK, 0;
                p, sorted, counters, left, bases, pool, buckets, heads, tails, flags, tail_keys)?;
            let mut from = 0u64;
            for chunks in plan.merged.into_iter().take_while(|m| *m > 0) {
                let to = from + u64::from(chunks);
                launch!(stream, group.merge, (chunks.div_ceil(MERGE_BLOCK), 1, 1), MERGE_BLOCK, 0;
                    chunks, heads + from * point, tails + from * point, flags + 4 * from, tail_keys + 4 * from, buckets,
                    heads + to * point, tails + to * point, flags + 4 * to, tail_keys + 4 * to)?;
                from = to;
            }
            let runs_blocks = (p.set_count << p.reduce_log).div_ceil(REDUCE_BLOCK);
            launch!(stream, group.reduce, (runs_blocks, 1, 1), REDUCE_BLOCK, 0; p, bucket_count, buckets, runs, run_sums)?;
            let set_points = u64::from((p.reduce_log + 2) * plan.splits) * point;
            launch!(stream, group.bits, (p.reduce_log + 2, p.set_count + p.with_ones, plan.splits), 128, 0;
                p, counters, buckets, runs, run_sums, out + u64::from(p.set_first) * set_points, out + u64::from(p.sets) * set_points)
        }
    }
}

/// Points of the table of multiples of one base.
const TABLE_POINTS: u64 = 8160;

/// What multiples of one point take: the point and the table.
pub(crate) fn fixed_base_workspace(curve: CurveId, group: GroupId, count: u64) -> Workspace {
    let point = curve.affine_bytes(group) as u64;
    Workspace::fixed(if count == 0 { 0 } else { (1 + TABLE_POINTS) * point }, 0)
}

/// base · scalar[i] to point i of `out`, affine.
///
/// # Safety
/// * `scalars` and `out` are memory of this device for `plan.count` scalars and points, which stays until the stream's work is done.
pub(crate) unsafe fn fixed_base(
    device: &Shared,
    stream: &Arc<Stream>,
    plan: &FixedBasePlan,
    scalars: u64,
    out: u64,
) -> Result<()> {
    let Ok(count) = u32::try_from(plan.count) else {
        return Err(BackendError::Unsupported {
            operation: "fixed_base_mul".to_owned(),
            reason: format!("{} scalars; at most {} at once", plan.count, u32::MAX),
        });
    };
    if count == 0 {
        return Ok(());
    }
    let kernels = device.kernels(plan.curve)?;
    let kernels = kernels.group(plan.group);
    let point = plan.curve.affine_bytes(plan.group) as u64;
    let (base, table) = (device.alloc(point)?, device.alloc_on(stream, TABLE_POINTS * point)?);
    base.fill(0, &plan.base)?;
    let (base, table) = (base.on(stream), table.on(stream));
    // SAFETY: the caller's promise; the kernels' signatures.
    unsafe {
        launch!(stream, kernels.fixed_base_table, ((TABLE_POINTS as u32).div_ceil(64), 1, 1), 64, 0; base, table)?;
        launch!(stream, kernels.fixed_base_mul, (count.div_ceil(8).div_ceil(128), 1, 1), 128, 0; count, scalars, table, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_after_its_last_bit() {
        let bits = [0b1011, 0, 1 << 63 | 1];
        assert_eq!(after(&bits, 0, 192, 0), 0);
        assert_eq!(after(&bits, 0, 192, 1), 1);
        assert_eq!(after(&bits, 1, 192, 2), 4);
        assert_eq!(after(&bits, 0, 192, 4), 129);
        assert_eq!(after(&bits, 2, 192, 3), 192);
        assert_eq!(after(&bits, 0, 150, 9), 150);
    }
}
