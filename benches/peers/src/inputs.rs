//! Inputs, the same on every machine, and what must come out of them.

use blstrs::Scalar;
use cuzk_backend::{AssignmentView, Result, Stream};
use cuzk_curve::{AffineRepr, CurveId, MontgomeryRepr, repr};
use ff::Field;
use group::Curve;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rayon::prelude::*;

/// Elements of one seed.
const CHUNK: usize = 1 << 14;

/// Uniform scalars; other seeds give others.
pub(crate) fn scalars(seed: u64, n: usize) -> Vec<Scalar> {
    let mut scalars = vec![Scalar::ZERO; n];
    scalars.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
        let mut rng = generator(seed, i);
        chunk.iter_mut().for_each(|scalar| *scalar = uniform(&mut rng));
    });
    scalars
}

fn generator(seed: u64, chunk: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(chunk as u64);
    rng
}

/// Limbs below the modulus are as uniform as the scalar that they are the Montgomery form of.
fn uniform(rng: &mut ChaCha8Rng) -> Scalar {
    loop {
        let mut scalar = [Scalar::ZERO];
        let limbs = repr::as_limbs_mut(&mut scalar);
        limbs.fill_with(|| rng.next_u64());
        limbs[3] &= u64::MAX >> 1;
        if scalar[0].is_canonical() {
            return scalar[0];
        }
    }
}

/// Points with known logarithms: `points[i] = logs[i]·G`, the logarithms uniform.
pub(crate) struct Points<G: AffineRepr> {
    pub(crate) logs: Vec<Scalar>,
    pub(crate) points: Vec<G>,
}

impl<G: AffineRepr<Scalar = Scalar>> Points<G> {
    /// Makes `n` of them on the device.
    pub(crate) fn new(stream: &Stream, n: usize) -> Result<Self> {
        let logs = scalars(1, n);
        let mut points = vec![G::identity(); n];
        stream.fixed_base_mul_slice(&G::generator(), &logs, &mut points)?;
        Ok(Self { logs, points })
    }

    /// Σ scalarsᵢ·pointsᵢ, by the logarithms.
    pub(crate) fn sum(&self, scalars: &[Scalar]) -> G {
        let log: Scalar = self.logs.par_iter().zip(scalars).map(|(log, scalar)| log * scalar).sum();
        (G::generator() * log).to_affine()
    }
}

/// An assignment like that of a PoRep partition: 47 % ones, 1.6 % wide values, the rest zeros; as scalars and packed.
pub(crate) struct Witness {
    pub(crate) scalars: Vec<Scalar>,
    ones: Vec<u64>,
    wide: Vec<u64>,
    rank: Vec<u32>,
    wide_scalars: Vec<Scalar>,
}

impl Witness {
    /// One of `n` variables.
    pub(crate) fn new(n: usize) -> Self {
        const ONES: f64 = 0.47;
        const WIDE: f64 = 0.016;
        let mut scalars = vec![Scalar::ZERO; n];
        scalars.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
            let mut rng = generator(2, i);
            for scalar in chunk {
                *scalar = match f64::from(rng.next_u32()) / f64::from(u32::MAX) {
                    x if x < ONES => Scalar::ONE,
                    x if x < ONES + WIDE => uniform(&mut rng),
                    _ => Scalar::ZERO,
                };
            }
        });
        // The first variable of an assignment is ONE.
        scalars[..1].fill(Scalar::ONE);
        let is_wide = |x: &Scalar| *x != Scalar::ZERO && *x != Scalar::ONE;
        let bits = |test: &(dyn Fn(&Scalar) -> bool + Sync)| -> Vec<u64> {
            let word = |word: &[Scalar]| word.iter().rev().fold(0, |bits, x| bits << 1 | u64::from(test(x)));
            scalars.par_chunks(64).map(word).collect()
        };
        let (ones, wide) = (bits(&|x| *x == Scalar::ONE), bits(&is_wide));
        let rank = wide.iter().scan(0, |sum, word| Some(std::mem::replace(sum, *sum + word.count_ones()))).collect();
        let wide_scalars = scalars.par_iter().copied().filter(is_wide).collect();
        Self { scalars, ones, wide, rank, wide_scalars }
    }

    /// The packed form.
    pub(crate) fn view(&self) -> AssignmentView<'_> {
        AssignmentView {
            curve: CurveId::Bls12_381,
            n_variables: self.scalars.len() as u64,
            ones: &self.ones,
            wide: &self.wide,
            rank: &self.rank,
            wide_scalars: repr::as_bytes(&self.wide_scalars),
        }
    }
}

/// The value at `x` of the polynomial with these coefficients.
pub(crate) fn evaluate(coefficients: &[Scalar], x: Scalar) -> Scalar {
    let part = |(i, chunk): (usize, &[Scalar])| {
        chunk.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c) * x.pow_vartime([(i * CHUNK) as u64])
    };
    coefficients.par_chunks(CHUNK).enumerate().map(part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::G1Affine;
    use group::prime::PrimeCurveAffine;

    #[test]
    fn sums_and_values_have_their_closed_forms() {
        // Σ x^i = (x^n − 1)/(x − 1) over more than one chunk.
        let n = CHUNK + 5;
        let x = Scalar::from(7);
        let expected = (x.pow_vartime([n as u64]) - Scalar::ONE) * (x - Scalar::ONE).invert().unwrap();
        assert_eq!(evaluate(&vec![Scalar::ONE; n], x), expected);

        let points: Vec<G1Affine> = vec![G1Affine::generator(); 3];
        let points = Points { logs: vec![Scalar::ONE; 3], points };
        let expected = (G1Affine::generator() * Scalar::from(6)).to_affine();
        assert_eq!(points.sum(&[1, 2, 3].map(Scalar::from)), expected);
    }

    #[test]
    fn scalars_do_not_repeat() {
        let mut all = scalars(1, CHUNK + 3);
        all.extend(scalars(2, 3));
        let mut limbs: Vec<[u64; 4]> = repr::as_limbs(&all).as_chunks().0.to_vec();
        limbs.sort();
        limbs.dedup();
        assert_eq!(limbs.len(), CHUNK + 6);
        assert!(all.iter().all(MontgomeryRepr::is_canonical));
    }

    #[test]
    fn the_packed_witness_says_what_the_scalars_say() {
        let witness = Witness::new(CHUNK + 100);
        let view = witness.view();
        let wide: &[Scalar] = repr::from_bytes(view.wide_scalars).unwrap();
        let share = wide.len() as f64 / witness.scalars.len() as f64;
        assert!((0.01..0.02).contains(&share), "{share}");
        for (v, scalar) in witness.scalars.iter().enumerate() {
            let bit = |bits: &[u64]| bits[v / 64] >> (v % 64) & 1 == 1;
            let below = view.wide[v / 64] & ((1 << (v % 64)) - 1);
            let expected = match (bit(view.ones), bit(view.wide)) {
                (true, false) => Scalar::ONE,
                (false, true) => wide[view.rank[v / 64] as usize + below.count_ones() as usize],
                (false, false) => Scalar::ZERO,
                (true, true) => panic!("variable {v} is in both bitmaps"),
            };
            assert_eq!(*scalar, expected, "variable {v}");
        }
    }
}
