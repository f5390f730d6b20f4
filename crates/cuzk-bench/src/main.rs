//! The program `cuzk-bench`: see the library of the same name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    cuzk_bench::command("cuzk-bench", std::env::args_os().skip(1))
}
