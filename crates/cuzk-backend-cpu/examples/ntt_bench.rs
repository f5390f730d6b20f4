//! Speed of the transforms and of the quotient beside `halo2curves::fft::best_fft`, one JSON object a line.
//!
//! `cargo run --release -p cuzk-backend-cpu --example ntt_bench -- [threads] [smallest log_n] [largest log_n]`
//!
//! Times are means of several runs in nanoseconds of CPU time an element, all threads together, so that a busy machine
//! changes them little; ratio > 1: ours is faster.

use std::fs;

use blstrs::Scalar;
use cuzk_backend::{Coset, Direction, NttPlan, Order, QuotientPlan};
use cuzk_backend_cpu::{CodePath, ntt};
use cuzk_curve::{CurveId, ScalarRepr};
use ff::Field;
use halo2curves::fft::best_fft;
use rand_core::SeedableRng;

/// CPU time of all threads of this process in seconds, as Linux counts it.
fn cpu_seconds() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    nanoseconds.sum::<u64>() as f64 * 1e-9
}

/// The mean of as many runs as fill a second after the first: the system counts CPU time in steps of some milliseconds.
fn mean(mut run: impl FnMut()) -> f64 {
    run();
    let (start, mut runs) = (cpu_seconds(), 0);
    loop {
        run();
        runs += 1;
        let total = cpu_seconds() - start;
        if total >= 1.0 {
            return total / f64::from(runs);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let mut next = |default: u32| match arguments.next() {
        Some(Ok(number)) => number,
        None => default,
        Some(Err(error)) => {
            eprintln!("not a number: {error}");
            std::process::exit(2)
        }
    };
    let (threads, from, to) = (next(1), next(16), next(22));
    let pool = match rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build() {
        Ok(pool) => pool,
        Err(error) => {
            eprintln!("{threads} threads: {error}");
            std::process::exit(2)
        }
    };
    pool.install(|| {
        for log_n in from..=to {
            measure(threads, log_n);
        }
    });
}

fn measure(threads: u32, log_n: u32) {
    let n = 1usize << log_n;
    let ns = |seconds: f64| seconds * 1e9 / n as f64;
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(u64::from(log_n));
    let data: Vec<Scalar> = (0..n).map(|_| Scalar::random(&mut rng)).collect();
    let omega = Scalar::root_of_unity(log_n).unwrap_or(Scalar::ONE);
    let mut x = data.clone();
    let peer = ns(mean(|| best_fft(&mut x, omega, log_n)));
    let curve = CurveId::Bls12_381;
    for path in CodePath::available() {
        for (name, direction, order) in [
            ("ntt natural", Direction::Forward, Order::Natural),
            ("ntt to bit-reversed", Direction::Forward, Order::NaturalToBitReversed),
            ("ntt from bit-reversed", Direction::Forward, Order::BitReversedToNatural),
            ("inverse ntt natural", Direction::Inverse, Order::Natural),
            ("inverse ntt to bit-reversed", Direction::Inverse, Order::NaturalToBitReversed),
            ("inverse ntt from bit-reversed", Direction::Inverse, Order::BitReversedToNatural),
        ] {
            let plan = NttPlan { curve, log_n, direction, coset: Coset::One, order };
            let ours = ns(mean(|| ntt::ntt(path, &plan, &mut x)));
            let ratio = peer / ours;
            println!(
                r#"{{"what":"{name}","curve":"{curve}","path":"{path}","log_n":{log_n},"threads":{threads},"ours":{ours:.1},"unit":"CPU-ns an element","peer":"halo2curves best_fft","peer_value":{peer:.1},"ratio":{ratio:.2}}}"#
            );
        }
        let (mut a, mut b, mut scratch) = (data.clone(), data.clone(), data.clone());
        let plan = QuotientPlan { curve, log_n };
        let ours = ns(mean(|| ntt::quotient(path, &plan, &mut a, &mut b, &mut scratch)));
        // What a prover does without this form: seven transforms.
        let (peer, ratio) = (7.0 * peer, 7.0 * peer / ours);
        println!(
            r#"{{"what":"quotient","curve":"{curve}","path":"{path}","log_n":{log_n},"threads":{threads},"ours":{ours:.1},"unit":"CPU-ns an element","peer":"7 x halo2curves best_fft","peer_value":{peer:.1},"ratio":{ratio:.2}}}"#
        );
    }
}
