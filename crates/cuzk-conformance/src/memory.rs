//! Buffers, pinned memory, accounting.

use std::any::Any;

use cuzk_backend::{
    AssignmentShape, AssignmentView, BackendError, BasesSpec, CoefficientIndices, Coset, Device, Direction,
    MatrixShape, MatrixView, MemoryUsage, NttPlan, Operation, Order, Pool, QuotientPlan, Residency, RowOffsets,
};
use cuzk_curve::{CurveId, GroupId, repr};
use ff::Field;
use rand::RngCore;

use crate::{
    Suite,
    oracle::{rng, scalars},
    suite::{Bench, done},
};

type Scalar = <cuzk_curve::Bls12 as cuzk_curve::pairing::Engine>::Fr;
type G1 = <cuzk_curve::Bls12 as cuzk_curve::pairing::Engine>::G1Affine;

fn random_bytes(n: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; n];
    rng(seed).fill_bytes(&mut bytes);
    bytes
}

/// Uploads, downloads and zeros at odd offsets, against a copy in ordinary memory.
pub fn buffers_keep_what_is_written(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let n = 100_003;
    let buffer = done("alloc", device.alloc(n as u64));
    assert_eq!(buffer.bytes(), n as u64);
    let mut expected = random_bytes(n, 1);
    done("upload_bytes", stream.upload_bytes(&expected, &buffer, 0));
    for (offset, len) in [(0, 1), (1, 7), (4093, 70_001), (n - 1, 1), (n, 0), (50_000, 0)] {
        let part = random_bytes(len, offset as u64);
        expected[offset..offset + len].copy_from_slice(&part);
        done("upload_bytes", stream.upload_bytes(&part, &buffer, offset as u64));
        let mut back = vec![0; len];
        done("download_bytes", stream.download_bytes(&buffer, offset as u64, &mut back));
        assert!(back == part, "{len} bytes at {offset}");
    }
    for (offset, len) in [(11usize, 5usize), (60_000, 30_001), (7, 0)] {
        expected[offset..offset + len].fill(0);
        done("fill_zero", stream.fill_zero(&buffer, offset as u64, len as u64));
    }
    let mut all = vec![0; n];
    done("download_bytes", stream.download_bytes(&buffer, 0, &mut all));
    assert!(all == expected, "bytes have changed that nobody wrote");
    // One buffer is not another.
    let other = done("alloc", device.alloc(n as u64));
    done("fill_zero", stream.fill_zero(&other, 0, n as u64));
    done("download_bytes", stream.download_bytes(&buffer, 0, &mut all));
    assert!(all == expected, "two buffers share their memory");
}

/// Pinned memory to a buffer and back to other pinned memory, at offsets; it can be read and written between transfers.
pub fn pinned_memory_travels_at_offsets(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let n = 30_000usize;
    let (mut source, mut target) =
        (done("alloc_pinned", device.alloc_pinned(n as u64)), done("alloc_pinned", device.alloc_pinned(n as u64)));
    assert_eq!((source.len(), source.is_empty()), (n, false));
    let buffer = done("alloc", device.alloc(n as u64));
    done("fill_zero", stream.fill_zero(&buffer, 0, n as u64));
    let bytes = random_bytes(n, 2);
    {
        let place = done("write", source.write());
        assert_eq!(place.as_ptr().addr() % 4096, 0, "pinned memory begins within a page");
        place.copy_from_slice(&bytes);
    }
    done("write", target.write()).fill(9);
    done("upload", stream.upload(&mut source, 100, &buffer, 7, 20_000));
    done("upload", stream.upload(&mut source, 0, &buffer, 25_000, 5_000));
    // Waits for the transfers: what is written now does not reach the device.
    done("write", source.write()).fill(5);
    done("download", stream.download(&buffer, 3, &mut target, 1_000, 28_000));
    let mut expected = vec![9u8; n];
    let mut on_device = vec![0u8; n];
    on_device[7..20_007].copy_from_slice(&bytes[100..20_100]);
    on_device[25_000..].copy_from_slice(&bytes[..5_000]);
    expected[1_000..29_000].copy_from_slice(&on_device[3..28_003]);
    assert!(done("read", target.read()) == expected);
    assert!(done("read", source.read()).iter().all(|b| *b == 5));
}

