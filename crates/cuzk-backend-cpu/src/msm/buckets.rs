//! The bucket method.
//!
//! With windows of c bits and signed digits, `Σ sᵢPᵢ = Σ_w 2^(cw) Σ_b b·B_{w,b}`, where the bucket `B_{w,b}` is the sum of ±Pᵢ over the scalars
//! whose digit w is ±b, 1 <= b <= 2^(c-1). A scalar above r/2 is replaced by r - s and its point by the negative: that saves a
//! bit, which at some sizes saves a window.

use cuzk_curve::{AffineRepr, ScalarRepr};
use group::Group;
use rayon::prelude::*;

use super::{
    digits::{SignedScalar, Windows},
    groups::{Workspaces, sum_groups},
    huge::HugeBox,
    point::{Point, import, to_curve},
    sort::Sorting,
};
use crate::field::Lanes;

/// Points that are converted and sorted at a time: what bounds the memory. The buckets live on from one chunk to the next.
const CHUNK_LEN: usize = 1 << 21;

/// Points that one thread converts at a time.
const PIECE_LEN: usize = 1 << 12;

/// The windows that are fastest for `len` points: an addition a window and point, and what three cost a window and bucket, for
/// memory and weighted sum (and one more a chunk).
fn windows_for<S: ScalarRepr>(len: usize) -> Windows {
    let cost = |w: &Windows| w.count * (len + w.buckets() * (3 + len / CHUNK_LEN) + 40 * w.bits);
    (2..=Windows::MAX_BITS).map(Windows::new::<S>).min_by_key(cost).unwrap_or(Windows::new::<S>(2))
}

/// What [`msm`] of at most `len` points takes on so many threads, in bytes: the numbers of the module's documentation,
/// rounded up where they would not grow with `len`.
pub(crate) fn scratch_bytes<S: ScalarRepr>(len: usize, point_bytes: usize, threads: usize) -> u64 {
    if len == 0 {
        return 0;
    }
    let windows = windows_for::<S>(len);
    let chunk_len = len.min(CHUNK_LEN);
    let together = threads.max(4).min(Windows::new::<S>(2).count);
    let sorted = (together * chunk_len).max((1 << 16) + chunk_len);
    let bytes = windows.count * windows.buckets() * point_bytes
        + chunk_len * (point_bytes + size_of::<SignedScalar>())
        + sorted * (size_of::<u64>() + size_of::<u32>())
        + together * windows.buckets() * size_of::<u32>()
        + (threads << 20);
    bytes as u64
}

/// `Σ scalar(i)·base(i)` over i < len.
pub(crate) fn msm<'a, F: Lanes, A: AffineRepr<Scalar: ScalarRepr>>(
    len: usize,
    base: impl Fn(usize) -> &'a A + Sync,
    scalar: impl Fn(usize) -> &'a A::Scalar + Sync,
) -> A::Curve {
    let windows = windows_for::<A::Scalar>(len);
    let chunk_len = len.min(CHUNK_LEN);
    // Windows that are sorted together: enough to keep the threads busy, to fill blocks, and not to read the scalars often.
    let together = rayon::current_num_threads().max(4).max((1 << 16) / len.max(1)).clamp(1, windows.count);
    let workspaces = Workspaces::new();
    let mut buckets = HugeBox::<Point<F>>::zeroed(windows.count * windows.buckets());
    let mut points = HugeBox::<Point<F>>::zeroed(chunk_len);
    let mut scalars = HugeBox::<SignedScalar>::zeroed(chunk_len);
    let mut sorting = Sorting::new(windows, together, chunk_len);
    for start in (0..len).step_by(CHUNK_LEN) {
        let chunk_len = CHUNK_LEN.min(len - start);
        let (points, scalars) = (&mut points[..chunk_len], &mut scalars[..chunk_len]);
        points.par_chunks_mut(PIECE_LEN).zip(scalars.par_chunks_mut(PIECE_LEN)).enumerate().for_each(
            |(piece, (points, scalars))| {
                let first = start + piece * PIECE_LEN;
                import(points, |i| base(first + i));
                for (i, (point, signed)) in points.iter().zip(scalars).enumerate() {
                    // Infinity gets the digits of zero, and so never enters a bucket.
                    *signed =
                        if point.is_infinity() { SignedScalar::ZERO } else { SignedScalar::new(scalar(first + i)) };
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
