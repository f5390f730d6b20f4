//! A backend behind the boundary is the same as the backend itself.

use std::sync::Arc;

use cuzk_backend::{
    AssignmentId, AssignmentShape, AssignmentView, Backend, BackendError, BasesId, BasesSpec, BufferId,
    CoefficientIndices, Coset, DensityId, DeviceOps, DeviceOptions, Direction, EventId, FixedBasePlan, Handle, HostId,
    MatrixId, MatrixShape, MatrixView, MsmOperands, NttPlan, Operation, Order, PendingId, QuotientPlan, Residency,
    Result, RowOffsets, ScalarsShape, StreamId,
};
use cuzk_curve::{CurveId, GroupId};

use crate::{
    backend::{ECHO, FAILING, NOOP, PANICKING, TestBackend, errors},
    common::{noop_plugin, options},
};

/// The same device, directly and through the plugin.
fn both(index: u32) -> [Arc<dyn DeviceOps>; 2] {
    [TestBackend::new().open(index, &options()).unwrap(), noop_plugin().open(index, &options()).unwrap()]
}

const G1: BasesSpec =
    BasesSpec { curve: CurveId::Bls12_381, group: GroupId::G1, count: 2, residency: Residency::Device, multiples: 1 };

const MATRIX: MatrixView<'_> = MatrixView {
    curve: CurveId::Bls12_381,
    n_columns: 3,
    row_offsets: RowOffsets::U32(&[0, 1, 2]),
    columns: &[0, 2],
    coefficients: CoefficientIndices::U8(&[1, 0]),
    dictionary: &[5; 64],
};

const ASSIGNMENT: AssignmentView<'_> = AssignmentView {
    curve: CurveId::Bls12_381,
    n_variables: 3,
    ones: &[0b011],
    wide: &[0b100],
    rank: &[0],
    wide_scalars: &[9; 32],
};

const NTT: NttPlan = NttPlan {
    curve: CurveId::Bls12_381,
    log_n: 1,
    direction: Direction::Forward,
    coset: Coset::One,
    order: Order::Natural,
};

/// Every kind of operation, with numbers that tell their places.
fn operations() -> Vec<Operation> {
    let matrix = MatrixShape {
        curve: CurveId::Bn254,
        n_rows: 70,
        n_nonzeros: 71,
        n_coefficients: 72,
        row_offset_bytes: 8,
        coefficient_bytes: 2,
    };
    let assignment = AssignmentShape { curve: CurveId::Bls12_381, n_variables: 73, n_ones: 74, n_wide: 75 };
    vec![
        Operation::Ntt(NTT),
        Operation::Ntt(NttPlan { log_n: 9, order: Order::NaturalToBitReversed, direction: Direction::Inverse, ..NTT }),
        Operation::Quotient(QuotientPlan { curve: CurveId::Bn254, log_n: 76 }),
        Operation::Matrix(matrix),
        Operation::Density { len: 77 },
        Operation::Assignment(assignment),
        Operation::Evaluate(matrix),
        Operation::Bases(BasesSpec { multiples: 13, ..G1 }),
        Operation::Msm { bases: G1, scalars: ScalarsShape::Dense },
        Operation::Msm {
            bases: BasesSpec { residency: Residency::Pinned, ..G1 },
            scalars: ScalarsShape::Assignment { assignment, len: 78 },
        },
        Operation::FixedBase { curve: CurveId::Bn254, group: GroupId::G2, count: 79 },
    ]
}

