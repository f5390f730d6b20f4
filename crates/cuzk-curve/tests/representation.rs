//! The device representation against an independent big-integer computation: limbs = value · R mod modulus.

use cuzk_curve::{
    AffineRepr, Bls12, Bn256, Curve, CurveId, GroupId, MontgomeryRepr, ScalarRepr,
    repr::{self, CastError},
};
use ff::{Field, PrimeField};
use group::{Curve as _, Group};
use num_bigint::BigUint;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

fn modulus<F: PrimeField>() -> BigUint {
    BigUint::parse_bytes(F::MODULUS.trim_start_matches("0x").as_bytes(), 16).unwrap()
}

fn from_limbs(limbs: &[u64]) -> BigUint {
    BigUint::from_bytes_le(&limbs.iter().flat_map(|l| l.to_le_bytes()).collect::<Vec<_>>())
}

fn scalars<C: Curve>() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let r = modulus::<C::Fr>();
    assert_eq!(from_limbs(&<C::Fr as ScalarRepr>::MODULUS), r);
    assert_eq!(C::ID.two_adicity(), C::Fr::S);
    for value in [C::Fr::ZERO, C::Fr::ONE, -C::Fr::ONE, C::Fr::random(&mut rng)] {
        let integer = BigUint::from_bytes_le(value.to_repr().as_ref());
        let montgomery = from_limbs(repr::as_limbs(&[value]));
        assert_eq!(montgomery, (integer << 256) % &r);
        assert!(value.is_canonical());
    }
    let mut too_large = [C::Fr::ZERO];
    repr::as_limbs_mut(&mut too_large).copy_from_slice(&<C::Fr as ScalarRepr>::MODULUS);
    assert!(!too_large[0].is_canonical());

    let omega = C::Fr::root_of_unity(5).unwrap();
    assert_eq!(omega.pow_vartime([32]), C::Fr::ONE);
    assert_eq!(omega.pow_vartime([16]), -C::Fr::ONE);
    assert!(C::Fr::root_of_unity(C::Fr::S + 1).is_none());
}

fn points<G: AffineRepr>(curve: CurveId, group: GroupId, y_of_minus: impl Fn(&[u64]) -> Vec<u64>) {
    assert_eq!(size_of::<G>(), curve.affine_bytes(group));
    let half = size_of::<G>() / 16;
    assert!(repr::as_limbs(&[G::identity()]).iter().all(|l| *l == 0));
    assert!(G::identity().is_valid());
    let g = G::generator();
    assert!(g.is_valid());
    // -P has the same x and the negated y: x comes first.
    let minus = -g;
    let (a, b) = ([g], [minus]);
    assert_eq!(repr::as_limbs(&a)[..half], repr::as_limbs(&b)[..half]);
    assert_eq!(repr::as_limbs(&b)[half..], y_of_minus(&repr::as_limbs(&a)[half..]));
    let mut off_curve = [g];
    repr::as_limbs_mut(&mut off_curve)[0] ^= 1;
    assert!(!off_curve[0].is_on_curve());
    let mut too_large = [g];
    repr::as_limbs_mut(&mut too_large)[half - 1] = u64::MAX;
    assert!(!too_large[0].is_canonical());
    assert!(!too_large[0].is_valid());
}

fn negate(modulus: &BigUint, limbs: usize) -> impl Fn(&[u64]) -> Vec<u64> {
    let modulus = modulus.clone();
    move |y| {
        y.chunks_exact(limbs)
            .flat_map(|c| {
                let mut digits = ((&modulus - from_limbs(c)) % &modulus).to_u64_digits();
                digits.resize(limbs, 0);
                digits
            })
            .collect()
    }
}

#[test]
fn scalars_are_montgomery_limbs() {
    scalars::<Bls12>();
    scalars::<Bn256>();
}

#[test]
fn points_are_x_then_y() {
    // The base moduli as published (in hexadecimal) with the curves.
    let bls = BigUint::parse_bytes(
        b"1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
        16,
    )
    .unwrap();
    let bn = BigUint::parse_bytes(b"30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47", 16).unwrap();
    points::<blstrs::G1Affine>(CurveId::Bls12_381, GroupId::G1, negate(&bls, 6));
    points::<blstrs::G2Affine>(CurveId::Bls12_381, GroupId::G2, negate(&bls, 6));
    points::<halo2curves::bn256::G1Affine>(CurveId::Bn254, GroupId::G1, negate(&bn, 4));
    points::<halo2curves::bn256::G2Affine>(CurveId::Bn254, GroupId::G2, negate(&bn, 4));
}

