//! A native key as a source of points.

use std::{fmt, path::Path};

use cuzk_curve::{AffineRepr, Curve, CurveId, GroupId, repr};

use super::header::{ALIGNMENT, Entry, Header};
use crate::{
    Counts, Digest, FileIdentity, KeyError, KeySource, Origin, Part, ProgressFn, Provenance, Section, VerifyingKey,
    check, content,
    file::{KeyFile, ReadAt},
    progress::{Reporter, Stage},
    source, stream,
};

/// An open native key. Opening reads the header and the verifying key and checks both in full; sections are read when
/// they are asked for, as they are.
///
/// [`KeySource::read_g1`] and [`KeySource::read_g2`] do not look at what they read. [`ProvingKey::load`] compares every
/// section with its digest; who reads slices calls [`KeySource::verify_digests`] once before.
///
/// [`ProvingKey::load`]: crate::ProvingKey::load
pub struct NativeKeyFile<C: Curve> {
    file: KeyFile,
    vk: VerifyingKey<C>,
    header: Header,
    counts: Counts,
}

impl<C: Curve> NativeKeyFile<C> {
    /// Opens a native key.
    ///
    /// # Errors
    /// A file that is not a native key of this version and curve; a size, count or offset that contradicts another; a
    /// damaged header or verifying key; a bad point in the verifying key.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        let file = KeyFile::open(path)?;
        let header = read_header(&file)?;
        let origin = file.origin();
        if header.curve != C::ID {
            return Err(KeyError::WrongCurve { origin, expected: C::ID, found: header.curve });
        }
        let [vk_g1, vk_g2, ..] = &header.entries;
        let (g1, g2) = (read_whole::<C::G1Affine>(&file, vk_g1)?, read_whole::<C::G2Affine>(&file, vk_g2)?);
        let vk = assemble(&g1, &g2, &origin)?;
        let counts = header.counts(vk.ic.len())?;
        counts.check(&origin)?;
        let key = Self { file, vk, header, counts };
        check::check_vk(&key.vk).map_err(|(part, index, reason)| {
            let offset = key.offset(part, index);
            KeyError::BadPoint { origin, part, index, offset, reason }
        })?;
        Ok(key)
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file.len()
    }

    /// Where the points of a section start in the file, in bytes: a multiple of 4096. The section is contiguous, and
    /// filled up with zeros to the next such multiple.
    pub fn section_offset(&self, section: Section) -> u64 {
        self.entry(section).offset
    }

    /// BLAKE3 of the file as it is, as `b3sum` prints it, on all cores. Reads the whole file.
    ///
    /// # Errors
    /// Reading fails, or the file changed since it was opened.
    pub fn file_digest(&self, progress: ProgressFn<'_>) -> Result<Digest, KeyError> {
        self.file.hash_all(progress)
    }

    fn entry(&self, section: Section) -> &Entry {
        let [_, _, h, l, a, b_g1, b_g2] = &self.header.entries;
        match section {
            Section::H => h,
            Section::L => l,
            Section::A => a,
            Section::BG1 => b_g1,
            Section::BG2 => b_g2,
        }
    }

    fn read<G: AffineRepr>(
        &self,
        section: Section,
        group: GroupId,
        start: usize,
        out: &mut [G],
    ) -> Result<(), KeyError> {
        source::check_range(section, group, self.counts.of(section), start, out.len())?;
        let offset = self.offset(section.into(), start);
        self.file.read_parallel(repr::as_bytes_mut(out), offset)
    }

    /// The zeros after a section: no digest covers them, and they are few.
    fn check_padding(&self, entry: &Entry) -> Result<(), KeyError> {
        let start = entry.offset + entry.bytes;
        let mut padding = vec![0; (entry.padded_end() - start) as usize];
        self.file.read_at(&mut padding, start)?;
        let nonzero = padding.iter().position(|byte| *byte != 0);
        nonzero.map_or(Ok(()), |at| {
            Err(KeyError::BadField {
                path: self.file.path().to_owned(),
                field: "padding",
                offset: start + at as u64,
                found: padding[at].into(),
                rule: "sections are filled up with zeros",
            })
        })
    }
}

/// A whole section that is small, compared with its digest.
fn read_whole<G: AffineRepr>(file: &KeyFile, entry: &Entry) -> Result<Vec<G>, KeyError> {
    let mut points = stream::allocate::<G>(entry.len()?, entry.part)?;
    file.read_parallel(repr::as_bytes_mut(&mut points), entry.offset)?;
    let (expected, actual) = (entry.digest, Digest::of(repr::as_bytes(&points)));
    if expected != actual {
        return Err(KeyError::DigestMismatch { origin: file.origin(), part: entry.part, expected, actual });
    }
    Ok(points)
}

