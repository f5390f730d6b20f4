//! A whole server over a prover that only takes time: for tests of processes, and to try a configuration or a client.
//!
//! `cargo run --release -p cuzk-server --example fake-daemon -- --set journal.directory=/tmp/fake`
//!
//! A partition takes `FAKE_PARTITION_MS` milliseconds (5), and `FAKE_WORKERS` (1) jobs are worked on at a time. A proof
//! is not one: it is made of the digest of its input.

use std::{env, process::ExitCode, time::Duration};

use clap::Parser;
use cuzk_server::{
    command::{DaemonArgs, Request},
    http::About,
    server,
};

// Tests use more of it.
#[allow(dead_code)]
#[path = "../tests/common/fake.rs"]
mod fake;

#[derive(Parser)]
#[command(version, about = "A proving server that proves nothing")]
struct Program {
    #[command(flatten)]
    args: DaemonArgs,
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    let (loaded, sources) = match Program::parse().args.request(env::vars_os()) {
        Ok(Request::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Request::Serve { loaded, sources }) => (*loaded, sources),
        Err(errors) => {
            eprintln!("{errors}");
            return ExitCode::from(2);
        }
    };
    let about = About::now("fake", env!("CARGO_PKG_VERSION"), "");
    let outcome = server::run(loaded, &sources, about, |_| {
        tracing::info!(target: "cuzk_server::example", "the prover is made");
        let options = fake::FakeOptions {
            workers: usize::try_from(number("FAKE_WORKERS", 1)).unwrap_or(1),
            partition_time: Duration::from_millis(number("FAKE_PARTITION_MS", 5)),
            ..fake::FakeOptions::default()
        };
        Ok(fake::FakeProver::start(options))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}
