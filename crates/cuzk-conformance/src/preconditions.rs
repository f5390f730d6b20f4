//! Everything that the contract excludes is refused with a typed error, before anything is done.

use std::ops::Range;

use cuzk_backend::{
    AssignmentView, BasesSpec, CoefficientIndices, Coset, Direction, FixedBasePlan, MatrixView, MsmScalars, NttPlan,
    Order, QuotientPlan, Residency, RowOffsets,
};
use cuzk_curve::{AffineRepr, Bls12, Bn256, Curve, CurveId, GroupId, ScalarRepr, pairing::Engine, repr};
use ff::Field;
use group::prime::PrimeCurveAffine;

use crate::{
    Suite,
    suite::{Bench, done, refused},
};

type Scalar = <Bls12 as Engine>::Fr;
type G1 = <Bls12 as Engine>::G1Affine;
type G2 = <Bls12 as Engine>::G2Affine;
const CURVE: CurveId = <Bls12 as Curve>::ID;

/// A stored number that is not below the modulus.
fn not_canonical() -> Scalar {
    let mut scalar = [Scalar::ZERO];
    repr::as_limbs_mut(&mut scalar).copy_from_slice(&<Scalar as ScalarRepr>::MODULUS);
    scalar[0]
}

/// Sizes and ranges of buffers and pinned memory.
pub fn of_memory(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    refused("a buffer of 0 bytes", device.alloc(0));
    refused("a buffer of 0 scalars", device.alloc_for::<Scalar>(0));
    refused("a buffer of 2^60 scalars", device.alloc_for::<Scalar>(1 << 60));
    refused("pinned memory of 0 bytes", device.alloc_pinned(0));
    let buffer = done("alloc", device.alloc(100));
    let mut host = done("alloc_pinned", device.alloc_pinned(50));
    for (offset, bytes) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 1)] {
        let mut memory = vec![0; bytes];
        refused("an upload past the end", stream.upload_bytes(&memory, &buffer, offset));
        refused("a download past the end", stream.download_bytes(&buffer, offset, &mut memory));
        refused("zeros past the end", stream.fill_zero(&buffer, offset, bytes as u64));
    }
    for (in_host, in_buffer, bytes) in [(0, 0, 51), (50, 0, 1), (0, 60, 41), (u64::MAX, 0, 2), (0, u64::MAX, 2)] {
        refused("an upload past the end", stream.upload(&mut host, in_host, &buffer, in_buffer, bytes));
        refused("a download past the end", stream.download(&buffer, in_buffer, &mut host, in_host, bytes));
    }
}

/// Plans that do not fit the field or the buffer.
pub fn of_transforms(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let buffer = done("alloc_for", device.alloc_for::<Scalar>(8));
    let other = done("alloc_for", device.alloc_for::<Scalar>(8));
    let small = done("alloc_for", device.alloc(8 * 32 - 1));
    let plan =
        NttPlan { curve: CURVE, log_n: 3, direction: Direction::Forward, coset: Coset::One, order: Order::Natural };
    refused("a transform past the buffer", stream.ntt(&plan, &small));
    refused("a transform of twice the buffer", stream.ntt(&NttPlan { log_n: 4, ..plan }, &buffer));
    for curve in CurveId::ALL {
        for log_n in [curve.two_adicity() + 1, 63, 64, u32::MAX] {
            refused("a domain that there is not", stream.ntt(&NttPlan { curve, log_n, ..plan }, &buffer));
        }
        for log_n in [curve.two_adicity(), 63, 64, u32::MAX] {
            let plan = QuotientPlan { curve, log_n };
            refused("a double domain that there is not", stream.quotient(&plan, &buffer, &other));
        }
    }
    let modulus = <Scalar as ScalarRepr>::MODULUS;
    for shift in [[0; 4], modulus, [u64::MAX; 4]] {
        refused("a bad shift", stream.ntt(&NttPlan { coset: Coset::Shift(shift), ..plan }, &buffer));
    }
    let plan = QuotientPlan { curve: CURVE, log_n: 3 };
    refused("a quotient of one buffer", stream.quotient(&plan, &buffer, &buffer));
    refused("a quotient with a short a", stream.quotient(&plan, &small, &buffer));
    refused("a quotient with a short b", stream.quotient(&plan, &buffer, &small));
}

