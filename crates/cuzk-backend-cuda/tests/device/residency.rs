//! Sums with bases wherever they may lie and whatever memory there is: the same bytes, in the memory that was
//! predicted.

use cuzk_backend::{
    AssignmentShape, AssignmentView, Backend, BackendError, Bases, BasesSpec, Buffer, Density, Device,
    DeviceAssignment, DeviceOptions, MsmScalars, NttPlan, Operation, Order, Pool, QuotientPlan, Residency,
    ScalarsShape, Stream, Workspace,
};
use cuzk_backend_cuda::CudaBackend;
use cuzk_curve::{AffineRepr, CurveId, GroupId, ScalarRepr, pairing::Engine, repr, with_curve};
use ff::Field;
use group::Curve as _;
use rand::{Rng, SeedableRng, rngs::StdRng};

fn open(device_memory_limit: u64) -> Device {
    let options = DeviceOptions { device_memory_limit, pinned_bytes: 64 << 20, threads: 0 };
    Device::open(&CudaBackend, 0, &options).unwrap()
}

/// Points, scalars for all of them, and an assignment with twice as many variables of which every second one or so has
/// a base.
struct Inputs<G: AffineRepr> {
    points: Vec<G>,
    scalars: Vec<G::Scalar>,
    density: Vec<u64>,
    ones: Vec<u64>,
    wide: Vec<u64>,
    rank: Vec<u32>,
    wide_scalars: Vec<G::Scalar>,
    n_variables: u64,
    /// The two sums, by their logarithms.
    expected: [G; 2],
}

impl<G: AffineRepr<Scalar: ScalarRepr>> Inputs<G> {
    /// i·G for i = 1 … n.
    fn new(device: &Device, n: u64, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let numbers: Vec<G::Scalar> = (1..=n).map(G::Scalar::from).collect();
        let mut points = vec![G::identity(); n as usize];
        device.stream().unwrap().fixed_base_mul_slice(&G::generator(), &numbers, &mut points).unwrap();
        let scalars: Vec<G::Scalar> = (0..n).map(|_| G::Scalar::random(&mut rng)).collect();
        let dense = scalars.iter().zip(&numbers).map(|(s, i)| *s * i).sum::<G::Scalar>();

        let n_variables = 2 * n;
        let words = n_variables.div_ceil(64) as usize;
        let [mut density, mut ones, mut wide] = [(); 3].map(|()| vec![0u64; words]);
        let (mut rank, mut wide_scalars, mut base, mut packed) = (vec![0; words], Vec::new(), 0, G::Scalar::ZERO);
        for v in 0..n_variables {
            let (word, bit) = ((v / 64) as usize, 1 << (v % 64));
            if v % 64 == 0 {
                rank[word] = wide_scalars.len() as u32;
            }
            let value = match rng.gen_range(0..8) {
                _ if v == 0 => G::Scalar::ONE,
                0..4 => G::Scalar::ZERO,
                4..7 => G::Scalar::ONE,
                _ => G::Scalar::random(&mut rng),
            };
            if value == G::Scalar::ONE {
                ones[word] |= bit;
            } else if value != G::Scalar::ZERO {
                wide[word] |= bit;
                wide_scalars.push(value);
            }
            // As many variables with a base as there are bases: the last ones if need be.
            let left = n_variables - v;
            if base < n && (n - base == left || rng.gen_bool(0.5)) {
                density[word] |= bit;
                packed += value * numbers[base as usize];
                base += 1;
            }
        }
        let expected = [dense, packed].map(|logarithm| (G::generator() * logarithm).to_affine());
        Self { points, scalars, density, ones, wide, rank, wide_scalars, n_variables, expected }
    }

    fn view(&self) -> AssignmentView<'_> {
        AssignmentView {
            curve: G::CURVE,
            n_variables: self.n_variables,
            ones: &self.ones,
            wide: &self.wide,
            rank: &self.rank,
            wide_scalars: repr::as_bytes(&self.wide_scalars),
        }
    }

    fn spec(&self, residency: Residency, multiples: u32) -> BasesSpec {
        BasesSpec { curve: G::CURVE, group: G::GROUP, count: self.points.len() as u64, residency, multiples }
    }

    /// Dense scalars, and those of the assignment.
    fn shapes(&self) -> [ScalarsShape; 2] {
        let assignment = AssignmentShape::of(&self.view());
        [ScalarsShape::Dense, ScalarsShape::Assignment { assignment, len: self.n_variables }]
    }
}

/// The inputs on a device.
struct Loaded {
    stream: Stream,
    scalars: Buffer,
    assignment: DeviceAssignment,
    density: Density,
}

impl Loaded {
    fn new<G: AffineRepr<Scalar: ScalarRepr>>(device: &Device, inputs: &Inputs<G>) -> Self {
        let stream = device.stream().unwrap();
        let scalars = device.alloc_for::<G::Scalar>(inputs.scalars.len() as u64).unwrap();
        stream.upload_bytes(repr::as_bytes(&inputs.scalars), &scalars, 0).unwrap();
        let assignment = stream.upload_assignment(&inputs.view()).unwrap();
        let density = device.load_density(&inputs.density, inputs.n_variables).unwrap();
        stream.synchronize().unwrap();
        Self { stream, scalars, assignment, density }
    }

