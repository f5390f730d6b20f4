//! What a person or a program reads.

use std::io::{ErrorKind, Write, stderr, stdout};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Prints a result: one JSON object, or text.
///
/// # Errors
/// Standard output cannot be written; a reader that has gone away is none.
pub(crate) fn print(as_json: bool, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let line = if as_json { json().to_string() } else { text() };
    match writeln!(stdout().lock(), "{line}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Prints a failure: on standard error, and as JSON on standard output if that is wanted and no result is there.
pub(crate) fn failure(as_json: bool, failure: &Failure) {
    // Where it cannot be written, the exit code still tells.
    let _ = writeln!(stderr().lock(), "cuzk-bench: {}", failure.message);
    if as_json && !failure.told {
        failure_json(failure);
    }
}

/// Prints a failure as JSON on standard output.
pub(crate) fn failure_json(failure: &Failure) {
    let class = format!("{:?}", failure.class).to_lowercase();
    let json = json!({ "error": failure.message, "class": class, "exit_code": failure.class as u8 });
    // Where it cannot be written, the exit code still tells.
    let _ = writeln!(stdout().lock(), "{json}");
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
