//! The bucket method.
//!
//! With windows of c bits and signed digits, `Σ sᵢPᵢ = Σ_w 2^(cw) Σ_b b·B_{w,b}`, where the bucket `B_{w,b}` is the sum of ±Pᵢ over the scalars
//! whose digit w is ±b, 1 <= b <= 2^(c-1). A scalar above r/2 is replaced by r - s and its point by the negative: that saves a
//! bit, which at some sizes saves a window.

use std::ops::Range;

use cuzk_curve::{AffineRepr, ScalarRepr, repr};
use group::Group;
use rayon::prelude::*;

use super::{
    batch_add::NEGATIVE,
    groups::{Workspaces, sum_groups},
    huge::HugeBox,
    point::{Point, import, to_curve},
};
use crate::field::{Lanes, constants};

/// Points that are converted and sorted at a time: what bounds the memory. The buckets live on from one chunk to the next.
const CHUNK_LEN: usize = 1 << 21;

/// Points that one thread converts at a time.
const PIECE_LEN: usize = 1 << 12;

/// How scalars are cut into digits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    /// Bits of a window, c.
    pub(crate) bits: usize,
    pub(crate) count: usize,
}

impl Windows {
    /// Windows of the given width for scalars of `S`.
    pub(crate) const fn new<S: ScalarRepr>(bits: usize) -> Self {
        // |s| <= (r - 1)/2 has NUM_BITS - 1 bits; signed digits carry into one more.
        Windows { bits, count: (S::NUM_BITS as usize).div_ceil(bits) }
    }

    /// Buckets a window: digits from 1 to 2^(c-1).
    pub(crate) const fn buckets(self) -> usize {
        1 << (self.bits - 1)
    }

    /// The fastest for `len` points: an addition a window and point, and what three cost a window and bucket, for memory and
    /// weighted sum (and one more a chunk).
    fn for_len<S: ScalarRepr>(len: usize) -> Self {
        let cost = |w: &Windows| w.count * (len + w.buckets() * (3 + len / CHUNK_LEN) + 40 * w.bits);
        (2..=17).map(Self::new::<S>).min_by_key(cost).unwrap_or(Self::new::<S>(2))
    }

    /// Digit w of a scalar that [`signed_limbs`] returned.
    #[inline(always)]
    pub(crate) fn digit(self, limbs: &[u64; 4], w: usize) -> i32 {
        // Booth's recoding: a window looks at the highest bit of the window below, which is that window's borrow.
        let window =
            if w == 0 { bits(limbs, 0, self.bits) << 1 } else { bits(limbs, w * self.bits - 1, self.bits + 1) };
        (window >> 1) as i32 + (window & 1) as i32 - ((window >> self.bits) << self.bits) as i32
    }
}

/// `count` bits from bit `from` on; bits past the highest are zero.
#[inline(always)]
fn bits(limbs: &[u64; 4], from: usize, count: usize) -> u32 {
    let (word, shift) = (from / 64, from % 64);
    let mut value = limbs.get(word).map_or(0, |limb| limb >> shift);
    if shift + count > 64 {
        value |= limbs.get(word + 1).map_or(0, |limb| limb << (64 - shift));
    }
    value as u32 & ((1 << count) - 1)
}

