//! The digest of what a key says, whatever format says it.

use cuzk_curve::{Curve, GroupId, repr};

use crate::{Counts, Digest, Section, VerifyingKey};

/// The context string of the content digest: BLAKE3 in its key derivation mode keeps it apart from every other hash.
const CONTEXT: &str = "cuzk-keys 2026-11 content digest of a Groth16 proving key";

/// The G1 points of a verifying key in the order of the native format.
pub(crate) fn vk_g1<C: Curve>(vk: &VerifyingKey<C>) -> Vec<C::G1Affine> {
    [vk.alpha_g1, vk.beta_g1, vk.delta_g1].into_iter().chain(vk.ic.iter().copied()).collect()
}

/// The G2 points of a verifying key in the order of the native format.
pub(crate) fn vk_g2<C: Curve>(vk: &VerifyingKey<C>) -> [C::G2Affine; 3] {
    [vk.beta_g2, vk.gamma_g2, vk.delta_g2]
}

/// Combines the digests of the sections (BLAKE3 of their Montgomery limbs, in the order of [`Section::ALL`]).
pub(crate) fn digest<C: Curve>(vk: &VerifyingKey<C>, counts: &Counts, sections: &[Digest; 5]) -> Digest {
    let (g1, g2) = (vk_g1(vk), vk_g2(vk));
    let vk_parts = [
        (GroupId::G1, g1.len(), Digest::of(repr::as_bytes(&g1))),
        (GroupId::G2, g2.len(), Digest::of(repr::as_bytes(&g2))),
    ];
    let parts = Section::ALL.into_iter().zip(sections).map(|(s, digest)| (s.group(), counts.of(s), *digest));
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(&(C::ID as u32).to_le_bytes());
    for (group, count, digest) in vk_parts.into_iter().chain(parts) {
        hasher.update(&(group as u32).to_le_bytes());
        hasher.update(&(count as u64).to_le_bytes());
        hasher.update(&digest.0);
    }
    Digest::finish(&hasher)
}
