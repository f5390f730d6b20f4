//! Multi-scalar multiplications.

use std::ops::Range;

use cuzk_backend::{Bases, BasesSpec, MsmScalars, Residency};
use cuzk_curve::{AffineRepr, Curve, CurveId, GroupId, ScalarRepr};
use ff::{Field, PrimeField};
use rand::Rng;

use crate::{
    Suite,
    matrices::Packed,
    oracle::{multiples, numbers, rng, scalars, sum, witness},
    suite::{Bench, done},
};

/// A device, and which group's sums it computes.
struct Sums<'a> {
    bench: &'a Bench,
    curve: CurveId,
    group: GroupId,
}

impl Sums<'_> {
    fn load<G: AffineRepr>(&self, points: &[G], residency: Residency) -> Bases {
        let spec =
            BasesSpec { curve: self.curve, group: self.group, count: points.len() as u64, residency, multiples: 1 };
        done("load_bases", self.bench.device.load_bases(spec, points))
    }

    fn run<G: AffineRepr>(&self, bases: &Bases, scalars: &MsmScalars<'_>) -> G {
        done("msm", done("msm", self.bench.stream.msm(bases, scalars)).wait())
    }

    /// The sum over points with these logarithms, three times: from device memory (twice) and from pinned memory.
    fn dense<G: AffineRepr<Scalar: ScalarRepr>>(
        &self,
        case: &str,
        points: &[G],
        logarithms: &[G::Scalar],
        scalars: &[G::Scalar],
    ) {
        let (first, len) = (2, scalars.len() as u64);
        let buffer = self.bench.upload(&[&[G::Scalar::ONE; 2], scalars].concat());
        let expected = sum::<G>(scalars, logarithms);
        for residency in [Residency::Device, Residency::Pinned] {
            let bases = self.load(points, residency);
            for _ in 0..2 {
                let got = self.run::<G>(&bases, &MsmScalars::Dense { buffer: &buffer, first, len });
                assert!(got == expected, "{} sum of {len}, {case}, {residency:?}", self.group);
            }
        }
    }
}

fn closed_forms<C: Curve, G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, group: GroupId) {
    let bench = suite.bench();
    let sums = Sums { bench: &bench, curve: C::ID, group };
    let n = 600;
    let (points, logarithms) = (multiples::<G>(n), numbers::<G::Scalar>(n));
    let full = scalars::<G::Scalar>(n, 1);
    let dense = |case: &str, points: &[G], logarithms: &[G::Scalar], scalars: &[G::Scalar]| {
        sums.dense(case, points, logarithms, scalars);
    };

    dense("bases i G and scalars i", &points, &logarithms, &logarithms);
    dense("full-size scalars", &points, &logarithms, &full);
    for (case, scalar) in [
        ("scalars 0", G::Scalar::ZERO),
        ("scalars 1", G::Scalar::ONE),
        ("scalars r - 1", -G::Scalar::ONE),
        ("scalars (r - 1) / 2", -G::Scalar::TWO_INV),
        ("one bucket", G::Scalar::from(2).pow_vartime([100]) + G::Scalar::from(3)),
    ] {
        dense(case, &points, &logarithms, &vec![scalar; n]);
    }
    let bits = witness::<G::Scalar>(n, 2);
    assert!(bits.iter().any(|b| *b != G::Scalar::ZERO && *b != G::Scalar::ONE), "a trivial input");
    dense("99 % bits", &points, &logarithms, &bits);
    let powers: Vec<_> = (0..n as u64).map(|i| G::Scalar::from(2).pow_vartime([i % 254])).collect();
    dense("powers of two", &points, &logarithms, &powers);

    let (point, logarithm) = (points[6], logarithms[6]);
    dense("all bases equal", &vec![point; n], &vec![logarithm; n], &full);
    dense("all bases and scalars equal", &vec![point; n], &vec![logarithm; n], &vec![full[0]; n]);
    // P and -P in the same bucket: nothing remains.
    let signed = |i: usize| if i.is_multiple_of(2) { (point, logarithm) } else { (-point, -logarithm) };
    let (opposite, opposite_logarithms): (Vec<_>, Vec<_>) = (0..n).map(signed).unzip();
    dense("P and -P with equal scalars", &opposite, &opposite_logarithms, &vec![full[0]; n]);
    dense("P and -P with bits", &opposite, &opposite_logarithms, &bits);
    dense("P and -P", &opposite, &opposite_logarithms, &full);
    dense("infinity only", &vec![G::identity(); n], &vec![G::Scalar::ZERO; n], &full);
    let sparse =
        |i: usize| if i.is_multiple_of(3) { (G::identity(), G::Scalar::ZERO) } else { (points[i], logarithms[i]) };
    let (sparse, sparse_logarithms): (Vec<_>, Vec<_>) = (0..n).map(sparse).unzip();
    dense("infinity among others", &sparse, &sparse_logarithms, &full);
    dense("infinity among others with bits", &sparse, &sparse_logarithms, &bits);
}

