//! The CUDA backend and sppark in one process on one device: the same inputs, resident for both, compared before they
//! are timed, in turn.
//!
//! Both sides are timed by the host's clock, from the call that enqueues the work to the return of the one that waits
//! for it: the device contract has no time between events. The end of a multi-scalar multiplication on the host is
//! included for both. README.md says how to build and run this, and what the numbers mean.
//!
//! # Layering
//! A program outside of the workspace. Imports `cuzk-backend`, `cuzk-backend-cuda` and `cuzk-curve`, and the published
//! crate `sppark`, whose templates `sppark.cu` instantiates.
//!
//! # References
//! * sppark, <https://github.com/supranational/sppark>.
#![deny(rustdoc::broken_intra_doc_links)]

mod compare;
mod inputs;
mod measure;
mod peer;

use std::{fs, path::PathBuf, process::ExitCode, time::Instant};

use blstrs::{G1Affine, G2Affine};
use clap::{Parser, ValueEnum};
use cuzk_backend::{Backend, Device, DeviceInfo, DeviceOptions};
use cuzk_backend_cuda::CudaBackend;

use compare::{Failure, Sides};
use inputs::Points;
use measure::{Repetitions, Report, Source};
use peer::{Peer, PeerGroup};

/// Compares the CUDA backend with sppark on device 0.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to compare; all if nothing is named
    #[arg(value_enum)]
    cases: Vec<Case>,
    /// Binary logarithms of the sizes, instead of those that belong to each case
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(10..=28))]
    log_n: Vec<u32>,
    /// For uniform scalars, multiples of each point that we may keep; sppark always has the points alone
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    multiples: u32,
    /// Timed runs of each side
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Runs of each side before those
    #[arg(long, default_value_t = 2)]
    warm_up: u32,
    /// Append records to this file
    #[arg(long, requires = "commit")]
    record: Option<PathBuf>,
    /// The commit that was built
    #[arg(long)]
    commit: Option<String>,
}

