//! bellperson's `.params` as a source of points.

use std::{fmt, path::Path, sync::OnceLock};

use cuzk_curve::{Curve, GroupId};
use rayon::prelude::*;

use super::{
    Cursor,
    cursor::{Extent, named},
};
use crate::{
    Counts, Digest, FileIdentity, Format, KeyError, KeySource, Origin, Part, ProgressFn, Provenance, Section,
    VerifyingKey,
    codec::{self, Encoded},
    file::{KeyFile, ReadAt},
    ignore_progress, source, stream,
};

/// Points that one thread decodes at a time: 192 KiB in G1 and 384 KiB in G2 of BLS12-381, within its L2 cache.
const POINTS_A_TASK: usize = 1 << 11;

/// An open `.params` file. Opening reads the verifying key and the counts; points are decoded when they are asked for, on
/// all cores.
///
/// Every point that is handed out is canonical, on the curve and not infinity. Whether it lies in the subgroup is
/// [`check_points`](crate::check_points)'s question (the verifying key is checked in full at once).
pub struct ParamsFile<C: Curve> {
    file: KeyFile,
    vk: VerifyingKey<C>,
    ic: Extent,
    sections: [Extent; 5],
    provenance: Provenance,
    content_digest: OnceLock<Digest>,
}

impl<C: Curve> ParamsFile<C> {
    /// Opens a key of unknown origin ([`Provenance::Imported`], not hashed).
    ///
    /// # Errors
    /// A file that is not exactly a key of this curve, from its size and the parts that are read here.
    pub fn open(path: &Path) -> Result<Self, KeyError> {
        Self::open_with(path, Provenance::Imported { source: None })
    }

    /// Opens a key of which the caller knows how it was made.
    ///
    /// # Errors
    /// As [`ParamsFile::open`].
    pub fn open_with(path: &Path, provenance: Provenance) -> Result<Self, KeyError> {
        let file = KeyFile::open(path)?;
        let parse = || {
            let mut cursor = Cursor::new(&file, C::ID);
            let (vk, ic) = cursor.verifying_key::<C>()?;
            let [h, l, a, b_g1, b_g2] = Section::ALL.map(|s| (Part::from(s), s.group()));
            let sections = [
                cursor.extent(h.0, h.1)?,
                cursor.extent(l.0, l.1)?,
                cursor.extent(a.0, a.1)?,
                cursor.extent(b_g1.0, b_g1.1)?,
                cursor.extent(b_g2.0, b_g2.1)?,
            ];
            cursor.finish()?;
            let [h, l, a, b_g1, b_g2] = sections.map(|extent| extent.count);
            Counts { ic: ic.count, h, l, a, b_g1, b_g2 }.check(&file.origin())?;
            Ok((vk, ic, sections))
        };
        let (vk, ic, sections) = parse().map_err(|error| named(&file, Format::Params, C::ID, error))?;
        Ok(Self { file, vk, ic, sections, provenance, content_digest: OnceLock::new() })
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file.len()
    }

    /// BLAKE3 of the file as it is, as `b3sum` prints it, on all cores. Reads the whole file.
    ///
    /// # Errors
    /// Reading fails, or the file changed since it was opened.
    pub fn file_digest(&self, progress: ProgressFn<'_>) -> Result<Digest, KeyError> {
        self.file.hash_all(progress)
    }

    fn read<G: Encoded>(&self, section: Section, group: GroupId, start: usize, out: &mut [G]) -> Result<(), KeyError> {
        let extent = self.sections[section.index()];
        source::check_range(section, group, extent.count, start, out.len())?;
        // The first error in file order, not in the order of threads: the message is the same every time.
        let first = out
            .par_chunks_mut(POINTS_A_TASK)
            .enumerate()
            .map_init(Vec::new, |encoded, (i, points)| {
                let start = start + i * POINTS_A_TASK;
                encoded.resize(size_of_val(points), 0);
                self.file.read_at(encoded, self.offset(section.into(), start))?;
                codec::decode_all(C::ID, encoded, points).map_err(|(index, reason)| {
                    let (part, index) = (Part::from(section), start + index);
                    let (origin, offset) = (self.origin(), self.offset(part, index));
                    KeyError::BadPoint { origin, part, index, offset, reason }
                })
            })
            .find_map_first(Result::err);
        first.map_or(Ok(()), Err)
    }
}

impl<C: Curve> fmt::Debug for ParamsFile<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParamsFile")
            .field("path", &self.file.path())
            .field("curve", &C::ID)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl<C: Curve> KeySource<C> for ParamsFile<C> {
    fn vk(&self) -> &VerifyingKey<C> {
        &self.vk
    }

    fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    fn count(&self, section: Section) -> usize {
        self.sections[section.index()].count
    }

    fn read_g1(&self, section: Section, start: usize, out: &mut [C::G1Affine]) -> Result<(), KeyError> {
        self.read(section, GroupId::G1, start, out)
    }

    fn read_g2(&self, section: Section, start: usize, out: &mut [C::G2Affine]) -> Result<(), KeyError> {
        self.read(section, GroupId::G2, start, out)
    }

    fn digest(&self) -> Result<Digest, KeyError> {
        if let Some(digest) = self.content_digest.get() {
            return Ok(*digest);
        }
        let digest = stream::content_digest(self, &mut ignore_progress)?;
        Ok(*self.content_digest.get_or_init(|| digest))
    }

    fn origin(&self) -> Origin {
        self.file.origin()
    }

    fn offset(&self, part: Part, index: usize) -> u64 {
        let (g1, g2) = (size_of::<C::G1Affine>() as u64, size_of::<C::G2Affine>() as u64);
        let at = |extent: Extent, bytes: u64| extent.offset + index as u64 * bytes;
        match part {
            Part::BetaG1 => g1,
            Part::BetaG2 => 2 * g1,
            Part::GammaG2 => 2 * g1 + g2,
            Part::DeltaG1 => 2 * g1 + 2 * g2,
            Part::DeltaG2 => 3 * g1 + 2 * g2,
            Part::Ic => at(self.ic, g1),
            Part::H => at(self.sections[0], g1),
            Part::L => at(self.sections[1], g1),
            Part::A => at(self.sections[2], g1),
            Part::BG1 => at(self.sections[3], g1),
            Part::BG2 => at(self.sections[4], g2),
            Part::AlphaG1 | Part::Header | Part::VkG1 | Part::VkG2 => 0,
        }
    }

    fn check_unchanged(&self) -> Result<(), KeyError> {
        self.file.check_unchanged()
    }

    fn identity(&self) -> Option<FileIdentity> {
        Some(self.file.identity())
    }
}