/// Makes one of every object, each accounted for, and gives all of it back.
pub fn accounting_returns_to_zero(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let in_use = || {
        let MemoryUsage { device, pinned, .. } = done("memory", device.memory());
        for pool in [device, pinned] {
            assert!(pool.in_use <= pool.reserved && pool.reserved <= pool.capacity, "{pool:?}");
        }
        (device.in_use, pinned.in_use)
    };
    assert_eq!(in_use(), (0, 0), "before the first object");
    {
        let mut seen = in_use();
        // Each pool has grown by so much at least.
        let mut grown_by = |on_device: u64, pinned: u64, what: &str| {
            let now = in_use();
            assert!(now.0 >= seen.0 + on_device && now.1 >= seen.1 + pinned, "{what}: {seen:?} to {now:?}");
            seen = now;
        };
        let _buffer = done("alloc", device.alloc(1_000_000));
        grown_by(1_000_000, 0, "a buffer");
        let _host = done("alloc_pinned", device.alloc_pinned(300_000));
        grown_by(0, 300_000, "pinned memory");
        let (dictionary, wide_scalars) = ([Scalar::ONE, -Scalar::ONE], [Scalar::from(5)]);
        let view = MatrixView {
            curve: CurveId::Bls12_381,
            n_columns: 3,
            row_offsets: RowOffsets::U32(&[0, 2, 2]),
            columns: &[0, 2],
            coefficients: CoefficientIndices::U8(&[0, 1]),
            dictionary: repr::as_bytes(&dictionary),
        };
        let _matrix = done("load_matrix", device.load_matrix(&view));
        grown_by(12 + 8 + 2, 0, "a matrix");
        let _density = done("load_density", device.load_density(&[u64::MAX; 100], 6400));
        grown_by(800, 0, "a density");
        let assignment = AssignmentView {
            curve: CurveId::Bls12_381,
            n_variables: 3,
            ones: &[1],
            wide: &[4],
            rank: &[0],
            wide_scalars: repr::as_bytes(&wide_scalars),
        };
        let _assignment = done("upload_assignment", stream.upload_assignment(&assignment));
        grown_by(8 + 8 + 4 + 32, 0, "an assignment");
        let spec = |residency| BasesSpec {
            curve: CurveId::Bls12_381,
            group: GroupId::G1,
            count: 1000,
            residency,
            multiples: 1,
        };
        let points = vec![<G1 as group::prime::PrimeCurveAffine>::generator(); 1000];
        let _bases = done("load_bases", device.load_bases(spec(Residency::Device), &points));
        grown_by(96_000, 0, "bases on the device");
        let _streamed = done("load_bases", device.load_bases(spec(Residency::Pinned), &points));
        grown_by(0, 96_000, "bases in pinned memory");
        let _event = done("record", stream.record());
        let mut loader = done("bases_loader", device.bases_loader(spec(Residency::Device)));
        done("write", loader.write(&points[..10]));
        assert_eq!(loader.written(), 10);
        // Dropped half full.
        drop(loader);
        done("synchronize", stream.synchronize());
    }
    assert_eq!(in_use(), (0, 0), "after the last object");
}

/// Objects hold what was told before they were made, and a quotient does not take more than it was going to.
pub fn what_is_taken_was_predicted(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let curve = CurveId::Bls12_381;
    let check = |operation: Operation, make: &dyn Fn() -> Box<dyn Any>| {
        let told = done("workspace", device.workspace(&operation, u64::MAX));
        let before = done("memory", device.memory());
        let object = make();
        let after = done("memory", device.memory());
        let grown = (after.device.in_use - before.device.in_use, after.pinned.in_use - before.pinned.in_use);
        assert_eq!(grown, (told.taken, told.pinned), "{operation:?}");
        assert!(told.least == told.taken && told.taken == told.best, "{told:?}");
        done("synchronize", stream.synchronize());
        drop(object);
    };
    let (dictionary, scalars) = ([Scalar::ONE, -Scalar::ONE, Scalar::from(7)], scalars::<Scalar>(70, 2));
    let offsets: Vec<u32> = (0..=50).collect();
    let matrix = MatrixView {
        curve,
        n_columns: 3,
        row_offsets: RowOffsets::U32(&offsets),
        columns: &[2; 50],
        coefficients: CoefficientIndices::U16(&[2; 50]),
        dictionary: repr::as_bytes(&dictionary),
    };
    check(Operation::Matrix(MatrixShape::of(&matrix)), &|| Box::new(done("load_matrix", device.load_matrix(&matrix))));
    check(Operation::Density { len: 6399 }, &|| Box::new(done("load_density", device.load_density(&[1; 100], 6399))));
    let assignment = AssignmentView {
        curve,
        n_variables: 128,
        ones: &[1, 0],
        wide: &[!1, 0x7f],
        rank: &[0, 63],
        wide_scalars: repr::as_bytes(&scalars),
    };
    check(Operation::Assignment(AssignmentShape::of(&assignment)), &|| {
        Box::new(done("upload_assignment", stream.upload_assignment(&assignment)))
    });
    let points = vec![<G1 as group::prime::PrimeCurveAffine>::generator(); 1000];
    for residency in [Residency::Device, Residency::Pinned] {
        let spec = BasesSpec { curve, group: GroupId::G1, count: 1000, residency, multiples: 1 };
        check(Operation::Bases(spec), &|| Box::new(done("load_bases", device.load_bases(spec, &points))));
    }
    let plan = QuotientPlan { curve, log_n: 12 };
    let told = done("workspace", device.workspace(&Operation::Quotient(plan), u64::MAX));
    let [a, b] = [(); 2].map(|()| done("alloc", device.alloc(32 << 12)));
    for buffer in [&a, &b] {
        done("fill_zero", stream.fill_zero(buffer, 0, 32 << 12));
    }
    done("quotient", stream.quotient(&plan, &a, &b));
    done("synchronize", stream.synchronize());
    let peak = done("memory", device.memory()).device.peak;
    assert!(peak <= 2 * (32 << 12) + told.taken, "{peak} with {told:?}");
}

