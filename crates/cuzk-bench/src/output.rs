//! What a person or a program reads.

use std::{
    ffi::OsString,
    io::{ErrorKind, Write, stderr, stdout},
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::Failure;

/// Prints a result: one JSON object, or text.
///
/// # Errors
/// Standard output cannot be written; a reader that has gone away is none.
pub fn print(as_json: bool, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let line = if as_json { json().to_string() } else { text() };
    match writeln!(stdout().lock(), "{line}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints what a measurement came to, with what failed of it: that becomes part of a JSON object, and is returned. It
/// counts for more than a result that cannot be printed, as on a terminal that is closed.
pub(crate) fn conclude(
    as_json: bool,
    failure: Option<Failure>,
    json: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let with_failure = || {
        let mut result = json();
        if let (Some(failure), Value::Object(result)) = (&failure, &mut result)
            && let Value::Object(told) = failure.json()
        {
            result.extend(told);
        }
        result
    };
    let printed = print(as_json, with_failure, text);
    failure.map_or(printed, |failure| Err(failure.told()))
}

/// Prints a failure of a program: on standard error, and as JSON on standard output if that is wanted and no result is
/// there.
pub fn failure(program: &str, as_json: bool, failure: &Failure) {
    // Where it cannot be written, the exit code still tells.
    let _ = writeln!(stderr().lock(), "{program}: {}", failure.message);
    if as_json && !failure.told {
        failure_json(failure);
    }
}

/// Prints what a parser of command lines says instead of a command: help, the version, or a failure with its hints,
/// and that as JSON on standard output, too, if `--json` stands among the arguments.
pub fn refusal(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    // Where it cannot be written, the exit code still tells.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let failure = Failure::of_parser(error);
    // There is no command yet, so that its flag is looked for by hand. What follows `--` is no flag.
    if arguments.iter().take_while(|a| *a != "--").any(|a| a == "--json") {
        failure_json(&failure);
    }
    failure.exit_code()
}

/// Prints a failure as JSON on standard output.
fn failure_json(failure: &Failure) {
    // Where it cannot be written, the exit code still tells.
    let _ = writeln!(stdout().lock(), "{}", failure.json());
}

/// A line for each proof, and below them a bar if there is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    to_stderr: bool,
}

impl Progress {
    /// For so many proofs. Lines go to standard error if standard output belongs to a JSON object.
    pub(crate) fn new(count: u64, as_json: bool) -> Self {
        let template = "{wide_bar} {pos}/{len} {elapsed}";
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(count).with_style(style);
        bar.tick();
        Self { bar, to_stderr: as_json }
    }

    /// Says a line of something that has completed.
    pub(crate) fn tell(&self, line: &str) {
        self.say(line);
        self.bar.inc(1);
    }

    /// Says a line.
    pub(crate) fn say(&self, line: &str) {
        self.bar.suspend(|| {
            // A reader that has gone away does not stop a measurement.
            let _ = if self.to_stderr { writeln!(stderr(), "{line}") } else { writeln!(stdout(), "{line}") };
        });
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
