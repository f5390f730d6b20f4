//! The end of a multi-scalar multiplication on the host: the few points that the device leaves, summed with their weights.

use blst::{blst_fp, blst_fp2};
use cuzk_curve::AffineRepr;
use ff::Field;
use group::Group;
use halo2curves::bn256;

/// A group whose points can be made of XYZZ coordinates, x = X/ZZ and y = Y/ZZZ.
pub(super) trait FromXyzz: AffineRepr {
    /// The point of X, Y, ZZ, ZZZ as Montgomery limbs, one after the other; ZZ = 0 is infinity.
    fn from_xyzz(limbs: &[u64]) -> Self::Curve;
}

fn limbs_at<const N: usize>(limbs: &[u64], i: usize) -> [u64; N] {
    std::array::from_fn(|j| limbs[i * N + j])
}

impl FromXyzz for blstrs::G1Affine {
    fn from_xyzz(limbs: &[u64]) -> Self::Curve {
        let [x, y, zz, zzz] = std::array::from_fn(|i| blst_fp { l: limbs_at::<6>(limbs, i) });
        let mut point = Self::Curve::identity();
        let to = point.as_mut();
        // (X·ZZ, Y·ZZZ, ZZ) are Jacobian coordinates of the same point.
        // SAFETY: field elements of blst's own layout, which no argument shares with another that is written.
        unsafe {
            blst::blst_fp_mul(&mut to.x, &x, &zz);
            blst::blst_fp_mul(&mut to.y, &y, &zzz);
        }
        to.z = zz;
        point
    }
}

impl FromXyzz for blstrs::G2Affine {
    fn from_xyzz(limbs: &[u64]) -> Self::Curve {
        let fp = |i: usize| blst_fp { l: limbs_at::<6>(limbs, i) };
        let [x, y, zz, zzz] = std::array::from_fn(|i| blst_fp2 { fp: [fp(2 * i), fp(2 * i + 1)] });
        let mut point = Self::Curve::identity();
        let to = point.as_mut();
        // SAFETY: as for G1.
        unsafe {
            blst::blst_fp2_mul(&mut to.x, &x, &zz);
            blst::blst_fp2_mul(&mut to.y, &y, &zzz);
        }
        to.z = zz;
        point
    }
}

impl FromXyzz for bn256::G1Affine {
    fn from_xyzz(limbs: &[u64]) -> Self::Curve {
        let [x, y, zz, zzz] = std::array::from_fn(|i| bn256::Fq(limbs_at::<4>(limbs, i)));
        // halo2curves has homogeneous coordinates: (X·ZZZ, Y·ZZ, ZZ·ZZZ); its infinity has y = 1.
        if zz == bn256::Fq::ZERO {
            return Self::Curve::identity();
        }
        bn256::G1 { x: x * zzz, y: y * zz, z: zz * zzz }
    }
}

impl FromXyzz for bn256::G2Affine {
    fn from_xyzz(limbs: &[u64]) -> Self::Curve {
        let fq = |i: usize| bn256::Fq(limbs_at::<4>(limbs, i));
        let [x, y, zz, zzz] = std::array::from_fn(|i| bn256::Fq2::new(fq(2 * i), fq(2 * i + 1)));
        if zz == bn256::Fq2::ZERO {
            return Self::Curve::identity();
        }
        bn256::G2 { x: x * zzz, y: y * zz, z: zz * zzz }
    }
}

/// Σ 2^weight · point, by Horner's rule from the highest weight down.
pub(super) fn weighted_sum<G: FromXyzz>(weights: impl Iterator<Item = u32>, limbs: &[u64]) -> G::Curve {
    let width = size_of::<G>() / 8 * 2;
    let mut terms: Vec<(u32, &[u64])> = weights.zip(limbs.chunks_exact(width)).collect();
    terms.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut sum = G::Curve::identity();
    let mut at = terms.first().map_or(0, |(weight, _)| *weight);
    for (weight, limbs) in terms {
        for _ in weight..at {
            sum = sum.double();
        }
        at = weight;
        sum += G::from_xyzz(limbs);
    }
    for _ in 0..at {
        sum = sum.double();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_curve::repr;
    use group::Curve;

    /// The limbs of an affine point as XYZZ with ZZ = ZZZ = 1.
    fn affine<G: AffineRepr>(point: G, one: &[u64]) -> Vec<u64> {
        [repr::as_limbs(&[point]), one, one].concat()
    }

    fn check<G: FromXyzz>(one: &[u64]) {
        let generator = G::generator();
        let double = generator.to_curve().double().to_affine();
        let infinity = vec![0; size_of::<G>() / 4];
        let limbs = [affine(generator, one), affine(double, one), infinity, affine(generator, one)].concat();
        let sum = weighted_sum::<G>([70, 3, 5, 0].into_iter(), &limbs);
        let expected = G::Scalar::from(2).pow([70]) + G::Scalar::from(16 + 1);
        assert_eq!(sum, generator.to_curve() * expected);
    }

    #[test]
    fn sums_of_points_with_weights_have_their_closed_form() {
        let fp = |x: [u64; 6], zeros: usize| [x.to_vec(), vec![0; zeros]].concat();
        // R mod q, which is 1.
        let one = blst_one();
        check::<blstrs::G1Affine>(&fp(one, 0));
        check::<blstrs::G2Affine>(&fp(one, 6));
        let one = bn256::Fq::ONE.0;
        check::<bn256::G1Affine>(&one);
        check::<bn256::G2Affine>(&[one.to_vec(), vec![0; 4]].concat());
    }

    fn blst_one() -> [u64; 6] {
        let mut one = blst_fp::default();
        // SAFETY: reads six numbers and writes one element.
        unsafe { blst::blst_fp_from_uint64(&mut one, [1u64, 0, 0, 0, 0, 0].as_ptr()) };
        one.l
    }
}