/// Matrices that contradict themselves.
pub fn of_matrices(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let (one, minus_one) = (Scalar::ONE, -Scalar::ONE);
    let dictionary = [one, minus_one, Scalar::from(7)];
    let good = MatrixView {
        curve: CURVE,
        n_columns: 4,
        row_offsets: RowOffsets::U32(&[0, 2, 3]),
        columns: &[0, 3, 1],
        coefficients: CoefficientIndices::U8(&[0, 2, 1]),
        dictionary: repr::as_bytes(&dictionary),
    };
    let matrix = done("a good matrix", device.load_matrix(&good));
    let offsets: [&[u32]; 6] = [&[], &[1, 2, 3], &[0, 3, 2], &[0, 2, 4], &[0, 2], &[0, 4, 3]];
    for bad in offsets {
        refused("bad offsets", device.load_matrix(&MatrixView { row_offsets: RowOffsets::U32(bad), ..good }));
        let wide: Vec<u64> = bad.iter().map(|x| u64::from(*x)).collect();
        refused("bad offsets", device.load_matrix(&MatrixView { row_offsets: RowOffsets::U64(&wide), ..good }));
    }
    let past_memory = RowOffsets::U64(&[0, u64::MAX, 3]);
    refused("offsets that come back", device.load_matrix(&MatrixView { row_offsets: past_memory, ..good }));
    refused("a column past the last", device.load_matrix(&MatrixView { columns: &[0, 4, 1], ..good }));
    refused("a column too few", device.load_matrix(&MatrixView { columns: &[0, 3], ..good }));
    refused("2^33 columns", device.load_matrix(&MatrixView { n_columns: 1 << 33, ..good }));
    for bad in [
        CoefficientIndices::U8(&[0, 3, 1]),
        CoefficientIndices::U16(&[0, 300, 1]),
        CoefficientIndices::U32(&[u32::MAX, 0, 1]),
        CoefficientIndices::U8(&[0, 2]),
        CoefficientIndices::U16(&[0, 2, 1, 1]),
    ] {
        refused("bad coefficient indices", device.load_matrix(&MatrixView { coefficients: bad, ..good }));
    }
    let dictionaries: [&[Scalar]; 5] =
        [&[], &[one], &[one, one, one], &[minus_one, one, one], &[one, minus_one, not_canonical()]];
    for bad in dictionaries {
        refused("a bad dictionary", device.load_matrix(&MatrixView { dictionary: repr::as_bytes(bad), ..good }));
    }
    let cut = &repr::as_bytes(&dictionary)[..95];
    refused("a dictionary that is cut", device.load_matrix(&MatrixView { dictionary: cut, ..good }));

    let packed = |n_variables| AssignmentView {
        curve: CURVE,
        n_variables,
        ones: &[1],
        wide: &[0],
        rank: &[0],
        wide_scalars: &[],
    };
    let upload = |view| done("upload_assignment", stream.upload_assignment(&view));
    let (fits, long) = (upload(packed(4)), upload(packed(5)));
    let foreign = upload(AssignmentView { curve: CurveId::Bn254, ..packed(4) });
    let out = done("alloc_for", device.alloc_for::<Scalar>(3));
    done("a good evaluation", stream.evaluate(&matrix, &fits, &out, 3));
    refused("a variable too many", stream.evaluate(&matrix, &long, &out, 3));
    refused("another curve", stream.evaluate(&matrix, &foreign, &out, 3));
    refused("fewer places than rows", stream.evaluate(&matrix, &fits, &out, 1));
    refused("more places than the buffer has", stream.evaluate(&matrix, &fits, &out, 4));
    refused("more places than memory has", stream.evaluate(&matrix, &fits, &out, u64::MAX));
}

