//! Transforms that are too short for passes: one layer at a time, in the field's own arithmetic.

use cuzk_curve::ScalarRepr;

use super::{
    pass::{Reversed, Transform},
    permute::reverse_in_place,
    roots::Roots,
};

/// Transforms `data`, which has 2^log_n scalars.
pub(super) fn run<F: ScalarRepr>(transform: &Transform<F>, data: &mut [F]) {
    let Transform { log_n, reversed, shift, inverse_scale, .. } = *transform;
    let roots = Roots::new(log_n, shift, inverse_scale.is_some());
    let table = roots.shared(log_n, None);
    // The layers go from natural coefficients to bit-reversed evaluations.
    if reversed == Reversed::Coefficients {
        reverse_in_place(data, log_n);
    }
    let mut layer = |s: u32| {
        let half = 1usize << (log_n - 1 - s);
        for (t, block) in data.chunks_exact_mut(2 * half).enumerate() {
            let w = table[(1 << s) + t];
            let (a, b) = block.split_at_mut(half);
            for (a, b) in a.iter_mut().zip(b) {
                (*a, *b) = match inverse_scale {
                    None => (*a + *b * w, *a - *b * w),
                    Some(_) => (*a + *b, (*a - *b) * w),
                };
            }
        }
    };
    match inverse_scale {
        None => (0..log_n).for_each(&mut layer),
        Some(_) => (0..log_n).rev().for_each(&mut layer),
    }
    if let Some(scale) = inverse_scale {
        data.iter_mut().for_each(|x| *x *= scale);
    }
    if reversed == Reversed::Coefficients {
        reverse_in_place(data, log_n);
    }
}
