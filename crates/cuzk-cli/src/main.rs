//! The command line of the prover: one binary, the backend chosen at run time.
//!
//! # Layering
//! The top: of our code it alone (with the daemon, the bench, and the packages for development) reads environment
//! variables and prints. Each verb has a module of its name; what several verbs need is in `device`, `limits`,
//! `circuits`, `keys`, `statement`, `files`. What it has in common with the bench is there: how a statement is
//! described, classes of failure and their exit codes, what a program prints in the end.
#![forbid(unsafe_code)]

mod args;
mod backends;
mod circuits;
mod demo;
mod device;
mod estimate;
mod failure;
mod files;
mod gen_vanilla;
mod gpu;
mod key;
mod keys;
mod limits;
mod progress;
mod prove;
mod report;
mod setup;
mod simulate;
mod statement;
mod timeline;
mod verify;

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;
use cuzk_bench::output;

use args::{Cli, Command};
use failure::Failure;

/// As the program `cuzk-daemon` has it, which says why: `cuzk daemon` is the same daemon.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Programs with options of their own, some with the names of ours.
    let verb = arguments.get(1).and_then(|verb| verb.to_str());
    match verb {
        Some("daemon") => return cuzk_daemon::command("cuzk daemon", arguments.into_iter().skip(2)),
        Some("bench") => return cuzk_bench::command("cuzk bench", arguments.into_iter().skip(2)),
        _ => {}
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return output::refusal(&error, &arguments),
    };
    start_logging(cli.global.verbose);
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::failure("cuzk", cli.global.json, &failure);
            failure.exit_code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let threads = cli.command.threads();
    if threads > 0 {
        // Witness generation runs in the global pool; the device has its own of the same size.
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads as usize)
            .build_global()
            .map_err(|e| Failure::usage(format!("--threads {threads}: {e}")))?;
    }
    match &cli.command {
        Command::Prove(args) => prove::run(&cli.global, args),
        Command::Verify(args) => verify::run(&cli.global, args),
        Command::Setup(args) => setup::run(&cli.global, args),
        Command::Key(verb) => key::run(&cli.global, verb),
        Command::Backends(args) => backends::run(&cli.global, args),
        Command::Demo(args) => demo::run(&cli.global, args),
        // With something before them.
        Command::Daemon { .. } => Err(comes_first("daemon")),
        Command::Bench { .. } => Err(comes_first("bench")),
        Command::GenVanilla(args) => gen_vanilla::run(&cli.global, args),
        Command::Estimate(args) => estimate::run(&cli.global, args),
        Command::Simulate(args) => simulate::run(&cli.global, args),
        Command::Timeline(args) => timeline::run(&cli.global, args),
    }
}

fn comes_first(verb: &str) -> Failure {
    Failure::usage(format!("`{verb}` comes first, and all its options after it: see `cuzk {verb} --help`"))
}

/// Logs go to standard error: `RUST_LOG` decides, else the number of `-v`.
fn start_logging(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
