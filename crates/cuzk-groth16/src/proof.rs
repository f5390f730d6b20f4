//! A proof and its bytes.

use cuzk_curve::{AffineRepr, Curve};
use group::{GroupEncoding, prime::PrimeCurveAffine};

use crate::VerifyError;

/// A Groth16 proof: A and C in G1, B in G2.
#[derive(Clone, Debug)]
pub struct Proof<C: Curve> {
    /// `[α + Σ wᵢ Aᵢ(τ) + r δ]₁`.
    pub a: C::G1Affine,
    /// `[β + Σ wᵢ Bᵢ(τ) + s δ]₂`.
    pub b: C::G2Affine,
    /// `[(Σ_aux wᵢ (β Aᵢ(τ) + α Bᵢ(τ) + Cᵢ(τ)) + h(τ) t(τ)) / δ]₁ + s A + r B − r s [δ]₁`.
    pub c: C::G1Affine,
}

impl<C: Curve> PartialEq for Proof<C> {
    fn eq(&self, other: &Self) -> bool {
        self.a == other.a && self.b == other.b && self.c == other.c
    }
}

impl<C: Curve> Eq for Proof<C> {}

/// Bytes of a proof: A, B, C compressed (BLS12-381: 48 + 96 + 48 = 192; BN254: 32 + 64 + 32 = 128).
pub fn proof_bytes<C: Curve>() -> usize {
    2 * encoded_len::<C::G1Affine>() + encoded_len::<C::G2Affine>()
}

fn encoded_len<G: GroupEncoding>() -> usize {
    G::Repr::default().as_ref().len()
}

impl<C: Curve> Proof<C> {
    /// A, B, C, each compressed as the curve's ecosystem does.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (a, b, c) = (self.a.to_bytes(), self.b.to_bytes(), self.c.to_bytes());
        [a.as_ref(), b.as_ref(), c.as_ref()].concat()
    }

    /// Reads a proof.
    ///
    /// # Errors
    /// A wrong length; a point that is not canonically encoded, not on its curve, not in its subgroup, or infinity.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VerifyError> {
        if bytes.len() != proof_bytes::<C>() {
            return Err(VerifyError::ProofLength { expected: proof_bytes::<C>(), actual: bytes.len() });
        }
        let (a, rest) = bytes.split_at(encoded_len::<C::G1Affine>());
        let (b, c) = rest.split_at(encoded_len::<C::G2Affine>());
        let proof = Self { a: decode("A", a)?, b: decode("B", b)?, c: decode("C", c)? };
        proof.check()?;
        Ok(proof)
    }

    /// Reads several proofs that follow each other, as the partitions of a Filecoin proof do.
    ///
    /// # Errors
    /// As [`Proof::from_bytes`]; a length that is not `count` proofs.
    pub fn many_from_bytes(bytes: &[u8], count: usize) -> Result<Vec<Self>, VerifyError> {
        let one = proof_bytes::<C>();
        if Some(bytes.len()) != one.checked_mul(count) {
            return Err(VerifyError::ProofLength { expected: one.saturating_mul(count), actual: bytes.len() });
        }
        bytes.chunks_exact(one).map(Self::from_bytes).collect()
    }

    /// Whether A, B, C are points of their groups and not infinity: what the pairing equation takes for granted.
    pub(crate) fn check(&self) -> Result<(), VerifyError> {
        let bad = |element, reason| VerifyError::BadPoint { element, reason };
        check_point(&self.a).map_err(|reason| bad("A", reason))?;
        check_point(&self.b).map_err(|reason| bad("B", reason))?;
        check_point(&self.c).map_err(|reason| bad("C", reason))
    }
}

/// Why a point may not enter a pairing; `Ok` if it may.
pub(crate) fn check_point<G: AffineRepr>(point: &G) -> Result<(), &'static str> {
    if bool::from(point.is_identity()) {
        Err("infinity")
    } else if !point.is_canonical() {
        Err("not canonical: a coordinate is not below the base field's modulus")
    } else if !point.is_on_curve() {
        Err("not on the curve")
    } else if !point.is_torsion_free() {
        Err("not in the subgroup of prime order")
    } else {
        Ok(())
    }
}

fn decode<G: AffineRepr>(element: &'static str, bytes: &[u8]) -> Result<G, VerifyError> {
    G::from_compressed(bytes)
        .ok_or(VerifyError::BadPoint { element, reason: "not a canonical encoding of a point in the subgroup" })
}

/// Whether a point is infinity.
pub(crate) fn is_infinity<G: PrimeCurveAffine>(point: &G) -> bool {
    point.is_identity().into()
}
