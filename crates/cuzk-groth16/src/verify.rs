//! The pairing check, strict about everything that it is given.
//!
//! A proof (A, B, C) of the inputs x is accepted if `e(A, B) = e(α, β) · e(IC(x), γ) · e(C, δ)`,
//! with `IC(x) = ic[0] + Σ xᵢ · ic[i+1]`.

use std::fmt;

use cuzk_curve::{Curve, MontgomeryRepr};
use cuzk_keys::VerifyingKey;
use ff::PrimeField;
use group::{Curve as _, Group, prime::PrimeCurveAffine};
use pairing::{MillerLoopResult, MultiMillerLoop};
use rand_core::{OsRng, RngCore};

use crate::{
    Proof, VerifyError,
    proof::{check_point, is_infinity},
};

/// A verifying key made ready for pairings, its points checked.
#[derive(Clone)]
pub struct PreparedVerifyingKey<C: Curve> {
    alpha_beta: C::Gt,
    minus_gamma: <C as MultiMillerLoop>::G2Prepared,
    minus_delta: <C as MultiMillerLoop>::G2Prepared,
    ic: Vec<C::G1Affine>,
}

impl<C: Curve> fmt::Debug for PreparedVerifyingKey<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedVerifyingKey({}, {} inputs)", C::ID, self.n_inputs())
    }
}

impl<C: Curve> PreparedVerifyingKey<C> {
    /// Checks a verifying key and prepares it.
    ///
    /// # Errors
    /// [`VerifyError::BadKey`]: a point that is not in its group, or is infinity where that would void the proof system
    /// (alpha, beta, gamma, delta); no point for ONE.
    pub fn new(vk: &VerifyingKey<C>) -> Result<Self, VerifyError> {
        let bad = |element| move |reason| VerifyError::BadKey { element, reason };
        check_point(&vk.alpha_g1).map_err(bad("alpha_g1"))?;
        check_point(&vk.beta_g2).map_err(bad("beta_g2"))?;
        check_point(&vk.gamma_g2).map_err(bad("gamma_g2"))?;
        check_point(&vk.delta_g2).map_err(bad("delta_g2"))?;
        if vk.ic.is_empty() {
            return Err(VerifyError::BadKey { element: "ic", reason: "empty: there is no point for ONE" });
        }
        // An input that occurs in no constraint has infinity here: allowed, as it binds nothing.
        if let Some(reason) = vk.ic.iter().filter(|p| !is_infinity(*p)).find_map(|p| check_point(p).err()) {
            return Err(VerifyError::BadKey { element: "ic", reason });
        }
        Ok(Self {
            alpha_beta: C::pairing(&vk.alpha_g1, &vk.beta_g2),
            minus_gamma: (-vk.gamma_g2).into(),
            minus_delta: (-vk.delta_g2).into(),
            ic: vk.ic.clone(),
        })
    }

    /// Number of public inputs, ONE not counted.
    pub fn n_inputs(&self) -> usize {
        self.ic.len() - 1
    }

    /// Verifies one proof. `inputs` are the public inputs without ONE.
    ///
    /// # Errors
    /// What is malformed; [`VerifyError::Invalid`] if nothing is and the statement is not proved.
    pub fn verify(&self, proof: &Proof<C>, inputs: &[C::Fr]) -> Result<(), VerifyError> {
        proof.check()?;
        let ic = self.fold_inputs(inputs)?.to_affine();
        let result = C::multi_miller_loop(&[
            (&proof.a, &proof.b.into()),
            (&ic, &self.minus_gamma),
            (&proof.c, &self.minus_delta),
        ])
        .final_exponentiation();
        if result == self.alpha_beta { Ok(()) } else { Err(VerifyError::Invalid) }
    }

    /// Verifies several proofs under this key at once, such as the partitions of one Filecoin proof: one pairing a proof
    /// and two more, instead of three a proof. The equations are combined with random 127-bit weights, so that a false one
    /// passes with probability 2^-127 at most.
    ///
    /// # Errors
    /// As [`PreparedVerifyingKey::verify`]; it does not say which proof is invalid.
    pub fn verify_batch(&self, proofs: &[Proof<C>], inputs: &[Vec<C::Fr>]) -> Result<(), VerifyError> {
        if proofs.len() != inputs.len() {
            return Err(VerifyError::BatchLength { proofs: proofs.len(), inputs: inputs.len() });
        }
        let mut weights = C::Fr::from(0);
        let (mut ic, mut c) = (C::G1::identity(), C::G1::identity());
        let mut terms = Vec::with_capacity(proofs.len());
        for (proof, inputs) in proofs.iter().zip(inputs) {
            proof.check()?;
            let weight = random_weight::<C::Fr>()?;
            weights += weight;
            ic += self.fold_inputs(inputs)? * weight;
            c += proof.c * weight;
            let a: C::G1Affine = (proof.a * weight).to_affine();
            terms.push((a, proof.b.into()));
        }
        let (ic, c) = (ic.to_affine(), c.to_affine());
        let mut pairs: Vec<(&C::G1Affine, &<C as MultiMillerLoop>::G2Prepared)> =
            terms.iter().map(|(a, b)| (a, b)).collect();
        pairs.push((&ic, &self.minus_gamma));
        pairs.push((&c, &self.minus_delta));
        let result = C::multi_miller_loop(&pairs).final_exponentiation();
        if result == self.alpha_beta * weights { Ok(()) } else { Err(VerifyError::Invalid) }
    }

    fn fold_inputs(&self, inputs: &[C::Fr]) -> Result<C::G1, VerifyError> {
        if inputs.len() != self.n_inputs() {
            return Err(VerifyError::InputCount { expected: self.n_inputs(), actual: inputs.len() });
        }
        if let Some(index) = inputs.iter().position(|x| !x.is_canonical()) {
            return Err(VerifyError::InputNotCanonical { index });
        }
        let one = self.ic[0].to_curve();
        Ok(inputs.iter().zip(&self.ic[1..]).fold(one, |sum, (x, point)| sum + *point * x))
    }
}

fn random_weight<F: PrimeField>() -> Result<F, VerifyError> {
    let mut bytes = [0u8; 16];
    OsRng.try_fill_bytes(&mut bytes).map_err(|e| VerifyError::Randomness(e.to_string()))?;
    // Odd, so never zero; 127 random bits are below either curve's r.
    Ok(F::from_u128(u128::from_le_bytes(bytes) | 1))
}

/// Public inputs from their canonical encodings (32 bytes each, little-endian, as `PrimeField::to_repr` writes them).
///
/// # Errors
/// [`VerifyError::InputNotCanonical`] with the number of the first one that is not below r or has another length.
pub fn decode_inputs<F: PrimeField>(encodings: &[impl AsRef<[u8]>]) -> Result<Vec<F>, VerifyError> {
    let decode = |(index, bytes): (usize, &[u8])| {
        let mut repr = F::Repr::default();
        if repr.as_ref().len() != bytes.len() {
            return Err(VerifyError::InputNotCanonical { index });
        }
        repr.as_mut().copy_from_slice(bytes);
        Option::from(F::from_repr(repr)).ok_or(VerifyError::InputNotCanonical { index })
    };
    encodings.iter().map(AsRef::as_ref).enumerate().map(decode).collect()
}