/// Assignments and densities that contradict themselves.
pub fn of_assignments(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let wide_scalars = [Scalar::from(5), Scalar::from(6)];
    let good = AssignmentView {
        curve: CURVE,
        n_variables: 70,
        ones: &[0b1, 0b100],
        wide: &[0b10, 0b1],
        rank: &[0, 1],
        wide_scalars: repr::as_bytes(&wide_scalars),
    };
    let upload = |view: AssignmentView<'_>| stream.upload_assignment(&view);
    done("a good assignment", upload(good));
    refused("a bit past the last one", upload(AssignmentView { ones: &[1, 1 << 6], ..good }));
    refused("a wide bit past the last one", upload(AssignmentView { wide: &[0b10, 1 << 6], ..good }));
    refused("a word too few", upload(AssignmentView { ones: &[1], ..good }));
    refused("a wide word too many", upload(AssignmentView { wide: &[0b10, 0b1, 0], ..good }));
    refused("a rank too few", upload(AssignmentView { rank: &[0], ..good }));
    refused("a wrong rank", upload(AssignmentView { rank: &[0, 2], ..good }));
    refused("a wrong first rank", upload(AssignmentView { rank: &[1, 1], ..good }));
    refused("a variable both one and wide", upload(AssignmentView { ones: &[0b11, 0], ..good }));
    refused("variable 0 not one", upload(AssignmentView { ones: &[0, 0b100], ..good }));
    refused("2^33 variables", upload(AssignmentView { n_variables: 1 << 33, ..good }));
    let nothing = AssignmentView { n_variables: 0, ones: &[], wide: &[], rank: &[], wide_scalars: &[], ..good };
    refused("no variables", upload(nothing));
    let scalars: [&[Scalar]; 5] = [
        &wide_scalars[..1],
        &[wide_scalars[0]; 3],
        &[Scalar::ZERO, wide_scalars[1]],
        &[wide_scalars[0], Scalar::ONE],
        &[wide_scalars[0], not_canonical()],
    ];
    for bad in scalars {
        refused("bad wide scalars", upload(AssignmentView { wide_scalars: repr::as_bytes(bad), ..good }));
    }

    done("a good density", device.load_density(&[1, 2], 70));
    refused("a density with a bit past the last one", device.load_density(&[1, 1 << 6], 70));
    refused("a density with a word too few", device.load_density(&[1], 70));
    refused("a density with a word too many", device.load_density(&[1, 0, 0], 70));
}

/// Bases, scalars and results that do not fit each other.
pub fn of_sums(suite: &Suite) {
    let bench = suite.bench();
    let Bench { device, stream } = &bench;
    let points = [G1::generator(); 8];
    let spec = BasesSpec { curve: CURVE, group: GroupId::G1, count: 8, residency: Residency::Device, multiples: 1 };
    refused("points of another size", device.load_bases(spec, &[G2::generator(); 8]));
    refused("a point too few", device.load_bases(spec, &points[..7]));
    refused("a point too many", device.load_bases(spec, &[G1::generator(); 9]));
    let mut loader = done("bases_loader", device.bases_loader(spec));
    done("write", loader.write(&points[..5]));
    refused("more points than announced", loader.write(&points[..4]));
    done("write after a refusal", loader.write(&points[..3]));
    let bases = done("finish", loader.finish());
    let loader = done("bases_loader", device.bases_loader(spec));
    refused("bases without points", loader.finish());

    let buffer = bench.upload(&[Scalar::ONE; 10]);
    for (first, len) in [(0, 7), (0, 9), (3, 8), (11, 8), (u64::MAX, 8), (0, u64::MAX), (1 << 59, 8)] {
        let scalars = MsmScalars::Dense { buffer: &buffer, first, len };
        refused("scalars that do not fit", stream.msm(&bases, &scalars));
    }
    let view = |curve| AssignmentView { curve, n_variables: 10, ones: &[1], wide: &[0], rank: &[0], wide_scalars: &[] };
    let assignment = done("upload_assignment", stream.upload_assignment(&view(CURVE)));
    let foreign = done("upload_assignment", stream.upload_assignment(&view(CurveId::Bn254)));
    let density = done("load_density", device.load_density(&[0b1111], 10));
    let short = done("load_density", device.load_density(&[0b111_1111], 9));
    let over = |variables: Range<u64>| MsmScalars::Assignment { assignment: &assignment, variables, density: None };
    let sum = |scalars: MsmScalars<'_>| stream.msm(&bases, &scalars);
    done("a good sum", sum(over(1..9)));
    for variables in [0..9, 3..11, 4..4, u64::MAX - 1..u64::MAX] {
        refused("variables that do not fit", sum(over(variables)));
    }
    let (start, end) = (9, 1);
    refused("variables in descending order", sum(over(start..end)));
    let with = |density| MsmScalars::Assignment { assignment: &assignment, variables: 0..10, density: Some(density) };
    refused("a density with other bases", sum(with(&density)));
    refused("a density of other variables", sum(with(&short)));
    let other = MsmScalars::Assignment { assignment: &foreign, variables: 0..8, density: None };
    refused("another curve's assignment", sum(other));

    let pending = done("msm", sum(over(0..8)));
    refused("another group's point", pending.wait::<G2>());
    let pending = done("msm", sum(over(0..8)));
    refused("another curve's point", pending.wait::<<Bn256 as Engine>::G1Affine>());
    done("another sum", done("msm", sum(over(0..8))).wait::<G1>());

    fixed_base(&bench);
}