    /// The dense sum, or that of the assignment.
    fn sum<G: AffineRepr>(&self, bases: &Bases, packed: bool) -> cuzk_backend::Result<G> {
        let (buffer, len) = (&self.scalars, bases.spec().count);
        let scalars = if packed {
            let variables = 0..self.assignment.n_variables();
            MsmScalars::Assignment { assignment: &self.assignment, variables, density: Some(&self.density) }
        } else {
            MsmScalars::Dense { buffer, first: 0, len }
        };
        let sum = self.stream.msm(bases, &scalars)?.wait()?;
        // The workspace is free when the work behind the result is done, too.
        self.stream.synchronize()?;
        Ok(sum)
    }
}

/// The workspaces that a device chooses among: what it takes with ever less room.
fn ways(device: &Device, operation: &Operation) -> Vec<Workspace> {
    let mut ways = vec![device.workspace(operation, u64::MAX).unwrap()];
    while ways[ways.len() - 1].taken > ways[0].least {
        let room = ways[ways.len() - 1].taken - 1;
        ways.push(device.workspace(operation, room).unwrap());
    }
    ways
}

fn everywhere<G: AffineRepr<Scalar: ScalarRepr>>(n: u64) {
    let group = G::GROUP;
    let device = open(6 << 30);
    let inputs = Inputs::<G>::new(&device, n, 3);
    let loaded = Loaded::new(&device, &inputs);
    let placements = [(Residency::Device, 1), (Residency::Pinned, 1), (Residency::Device, 3), (Residency::Device, 16)];
    for (residency, multiples) in placements {
        let spec = inputs.spec(residency, multiples);
        let bases = device.load_bases(spec, &inputs.points).unwrap();
        for (i, scalars) in inputs.shapes().into_iter().enumerate() {
            let ways = ways(&device, &Operation::Msm { bases: spec, scalars });
            // The first, the last, and some between.
            let step = (ways.len() / 5).max(1);
            for way in ways.iter().step_by(step).chain(ways.last()) {
                let usage = device.memory().unwrap().device;
                let filler = device.alloc(usage.capacity - usage.reserved - way.taken).unwrap();
                let got = loaded.sum::<G>(&bases, i == 1).unwrap();
                assert!(got == inputs.expected[i], "{group} {residency:?} {multiples} {scalars:?} in {way:?}");
                drop(filler);
            }
            println!("{group} of {n}, {residency:?}, {multiples} multiples, {} ways", ways.len());
        }
    }
}

#[test]
fn sums_are_the_same_in_whatever_memory() {
    for curve in CurveId::ALL {
        with_curve!(curve, C => {
            // Streamed in four parts and in more; then in two, in three, and in one.
            everywhere::<<C as Engine>::G1Affine>((1 << 18) + 12_345);
            everywhere::<<C as Engine>::G2Affine>((1 << 17) - 1);
        });
    }
    for n in [1, 77, 1 << 16, 1 << 17, (1 << 17) + 1] {
        everywhere::<G1>(n);
    }
}

type G1 = <cuzk_curve::Bls12 as Engine>::G1Affine;

#[test]
fn a_sum_takes_what_was_predicted_and_no_more() {
    let roomy = open(2 << 30);
    let inputs = Inputs::<G1>::new(&roomy, (1 << 18) + 1, 4);
    for (residency, packed) in [(Residency::Device, false), (Residency::Pinned, false), (Residency::Pinned, true)] {
        let spec = inputs.spec(residency, 1);
        let operation = Operation::Msm { bases: spec, scalars: inputs.shapes()[usize::from(packed)] };
        let ways = ways(&roomy, &operation);
        for way in [&ways[0], &ways[ways.len() / 2], &ways[ways.len() - 1]] {
            let held = |device: &Device| {
                let loaded = Loaded::new(device, &inputs);
                (loaded, device.load_bases(spec, &inputs.points).unwrap())
            };
            let before = {
                let _held = held(&roomy);
                roomy.memory().unwrap().device.in_use
            };
            // Not a byte more than that.
            let device = open(before + way.taken);
            let (loaded, bases) = held(&device);
            let pinned = device.memory().unwrap().pinned.in_use;
            let uploaded = device.memory().unwrap().uploaded;
            assert_eq!(device.memory().unwrap().device.peak, before);
            for _ in 0..2 {
                let got = loaded.sum::<G1>(&bases, packed).unwrap();
                assert!(got == inputs.expected[usize::from(packed)], "{way:?}");
            }
            let memory = device.memory().unwrap();
            assert_eq!(memory.device.peak, before + way.taken, "{residency:?} {way:?}");
            assert_eq!(memory.pinned.peak, pinned + way.pinned, "{residency:?} {way:?}");
            let streamed = if residency == Residency::Pinned { 2 * spec.count * 96 } else { 0 };
            assert_eq!(memory.uploaded - uploaded, streamed);
        }
    }
}

