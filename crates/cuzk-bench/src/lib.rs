//! The bench: measures a proving daemon through the same protocol as its clients, and asks it things.
//!
//! Each verb has a module of its name (`single` is in `batch`; those that ask one thing are in `verbs`); what several
//! need is in `load`, `observe`, `stats`, `stop`. What the command lines of `cuzk-bench` and `cuzk` have in common is
//! public: how a [`statement`] is described, the classes of [`Failure`] with their exit codes, [`output`] and [`files`].
//!
//! # Layering
//! Above `cuzk-proto` and `cuzk-units`, and nothing else of this workspace: it measures any implementation of
//! `cuzk.v1`, and builds without Filecoin's crates (`gen-vanilla`, which needs them, runs the program `cuzk`). The
//! command line imports it, for `cuzk bench` and for what both have in common. Reads environment variables and prints.
//!
//! # References
//! * [Prometheus' text format](https://prometheus.io/docs/instrumenting/exposition_formats/): where the memory of the
//!   daemon and the utilization of its devices are read.
//! * G. Tene, *How NOT to measure latency*: why `stress` asks at its rate whether answers come or not, and counts what
//!   it held back.
//!
//! # Example
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     cuzk_bench::command("cuzk-bench", std::env::args_os().skip(1))
//! }
//! ```
//! What an option takes is read without a daemon:
//! ```
//! use cuzk_bench::statement::{Miner, SectorSize};
//!
//! assert_eq!("t01000".parse(), Ok(Miner(1000)));
//! assert_eq!("32g".parse::<SectorSize>().map(SectorSize::bytes), Ok(32 << 30));
//! ```
#![forbid(unsafe_code)]

mod args;
mod batch;
mod daemon;
mod failure;
pub mod files;
mod gen_vanilla;
mod load;
mod observe;
pub mod output;
mod plot;
mod program;
mod prometheus;
pub mod statement;
mod stats;
mod stop;
mod stress;
mod sweep;
mod verbs;

use std::{ffi::OsString, iter, process::ExitCode};

use clap::{CommandFactory, FromArgMatches};
use cuzk_proto::{Client, ClientError, ClientOptions, TlsOptions, Token};

use args::{Cli, Command, Global};
pub use failure::{Class, Failure};
pub use stop::Signal;
use stop::{Stop, interrupted};

/// Runs the bench with these arguments, under a name for help and messages. The exit code tells the class of a
/// failure.
pub fn command(name: &'static str, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let parsed = Cli::command()
        .bin_name(name)
        .try_get_matches_from(iter::once(name.into()).chain(arguments.iter().cloned()))
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return output::refusal(&error, &arguments),
    };
    if let Command::GenVanilla { arguments } = &cli.command {
        return gen_vanilla::run(name, cli.global.json, arguments);
    }
    let done = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(&cli)),
        Err(error) => Err(Failure::new(Class::Memory, format!("cannot start threads: {error}"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::failure(name, cli.global.json, &failure);
            failure.exit_code()
        }
    }
}

/// Runs a verb until it is done. A signal ends it in good order, and whoever insists ends it at once.
async fn run(cli: &Cli) -> Result<(), Failure> {
    let stop = Stop::listen().map_err(|e| Failure::new(Class::Device, format!("cannot listen for signals: {e}")))?;
    tokio::select! {
        done = verb(cli, &stop) => done,
        signal = stop.insisted() => Err(interrupted(signal, "interrupted again")),
    }
}

async fn verb(cli: &Cli, stop: &Stop) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Single(args) => batch::single(global, args, stop).await,
        Command::Batch(args) => batch::run(global, args, stop).await,
        Command::Status => stop.unless(verbs::status(global)).await,
        Command::Preload { circuit } => stop.unless(verbs::preload(global, circuit)).await,
        Command::Evict { circuit } => stop.unless(verbs::evict(global, circuit)).await,
        Command::Metrics => stop.unless(verbs::metrics(global)).await,
        // Another program's, which `command` runs.
        Command::GenVanilla { .. } => Ok(()),
        Command::Stress(args) => stress::run(global, args, stop).await,
        Command::Sweep(args) => sweep::run(global, args, stop).await,
    }
}

/// Connects as the options say.
async fn connect(global: &Global) -> Result<Client, ClientError> {
    let identity = global.tls_cert.as_deref().zip(global.tls_key.as_deref());
    let tls = match &global.tls_ca {
        None => None,
        Some(ca) => Some(TlsOptions { server_name: global.tls_name.clone(), ..TlsOptions::read(ca, identity)? }),
    };
    let token = global.token_file.as_deref().map(Token::read).transpose()?;
    let options = ClientOptions { connect_limit: global.connect_limit, tls, token, ..ClientOptions::default() };
    Client::connect(&global.addr, options).await
}
