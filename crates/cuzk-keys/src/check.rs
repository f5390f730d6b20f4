//! Whether every point of a key may enter a computation.

use cuzk_curve::Curve;

use crate::{
    KeyError, KeySource, Part, PointFault, ProgressFn, Section, VerifyingKey, codec,
    progress::{Reporter, Stage},
    stream,
};

/// Checks every point of a key: canonical, on the curve, in the subgroup of order r, and not infinity, on all cores and
/// block by block. Proofs made with other points can be invalid, or leak the witness.
///
/// This is the whole question that a key alone can answer. That its points belong together (that tau is the same
/// everywhere) only a ceremony's transcript can show.
///
/// # Errors
/// [`KeyError::BadPoint`] for the first bad point, with file, part, index and byte offset; whatever is wrong with the
/// source; [`KeyError::Cancelled`].
pub fn check_points<C: Curve>(source: &dyn KeySource<C>, progress: ProgressFn<'_>) -> Result<(), KeyError> {
    let at = |part: Part, index: usize, reason: PointFault| {
        let (origin, offset) = (source.origin(), source.offset(part, index));
        KeyError::BadPoint { origin, part, index, offset, reason }
    };
    check_vk(source.vk()).map_err(|(part, index, reason)| at(part, index, reason))?;
    let mut reporter = Reporter::new(Stage::Check, stream::bytes(source), progress);
    for section in Section::ALL {
        stream::section(source, section, &mut reporter, |start, block| {
            block.check().map_err(|(index, reason)| at(section.into(), start + index, reason))
        })?;
    }
    source.check_unchanged()
}

/// The same for a verifying key: part, index and fault of the first bad point.
pub(crate) fn check_vk<C: Curve>(vk: &VerifyingKey<C>) -> Result<(), (Part, usize, PointFault)> {
    let single = |part| move |reason| (part, 0, reason);
    codec::check(&vk.alpha_g1).map_err(single(Part::AlphaG1))?;
    codec::check(&vk.beta_g1).map_err(single(Part::BetaG1))?;
    codec::check(&vk.beta_g2).map_err(single(Part::BetaG2))?;
    codec::check(&vk.gamma_g2).map_err(single(Part::GammaG2))?;
    codec::check(&vk.delta_g1).map_err(single(Part::DeltaG1))?;
    codec::check(&vk.delta_g2).map_err(single(Part::DeltaG2))?;
    codec::check_all(&vk.ic).map_err(|(index, reason)| (Part::Ic, index, reason))
}
