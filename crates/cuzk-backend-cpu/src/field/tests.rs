//! Every row against the portable field, which is blst's or `halo2curves`'s: random programs of operations, run on both.

use proptest::{collection::vec, prelude::*};

use super::{
    portable::{BlsFp, BnFp},
    *,
};

/// A field whose elements are W words, and 2^exponent with the exponent that makes up for a row's other Montgomery radix.
trait Oracle<const W: usize>: PrimeLanes<Stored = Self> + PartialEq {
    const P: [u64; W];

    fn from_words(words: [u64; W]) -> Self {
        Self::import_x(&words)
    }

    fn words(&self) -> [u64; W] {
        let mut words = [0; W];
        Self::export_x(self, &mut words);
        words
    }
}

impl Oracle<6> for BlsFp {
    const P: [u64; 6] = constants::BLS12_381;
}

impl Oracle<4> for BnFp {
    const P: [u64; 4] = constants::BN254;
}

/// Words of an element, rich in the values at which carries and reductions go wrong.
fn element<const W: usize>(p: [u64; W]) -> impl Strategy<Value = [u64; W]> {
    let reduce = move |mut words: [u64; W]| {
        words[W - 1] %= p[W - 1] + 1;
        constants::reduce_once(&words, &p)
    };
    let small = move |value: u64| {
        let mut words = [0; W];
        words[0] = value;
        words
    };
    let minus = move |words: [u64; W]| {
        let mut borrow = 0;
        std::array::from_fn(|i| {
            let (d, b1) = p[i].overflowing_sub(words[i]);
            let (d, b2) = d.overflowing_sub(borrow);
            borrow = u64::from(b1 | b2);
            d
        })
    };
    prop_oneof![
        4 => any::<[u64; W]>().prop_map(reduce),
        1 => (0u64..3).prop_map(small),
        1 => (1u64..4).prop_map(move |value| minus(small(value))),
        // Limbs of 52 bits that are all ones or all zeros.
        2 => any::<u8>().prop_map(move |pattern| {
            let bit = |i: usize| u64::from(pattern >> (i / 52) & 1) << (i % 64);
            reduce(std::array::from_fn(|word| (64 * word..64 * word + 64).map(bit).sum()))
        }),
        // One bit beside a boundary of limbs or words.
        1 => (0..64 * W - 3).prop_map(move |bit| {
            let mut words = [0; W];
            words[bit / 64] = 1 << (bit % 64);
            reduce(words)
        }),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Mul,
    Square,
    MulDifference,
    SubTight(Mask),
    SubTwo,
    SignedDifference(Mask),
    MulSum,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Mul),
        Just(Op::Square),
        Just(Op::MulDifference),
        any::<Mask>().prop_map(Op::SubTight),
        Just(Op::SubTwo),
        any::<Mask>().prop_map(Op::SignedDifference),
        Just(Op::MulSum),
    ]
}

/// An operation and its operands among four registers.
type Step = (Op, [usize; 4]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((op(), [0..4usize, 0..4usize, 0..4usize, 0..4usize]), 1..40)
}

/// Applies an operation; every result is tight. `product` is the product in the radix of the row.
fn apply<F: PrimeLanes>(op: Op, [a, b, c, d]: [&F; 4], lane: Option<usize>, product: &dyn Fn(&F, &F) -> F) -> F {
    // A single lane sees its own bit of a mask.
    let mask = |mask: Mask| lane.map_or(mask, |lane| mask >> lane & 1);
    match op {
        Op::Mul => product(a, b),
        Op::Square if lane.is_none() => a.square(),
        Op::Square => product(a, a),
        Op::MulDifference => product(&a.sub(b), &c.add(d)),
        Op::SubTight(flip) => a.sub_tight(b, mask(flip)),
        Op::SubTwo => a.sub_two(b, c),
        Op::SignedDifference(negative) => product(&a.neg_if(mask(negative)).sub(b), c),
        Op::MulSum if lane.is_none() => F::mul_sum(&a.sub(b), c, &b.add(c), d),
        Op::MulSum => product(&a.sub(b), c).add(&product(&b.add(c), d)),
    }
}

fn run_program<const W: usize, O: Oracle<W>, F: PrimeLanes>(
    radix_bits: usize,
    inputs: &[Vec<[u64; W]>],
    steps: &[Step],
) {
    // A native product has the factor 2^(-64W), a product of rows 2^(-radix_bits).
    let factor = O::from_words(constants::pow2(&O::P, 128 * W - radix_bits));
    let native_product = |a: &O, b: &O| a.mul(b).mul(&factor);
    let mut expected: Vec<Vec<O>> =
        inputs.iter().map(|lanes| lanes.iter().map(|&w| O::from_words(w)).collect()).collect();
    let stored: Vec<Vec<F::Stored>> =
        inputs.iter().map(|lanes| lanes.iter().map(|w| F::import_x(w)).collect()).collect();
    let mut rows: Vec<F> = stored.iter().map(|lanes| F::load(|i| &lanes[i])).collect();
    for (count, &(op, operands)) in steps.iter().enumerate() {
        let row = apply(op, operands.map(|i| &rows[i]), None, &|a: &F, b: &F| a.mul(b));
        let lanes: Vec<O> = (0..F::LANES)
            .map(|lane| apply(op, operands.map(|i| &expected[i][lane]), Some(lane), &native_product))
            .collect();
        let mut out = [F::STORED_ZERO; 8];
        let base = out.as_mut_ptr();
        // SAFETY: `out` has a place for each lane.
        unsafe { row.store(|i| base.add(i)) };
        let zeros = row.is_zero();
        for (lane, expected) in lanes.iter().enumerate() {
            let mut words = [0; W];
            F::export_x(&out[lane], &mut words);
            assert_eq!(words, expected.words(), "{op:?} in lane {lane}");
            assert_eq!(zeros >> lane & 1, expected.is_zero(), "{op:?} in lane {lane}");
        }
        // What comes back from memory is the same row, and a difference knows its zeros.
        let row = F::load(|i| &out[i]);
        let other = &rows[operands[0]];
        let difference = row.sub(other);
        assert_eq!(difference.maybe_zero() & difference.is_zero(), difference.is_zero());
        let equal = (0..F::LANES).filter(|&lane| lanes[lane] == expected[operands[0]][lane]);
        assert_eq!(difference.is_zero(), equal.fold(0, |mask, lane| mask | 1 << lane));
        rows[count % 4] = row;
        expected[count % 4] = lanes;
    }
}

