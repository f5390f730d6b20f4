//! Writing native keys.

use std::path::Path;

use cuzk_curve::{Curve, repr};

use super::header::{ALIGNMENT, Entry, Header};
use crate::{
    Digest, KeyError, KeySource, ParamsFile, Part, ProgressFn, Provenance, Section,
    atomic::AtomicFile,
    content,
    progress::{Reporter, Stage},
    stream,
};

/// Writes any key in the native format, with the provenance that the source states, block by block: memory stays below
/// some tens of megabytes. The file appears under its name only when it is complete.
///
/// # Errors
/// [`KeyError::BadCount`] if the counts contradict each other; whatever is wrong with the source; what the system
/// refuses; [`KeyError::Cancelled`].
pub fn write_native<C: Curve>(
    source: &dyn KeySource<C>,
    path: &Path,
    progress: ProgressFn<'_>,
) -> Result<(), KeyError> {
    write(source, source.provenance().clone(), path, progress)
}

/// Converts bellperson's `.params` to the native format. A key of unknown origin is hashed first, so that its provenance
/// names the file that it was imported from: that is one pass more.
///
/// # Errors
/// As [`write_native`].
pub fn convert<C: Curve>(params: &ParamsFile<C>, path: &Path, progress: ProgressFn<'_>) -> Result<(), KeyError> {
    let provenance = match params.provenance() {
        Provenance::Imported { source: None } => {
            Provenance::Imported { source: Some(params.file_digest(&mut *progress)?) }
        }
        known => known.clone(),
    };
    write(params, provenance, path, progress)
}

fn write<C: Curve>(
    source: &dyn KeySource<C>,
    provenance: Provenance,
    path: &Path,
    progress: ProgressFn<'_>,
) -> Result<(), KeyError> {
    let counts = source.counts();
    counts.check(&source.origin())?;
    let mut header = Header::new(C::ID, provenance, &counts).ok_or_else(|| KeyError::BadCount {
        origin: source.origin(),
        part: Part::Header,
        declared: u64::MAX,
        limit: u64::MAX,
        rule: "the sections together must fit a file: bytes at most",
    })?;
    let mut file = AtomicFile::create(path)?;
    // The digests are not known yet: the header is written last, over these zeros.
    file.write(&[0; ALIGNMENT as usize])?;
    let [vk_g1, vk_g2, sections @ ..] = &mut header.entries;
    let vk = source.vk();
    write_whole(&mut file, vk_g1, repr::as_bytes(&content::vk_g1(vk)))?;
    write_whole(&mut file, vk_g2, repr::as_bytes(&content::vk_g2(vk)))?;
    let mut reporter = Reporter::new(Stage::Write, stream::bytes(source), progress);
    for (section, entry) in Section::ALL.into_iter().zip(sections) {
        let mut hasher = blake3::Hasher::new();
        stream::section(source, section, &mut reporter, |_, block| {
            hasher.update_rayon(block.as_bytes());
            file.write(block.as_bytes())
        })?;
        entry.digest = Digest::finish(&hasher);
        pad(&mut file, entry)?;
    }
    source.check_unchanged()?;
    file.write_at(&header.encode(), 0)?;
    file.commit()
}

fn write_whole(file: &mut AtomicFile, entry: &mut Entry, bytes: &[u8]) -> Result<(), KeyError> {
    entry.digest = Digest::of(bytes);
    file.write(bytes)?;
    pad(file, entry)
}

fn pad(file: &mut AtomicFile, entry: &Entry) -> Result<(), KeyError> {
    let zeros = entry.padded_end() - entry.offset - entry.bytes;
    file.write(&[0; ALIGNMENT as usize][..zeros as usize])
}
