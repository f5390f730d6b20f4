//! The quotient polynomial of a satisfied constraint system in six transforms.

use cuzk_curve::ScalarRepr;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::{
    lanes::{LANES, Program, ScalarLanes},
    pass::{MIN_LOG_N, Place, Reversed, Transform},
    permute::{LOG_SIDE, SIDE},
    roots::reverse,
    small,
};

/// Scalars that one task multiplies: 512 KiB of each operand.
const CHUNK: usize = 1 << 14;

/// See [`cuzk_backend::QuotientPlan`]: evaluations `a`, `b` of 2^log_n scalars each become the coefficients in `a`.
///
/// Neither the order nor the factors are put right in between: evaluations stay in natural and coefficients in
/// bit-reversed order, inverse transforms leave their factor n, and the last step makes up for all of it.
///
/// # Safety
/// * The processor must have what `L` is compiled for.
pub(super) unsafe fn run<L: ScalarLanes>(log_n: u32, a: &mut [L::Field], b: &mut [L::Field], scratch: &mut [L::Field]) {
    // Validated by the caller: the field has a root of that order.
    let g = L::Field::root_of_unity(log_n + 1).unwrap_or(L::Field::ONE);
    let forward =
        Transform { log_n, reversed: Reversed::Coefficients, shift: g, inverse_scale: None, canonical: false };
    let inverse_on_coset = Transform { inverse_scale: Some(L::Field::ONE), ..forward };
    let inverse = Transform { shift: L::Field::ONE, ..inverse_on_coset };
    let transform = |what: &Transform<L::Field>, data: &mut [L::Field]| {
        if log_n < MIN_LOG_N {
            small::run(what, data);
        } else {
            // SAFETY: the caller's promise.
            unsafe { what.run::<L>(data) };
        }
    };
    // SAFETY: the caller's promise.
    unsafe {
        product::<L>(scratch, a, b);
        for x in [&mut *a, &mut *b] {
            transform(&inverse, x);
            transform(&forward, x);
        }
        product_in_place::<L>(b, a);
        transform(&inverse, scratch);
        transform(&inverse_on_coset, b);
        // c = scratch · scale / n; u = b · scale / n³; h = (c - u) / 2.
        let n_inverse = L::Field::TWO_INV.pow_vartime([u64::from(log_n)]);
        let c_factor = L::product_scale() * n_inverse * L::Field::TWO_INV;
        let u_factor = c_factor * n_inverse.square();
        difference::<L>(log_n, a, (scratch, c_factor), (b, u_factor));
    }
}

struct Product<F> {
    out: *mut F,
    x: *const F,
    y: *const F,
    len: usize,
}

impl<L: ScalarLanes> Program<L> for Product<L::Field> {
    #[inline(always)]
    unsafe fn run(self) {
        // SAFETY: all three have `len` scalars.
        unsafe {
            let whole = self.len / LANES * LANES;
            for i in (0..whole).step_by(LANES) {
                L::load(self.x.add(i), 1).mul_loaded(L::load(self.y.add(i), 1)).store::<false>(self.out.add(i), 1);
            }
            if whole < self.len {
                let scale = L::product_scale().invert().unwrap_or(L::Field::ONE);
                for i in whole..self.len {
                    self.out.add(i).write(self.x.add(i).read() * self.y.add(i).read() * scale);
                }
            }
        }
    }
}

/// out[i] = x[i] · y[i] / product_scale.
unsafe fn product<L: ScalarLanes>(out: &mut [L::Field], x: &[L::Field], y: &[L::Field]) {
    out.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK))).for_each(|(out, (x, y))| {
        let program = Product { out: out.as_mut_ptr(), x: x.as_ptr(), y: y.as_ptr(), len: out.len() };
        // SAFETY: the processor is the caller's promise; the three chunks have the same length.
        unsafe { L::execute(program) };
    });
}

/// x[i] = x[i] · y[i] / product_scale.
unsafe fn product_in_place<L: ScalarLanes>(x: &mut [L::Field], y: &[L::Field]) {
    x.par_chunks_mut(CHUNK).zip(y.par_chunks(CHUNK)).for_each(|(x, y)| {
        let at = x.as_mut_ptr();
        let program = Product { out: at, x: at, y: y.as_ptr(), len: x.len() };
        // SAFETY: as above; each scalar is read before it is written.
        unsafe { L::execute(program) };
    });
}

/// out[i] = c[rev(i)] · c_factor − u[rev(i)] · u_factor, fully reduced.
unsafe fn difference<L: ScalarLanes>(
    log_n: u32,
    out: &mut [L::Field],
    (c, c_factor): (&[L::Field], L::Field),
    (u, u_factor): (&[L::Field], L::Field),
) {
    if log_n < 2 * LOG_SIDE {
        for (i, out) in out.iter_mut().enumerate() {
            let j = reverse(i, log_n);
            *out = c[j] * c_factor - u[j] * u_factor;
        }
        return;
    }
    let factors = (L::scalar(c_factor), L::scalar(u_factor));
    let squares = 1usize << (log_n - 2 * LOG_SIDE);
    let at = Place(out.as_mut_ptr());
    let at = &at;
    (0..squares).into_par_iter().with_min_len(squares.div_ceil(4 * rayon::current_num_threads())).for_each(|middle| {
        let program = Difference::<L> { log_n, middle, out: at.0, c, u, factors: &factors };
        // SAFETY: the processor is the caller's promise; each square of `out` is written by one of these calls.
        unsafe { L::execute(program) };
    });
}

struct Difference<'a, L: ScalarLanes> {
    log_n: u32,
    middle: usize,
    out: *mut L::Field,
    c: &'a [L::Field],
    u: &'a [L::Field],
    factors: &'a (L::Scalar, L::Scalar),
}

impl<L: ScalarLanes> Program<L> for Difference<'_, L> {
    #[inline(always)]
    unsafe fn run(self) {
        let middle_bits = self.log_n - 2 * LOG_SIDE;
        let mut square = [[L::Field::ZERO; SIDE]; SIDE];
        // SAFETY: the processor is the caller's promise; all indices are below 2^log_n, the length of the three slices.
        unsafe {
            let (c_factor, u_factor) = (L::splat(&self.factors.0), L::splat(&self.factors.1));
            for (high, row) in square.iter_mut().enumerate() {
                let from = (high << (middle_bits + LOG_SIDE)) | (self.middle << LOG_SIDE);
                for low in (0..SIDE).step_by(LANES) {
                    let c = L::load(self.c.as_ptr().add(from + low), 1).mul(&c_factor);
                    let u = L::load(self.u.as_ptr().add(from + low), 1).mul(&u_factor);
                    c.sub(u).store::<true>(row.as_mut_ptr().add(low), 1);
                }
            }
            let mirror = reverse(self.middle, middle_bits);
            for high in 0..SIDE {
                let to = (high << (middle_bits + LOG_SIDE)) | (mirror << LOG_SIDE);
                let column = reverse(high, LOG_SIDE);
                for low in 0..SIDE {
                    self.out.add(to + low).write(square[reverse(low, LOG_SIDE)][column]);
                }
            }
        }
    }
}