/// The absolute value of a scalar's representative nearest to zero, and [`NEGATIVE`] if that is negative.
#[inline(always)]
pub(crate) fn signed_limbs<S: ScalarRepr>(scalar: &S) -> ([u64; 4], u32) {
    let value = from_montgomery::<S>(scalar);
    let mut negated = [0; 4];
    let mut borrow = false;
    for i in 0..4 {
        let (d, b1) = <S as ScalarRepr>::MODULUS[i].overflowing_sub(value[i]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        (negated[i], borrow) = (d, b1 | b2);
    }
    if negated.iter().rev().lt(value.iter().rev()) { (negated, NEGATIVE) } else { (value, 0) }
}

/// The integer that a scalar's Montgomery limbs stand for.
#[inline(always)]
fn from_montgomery<S: ScalarRepr>(scalar: &S) -> [u64; 4] {
    let neg_inverse = const { constants::inverse_mod_2_64(<S as ScalarRepr>::MODULUS[0]).wrapping_neg() };
    let r = const { <S as ScalarRepr>::MODULUS };
    let mut t: [u64; 4] = std::array::from_fn(|i| repr::as_limbs(std::slice::from_ref(scalar))[i]);
    for _ in 0..4 {
        let m = t[0].wrapping_mul(neg_inverse);
        let mut carry = (t[0] as u128 + m as u128 * r[0] as u128) >> 64;
        for i in 1..4 {
            carry += t[i] as u128 + m as u128 * r[i] as u128;
            t[i - 1] = carry as u64;
            carry >>= 64;
        }
        t[3] = carry as u64;
    }
    // An input below 2^256 ends at most at r.
    constants::reduce_once(&t, &r)
}

/// [`signed_limbs`] with the sign in the highest bit, which no absolute value reaches.
#[inline(always)]
fn with_sign(limbs: [u64; 4], sign: u32) -> [u64; 4] {
    [limbs[0], limbs[1], limbs[2], limbs[3] | (sign as u64) << 32]
}

/// `Σ scalar(i)·base(i)` over i < len.
pub(crate) fn msm<'a, F: Lanes, A: AffineRepr<Scalar: ScalarRepr>>(
    len: usize,
    base: impl Fn(usize) -> &'a A + Sync,
    scalar: impl Fn(usize) -> &'a A::Scalar + Sync,
) -> A::Curve {
    let windows = Windows::for_len::<A::Scalar>(len);
    let chunk_len = len.min(CHUNK_LEN);
    // Windows that are sorted together: enough to keep the threads busy and to fill blocks.
    let together = rayon::current_num_threads().max((1 << 16) / len.max(1)).clamp(1, windows.count);
    let workspaces = Workspaces::new();
    let mut buckets = HugeBox::<Point<F>>::zeroed(windows.count * windows.buckets());
    let mut points = HugeBox::<Point<F>>::zeroed(chunk_len);
    let mut scalars = HugeBox::<[u64; 4]>::zeroed(chunk_len);
    let mut sorting = Sorting::new(windows, together, chunk_len);
    for start in (0..len).step_by(CHUNK_LEN) {
        let chunk_len = CHUNK_LEN.min(len - start);
        let (points, scalars) = (&mut points[..chunk_len], &mut scalars[..chunk_len]);
        points.par_chunks_mut(PIECE_LEN).zip(scalars.par_chunks_mut(PIECE_LEN)).enumerate().for_each(
            |(piece, (points, scalars))| {
                let first = start + piece * PIECE_LEN;
                import(points, |i| base(first + i));
                for (i, (point, limbs)) in points.iter().zip(scalars).enumerate() {
                    // Infinity gets the digits of zero, and so never enters a bucket.
                    let (absolute, sign) =
                        if point.is_infinity() { Default::default() } else { signed_limbs(scalar(first + i)) };
                    *limbs = with_sign(absolute, sign);
                }
            },
        );
        for (group, buckets) in buckets.chunks_mut(together * windows.buckets()).enumerate() {
            let first = group * together;
            let (entries, ends) = sorting.sort(first..first + buckets.len() / windows.buckets(), scalars);
            sum_groups::<F, true>(points, entries, ends, buckets, &workspaces);
        }
    }
    drop((points, scalars, sorting));
    let sums = weighted_sums::<F, A>(&buckets, windows.bits - 1, &workspaces);
    sums.into_iter().rev().fold(A::Curve::identity(), |acc, (weighted, plain)| {
        // The bucket of digit b has number b - 1.
        (0..windows.bits).fold(acc, |acc, _| acc.double()) + weighted + plain
    })
}

/// Counting sort of points by bucket, for several windows at once.
struct Sorting {
    windows: Windows,
    /// Runs of points that are counted apart, so that several threads can sort one window.
    runs: usize,
    /// By window, run and bucket: how many points there are; later, where the next one goes.
    counts: Vec<u32>,
    ends: Vec<u32>,
    entries: HugeBox<u32>,
}

impl Sorting {
    fn new(windows: Windows, together: usize, chunk_len: usize) -> Self {
        let runs = rayon::current_num_threads().div_ceil(together).min(chunk_len.div_ceil(PIECE_LEN)).max(1);
        Sorting {
            windows,
            runs,
            counts: vec![0; together * runs * windows.buckets()],
            ends: vec![0; together * windows.buckets()],
            entries: HugeBox::zeroed(together * chunk_len),
        }
    }

