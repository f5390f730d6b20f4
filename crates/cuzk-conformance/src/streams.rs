//! Order: streams, events, results, and several threads.

use std::{
    thread,
    time::{Duration, Instant},
};

use cuzk_backend::{
    BasesSpec, CoefficientIndices, Coset, Direction, MatrixView, MsmScalars, NttPlan, Order, QuotientPlan, Residency,
    Result, RowOffsets,
};
use cuzk_curve::{Curve, GroupId, repr};
use ff::Field;

use crate::{
    Suite,
    matrices::Packed,
    oracle::{multiples, numbers, scalars, sum},
    suite::{Bench, done},
};

/// Asks until the answer is yes.
fn until_done(what: &str, mut is_done: impl FnMut() -> Result<bool>) {
    let start = Instant::now();
    while !done(what, is_done()) {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} is not done after a minute");
        thread::sleep(Duration::from_micros(50));
    }
}

/// What one stream writes another one reads, if it waits for the event.
pub fn events_order_streams(suite: &Suite) {
    let Bench { device, stream: first } = suite.bench();
    let second = done("making a stream", device.stream());
    let n = 1 << 20;
    let buffer = done("alloc", device.alloc(n));
    let (mut source, mut target) =
        (done("alloc_pinned", device.alloc_pinned(n)), done("alloc_pinned", device.alloc_pinned(n)));
    for round in 1..=8u8 {
        done("write", source.write()).fill(round);
        done("upload", first.upload(&mut source, 0, &buffer, 0, n));
        done("wait_for", second.wait_for(&done("record", first.record())));
        done("download", second.download(&buffer, 0, &mut target, 0, n));
        // The next upload must not overtake this download.
        done("wait_for", first.wait_for(&done("record", second.record())));
        assert!(done("read", target.read()).iter().all(|b| *b == round), "round {round}");
    }
    let event = done("record", first.record());
    until_done("an event", || event.is_done());
    done("wait", event.wait());
    done("wait a second time", event.clone().wait());
    done("synchronize", second.synchronize());
    // An event outlives its stream.
    let event = done("record", second.record());
    drop(second);
    done("wait", event.wait());
    assert!(done("is_done", event.is_done()));
}

/// Events of a stream follow each other in time, and what lies between them is not longer than the host saw it last.
pub fn events_tell_the_time_between_them(suite: &Suite) {
    let Bench { device, stream } = suite.bench();
    let n = 1 << 24;
    let buffer = done("alloc", device.alloc(n));
    let started = Instant::now();
    let marks: Vec<_> = (0..4)
        .map(|_| {
            let mark = done("record", stream.record());
            done("fill_zero", stream.fill_zero(&buffer, 0, n));
            mark
        })
        .collect();
    let between = |from: usize, to: usize| done("elapsed_since", marks[to].elapsed_since(&marks[from]));
    let all = between(0, 3);
    let host = started.elapsed();
    assert!(all <= host + host / 10, "{all:?} on the device, {host:?} on the host");
    assert_eq!(between(0, 0), Duration::ZERO);
    assert_eq!(between(3, 0), Duration::ZERO, "a later event came first");
    let parts: Duration = (0..3).map(|i| between(i, i + 1)).sum();
    // The clocks of devices are counted in half microseconds.
    assert!(parts.abs_diff(all) <= Duration::from_micros(8), "{parts:?} in parts, {all:?} at once");
}

/// Buffers, pinned memory and streams may be dropped at once after work on them was enqueued; their memory comes back.
pub fn objects_may_be_dropped_while_work_is_pending(suite: &Suite) {
    let device = suite.device();
    for _ in 0..20 {
        let stream = done("making a stream", device.stream());
        let buffer = done("alloc", device.alloc(1 << 20));
        let mut host = done("alloc_pinned", device.alloc_pinned(1 << 20));
        done("write", host.write()).fill(1);
        done("upload", stream.upload(&mut host, 0, &buffer, 0, 1 << 20));
        done("fill_zero", stream.fill_zero(&buffer, 0, 1 << 20));
        drop((buffer, host));
        let event = done("record", stream.record());
        drop(stream);
        done("wait", event.wait());
    }
    let usage = done("memory", device.memory());
    assert_eq!((usage.device.in_use, usage.pinned.in_use), (0, 0));
}

