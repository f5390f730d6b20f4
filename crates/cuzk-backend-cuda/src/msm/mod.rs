//! Multi-scalar multiplication: launches as kernels/cuda/msm/README.md describes them, bases resident or streamed.

mod plan;
mod sum;

use std::{ops::Range, sync::Arc};

use cuzk_backend::{BackendError, BasesSpec, FixedBasePlan, Pool, Residency, Result};
use cuzk_curve::{CurveId, GroupId, repr, with_curve};
use group::Curve as _;

use crate::{
    device::Shared,
    driver::{Event, Stream, launch},
    kernels::{CurveKernels, SORT_SHARED},
    memory::{DeviceMemory, PinnedMemory},
    sparse::{Assignment, Density},
};
use plan::{ACCUMULATE_BLOCK, MERGE_BLOCK, PACKED_BLOCK, Params, Plan, Request, SCAN_TILE, SORT_TILE};
use sum::{FromXyzz, weighted_sum};

/// Points on the device or in pinned memory.
pub(crate) struct Bases {
    pub(crate) spec: BasesSpec,
    points: Points,
}

enum Points {
    Resident(DeviceMemory),
    Streamed(PinnedMemory),
    None,
}

/// Entries of one pass where memory allows.
const MOST_ENTRIES: u64 = 1 << 30;
/// Entries of one pass with batched additions: as many as memory may allow, and the fewest with which they pay, the inversions of a
/// pass taking their time however short it is.
const BATCHED_ENTRIES: [u64; 2] = [1 << 28, 1 << 27];
/// Scalars in the list from which on batched additions pay.
const fn batched_from(group: GroupId) -> u64 {
    match group {
        GroupId::G1 => 1 << 24,
        GroupId::G2 => 1 << 20,
    }
}
/// Places in the table of bases are numbered in 31 bits.
const MOST_POINTS: u64 = (1 << 31) - 1;

impl Bases {
    pub(crate) fn new(device: &Shared, spec: &BasesSpec) -> Result<Self> {
        let point = spec.curve.affine_bytes(spec.group) as u64;
        let pool = if spec.residency == Residency::Device { Pool::Device } else { Pool::Pinned };
        let bytes = spec.count.checked_mul(point).ok_or_else(|| device.out_of_memory(pool, u64::MAX))?;
        let points = match spec.residency {
            _ if bytes == 0 => Points::None,
            Residency::Device => Points::Resident(device.alloc(bytes)?),
            Residency::Pinned => Points::Streamed(device.pinned.alloc(bytes)?),
        };
        if spec.count > MOST_POINTS {
            return Err(BackendError::Unsupported {
                operation: "bases_create".to_owned(),
                reason: format!("{} points; a table holds up to {MOST_POINTS}", spec.count),
            });
        }
        Ok(Self { spec: *spec, points })
    }

    /// Copies whole points to their place; done when this returns.
    pub(crate) fn write(&self, device: &Shared, first: u64, bytes: &[u8]) -> Result<()> {
        let offset = first * self.spec.curve.affine_bytes(self.spec.group) as u64;
        match &self.points {
            Points::Resident(memory) => memory.fill(offset, bytes),
            Points::Streamed(memory) => {
                assert!(offset + bytes.len() as u64 <= memory.bytes() as u64, "{} bytes at {offset}", bytes.len());
                // SAFETY: within the range, which nothing reads before all points are written.
                unsafe {
                    memory.on(&device.copies).add(offset as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
                };
                Ok(())
            }
            Points::None => Ok(()),
        }
    }
}

/// The scalars of a multiplication.
pub(crate) enum Scalars<'a> {
    /// `len` scalars at an address.
    Dense { at: u64, len: u64 },
    /// The variables of a range, those with a base.
    Packed { assignment: &'a Assignment, density: Option<&'a Density>, range: Range<u64> },
}

