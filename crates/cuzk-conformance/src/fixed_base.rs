//! Multiples of one point.

use cuzk_backend::FixedBasePlan;
use cuzk_curve::{AffineRepr, Curve, CurveId, GroupId, ScalarRepr, repr};
use ff::Field;
use group::Curve as _;

use crate::{
    Suite,
    oracle::scalars,
    suite::{Bench, done},
};

fn check<G: AffineRepr<Scalar: ScalarRepr>>(bench: &Bench, curve: CurveId, group: GroupId, base: G, n: usize) {
    let mut scalars = scalars::<G::Scalar>(n, n as u64);
    let extremes = [G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from(2), -G::Scalar::from(2)];
    for (scalar, extreme) in scalars.iter_mut().zip(extremes) {
        *scalar = extreme;
    }
    let expected: Vec<G> = scalars.iter().map(|s| (base * s).to_affine()).collect();
    let plan = FixedBasePlan { curve, group, base: repr::as_bytes(&[base]).to_vec(), count: n as u64 };
    let buffer = bench.upload(&scalars);
    let out = bench.upload(&vec![G::generator(); n + 1]);
    for _ in 0..2 {
        done("fixed_base_mul", bench.stream.fixed_base_mul(&plan, &buffer, &out));
        let got = bench.download(&out, vec![G::identity(); n + 1]);
        assert!(got[..n] == expected, "{n} multiples in {group}");
        assert!(got[n] == G::generator(), "a point behind the {n} multiples has changed");
    }
    let mut got = vec![G::identity(); n];
    let stream = &bench.stream;
    done("fixed_base_mul_slice", stream.fixed_base_mul_slice(&base, &scalars, &mut got));
    assert!(got == expected, "{n} multiples in {group}, from ordinary memory");
}

fn group<G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, curve: CurveId, group: GroupId) {
    let bench = suite.bench();
    let base = (G::generator() * scalars::<G::Scalar>(1, 5)[0]).to_affine();
    for n in [0, 1, 2, 100, 513] {
        check(&bench, curve, group, base, n);
    }
    check(&bench, curve, group, G::generator(), 7);
    check(&bench, curve, group, G::identity(), 7);
}

/// Random multiples, and those by 0, 1, r − 1, 2, r − 2; of infinity too. In G1.
pub fn multiples_g1<C: Curve>(suite: &Suite) {
    group::<C::G1Affine>(suite, C::ID, GroupId::G1);
}

/// As [`multiples_g1`], in G2.
pub fn multiples_g2<C: Curve>(suite: &Suite) {
    group::<C::G2Affine>(suite, C::ID, GroupId::G2);
}
