//! The bench: measures a proving daemon through the same protocol as its clients, and asks it things.
//!
//! # Layering
//! Above `cuzk-proto`, and nothing else of this workspace: it measures any implementation of `cuzk.v1`, and builds
//! without Filecoin's crates. Nothing imports it. Each verb has a module of its name (`single` is in `batch`; those
//! that ask one thing are in `verbs`); what several need is in `statement`, `load`, `observe`, `stats`, `output`.
//! Reads environment variables and prints.
//!
//! # References
//! * [Prometheus' text format](https://prometheus.io/docs/instrumenting/exposition_formats/): where the memory of the
//!   daemon and the utilization of its devices are read.
//! * G. Tene, *How NOT to measure latency*: why `stress` asks at its rate whether answers come or not, and counts what
//!   it held back.
#![forbid(unsafe_code)]

mod args;
mod batch;
mod daemon;
mod failure;
mod load;
mod observe;
mod output;
mod plot;
mod prometheus;
mod statement;
mod stats;
mod stress;
mod sweep;
mod verbs;

use std::process::ExitCode;

use clap::Parser;
use cuzk_proto::{Client, ClientError, ClientOptions, TlsOptions, Token};

use args::{Cli, Command, Global};
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::new(failure::Class::Memory, format!("cannot start threads: {error}"));
            output::failure(cli.global.json, &failure);
            return failure.exit_code();
        }
    };
    match runtime.block_on(run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::failure(cli.global.json, &failure);
            failure.exit_code()
        }
    }
}

/// What the parser has to say instead of a command: help, the version, or a failure.
fn refuse(error: &clap::Error) -> ExitCode {
    // Where it cannot be written, the exit code still tells.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    // Hints and the usage follow after an empty line.
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    let failure = Failure::usage(first.strip_prefix("error: ").unwrap_or(first));
    // Where there is no command yet, its flag is looked for by hand. What follows `--` is no flag.
    if std::env::args_os().skip(1).take_while(|a| a != "--").any(|a| a == "--json") {
        output::failure_json(&failure);
    }
    failure.exit_code()
}

async fn run(cli: &Cli) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Single(args) => batch::single(global, args).await,
        Command::Batch(args) => batch::run(global, args).await,
        Command::Status => verbs::status(global).await,
        Command::Preload { circuit } => verbs::preload(global, circuit).await,
        Command::Evict { circuit } => verbs::evict(global, circuit).await,
        Command::Metrics => verbs::metrics(global).await,
        Command::Stress(args) => stress::run(global, args).await,
        Command::Sweep(args) => sweep::run(global, args).await,
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
