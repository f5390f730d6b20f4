//! What an NVIDIA device does. Needs one, and the kernels: `cargo xtask build --backend cuda` says where they are, then
//! `CUZK_CUDA_KERNELS=… cargo test --release -p cuzk-backend-cuda --features device`.

mod lost;
mod residency;

use cuzk_backend::{
    Backend, BackendError, Coset, Device, DeviceOptions, Direction, NttPlan, Order, Pool, QuotientPlan, self_test,
};
use cuzk_backend_cuda::CudaBackend;
use cuzk_curve::CurveId;

cuzk_conformance::suite!(CudaBackend, max_log_n = 20);
cuzk_conformance::suite!(CudaBackend, large = 24);

/// The same in sizes that take seconds under compute-sanitizer: `compute-sanitizer --tool racecheck conformance
/// reduced::`.
mod reduced {
    use super::CudaBackend;

    cuzk_conformance::suite!(CudaBackend, max_log_n = 12);
}

#[test]
fn the_device_gives_the_known_answers() {
    let device = Device::open(&CudaBackend, 0, &DeviceOptions::default()).unwrap();
    for curve in CurveId::ALL {
        self_test::run(&device, curve).unwrap();
        assert_eq!(device.memory().unwrap().device.in_use, 0);
    }
}

#[test]
fn a_device_that_is_not_there_is_named_with_those_that_are() {
    let devices = CudaBackend.devices().unwrap();
    match CudaBackend.open(1000, &DeviceOptions::default()).map(|_| ()) {
        Err(BackendError::NoSuchDevice { wanted, available, .. }) => {
            assert_eq!(wanted, "1000");
            assert!(devices.iter().all(|d| available.contains(&d.uuid)), "{available}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(CudaBackend.find(&devices[0].uuid), Ok(0));
}

#[test]
fn a_cap_that_is_too_small_is_refused_with_its_numbers_and_the_device_stays_usable() {
    let options = DeviceOptions { device_memory_limit: 1 << 20, pinned_bytes: 1 << 20, threads: 0 };
    let device = Device::open(&CudaBackend, 0, &options).unwrap();
    match device.alloc(2 << 20).map(|_| ()) {
        Err(BackendError::OutOfMemory { pool: Pool::Device, requested, capacity, .. }) => {
            assert_eq!((requested, capacity), (2 << 20, 1 << 20));
        }
        other => panic!("{other:?}"),
    }
    let buffer = device.alloc(1 << 19).unwrap();
    device.stream().unwrap().upload_bytes(&[1, 2, 3], &buffer, 0).unwrap();
}

/// 2^16 scalars that are different, as bytes.
fn scalars(seed: u64) -> Vec<u8> {
    let limbs = (0u64..1 << 16).flat_map(|i| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed, i, seed, i >> 3]);
    limbs.flat_map(u64::to_le_bytes).collect()
}

/// The quotient of two vectors and the transform of it, on a device with so many bytes.
fn quotient_and_transform(device_memory_limit: u64) -> Vec<u8> {
    let options = DeviceOptions { device_memory_limit, pinned_bytes: 1 << 20, threads: 0 };
    let device = Device::open(&CudaBackend, 0, &options).unwrap();
    let stream = device.stream().unwrap();
    let (curve, log_n) = (CurveId::Bls12_381, 16);
    let [a, b] = [1, 2].map(|seed| {
        let buffer = device.alloc(32 << log_n).unwrap();
        stream.upload_bytes(&scalars(seed), &buffer, 0).unwrap();
        buffer
    });
    stream.quotient(&QuotientPlan { curve, log_n }, &a, &b).unwrap();
    for direction in [Direction::Forward, Direction::Inverse, Direction::Forward] {
        let plan = NttPlan { curve, log_n, direction, coset: Coset::One, order: Order::Natural };
        stream.ntt(&plan, &a).unwrap();
    }
    let mut out = vec![0; 32 << log_n];
    stream.download_bytes(&a, 0, &mut out).unwrap();
    out
}

#[test]
fn transforms_do_with_little_memory() {
    // Two vectors of 2 MiB and one for c, but no fourth: orders are reversed in place.
    let roomy = quotient_and_transform(1 << 30);
    assert!(roomy.iter().any(|b| *b != 0));
    assert!(quotient_and_transform(7 << 20) == roomy);
}

#[test]
fn a_transform_that_is_refused_leaves_its_elements_alone() {
    let (curve, log_n) = (CurveId::Bls12_381, 16);
    let plan = NttPlan {
        curve,
        log_n,
        direction: Direction::Inverse,
        coset: Coset::Shift([3, 0, 0, 0]),
        order: Order::NaturalToBitReversed,
    };
    let before = scalars(5);
    let run = |device_memory_limit: u64| {
        let options = DeviceOptions { device_memory_limit, pinned_bytes: 1 << 20, threads: 0 };
        let device = Device::open(&CudaBackend, 0, &options).unwrap();
        let stream = device.stream().unwrap();
        let buffer = device.alloc(32 << log_n).unwrap();
        stream.upload_bytes(&before, &buffer, 0).unwrap();
        let outcome = stream.ntt(&plan, &buffer);
        let mut after = vec![0; before.len()];
        stream.download_bytes(&buffer, 0, &mut after).unwrap();
        (outcome, after)
    };
    let (outcome, transformed) = run(1 << 30);
    assert!(outcome.is_ok() && transformed != before);
    let mut refused = 0;
    // The vector is 2 MiB; its tables are a part of that.
    for limit in ((2 << 20)..(4 << 20)).step_by(64 << 10) {
        match run(limit) {
            (Ok(()), after) => assert!(after == transformed, "within {limit} bytes"),
            (Err(BackendError::OutOfMemory { .. }), after) => {
                assert!(after == before, "refused within {limit} bytes, but changed");
                refused += 1;
            }
            (other, _) => panic!("within {limit} bytes: {other:?}"),
        }
    }
    assert!(refused > 0, "no limit was too small");
}

#[test]
fn bytes_that_another_device_pinned_are_read_before_upload_bytes_returns() {
    let options = DeviceOptions { device_memory_limit: 256 << 20, pinned_bytes: 64 << 20, threads: 0 };
    let [first, second] = [0, 0].map(|index| Device::open(&CudaBackend, index, &options).unwrap());
    let stream = second.stream().unwrap();
    let bytes = 64 << 20;
    let (mut pinned, buffer) = (first.alloc_pinned(bytes).unwrap(), second.alloc(bytes).unwrap());
    for round in 1..=4u8 {
        pinned.write().unwrap().fill(round);
        stream.upload_bytes(pinned.read().unwrap(), &buffer, 0).unwrap();
        pinned.write().unwrap().fill(0xff);
        let mut got = vec![0; bytes as usize];
        stream.download_bytes(&buffer, 0, &mut got).unwrap();
        assert!(got.iter().all(|b| *b == round), "round {round}");
    }
}

#[test]
fn ranges_outside_of_their_memory_are_refused_at_the_lowest_level_too() {
    let options = DeviceOptions { device_memory_limit: 1 << 20, pinned_bytes: 1 << 20, threads: 0 };
    let ops = CudaBackend.open(0, &options).unwrap();
    let (stream, buffer) = (ops.stream_create().unwrap(), ops.buffer_create(4096).unwrap());
    let host = ops.host_create(4096).unwrap();
    for (offset, bytes) in [(0, 4097), (4096, 1), (1, u64::MAX), (u64::MAX, 1), (1 << 40, 1 << 40)] {
        for outcome in [
            ops.upload(stream, host.id(), offset, buffer, 0, bytes),
            ops.upload(stream, host.id(), 0, buffer, offset, bytes),
            ops.download(stream, buffer, offset, host.id(), 0, bytes),
            ops.download(stream, buffer, 0, host.id(), offset, bytes),
            ops.fill_zero(stream, buffer, offset, bytes),
        ] {
            assert!(matches!(outcome, Err(BackendError::Precondition { .. })), "{offset} {bytes}: {outcome:?}");
        }
    }
    for offset in [4090, u64::MAX - 2] {
        assert!(matches!(ops.upload_bytes(stream, &[1; 8], buffer, offset), Err(BackendError::Precondition { .. })));
        let outcome = ops.download_bytes(stream, buffer, offset, &mut [1; 8]);
        assert!(matches!(outcome, Err(BackendError::Precondition { .. })));
    }
}
