//! Keys in memory.

use std::fmt;

use cuzk_curve::Curve;

use crate::{Counts, KeyError, Origin, Provenance};

/// What the verifier needs, and the prover too: alpha, beta and delta blind the proof.
///
/// In the formulas u_i, v_i, w_i are the QAP polynomials of variable i (columns of A, B, C interpolated over the
/// evaluation domain), and tau, alpha, beta, gamma, delta the toxic waste. \[x\]₁ is x times the generator of G1.
#[derive(Clone)]
pub struct VerifyingKey<C: Curve> {
    /// \[alpha\]₁, never infinity.
    pub alpha_g1: C::G1Affine,
    /// \[beta\]₁, never infinity. For the prover: C contains B in G1.
    pub beta_g1: C::G1Affine,
    /// \[beta\]₂, never infinity.
    pub beta_g2: C::G2Affine,
    /// \[gamma\]₂, never infinity.
    pub gamma_g2: C::G2Affine,
    /// \[delta\]₁, never infinity. For the prover.
    pub delta_g1: C::G1Affine,
    /// \[delta\]₂, never infinity.
    pub delta_g2: C::G2Affine,
    /// `ic[i] = [(beta·u_i(tau) + alpha·v_i(tau) + w_i(tau)) / gamma]₁` for each public input, the constant one first;
    /// at least one entry, never infinity.
    pub ic: Vec<C::G1Affine>,
}

/// What the prover needs, all in memory. The order of every vector is bellperson's.
///
/// See [`VerifyingKey`] for the notation; t is the polynomial that vanishes on the evaluation domain of size m = 2^k.
#[derive(Clone)]
pub struct ProvingKey<C: Curve> {
    /// The verifying key.
    pub vk: VerifyingKey<C>,
    /// `h[i] = [tau^i · t(tau) / delta]₁` for 0 ≤ i ≤ m - 2, never infinity.
    pub h: Vec<C::G1Affine>,
    /// `l[i] = [(beta·u_j(tau) + alpha·v_j(tau) + w_j(tau)) / delta]₁` for the i-th auxiliary variable j (not for
    /// inputs: theirs are in [`VerifyingKey::ic`]), never infinity.
    pub l: Vec<C::G1Affine>,
    /// `[u_j(tau)]₁` for every variable j that occurs in A: inputs first, then auxiliary variables, each in order of
    /// allocation. Variables that do not occur would be infinity and are left out, so the prover needs the density of A.
    pub a: Vec<C::G1Affine>,
    /// `[v_j(tau)]₁` for every variable j that occurs in B: ordered and thinned out as [`ProvingKey::a`], by the density
    /// of B.
    pub b_g1: Vec<C::G1Affine>,
    /// `[v_j(tau)]₂` for the same variables.
    pub b_g2: Vec<C::G2Affine>,
    /// How the key was made.
    pub provenance: Provenance,
}

impl<C: Curve> ProvingKey<C> {
    /// How many points each vector has.
    pub fn counts(&self) -> Counts {
        Counts {
            ic: self.vk.ic.len(),
            h: self.h.len(),
            l: self.l.len(),
            a: self.a.len(),
            b_g1: self.b_g1.len(),
            b_g2: self.b_g2.len(),
        }
    }

    /// Whether any circuit can have these counts; see [`Counts::check`].
    ///
    /// # Errors
    /// [`KeyError::BadCount`].
    pub fn check_counts(&self) -> Result<(), KeyError> {
        self.counts().check(&Origin::Memory)
    }
}

// The derived forms of these would ask that the curve itself, a mere tag, can be compared and printed; and nobody wants
// to see a hundred million points.

impl<C: Curve> PartialEq for VerifyingKey<C> {
    fn eq(&self, other: &Self) -> bool {
        self.alpha_g1 == other.alpha_g1
            && self.beta_g1 == other.beta_g1
            && self.beta_g2 == other.beta_g2
            && self.gamma_g2 == other.gamma_g2
            && self.delta_g1 == other.delta_g1
            && self.delta_g2 == other.delta_g2
            && self.ic == other.ic
    }
}

impl<C: Curve> Eq for VerifyingKey<C> {}

impl<C: Curve> fmt::Debug for VerifyingKey<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("curve", &C::ID).field("ic", &self.ic.len()).finish_non_exhaustive()
    }
}

impl<C: Curve> PartialEq for ProvingKey<C> {
    fn eq(&self, other: &Self) -> bool {
        self.vk == other.vk
            && self.h == other.h
            && self.l == other.l
            && self.a == other.a
            && self.b_g1 == other.b_g1
            && self.b_g2 == other.b_g2
            && self.provenance == other.provenance
    }
}

impl<C: Curve> Eq for ProvingKey<C> {}

impl<C: Curve> fmt::Debug for ProvingKey<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingKey")
            .field("curve", &C::ID)
            .field("counts", &self.counts())
            .field("provenance", &self.provenance)
            .finish_non_exhaustive()
    }
}
