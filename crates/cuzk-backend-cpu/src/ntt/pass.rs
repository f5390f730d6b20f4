//! Large transforms as a few passes over memory, each of up to [`MAX_LAYERS`] layers in the cache.
//!
//! A pass works on index bits `low..low + layers`: it takes rows that lie 2^low scalars apart, and eight columns at a time, which
//! are neighbours (or, if `low` is 0, eight blocks, which are not), transforms them in the cache and writes them back. What
//! earlier layers leave to do differs between blocks or columns by a coset only, which costs one product an element
//! and pass.
//!
//! Reference: D. Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990).

use cuzk_curve::ScalarRepr;
use rayon::prelude::*;

use super::{
    lanes::{LANES, Program, ScalarLanes},
    roots::{Powers, Roots, reverse},
    tile::{self, MAX_LAYERS, OnCosets, Shared},
};

/// The smallest transform that is done in passes: two of them, each with eight columns or blocks.
pub(super) const MIN_LOG_N: u32 = 6;

/// Which of the two lists stands in bit-reversed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reversed {
    /// Coefficients are natural: far layers come first on the way to evaluations, and blocks differ.
    Evaluations,
    /// Evaluations are natural: near layers come first on the way to evaluations, and columns differ.
    Coefficients,
}

/// A transform of 2^log_n scalars in place, without any permutation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transform<F> {
    pub(super) log_n: u32,
    pub(super) reversed: Reversed,
    /// Evaluations are on the coset of this one.
    pub(super) shift: F,
    /// Forward, or inverse with what the result is multiplied by beside n.
    pub(super) inverse_scale: Option<F>,
    /// Whether what is written is fully reduced or only below 2r.
    pub(super) canonical: bool,
}

/// One pass.
#[derive(Clone, Copy)]
struct Pass {
    /// Layers that lie before this one on the way to evaluations.
    before: u32,
    layers: u32,
    /// The lowest index bit.
    low: u32,
}

/// The passes of a transform in the order of the way to evaluations: as few as there can be, of about the same size.
fn passes(log_n: u32, reversed: Reversed) -> impl DoubleEndedIterator<Item = Pass> {
    let count = log_n.div_ceil(MAX_LAYERS).max(2);
    (0..count).map(move |i| {
        let (before, end) = (log_n * i / count, log_n * (i + 1) / count);
        let low = match reversed {
            Reversed::Evaluations => log_n - end,
            Reversed::Coefficients => before,
        };
        Pass { before, layers: end - before, low }
    })
}

impl<F: ScalarRepr> Transform<F> {
    /// Transforms `data`, which has 2^log_n scalars, at least 2^[`MIN_LOG_N`].
    ///
    /// # Safety
    /// * The processor must have what `L` is compiled for.
    pub(super) unsafe fn run<L: ScalarLanes<Field = F>>(&self, data: &mut [F]) {
        debug_assert_eq!(data.len(), 1 << self.log_n);
        let forward = self.inverse_scale.is_none();
        let roots = Roots::new(self.log_n, self.shift, !forward);
        let mut passes: Vec<Pass> = passes(self.log_n, self.reversed).collect();
        if !forward {
            passes.reverse();
        }
        let last = passes.len() - 1;
        for (i, pass) in passes.into_iter().enumerate() {
            let canonical = self.canonical && i == last;
            // SAFETY: the caller's promise.
            unsafe { self.pass::<L>(pass, &roots, canonical, data) };
        }
    }

    unsafe fn pass<L: ScalarLanes<Field = F>>(&self, pass: Pass, roots: &Roots<F>, canonical: bool, data: &mut [F]) {
        let Pass { before, layers, .. } = pass;
        let scale = self.inverse_scale.filter(|scale| before == 0 && *scale != F::ONE);
        let twiddles = if before == 0 {
            Table::Shared(roots.shared(layers, scale).into_iter().map(L::scalar).collect())
        } else {
            Table::OnCosets(
                roots.tree(layers).into_iter().map(L::scalar).collect(),
                roots.powers(before + layers, before),
            )
        };
        let scale = scale.map(L::scalar);
        let tiles = 1usize << (self.log_n - layers - LANES.ilog2());
        let tiles_at_once = tiles.div_ceil(4 * rayon::current_num_threads());
        let at = Place(data.as_mut_ptr());
        let at = &at;
        (0..tiles).into_par_iter().with_min_len(tiles_at_once).for_each_init(
            || Vec::<L>::with_capacity(1 << layers),
            |rows, tile| {
                let program = Tile::<L> {
                    rows,
                    data: at.0,
                    tile,
                    pass,
                    reversed: self.reversed,
                    inverse: self.inverse_scale.is_some(),
                    twiddles: &twiddles,
                    scale: scale.as_ref(),
                    canonical,
                };
                // SAFETY: the processor is the caller's promise; the tiles of a pass are disjoint and within `data`,
                // which this function has borrowed for as long as they run.
                unsafe { L::execute(program) };
            },
        );
    }
}

