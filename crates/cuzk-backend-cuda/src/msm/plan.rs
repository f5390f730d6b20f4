//! The plan of a multi-scalar multiplication: window, passes and the layout of the scratch memory, from sizes alone, so that
//! the bytes are known before anything is allocated. kernels/cuda/msm/README.md describes what the numbers are for.

/// `MsmParams` of kernels/cuda/msm/params.h, which documents the fields.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Params {
    pub(super) n: u32,
    pub(super) n_bases: u32,
    pub(super) c: u32,
    pub(super) windows: u32,
    pub(super) sets: u32,
    pub(super) set_first: u32,
    pub(super) set_count: u32,
    pub(super) keys: u32,
    pub(super) coarse_shift: u32,
    pub(super) coarse_bins: u32,
    pub(super) levels: u32,
    pub(super) tile: u32,
    pub(super) with_ones: u32,
    pub(super) reduce_log: u32,
    pub(super) offset: [u32; 9],
}

const _: () = assert!(size_of::<Params>() == 23 * 4);

const COARSE_BINS: u32 = 12_288;
pub(super) const SORT_TILE: u64 = 8192;
pub(super) const SCAN_TILE: u32 = 4096;
pub(super) const ACCUMULATE_BLOCK: u32 = 128;
pub(super) const PAIR_BLOCK: u32 = 32;
pub(super) const REDUCE_BLOCK: u32 = 32;
/// Blocks of the accumulation for each multiprocessor: those it holds at a time.
const ACCUMULATE_BLOCKS: u32 = 2;
/// Most rounds of batched additions: later ones have too few pairs to pay for their inversions.
const MOST_ROUNDS: u32 = 6;
pub(super) const MERGE_BLOCK: u32 = 64;
pub(super) const PACKED_BLOCK: u32 = 256;

/// How multiples computed in advance lie: level l of the table is 2^(c·sets·l) times the points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Levels {
    pub(super) c: u32,
    pub(super) sets: u32,
    pub(super) levels: u32,
}

impl Levels {
    /// The window with the least work for `n` dense scalars among those that do with at most `most` levels, two or
    /// more.
    pub(super) fn new(n: u64, most: u32, scalar_bits: u32) -> Self {
        let of = |c: u32| {
            let windows = scalar_bits.div_ceil(c);
            let sets = windows.div_ceil(most);
            Self { c, sets, levels: windows.div_ceil(sets) }
        };
        let cost = |l: &Self| {
            let buckets = f64::from(l.sets) * 4.0 * f64::from(1u32 << (l.c - 1));
            f64::from(scalar_bits.div_ceil(l.c)) * n as f64 + buckets
        };
        (9..=24).map(of).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_else(|| of(8))
    }
}

/// The sizes that a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Scalars in the list, or a bound if the device counts them.
    pub(super) n: u32,
    /// Bound on the scalars that are one, beside the list; 0 for dense scalars.
    pub(super) ones: u64,
    pub(super) n_bases: u32,
    /// Packed: words of the bitmaps that the range touches; else 0.
    pub(super) words: u32,
    /// Multiples of the bases that are there; `None`: the bases alone.
    pub(super) levels: Option<Levels>,
    pub(super) scalar_bits: u32,
    /// Bytes of a point in XYZZ form.
    pub(super) point_bytes: u64,
    pub(super) multiprocessors: u32,
    /// Entries of one pass.
    pub(super) entries_limit: u64,
    /// Whether to add in batches, affine, as long as buckets are full: faster where the list is long, with a multiple of the scratch memory.
    pub(super) batched: bool,
}

/// Byte offsets into the scratch memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scratch {
    pub(super) counters: u64,
    pub(super) coarse: u64,
    pub(super) bucket_count: u64,
    pub(super) offset: u64,
    pub(super) sums: u64,
    pub(super) digits: u64,
    pub(super) entries: u64,
    pub(super) sorted: u64,
    pub(super) buckets: u64,
    pub(super) heads: u64,
    pub(super) tails: u64,
    pub(super) flags: u64,
    pub(super) tail_keys: u64,
    pub(super) runs: u64,
    pub(super) run_sums: u64,
    pub(super) out: u64,
    pub(super) tiles: u64,
    pub(super) scalar_index: u64,
    pub(super) base_index: u64,
    pub(super) pool: u64,
    /// Of even and of odd rounds.
    pub(super) pairs: [u64; 2],
    pub(super) prefixes: [u64; 2],
    pub(super) products: u64,
    pub(super) chunks: u64,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Of the first pass.
    pub(super) params: Params,
    pub(super) sets_a_pass: u32,
    pub(super) passes: u32,
    pub(super) accumulate_threads: u32,
    /// Of batched additions before the accumulation.
    pub(super) rounds: u32,
    /// Chunks before each launch of the merge; 0: no launch.
    pub(super) merged: [u32; 3],
    pub(super) splits: u32,
    pub(super) out_points: u32,
    pub(super) at: Scratch,
}