/// The verifying key from the points of its two sections.
fn assemble<C: Curve>(g1: &[C::G1Affine], g2: &[C::G2Affine], origin: &Origin) -> Result<VerifyingKey<C>, KeyError> {
    let bad_count = |part, declared: usize| KeyError::BadCount {
        origin: origin.clone(),
        part,
        declared: declared as u64,
        limit: 3,
        rule: "without ic it must have exactly",
    };
    let [alpha_g1, beta_g1, delta_g1, ic @ ..] = g1 else { return Err(bad_count(Part::VkG1, g1.len())) };
    let [beta_g2, gamma_g2, delta_g2] = g2 else { return Err(bad_count(Part::VkG2, g2.len())) };
    Ok(VerifyingKey {
        alpha_g1: *alpha_g1,
        beta_g1: *beta_g1,
        beta_g2: *beta_g2,
        gamma_g2: *gamma_g2,
        delta_g1: *delta_g1,
        delta_g2: *delta_g2,
        ic: ic.to_vec(),
    })
}

impl<C: Curve> fmt::Debug for NativeKeyFile<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeKeyFile")
            .field("path", &self.file.path())
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

impl<C: Curve> KeySource<C> for NativeKeyFile<C> {
    fn vk(&self) -> &VerifyingKey<C> {
        &self.vk
    }

    fn provenance(&self) -> &Provenance {
        &self.header.provenance
    }

    fn count(&self, section: Section) -> usize {
        self.counts.of(section)
    }

    fn read_g1(&self, section: Section, start: usize, out: &mut [C::G1Affine]) -> Result<(), KeyError> {
        self.read(section, GroupId::G1, start, out)
    }

    fn read_g2(&self, section: Section, start: usize, out: &mut [C::G2Affine]) -> Result<(), KeyError> {
        self.read(section, GroupId::G2, start, out)
    }

    /// From the digests in the header: true of the sections only after [`KeySource::verify_digests`].
    fn digest(&self) -> Result<Digest, KeyError> {
        let [_, _, sections @ ..] = self.header.entries;
        Ok(content::digest(&self.vk, &self.counts, &sections.map(|entry| entry.digest)))
    }

    fn section_digest(&self, section: Section) -> Option<Digest> {
        Some(self.entry(section).digest)
    }

    /// Compares every section with its digest, and finds non-zero bytes between sections ([`KeyError::BadField`]).
    fn verify_digests(&self, progress: ProgressFn<'_>) -> Result<(), KeyError> {
        let mut reporter = Reporter::new(Stage::Hash, self.header.entries.iter().map(|e| e.bytes).sum(), progress);
        for entry in &self.header.entries {
            let actual = self.file.hash(entry.offset, entry.bytes, &mut reporter)?;
            if actual != entry.digest {
                let (origin, part, expected) = (self.origin(), entry.part, entry.digest);
                return Err(KeyError::DigestMismatch { origin, part, expected, actual });
            }
            self.check_padding(entry)?;
        }
        self.file.check_unchanged()
    }

    fn origin(&self) -> Origin {
        self.file.origin()
    }

    fn offset(&self, part: Part, index: usize) -> u64 {
        let [vk_g1, vk_g2, h, l, a, b_g1, b_g2] = &self.header.entries;
        let (entry, before) = match part {
            Part::VkG1 | Part::AlphaG1 => (vk_g1, 0),
            Part::BetaG1 => (vk_g1, 1),
            Part::DeltaG1 => (vk_g1, 2),
            Part::Ic => (vk_g1, 3),
            Part::VkG2 | Part::BetaG2 => (vk_g2, 0),
            Part::GammaG2 => (vk_g2, 1),
            Part::DeltaG2 => (vk_g2, 2),
            Part::H => (h, 0),
            Part::L => (l, 0),
            Part::A => (a, 0),
            Part::BG1 => (b_g1, 0),
            Part::BG2 => (b_g2, 0),
            Part::Header => return 0,
        };
        entry.offset + (before + index as u64) * C::ID.affine_bytes(entry.group) as u64
    }

    fn check_unchanged(&self) -> Result<(), KeyError> {
        self.file.check_unchanged()
    }

    fn identity(&self) -> Option<FileIdentity> {
        Some(self.file.identity())
    }
}

/// The curve of a native key that is not known yet.
pub(crate) fn curve_of(file: &KeyFile) -> Result<CurveId, KeyError> {
    read_header(file).map(|header| header.curve)
}

fn read_header(file: &KeyFile) -> Result<Header, KeyError> {
    let mut head = vec![0; file.len().min(ALIGNMENT) as usize];
    file.read_at(&mut head, 0)?;
    Header::parse(&head, file.len(), file.path())
}
