//! `cuzk-daemon`: see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cuzk_daemon::command("cuzk-daemon", std::env::args_os().skip(1))
}