    /// The points of each bucket of some windows: signed indices, and where each bucket ends.
    fn sort(&mut self, range: Range<usize>, scalars: &[[u64; 4]]) -> (&[u32], &[u32]) {
        let Self { windows, runs, .. } = *self;
        let buckets = windows.buckets();
        let run_len = scalars.len().div_ceil(runs).max(1);
        let counts = &mut self.counts[..range.len() * runs * buckets];
        let ends = &mut self.ends[..range.len() * buckets];
        // The bucket and the signed index of each point of a run that has a digit in the window.
        let digits = |task: usize| {
            let (window, first) = (range.start + task / runs, task % runs * run_len);
            let run = scalars.get(first..scalars.len().min(first + run_len)).unwrap_or(&[]);
            (first as u32..).zip(run).filter_map(move |(i, limbs)| {
                let absolute = [limbs[0], limbs[1], limbs[2], limbs[3] & !(1 << 63)];
                let digit = windows.digit(&absolute, window);
                let sign = ((limbs[3] >> 32) as u32 ^ digit as u32) & NEGATIVE;
                (digit != 0).then(|| (digit.unsigned_abs() as usize - 1, i | sign))
            })
        };

        counts.par_chunks_mut(buckets).enumerate().for_each(|(task, counts)| {
            counts.fill(0);
            for (bucket, _) in digits(task) {
                counts[bucket] += 1;
            }
        });

        // Counts become places: by window, then bucket, then run.
        let totals: Vec<u32> = counts.par_chunks(runs * buckets).map(|counts| counts.iter().sum()).collect();
        let starts = totals.iter().scan(0, |end, total| {
            *end += total;
            Some(*end - total)
        });
        let starts: Vec<u32> = starts.collect();
        counts.par_chunks_mut(runs * buckets).zip(ends.par_chunks_mut(buckets)).zip(starts).for_each(
            |((counts, ends), mut place)| {
                for (bucket, end) in ends.iter_mut().enumerate() {
                    for run in 0..runs {
                        place += std::mem::replace(&mut counts[run * buckets + bucket], place);
                    }
                    *end = place;
                }
            },
        );

        let sorted: u32 = totals.iter().sum();
        let entries = &mut self.entries[..sorted as usize];
        let base = Shared(entries.as_mut_ptr());
        counts.par_chunks_mut(buckets).enumerate().for_each(|(task, places)| {
            let base = &base;
            for (bucket, entry) in digits(task) {
                // SAFETY: the places of a window, run and bucket are as many as this loop visits, since the same loop
                // counted them; the prefix sums made all of them disjoint and below the length.
                unsafe { base.0.add(places[bucket] as usize).write(entry) };
                places[bucket] += 1;
            }
        });
        (entries, ends)
    }
}

/// A pointer that several threads write through, each to its own places.
struct Shared(*mut u32);

// SAFETY: whoever writes through it shows that the places are disjoint.
unsafe impl Sync for Shared {}

/// For each run of 2^log_len points, `(Σ j·P_j, Σ P_j)` with j from 0.
///
/// The points form a matrix with index j = h·2^k + l. Then `Σ j·P_j = 2^k·Σ h·R_h + Σ l·C_l`, with the sums R of its rows and C of
/// its columns: two plain additions a point, in any order, and twice as many problems of the square root of the size.
fn weighted_sums<F: Lanes, A: AffineRepr>(
    points: &[Point<F>],
    log_len: usize,
    workspaces: &Workspaces<F>,
) -> Vec<(A::Curve, A::Curve)> {
    let len = 1 << log_len;
    if log_len <= 2 {
        return points.par_chunks(len).map(running_sums::<F, A>).collect();
    }
    let log_columns = log_len / 2;
    let (rows, columns) = (len >> log_columns, 1usize << log_columns);
    // Entries and ends of a problem: its rows, then its columns, padded to as many as there are rows.
    let mut entries = vec![0u32; 2 * points.len()];
    let mut ends = vec![0u32; points.len() / len * 2 * rows];
    entries.par_chunks_mut(2 * len).zip(ends.par_chunks_mut(2 * rows)).enumerate().for_each(
        |(problem, (entries, ends))| {
            let (first, start) = ((problem * len) as u32, (problem * 2 * len) as u32);
            for j in 0..len {
                entries[j] = first + j as u32;
                entries[len + j % columns * rows + j / columns] = first + j as u32;
            }
            for i in 0..rows {
                ends[i] = start + ((i + 1) * columns) as u32;
                ends[rows + i] = start + (len + (i + 1).min(columns) * rows) as u32;
            }
        },
    );
    let mut sums = vec![Point::INFINITY; ends.len()];
    sum_groups::<F, false>(points, &entries, &ends, &mut sums, workspaces);
    weighted_sums::<F, A>(&sums, log_len - log_columns, workspaces)
        .chunks(2)
        .map(|halves| {
            let (rows, columns) = (halves[0], halves[1]);
            ((0..log_columns).fold(rows.0, |acc, _| acc.double()) + columns.0, rows.1)
        })
        .collect()
}

/// The same for a few points.
fn running_sums<F: Lanes, A: AffineRepr>(points: &[Point<F>]) -> (A::Curve, A::Curve) {
    let (mut weighted, mut plain) = (A::Curve::identity(), A::Curve::identity());
    for (j, point) in points.iter().enumerate().rev() {
        plain += to_curve::<F, A>(point);
        if j > 0 {
            weighted += plain;
        }
    }
    (weighted, plain)
}
