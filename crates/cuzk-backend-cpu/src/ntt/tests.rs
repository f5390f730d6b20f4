//! Transforms against their definition, every code path against every other.

use cuzk_curve::{Bls12, Bn256, Curve, CurveId};
use ff::Field;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::CodePath;

fn random<F: Field>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..n).map(|_| F::random(&mut rng)).collect()
}

fn limbs<F: ScalarRepr>(x: F) -> [u64; 4] {
    repr::as_limbs(&[x]).try_into().unwrap()
}

fn evaluate<F: Field>(coefficients: &[F], x: F) -> F {
    coefficients.iter().rev().fold(F::ZERO, |sum, c| sum * x + c)
}

fn reversed<F: Copy>(x: &[F]) -> Vec<F> {
    let bits = x.len().trailing_zeros();
    (0..x.len()).map(|i| x[roots::reverse(i, bits)]).collect()
}

/// All orders, both directions, at sampled places of large transforms.
fn transforms<C: Curve>(path: CodePath, log_n: u32, shift: Option<C::Fr>) {
    let n = 1usize << log_n;
    let coefficients = random::<C::Fr>(n, u64::from(log_n));
    let coset = shift.map_or(Coset::One, |s| Coset::Shift(limbs(s)));
    let plan = |direction, order| NttPlan { curve: C::ID, log_n, direction, coset, order };
    let omega = C::Fr::root_of_unity(log_n).unwrap();
    let mut natural = coefficients.clone();
    ntt(path, &plan(Direction::Forward, Order::Natural), &mut natural);
    // Every place of a small transform, some of a large one: each costs n products.
    let step = n.div_ceil(((1 << 22) / n).clamp(4, 64));
    for i in (0..n).step_by(step).chain([n - 1]) {
        let x = shift.unwrap_or(C::Fr::ONE) * omega.pow_vartime([i as u64]);
        assert_eq!(natural[i], evaluate(&coefficients, x), "{path} {} 2^{log_n} [{i}]", C::ID);
    }
    assert_ne!(natural, coefficients[..], "a transform that does nothing");
    let mut to = coefficients.clone();
    ntt(path, &plan(Direction::Forward, Order::NaturalToBitReversed), &mut to);
    assert_eq!(to, reversed(&natural));
    let mut from = reversed(&coefficients);
    ntt(path, &plan(Direction::Forward, Order::BitReversedToNatural), &mut from);
    assert_eq!(from, natural);
    ntt(path, &plan(Direction::Inverse, Order::Natural), &mut natural);
    assert_eq!(natural, coefficients);
    ntt(path, &plan(Direction::Inverse, Order::BitReversedToNatural), &mut to);
    assert_eq!(to, coefficients);
    ntt(path, &plan(Direction::Inverse, Order::NaturalToBitReversed), &mut from);
    assert_eq!(from, reversed(&coefficients));
}

#[test]
fn transforms_equal_their_definition() {
    for path in CodePath::available() {
        for log_n in 1..=14 {
            transforms::<Bls12>(path, log_n, None);
            transforms::<Bls12>(path, log_n, Some(blstrs::Scalar::from(7)));
            transforms::<Bn256>(path, log_n, Some(-halo2curves::bn256::Fr::from(5)));
        }
    }
}

#[test]
fn three_passes_and_odd_numbers_of_layers() {
    let path = CodePath::detect();
    transforms::<Bn256>(path, 18, None);
    transforms::<Bls12>(path, 23, Some(blstrs::Scalar::from(3)));
}

#[test]
fn one_element_stays() {
    for path in CodePath::available() {
        let mut x = [blstrs::Scalar::from(9)];
        let coset = Coset::Shift(limbs(blstrs::Scalar::from(2)));
        for direction in [Direction::Forward, Direction::Inverse] {
            let plan = NttPlan { curve: CurveId::Bls12_381, log_n: 0, direction, coset, order: Order::Natural };
            ntt(path, &plan, &mut x);
            assert_eq!(x, [blstrs::Scalar::from(9)]);
        }
    }
}

/// Rows of extreme values: 0, 1, r - 1 and what the lazy ranges would break on.
#[test]
fn extreme_values_stay_in_range() {
    fn extremes<C: Curve>() {
        let (log_n, minus_one) = (13, -C::Fr::ONE);
        let top = {
            // r - 1 as limbs in memory: the largest stored integer.
            let mut x = [C::Fr::ZERO];
            let mut limbs = <C::Fr as ScalarRepr>::MODULUS;
            limbs[0] -= 1;
            repr::as_limbs_mut(&mut x).copy_from_slice(&limbs);
            x[0]
        };
        for value in [C::Fr::ZERO, C::Fr::ONE, minus_one, top] {
            for coset in [Coset::One, Coset::Shift(limbs(top))] {
                for direction in [Direction::Forward, Direction::Inverse] {
                    let plan = NttPlan { curve: C::ID, log_n, direction, coset, order: Order::NaturalToBitReversed };
                    let results: Vec<_> = CodePath::available()
                        .map(|path| {
                            let mut x = vec![value; 1 << log_n];
                            ntt(path, &plan, &mut x);
                            assert!(x.iter().all(cuzk_curve::MontgomeryRepr::is_canonical));
                            x
                        })
                        .collect();
                    assert!(results.windows(2).all(|w| w[0] == w[1]));
                }
            }
        }
    }
    extremes::<Bls12>();
    extremes::<Bn256>();
}

#[test]
fn the_quotient_is_what_it_is_defined_to_be() {
    fn check<C: Curve>(path: CodePath, log_n: u32) {
        let n = 1usize << log_n;
        let (a, b) = (random::<C::Fr>(n, 1), random::<C::Fr>(n, 2));
        let (mut h, mut other, mut scratch) = (a.clone(), b.clone(), vec![C::Fr::ONE; n]);
        quotient(path, &QuotientPlan { curve: C::ID, log_n }, &mut h, &mut other, &mut scratch);
        // h(x) (x^n - 1) = a(x) b(x) - c(x) at a place that is on no domain.
        let interpolate = |values: Vec<C::Fr>| {
            let mut x = values;
            let (direction, coset) = (Direction::Inverse, Coset::One);
            ntt(path, &NttPlan { curve: C::ID, log_n, direction, coset, order: Order::Natural }, &mut x);
            x
        };
        let c = interpolate(a.iter().zip(&b).map(|(a, b)| *a * b).collect());
        let (a, b) = (interpolate(a), interpolate(b));
        let x = C::Fr::from(0x1234_5678_9abc_def1);
        let z = x.pow_vartime([n as u64]) - C::Fr::ONE;
        assert_eq!(evaluate(&h, x) * z, evaluate(&a, x) * evaluate(&b, x) - evaluate(&c, x));
        assert_eq!(h[n - 1], C::Fr::ZERO);
        assert!(n < 2 || h.iter().any(|h| *h != C::Fr::ZERO), "the trivial quotient");
    }
    for path in CodePath::available() {
        for log_n in 0..=14 {
            check::<Bls12>(path, log_n);
            check::<Bn256>(path, log_n);
        }
        check::<Bls12>(path, 17);
    }
}