fn fixed_base(bench: &Bench) {
    let Bench { device, stream } = bench;
    let base = G1::generator();
    let plan = FixedBasePlan { curve: CURVE, group: GroupId::G1, base: repr::as_bytes(&[base]).to_vec(), count: 10 };
    let scalars = bench.upload(&[Scalar::ONE; 10]);
    let out = done("alloc_for", device.alloc_for::<G1>(10));
    let multiply = |plan: &FixedBasePlan| stream.fixed_base_mul(plan, &scalars, &out);
    done("good multiples", multiply(&plan));
    refused("multiples in one buffer", stream.fixed_base_mul(&plan, &out, &out));
    refused("multiples without room", stream.fixed_base_mul(&plan, &scalars, &done("alloc", device.alloc(959))));
    refused("too few scalars", multiply(&FixedBasePlan { count: 11, ..plan.clone() }));
    refused("2^61 scalars", multiply(&FixedBasePlan { count: 1 << 61, ..plan.clone() }));
    refused("another group's base", multiply(&FixedBasePlan { group: GroupId::G2, ..plan.clone() }));
    refused("no base", multiply(&FixedBasePlan { base: Vec::new(), ..plan }));
    let mut few = [G1::identity(); 1];
    let scalars = [Scalar::ONE; 2];
    refused("a place too few", stream.fixed_base_mul_slice(&base, &scalars, &mut few));
}

/// Objects of another device, even of the same hardware.
pub fn of_other_devices(suite: &Suite) {
    let (bench, foreign) = (suite.bench(), suite.bench());
    let Bench { device, stream } = &bench;
    assert!(device.is_same(&device.clone()) && device.is_same(&stream.device()));
    assert!(!device.is_same(&foreign.device));
    let (own, other) = (bench.upload(&[Scalar::ONE; 8]), foreign.upload(&[Scalar::ONE; 8]));
    let mut host = done("alloc_pinned", foreign.device.alloc_pinned(8));
    refused("an event", stream.wait_for(&done("record", foreign.stream.record())));
    refused("a target", stream.upload_bytes(&[0; 8], &other, 0));
    refused("a source", stream.download_bytes(&other, 0, &mut [0; 8]));
    refused("a buffer to be zeroed", stream.fill_zero(&other, 0, 8));
    refused("pinned memory", stream.upload(&mut host, 0, &own, 0, 8));
    refused("pinned memory", stream.download(&own, 0, &mut host, 0, 8));
    let plan =
        NttPlan { curve: CURVE, log_n: 3, direction: Direction::Forward, coset: Coset::One, order: Order::Natural };
    refused("a buffer to be transformed", stream.ntt(&plan, &other));
    refused("a quotient's a", stream.quotient(&QuotientPlan { curve: CURVE, log_n: 3 }, &other, &own));
    refused("a quotient's b", stream.quotient(&QuotientPlan { curve: CURVE, log_n: 3 }, &own, &other));
    let spec = BasesSpec { curve: CURVE, group: GroupId::G1, count: 8, residency: Residency::Device, multiples: 1 };
    let points = [G1::generator(); 8];
    assert!(points[0].is_valid());
    let bases = done("load_bases", foreign.device.load_bases(spec, &points));
    refused("bases", stream.msm(&bases, &MsmScalars::Dense { buffer: &own, first: 0, len: 8 }));
    let bases = done("load_bases", device.load_bases(spec, &points));
    refused("scalars", stream.msm(&bases, &MsmScalars::Dense { buffer: &other, first: 0, len: 8 }));
    let plan =
        FixedBasePlan { curve: CURVE, group: GroupId::G1, base: repr::as_bytes(&points[..1]).to_vec(), count: 1 };
    refused("scalars", stream.fixed_base_mul(&plan, &other, &own));
    refused("places", stream.fixed_base_mul(&plan, &own, &other));
}
