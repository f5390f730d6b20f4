//! What recording costs: `cargo run --release -p cuzk-timeline --example overhead`.
//!
//! Each span is given the time by the clock of real time at both ends, as an engine does.

use std::{thread, time::Instant};

use cuzk_timeline::{Limits, Pool, Recorder, Span, Stage, TrackKind};

const SPANS: u32 = 2_000_000;

/// Nanoseconds a call of `work`, which gets the number of the call.
fn per_call(mut work: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..u64::from(SPANS)).for_each(&mut work);
    start.elapsed().as_secs_f64() * 1e9 / f64::from(SPANS)
}

fn main() {
    let recorder = Recorder::new("overhead", Limits::default());
    let record = |track| {
        per_call(|i| {
            let start = recorder.now();
            let span = Span::new(track, Stage::Kernels, start, recorder.now());
            recorder.span(Span { bytes: i, ..span });
        })
    };
    let track = recorder.add_track("worker", TrackKind::Synthesis);
    println!("two readings of the clock: {:.0} ns", per_call(|_| _ = (recorder.now(), recorder.now())));
    println!("a span with its two readings, one thread: {:.0} ns", record(track));
    println!(
        "a sample of memory with a reading: {:.0} ns",
        per_call(|i| recorder.memory(Pool::Host, recorder.now(), i))
    );
    let threads = thread::available_parallelism().map_or(2, |n| n.get());
    let each = thread::scope(|scope| {
        let record = &record;
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(move || record(track))).collect();
        handles.into_iter().filter_map(|h| h.join().ok()).fold(0.0, f64::max)
    });
    println!("a span with its two readings, {threads} threads at once that do nothing else: {each:.0} ns");
    let dropped = recorder.dropped();
    println!("kept {} spans, dropped {}", recorder.snapshot(recorder.now()).spans.len(), dropped.spans);
}
