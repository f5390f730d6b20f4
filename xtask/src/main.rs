//! Everything that a person or CI runs: `cargo xtask <verb>`.
//!
//! Depends on nothing but the standard library, so that it builds in a second on a fresh machine.

#![forbid(unsafe_code)]

mod build;
mod ci;
mod codegen;
mod command;
mod cuda;
mod demo;
mod deps;
mod device;
mod python;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <verb>

  demo                 seal a 2 KiB sector, prove it, let Filecoin's verifier judge the proofs
  test [ARG...]        every test that a contributor needs (ARGs go to cargo test or nextest)
  services             the daemon with clients in other languages, its page in Chromium, and five hundred jobs through it
                       (installs what is missing)
  schedules [N]        N random schedules of jobs, faults and cancellations through the engine (100000; CI runs 1000)
  oracle               what takes minutes: recorded proofs byte for byte for the large circuits too, and partitions and
                       witnesses of 32 and 64 GiB
  bench [--small]      benchmarks; --small runs each once in its smallest size
  build --backend B    build a backend as a plugin into target/plugins; B: cpu, or cuda (then --arch sm_90 builds one
                       architecture; nvcc is taken from the machine or fetched as Python wheels)
  device [--arch A]    a folder target/device with all that checks and measures an NVIDIA device, for machines without Rust
  codegen [--check]    write the kernels' field constants, or say whether they are up to date
  deps                 install what the build needs and the machine lacks
  ci                   what CI runs: formatting, lints, docs, tests, benchmarks once, demo
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (verb, rest) = match arguments.split_first() {
        Some((verb, rest)) => (verb.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match verb {
        "demo" => demo::run(rest),
        "test" => test::run(rest),
        "services" => test::services(),
        "schedules" => test::schedules(rest),
        "oracle" => test::oracle(),
        "bench" => test::bench(rest),
        "build" => build::run(rest),
        "device" => device::run(rest),
        "codegen" => codegen::run(rest),
        "deps" => deps::run(),
        "ci" => ci::run(),
        "help" | "-h" | "--help" => {
            print!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown verb {verb:?}\n\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