#[test]
fn workspaces_of_a_stream_do_not_add_up() {
    let roomy = open(2 << 30);
    let inputs = Inputs::<G1>::new(&roomy, 1 << 18, 5);
    let spec = inputs.spec(Residency::Device, 1);
    let best = roomy.workspace(&Operation::Msm { bases: spec, scalars: ScalarsShape::Dense }, u64::MAX).unwrap().best;
    let device = open((40 << 20) + 96 * spec.count + best);
    let loaded = Loaded::new(&device, &inputs);
    let bases = device.load_bases(spec, &inputs.points).unwrap();
    let (held, buffer) = (device.memory().unwrap().device.in_use, &loaded.scalars);
    let dense = MsmScalars::Dense { buffer, first: 0, len: spec.count };
    // Enqueued faster than they are done.
    let sums: Vec<_> = (0..8).map(|_| loaded.stream.msm(&bases, &dense).unwrap()).collect();
    assert_eq!(device.memory().unwrap().device.peak, held + best);
    for sum in sums {
        assert!(sum.wait::<G1>().unwrap() == inputs.expected[0]);
    }
}

#[test]
fn a_refused_sum_leaves_the_device_as_it_was() {
    let device = open(1 << 30);
    let inputs = Inputs::<G1>::new(&device, 1 << 16, 6);
    let loaded = Loaded::new(&device, &inputs);
    for residency in [Residency::Device, Residency::Pinned] {
        let spec = inputs.spec(residency, 1);
        let bases = device.load_bases(spec, &inputs.points).unwrap();
        let operation = Operation::Msm { bases: spec, scalars: ScalarsShape::Dense };
        let least = device.workspace(&operation, 0).unwrap().least;
        let before = device.memory().unwrap().device;
        let filler = device.alloc(before.capacity - before.reserved - (least - 1)).unwrap();
        match loaded.sum::<G1>(&bases, false) {
            Err(BackendError::OutOfMemory { pool: Pool::Device, requested, in_use, capacity }) => {
                assert_eq!((requested, capacity), (least, before.capacity));
                assert_eq!(capacity - in_use, least - 1);
            }
            other => panic!("{other:?}"),
        }
        drop(filler);
        assert_eq!(device.memory().unwrap().device.in_use, before.in_use);
        assert!(loaded.sum::<G1>(&bases, false).unwrap() == inputs.expected[0]);
    }
}

#[test]
fn transforms_take_what_was_predicted_and_no_more() {
    let (curve, log_n) = (CurveId::Bls12_381, 20);
    let vector = 32u64 << log_n;
    let roomy = open(1 << 30);
    let quotient = QuotientPlan { curve, log_n };
    let natural = NttPlan {
        curve,
        log_n,
        direction: cuzk_backend::Direction::Forward,
        coset: cuzk_backend::Coset::Shift(generator_limbs()),
        order: Order::Natural,
    };
    for (operation, vectors) in [(Operation::Quotient(quotient), 2), (Operation::Ntt(natural), 1)] {
        for way in ways(&roomy, &operation) {
            let device = open(vectors * vector + way.taken);
            let stream = device.stream().unwrap();
            let buffers: Vec<Buffer> = (0..vectors).map(|_| device.alloc(vector).unwrap()).collect();
            for buffer in &buffers {
                stream.fill_zero(buffer, 0, vector).unwrap();
            }
            for _ in 0..2 {
                match operation {
                    Operation::Ntt(plan) => stream.ntt(&plan, &buffers[0]).unwrap(),
                    _ => stream.quotient(&quotient, &buffers[0], &buffers[1]).unwrap(),
                }
                stream.synchronize().unwrap();
            }
            let peak = device.memory().unwrap().device.peak;
            let predicted = vectors * vector + way.taken;
            // Tables are counted with what making them takes for a moment.
            assert!(peak <= predicted && predicted - peak < predicted / 20, "{peak} of {predicted}: {way:?}");
        }
    }
}

fn generator_limbs() -> [u64; 4] {
    type Fr = <cuzk_curve::Bls12 as Engine>::Fr;
    let mut limbs = [0; 4];
    limbs.copy_from_slice(repr::as_limbs(&[<Fr as ff::PrimeField>::MULTIPLICATIVE_GENERATOR]));
    limbs
}

#[test]
fn more_points_than_can_be_numbered_are_refused() {
    let device = open(1 << 30);
    let spec = BasesSpec {
        curve: CurveId::Bn254,
        group: GroupId::G1,
        count: 1 << 28,
        residency: Residency::Device,
        multiples: 16,
    };
    assert!(matches!(device.workspace(&Operation::Bases(spec), 0), Err(BackendError::Unsupported { .. })));
    assert!(CudaBackend.open(0, &DeviceOptions::default()).is_ok(), "and that was not the device's fault");
}
