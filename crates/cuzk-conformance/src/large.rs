//! Sums of many points: the sizes and the special cases at which a device changes its method.

use cuzk_backend::{Bases, BasesSpec, MsmScalars, Residency};
use cuzk_curve::{AffineRepr, Curve, CurveId, GroupId, ScalarRepr};
use ff::Field;
use group::Curve as _;
use rand::Rng;

use crate::{
    Suite,
    oracle::{numbers, rng, scalars, sum, witness},
    suite::{Bench, done},
};

/// The sizes around powers of two start here; [`crate::msm`] has those below.
const SMALLEST: u32 = 12;
/// And end here; larger ones are random.
const LARGEST_AROUND: u32 = 20;
const RANDOM_SIZES: usize = 3;

struct Sums<'a> {
    bench: &'a Bench,
    curve: CurveId,
    group: GroupId,
}

impl Sums<'_> {
    /// 1·G, 2·G, …, n·G, made by the device.
    fn multiples<G: AffineRepr<Scalar: ScalarRepr>>(&self, numbers: &[G::Scalar]) -> Vec<G> {
        let mut points = vec![G::identity(); numbers.len()];
        let made = self.bench.stream.fixed_base_mul_slice(&G::generator(), numbers, &mut points);
        done("fixed_base_mul_slice", made);
        let last = (G::generator() * numbers[numbers.len() - 1]).to_affine();
        assert!(points[0] == G::generator() && points[points.len() - 1] == last, "multiples in {}", self.group);
        points
    }

    fn load<G: AffineRepr>(&self, points: &[G]) -> Bases {
        let (count, residency) = (points.len() as u64, Residency::Device);
        let spec = BasesSpec { curve: self.curve, group: self.group, count, residency, multiples: 1 };
        done("load_bases", self.bench.device.load_bases(spec, points))
    }

    /// The sum, twice.
    fn check<G: AffineRepr<Scalar: ScalarRepr>>(&self, case: &str, points: &[G], scalars: &[G::Scalar], expected: G) {
        let (bases, buffer) = (self.load(points), self.bench.upload(scalars));
        for _ in 0..2 {
            let operands = MsmScalars::Dense { buffer: &buffer, first: 0, len: scalars.len() as u64 };
            let got: G = done("msm", done("msm", self.bench.stream.msm(&bases, &operands)).wait());
            assert!(got == expected, "{} sum of {}, {case}", self.group, scalars.len());
        }
    }
}

fn sizes<C: Curve, G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, group: GroupId) {
    let bench = suite.roomy_bench();
    let sums = Sums { bench: &bench, curve: C::ID, group };
    let largest = 1usize << suite.max_log_n;
    let mut random = rng(11);
    let around = (SMALLEST..=LARGEST_AROUND).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1]);
    let random_sizes = (0..RANDOM_SIZES).map(|_| random.gen_range(largest / 2..largest));
    let mut sizes: Vec<usize> = around.chain(random_sizes).chain([largest]).filter(|n| *n <= largest).collect();
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > RANDOM_SIZES + 1, "2^{} leaves nothing to check", suite.max_log_n);

    let logarithms = numbers::<G::Scalar>(largest);
    let (points, full) = (sums.multiples::<G>(&logarithms), scalars::<G::Scalar>(largest, 12));
    let (mut done_to, mut logarithm) = (0, G::Scalar::ZERO);
    for n in sizes {
        logarithm += full[done_to..n].iter().zip(&logarithms[done_to..n]).map(|(s, l)| *s * l).sum::<G::Scalar>();
        done_to = n;
        sums.check("full-size scalars", &points[..n], &full[..n], (G::generator() * logarithm).to_affine());
    }
}

fn special<C: Curve, G: AffineRepr<Scalar: ScalarRepr>>(suite: &Suite, group: GroupId) {
    let bench = suite.roomy_bench();
    let sums = Sums { bench: &bench, curve: C::ID, group };
    let n = (1usize << suite.max_log_n) + 3;
    let logarithms = numbers::<G::Scalar>(n);
    let (points, full) = (sums.multiples::<G>(&logarithms), scalars::<G::Scalar>(n, 13));
    let check = |case: &str, points: &[G], logarithms: &[G::Scalar], scalars: &[G::Scalar]| {
        sums.check(case, points, scalars, sum::<G>(scalars, logarithms));
    };
    let mapped = |f: &dyn Fn(usize) -> (G, G::Scalar)| -> (Vec<G>, Vec<G::Scalar>) { (0..n).map(f).unzip() };

    check("one hot bucket", &points, &logarithms, &vec![full[0]; n]);
    check("scalars r - 1", &points, &logarithms, &vec![-G::Scalar::ONE; n]);
    check("99 % bits", &points, &logarithms, &witness(n, 14));
    let (point, logarithm) = (points[6], logarithms[6]);
    let (equal, equal_logarithms) = (vec![point; n], vec![logarithm; n]);
    check("all bases equal", &equal, &equal_logarithms, &full);
    check("all bases and scalars equal", &equal, &equal_logarithms, &vec![full[0]; n]);
    drop((equal, equal_logarithms));
    // P and -P in the same bucket: in pairs nothing remains.
    let (opposite, opposite_logarithms) =
        mapped(&|i| if i.is_multiple_of(2) { (point, logarithm) } else { (-point, -logarithm) });
    check("P and -P with equal scalars", &opposite, &opposite_logarithms, &vec![full[0]; n]);
    check("P and -P", &opposite, &opposite_logarithms, &full);
    drop((opposite, opposite_logarithms));
    let (sparse, sparse_logarithms) = mapped(&|i| {
        if i.is_multiple_of(3) { (G::identity(), G::Scalar::ZERO) } else { (points[i], logarithms[i]) }
    });
    check("infinity among others", &sparse, &sparse_logarithms, &full);
}

/// Around each power of two from 2^12 to 2^20, and three random sizes above half of 2^max_log_n. In G1.
pub fn sums_of_every_size_g1<C: Curve>(suite: &Suite) {
    sizes::<C, C::G1Affine>(suite, GroupId::G1);
}

/// As [`sums_of_every_size_g1`], in G2.
pub fn sums_of_every_size_g2<C: Curve>(suite: &Suite) {
    sizes::<C, C::G2Affine>(suite, GroupId::G2);
}

/// 2^max_log_n + 3 points: equal, opposite, at infinity; scalars: equal, r − 1, nearly all 0 and 1. In G1.
pub fn special_sums_g1<C: Curve>(suite: &Suite) {
    special::<C, C::G1Affine>(suite, GroupId::G1);
}

/// As [`special_sums_g1`], in G2.
pub fn special_sums_g2<C: Curve>(suite: &Suite) {
    special::<C, C::G2Affine>(suite, GroupId::G2);
}
