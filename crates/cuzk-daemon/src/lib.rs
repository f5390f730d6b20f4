//! The proving daemon: Filecoin's proofs, made by an engine, served over `cuzk.v1`.
//!
//! Three parts meet here: [`cuzk_server`] with clients, jobs and disks, [`cuzk_engine`] with devices and memory, and
//! [`cuzk_prover`] with circuits and statements. [`EngineProver`] is the one's prover and the other's user;
//! [`statement`] reads what a request asks for.
//!
//! # Layering
//! Imports all of the above; the command line imports it for `cuzk daemon`. Of our code only this and the command line
//! read environment variables and print.
//!
//! # References
//! * [`filecoin-project/curio`](https://github.com/filecoin-project/curio): the client whose protocol is served.
//!
//! # Example
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     cuzk_daemon::command("cuzk-daemon", std::env::args_os().skip(1))
//! }
//! ```
#![forbid(unsafe_code)]

mod circuits;
mod feasible;
mod job;
mod prover;
mod settings;
pub mod statement;

use std::{env, ffi::OsString, io::Write, process::ExitCode, sync::Arc};

use clap::{CommandFactory, FromArgMatches, Parser};
use cuzk_server::{
    command::{DaemonArgs, Request},
    http::About,
    prover::Prover,
    server::{self, ProverError},
};

pub use prover::EngineProver;
pub use settings::Settings;

/// The version, and the commit that it was built from.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CUZK_COMMIT"), ")");

/// Proves Filecoin's statements for whoever asks over gRPC
#[derive(Parser)]
#[command(version = VERSION, about)]
struct Program {
    #[command(flatten)]
    args: DaemonArgs,
}

/// Runs the daemon with these arguments until it is told to end, under a name for help and usage. Mistakes are said on
/// standard error; the exit code tells their class.
pub fn command(name: &'static str, arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let parsed = Program::command()
        .bin_name(name)
        .try_get_matches_from(std::iter::once(name.into()).chain(arguments))
        .and_then(|matches| Program::from_arg_matches(&matches));
    match parsed {
        Ok(Program { args }) => run(&args),
        Err(error) => {
            // Where it cannot be written, the exit code still tells.
            let _ = error.print();
            ExitCode::from(if error.use_stderr() { USAGE } else { 0 })
        }
    }
}

/// Exit code of a command line or a configuration that makes no sense.
const USAGE: u8 = 2;

fn run(args: &DaemonArgs) -> ExitCode {
    let (loaded, sources) = match args.request(env::vars_os()) {
        Ok(Request::Print(text)) => {
            // A reader that has gone away has read enough.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Ok(Request::Serve { loaded, sources }) => (*loaded, sources),
        Err(errors) => return refuse(&errors, USAGE),
    };
    let about = About::now(machine(), env!("CARGO_PKG_VERSION"), env!("CUZK_COMMIT"));
    let start = |config: &cuzk_server::config::Config| -> Result<Arc<dyn Prover>, ProverError> {
        let settings = Settings::new(config, |name| env::var_os(name))?;
        Ok(Arc::new(EngineProver::start(settings)?))
    };
    match server::run(loaded, &sources, about, start) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&error, error.exit_code()),
    }
}

/// The name of this machine, so that who looks at several knows which one it is.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "cuzk".to_owned(),
        name => name.to_owned(),
    }
}

fn refuse(error: &dyn std::fmt::Display, exit_code: u8) -> ExitCode {
    // Where it cannot be written, the exit code still tells.
    let _ = writeln!(std::io::stderr().lock(), "cuzk-daemon: {error}");
    ExitCode::from(exit_code)
}
