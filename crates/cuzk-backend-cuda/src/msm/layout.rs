//! What a multiplication takes: how many bases at a time, how many passes over them, and the bytes of it all, from
//! sizes alone. [`workspace`] tells these numbers, and the multiplication goes by them.

use cuzk_backend::{BackendError, BasesSpec, Residency, Result, ScalarsShape, Workspace};
use cuzk_curve::{CurveId, GroupId};

use super::plan::{Levels, Plan, Request};
use crate::memory::PAGE;

/// Entries of one pass where memory allows.
const MOST_ENTRIES: u64 = 1 << 30;
/// Entries of one pass with batched additions: as many as memory may allow, and the fewest with which they pay, the
/// inversions of a pass taking their time however short it is.
const BATCHED_ENTRIES: [u64; 2] = [1 << 28, 1 << 27];
/// Places in the table of bases are numbered in 31 bits.
const MOST_POINTS: u64 = (1 << 31) - 1;
/// Streamed bases: the most of them at a time, with which the bucket sums weigh little; the fewest parts, so that
/// copies and additions overlap; and the fewest bases at a time.
const CHUNK: u64 = 1 << 22;
const FEWEST_CHUNKS: u64 = 4;
const SMALLEST_CHUNK: u64 = 1 << 16;

/// Scalars in the list from which on batched additions pay; measured on an H200. In G2 of BLS12-381 they do not: mixed additions are
/// as fast, in a tenth of the scratch memory.
const fn batched_from(curve: CurveId, group: GroupId) -> u64 {
    match (curve, group) {
        (CurveId::Bls12_381, GroupId::G1) => 1 << 19,
        (CurveId::Bls12_381, GroupId::G2) => u64::MAX,
        (CurveId::Bn254, GroupId::G1) => 1 << 24,
        (CurveId::Bn254, GroupId::G2) => 1 << 19,
    }
}

const fn scalar_bits(curve: CurveId) -> u32 {
    match curve {
        CurveId::Bls12_381 => 255,
        CurveId::Bn254 => 254,
    }
}

/// Bytes of an affine point.
pub(super) fn affine_bytes(spec: &BasesSpec) -> u64 {
    spec.curve.affine_bytes(spec.group) as u64
}

/// Windows and levels of a table of multiples; nothing if the points are alone.
pub(super) fn levels(spec: &BasesSpec) -> Option<Levels> {
    (spec.multiples > 1 && spec.count > 0).then(|| Levels::new(spec.count, spec.multiples, scalar_bits(spec.curve)))
}

/// Points of the table of bases.
///
/// # Errors
/// More than can be numbered.
pub(super) fn table_points(spec: &BasesSpec) -> Result<u64> {
    let n_levels = levels(spec).map_or(1, |l| u64::from(l.levels));
    let points = spec.count.saturating_mul(n_levels);
    // A list may be longer than the table by what the sums of batched additions are rounded up to.
    if points <= MOST_POINTS - (1 << 20) {
        return Ok(points);
    }
    Err(BackendError::Unsupported {
        operation: "bases_create".to_owned(),
        reason: format!(
            "{} points with {n_levels} multiples; a table holds up to {}",
            spec.count,
            MOST_POINTS - (1 << 20)
        ),
    })
}

/// The sizes that everything else follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) spec: BasesSpec,
    pub(super) scalars: ScalarsShape,
    pub(super) multiprocessors: u32,
}

/// A way to do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Bases at a time; all of them if they are on the device.
    pub(super) chunk: u64,
    /// Of each chunk but a shorter last one.
    plan: Plan,
    /// Of a shorter last one.
    last: Option<Plan>,
    /// Bytes of each of the two buffers that bases are streamed through, in front of the scratch memory.
    pub(super) buffer: u64,
    /// Bytes of all of it.
    pub(super) bytes: u64,
    /// Bytes of the points that it leaves.
    pub(super) result: u64,
}

impl Layout {
    /// The plan of the chunk with so many bases.
    pub(super) fn plan(&self, bases: u64) -> &Plan {
        self.last.as_ref().filter(|_| bases < self.chunk).unwrap_or(&self.plan)
    }
}

