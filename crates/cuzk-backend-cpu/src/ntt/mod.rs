//! Number-theoretic transforms of 2^0 to 2^s scalars, s the field's two-adicity, and the quotient polynomial.
//!
//! Conventions (domain, coset, order, normalization) are those of [`NttPlan`] and [`QuotientPlan`]. Work is spread over the rayon
//! pool that the caller runs in.
//!
//! # How
//! Layers are grouped into passes of up to eleven (`pass`), each of which works on tiles that stay in the second-level cache
//! (`tile`), eight transforms side by side (`lanes`): by AVX-512 IFMA where the processor has it (`ifma`), else lane by
//! lane in 64-bit limbs (`portable`). Multiplying happens before adding on the way to evaluations and after it on
//! the way back, so coset shifts are part of the multipliers and cost nothing; so is the division by n but for a quarter
//! of a product an element. A transform from natural to bit-reversed order (or back) permutes nothing.
//!
//! Scratch: a tile a thread, at most 640 KiB.

#[cfg(target_arch = "x86_64")]
mod ifma;
mod lanes;
mod pass;
mod permute;
mod portable;
mod quotient;
mod roots;
mod small;
#[cfg(test)]
mod tests;
mod tile;

use cuzk_backend::{Coset, Direction, NttPlan, Order, QuotientPlan};
use cuzk_curve::{ScalarRepr, repr};
use pass::{MIN_LOG_N, Reversed, Transform};
use permute::reverse_in_place;

use crate::code_path::{CodePath, Kind};

/// Transforms the first 2^log_n scalars of `data` in place.
///
/// # Panics
/// If `data` is shorter, the field has no domain of that size, or the coset's shift is zero.
pub fn ntt<F: ScalarRepr>(path: CodePath, plan: &NttPlan, data: &mut [F]) {
    let log_n = plan.log_n;
    assert!(log_n <= F::S, "log_n is {log_n}, but the field's two-adicity {}", F::S);
    let data = &mut data[..1 << log_n];
    let mut shift = [F::ONE];
    if let Coset::Shift(limbs) = plan.coset {
        repr::as_limbs_mut(&mut shift).copy_from_slice(&limbs);
        assert!(shift[0] != F::ZERO, "the coset's shift is zero");
    }
    let inverse_scale = match plan.direction {
        Direction::Forward => None,
        Direction::Inverse => Some(F::TWO_INV.pow_vartime([u64::from(log_n)])),
    };
    // What comes in bit-reversed order, or leaves so; a natural order is made from the latter.
    let reversed = match (plan.direction, plan.order) {
        (Direction::Forward, Order::BitReversedToNatural) => Reversed::Coefficients,
        (Direction::Forward, _) => Reversed::Evaluations,
        (Direction::Inverse, Order::BitReversedToNatural) => Reversed::Evaluations,
        (Direction::Inverse, _) => Reversed::Coefficients,
    };
    let transform = Transform { log_n, reversed, shift: shift[0], inverse_scale, canonical: true };
    if log_n < MIN_LOG_N {
        small::run(&transform, data);
    } else {
        match path.kind() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this kind exists only where the processor was found to have it.
            Kind::Avx512Ifma => unsafe { transform.run::<ifma::Ifma<F>>(data) },
            // SAFETY: it needs nothing of the processor.
            Kind::Scalar => unsafe { transform.run::<portable::Portable<F>>(data) },
        }
    }
    if plan.order == Order::Natural {
        reverse_in_place(data, log_n);
    }
}

/// Turns evaluations `a`, `b` into the coefficients of the quotient polynomial in `a`; `b` and `scratch` are overwritten.
///
/// # Panics
/// If one of the three is shorter than 2^log_n scalars, or the field has no domain of twice that size.
pub fn quotient<F: ScalarRepr>(path: CodePath, plan: &QuotientPlan, a: &mut [F], b: &mut [F], scratch: &mut [F]) {
    let log_n = plan.log_n;
    assert!(log_n < F::S, "log_n is {log_n}, but the field's two-adicity {}", F::S);
    let n = 1 << log_n;
    let (a, b, scratch) = (&mut a[..n], &mut b[..n], &mut scratch[..n]);
    match path.kind() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as in `ntt`.
        Kind::Avx512Ifma => unsafe { quotient::run::<ifma::Ifma<F>>(log_n, a, b, scratch) },
        // SAFETY: as in `ntt`.
        Kind::Scalar => unsafe { quotient::run::<portable::Portable<F>>(log_n, a, b, scratch) },
    }
}
