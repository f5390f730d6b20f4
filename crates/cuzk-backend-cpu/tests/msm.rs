//! Multi-scalar multiplication against double-and-add, closed forms, blst's Pippenger and `halo2curves`'s.

use cuzk_backend_cpu::{
    CodePath,
    fixed_base::fixed_base_mul,
    msm::{Bits, MsmError, MsmPoint, PackedAssignment, msm, msm_packed, sum_selected},
};
use ff::{Field, PrimeField};
use group::{Curve, Group, prime::PrimeCurveAffine};
use halo2curves::bn256;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

type Result<A> = <A as PrimeCurveAffine>::Curve;

/// Σ scalars[i]·bases[i] with the curve's own scalar multiplication.
fn naive<A: MsmPoint>(bases: &[A], scalars: &[A::Scalar]) -> Result<A> {
    bases.iter().zip(scalars).map(|(base, scalar)| *base * *scalar).fold(Group::identity(), |a: Result<A>, b| a + b)
}

/// The result of every code path, which must be one.
fn all_paths<A: MsmPoint>(bases: &[A], scalars: &[A::Scalar]) -> Result<A> {
    let results: Vec<_> = CodePath::available().map(|path| msm(path, bases, scalars).unwrap()).collect();
    assert!(results.iter().all(|r| *r == results[0]), "the code paths differ");
    results[0]
}

/// 1·G, 2·G, ..
fn multiples<A: MsmPoint>(len: usize) -> Vec<A> {
    let scalars: Vec<_> = (1..=len as u64).map(A::Scalar::from).collect();
    let mut out = vec![A::identity(); len];
    fixed_base_mul(CodePath::scalar(), &A::generator(), &scalars, &mut out).unwrap();
    out
}

fn random_scalars<A: MsmPoint>(len: usize, seed: u64) -> Vec<A::Scalar> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..len).map(|_| A::Scalar::random(&mut rng)).collect()
}

fn every_group(check: impl Check) {
    check.group::<blstrs::G1Affine>();
    check.group::<blstrs::G2Affine>();
    check.group::<bn256::G1Affine>();
    check.group::<bn256::G2Affine>();
}

trait Check {
    fn group<A: MsmPoint>(&self);
}

macro_rules! every_group_test {
    ($name:ident, $a:ident => $body:block) => {
        #[test]
        fn $name() {
            struct Body;
            impl Check for Body {
                fn group<$a: MsmPoint>(&self) $body
            }
            every_group(Body);
        }
    };
}

every_group_test!(sizes_around_powers_of_two, A => {
    let bases = multiples::<A>(300);
    let scalars = random_scalars::<A>(300, 1);
    for len in [0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 63, 64, 65, 255, 256, 257] {
        assert_eq!(all_paths(&bases[..len], &scalars[..len]), naive(&bases[..len], &scalars[..len]), "{len} points");
    }
});

every_group_test!(closed_form, A => {
    // Σ i · (i·G) = n(n+1)(2n+1)/6 · G
    for n in [1u64 << 12, (1 << 12) + 1, (1 << 13) - 1] {
        let bases = multiples::<A>(n as usize);
        let scalars: Vec<_> = (1..=n).map(A::Scalar::from).collect();
        let sum = A::Scalar::from(n * (n + 1) * (2 * n + 1) / 6);
        assert_eq!(all_paths(&bases, &scalars), A::generator() * sum);
        // Σ (-s) · P = -Σ s · P, and scalars of full size.
        let negated: Vec<_> = scalars.iter().map(|s| -*s).collect();
        assert_eq!(all_paths(&bases, &negated), -(A::generator() * sum));
    }
});

every_group_test!(exceptional_points, A => {
    let n = 3000;
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let scalars = random_scalars::<A>(n, 3);
    let sum: A::Scalar = scalars.iter().sum();
    let g = A::generator();
    let negative = -g;

    // All bases equal; all infinite.
    assert_eq!(all_paths(&vec![g; n], &scalars), g * sum);
    assert_eq!(all_paths(&vec![A::identity(); n], &scalars), Group::identity());

    // P, -P and infinity at random, with few different scalars, so that they meet in the buckets.
    let few: Vec<A::Scalar> = (0..n).map(|_| scalars[rng.gen_range(0..4)]).collect();
    let (mut bases, mut expected) = (Vec::new(), A::Scalar::ZERO);
    for scalar in &few {
        bases.push(match rng.gen_range(0..3) {
            0 => A::identity(),
            1 => {
                expected += scalar;
                g
            }
            _ => {
                expected -= scalar;
                negative
            }
        });
    }
    assert_eq!(all_paths(&bases, &few), g * expected);

    // Each point with its negative: everything cancels.
    let pairs: Vec<A> = multiples::<A>(n / 2).into_iter().flat_map(|p| [p, -p]).collect();
    let doubled: Vec<_> = scalars[..n / 2].iter().flat_map(|s| [*s, *s]).collect();
    assert_eq!(all_paths(&pairs, &doubled), Group::identity());
});

