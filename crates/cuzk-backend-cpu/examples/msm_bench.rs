//! Measures the MSM against blst's Pippenger, in the same run: one JSON line a measure.
//!
//! `msm_bench [--group g1|g2|bn-g1|bn-g2] [--threads 1,2] [--log-n 16,18,20,22] [--path portable|best] [--no-peer]`
//!
//! Bases are random multiples of the generator, made with the fixed-base tables (measured as well). `ns_per_element` is elapsed
//! time, the best of three runs; `cpu_ns_per_element` is processor time of all threads, which means more on a machine that
//! others use. `ratio` is the peer's over ours, of processor time where the system tells it.

use std::time::Instant;

use blst::{MultiPoint, blst_p1_affine, blst_p2_affine};
use cuzk_backend_cpu::{
    CodePath,
    fixed_base::fixed_base_mul,
    msm::{MsmPoint, msm},
};
use ff::Field;
use group::prime::PrimeCurveAffine;
use halo2curves::bn256;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Somebody else's MSM, on so many threads.
type Peer<A> = fn(&[A], &[<A as PrimeCurveAffine>::Scalar], usize) -> <A as PrimeCurveAffine>::Curve;

fn main() {
    let mut args = std::env::args().skip(1);
    let (mut group, mut threads, mut log_n) = ("g1".to_owned(), vec![1, 2], vec![16, 18, 20, 22]);
    let (mut path, mut peer) = (CodePath::detect(), true);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
        let numbers = |list: String| list.split(',').map(|n| n.parse().expect("a number")).collect::<Vec<usize>>();
        match arg.as_str() {
            "--group" => group = value(),
            "--threads" => threads = numbers(value()),
            "--log-n" => log_n = numbers(value()),
            "--path" => {
                if value() == "portable" {
                    path = CodePath::scalar();
                }
            }
            "--no-peer" => peer = false,
            _ => panic!("unknown argument {arg}"),
        }
    }
    let config = Config { path, threads, log_n, peer };
    match group.as_str() {
        "g1" => config.run::<blstrs::G1Affine>("bls12-381 G1", "blst", blst_g1),
        "g2" => config.run::<blstrs::G2Affine>("bls12-381 G2", "blst", blst_g2),
        "bn-g1" => config.run::<bn256::G1Affine>("bn254 G1", "halo2curves", halo2),
        "bn-g2" => config.run::<bn256::G2Affine>("bn254 G2", "halo2curves", halo2),
        _ => panic!("unknown group {group}"),
    }
}

struct Config {
    path: CodePath,
    threads: Vec<usize>,
    log_n: Vec<usize>,
    peer: bool,
}

impl Config {
    fn run<A: MsmPoint>(&self, group: &str, peer_name: &str, peer: Peer<A>) {
        let max = 1 << self.log_n.iter().max().expect("at least one size");
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut scalars: Vec<A::Scalar> = (0..max).map(|_| A::Scalar::random(&mut rng)).collect();
        let mut bases = vec![A::identity(); max];
        // All pools live to the end: the processor time of a thread that is gone is not counted.
        let pool = |&n: &usize| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a thread pool");
        let pools: Vec<_> = self.threads.iter().map(pool).collect();
        for (&threads, pool) in self.threads.iter().zip(&pools) {
            let generator = A::generator();
            let time = Time::best(1, || {
                pool.install(|| fixed_base_mul(self.path, &generator, &scalars, &mut bases)).expect("same lengths")
            })
            .1;
            println!("{}}}", self.line("fixed_base", group, threads, max, &time));
            scalars.reverse();
            for &log_n in &self.log_n {
                let n = 1 << log_n;
                let (bases, scalars) = (&bases[..n], &scalars[..n]);
                let (ours, time) =
                    Time::best(3, || pool.install(|| msm(self.path, bases, scalars)).expect("same lengths"));
                let mut line = self.line("msm", group, threads, n, &time);
                if self.peer {
                    let (theirs, peer_time) = Time::best(1, || pool.install(|| peer(bases, scalars, threads)));
                    assert!(ours == theirs, "the results differ");
                    let ratio = match (time.processor, peer_time.processor) {
                        (Some(ours), Some(theirs)) => theirs / ours,
                        _ => peer_time.elapsed / time.elapsed,
                    };
                    line += &format!(",\"peer\":\"{peer_name}\",{},\"ratio\":{ratio:.2}", peer_time.json("peer_", n));
                }
                println!("{line}}}");
            }
        }
    }

