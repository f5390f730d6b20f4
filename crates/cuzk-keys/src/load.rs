//! From any source into memory.

use cuzk_curve::{AffineRepr, Curve, MontgomeryRepr, repr};

use crate::{
    Digest, KeyError, KeySource, ProgressFn, ProvingKey, Section,
    progress::{Reporter, Stage},
    stream,
};

/// Points between two calls of the progress callback.
const POINTS_A_BLOCK: usize = 1 << 18;

impl<C: Curve> ProvingKey<C> {
    /// Reads a whole key into memory. Where the source records digests, every section is compared with its own.
    ///
    /// # Errors
    /// Whatever is wrong with the source; [`KeyError::DigestMismatch`]; [`KeyError::OutOfMemory`];
    /// [`KeyError::Cancelled`].
    pub fn load(source: &dyn KeySource<C>, progress: ProgressFn<'_>) -> Result<Self, KeyError> {
        let mut reporter = Reporter::new(Stage::Load, stream::bytes(source), progress);
        let mut g1 = |section| {
            let read = |start, out: &mut [_]| source.read_g1(section, start, out);
            load::<C, _>(source, section, &mut reporter, read)
        };
        let (h, l, a, b_g1) = (g1(Section::H)?, g1(Section::L)?, g1(Section::A)?, g1(Section::BG1)?);
        let read = |start, out: &mut [_]| source.read_g2(Section::BG2, start, out);
        let b_g2 = load::<C, _>(source, Section::BG2, &mut reporter, read)?;
        source.check_unchanged()?;
        Ok(Self { vk: source.vk().clone(), h, l, a, b_g1, b_g2, provenance: source.provenance().clone() })
    }
}

fn load<C: Curve, G: AffineRepr + MontgomeryRepr>(
    source: &dyn KeySource<C>,
    section: Section,
    reporter: &mut Reporter<'_>,
    read: impl Fn(usize, &mut [G]) -> Result<(), KeyError>,
) -> Result<Vec<G>, KeyError> {
    let mut points = stream::allocate::<G>(source.count(section), section.into())?;
    for (i, block) in points.chunks_mut(POINTS_A_BLOCK).enumerate() {
        read(i * POINTS_A_BLOCK, block)?;
        reporter.advance(size_of_val(block) as u64)?;
    }
    if let Some(expected) = source.section_digest(section) {
        let actual = Digest::of(repr::as_bytes(&points));
        if actual != expected {
            return Err(KeyError::DigestMismatch { origin: source.origin(), part: section.into(), expected, actual });
        }
    }
    Ok(points)
}
