//! Points as bellperson's formats store them: uncompressed, by the curve's own encoding.
//!
//! | | coordinates | order in G2 | infinity |
//! |---|---|---|---|
//! | BLS12-381 | 48 bytes, big-endian; three flag bits on top | x.c1 x.c0 y.c1 y.c0 | second flag bit |
//! | BN254 | 32 bytes, little-endian; no flags | x.c0 x.c1 y.c0 y.c1 | all zero |

use cuzk_curve::{AffineRepr, CurveId, GroupId};
use group::UncompressedEncoding;
use rayon::prelude::*;

use crate::PointFault;

/// A point that can be stored in bellperson's formats.
pub(crate) trait Encoded: AffineRepr + UncompressedEncoding {}

impl<G: AffineRepr + UncompressedEncoding> Encoded for G {}

/// Bytes of one encoded point: as many as it has in memory.
pub(crate) const fn encoded_bytes(curve: CurveId, group: GroupId) -> usize {
    curve.affine_bytes(group)
}

/// Decodes a point: canonical, on the curve, and not infinity. It may lie outside the subgroup.
pub(crate) fn decode<G: Encoded>(curve: CurveId, bytes: &[u8]) -> Result<G, PointFault> {
    // blst takes a set first bit for the compressed form and would ignore the second half of the bytes.
    if curve == CurveId::Bls12_381 && bytes[0] & 0x80 != 0 {
        return Err(PointFault::Flags);
    }
    // halo2curves panics on a coordinate of Fq2 that is not below the modulus.
    if curve == CurveId::Bn254 && !is_canonical(curve, bytes) {
        return Err(PointFault::NotCanonical);
    }
    let mut encoding = G::Uncompressed::default();
    encoding.as_mut().copy_from_slice(bytes);
    let point: Option<G> = G::from_uncompressed_unchecked(&encoding).into();
    let point = point.ok_or_else(|| fault(curve, bytes))?;
    if point.is_identity().into() {
        return Err(PointFault::Infinity);
    }
    // blst checks the curve equation in its decoder, whatever the name "unchecked" says; halo2curves does not.
    if curve == CurveId::Bn254 && !point.is_on_curve() {
        return Err(PointFault::NotOnCurve);
    }
    Ok(point)
}

/// Decodes consecutive points, as many as fit `out`. The error holds the index of the first bad one.
pub(crate) fn decode_all<G: Encoded>(curve: CurveId, bytes: &[u8], out: &mut [G]) -> Result<(), (usize, PointFault)> {
    for (index, (point, encoding)) in out.iter_mut().zip(bytes.chunks_exact(size_of::<G>())).enumerate() {
        *point = decode(curve, encoding).map_err(|reason| (index, reason))?;
    }
    Ok(())
}

/// Encodes points one after the other, on all cores.
pub(crate) fn encode_all<G: Encoded>(points: &[G]) -> Vec<u8> {
    const POINTS_A_TASK: usize = 1 << 10;
    let mut bytes = vec![0; size_of_val(points)];
    bytes.par_chunks_mut(POINTS_A_TASK * size_of::<G>()).zip(points.par_chunks(POINTS_A_TASK)).for_each(
        |(bytes, points)| {
            for (encoding, point) in bytes.chunks_exact_mut(size_of::<G>()).zip(points) {
                encoding.copy_from_slice(point.to_uncompressed().as_ref());
            }
        },
    );
    bytes
}

/// All that a point must satisfy.
pub(crate) fn check<G: AffineRepr>(point: &G) -> Result<(), PointFault> {
    if point.is_identity().into() {
        Err(PointFault::Infinity)
    } else if !point.is_canonical() {
        Err(PointFault::NotCanonical)
    } else if !point.is_on_curve() {
        Err(PointFault::NotOnCurve)
    } else if !point.is_torsion_free() {
        Err(PointFault::NotInSubgroup)
    } else {
        Ok(())
    }
}

/// Checks points on all cores. The error holds the index of the first bad one.
pub(crate) fn check_all<G: AffineRepr>(points: &[G]) -> Result<(), (usize, PointFault)> {
    let first = points.par_iter().enumerate().find_map_first(|(index, point)| check(point).err().map(|e| (index, e)));
    first.map_or(Ok(()), Err)
}

/// Why a decoder refused bytes, which it does not say.
fn fault(curve: CurveId, bytes: &[u8]) -> PointFault {
    let (x, _) = bytes.split_at(bytes.len() / 2);
    if curve == CurveId::Bls12_381 && bytes[0] & 0xe0 != 0 {
        PointFault::Flags
    } else if !is_canonical(curve, bytes) {
        PointFault::NotCanonical
    } else if x.iter().all(|byte| *byte == 0) {
        // blst refuses x = 0 on sight: no point with it has order r.
        PointFault::NotInSubgroup
    } else {
        PointFault::NotOnCurve
    }
}

/// Whether every encoded coordinate, free of flags, is below the modulus of the base field.
fn is_canonical(curve: CurveId, bytes: &[u8]) -> bool {
    // The moduli, big-endian.
    const BLS12_381: [u8; 48] = [
        0x1a, 0x01, 0x11, 0xea, 0x39, 0x7f, 0xe6, 0x9a, 0x4b, 0x1b, 0xa7, 0xb6, 0x43, 0x4b, 0xac, 0xd7, 0x64, 0x77,
        0x4b, 0x84, 0xf3, 0x85, 0x12, 0xbf, 0x67, 0x30, 0xd2, 0xa0, 0xf6, 0xb0, 0xf6, 0x24, 0x1e, 0xab, 0xff, 0xfe,
        0xb1, 0x53, 0xff, 0xff, 0xb9, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xaa, 0xab,
    ];
    const BN254: [u8; 32] = [
        0x30, 0x64, 0x4e, 0x72, 0xe1, 0x31, 0xa0, 0x29, 0xb8, 0x50, 0x45, 0xb6, 0x81, 0x81, 0x58, 0x5d, 0x97, 0x81,
        0x6a, 0x91, 0x68, 0x71, 0xca, 0x8d, 0x3c, 0x20, 0x8c, 0x16, 0xd8, 0x7c, 0xfd, 0x47,
    ];
    match curve {
        CurveId::Bls12_381 => bytes.chunks_exact(BLS12_381.len()).all(|c| c < &BLS12_381[..]),
        CurveId::Bn254 => bytes.chunks_exact(BN254.len()).all(|c| c.iter().rev().lt(BN254.iter())),
    }
}
