//! `cuzk-daemon`: see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A daemon's memory has to be flat over thousands of proofs, which glibc's is not: buffers of some megabytes stay where
/// small allocations pinned them. jemalloc gives back what is not used for ten seconds, and is faster with many threads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    cuzk_daemon::command("cuzk-daemon", std::env::args_os().skip(1))
}
