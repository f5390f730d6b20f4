//! Transforms and the quotient.

use cuzk_backend::{Coset, Direction, NttPlan, Order, QuotientPlan};
use cuzk_curve::{Curve, ScalarRepr, repr};
use ff::{Field, PrimeField};
use halo2curves::fft::best_fft;

use crate::{
    Suite,
    oracle::{evaluate, interpolate_at, limbs, omega, reversed, scalars},
    suite::{Bench, done},
};

fn coset<F: ScalarRepr>(shift: F) -> Coset {
    if shift == F::ONE { Coset::One } else { Coset::Shift(limbs(shift)) }
}

fn transform<C: Curve>(bench: &Bench, direction: Direction, order: Order, shift: C::Fr, input: &[C::Fr]) -> Vec<C::Fr> {
    let plan = NttPlan { curve: C::ID, log_n: input.len().ilog2(), direction, coset: coset(shift), order };
    let buffer = bench.upload(input);
    done("ntt", bench.stream.ntt(&plan, &buffer));
    bench.download(&buffer, vec![C::Fr::ZERO; input.len()])
}

/// Every direction, order and coset gives `values` for `coefficients` or the other way round, twice.
fn every_form<C: Curve>(bench: &Bench, shift: C::Fr, coefficients: &[C::Fr], values: &[C::Fr]) {
    let (reversed_coefficients, reversed_values) = (reversed(coefficients), reversed(values));
    for (direction, order, input, expected) in [
        (Direction::Forward, Order::Natural, coefficients, values),
        (Direction::Forward, Order::NaturalToBitReversed, coefficients, &reversed_values[..]),
        (Direction::Forward, Order::BitReversedToNatural, &reversed_coefficients, values),
        (Direction::Inverse, Order::Natural, values, coefficients),
        (Direction::Inverse, Order::NaturalToBitReversed, values, &reversed_coefficients),
        (Direction::Inverse, Order::BitReversedToNatural, &reversed_values, coefficients),
    ] {
        for _ in 0..2 {
            let output = transform::<C>(bench, direction, order, shift, input);
            let n = input.len();
            assert!(output == expected, "{direction:?} transform of {n}, {order:?} order, shift {shift:?}");
        }
    }
}

/// Sizes 2^0 to 2^7: every element against `y[i] = Σ_j x[j] (g ω^i)^j`.
pub fn equal_their_definition<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    for log_n in 0..=suite.max_log_n.min(7) {
        for shift in [C::Fr::ONE, C::Fr::MULTIPLICATIVE_GENERATOR, -C::Fr::ONE, scalars(1, 9)[0]] {
            let coefficients = scalars::<C::Fr>(1 << log_n, u64::from(log_n));
            let omega = omega::<C::Fr>(log_n);
            let values: Vec<_> =
                (0..1 << log_n).map(|i| evaluate(&coefficients, shift * omega.pow_vartime([i]))).collect();
            assert!(log_n == 0 || values != coefficients, "a trivial input");
            every_form::<C>(&bench, shift, &coefficients, &values);
        }
    }
}

/// Larger sizes against `halo2curves`.
pub fn equal_another_implementation<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    for log_n in 8..=suite.max_log_n {
        let coefficients = scalars::<C::Fr>(1 << log_n, u64::from(log_n));
        for shift in [C::Fr::ONE, C::Fr::from(0xdead_beef)] {
            let mut power = C::Fr::ONE;
            let mut values = coefficients.clone();
            for x in &mut values {
                *x *= power;
                power *= shift;
            }
            best_fft(&mut values, omega::<C::Fr>(log_n), log_n);
            every_form::<C>(&bench, shift, &coefficients, &values);
        }
    }
}

/// Lists of one value: zero, one, r - 1, and the largest number that a reduced scalar can be in memory.
pub fn of_extreme_values<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    let mut largest = [C::Fr::ZERO];
    let mut modulus = <C::Fr as ScalarRepr>::MODULUS;
    modulus[0] -= 1;
    repr::as_limbs_mut(&mut largest).copy_from_slice(&modulus);
    let n = 1usize << suite.max_log_n.min(12);
    for value in [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE, largest[0]] {
        // The polynomial value · (1 + x + … + x^(n-1)) on the domain: n · value at 1, nothing elsewhere.
        let mut values = vec![C::Fr::ZERO; n];
        values[0] = value * C::Fr::from(n as u64);
        every_form::<C>(&bench, C::Fr::ONE, &vec![value; n], &values);
        // Without a coset the list [value, 0, 0, …] evaluates to value everywhere, on every coset.
        let mut coefficients = vec![C::Fr::ZERO; n];
        coefficients[0] = value;
        every_form::<C>(&bench, largest[0], &coefficients, &vec![value; n]);
    }
}

/// A buffer may be larger than the transform.
pub fn leave_the_rest_of_the_buffer_alone<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    let input = scalars::<C::Fr>(1024 + 3, 1);
    let buffer = bench.upload(&input);
    let (direction, order) = (Direction::Forward, Order::Natural);
    let plan = NttPlan { curve: C::ID, log_n: 10, direction, coset: Coset::One, order };
    done("ntt", bench.stream.ntt(&plan, &buffer));
    let output = bench.download(&buffer, vec![C::Fr::ZERO; input.len()]);
    assert!(output[1024..] == input[1024..], "scalars behind the transform have changed");
    assert!(output[..1024] == transform::<C>(&bench, direction, order, C::Fr::ONE, &input[..1024]));
}

/// `h (xⁿ − 1) = a b − c` in plain field arithmetic at points off the domain, for c = a·b on it; and twice the same bytes.
pub fn quotient_equals_its_definition<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    for log_n in 0..=suite.max_log_n {
        let n = 1usize << log_n;
        let (a, b) = (scalars::<C::Fr>(n, 1), scalars::<C::Fr>(n, 2));
        let c: Vec<C::Fr> = a.iter().zip(&b).map(|(a, b)| *a * b).collect();
        let run = || {
            let (a, b) = (bench.upload(&a), bench.upload(&b));
            done("quotient", bench.stream.quotient(&QuotientPlan { curve: C::ID, log_n }, &a, &b));
            bench.download(&a, vec![C::Fr::ZERO; n])
        };
        let h = run();
        assert!(h == run(), "the quotient on 2^{log_n} differs when it is repeated");
        assert!(h[n - 1] == C::Fr::ZERO, "the quotient on 2^{log_n} has degree n - 1");
        assert!(n == 1 || h.iter().any(|h| *h != C::Fr::ZERO), "a trivial input");
        for x in scalars::<C::Fr>(2, 3) {
            let vanishing = x.pow_vartime([n as u64]) - C::Fr::ONE;
            let expected = interpolate_at(&a, x) * interpolate_at(&b, x) - interpolate_at(&c, x);
            assert!(evaluate(&h, x) * vanishing == expected, "the quotient on 2^{log_n}");
        }
    }
}