/// The window with the least work: the list's additions, and two full ones a bucket with what is done once for each, in
/// the list's, of which a bucket costs 4 if they are mixed and 8 if they are batched: with that it is the fastest one of
/// those measured at 2^24 (19), 2^26 (20) and 2^27 (20) points on an H200.
fn window(n: u32, scalar_bits: u32, batched: bool) -> u32 {
    let bucket = if batched { 8.0 } else { 4.0 };
    let cost = |c: u32| f64::from(scalar_bits.div_ceil(c)) * (f64::from(n) + bucket * f64::from(1u32 << (c - 1)));
    (8..=24).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(8)
}

impl Plan {
    pub(super) fn new(q: &Request) -> Self {
        let mut p = Params { n: q.n, n_bases: q.n_bases, ..Params::default() };
        p.c = q.levels.map_or_else(|| window(q.n.max(1), q.scalar_bits, q.batched), |l| l.c);
        p.windows = q.scalar_bits.div_ceil(p.c);
        // Without multiples there is one level, and a set of buckets for each window.
        (p.sets, p.levels) = q.levels.map_or((p.windows, 1), |l| (l.sets, l.levels));
        for w in 0..p.windows {
            let bit = p.c * w + p.c - 1;
            p.offset[bit as usize / 32] |= 1 << (bit % 32);
        }
        let a_set = (u64::from(q.n) * u64::from(p.levels)).max(1);
        let sets_a_pass = u64::from(p.sets).min((q.entries_limit / a_set).max(1)) as u32;
        let sets_a_pass = p.sets.div_ceil(p.sets.div_ceil(sets_a_pass));
        let passes = p.sets.div_ceil(sets_a_pass);
        p.set_count = sets_a_pass;
        p.keys = p.set_count << (p.c - 1);
        p.coarse_shift = if p.c == 24 { 12 } else { p.c.saturating_sub(10).min(11) };
        while ((p.keys - 1) >> p.coarse_shift) + 1 > COARSE_BINS {
            p.coarse_shift += 1;
        }
        p.coarse_bins = ((p.keys - 1) >> p.coarse_shift) + 1;
        p.tile = (q.n / (2 * q.multiprocessors)).clamp(512, 8192);
        // As many threads as a multiprocessor holds; twice as many, to even out the end, where that leaves each 64 buckets.
        let threads_fit = |log: u32| {
            let most = if p.c > log + 6 { 512 } else { 256 };
            log < p.c && p.set_count << log <= most * q.multiprocessors
        };
        p.reduce_log = (1..).take_while(|log| threads_fit(*log)).last().unwrap_or(0);
        p.with_ones = u32::from(q.words != 0);

        // Enough rounds to leave about one entry a bucket.
        let full = (a_set * u64::from(sets_a_pass) + q.ones) / u64::from(p.keys);
        let rounds = if q.batched { full.max(1).ilog2().min(MOST_ROUNDS) } else { 0 };
        let accumulate_threads = q.multiprocessors * ACCUMULATE_BLOCKS * ACCUMULATE_BLOCK;
        let (mut chunks, mut merged) = (accumulate_threads, [0; 3]);
        for slot in &mut merged {
            *slot = chunks;
            let blocks = chunks.div_ceil(MERGE_BLOCK);
            chunks = if blocks <= 1 { 0 } else { blocks };
        }
        let n_merged = u64::from(merged.iter().sum::<u32>()) + 1;
        let splits = (2 * q.multiprocessors / (p.set_count * (p.reduce_log + 2))).clamp(1, 16);
        let out_points = p.sets * (p.reduce_log + 2) * splits + p.with_ones;

        let mut at = Scratch::default();
        let mut end = 0;
        let mut take = |bytes: u64| {
            let start = end;
            end += bytes.next_multiple_of(256);
            start
        };
        let entries = a_set * u64::from(sets_a_pass);
        let (keys, points) = (u64::from(p.keys), q.point_bytes);
        at.counters = take(8 * 4);
        at.coarse = take(u64::from(COARSE_BINS) * 4);
        at.bucket_count = take(keys * 4);
        at.offset = take(keys * 4);
        at.sums = take(u64::from(p.keys.div_ceil(SCAN_TILE)) * 4);
        // Of a thread's chunk, the sums of all rounds are fewer than the entries; the pairs of a round at most half as
        // many, from the second round on at most a third: three entries of a bucket make one pair of the second round.
        let threads = u64::from(accumulate_threads);
        let chunk = (entries + q.ones).div_ceil(threads).max(2);
        let pairs = if rounds > 0 { [chunk / 2 * threads, chunk / 3 * threads] } else { [0; 2] };
        // The entries are read before the first pairs are written.
        at.entries = take((entries * 8).max((pairs[0] + pairs[1]) * 8));
        at.pairs = [at.entries, at.entries + pairs[0] * 8];
        at.sorted = take((entries + q.ones) * 8);
        // The digits are read before the sorted entries are written, behind those of the ones.
        at.digits = at.sorted + q.ones * 8;
        at.buckets = take((keys + 1) * points);
        at.heads = take(n_merged * points);
        at.tails = take(n_merged * points);
        at.flags = take(n_merged * 4);
        at.tail_keys = take(n_merged * 4);
        let runs = (u64::from(p.set_count) << p.reduce_log) * points;
        at.runs = take(runs);
        at.run_sums = take(runs);
        at.out = take(u64::from(out_points) * points);
        at.tiles = take(u64::from(q.words.div_ceil(PACKED_BLOCK)) * 12);
        let indices = if q.words != 0 { u64::from(q.n) * 4 } else { 0 };
        at.scalar_index = take(indices);
        at.base_index = take(indices);
        if rounds > 0 {
            at.pool = take(chunk * threads * points / 2);
            at.prefixes = pairs.map(|n| take(n * points / 4));
            at.products = take(threads * points / 4);
            at.chunks = take(threads * 16);
        }
        at.bytes = end;
        Self { params: p, sets_a_pass, passes, accumulate_threads, rounds, merged, splits, out_points, at }
    }

