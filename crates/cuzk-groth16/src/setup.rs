//! Key generation: the toxic waste, the QAP at τ, and multiples of the two generators computed on a device.
//!
//! Two passes over the circuit: it has been recorded (pass one gave the matrices and the sizes), and here the matrices are
//! evaluated at τ (pass two), row by row, into vectors of one scalar a variable. The toxic waste is drawn in bellperson's order (G1
//! generator, G2 generator, α, β, γ, δ, τ), so a deterministic setup gives the bytes of bellperson's
//! `generate_random_parameters` for the same generator of randomness.

use cuzk_backend::Stream;
use cuzk_curve::{AffineRepr, Curve};
use cuzk_keys::{Provenance, ProvingKey, VerifyingKey};
use cuzk_r1cs::R1cs;
use ff::Field;
use group::{Curve as _, Group};
use rand_chacha::ChaCha20Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

use crate::{SetupError, qap};

/// Makes a key with the operating system's randomness. Whoever runs this could know the toxic waste: the key is marked insecure for
/// production.
///
/// # Errors
/// The circuit has an unconstrained variable or needs a domain that the field does not have; the device fails.
pub fn setup<C: Curve>(stream: &Stream, r1cs: &R1cs<C::Fr>) -> Result<ProvingKey<C>, SetupError> {
    let mut seed = [0; 32];
    OsRng.try_fill_bytes(&mut seed).map_err(|e| SetupError::Randomness(e.to_string()))?;
    generate(stream, r1cs, seed, Provenance::LocalSetup)
}

/// Makes a key from a seed of ChaCha20. Everybody who has the seed can forge proofs: for tests and benchmarks only, and the key says so.
///
/// # Errors
/// As [`setup`].
pub fn setup_deterministic<C: Curve>(
    stream: &Stream,
    r1cs: &R1cs<C::Fr>,
    seed: [u8; 32],
) -> Result<ProvingKey<C>, SetupError> {
    generate(stream, r1cs, seed, Provenance::DeterministicSetup { seed })
}

struct ToxicWaste<C: Curve> {
    g1: C::G1,
    g2: C::G2,
    alpha: C::Fr,
    beta: C::Fr,
    gamma: C::Fr,
    delta: C::Fr,
    tau: C::Fr,
}

impl<C: Curve> ToxicWaste<C> {
    /// The order of the draws is bellperson's.
    fn draw(mut rng: impl RngCore) -> Self {
        let (g1, g2) = (C::G1::random(&mut rng), C::G2::random(&mut rng));
        let mut scalar = || C::Fr::random(&mut rng);
        Self { g1, g2, alpha: scalar(), beta: scalar(), gamma: scalar(), delta: scalar(), tau: scalar() }
    }
}

fn generate<C: Curve>(
    stream: &Stream,
    r1cs: &R1cs<C::Fr>,
    seed: [u8; 32],
    provenance: Provenance,
) -> Result<ProvingKey<C>, SetupError> {
    let waste = ToxicWaste::<C>::draw(ChaCha20Rng::from_seed(seed));
    let qap = tracing::info_span!("qap_at_tau").in_scope(|| qap::evaluate_at(r1cs, waste.tau))?;
    let inverse = |x: C::Fr| Option::<C::Fr>::from(x.invert()).ok_or(SetupError::TauInDomain);
    let (gamma_inverse, delta_inverse) = (inverse(waste.gamma)?, inverse(waste.delta)?);

    // (β Aⱼ(τ) + α Bⱼ(τ) + Cⱼ(τ)) over γ for inputs, over δ for aux variables.
    let combine = |range: std::ops::Range<usize>, inverse: C::Fr| -> Vec<C::Fr> {
        let term = |j| (qap.a[j] * waste.beta + qap.b[j] * waste.alpha + qap.c[j]) * inverse;
        range.into_par_iter().map(term).collect()
    };
    let n_inputs = r1cs.n_inputs();
    let ic = combine(0..n_inputs, gamma_inverse);
    let l = combine(n_inputs..r1cs.n_variables(), delta_inverse);
    let unconstrained = |x: &C::Fr| x.is_zero_vartime();
    if let Some(first) = l.iter().position(unconstrained) {
        return Err(SetupError::Unconstrained { first, count: l.iter().filter(|x| unconstrained(x)).count() });
    }
    let h = qap::powers(qap.t * delta_inverse, waste.tau, (1 << qap.log_n) - 1);
    // Variables that A (or B) does not mention have no base there; the prover skips them by the same density.
    let nonzero = |x: Vec<C::Fr>| -> Vec<C::Fr> { x.into_iter().filter(|x| !x.is_zero_vartime()).collect() };
    let (a, b) = (nonzero(qap.a), nonzero(qap.b));

    let g1 = Multiples { stream, base: waste.g1.to_affine() };
    let g2 = Multiples { stream, base: waste.g2.to_affine() };
    Ok(ProvingKey {
        vk: VerifyingKey {
            alpha_g1: (waste.g1 * waste.alpha).to_affine(),
            beta_g1: (waste.g1 * waste.beta).to_affine(),
            beta_g2: (waste.g2 * waste.beta).to_affine(),
            gamma_g2: (waste.g2 * waste.gamma).to_affine(),
            delta_g1: (waste.g1 * waste.delta).to_affine(),
            delta_g2: (waste.g2 * waste.delta).to_affine(),
            ic: g1.of("ic", &ic)?,
        },
        h: g1.of("h", &h)?,
        l: g1.of("l", &l)?,
        a: g1.of("a", &a)?,
        b_g1: g1.of("b_g1", &b)?,
        b_g2: g2.of("b_g2", &b)?,
        provenance,
    })
}

/// A generator whose multiples are wanted.
struct Multiples<'a, G> {
    stream: &'a Stream,
    base: G,
}

impl<G: AffineRepr> Multiples<'_, G> {
    fn of(&self, section: &'static str, scalars: &[G::Scalar]) -> Result<Vec<G>, SetupError> {
        let _span = tracing::info_span!("fixed_base_mul", section, points = scalars.len()).entered();
        let mut out = vec![G::identity(); scalars.len()];
        self.stream.fixed_base_mul_slice(&self.base, scalars, &mut out)?;
        Ok(out)
    }
}
