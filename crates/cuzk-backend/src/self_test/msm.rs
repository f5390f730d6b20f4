//! Multi-scalar multiplications whose sum is known in advance, and multiples of one point.

use cuzk_curve::{AffineRepr, GroupId, ScalarRepr, repr};
use ff::{Field, PrimeField};
use group::{Curve, Group};

use super::{Tester, scalars};
use crate::{AssignmentView, Bases, BasesSpec, FixedBasePlan, MsmScalars, Residency, Result};

/// Enough for a bucket method to have several windows and buckets of more than one point.
const N: usize = 200;

/// Every operation of one group.
pub(super) fn group<G: AffineRepr<Scalar: ScalarRepr>>(tester: &Tester<'_>, group: GroupId) -> Result<()> {
    let multiples = multiples::<G>();
    let points: Vec<G> = multiples.iter().map(|(_, point)| *point).collect();
    let spec = BasesSpec { curve: tester.curve, group, count: N as u64, residency: Residency::Device, multiples: 1 };
    let bases = tester.device.load_bases(spec, &points)?;
    dense(tester, group, &bases, &multiples)?;
    packed(tester, group, &bases, &multiples)?;
    fixed_base::<G>(tester, group)
}

/// Points with their logarithms: small multiples of the generator and their negatives in turn, each several times, and infinity.
fn multiples<G: AffineRepr<Scalar: ScalarRepr>>() -> Vec<(G::Scalar, G)> {
    let mut list = Vec::with_capacity(N);
    let (mut factor, mut point) = (G::Scalar::ONE, G::generator().to_curve());
    while list.len() < N {
        let affine = point.to_affine();
        list.extend([(factor, affine), (-factor, -affine), (factor, affine), (G::Scalar::ZERO, G::identity())]);
        factor = factor.double() + G::Scalar::ONE;
        point = point.double() + G::generator();
        if list.len() % 32 == 0 {
            (factor, point) = (G::Scalar::ONE, G::generator().to_curve());
        }
    }
    list.truncate(N);
    list
}

fn sum<G: AffineRepr<Scalar: ScalarRepr>>(logarithm: G::Scalar) -> G {
    (G::generator() * logarithm).to_affine()
}

fn dense<G: AffineRepr<Scalar: ScalarRepr>>(
    tester: &Tester<'_>,
    group: GroupId,
    bases: &Bases,
    multiples: &[(G::Scalar, G)],
) -> Result<()> {
    let two_to = |bits: u64| G::Scalar::from(2).pow_vartime([bits]);
    let skewed = [
        G::Scalar::ZERO,
        G::Scalar::ONE,
        -G::Scalar::ONE,
        two_to(64) - G::Scalar::ONE,
        two_to(128),
        two_to(u64::from(G::Scalar::NUM_BITS) - 1),
    ];
    let cases: [(&str, Vec<G::Scalar>); 5] = [
        ("of full-size scalars", scalars(N, 11)),
        ("of skewed scalars", (0..N).map(|i| skewed[i % skewed.len()]).collect()),
        ("with one hot bucket", vec![two_to(77) + G::Scalar::from(3); N]),
        ("of scalars r - 1", vec![-G::Scalar::ONE; N]),
        ("of zeros", vec![G::Scalar::ZERO; N]),
    ];
    for (case, scalars) in cases {
        // One scalar more in front: the sum starts at scalar number 1.
        let buffer = tester.upload(&[&[G::Scalar::from(5)], &scalars[..]].concat())?;
        let pending = tester.stream.msm(bases, &MsmScalars::Dense { buffer: &buffer, first: 1, len: N as u64 })?;
        let logarithm = scalars.iter().zip(multiples).map(|(s, (m, _))| *s * m).sum();
        tester.expect(pending.wait::<G>()? == sum(logarithm), || format!("the {group} sum {case}"))?;
    }
    Ok(())
}

