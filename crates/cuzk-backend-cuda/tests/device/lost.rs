//! A fault in a kernel: the device is lost, which is told once by whoever waits, and from then on by every call at
//! once. It takes the whole process's context with it, so it happens in a process of its own.

use std::process::Command;

use cuzk_backend::{
    Backend, BackendError, BasesSpec, Coset, DeviceOptions, Direction, MsmOperands, NttPlan, Operation, Order,
    Residency,
};
use cuzk_backend_cuda::CudaBackend;
use cuzk_curve::{CurveId, GroupId};

/// Says to the test below that it is the process that may fail.
const MARK: &str = "CUZK_TEST_LOSES_ITS_DEVICE";

#[test]
fn a_fault_loses_the_device_with_its_cause() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lost::loses_its_device", "--ignored", "--nocapture"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

fn cause<T>(what: &str, result: Result<T, BackendError>) -> String {
    match result {
        Err(BackendError::DeviceLost { device, cause }) => {
            assert!(device.starts_with("GPU-"), "{device}");
            cause
        }
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what} succeeded on a lost device"),
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn loses_its_device() {
    if std::env::var_os(MARK).is_none() {
        return;
    }
    let options = DeviceOptions { device_memory_limit: 1 << 30, pinned_bytes: 16 << 20, threads: 0 };
    let ops = CudaBackend.open(0, &options).unwrap();
    let (stream, small) = (ops.stream_create().unwrap(), ops.buffer_create(4096).unwrap());
    let curve = CurveId::Bls12_381;
    let spec = BasesSpec { curve, group: GroupId::G1, count: 100, residency: Residency::Device, multiples: 1 };
    let bases = ops.bases_create(&spec).unwrap();
    ops.bases_write(bases, 0, &[0; 9600]).unwrap();
    ops.bases_finish(bases).unwrap();
    let dense = MsmOperands::Dense { buffer: small, first: 0, len: 100 };
    let pending = ops.msm(stream, bases, &dense).unwrap();
    // 2^26 scalars in a buffer of 4 KiB: what `cuzk_backend::Stream` refuses.
    let wild = NttPlan {
        curve,
        log_n: 26,
        direction: Direction::Forward,
        coset: Coset::One,
        order: Order::NaturalToBitReversed,
    };
    ops.ntt(stream, &wild, small).unwrap();
    let event = ops.event_record(stream).unwrap();
    let first = cause("event_wait", ops.event_wait(event));
    assert!(first.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{first}");
    for (what, told) in [
        ("event_wait", cause("event_wait", ops.event_wait(event))),
        ("event_elapsed", cause("event_elapsed", ops.event_elapsed(event, event))),
        ("event_query", cause("event_query", ops.event_query(event))),
        ("event_record", cause("event_record", ops.event_record(stream))),
        ("pending_query", cause("pending_query", ops.pending_query(pending))),
        ("pending_wait", cause("pending_wait", ops.pending_wait(pending, &mut [0; 96]))),
        ("memory", cause("memory", ops.memory())),
        ("workspace", cause("workspace", ops.workspace(&Operation::Density { len: 1 }, 0))),
        ("buffer_create", cause("buffer_create", ops.buffer_create(1))),
        ("host_create", cause("host_create", ops.host_create(1))),
        ("stream_create", cause("stream_create", ops.stream_create())),
        ("upload_bytes", cause("upload_bytes", ops.upload_bytes(stream, &[], small, 0))),
        ("fill_zero", cause("fill_zero", ops.fill_zero(stream, small, 0, 0))),
        ("bases_create", cause("bases_create", ops.bases_create(&spec))),
        ("bases_finish", cause("bases_finish", ops.bases_finish(bases))),
        ("msm", cause("msm", ops.msm(stream, bases, &dense))),
        ("density_create", cause("density_create", ops.density_create(&[1], 1))),
    ] {
        assert_eq!(told, first, "{what}");
    }
    ops.release(pending.into());
    ops.release(small.into());
    ops.release(stream.into());
}
