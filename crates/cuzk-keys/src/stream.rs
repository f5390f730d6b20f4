//! All points of a key, block by block: the memory of a pass does not depend on the size of the key.

use cuzk_curve::{AffineRepr, Curve, GroupId, repr};

use crate::{
    Digest, KeyError, KeySource, Part, PointFault, ProgressFn, Section, codec, content,
    progress::{Reporter, Stage},
};

/// Points in a block: 6 MiB in G1 and 12 MiB in G2 of BLS12-381.
const POINTS_A_BLOCK: usize = 1 << 16;

/// Consecutive points of one section.
pub(crate) enum Block<'a, C: Curve> {
    G1(&'a [C::G1Affine]),
    G2(&'a [C::G2Affine]),
}

impl<C: Curve> Block<'_, C> {
    /// The Montgomery limbs.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::G1(points) => repr::as_bytes(points),
            Self::G2(points) => repr::as_bytes(points),
        }
    }

    /// The form of bellperson's files.
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::G1(points) => codec::encode_all(points),
            Self::G2(points) => codec::encode_all(points),
        }
    }

    /// The index in the block and the fault of the first bad point.
    pub(crate) fn check(&self) -> Result<(), (usize, PointFault)> {
        match self {
            Self::G1(points) => codec::check_all(points),
            Self::G2(points) => codec::check_all(points),
        }
    }
}

/// Bytes of all sections in memory.
pub(crate) fn bytes<C: Curve>(source: &dyn KeySource<C>) -> u64 {
    Section::ALL.into_iter().map(|s| source.count(s) as u64 * C::ID.affine_bytes(s.group()) as u64).sum()
}

/// Calls back with the blocks of one section in order, and the index of the first point of each.
pub(crate) fn section<C: Curve>(
    source: &dyn KeySource<C>,
    section: Section,
    reporter: &mut Reporter<'_>,
    mut each: impl FnMut(usize, Block<'_, C>) -> Result<(), KeyError>,
) -> Result<(), KeyError> {
    let count = source.count(section);
    let mut visit = |start, block: Block<'_, C>| {
        let bytes = block.as_bytes().len() as u64;
        each(start, block)?;
        reporter.advance(bytes)
    };
    match section.group() {
        GroupId::G1 => {
            let read = |start, points: &mut [_]| source.read_g1(section, start, points);
            in_blocks(count, section.into(), read, |start, points| visit(start, Block::G1(points)))
        }
        GroupId::G2 => {
            let read = |start, points: &mut [_]| source.read_g2(section, start, points);
            in_blocks(count, section.into(), read, |start, points| visit(start, Block::G2(points)))
        }
    }
}

fn in_blocks<G: AffineRepr>(
    count: usize,
    part: Part,
    read: impl Fn(usize, &mut [G]) -> Result<(), KeyError>,
    mut each: impl FnMut(usize, &[G]) -> Result<(), KeyError>,
) -> Result<(), KeyError> {
    let mut points = allocate::<G>(count.min(POINTS_A_BLOCK), part)?;
    let mut start = 0;
    while start < count {
        let block = &mut points[..POINTS_A_BLOCK.min(count - start)];
        read(start, block)?;
        each(start, block)?;
        start += block.len();
    }
    Ok(())
}

/// The content digest of a source that does not record the digests of its sections.
pub(crate) fn content_digest<C: Curve>(
    source: &dyn KeySource<C>,
    progress: ProgressFn<'_>,
) -> Result<Digest, KeyError> {
    let mut reporter = Reporter::new(Stage::Hash, bytes(source), progress);
    let mut digests = [Digest([0; 32]); 5];
    for (part, digest) in Section::ALL.into_iter().zip(&mut digests) {
        let mut hasher = blake3::Hasher::new();
        section(source, part, &mut reporter, |_, block| {
            hasher.update_rayon(block.as_bytes());
            Ok(())
        })?;
        *digest = Digest::finish(&hasher);
    }
    source.check_unchanged()?;
    Ok(content::digest(source.vk(), &source.counts(), &digests))
}

/// Room for points, all infinity. Counts come from files: memory that is not there is an error, not an abort.
pub(crate) fn allocate<G: AffineRepr>(count: usize, part: Part) -> Result<Vec<G>, KeyError> {
    let mut points = Vec::new();
    points
        .try_reserve_exact(count)
        .map_err(|_| KeyError::OutOfMemory { part, requested: (count as u64).saturating_mul(size_of::<G>() as u64) })?;
    points.resize(count, G::identity());
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        let error = allocate::<blstrs::G1Affine>(usize::MAX / 100, Part::H).unwrap_err();
        assert!(matches!(error, KeyError::OutOfMemory { part: Part::H, .. }), "{error}");
    }
}
