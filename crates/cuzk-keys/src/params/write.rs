//! Writing bellperson's `.params`.

use std::path::Path;

use cuzk_curve::Curve;

use crate::{
    KeyError, KeySource, Origin, Part, ProgressFn, Section,
    atomic::AtomicFile,
    progress::{Reporter, Stage},
    stream,
};

/// Writes a key as bellperson's `Parameters::write` does, byte for byte, block by block: memory stays below some tens of
/// megabytes. The file appears under its name only when it is complete.
///
/// The format has no room for the provenance: whoever reads the file sees a key of unknown origin. A key whose toxic
/// waste is known ([`Provenance::is_production`](crate::Provenance::is_production) says no) should not be given away.
///
/// # Errors
/// [`KeyError::BadCount`] if a section has more points than 32 bits can count or the counts contradict each other;
/// whatever is wrong with the source, damage of recorded digests included; what the system refuses.
pub fn export_params<C: Curve>(
    source: &dyn KeySource<C>,
    path: &Path,
    progress: ProgressFn<'_>,
) -> Result<(), KeyError> {
    source.counts().check(&source.origin())?;
    // This format records no digests: damage that is not found here would be passed on, perhaps over a good file.
    source.verify_digests(&mut *progress)?;
    let mut file = AtomicFile::create(path)?;
    file.write(&source.vk().to_bytes()?)?;
    let mut reporter = Reporter::new(Stage::Write, stream::bytes(source), progress);
    for section in Section::ALL {
        file.write(&count(source.count(section), section.into())?)?;
        stream::section(source, section, &mut reporter, |_, block| file.write(&block.encode()))?;
    }
    source.check_unchanged()?;
    file.commit()
}

/// The count of a vector as it is stored.
pub(super) fn count(count: usize, part: Part) -> Result<[u8; 4], KeyError> {
    let (origin, rule) = (Origin::Memory, "counts in this format have 32 bits: at most");
    u32::try_from(count).map(u32::to_be_bytes).map_err(|_| KeyError::BadCount {
        origin,
        part,
        declared: count as u64,
        limit: u32::MAX.into(),
        rule,
    })
}