/// Calls every fallible operation of a device that fails in all of them, with arguments that tell their places and
/// plans in all their variants.
fn call_everything(ops: &dyn DeviceOps) -> Vec<(&'static str, BackendError)> {
    let mut failures = Vec::new();
    let mut note = |operation: &'static str, outcome: Result<()>| failures.push((operation, outcome.unwrap_err()));
    let (stream, buffer, other) = (StreamId(u64::MAX), BufferId(2), BufferId(3));

    note("memory", ops.memory().map(drop));
    for operation in operations() {
        note("workspace", ops.workspace(&operation, 1 << 50).map(drop));
    }
    note("buffer_create", ops.buffer_create(1 << 40).map(drop));
    note("host_create", ops.host_create(4096).map(drop));
    note("stream_create", ops.stream_create().map(drop));
    note("event_record", ops.event_record(stream).map(drop));
    note("stream_wait", ops.stream_wait(stream, EventId(4)));
    note("event_query", ops.event_query(EventId(5)).map(drop));
    note("event_wait", ops.event_wait(EventId(99)));
    note("event_elapsed", ops.event_elapsed(EventId(6), EventId(7)).map(drop));
    note("upload", ops.upload(stream, HostId(10), 11, BufferId(12), 13, 14));
    note("download", ops.download(stream, BufferId(20), 21, HostId(22), 23, 24));
    note("upload_bytes", ops.upload_bytes(stream, &[1, 2, 3], buffer, 25));
    note("upload_bytes", ops.upload_bytes(stream, &[], buffer, 26));
    note("download_bytes", ops.download_bytes(stream, buffer, 27, &mut [4, 5]));
    note("download_bytes", ops.download_bytes(stream, buffer, 28, &mut []));
    note("fill_zero", ops.fill_zero(stream, buffer, 29, 30));

    for curve in CurveId::ALL {
        for direction in [Direction::Forward, Direction::Inverse] {
            for order in [Order::Natural, Order::NaturalToBitReversed, Order::BitReversedToNatural] {
                for coset in [Coset::One, Coset::Shift([1, 2, 3, u64::MAX])] {
                    let plan = NttPlan { curve, log_n: 27, direction, coset, order };
                    note("ntt", ops.ntt(stream, &plan, buffer));
                }
            }
        }
        note("quotient", ops.quotient(stream, &QuotientPlan { curve, log_n: 26 }, buffer, other));
        for group in [GroupId::G1, GroupId::G2] {
            for residency in [Residency::Device, Residency::Pinned] {
                note(
                    "bases_create",
                    ops.bases_create(&BasesSpec { curve, group, count: 31, residency, multiples: 5 }).map(drop),
                );
            }
            let plan = FixedBasePlan { curve, group, base: (0..96).collect(), count: 1 << 33 };
            note("fixed_base_mul", ops.fixed_base_mul(stream, &plan, buffer, other));
        }
    }

    let row_offsets = [RowOffsets::U32(&[0, 2, 3]), RowOffsets::U64(&[0, 1 << 33, 3])];
    let coefficients = [
        CoefficientIndices::U8(&[0, 1, 2]),
        CoefficientIndices::U16(&[3, 4, 500]),
        CoefficientIndices::U32(&[6, 7, 80_000]),
    ];
    for row_offsets in row_offsets {
        for coefficients in coefficients {
            let matrix = MatrixView { row_offsets, columns: &[7, 8, 9], coefficients, dictionary: &[3; 96], ..MATRIX };
            note("matrix_create", ops.matrix_create(&matrix).map(drop));
        }
    }
    note("density_create", ops.density_create(&[1, 2], 65).map(drop));
    note("density_create", ops.density_create(&[], 0).map(drop));
    note("assignment_create", ops.assignment_create(stream, &ASSIGNMENT).map(drop));
    let empty = AssignmentView { n_variables: 0, ones: &[], wide: &[], rank: &[], wide_scalars: &[], ..ASSIGNMENT };
    note("assignment_create", ops.assignment_create(stream, &empty).map(drop));
    note("evaluate", ops.evaluate(stream, MatrixId(40), AssignmentId(41), BufferId(42), 43));
    note("bases_write", ops.bases_write(BasesId(44), 45, &[6, 7, 8]));
    note("bases_finish", ops.bases_finish(BasesId(46)));
    for scalars in [
        MsmOperands::Dense { buffer, first: 50, len: 51 },
        MsmOperands::Assignment { assignment: AssignmentId(52), first: 53, len: 54, density: None },
        MsmOperands::Assignment { assignment: AssignmentId(55), first: 56, len: 57, density: Some(DensityId(0)) },
    ] {
        note("msm", ops.msm(stream, BasesId(58), &scalars).map(drop));
    }
    note("pending_query", ops.pending_query(PendingId(60)).map(drop));
    note("pending_wait", ops.pending_wait(PendingId(61), &mut [1, 2, 3]));
    failures
}