    fn line(&self, what: &str, group: &str, threads: usize, n: usize, time: &Time) -> String {
        let path = self.path;
        format!(
            "{{\"what\":\"{what}\",\"group\":\"{group}\",\"path\":\"{path}\",\"threads\":{threads},\"n\":{n},{}",
            time.json("", n)
        )
    }
}

/// Seconds.
struct Time {
    elapsed: f64,
    processor: Option<f64>,
}

impl Time {
    /// The last result, and the least times.
    fn best<R>(runs: usize, mut f: impl FnMut() -> R) -> (R, Self) {
        let mut timed = || {
            let (start, processor) = (Instant::now(), processor_seconds());
            let result = f();
            let elapsed = start.elapsed().as_secs_f64();
            (result, Time { elapsed, processor: processor_seconds().zip(processor).map(|(end, start)| end - start) })
        };
        let mut best = timed();
        for _ in 1..runs {
            let (result, time) = timed();
            let processor = time.processor.zip(best.1.processor).map(|(a, b)| a.min(b));
            best = (result, Time { elapsed: time.elapsed.min(best.1.elapsed), processor });
        }
        best
    }

    fn json(&self, prefix: &str, n: usize) -> String {
        let each = |seconds: f64| seconds * 1e9 / n as f64;
        let mut json = format!("\"{prefix}ns_per_element\":{:.1}", each(self.elapsed));
        if let Some(processor) = self.processor {
            json += &format!(",\"{prefix}cpu_ns_per_element\":{:.1}", each(processor));
        }
        json
    }
}

/// Processor time of the threads of this process that are alive, where the system tells it.
fn processor_seconds() -> Option<f64> {
    let mut nanoseconds = 0.0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let statistics = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        nanoseconds += statistics.split_whitespace().next()?.parse::<f64>().ok()?;
    }
    Some(nanoseconds / 1e9)
}

macro_rules! blst_peer {
    ($name:ident, $affine:ty, $projective:ty, $blst_affine:ty, $pippenger:ident, $scratch:ident, $point:ident) => {
        fn $name(bases: &[$affine], scalars: &[blstrs::Scalar], threads: usize) -> $projective {
            let bytes: Vec<u8> = scalars.iter().flat_map(|s| s.to_bytes_le()).collect();
            // SAFETY: blstrs' points are transparent wrappers of blst's.
            let points = unsafe { std::slice::from_raw_parts(bases.as_ptr().cast::<$blst_affine>(), bases.len()) };
            let mut result = blst::$point::default();
            if threads == 1 {
                // SAFETY: lists of one pointer to all elements and a null, as blst wants them; the scratch has the size that
                // blst asks for.
                unsafe {
                    let mut scratch = vec![0u64; blst::$scratch(points.len()) / 8];
                    let (points_list, scalars_list) =
                        ([points.as_ptr(), std::ptr::null()], [bytes.as_ptr(), std::ptr::null()]);
                    blst::$pippenger(
                        &mut result,
                        points_list.as_ptr(),
                        points.len(),
                        scalars_list.as_ptr(),
                        256,
                        scratch.as_mut_ptr(),
                    );
                }
            } else {
                result = points.mult(&bytes, 256);
            }
            // SAFETY: the projective points are transparent wrappers as well.
            unsafe { std::mem::transmute::<blst::$point, $projective>(result) }
        }
    };
}

blst_peer!(
    blst_g1,
    blstrs::G1Affine,
    blstrs::G1Projective,
    blst_p1_affine,
    blst_p1s_mult_pippenger,
    blst_p1s_mult_pippenger_scratch_sizeof,
    blst_p1
);
blst_peer!(
    blst_g2,
    blstrs::G2Affine,
    blstrs::G2Projective,
    blst_p2_affine,
    blst_p2s_mult_pippenger,
    blst_p2s_mult_pippenger_scratch_sizeof,
    blst_p2
);

fn halo2<A: halo2curves::CurveAffine>(bases: &[A], scalars: &[A::ScalarExt], _threads: usize) -> A::CurveExt {
    halo2curves::msm::msm_best(scalars, bases)
}
