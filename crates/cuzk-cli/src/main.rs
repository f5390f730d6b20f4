//! The command line of the prover: one binary, the backend chosen at run time.
//!
//! # Layering
//! The top: it alone (with the test and benchmark packages) reads environment variables, prints, and chooses a backend.
//! Each verb has a module of its name; what several verbs need is in `device`, `limits`, `circuits`, `keys`, `statement`,
//! `files`.
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
mod key;
mod keys;
mod limits;
mod progress;
mod prove;
mod report;
mod setup;
mod simulate;
mod size;
mod statement;
mod timeline;
mod verify;

use std::process::ExitCode;

use clap::{Parser, error::ErrorKind};

use args::{Cli, Command};
use failure::Failure;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "daemon") {
        return cuzk_daemon::command("cuzk daemon", std::env::args_os().skip(2));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    start_logging(cli.global.verbose);
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::failure(&cli.global, &failure);
            failure.exit_code()
        }
    }
}

/// What the parser has to say instead of a command: help, the version, or a failure.
fn refuse(error: &clap::Error) -> ExitCode {
    let help = !error.use_stderr();
    // Where there is no command yet, its flag is looked for by hand. What follows `--` is no flag.
    let json = std::env::args_os().skip(1).take_while(|a| a != "--").any(|a| a == "--json");
    let message = match error.kind() {
        // The help of the command stands where its failure would.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "a subcommand or an argument is missing".to_owned(),
        // Hints and the usage follow after an empty line.
        _ => {
            let text = error.render().to_string();
            let first = text.split("\n\n").next().unwrap_or_default().trim();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    };
    // Where it cannot be written, the exit code still tells.
    let _ = error.print();
    if help {
        return ExitCode::SUCCESS;
    }
    let failure = Failure::usage(message);
    if json {
        report::failure_json(&failure);
    }
    failure.exit_code()
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if cli.global.threads > 0 {
        // Witness generation runs in the global pool; the device has its own of the same size.
        rayon::ThreadPoolBuilder::new()
            .num_threads(cli.global.threads as usize)
            .build_global()
            .map_err(|e| Failure::usage(format!("--threads {}: {e}", cli.global.threads)))?;
    }
    match &cli.command {
        Command::Prove(args) => prove::run(&cli.global, args),
        Command::Verify(args) => verify::run(&cli.global, args),
        Command::Setup(args) => setup::run(&cli.global, args),
        Command::Key(verb) => key::run(&cli.global, verb),
        Command::Backends => backends::run(&cli.global),
        Command::Demo(args) => demo::run(&cli.global, args),
        // With something before it.
        Command::Daemon { .. } => {
            Err(Failure::usage("`daemon` comes first, and all its options after it: see `cuzk daemon --help`"))
        }
        Command::GenVanilla(args) => gen_vanilla::run(&cli.global, args),
        Command::Estimate(args) => estimate::run(&cli.global, args),
        Command::Simulate(args) => simulate::run(&cli.global, args),
        Command::Timeline(args) => timeline::run(&cli.global, args),
    }
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
