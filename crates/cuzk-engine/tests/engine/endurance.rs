//! A day's jobs, one after the other and many at a time, leave nothing behind.

use std::collections::VecDeque;

use cuzk_engine::{JobOptions, Shutdown};

use crate::common::*;

const STEPS: usize = 3;
const JOBS: u64 = 5000;

/// Bytes of the process that are resident, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

#[test]
fn five_thousand_jobs_leave_nothing_behind() {
    let toy = Toy::new();
    let engine = engine(config(2), vec![toy.spec()]);
    let circuit = engine.register(hollow_circuit(STEPS)).unwrap();
    let mut running = VecDeque::new();
    let mut after_a_fifth = None;
    for x in 0..JOBS {
        running.push_back((x, engine.submit(circuit, squares(x, STEPS, 1), JobOptions::default())));
        if running.len() == 20 {
            let (x, job) = running.pop_front().unwrap();
            expect_squares(&job, x, STEPS, 1);
        }
        if x == JOBS / 5 {
            after_a_fifth = resident();
        }
    }
    for (x, job) in running {
        expect_squares(&job, x, STEPS, 1);
    }
    if let (Some(early), Some(late)) = (after_a_fifth, resident()) {
        println!("resident after a fifth {early} bytes, at the end {late}");
        // Other tests of this process run beside it.
        assert!(late < early + (64 << 20), "memory grows: {early} to {late} bytes");
    }
    let status = engine.status().unwrap();
    assert_eq!((status.totals.jobs_completed, status.totals.failed_attempts), (JOBS, 0));
    expect_clean(&engine);
    engine.shutdown(Shutdown::Drain);
    assert_eq!(toy.in_use(), (0, 0));
}
