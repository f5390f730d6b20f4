//! Answers from definitions.

use cuzk_curve::{AffineRepr, ScalarRepr, repr};
use ff::{Field, PrimeField};
use group::Curve;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// A generator with a fixed seed.
pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// Random scalars.
pub(crate) fn scalars<F: Field>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = rng(seed);
    (0..n).map(|_| F::random(&mut rng)).collect()
}

/// Scalars as a witness has them: halves of 0 and 1, one in a hundred of full size (and one at least).
pub(crate) fn witness<F: Field>(n: usize, seed: u64) -> Vec<F> {
    let mut rng = rng(seed);
    (0..n)
        .map(|i| match rng.gen_range(0..100) {
            _ if i == n / 2 => F::random(&mut rng),
            0 => F::random(&mut rng),
            bit => {
                if bit % 2 == 0 {
                    F::ZERO
                } else {
                    F::ONE
                }
            }
        })
        .collect()
}

/// A scalar's limbs as a plan wants them.
pub(crate) fn limbs<F: ScalarRepr>(x: F) -> [u64; 4] {
    let mut limbs = [0; 4];
    limbs.copy_from_slice(repr::as_limbs(&[x]));
    limbs
}

/// The value of a polynomial.
pub(crate) fn evaluate<F: Field>(coefficients: &[F], x: F) -> F {
    coefficients.iter().rev().fold(F::ZERO, |sum, c| sum * x + c)
}

/// The list in bit-reversed order.
pub(crate) fn reversed<F: Copy>(x: &[F]) -> Vec<F> {
    let bits = x.len().ilog2();
    (0..x.len()).map(|i| if bits == 0 { x[i] } else { x[i.reverse_bits() >> (usize::BITS - bits)] }).collect()
}

/// The generator of the domain of 2^log_n elements.
pub(crate) fn omega<F: ScalarRepr>(log_n: u32) -> F {
    F::root_of_unity(log_n).unwrap_or_else(|| panic!("no domain of 2^{log_n} elements"))
}

/// The polynomial of degree below n with these values on the domain, evaluated elsewhere: by Lagrange's formula.
pub(crate) fn interpolate_at<F: ScalarRepr>(values: &[F], x: F) -> F {
    let log_n = values.len().ilog2();
    let omega = omega::<F>(log_n);
    let points: Vec<F> = std::iter::successors(Some(F::ONE), |p| Some(*p * omega)).take(values.len()).collect();
    // All inverses of x - p with one inversion.
    let mut prefix = vec![F::ONE];
    for p in &points {
        prefix.push(prefix[prefix.len() - 1] * (x - p));
    }
    let mut inverse = prefix[points.len()].invert().expect("x is on the domain");
    let mut sum = F::ZERO;
    for (i, p) in points.iter().enumerate().rev() {
        sum += values[i] * p * inverse * prefix[i];
        inverse *= x - p;
    }
    let n = 1u64 << log_n;
    sum * (x.pow_vartime([n]) - F::ONE) * F::from(n).invert().expect("the characteristic is odd")
}

/// Σ scalar[i] · logarithm[i] times the generator: what a sum over points with known logarithms must be.
pub(crate) fn sum<G: AffineRepr>(scalars: &[G::Scalar], logarithms: &[G::Scalar]) -> G {
    assert_eq!(scalars.len(), logarithms.len());
    let logarithm = scalars.iter().zip(logarithms).fold(G::Scalar::ZERO, |sum, (s, l)| sum + *s * l);
    (G::generator() * logarithm).to_affine()
}

/// 1·G, 2·G, …, n·G.
pub(crate) fn multiples<G: AffineRepr>(n: usize) -> Vec<G> {
    let step = G::generator();
    let projective: Vec<G::Curve> = std::iter::successors(Some(step.to_curve()), |p| Some(*p + step)).take(n).collect();
    let mut affine = vec![G::identity(); n];
    for (affine, projective) in affine.iter_mut().zip(projective) {
        *affine = projective.to_affine();
    }
    affine
}

/// 1, 2, …, n.
pub(crate) fn numbers<F: PrimeField>(n: usize) -> Vec<F> {
    (1..=n as u64).map(F::from).collect()
}
