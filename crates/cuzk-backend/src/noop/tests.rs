//! What a caller may see of a device that executes as late as the contract allows.

use cuzk_curve::{Bls12, CurveId, GroupId, pairing::Engine};
use group::prime::PrimeCurveAffine;

use super::*;
use crate::{Device, MsmScalars, Order};

type Scalar = <Bls12 as Engine>::Fr;
type G1 = <Bls12 as Engine>::G1Affine;

const G1_SPEC: BasesSpec =
    BasesSpec { curve: CurveId::Bls12_381, group: GroupId::G1, count: 4, residency: Residency::Device, multiples: 1 };

fn device() -> Device {
    Device::new(Noop::new(1 << 16))
}

fn in_use(device: &Device) -> (u64, u64) {
    let usage = device.memory().unwrap();
    (usage.device.in_use, usage.pinned.in_use)
}

fn read(device: &Device, buffer: &crate::Buffer) -> Vec<u8> {
    // Another stream: it does not wait for anything that was enqueued elsewhere.
    let mut bytes = vec![0xee; buffer.bytes() as usize];
    device.stream().unwrap().download_bytes(buffer, 0, &mut bytes).unwrap();
    bytes
}

#[test]
fn nothing_happens_before_somebody_waits() {
    let device = device();
    let (stream, buffer) = (device.stream().unwrap(), device.alloc(8).unwrap());
    stream.upload_bytes(&[7; 8], &buffer, 0).unwrap();
    let event = stream.record().unwrap();
    assert_eq!(read(&device, &buffer), [0; 8], "enqueued work must not have been executed");
    event.wait().unwrap();
    assert_eq!(read(&device, &buffer), [7; 8]);
    assert!(event.is_done().unwrap());
}

#[test]
fn a_wait_executes_only_what_stands_before_its_point() {
    let device = device();
    let (stream, buffer) = (device.stream().unwrap(), device.alloc(4).unwrap());
    stream.upload_bytes(&[1; 4], &buffer, 0).unwrap();
    let first = stream.record().unwrap();
    stream.upload_bytes(&[2; 4], &buffer, 0).unwrap();
    first.wait().unwrap();
    assert_eq!(read(&device, &buffer), [1; 4]);
    stream.fill_zero(&buffer, 1, 2).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(read(&device, &buffer), [2, 0, 0, 2]);
}

#[test]
fn polling_makes_progress_one_entry_a_time() {
    let device = device();
    let (stream, buffer) = (device.stream().unwrap(), device.alloc(4).unwrap());
    stream.upload_bytes(&[1; 4], &buffer, 0).unwrap();
    stream.upload_bytes(&[2; 4], &buffer, 0).unwrap();
    let event = stream.record().unwrap();
    assert!(!event.is_done().unwrap());
    assert_eq!(read(&device, &buffer), [1; 4]);
    assert!(!event.is_done().unwrap());
    assert!(event.is_done().unwrap());
    assert_eq!(read(&device, &buffer), [2; 4]);
}

#[test]
fn streams_wait_for_each_other_without_recursion_or_deadlock() {
    let device = device();
    let (a, b) = (device.stream().unwrap(), device.stream().unwrap());
    let buffer = device.alloc(1 << 12).unwrap();
    let source: Vec<u8> = (0..1 << 12).map(|i: u32| (i % 251) as u8 + 1).collect();
    for (i, byte) in source.iter().enumerate() {
        let (to, from) = if i % 2 == 0 { (&a, &b) } else { (&b, &a) };
        to.wait_for(&from.record().unwrap()).unwrap();
        to.upload_bytes(&[*byte], &buffer, i as u64).unwrap();
        to.fill_zero(&buffer, i as u64 + 1, (1 << 12) - 1 - i as u64).unwrap();
    }
    assert_eq!(read(&device, &buffer), vec![0; 1 << 12]);
    b.synchronize().unwrap();
    assert_eq!(read(&device, &buffer), source);
}

#[test]
fn pinned_memory_is_copied_when_the_work_is_executed_not_before() {
    let device = device();
    let (stream, buffer) = (device.stream().unwrap(), device.alloc(16).unwrap());
    let mut host = device.alloc_pinned(16).unwrap();
    assert_eq!(host.write().unwrap().as_ptr().addr() % 4096, 0);
    host.write().unwrap().copy_from_slice(&[3; 16]);
    stream.upload(&mut host, 0, &buffer, 4, 12).unwrap();
    assert_eq!(host.len(), 16);
    assert_eq!(read(&device, &buffer), [0; 16]);
    // Waits for the upload, and so executes it.
    host.write().unwrap().fill(9);
    assert_eq!(read(&device, &buffer)[..5], [0, 0, 0, 0, 3]);
    stream.download(&buffer, 0, &mut host, 8, 8).unwrap();
    assert_eq!(host.read().unwrap(), [9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 3, 3, 3, 3]);
}