every_group_test!(special_scalars, A => {
    let n = 20_000u64;
    let bases = multiples::<A>(n as usize);
    let all = A::Scalar::from(n * (n + 1) / 2);
    // One bucket gets all points in every window: more than a block, so it is summed in parts.
    let half = A::Scalar::TWO_INV;
    for scalar in [A::Scalar::ZERO, A::Scalar::ONE, -A::Scalar::ONE, half, -half, half - A::Scalar::ONE] {
        assert_eq!(all_paths(&bases, &vec![scalar; n as usize]), A::generator() * (all * scalar));
    }
    // Digits in one window only, and of one value but for a few.
    for exponent in [0u32, 15, 16, 64, 127, 200, 252] {
        let scalar = A::Scalar::from(2).pow_vartime([u64::from(exponent)]);
        let mut scalars = vec![scalar; n as usize];
        scalars[17] = scalar + scalar;
        assert_eq!(all_paths(&bases, &scalars), A::generator() * (scalar * (all + A::Scalar::from(18))));
    }
    // 99 % bits.
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let scalars: Vec<_> = (0..n)
        .map(|_| match rng.gen_range(0..200) {
            0 | 1 => A::Scalar::random(&mut rng),
            roll => A::Scalar::from(roll % 2),
        })
        .collect();
    let sum: A::Scalar = (1..=n).zip(&scalars).map(|(i, s)| A::Scalar::from(i) * s).sum();
    assert_eq!(all_paths(&bases, &scalars), A::generator() * sum);
});

#[test]
fn equals_blst() {
    use blst::MultiPoint;
    let n = 5000;
    let scalars = random_scalars::<blstrs::G1Affine>(n, 5);
    let bytes: Vec<u8> = scalars.iter().flat_map(|s| s.to_bytes_le()).collect();
    let g1 = multiples::<blstrs::G1Affine>(n);
    let points: Vec<blst::blst_p1_affine> = g1.iter().map(|p| *p.as_ref()).collect();
    assert_eq!(all_paths(&g1, &scalars).as_ref(), &points.mult(&bytes, 255));
    let g2 = multiples::<blstrs::G2Affine>(n);
    let points: Vec<blst::blst_p2_affine> = g2.iter().map(|p| *p.as_ref()).collect();
    assert_eq!(all_paths(&g2, &scalars).as_ref(), &points.mult(&bytes, 255));
}

#[test]
fn equals_halo2curves() {
    let n = 5000;
    let scalars = random_scalars::<bn256::G1Affine>(n, 6);
    let g1 = multiples::<bn256::G1Affine>(n);
    assert_eq!(all_paths(&g1, &scalars), halo2curves::msm::msm_best(&scalars, &g1));
    let g2 = multiples::<bn256::G2Affine>(n);
    assert_eq!(all_paths(&g2, &scalars), halo2curves::msm::msm_best(&scalars, &g2));
}

#[test]
fn any_number_of_threads() {
    let n = 40_000;
    let bases = multiples::<bn256::G1Affine>(n);
    let scalars = random_scalars::<bn256::G1Affine>(n, 7);
    let results = [1, 3, 40].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| all_paths(&bases, &scalars))
    });
    let sum: bn256::Fr = (1..=n as u64).zip(&scalars).map(|(i, s)| bn256::Fr::from(i) * s).sum();
    assert!(results.iter().all(|r| *r == bn256::G1Affine::generator() * sum));
}

/// A random assignment: values, and the packed form of them.
struct Packed<S> {
    values: Vec<S>,
    ones: Vec<u64>,
    wide: Vec<u64>,
    rank: Vec<u32>,
    wide_scalars: Vec<S>,
    density: Vec<u64>,
}

impl<S: PrimeField> Packed<S> {
    fn random(len: usize, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let words = len.div_ceil(64);
        let (mut ones, mut wide, mut density) = (vec![0; words], vec![0; words], vec![0; words]);
        let (mut values, mut wide_scalars) = (Vec::new(), Vec::new());
        for v in 0..len {
            let bit = 1u64 << (v % 64);
            values.push(match rng.gen_range(0..100) {
                0..3 => {
                    wide[v / 64] |= bit;
                    wide_scalars.push(S::random(&mut rng));
                    wide_scalars[wide_scalars.len() - 1]
                }
                3..50 => {
                    ones[v / 64] |= bit;
                    S::ONE
                }
                _ => S::ZERO,
            });
            if rng.gen_range(0..3) > 0 {
                density[v / 64] |= bit;
            }
        }
        let rank = wide
            .iter()
            .scan(0, |before, word| {
                *before += word.count_ones();
                Some(*before - word.count_ones())
            })
            .collect();
        Packed { values, ones, wide, rank, wide_scalars, density }
    }

    fn assignment(&self) -> PackedAssignment<'_, S> {
        PackedAssignment {
            ones: Bits::new(&self.ones, self.values.len()).unwrap(),
            wide: Bits::new(&self.wide, self.values.len()).unwrap(),
            rank: &self.rank,
            wide_scalars: &self.wide_scalars,
        }
    }

    fn is_dense(&self, v: usize) -> bool {
        self.density[v / 64] >> (v % 64) & 1 == 1
    }
}