impl Sizes {
    fn request(&self, bases: u64, entries_limit: u64, batched: bool) -> Request {
        let (n, ones, words) = match self.scalars {
            ScalarsShape::Dense => (bases, 0, 0),
            // A chunk's range of variables is known when it is its turn, but never has more of them with a base.
            ScalarsShape::Assignment { assignment, len } => {
                let words = if len == 0 { 0 } else { len.div_ceil(64) + 1 };
                (assignment.n_wide.min(bases), assignment.n_ones.min(bases), words)
            }
        };
        Request {
            n: n as u32,
            ones,
            n_bases: bases as u32,
            words: words as u32,
            levels: levels(&self.spec),
            scalar_bits: scalar_bits(self.spec.curve),
            point_bytes: 2 * affine_bytes(&self.spec),
            multiprocessors: self.multiprocessors,
            entries_limit,
            batched,
        }
    }

    fn layout(&self, chunk: u64, entries_limit: u64, batched: bool) -> Layout {
        let (count, point) = (self.spec.count, 2 * affine_bytes(&self.spec));
        let plan = Plan::new(&self.request(chunk, entries_limit, batched));
        let last = Some(count % chunk).filter(|rest| *rest > 0);
        let last = last.map(|rest| Plan::new(&self.request(rest, entries_limit, batched)));
        let buffer = match self.spec.residency {
            Residency::Device => 0,
            Residency::Pinned => (chunk * affine_bytes(&self.spec)).next_multiple_of(256),
        };
        let out = |plan: &Plan| u64::from(plan.out_points) * point;
        Layout {
            chunk,
            plan,
            last,
            buffer,
            bytes: 2 * buffer + plan.at.bytes.max(last.as_ref().map_or(0, |p| p.at.bytes)),
            result: count / chunk * out(&plan) + last.as_ref().map_or(0, out),
        }
    }

    /// Batched additions of a chunk, the more at a time the better.
    fn batched(&self, chunk: u64) -> impl Iterator<Item = Layout> + '_ {
        BATCHED_ENTRIES.into_iter().filter_map(move |limit| {
            let q = self.request(chunk, limit, true);
            let n_levels = q.levels.map_or(1, |l| u64::from(l.levels));
            let entries = limit.max(u64::from(q.n) * n_levels) + q.ones;
            // The sums are numbered behind the bases, in 31 bits together; a chunk is rounded up for each thread.
            let fits = chunk * n_levels + entries <= MOST_POINTS - (1 << 20);
            (u64::from(q.n) >= batched_from(self.spec.curve, self.spec.group) && fits)
                .then(|| self.layout(chunk, limit, true))
        })
    }

    /// Every way to do it, the fastest first.
    pub(super) fn layouts(&self) -> Vec<Layout> {
        let count = self.spec.count;
        if count == 0 {
            return Vec::new();
        }
        let chunks: Vec<u64> = match self.spec.residency {
            Residency::Device => vec![count],
            Residency::Pinned => {
                let first = FEWEST_CHUNKS.max(count.div_ceil(CHUNK));
                let parts = std::iter::successors(Some(first), |parts| Some(parts + parts.div_ceil(2)));
                let sizes = parts.map(|parts| count.div_ceil(parts)).take_while(|chunk| *chunk > SMALLEST_CHUNK);
                sizes.chain([SMALLEST_CHUNK.min(count)]).collect()
            }
        };
        let mut layouts = Vec::new();
        for &chunk in &chunks {
            layouts.extend(self.batched(chunk));
            layouts.push(self.layout(chunk, MOST_ENTRIES, false));
        }
        // More passes over the smallest chunk, until each has one set of buckets.
        let chunk = chunks[chunks.len() - 1];
        let mut limit = MOST_ENTRIES;
        while limit > u64::from(self.request(chunk, limit, false).n).max(1) {
            limit /= 2;
            layouts.push(self.layout(chunk, limit, false));
        }
        layouts
    }
}