#[test]
fn every_operation_gets_what_it_was_given() {
    let [direct, through] = both(ECHO).map(|ops| call_everything(&*ops));
    assert!(direct.len() > 60);
    for (direct, through) in direct.into_iter().zip(through) {
        assert_eq!(direct, through);
    }
}

#[test]
fn a_panic_in_any_operation_is_an_error_and_the_host_lives() {
    let ops = noop_plugin().open(PANICKING, &options()).unwrap();
    for (operation, error) in call_everything(&*ops) {
        let message = format!("device {PANICKING} panics");
        assert_eq!(error, BackendError::Panicked { operation: operation.to_owned(), message });
        assert!(error.is_device_fault());
    }
    ops.release(Handle::Buffer(BufferId(1)));
    let threads = DeviceOptions { threads: u32::MAX, ..options() };
    let Err(error) = noop_plugin().open(NOOP, &threads) else { panic!("opened") };
    assert_eq!(error, BackendError::Panicked { operation: "open".into(), message: "too many threads".into() });
}

#[test]
fn every_error_arrives_as_it_was_sent() {
    let ops = noop_plugin().open(FAILING, &options()).unwrap();
    for (number, error) in errors().into_iter().enumerate() {
        assert_eq!(ops.event_wait(EventId(number as u64)).unwrap_err(), error);
    }
}

#[test]
fn the_backend_describes_itself() {
    let (direct, through) = (TestBackend::new(), noop_plugin());
    assert_eq!((direct.name(), direct.version()), (through.name(), through.version()));
    assert_eq!(direct.devices().unwrap(), through.devices().unwrap());
    assert_eq!(through.abi(), cuzk_plugin::abi::VERSION);
    let missing = |backend: &dyn Backend| backend.open(9, &options()).map(drop).unwrap_err();
    assert_eq!(missing(&direct), missing(&through));
    let [direct, through] = both(NOOP);
    assert_eq!(direct.info(), through.info());
}

/// What a caller sees of a device in one life of everything on it.
fn life(ops: &dyn DeviceOps) -> Result<Vec<String>> {
    let mut seen = Vec::new();
    let mut see = |what: &str, value: &dyn std::fmt::Debug| seen.push(format!("{what}: {value:?}"));
    let (a, b) = (ops.stream_create()?, ops.stream_create()?);
    let buffer = ops.buffer_create(256)?;
    let mut host = ops.host_create(512)?;
    see("pinned", &(host.bytes().len(), host.bytes().as_ptr().addr() % 4096));
    for (byte, i) in host.bytes_mut().iter_mut().zip(0..) {
        *byte = (i % 251) as u8;
    }
    host.lend();
    ops.upload(a, host.id(), 7, buffer, 0, 256)?;
    let uploaded = ops.event_record(a)?;
    see("before the wait", &download(ops, b, buffer)?);
    see("polled", &[ops.event_query(uploaded)?, ops.event_query(uploaded)?]);
    see("after the wait", &download(ops, b, buffer)?);

    ops.upload_bytes(a, &[0xaa; 16], buffer, 8)?;
    ops.fill_zero(a, buffer, 20, 30)?;
    let written = ops.event_record(a)?;
    ops.stream_wait(b, written)?;
    ops.download(b, buffer, 0, host.id(), 100, 256)?;
    ops.event_wait(ops.event_record(b)?)?;
    host.reclaim();
    see("downloaded", &host.bytes());
    see("elapsed", &[ops.event_elapsed(uploaded, written), ops.event_elapsed(written, EventId(1 << 50))]);
    see("memory", &ops.memory()?);

    ops.ntt(a, &NTT, buffer)?;
    ops.quotient(a, &QuotientPlan { curve: CurveId::Bls12_381, log_n: 1 }, buffer, buffer)?;
    let matrix = ops.matrix_create(&MATRIX)?;
    let assignment = ops.assignment_create(a, &ASSIGNMENT)?;
    ops.evaluate(a, matrix, assignment, buffer, 3)?;
    see("computed", &download(ops, a, buffer)?);
    let density = ops.density_create(&[0b101], 3)?;
    let bases = ops.bases_create(&G1)?;
    ops.bases_write(bases, 0, &[1; 192])?;
    ops.bases_finish(bases)?;
    let operands = MsmOperands::Assignment { assignment, first: 0, len: 3, density: Some(density) };
    let sum = ops.msm(a, bases, &operands)?;
    see("memory", &ops.memory()?);
    for handle in [density.into(), assignment.into(), bases.into(), matrix.into()] {
        ops.release(handle);
        see("released while pending", &ops.memory()?);
    }
    let mut point = [1; 96];
    ops.pending_wait(sum, &mut point)?;
    see("sum", &point);
    see("memory", &ops.memory()?);
    see("once only", &ops.pending_wait(sum, &mut point));

    see("out of memory", &ops.buffer_create(1 << 16));
    see("out of pinned memory", &ops.host_create((1 << 14) + 1).map(drop));
    see("too far", &ops.fill_zero(a, buffer, 255, 2));
    see("unknown", &ops.event_wait(EventId(1 << 50)));
    let mut short = ops.host_create(1)?;
    short.reclaim();
    ops.release(written.into());
    see("gone", &ops.event_query(written));
    let host_id = host.id();
    drop((host, short));
    for handle in [host_id.into(), buffer.into(), sum.into(), a.into(), b.into()] {
        ops.release(handle);
    }
    see("gone", &ops.upload(a, host_id, 0, buffer, 0, 1));
    Ok(seen)
}