/// Variables 3.. of an assignment, of which every third has no base: N of the rest have.
fn packed<G: AffineRepr<Scalar: ScalarRepr>>(
    tester: &Tester<'_>,
    group: GroupId,
    bases: &Bases,
    multiples: &[(G::Scalar, G)],
) -> Result<()> {
    const N_VARIABLES: usize = 3 + N + N / 2;
    const WORDS: usize = N_VARIABLES.div_ceil(64);
    let wide = scalars::<G::Scalar>(N_VARIABLES, 13);
    // 1, 0, 1, a wide one, 0, 1, 1, a wide one, …
    let value = |v: usize| match v % 7 {
        3 => wide[v],
        1 | 4 => G::Scalar::ZERO,
        _ => G::Scalar::ONE,
    };
    let bitmap = |set: &dyn Fn(usize) -> bool| {
        let mut words = [0u64; WORDS];
        (0..N_VARIABLES).filter(|v| set(*v)).for_each(|v| words[v / 64] |= 1 << (v % 64));
        words
    };
    let (ones, wide_bits) = (bitmap(&|v| value(v) == G::Scalar::ONE), bitmap(&|v| v % 7 == 3));
    let mut rank = [0u32; WORDS];
    for word in 1..WORDS {
        rank[word] = rank[word - 1] + wide_bits[word - 1].count_ones();
    }
    let wide_scalars: Vec<G::Scalar> = (3..N_VARIABLES).step_by(7).map(value).collect();
    let assignment = tester.stream.upload_assignment(&AssignmentView {
        curve: tester.curve,
        n_variables: N_VARIABLES as u64,
        ones: &ones,
        wide: &wide_bits,
        rank: &rank,
        wide_scalars: repr::as_bytes(&wide_scalars),
    })?;
    let density = tester.device.load_density(&bitmap(&|v| v % 3 != 2), N_VARIABLES as u64)?;
    let dot = |variables: &mut dyn Iterator<Item = usize>| -> G::Scalar {
        variables.zip(multiples).map(|(v, (m, _))| value(v) * m).sum()
    };
    let cases = [
        (3..N_VARIABLES, Some(&density), dot(&mut (3..N_VARIABLES).filter(|v| v % 3 != 2))),
        (5..5 + N, None, dot(&mut (5..5 + N))),
    ];
    for (variables, density, logarithm) in cases {
        let what = if density.is_some() { "with" } else { "without" };
        let variables = variables.start as u64..variables.end as u64;
        let scalars = MsmScalars::Assignment { assignment: &assignment, variables, density };
        let pending = tester.stream.msm(bases, &scalars)?;
        tester.expect(pending.wait::<G>()? == sum(logarithm), || {
            format!("the {group} sum over a packed assignment {what} density")
        })?;
    }
    Ok(())
}

fn fixed_base<G: AffineRepr<Scalar: ScalarRepr>>(tester: &Tester<'_>, group: GroupId) -> Result<()> {
    let mut scalars = scalars::<G::Scalar>(20, 17);
    scalars.extend([G::Scalar::ZERO, G::Scalar::ONE, -G::Scalar::ONE, G::Scalar::from(u64::MAX)]);
    let base = sum::<G>(G::Scalar::from(1_234_567));
    let mut points = vec![G::identity(); scalars.len()];
    let (device_scalars, out) = (tester.upload(&scalars)?, tester.device.alloc_for::<G>(points.len() as u64)?);
    let plan = FixedBasePlan {
        curve: tester.curve,
        group,
        base: repr::as_bytes(&[base]).to_vec(),
        count: scalars.len() as u64,
    };
    tester.stream.fixed_base_mul(&plan, &device_scalars, &out)?;
    tester.stream.download_bytes(&out, 0, repr::as_bytes_mut(&mut points))?;
    for (scalar, point) in scalars.iter().zip(points) {
        tester.expect(point == (base * scalar).to_affine(), || format!("a multiple of a point of {group}"))?;
    }
    Ok(())
}