/// What does not fit is refused with its numbers and changes nothing; what fits is then still served.
pub fn out_of_memory_is_typed_and_harmless(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let held = done("alloc", device.alloc(1000));
    let before = done("memory", device.memory());
    let check = |what: &str, pool: Pool, error: Option<BackendError>| match error {
        Some(BackendError::OutOfMemory { pool: named, requested, in_use, capacity }) => {
            let usage = if pool == Pool::Device { before.device } else { before.pinned };
            assert_eq!(named, pool, "{what}");
            assert_eq!(capacity, usage.capacity, "{what}");
            assert!(
                in_use >= usage.in_use && requested > capacity - in_use,
                "{what}: {requested} of {in_use}/{capacity}"
            );
            let now = done("memory", device.memory());
            assert_eq!((now.device.in_use, now.pinned.in_use), (before.device.in_use, before.pinned.in_use), "{what}");
        }
        other => panic!("{what} must be out of memory, not {other:?}"),
    };
    let (on_device, pinned) = (before.device.capacity, before.pinned.capacity);
    check("a large buffer", Pool::Device, device.alloc(on_device + 1).err());
    check("a huge buffer", Pool::Device, device.alloc(u64::MAX).err());
    check("large pinned memory", Pool::Pinned, device.alloc_pinned(pinned + 1).err());
    check("huge pinned memory", Pool::Pinned, device.alloc_pinned(u64::MAX).err());
    let spec =
        |residency| BasesSpec { curve: CurveId::Bn254, group: GroupId::G2, count: 1 << 40, residency, multiples: 1 };
    check("many bases", Pool::Device, device.bases_loader(spec(Residency::Device)).err());
    check("many streamed bases", Pool::Pinned, device.bases_loader(spec(Residency::Pinned)).err());

    // Fill it with what is left, in parts: refused when full, served again when one part is gone.
    let mut parts = Vec::new();
    let part = on_device / 8;
    let full = loop {
        match device.alloc(part) {
            Ok(buffer) => parts.push(buffer),
            Err(error) => break error,
        }
        assert!(parts.len() <= 8, "{} parts of an eighth", parts.len());
    };
    assert!(matches!(full, BackendError::OutOfMemory { pool: Pool::Device, .. }), "{full}");
    assert!(parts.len() >= 4, "only {} eighths of the pool can be had", parts.len());
    parts.pop();
    let again = done("alloc after a refusal", device.alloc(part));
    drop((parts, again));
    still_works(&device, &held);
    done("synchronize", stream.synchronize());
}

/// A transfer and a transform.
fn still_works(device: &Device, held: &cuzk_backend::Buffer) {
    let stream = done("making a stream", device.stream());
    let input = scalars::<Scalar>(8, 1);
    done("upload_bytes", stream.upload_bytes(repr::as_bytes(&input), held, 0));
    let (curve, direction, coset) = (CurveId::Bls12_381, Direction::Forward, Coset::One);
    let plan = NttPlan { curve, log_n: 3, direction, coset, order: Order::Natural };
    done("ntt", stream.ntt(&plan, held));
    let mut back = vec![0; 256];
    done("download_bytes", stream.download_bytes(held, 0, &mut back));
    assert!(back != repr::as_bytes(&input), "the transform did nothing");
}