/// Four threads, each with a stream and buffers of its own, on one device.
pub fn threads_share_a_device<C: Curve>(suite: &Suite) {
    let device = suite.device();
    let log_n = suite.max_log_n.min(12);
    thread::scope(|scope| {
        for seed in 0..4 {
            let device = &device;
            scope.spawn(move || {
                let bench = Bench { device: device.clone(), stream: done("making a stream", device.stream()) };
                let input = scalars::<C::Fr>(1 << log_n, seed);
                for _ in 0..5 {
                    let buffer = bench.upload(&input);
                    for direction in [Direction::Forward, Direction::Inverse] {
                        let plan = NttPlan { curve: C::ID, log_n, direction, coset: Coset::One, order: Order::Natural };
                        done("ntt", bench.stream.ntt(&plan, &buffer));
                    }
                    assert!(bench.download(&buffer, vec![C::Fr::ZERO; input.len()]) == input, "thread {seed}");
                }
            });
        }
    });
    assert_eq!(done("memory", device.memory()).device.in_use, 0);
}

/// The device's part of a proof, with one wait at the end: evaluations, quotient and sums in the order of one stream.
///
/// The system is `w[i] · w[i] = w[i]²` over the domain, so A·w = B·w = w.
pub fn a_proof_is_computed_in_one_order<C: Curve>(suite: &Suite) {
    let bench = suite.bench();
    let Bench { device, stream } = &bench;
    let log_n = suite.max_log_n.min(8);
    let n = 1usize << log_n;
    let identity: Vec<u32> = (0..n as u32).collect();
    let offsets: Vec<u32> = (0..=n as u32).collect();
    let matrix = done(
        "load_matrix",
        device.load_matrix(&MatrixView {
            curve: C::ID,
            n_columns: n as u64,
            row_offsets: RowOffsets::U32(&offsets),
            columns: &identity,
            coefficients: CoefficientIndices::U8(&vec![0; n]),
            dictionary: repr::as_bytes(&[C::Fr::ONE, -C::Fr::ONE]),
        }),
    );
    let spec =
        BasesSpec { curve: C::ID, group: GroupId::G1, count: n as u64, residency: Residency::Device, multiples: 1 };
    let points = multiples::<C::G1Affine>(n);
    let bases = done("load_bases", device.load_bases(spec, &points));
    let packed = Packed::<C::Fr>::random(n, 6);
    let run = || {
        let (a, b) = (
            done("alloc_for", device.alloc_for::<C::Fr>(n as u64)),
            done("alloc_for", device.alloc_for::<C::Fr>(n as u64)),
        );
        let assignment = packed.upload(&bench, C::ID);
        for buffer in [&a, &b] {
            done("evaluate", stream.evaluate(&matrix, &assignment, buffer, n as u64));
        }
        done("quotient", stream.quotient(&QuotientPlan { curve: C::ID, log_n }, &a, &b));
        let h = done("msm", stream.msm(&bases, &MsmScalars::Dense { buffer: &a, first: 0, len: n as u64 }));
        let l = MsmScalars::Assignment { assignment: &assignment, variables: 0..n as u64, density: None };
        let l = done("msm", stream.msm(&bases, &l));
        // Pending work keeps what it needs.
        drop((b, assignment));
        until_done("a sum", || h.is_done());
        let (l, h) = (done("wait", l.wait::<C::G1Affine>()), done("wait", h.wait::<C::G1Affine>()));
        (l, h, bench.download(&a, vec![C::Fr::ZERO; n]))
    };
    let (l, h, coefficients) = run();
    let logarithms = numbers::<C::Fr>(n);
    assert!(l == sum(&packed.values, &logarithms), "the sum over the assignment");
    assert!(h == sum(&coefficients, &logarithms), "the sum over the quotient");
    assert!(coefficients.iter().any(|c| *c != C::Fr::ZERO), "a trivial quotient");
    let again = run();
    assert!(again == (l, h, coefficients), "another proof when it is repeated");
}