#[test]
fn pinned_memory_settles_transfers_of_every_stream() {
    let device = device();
    let (a, b) = (device.stream().unwrap(), device.stream().unwrap());
    let (x, y) = (device.alloc(4).unwrap(), device.alloc(4).unwrap());
    let mut host = device.alloc_pinned(4).unwrap();
    host.write().unwrap().fill(5);
    a.upload(&mut host, 0, &x, 0, 4).unwrap();
    b.upload(&mut host, 0, &y, 0, 4).unwrap();
    host.write().unwrap().fill(6);
    assert_eq!((read(&device, &x), read(&device, &y)), (vec![5; 4], vec![5; 4]));
}

#[test]
fn pinned_memory_that_was_not_lent_is_an_error_of_the_work() {
    let noop = Noop::new(1 << 16);
    let (stream, buffer) = (noop.stream_create().unwrap(), noop.buffer_create(8).unwrap());
    let mut host = noop.host_create(8).unwrap();
    noop.upload(stream, host.id(), 0, buffer, 0, 8).unwrap();
    let before = noop.event_record(stream).unwrap();
    noop.upload_bytes(stream, &[1; 8], buffer, 0).unwrap();
    assert!(matches!(noop.event_wait(before), Err(BackendError::Precondition { .. })));
    // Work behind a failure is not executed, and whoever waits for it, in any stream, hears of it.
    let other = noop.stream_create().unwrap();
    noop.stream_wait(other, noop.event_record(stream).unwrap()).unwrap();
    assert!(matches!(noop.download_bytes(other, buffer, 0, &mut [0; 8]), Err(BackendError::Precondition { .. })));
    host.lend();
    let fresh = noop.stream_create().unwrap();
    noop.upload(fresh, host.id(), 0, buffer, 0, 8).unwrap();
    noop.event_wait(noop.event_record(fresh).unwrap()).unwrap();
}

#[test]
fn released_memory_stays_accounted_until_pending_work_is_done() {
    let device = device();
    let stream = device.stream().unwrap();
    let (buffer, mut host) = (device.alloc(100).unwrap(), device.alloc_pinned(50).unwrap());
    stream.upload(&mut host, 0, &buffer, 0, 50).unwrap();
    let event = stream.record().unwrap();
    drop((buffer, host));
    assert_eq!(in_use(&device), (100, 50));
    event.wait().unwrap();
    assert_eq!(in_use(&device), (0, 0));

    let buffer = device.alloc(64).unwrap();
    stream.fill_zero(&buffer, 0, 64).unwrap();
    drop(buffer);
    assert_eq!(in_use(&device).0, 64);
    drop(stream);
    assert_eq!(in_use(&device).0, 0, "a released stream finishes its work");
}

#[test]
fn a_refusal_carries_numbers_and_changes_nothing() {
    let device = Device::new(Noop::with_pools(3, 1000, 100));
    let _first = device.alloc(900).unwrap();
    let refused = |pool, requested, in_use, capacity| BackendError::OutOfMemory { pool, requested, in_use, capacity };
    assert_eq!(device.alloc(101).unwrap_err(), refused(Pool::Device, 101, 900, 1000));
    assert_eq!(device.alloc_pinned(101).unwrap_err(), refused(Pool::Pinned, 101, 0, 100));
    assert_eq!(device.bases_loader(G1_SPEC).unwrap_err(), refused(Pool::Device, 384, 900, 1000));
    let pinned = BasesSpec { residency: Residency::Pinned, ..G1_SPEC };
    assert_eq!(device.bases_loader(pinned).unwrap_err(), refused(Pool::Pinned, 384, 0, 100));
    assert_eq!(in_use(&device), (900, 0));
    assert_eq!(device.memory().unwrap().driver_free, 100);
}

#[test]
fn what_the_system_refuses_is_out_of_memory_too() {
    let device = Device::new(Noop::new(u64::MAX));
    assert!(matches!(device.alloc(u64::MAX / 2 + 2), Err(BackendError::OutOfMemory { .. })));
    assert!(matches!(device.alloc_pinned(u64::MAX), Err(BackendError::OutOfMemory { .. })));
    assert_eq!(in_use(&device), (0, 0));
}

