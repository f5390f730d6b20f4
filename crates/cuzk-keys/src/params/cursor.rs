//! Reading bellperson's formats from front to back, with every length checked before it is used.

use cuzk_curve::{Curve, CurveId, GroupId, with_curve};

use crate::{
    Format, KeyError, LooksLike, Part, PointFault, VerifyingKey,
    codec::{self, Encoded},
    file::{ReadAt, looks_like},
    stream,
};

/// A position in a source.
pub(crate) struct Cursor<'a, R: ?Sized> {
    source: &'a R,
    curve: CurveId,
    position: u64,
}

/// Where a vector of points lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Offset of the first point in bytes.
    pub(crate) offset: u64,
    pub(crate) count: usize,
}

impl<'a, R: ReadAt + ?Sized> Cursor<'a, R> {
    pub(crate) fn new(source: &'a R, curve: CurveId) -> Self {
        Self { source, curve, position: 0 }
    }

    /// Steps over bytes that belong to a part; returns where they start.
    fn step(&mut self, part: Part, bytes: u64) -> Result<u64, KeyError> {
        let (start, actual) = (self.position, self.source.len());
        let expected = start.saturating_add(bytes);
        if expected > actual {
            return Err(KeyError::Truncated { origin: self.source.origin(), part, expected, actual });
        }
        self.position = expected;
        Ok(start)
    }

    /// A point, checked in full.
    fn point<G: Encoded>(&mut self, part: Part) -> Result<G, KeyError> {
        let mut bytes = vec![0; size_of::<G>()];
        let offset = self.step(part, bytes.len() as u64)?;
        self.source.read_at(&mut bytes, offset)?;
        codec::decode(self.curve, &bytes)
            .and_then(|point| codec::check(&point).map(|()| point))
            .map_err(|reason| self.bad_point(part, 0, offset, reason))
    }

    /// A count and the points that follow it, which are stepped over.
    pub(crate) fn extent(&mut self, part: Part, group: GroupId) -> Result<Extent, KeyError> {
        let mut count = [0; 4];
        let at = self.step(part, 4)?;
        self.source.read_at(&mut count, at)?;
        let count = u32::from_be_bytes(count);
        let offset = self.step(part, u64::from(count) * codec::encoded_bytes(self.curve, group) as u64)?;
        Ok(Extent { offset, count: count as usize })
    }

    /// A verifying key, every point of it checked in full.
    pub(crate) fn verifying_key<C: Curve>(&mut self) -> Result<(VerifyingKey<C>, Extent), KeyError> {
        let alpha_g1 = self.point(Part::AlphaG1)?;
        let beta_g1 = self.point(Part::BetaG1)?;
        let beta_g2 = self.point(Part::BetaG2)?;
        let gamma_g2 = self.point(Part::GammaG2)?;
        let delta_g1 = self.point(Part::DeltaG1)?;
        let delta_g2 = self.point(Part::DeltaG2)?;
        let extent = self.extent(Part::Ic, GroupId::G1)?;
        if extent.count == 0 {
            let (origin, rule) = (self.source.origin(), "the constant one is always an input: at least");
            return Err(KeyError::BadCount { origin, part: Part::Ic, declared: 0, limit: 1, rule });
        }
        let mut ic = stream::allocate::<C::G1Affine>(extent.count, Part::Ic)?;
        let point_bytes = size_of::<C::G1Affine>();
        // In pieces, so that the encoded form of a long vector does not lie in memory beside it.
        for (i, points) in ic.chunks_mut(1 << 12).enumerate() {
            let start = i << 12;
            let mut bytes = vec![0; size_of_val(points)];
            self.source.read_at(&mut bytes, extent.offset + (start * point_bytes) as u64)?;
            codec::decode_all(self.curve, &bytes, points).and_then(|()| codec::check_all(points)).map_err(
                |(index, reason)| {
                    let index = start + index;
                    self.bad_point(Part::Ic, index, extent.offset + (index * point_bytes) as u64, reason)
                },
            )?;
        }
        Ok((VerifyingKey { alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, ic }, extent))
    }

    /// An error unless everything has been read.
    pub(crate) fn finish(self) -> Result<(), KeyError> {
        let (expected, actual) = (self.position, self.source.len());
        if expected != actual {
            return Err(KeyError::TrailingBytes { origin: self.source.origin(), expected, actual });
        }
        Ok(())
    }

    fn bad_point(&self, part: Part, index: usize, offset: u64, reason: PointFault) -> KeyError {
        KeyError::BadPoint { origin: self.source.origin(), part, index, offset, reason }
    }
}

/// Gives an error of a parser its better name, where the source is recognizably something else.
pub(crate) fn named<R: ReadAt + ?Sized>(source: &R, expected: Format, curve: CurveId, error: KeyError) -> KeyError {
    let is_about_content = matches!(
        error,
        KeyError::Truncated { .. }
            | KeyError::TrailingBytes { .. }
            | KeyError::BadCount { .. }
            | KeyError::BadPoint { .. }
    );
    if !is_about_content {
        return error;
    }
    let origin = source.origin();
    if let Some(found) = CurveId::ALL.into_iter().find(|other| *other != curve && starts_with_points_of(source, *other))
    {
        return KeyError::WrongCurve { origin, expected: curve, found };
    }
    match looks_like(source) {
        Ok(LooksLike::Unknown) => error,
        Ok(found) => KeyError::NotAKey { origin, expected, found },
        Err(error) => error,
    }
}

/// Whether a source starts as a verifying key of this curve does: four points of it. That does not happen by chance.
pub(crate) fn starts_with_points_of<R: ReadAt + ?Sized>(source: &R, curve: CurveId) -> bool {
    fn starts<C: Curve, R: ReadAt + ?Sized>(source: &R) -> Result<(), KeyError> {
        let mut cursor = Cursor::new(source, C::ID);
        cursor.point::<C::G1Affine>(Part::AlphaG1)?;
        cursor.point::<C::G1Affine>(Part::BetaG1)?;
        cursor.point::<C::G2Affine>(Part::BetaG2)?;
        cursor.point::<C::G2Affine>(Part::GammaG2)?;
        Ok(())
    }
    with_curve!(curve, C => starts::<C, R>(source)).is_ok()
}