impl Scalars<'_> {
    /// The part that belongs to `bases`, which ascend from call to call; `from` is where the last part ended.
    fn part(&self, bases: Range<u64>, from: u64) -> Scalars<'_> {
        match self {
            Self::Dense { at, .. } => Scalars::Dense { at: at + 32 * bases.start, len: bases.end - bases.start },
            Self::Packed { assignment, density, range } => {
                let end = match density {
                    None => range.start + bases.end,
                    Some(density) => after(&density.bits, from, range.end, bases.end - bases.start),
                };
                Scalars::Packed { assignment, density: *density, range: from..end }
            }
        }
    }

    fn end(&self) -> u64 {
        match self {
            Self::Dense { .. } => 0,
            Self::Packed { range, .. } => range.end,
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

/// What the device leaves of one multiplication.
struct Part {
    plan: Plan,
    points: PinnedMemory,
}

/// A result that is not there yet.
pub(crate) struct Pending {
    curve: CurveId,
    group: GroupId,
    parts: Vec<Part>,
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
        for part in &self.parts {
            let words = part.points.bytes() / 8;
            // SAFETY: pinned memory is aligned to a page; the copy to it is done.
            let limbs = unsafe { std::slice::from_raw_parts(part.points.address().cast::<u64>(), words) };
            sum += weighted_sum::<G>(part.plan.weights(), limbs);
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
    let kernels = device.kernels(curve)?;
    let on = On { device, stream, kernels: &kernels, curve, group };
    // SAFETY: the caller's promise.
    let parts = unsafe {
        match &bases.points {
            Points::None => Vec::new(),
            Points::Resident(memory) => vec![on.one(memory.on(stream), count, scalars)?],
            Points::Streamed(memory) => on.streamed(memory, count, scalars)?,
        }
    };
    Ok(Pending { curve, group, parts, done: stream.record()? })
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
    /// * As for [`enqueue`].
    unsafe fn streamed(&self, points: &PinnedMemory, count: u64, scalars: Scalars<'_>) -> Result<Vec<Part>> {
        let bytes = self.curve.affine_bytes(self.group) as u64;
        // An eighth of the room for each buffer leaves most of it to the scratch memory.
        let chunk = (self.device.room() / 8 / bytes).clamp(1 << 12, 1 << 24).min(count);
        let buffers = [self.device.alloc(chunk * bytes)?, self.device.alloc(chunk * bytes)?];
        let mut used: [Option<Event>; 2] = [None, None];
        let copies = &self.device.copies;
        // The copies do not overtake what was enqueued before, so that the order of the stream is kept.
        copies.wait(&self.stream.record()?)?;
        let mut parts = Vec::new();
        let mut from = match &scalars {
            Scalars::Dense { .. } => 0,
            Scalars::Packed { range, .. } => range.start,
        };
        for (i, first) in (0..count).step_by(chunk as usize).enumerate() {
            let (n, buffer) = (chunk.min(count - first), &buffers[i % 2]);
            if let Some(event) = &used[i % 2] {
                copies.wait(event)?;
            }
            let (target, size) = (buffer.on(copies), (n * bytes) as usize);
            // SAFETY: `n` points from `first` on lie in the pinned memory, which is not written any more, and fit the buffer.
            unsafe {
                let source = points.on(copies).add((first * bytes) as usize);
                copies.upload(target, std::slice::from_raw_parts(source, size))?;
            }
            self.stream.wait(&copies.record()?)?;
            let part = scalars.part(first..first + n, from);
            from = part.end();
            // SAFETY: the caller's promise, and the buffer.
            parts.push(unsafe { self.one(buffer.on(self.stream), n, part)? });
            used[i % 2] = Some(self.stream.record()?);
        }
        Ok(parts)
    }

    fn plan(&self, scalars: &Scalars<'_>, count: u64) -> Result<(Plan, DeviceMemory)> {
        let (n, ones, words) = match scalars {
            Scalars::Dense { len, .. } => (*len, 0, 0),
            Scalars::Packed { assignment, range, .. } => {
                let len = range.end - range.start;
                let words = if len == 0 { 0 } else { range.end.div_ceil(64) - range.start / 64 };
                (assignment.n_wide.min(len), assignment.n_ones.min(len), words)
            }
        };
        let request = |entries_limit, batched| Request {
            n: n as u32,
            ones,
            n_bases: count as u32,
            words: words as u32,
            scalar_bits: match self.curve {
                CurveId::Bls12_381 => 255,
                CurveId::Bn254 => 254,
            },
            point_bytes: 2 * self.curve.affine_bytes(self.group) as u64,
            multiprocessors: self.device.info.compute_units,
            entries_limit,
            batched,
        };
        if n >= batched_from(self.group) {
            for limit in BATCHED_ENTRIES {
                // The sums are numbered behind the bases, in 31 bits together; a chunk is rounded up for each thread.
                if count + limit.max(n) + ones > MOST_POINTS - (1 << 20) {
                    continue;
                }
                let plan = Plan::new(&request(limit, true));
                if let Some(scratch) = self.device.try_alloc(plan.at.bytes)? {
                    return Ok((plan, scratch));
                }
            }
        }
        let mut limit = MOST_ENTRIES;
        loop {
            let plan = Plan::new(&request(limit, false));
            if let Some(scratch) = self.device.try_alloc(plan.at.bytes)? {
                return Ok((plan, scratch));
            }
            // Below one set of buckets a pass it does not get smaller.
            if limit <= n.max(1) {
                return Err(self.device.out_of_memory(Pool::Device, plan.at.bytes));
            }
            limit /= 2;
        }
    }

    /// With `count` bases at one address.
    ///
    /// # Safety
    /// * `bases` is memory of this device for `count` points; and as for [`enqueue`].
    unsafe fn one(&self, bases: u64, count: u64, scalars: Scalars<'_>) -> Result<Part> {
        let (plan, scratch) = self.plan(&scalars, count)?;
        let base = scratch.on(self.stream);
        let at = plan.at;
        // SAFETY: the scratch memory was laid out by the plan for these launches.
        unsafe {
            self.stream.zero(base + at.counters, 32)?;
            let (scalars, scalar_index, base_index) = match &scalars {
                Scalars::Dense { at, .. } => (*at, 0, 0),
                Scalars::Packed { assignment, density, range } => {
                    let packed = assignment.on(self.stream);
                    let density = density.map_or(0, |d| d.on(self.stream));
                    self.packed(&plan, base, range, [packed.ones, packed.wide, density, packed.rank])?;
                    (packed.scalars, base + at.scalar_index, base + at.base_index)
                }
            };
            for k in 0..plan.passes {
                self.pass(&plan, plan.pass(k), base, bases, [scalars, scalar_index, base_index])?;
            }
            let point = 2 * self.curve.affine_bytes(self.group) as u64;
            let bytes = u64::from(plan.out_points) * point;
            let points = self.device.pinned.alloc(bytes)?;
            self.stream.download(points.on(self.stream), base + at.out, bytes as usize)?;
            Ok(Part { plan, points })
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
            let [pool, pairs, prefixes, products] = [at.pool, at.pairs, at.prefixes, at.products].map(|o| base + o);
            let [lengths, slots, pair_counts] = [at.lengths, at.slots, at.pair_counts].map(|o| base + o);
            for round in 0..plan.rounds {
                launch!(stream, group.pair, chunks, ACCUMULATE_BLOCK, 0;
                    p, round, sorted, counters, bases, pool, lengths, slots, pairs, pair_counts, prefixes, products)?;
                launch!(stream, group.invert, (threads.div_ceil(1024), 1, 1), 128, 0; threads, products)?;
                launch!(stream, group.halve, chunks, ACCUMULATE_BLOCK, 0;
                    p, bases, pool, slots, pairs, pair_counts, prefixes, products)?;
            }
            let (lengths, pool) = if plan.rounds > 0 { (lengths, pool) } else { (0, 0) };
            launch!(stream, group.accumulate, chunks, ACCUMULATE_BLOCK, 0;
                p, sorted, counters, lengths, bases, pool, buckets, heads, tails, flags, tail_keys)?;
            let mut from = 0u64;
            for chunks in plan.merged.into_iter().take_while(|m| *m > 0) {
                let to = from + u64::from(chunks);
                launch!(stream, group.merge, (chunks.div_ceil(MERGE_BLOCK), 1, 1), MERGE_BLOCK, 0;
                    chunks, heads + from * point, tails + from * point, flags + 4 * from, tail_keys + 4 * from, buckets,
                    heads + to * point, tails + to * point, flags + 4 * to, tail_keys + 4 * to)?;
                from = to;
            }
            let runs_blocks = (p.set_count << p.reduce_log).div_ceil(128);
            launch!(stream, group.reduce, (runs_blocks, 1, 1), 128, 0; p, bucket_count, buckets, runs, run_sums)?;
            let set_points = u64::from((p.reduce_log + 1) * plan.splits) * point;
            launch!(stream, group.bits, (p.reduce_log + 1, p.set_count + p.with_ones, plan.splits), 128, 0;
                p, counters, buckets, runs, run_sums, out + u64::from(p.set_first) * set_points, out + u64::from(p.sets) * set_points)
        }
    }
}

/// Points of the table of multiples of one base.
const TABLE_POINTS: u64 = 8160;

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
    let (base, table) = (device.alloc(point)?, device.alloc(TABLE_POINTS * point)?);
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