every_group_test!(packed_equals_dense, A => {
    let len = 70_000;
    let packed = Packed::<A::Scalar>::random(len, 8);
    let bases = multiples::<A>(len);
    let density = Bits::new(&packed.density, len).unwrap();
    for range in [0..len, 0..0, 5..6, 63..64, 64..128, 1..65, 130..len - 77, 66_000..len] {
        let dense: Vec<usize> = range.clone().filter(|v| packed.is_dense(*v)).collect();
        let with_density: A::Scalar =
            (1u64..).zip(&dense).map(|(i, v)| A::Scalar::from(i) * packed.values[*v]).sum();
        let without: A::Scalar = (1u64..).zip(range.clone()).map(|(i, v)| A::Scalar::from(i) * packed.values[v]).sum();
        for path in CodePath::available() {
            let result =
                msm_packed(path, &bases[..dense.len()], Some(density), packed.assignment(), range.clone()).unwrap();
            assert_eq!(result, A::generator() * with_density, "{range:?}");
            let result = msm_packed(path, &bases[..range.len()], None, packed.assignment(), range.clone()).unwrap();
            assert_eq!(result, A::generator() * without, "{range:?}");
        }
    }
});

every_group_test!(selected_sums, A => {
    let len = 66_001;
    let packed = Packed::<A::Scalar>::random(len, 9);
    let mut bases = multiples::<A>(len);
    let sum: A::Scalar = (0..len).filter(|v| packed.is_dense(*v)).map(|v| A::Scalar::from(v as u64 + 1)).sum();
    let bits = Bits::new(&packed.density, len).unwrap();
    for path in CodePath::available() {
        assert_eq!(sum_selected(path, &bases, bits).unwrap(), A::generator() * sum);
        assert_eq!(sum_selected::<A>(path, &[], Bits::new(&[], 0).unwrap()).unwrap(), Group::identity());
    }
    // The same point everywhere, and with its negative.
    bases.fill(A::generator());
    let ones = vec![u64::MAX; len.div_ceil(64)];
    let all = Bits::new(&ones, len).unwrap();
    for path in CodePath::available() {
        assert_eq!(sum_selected(path, &bases, all).unwrap(), A::generator() * A::Scalar::from(len as u64));
    }
    bases.iter_mut().skip(1).step_by(2).for_each(|p| *p = -*p);
    for path in CodePath::available() {
        assert_eq!(sum_selected(path, &bases, all).unwrap().to_affine(), A::generator().to_curve().to_affine());
    }
});

#[test]
fn inputs_that_do_not_fit() {
    let path = CodePath::detect();
    let bases = multiples::<bn256::G1Affine>(100);
    let scalars = random_scalars::<bn256::G1Affine>(99, 10);
    let length = |what, expected, actual| MsmError::Length { what, expected, actual };
    assert_eq!(msm(path, &bases, &scalars), Err(length("scalars of an MSM", 100, 99)));
    assert_eq!(Bits::new(&[0; 2], 129).unwrap_err(), length("words of a bitmap", 3, 2));
    let bits = Bits::new(&[0; 2], 128).unwrap();
    assert_eq!(sum_selected(path, &bases, bits), Err(length("bits that select bases", 100, 128)));

    let mut packed = Packed::<bn256::Fr>::random(1000, 11);
    let all = |packed: &Packed<_>, range| msm_packed(path, &bases, None, packed.assignment(), range);
    assert_eq!(all(&packed, 0..101), Err(length("bases", 101, 100)));
    assert_eq!(all(&packed, 950..1050), Err(length("variables up to the end of a range", 1000, 1050)));
    assert_eq!(
        msm_packed(path, &bases, Some(bits), packed.assignment(), 0..100),
        Err(length("bits of a density", 1000, 128))
    );
    let before = packed.rank[1] as usize;
    packed.rank[1] += 1;
    assert_eq!(all(&packed, 0..100), Err(MsmError::Rank { word: 1, expected: before, actual: before + 1 }));
    packed.rank[1] -= 1;
    packed.wide_scalars.pop();
    let wide = packed.wide_scalars.len();
    assert_eq!(all(&packed, 900..1000), Err(length("wide scalars", wide + 1, wide)));
    assert!(all(&packed, 0..100).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Scalars with runs of zeros and ones in their bits, against the closed form.
    #[test]
    fn random_windows(masks in proptest::collection::vec((any::<u64>(), 0u32..256, any::<bool>()), 1..200)) {
        let bases = multiples::<blstrs::G1Affine>(masks.len());
        let scalars: Vec<_> = masks
            .iter()
            .map(|&(bits, shift, negative)| {
                let scalar = blstrs::Scalar::from(bits) * blstrs::Scalar::from(2).pow_vartime([u64::from(shift)]);
                if negative { -scalar } else { scalar }
            })
            .collect();
        let sum: blstrs::Scalar = (1u64..).zip(&scalars).map(|(i, s)| blstrs::Scalar::from(i) * s).sum();
        prop_assert_eq!(all_paths(&bases, &scalars), blstrs::G1Affine::generator() * sum);
    }
}