impl Arguments {
    /// The command line, without where to write to.
    fn command(&self) -> String {
        let cases = self.cases.iter().map(|case| format!(" {case:?}").to_lowercase()).collect::<String>();
        let sizes = self.log_n.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let sizes = if sizes.is_empty() { sizes } else { format!(" --log-n {sizes}") };
        let multiples = if self.multiples == 1 { String::new() } else { format!(" --multiples {}", self.multiples) };
        let (warm_up, repetitions) = (self.warm_up, self.repetitions);
        format!("peers{cases}{sizes}{multiples} --warm-up {warm_up} --repetitions {repetitions}")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Case {
    /// Transforms, natural order in and out
    Ntt,
    /// Quotient polynomials
    Quotient,
    /// Multi-scalar multiplications in G1, uniform scalars
    G1,
    /// The same with an assignment like a PoRep's
    Witness,
    /// Multi-scalar multiplications in G2, uniform scalars
    G2,
}

impl Case {
    fn name(self, multiples: u32) -> String {
        let name = match self {
            Self::Ntt => "NTT, natural in and out",
            Self::Quotient => "quotient",
            Self::G1 => "MSM, G1, random scalars",
            Self::Witness => "MSM, G1, witness like PoRep's",
            Self::G2 => "MSM, G2, random scalars",
        };
        match self {
            Self::G1 | Self::G2 if multiples > 1 => format!("{name}, {multiples} multiples"),
            _ => name.to_owned(),
        }
    }

    fn sizes(self) -> &'static [u32] {
        match self {
            Self::Ntt => &[20, 21, 22, 23, 24, 25, 26, 27],
            Self::Quotient => &[24, 27],
            Self::G1 => &[16, 18, 20, 22, 24, 26],
            Self::Witness => &[26],
            Self::G2 => &[20, 22, 24],
        }
    }
}

/// Pinned memory for our side: the few points that a multiplication leaves.
const PINNED: u64 = 64 << 20;

/// The version of the driver's kernel module, where the system says it, and of CUDA.
fn driver(info: &DeviceInfo) -> String {
    let file = fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let is_version = |word: &&str| word.split('.').count() >= 2 && word.split('.').all(|n| n.parse::<u32>().is_ok());
    match file.split_whitespace().find(is_version) {
        Some(version) => format!("{version}, {}", info.driver),
        None => info.driver.clone(),
    }
}

/// Opens both sides; ours may hold two thirds of the memory, which leaves sppark what it needs.
fn open(repetitions: Repetitions) -> Result<Sides, Failure> {
    let memory = CudaBackend.devices()?.first().map_or(0, |info| info.memory_bytes);
    let options = DeviceOptions { device_memory_limit: memory / 3 * 2, pinned_bytes: PINNED, threads: 0 };
    let device = Device::open(&CudaBackend, 0, &options)?;
    Ok(Sides { stream: device.stream()?, device, peer: Peer::open()?, repetitions })
}

/// Points for the largest of some sizes, made when first needed.
struct Lazy<G: PeerGroup> {
    largest: u32,
    points: Option<Points<G>>,
}

impl<G: PeerGroup> Lazy<G> {
    fn get(&mut self, sides: &Sides) -> Result<&Points<G>, Failure> {
        Ok(match &mut self.points {
            Some(points) => points,
            none => none.insert(Points::new(&sides.stream, 1 << self.largest)?),
        })
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let repetitions = Repetitions { warm_up: arguments.warm_up, timed: arguments.repetitions };
    let sides = match open(repetitions) {
        Ok(sides) => sides,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let info = sides.device.info();
    let source = Source {
        peer: peer::NAME,
        device: info.name.clone(),
        features: info.features.clone(),
        driver: driver(info),
        command: arguments.command(),
    };
    let report = Report::new(source, arguments.record.zip(arguments.commit));

    let cases = if arguments.cases.is_empty() { Case::value_variants() } else { &arguments.cases };
    let sizes = |case: Case| if arguments.log_n.is_empty() { case.sizes() } else { &arguments.log_n };
    let largest = |of: &[Case]| {
        let of = cases.iter().filter(|case| of.contains(case));
        of.flat_map(|case| sizes(*case)).copied().max().unwrap_or_default()
    };
    let mut g1: Lazy<G1Affine> = Lazy { largest: largest(&[Case::G1, Case::Witness]), points: None };
    let mut g2: Lazy<G2Affine> = Lazy { largest: largest(&[Case::G2]), points: None };

    let mut status = ExitCode::SUCCESS;
    for &case in cases {
        let (start, name) = (Instant::now(), case.name(arguments.multiples));
        for &log_n in sizes(case) {
            let pair = match case {
                Case::Ntt => sides.ntt(log_n),
                Case::Quotient => sides.quotient(log_n),
                Case::G1 => g1.get(&sides).and_then(|points| sides.msm(points, log_n, arguments.multiples)),
                Case::Witness => g1.get(&sides).and_then(|points| sides.witness(points, log_n)),
                Case::G2 => g2.get(&sides).and_then(|points| sides.msm(points, log_n, arguments.multiples)),
            };
            let written = pair
                .map_err(|e| e.to_string())
                .and_then(|pair| report.row(&name, log_n, &pair).map_err(|e| format!("the record: {e}")));
            if let Err(error) = written {
                eprintln!("{name}, 2^{log_n}: {error}");
                status = ExitCode::FAILURE;
            }
        }
        eprintln!("{name}: {:.1} s in all", start.elapsed().as_secs_f64());
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_command_parses_to_the_same() {
        let line = "peers g1 witness --log-n 20,24 --multiples 4 --warm-up 3 --repetitions 11";
        let parsed = Arguments::parse_from(format!("{line} --record file --commit abc").split(' '));
        assert_eq!(parsed.command(), line);
        assert_eq!(Arguments::parse_from(["peers"]).command(), "peers --warm-up 2 --repetitions 10");
        assert!(Arguments::try_parse_from(["peers", "--record", "file"]).is_err(), "a record names its commit");
    }
}
