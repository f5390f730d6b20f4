//! Multiples of one point against the curves' own multiplication.

use cuzk_backend_cpu::{
    CodePath,
    fixed_base::fixed_base_mul,
    msm::{MsmError, MsmPoint},
};
use ff::Field;
use group::{Curve, prime::PrimeCurveAffine};
use halo2curves::bn256;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

fn check<A: MsmPoint>(base: A, scalars: &[A::Scalar]) {
    for path in CodePath::available() {
        let mut out = vec![A::generator(); scalars.len()];
        fixed_base_mul(path, &base, scalars, &mut out).unwrap();
        for (i, (scalar, point)) in scalars.iter().zip(&out).enumerate() {
            let expected: A = (base * *scalar).to_affine();
            assert_eq!(*point, expected, "scalar {i}");
            assert!(point.is_canonical() && point.is_on_curve());
        }
    }
}

fn group<A: MsmPoint>() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let half = A::Scalar::ONE.double().invert().unwrap();
    let mut scalars = vec![A::Scalar::ZERO, A::Scalar::ONE, -A::Scalar::ONE, half, -half];
    scalars.extend((0..40).map(|_| A::Scalar::random(&mut rng)));
    scalars.extend((0..255u64).map(|i| A::Scalar::from(2).pow_vartime([i])));
    for base in [A::generator(), (A::generator() * scalars[7]).to_affine(), A::identity()] {
        check(base, &scalars);
    }
    for len in [0, 1, 2, 3, 7, 8, 9] {
        check(A::generator(), &scalars[scalars.len() - len..]);
    }
    // More than a block, with a closed form instead of so many multiplications: consecutive multiples.
    let scalars: Vec<_> = (0..5000u64).map(|i| A::Scalar::from(i) - A::Scalar::from(2500)).collect();
    for path in CodePath::available() {
        let mut out = vec![A::identity(); scalars.len()];
        fixed_base_mul(path, &A::generator(), &scalars, &mut out).unwrap();
        assert!(bool::from(out[2500].is_identity()));
        for pair in out.windows(2) {
            assert_eq!(pair[0].to_curve() + A::generator().to_curve(), pair[1].to_curve());
        }
    }
}

#[test]
fn bls12_381() {
    group::<blstrs::G1Affine>();
    group::<blstrs::G2Affine>();
}

#[test]
fn bn254() {
    group::<bn256::G1Affine>();
    group::<bn256::G2Affine>();
}

#[test]
fn different_lengths() {
    let mut out = [bn256::G1Affine::identity(); 2];
    let scalars = [bn256::Fr::ONE];
    assert_eq!(
        fixed_base_mul(CodePath::detect(), &bn256::G1Affine::generator(), &scalars, &mut out),
        Err(MsmError::Length { what: "places for the multiples of a point", expected: 1, actual: 2 })
    );
}