#[test]
fn points_outside_the_subgroup_are_told_apart() {
    // x = 4 is on BLS12-381's G1 curve (y^2 = x^3 + 4 has the root of 68), but not of order r.
    let mut bytes = [0u8; 48];
    bytes[0] = 0x80;
    bytes[47] = 4;
    let point = blstrs::G1Affine::from_compressed_unchecked(&bytes).unwrap();
    assert!(AffineRepr::is_on_curve(&point));
    assert!(!AffineRepr::is_torsion_free(&point));
    assert!(!point.is_valid());
}

#[test]
fn casts_refuse_what_does_not_fit() {
    let bytes = vec![0u8; 100];
    assert_eq!(repr::copy_from_bytes::<blstrs::Scalar>(&bytes), Err(CastError::Length { bytes: 100, value_bytes: 32 }));
    let limbs = [0u64; 9];
    // An unaligned slice: skip some bytes of an aligned one.
    let all: Vec<u8> = limbs.iter().flat_map(|l| l.to_le_bytes()).collect();
    let start = (8 - all.as_ptr().addr() % 8) % 8 + 3;
    assert_eq!(
        repr::from_bytes::<blstrs::Scalar>(&all[start..start + 32]),
        Err(CastError::Alignment { misalignment: 3 })
    );
}

#[test]
fn projective_and_affine_agree_over_a_copy() {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let points: Vec<_> = (0..5).map(|_| <Bls12 as pairing::Engine>::G2::random(&mut rng).to_affine()).collect();
    let copied = repr::copy_from_bytes::<blstrs::G2Affine>(repr::as_bytes(&points)).unwrap();
    assert_eq!(points, copied);
}

/// Every compressed encoding that is accepted is the one that is written, and none makes the decoder panic.
fn encodings<G: AffineRepr>() {
    let mut rng = ChaCha20Rng::seed_from_u64(3);
    let point = (G::generator() * G::Scalar::random(&mut rng)).to_affine();
    let encoding = point.to_bytes();
    assert_eq!(G::from_compressed(encoding.as_ref()), Some(point));
    assert_eq!(G::from_compressed(G::identity().to_bytes().as_ref()), Some(G::identity()));
    assert_eq!(G::from_compressed(&encoding.as_ref()[1..]), None);
    assert_eq!(G::from_compressed(&[]), None);
    let mut accepted = 0;
    for _ in 0..2000 {
        let mut bytes = encoding.as_ref().to_vec();
        for _ in 0..rng.gen_range(1..4) {
            let at = rng.gen_range(0..bytes.len());
            bytes[at] = [0, 0xff, rng.r#gen()][rng.gen_range(0..3)];
        }
        if let Some(point) = G::from_compressed(&bytes) {
            assert_eq!(point.to_bytes().as_ref(), bytes);
            assert!(point.is_valid());
            accepted += 1;
        }
    }
    assert!(accepted < 2000);
    assert_eq!(G::from_compressed(&vec![0xff; encoding.as_ref().len()]), None);
}

#[test]
fn compressed_encodings_are_canonical() {
    encodings::<blstrs::G1Affine>();
    encodings::<blstrs::G2Affine>();
    encodings::<halo2curves::bn256::G1Affine>();
    encodings::<halo2curves::bn256::G2Affine>();
}

#[test]
fn points_of_bn254_outside_the_subgroup_are_told_apart() {
    // G2's curve has a cofactor: of the points with small x almost none is of order r. y² = x³ + 3/(9 + u).
    use halo2curves::bn256::{Fq, Fq2, G2Affine};
    let b = Fq2::new(Fq::from(9), Fq::ONE).invert().unwrap() * Fq2::new(Fq::from(3), Fq::ZERO);
    let mut seen = 0;
    for x in 0..20 {
        let x = Fq2::new(Fq::from(x), Fq::ZERO);
        if let Some(y) = Option::<Fq2>::from((x.square() * x + b).sqrt()) {
            let point = G2Affine { x, y };
            assert!(AffineRepr::is_on_curve(&point));
            assert!(!AffineRepr::is_torsion_free(&point));
            seen += 1;
        }
    }
    assert!(seen > 3);
}