/// What a multiplication takes.
pub(super) fn workspace(sizes: &Sizes, room: u64) -> Workspace {
    let layouts = sizes.layouts();
    let Some(best) = layouts.first() else { return Workspace::default() };
    let least = layouts.iter().map(|l| l.bytes).min().unwrap_or(best.bytes);
    let taken = layouts.iter().find(|l| l.bytes <= room);
    // The fewer bases at a time, the more results: with the least room they are the most.
    let pinned = taken.or(layouts.iter().find(|l| l.bytes == least)).map_or(0, |l| l.result).next_multiple_of(PAGE);
    Workspace { least, taken: taken.map_or(least, |l| l.bytes), best: best.bytes, kept: 0, pinned }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_backend::AssignmentShape;

    fn sizes(count: u64, residency: Residency, multiples: u32) -> Sizes {
        let spec = BasesSpec { curve: CurveId::Bls12_381, group: GroupId::G1, count, residency, multiples };
        Sizes { spec, scalars: ScalarsShape::Dense, multiprocessors: 132 }
    }

    #[test]
    fn less_room_is_never_answered_with_more() {
        let packed = |count: u64| {
            let assignment = AssignmentShape {
                curve: CurveId::Bls12_381,
                n_variables: 2 * count,
                n_ones: count / 2,
                n_wide: count / 60,
            };
            ScalarsShape::Assignment { assignment, len: 2 * count }
        };
        for count in [1, 5000, 100_003, (1 << 22) - 1, 1 << 26] {
            for residency in [Residency::Device, Residency::Pinned] {
                for scalars in [ScalarsShape::Dense, packed(count)] {
                    let sizes = Sizes { scalars, ..sizes(count, residency, 1) };
                    let best = workspace(&sizes, u64::MAX);
                    assert_eq!(best.taken, best.best);
                    let mut room = best.best;
                    while room >= best.least {
                        let w = workspace(&sizes, room);
                        assert!(w.least <= w.taken && w.taken <= room, "{count} {residency:?}: {w:?} of {room}");
                        assert_eq!((w.least, w.best), (best.least, best.best));
                        room -= room / 7 + 1;
                    }
                    assert_eq!(workspace(&sizes, 0).taken, best.least);
                }
            }
        }
        assert_eq!(workspace(&sizes(0, Residency::Device, 1), 5), Workspace::default());
    }

    #[test]
    fn streaming_takes_a_part_of_what_it_saves() {
        let count = 1u64 << 26;
        let half = count * 96 / 2;
        let w = workspace(&sizes(count, Residency::Pinned, 1), half);
        assert!(w.taken > half / 4 && w.taken <= half, "{w:?}");
        assert!(w.least < 128 << 20, "{w:?}");
    }

    #[test]
    fn chunks_cover_the_bases() {
        for count in [3, 1 << 16, (1 << 16) + 1, 3 << 16, (1 << 24) + 1] {
            for layout in sizes(count, Residency::Pinned, 1).layouts() {
                assert!(layout.chunk > 0 && layout.chunk <= count);
                let rest = count % layout.chunk;
                assert_eq!(layout.plan(layout.chunk).params.n_bases, layout.chunk as u32);
                assert!(rest == 0 || layout.plan(rest).params.n_bases == rest as u32);
            }
        }
    }

    #[test]
    fn multiples_are_as_many_as_asked_for_at_most() {
        for multiples in [2, 3, 8, 16, 1000] {
            let spec = sizes(1 << 20, Residency::Device, multiples).spec;
            let levels = levels(&spec).unwrap();
            assert!(levels.levels >= 2 && levels.levels <= multiples, "{levels:?}");
            let windows = 255u32.div_ceil(levels.c);
            assert!(levels.sets * levels.levels >= windows && levels.sets * (levels.levels - 1) < windows);
            assert_eq!(table_points(&spec).unwrap(), u64::from(levels.levels) << 20);
        }
        assert!(levels(&sizes(1 << 20, Residency::Device, 1).spec).is_none());
        assert!(matches!(
            table_points(&sizes(1 << 28, Residency::Device, 16).spec),
            Err(BackendError::Unsupported { .. })
        ));
    }
}