fn inversion<const W: usize, O: Oracle<W>, F: PrimeLanes>(words: &[[u64; W]]) {
    let stored: Vec<F::Stored> = words.iter().map(|w| F::import_x(w)).collect();
    let row = F::load(|i| &stored[i]);
    let nonzero = !row.is_zero() & Mask::MAX >> (8 - F::LANES);
    let expected = F::select(nonzero, &F::one(), &F::zero());
    assert_eq!(row.invert().mul(&row).sub(&expected).is_zero(), Mask::MAX >> (8 - F::LANES));
    assert_eq!(row.mul(&F::one()).sub(&row).is_zero(), Mask::MAX >> (8 - F::LANES));
    assert_eq!(row.scale_y_in().scale_y_out().sub(&row).is_zero(), Mask::MAX >> (8 - F::LANES));
}

/// The extension against its definition.
fn extension<const W: usize, O: Oracle<W>, F: PrimeLanes>(words: &[[u64; W]]) {
    let element = |at: usize| -> Quad<F> {
        let stored: Vec<_> = (0..F::LANES)
            .map(|lane| [F::import_x(&words[(at + lane) % 8]), F::import_x(&words[(2 * at + 3 * lane + 1) % 8])])
            .collect();
        Lanes::load(|i| &stored[i])
    };
    let (a, b, u_squared) = (element(0), element(5), Quad::<F>::one().sub_tight(&Quad::one().add(&Quad::one()), 0));
    let all = Mask::MAX >> (8 - F::LANES);
    // (a + b)² - a² - b² = 2ab, and a · a⁻¹ = 1 where a is not zero.
    let sum = a.add(&b).mul(&Quad::one());
    let cross = sum.square().sub_two(&a.square(), &b.square());
    let product = a.mul(&b);
    assert_eq!(cross.sub(&product.add(&product).mul(&Quad::one())).is_zero(), all);
    let expected = Quad::select(!a.is_zero() & all, &Quad::one(), &Quad::zero());
    assert_eq!(a.invert().mul(&a).sub(&expected).is_zero(), all);
    assert_eq!(u_squared.mul(&u_squared).sub(&Quad::one()).is_zero(), all);
}

macro_rules! rows_agree {
    ($($name:ident: $words:literal, $oracle:ty, $row:ty, $radix:expr;)*) => {
        $(
            mod $name {
                use super::*;

                proptest! {
                    #![proptest_config(ProptestConfig::with_cases(2000))]

                    #[test]
                    fn programs(inputs in vec(vec(element(<$oracle>::P), 8), 4), steps in steps()) {
                        if available::<$row>() {
                            run_program::<$words, $oracle, $row>($radix, &inputs, &steps);
                        }
                    }

                    #[test]
                    fn inversions(words in vec(element(<$oracle>::P), 8)) {
                        if available::<$row>() {
                            inversion::<$words, $oracle, $row>(&words);
                            extension::<$words, $oracle, $row>(&words);
                        }
                    }
                }
            }
        )*
    };
}

/// Rows of eight need their instructions; on a processor without them there is nothing to test.
fn available<F: Lanes>() -> bool {
    F::LANES == 1 || crate::code_path::CodePath::detect() != crate::code_path::CodePath::scalar()
}

rows_agree! {
    portable_bls12_381: 6, BlsFp, BlsFp, 384;
    portable_bn254: 4, BnFp, BnFp, 256;
}

#[cfg(target_arch = "x86_64")]
rows_agree! {
    ifma_bls12_381: 6, BlsFp, ifma::BlsRow, 416;
    ifma_bn254: 4, BnFp, ifma::BnRow, 260;
}

/// blst multiplies in the extension on its own.
#[test]
fn extension_equals_blst() {
    let element = |seed: u64| BlsFp::import_x(&[seed, seed ^ 5, 3 * seed, 7, 11 * seed, seed % 97]);
    let stored: Vec<_> = (1..5u64).map(|seed| element(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let [c0, c1] = BlsFp::quad_mul([&stored[0], &stored[1]], [&stored[2], &stored[3]]);
    let (ac, bd) = (stored[0].mul(&stored[2]), stored[1].mul(&stored[3]));
    let (ad, bc) = (stored[0].mul(&stored[3]), stored[1].mul(&stored[2]));
    assert!(c0 == ac.sub(&bd) && c1 == ad.add(&bc));
}