    /// The parameters of pass k.
    pub(super) fn pass(&self, k: u32) -> Params {
        let mut p = self.params;
        p.set_first = k * self.sets_a_pass;
        p.set_count = self.sets_a_pass.min(p.sets - p.set_first);
        p.keys = p.set_count << (p.c - 1);
        p.coarse_bins = ((p.keys - 1) >> p.coarse_shift) + 1;
        p.with_ones = u32::from(self.params.with_ones != 0 && k == 0);
        p
    }

    /// The weights of the points that come out, as exponents of two, in their order.
    pub(super) fn weights(&self) -> impl Iterator<Item = u32> + '_ {
        let (c, m) = (self.params.c, self.params.reduce_log);
        let sets = (0..self.params.sets).flat_map(move |set| {
            (0..m + 2).flat_map(move |j| {
                let weight = if j < m { c * set + c - 1 - m + j } else { c * set };
                std::iter::repeat_n(weight, self.splits as usize)
            })
        });
        sets.chain((self.params.with_ones != 0).then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(n: u32) -> Request {
        Request {
            n,
            ones: 0,
            n_bases: n,
            words: 0,
            levels: None,
            scalar_bits: 255,
            point_bytes: 192,
            multiprocessors: 132,
            entries_limit: 1 << 30,
            batched: false,
        }
    }

    #[test]
    fn windows_cover_the_scalars_and_passes_the_sets() {
        for log_n in 0..=28 {
            for entries_limit in [1, 1 << 20, 1 << 30] {
                let plan = Plan::new(&Request { entries_limit, ..request(1 << log_n) });
                let p = plan.params;
                assert!(p.c * p.windows >= 255 && p.coarse_bins <= COARSE_BINS);
                let sets: u32 = (0..plan.passes).map(|k| plan.pass(k).set_count).sum();
                assert_eq!(sets, p.sets, "2^{log_n}, {entries_limit}");
                assert_eq!(plan.weights().count(), plan.out_points as usize);
                assert!(plan.merged[2] <= MERGE_BLOCK, "the last merge leaves one block");
            }
        }
    }

    #[test]
    fn a_smaller_limit_needs_less_memory() {
        let bytes = |entries_limit| Plan::new(&Request { entries_limit, ..request(1 << 22) }).at.bytes;
        assert!(bytes(1 << 22) < bytes(1 << 24) && bytes(1 << 24) < bytes(1 << 30));
    }

    #[test]
    fn batched_additions_end_at_about_one_entry_a_bucket() {
        for log_n in 16..=26 {
            let plan = Plan::new(&Request { batched: true, ..request(1 << log_n) });
            let p = plan.params;
            let full = (u64::from(p.n) * u64::from(p.set_count)) / u64::from(p.keys);
            assert!(
                plan.rounds == MOST_ROUNDS || full >> plan.rounds < 2,
                "2^{log_n}: {full} a bucket, {} rounds",
                plan.rounds
            );
            assert!(full >> plan.rounds >= 1 && plan.merged[2] <= MERGE_BLOCK);
            let plain = Plan::new(&request(1 << log_n));
            assert!(plain.rounds == 0 && plain.at.bytes < plan.at.bytes);
        }
    }
}
