//! Transforms and the quotient against their definitions.

use cuzk_curve::{ScalarRepr, repr};

use super::{Tester, scalars};
use crate::{Coset, Direction, NttPlan, Order, QuotientPlan, Result};

/// All directions and orders, without and with a coset: 8 elements everywhere, 2^13 at some places.
pub(super) fn transforms<F: ScalarRepr>(tester: &Tester<'_>) -> Result<()> {
    for (log_n, step) in [(3, 1), (13, 771)] {
        for shift in [F::ONE, F::MULTIPLICATIVE_GENERATOR] {
            transform(tester, log_n, step, shift)?;
        }
    }
    Ok(())
}

fn transform<F: ScalarRepr>(tester: &Tester<'_>, log_n: u32, step: usize, shift: F) -> Result<()> {
    let n = 1usize << log_n;
    let coefficients = scalars::<F>(n, 3);
    let coset = if shift == F::ONE { Coset::One } else { Coset::Shift(limbs(shift)) };
    let run = |direction, order, input: &[F]| {
        let plan = NttPlan { curve: tester.curve, log_n, direction, coset, order };
        let buffer = tester.upload(input)?;
        tester.stream.ntt(&plan, &buffer)?;
        let output = tester.download::<F>(&buffer, n)?;
        Ok((output, format!("{direction:?} transform of 2^{log_n}, {order:?} order, {coset:?},")))
    };
    let omega = F::root_of_unity(log_n).unwrap_or(F::ONE);
    let (evaluations, what) = run(Direction::Forward, Order::Natural, &coefficients)?;
    for i in (0..n).step_by(step) {
        let x = shift * omega.pow_vartime([i as u64]);
        tester.expect(evaluations[i] == evaluate(&coefficients, x), || format!("element {i} of the {what}"))?;
    }
    let (natural, reversed) = ((&coefficients, &evaluations), (&reverse(&coefficients), &reverse(&evaluations)));
    for (direction, order, input, expected) in [
        (Direction::Forward, Order::NaturalToBitReversed, natural.0, reversed.1),
        (Direction::Forward, Order::BitReversedToNatural, reversed.0, natural.1),
        (Direction::Inverse, Order::Natural, natural.1, natural.0),
        (Direction::Inverse, Order::NaturalToBitReversed, natural.1, reversed.0),
        (Direction::Inverse, Order::BitReversedToNatural, reversed.1, natural.0),
    ] {
        let (output, what) = run(direction, order, input)?;
        tester.expect(output == *expected, || format!("the {what}"))?;
    }
    Ok(())
}

/// Against the product of two polynomials, term by term.
pub(super) fn quotient<F: ScalarRepr>(tester: &Tester<'_>) -> Result<()> {
    for log_n in [1, 3, 7] {
        let n = 1usize << log_n;
        let (a, b) = (scalars::<F>(n, 5), scalars::<F>(n, 7));
        let interpolate = |values: &[F]| -> Vec<F> {
            // Coefficient j is the mean of value i times omega^(-ij).
            let omega = F::root_of_unity(log_n).and_then(|x| x.invert().into_option()).unwrap_or(F::ONE);
            let scale = F::TWO_INV.pow_vartime([u64::from(log_n)]);
            (0..n as u64).map(|j| evaluate(values, omega.pow_vartime([j])) * scale).collect()
        };
        let (x, y) = (interpolate(&a), interpolate(&b));
        let mut product = vec![F::ZERO; 2 * n];
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                product[i + j] += *x * y;
            }
        }
        // a b - c = h (X^n - 1) with c of degree below n: the upper half of a b is h.
        let (h, what) = (&product[n..], || format!("the quotient on a domain of 2^{log_n}"));
        let (a, b) = (tester.upload(&a)?, tester.upload(&b)?);
        tester.stream.quotient(&QuotientPlan { curve: tester.curve, log_n }, &a, &b)?;
        tester.expect(tester.download::<F>(&a, n)? == h, what)?;
    }
    Ok(())
}

fn evaluate<F: ScalarRepr>(coefficients: &[F], x: F) -> F {
    coefficients.iter().rev().fold(F::ZERO, |sum, c| sum * x + c)
}

fn reverse<F: ScalarRepr>(x: &[F]) -> Vec<F> {
    let unused = usize::BITS - x.len().ilog2();
    (0..x.len()).map(|i| x[i.reverse_bits() >> unused]).collect()
}

fn limbs<F: ScalarRepr>(x: F) -> [u64; 4] {
    let mut limbs = [0; 4];
    limbs.copy_from_slice(repr::as_limbs(&[x]));
    limbs
}