fn download(ops: &dyn DeviceOps, stream: StreamId, buffer: BufferId) -> Result<Vec<u8>> {
    let mut bytes = vec![0xee; 256];
    ops.download_bytes(stream, buffer, 0, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn a_device_behind_the_boundary_lives_the_same_life() {
    let [direct, through] = both(NOOP).map(|ops| life(&*ops).unwrap());
    assert!(direct.len() > 15);
    for (direct, through) in direct.iter().zip(&through) {
        assert_eq!(direct, through);
    }
    assert_eq!(direct.len(), through.len());
}

#[test]
fn workspaces_are_told_as_they_are() {
    let [direct, through] = both(NOOP);
    for operation in operations() {
        for room in [0, 1 << 10, u64::MAX] {
            assert_eq!(direct.workspace(&operation, room), through.workspace(&operation, room), "{operation:?}");
        }
    }
}

#[test]
fn pinned_memory_outlives_its_release_while_the_host_looks_at_it() {
    let ops = noop_plugin().open(NOOP, &options()).unwrap();
    let mut host = ops.host_create(64).unwrap();
    host.bytes_mut().fill(7);
    ops.release(host.id().into());
    assert_eq!(ops.memory().unwrap().pinned.in_use, 64);
    // Nor does it need anybody to hold the device.
    let pinned = |ops: &dyn DeviceOps| ops.memory().unwrap().pinned.in_use;
    let other = ops.host_create(64).unwrap();
    assert_eq!(pinned(&*ops), 128);
    ops.release(other.id().into());
    drop(other);
    assert_eq!(pinned(&*ops), 64);
    drop(ops);
    assert_eq!(host.bytes(), [7; 64]);
}

#[test]
fn streams_of_many_threads_do_not_disturb_each_other() {
    let ops = noop_plugin().open(NOOP, &options()).unwrap();
    std::thread::scope(|scope| {
        for t in 0..8u8 {
            let ops = &*ops;
            scope.spawn(move || {
                let (stream, buffer) = (ops.stream_create().unwrap(), ops.buffer_create(256).unwrap());
                for round in 0..50u8 {
                    ops.upload_bytes(stream, &[t ^ round; 256], buffer, 0).unwrap();
                    assert_eq!(download(ops, stream, buffer).unwrap(), [t ^ round; 256]);
                }
                ops.release(buffer.into());
                ops.release(stream.into());
            });
        }
    });
    assert_eq!(ops.memory().unwrap().device.in_use, 0);
}

#[test]
fn a_bitmap_of_the_wrong_length_does_not_cross() {
    let [direct, through] = both(NOOP).map(|ops| ops.density_create(&[0], 65).unwrap_err());
    assert_eq!(direct, through);
}