/// Where disjoint parts are written by several threads.
pub(super) struct Place<F>(pub(super) *mut F);

// SAFETY: it is only an address; each use of it says why the parts are disjoint.
unsafe impl<F: Send> Sync for Place<F> {}

enum Table<L: ScalarLanes> {
    Shared(Vec<L::Scalar>),
    OnCosets(Vec<L::Scalar>, Powers<L::Field>),
}

struct Tile<'a, L: ScalarLanes> {
    rows: &'a mut Vec<L>,
    data: *mut L::Field,
    tile: usize,
    pass: Pass,
    reversed: Reversed,
    inverse: bool,
    twiddles: &'a Table<L>,
    scale: Option<&'a L::Scalar>,
    canonical: bool,
}

impl<L: ScalarLanes> Program<L> for Tile<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let Pass { before, layers, low } = self.pass;
        let n_rows = 1usize << layers;
        // Column, and block, of lane 0; lanes are columns, or blocks if there is one column only.
        let (column, block, lane_stride) = if low == 0 {
            (0, self.tile * LANES, n_rows)
        } else {
            let columns = 1usize << low;
            let first = self.tile * LANES;
            (first & (columns - 1), first >> low, 1)
        };
        // SAFETY: block · rows · columns + column is below n for every tile by the number of tiles.
        let start = unsafe { self.data.add((block << (low + layers)) + column) };
        // Rows are visited as they lie in memory and put where the tile wants them.
        let place = |row: usize| match self.reversed {
            Reversed::Evaluations => row,
            Reversed::Coefficients => reverse(row, layers),
        };
        let rows = &mut *self.rows;
        rows.clear();
        for row in 0..n_rows {
            // SAFETY: the rows and lanes of a tile lie within the data; `rows` has the capacity, and `place` is a
            // permutation of 0..n_rows.
            unsafe { rows.as_mut_ptr().add(place(row)).write(L::load(start.add(row << low), lane_stride)) };
        }
        // SAFETY: all of them have just been written.
        unsafe { rows.set_len(n_rows) };
        match self.twiddles {
            // SAFETY: the processor is the caller's promise.
            Table::Shared(table) => unsafe {
                let twiddles = Shared::<L>(table);
                if self.inverse {
                    tile::inverse(rows, layers, &twiddles, self.scale);
                } else {
                    tile::forward(rows, layers, &twiddles);
                }
            },
            Table::OnCosets(tree, powers) => {
                let mut shift = [<L::Field as ff::Field>::ONE; LANES];
                for (lane, shift) in shift.iter_mut().enumerate() {
                    *shift = powers.get(match self.reversed {
                        Reversed::Evaluations if low == 0 => reverse(block + lane, before),
                        Reversed::Evaluations => reverse(block, before),
                        Reversed::Coefficients => column + lane,
                    });
                }
                // SAFETY: the processor is the caller's promise.
                unsafe {
                    let mut shifts = [L::gather(&shift); MAX_LAYERS as usize];
                    for s in (0..layers as usize - 1).rev() {
                        shifts[s] = L::compose(&shifts[s + 1], &shifts[s + 1]);
                    }
                    let twiddles = OnCosets::<L> { roots: tree, shifts: &shifts };
                    if self.inverse {
                        tile::inverse(rows, layers, &twiddles, None);
                    } else {
                        tile::forward(rows, layers, &twiddles);
                    }
                }
            }
        }
        for row in 0..n_rows {
            let (value, at) = (rows[place(row)], start.wrapping_add(row << low));
            // SAFETY: as for reading.
            unsafe {
                if self.canonical {
                    value.store::<true>(at, lane_stride);
                } else {
                    value.store::<false>(at, lane_stride);
                }
            }
        }
    }
}
