//! The bit-reversal permutation, square by square so that whole cache lines are moved.
//!
//! Reference: L. Carter, K. Gatlin, "Towards an optimal bit-reversal permutation program", FOCS 1998.

use rayon::prelude::*;

use super::{pass::Place, roots::reverse};

/// An index is (high, middle, low) with this many bits in high and low: rows of 512 bytes, and two squares of 16 KiB.
pub(super) const LOG_SIDE: u32 = 4;
pub(super) const SIDE: usize = 1 << LOG_SIDE;

/// Puts the element with index i at the place whose `log_n` bits are those of i in reverse.
pub(super) fn reverse_in_place<F: Copy + Send + Sync>(data: &mut [F], log_n: u32) {
    debug_assert_eq!(data.len(), 1 << log_n);
    if log_n < 2 * LOG_SIDE {
        for i in 0..data.len() {
            let j = reverse(i, log_n);
            if i < j {
                data.swap(i, j);
            }
        }
        return;
    }
    let middle_bits = log_n - 2 * LOG_SIDE;
    let squares = 1usize << middle_bits;
    let at = Place(data.as_mut_ptr());
    let at = &at;
    (0..squares).into_par_iter().with_min_len(squares.div_ceil(4 * rayon::current_num_threads())).for_each(|middle| {
        let mirror = reverse(middle, middle_bits);
        if middle > mirror {
            return;
        }
        let place = |high: usize, middle: usize, low: usize| {
            at.0.wrapping_add((high << (middle_bits + LOG_SIDE)) | (middle << LOG_SIDE) | low)
        };
        // SAFETY: all indices are below 2^log_n; the squares `middle` and `mirror` belong to this call alone, because
        // it is the only one with the smaller of the two.
        unsafe {
            let read = |middle: usize| -> [[F; SIDE]; SIDE] {
                std::array::from_fn(|high| place(high, middle, 0).cast::<[F; SIDE]>().read())
            };
            let write = |middle: usize, square: &[[F; SIDE]; SIDE]| {
                for high in 0..SIDE {
                    let from = reverse(high, LOG_SIDE);
                    let row: [F; SIDE] = std::array::from_fn(|low| square[reverse(low, LOG_SIDE)][from]);
                    place(high, middle, 0).cast::<[F; SIDE]>().write(row);
                }
            };
            let here = read(middle);
            if middle != mirror {
                let there = read(mirror);
                write(middle, &there);
            }
            write(mirror, &here);
        }
    });
}
