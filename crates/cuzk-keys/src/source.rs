//! What a prover needs from a key, wherever the key lies.

use cuzk_curve::{Curve, GroupId, MontgomeryRepr, repr};

use crate::{
    Counts, Digest, FileIdentity, KeyError, Origin, Part, ProgressFn, Provenance, ProvingKey, Section, VerifyingKey,
    content,
};

/// A proving key that is read section by section, in any order and any slices, from several threads at once.
///
/// Implemented by [`ProvingKey`] (a copy in memory), [`ParamsFile`](crate::ParamsFile) (decoded on the fly) and
/// [`NativeKeyFile`](crate::NativeKeyFile) (read as it is). The trait is object safe: `&dyn KeySource<Bls12>`.
pub trait KeySource<C: Curve>: Send + Sync {
    /// The verifying key, which every source holds in memory.
    fn vk(&self) -> &VerifyingKey<C>;

    /// How the key was made.
    fn provenance(&self) -> &Provenance;

    /// How many points a section has.
    fn count(&self, section: Section) -> usize;

    /// Fills `out` with the points of a G1 section from index `start` on.
    ///
    /// # Errors
    /// [`KeyError::OutOfRange`] if the section has fewer points or lies in G2; whatever is wrong with the file or a point.
    fn read_g1(&self, section: Section, start: usize, out: &mut [C::G1Affine]) -> Result<(), KeyError>;

    /// Fills `out` with the points of a G2 section from index `start` on.
    ///
    /// # Errors
    /// As [`KeySource::read_g1`].
    fn read_g2(&self, section: Section, start: usize, out: &mut [C::G2Affine]) -> Result<(), KeyError>;

    /// Digest of the content: curve, verifying key and points, without provenance. Equal for the same key in every
    /// format; the computation is described with [the native format](crate::native). A file that does not record it is
    /// read once, and remembers.
    ///
    /// # Errors
    /// Whatever is wrong with the file.
    fn digest(&self) -> Result<Digest, KeyError>;

    /// What errors name.
    fn origin(&self) -> Origin;

    /// Where a point lies: its offset in the file in bytes (for a key in memory: in the vector). The index is not checked.
    fn offset(&self, part: Part, index: usize) -> u64;

    /// BLAKE3 of the Montgomery limbs of a section, if the source records it: what its points must hash to.
    fn section_digest(&self, section: Section) -> Option<Digest> {
        let _ = section;
        None
    }

    /// Reads everything that the source records digests of, and compares.
    ///
    /// # Errors
    /// [`KeyError::DigestMismatch`] for the first part that is damaged; reading fails; [`KeyError::Cancelled`].
    fn verify_digests(&self, progress: ProgressFn<'_>) -> Result<(), KeyError> {
        let _ = progress;
        Ok(())
    }

    /// What the system says of the file, if the key lies in one, as it was when it was opened.
    fn identity(&self) -> Option<FileIdentity> {
        None
    }

    /// Whether what was read up to now can all come from one state of the file.
    ///
    /// # Errors
    /// [`KeyError::Shrunk`] or [`KeyError::Changed`] if the file was written to since it was opened.
    fn check_unchanged(&self) -> Result<(), KeyError> {
        Ok(())
    }

    /// How many points each vector has.
    fn counts(&self) -> Counts {
        Counts {
            ic: self.vk().ic.len(),
            h: self.count(Section::H),
            l: self.count(Section::L),
            a: self.count(Section::A),
            b_g1: self.count(Section::BG1),
            b_g2: self.count(Section::BG2),
        }
    }
}

impl<C: Curve> KeySource<C> for ProvingKey<C> {
    fn vk(&self) -> &VerifyingKey<C> {
        &self.vk
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    fn count(&self, section: Section) -> usize {
        self.counts().of(section)
    }

    fn read_g1(&self, section: Section, start: usize, out: &mut [C::G1Affine]) -> Result<(), KeyError> {
        let points: &[C::G1Affine] = match section {
            Section::H => &self.h,
            Section::L => &self.l,
            Section::A => &self.a,
            Section::BG1 => &self.b_g1,
            Section::BG2 => &[],
        };
        copy(points, section, GroupId::G1, start, out)
    }

    fn read_g2(&self, section: Section, start: usize, out: &mut [C::G2Affine]) -> Result<(), KeyError> {
        let points: &[C::G2Affine] = match section {
            Section::BG2 => &self.b_g2,
            Section::H | Section::L | Section::A | Section::BG1 => &[],
        };
        copy(points, section, GroupId::G2, start, out)
    }

    fn digest(&self) -> Result<Digest, KeyError> {
        let g1 = |points: &[C::G1Affine]| Digest::of(repr::as_bytes(points));
        let sections = [g1(&self.h), g1(&self.l), g1(&self.a), g1(&self.b_g1), Digest::of(repr::as_bytes(&self.b_g2))];
        Ok(content::digest(&self.vk, &self.counts(), &sections))
    }

    fn origin(&self) -> Origin {
        Origin::Memory
    }

    fn offset(&self, part: Part, index: usize) -> u64 {
        let bytes = match part {
            Part::VkG2 | Part::BetaG2 | Part::GammaG2 | Part::DeltaG2 | Part::BG2 => size_of::<C::G2Affine>(),
            _ => size_of::<C::G1Affine>(),
        };
        (index * bytes) as u64
    }
}

fn copy<G: MontgomeryRepr>(
    points: &[G],
    section: Section,
    group: GroupId,
    start: usize,
    out: &mut [G],
) -> Result<(), KeyError> {
    check_range(section, group, points.len(), start, out.len())?;
    out.copy_from_slice(&points[start..start + out.len()]);
    Ok(())
}

/// Whether a request lies within a section that has `count` points in `group`.
pub(crate) fn check_range(
    section: Section,
    group: GroupId,
    count: usize,
    start: usize,
    len: usize,
) -> Result<(), KeyError> {
    let count = if section.group() == group { count } else { 0 };
    match start.checked_add(len) {
        Some(end) if end <= count => Ok(()),
        _ => Err(KeyError::OutOfRange { part: section.into(), group, start, len, count }),
    }
}