#[test]
fn computing_yields_zeros_and_infinity() {
    let device = device();
    let stream = device.stream().unwrap();
    let scalars = device.alloc_for::<Scalar>(4).unwrap();
    let points = device.alloc_for::<G1>(4).unwrap();
    stream.upload_bytes(&[1; 128], &scalars, 0).unwrap();
    stream.upload_bytes(&[1; 384], &points, 0).unwrap();
    let bases = device.load_bases(G1_SPEC, &[G1::generator(); 4]).unwrap();
    let sum = stream.msm(&bases, &MsmScalars::Dense { buffer: &scalars, first: 0, len: 4 }).unwrap();
    let spent = device.memory().unwrap().device.in_use;
    drop(bases);
    assert_eq!(device.memory().unwrap().device.in_use, spent);
    assert!(!sum.is_done().unwrap());
    assert_eq!(sum.wait::<G1>().unwrap(), G1::identity());
    assert_eq!(device.memory().unwrap().device.in_use, spent - 384);

    let plan = NttPlan {
        curve: CurveId::Bls12_381,
        log_n: 1,
        direction: crate::Direction::Forward,
        coset: crate::Coset::One,
        order: Order::Natural,
    };
    stream.ntt(&plan, &scalars).unwrap();
    let base = vec![0; 96];
    let plan = FixedBasePlan { curve: CurveId::Bls12_381, group: GroupId::G1, base, count: 3 };
    stream.fixed_base_mul(&plan, &scalars, &points).unwrap();
    stream.synchronize().unwrap();
    let half: Vec<u8> = [[0; 64], [1; 64]].concat();
    assert_eq!(read(&device, &scalars), half);
    assert_eq!(read(&device, &points), [vec![0; 288], vec![1; 96]].concat());
}

#[test]
fn unknown_handles_and_wild_ranges_are_errors() {
    let noop = Noop::new(1 << 16);
    let (stream, buffer) = (noop.stream_create().unwrap(), noop.buffer_create(8).unwrap());
    let is_precondition = |error: BackendError, what: &str| match error {
        BackendError::Precondition { what: found, .. } => assert_eq!(found, what),
        other => panic!("{other}"),
    };
    is_precondition(noop.event_wait(EventId(99)).unwrap_err(), "event 99");
    is_precondition(noop.pending_wait(PendingId(98), &mut []).unwrap_err(), "pending result 98");
    is_precondition(noop.fill_zero(StreamId(97), buffer, 0, 8).unwrap_err(), "stream 97");
    is_precondition(noop.fill_zero(stream, BufferId(96), 0, 8).unwrap_err(), "buffer 96");
    is_precondition(noop.fill_zero(stream, buffer, 1, 8).unwrap_err(), "the range of the buffer");
    is_precondition(noop.fill_zero(stream, buffer, u64::MAX, 2).unwrap_err(), "the range of the buffer");
    is_precondition(
        noop.ntt(
            stream,
            &NttPlan {
                curve: CurveId::Bn254,
                log_n: 64,
                direction: crate::Direction::Forward,
                coset: crate::Coset::One,
                order: Order::Natural,
            },
            buffer,
        )
        .unwrap_err(),
        "log_n",
    );
    noop.release(Handle::Buffer(buffer));
    is_precondition(noop.download_bytes(stream, buffer, 0, &mut [0]).unwrap_err(), &format!("buffer {}", buffer.0));
}

#[test]
fn a_result_is_taken_once() {
    let noop = Noop::new(1 << 16);
    let (stream, bases) = (noop.stream_create().unwrap(), noop.bases_create(&G1_SPEC).unwrap());
    let buffer = noop.buffer_create(128).unwrap();
    let sum = noop.msm(stream, bases, &MsmOperands::Dense { buffer, first: 0, len: 4 }).unwrap();
    assert!(noop.pending_wait(sum, &mut [1; 95]).is_err());
    let mut point = [1; 96];
    noop.pending_wait(sum, &mut point).unwrap();
    assert_eq!(point, [0; 96]);
    assert!(noop.pending_wait(sum, &mut point).is_err());
}

#[test]
fn the_backend_lists_its_devices_and_refuses_others() {
    let backend = NoopBackend::new(2);
    assert_eq!(backend.devices().unwrap().len(), 2);
    assert_eq!(backend.find("noop-1").unwrap(), 1);
    let options = DeviceOptions { device_memory_limit: 10, ..DeviceOptions::default() };
    let device = Device::open(&backend, 1, &options).unwrap();
    assert_eq!((device.info().index, device.memory().unwrap().device.capacity), (1, 10));
    assert_eq!(device.memory().unwrap().pinned.capacity, NoopBackend::DEFAULT_POOL_BYTES);
    assert!(matches!(backend.open(2, &options), Err(BackendError::NoSuchDevice { .. })));
}