fn sizes<C: Curve, G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, group: GroupId) {
    let bench = suite.bench();
    let sums = Sums { bench: &bench, curve: C::ID, group };
    let largest = 1 << suite.max_log_n.min(11);
    let around = [64, 512, largest].into_iter().flat_map(|n| [n - 1, n, n + 1]);
    let (points, logarithms) = (multiples::<G>(largest + 1), numbers::<G::Scalar>(largest + 1));
    for n in [0, 1, 2, 3, 31, 33].into_iter().chain(around) {
        sums.dense("any size", &points[..n], &logarithms[..n], &scalars(n, n as u64));
    }
}

fn packed<C: Curve, G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, group: GroupId) {
    let bench = suite.bench();
    let sums = Sums { bench: &bench, curve: C::ID, group };
    let n = 3000;
    let (points, logarithms) = (multiples::<G>(n), numbers::<G::Scalar>(n));
    let packed = Packed::<G::Scalar>::random(n, 3);
    let assignment = packed.upload(&bench, C::ID);
    let mut bits = vec![0u64; n.div_ceil(64)];
    let mut random = rng(4);
    let dense = |bits: &[u64], v: usize| bits[v / 64] >> (v % 64) & 1 == 1;
    for v in (0..n).filter(|_| random.gen_bool(0.6)) {
        bits[v / 64] |= 1 << (v % 64);
    }
    let density = done("load_density", bench.device.load_density(&bits, n as u64));
    let ranges: [Range<usize>; 9] = [0..n, 1..n, 0..1, 5..5, n..n, 64..128, 63..65, 100..2777, n - 1..n];
    for range in ranges {
        for density in [None, Some(&density)] {
            let with_base: Vec<usize> = range.clone().filter(|v| density.is_none() || dense(&bits, *v)).collect();
            let count = with_base.len();
            assert_eq!(
                density.map_or(range.len() as u64, |d| d.count(range.start as u64, range.len() as u64)),
                count as u64
            );
            let scalars: Vec<G::Scalar> = with_base.iter().map(|v| packed.values[*v]).collect();
            let expected = sum::<G>(&scalars, &logarithms[..count]);
            let bases = sums.load(&points[..count], Residency::Device);
            let variables = range.start as u64..range.end as u64;
            let operands = MsmScalars::Assignment { assignment: &assignment, variables, density };
            for _ in 0..2 {
                let got = sums.run::<G>(&bases, &operands);
                assert!(got == expected, "{group} sum over {range:?}, density: {}", density.is_some());
            }
            let buffer = bench.upload(&scalars);
            let unpacked = MsmScalars::Dense { buffer: &buffer, first: 0, len: count as u64 };
            assert!(sums.run::<G>(&bases, &unpacked) == expected, "{group} sum over {range:?}, unpacked");
        }
    }
}

/// Points i·G, equal points, P and −P, infinity; scalars that are extreme, equal, bits, powers of two. In G1.
pub fn with_a_closed_form_g1<C: Curve>(suite: &Suite) {
    closed_forms::<C, C::G1Affine>(suite, GroupId::G1);
}

/// As [`with_a_closed_form_g1`], in G2.
pub fn with_a_closed_form_g2<C: Curve>(suite: &Suite) {
    closed_forms::<C, C::G2Affine>(suite, GroupId::G2);
}

/// No point, one, two, and around powers of two. In G1.
pub fn of_every_size_g1<C: Curve>(suite: &Suite) {
    sizes::<C, C::G1Affine>(suite, GroupId::G1);
}

/// As [`of_every_size_g1`], in G2.
pub fn of_every_size_g2<C: Curve>(suite: &Suite) {
    sizes::<C, C::G2Affine>(suite, GroupId::G2);
}

/// Ranges of a packed assignment, with and without density, against the closed form and the dense sum. In G1.
pub fn packed_equals_dense_g1<C: Curve>(suite: &Suite) {
    packed::<C, C::G1Affine>(suite, GroupId::G1);
}

/// As [`packed_equals_dense_g1`], in G2.
pub fn packed_equals_dense_g2<C: Curve>(suite: &Suite) {
    packed::<C, C::G2Affine>(suite, GroupId::G2);
}
