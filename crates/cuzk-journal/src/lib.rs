//! Jobs on disk: accepted before they are acknowledged, found again after a crash.
//!
//! A [`Journal`] is a directory. A job is [accepted](Journal::accept) with a record and the bytes of its request, in
//! one durable step, and [finished](Journal::finish) exactly once, with the bytes of a result or an error, in another.
//! What is [unfinished](Journal::unfinished) after a crash is found in the order of acceptance, with its request. Ended
//! jobs are kept for a time, and are found by the caller's name for them and a digest of their input
//! ([`by_request`](Journal::by_request)).
//!
//! # On disk
//! | path | content |
//! |---|---|
//! | `lock` | id of the process that has it open |
//! | `journal.redb` | a header with the version of the format, a [redb] database, room set aside |
//! | `requests/` | requests of unfinished jobs above 32 KiB, a file each |
//!
//! Database and requests belong together. A database that is missing, empty or older than the requests beside it is
//! refused ([`Error::Orphans`]), as is a damaged one ([`Error::Corrupt`]) and one of another version
//! ([`Error::Version`]): then nothing is removed, made or changed, and a person decides. A request that is missing or
//! cut short beside a database that lists it costs its own job only ([`Error::RequestLost`]).
//!
//! Who opens it locks the directory and the database's file, not the file `lock`: a second process finds
//! [`Error::Locked`] whatever was removed. Directories are made with mode 0700, files with 0600. If the database's file
//! is removed, renamed or replaced under way, no new job is taken ([`Error::Replaced`]).
//!
//! An id is never given twice, not even after an older copy of the database was put back: half of it is random, and
//! another one with each opening.
//!
//! All that waits to be written is written in one commit, so that many callers share one wait for the disk.
//!
//! # A full disk
//! With every job, room for its result is set aside in the database's file: [`Error::Full`] refuses new jobs, and those
//! that were accepted can end. [`Options::max_bytes`] does the same before the disk is full ([`Error::OverBudget`]).
//! [`Usage::refusing`] tells that new jobs are refused, also before one is, if [`Journal::probe`] is called regularly.
//! This holds on file systems that overwrite in place; one that copies on write, or compresses zeros, promises nothing.
//! Where files may have a limited size (`RLIMIT_FSIZE`), `SIGXFSZ` is to be ignored.
//!
//! # Layering
//! Bottom layer. Imports no other crate of this workspace. Knows nothing of proofs, protocols or clocks: requests and
//! results are bytes, and every time is the caller's, in milliseconds since 1970.
//!
//! # References
//! * [redb's design](https://github.com/cberner/redb/blob/master/docs/design.md): copy-on-write B-trees, commit slots
//!   with checksums.
//! * T. S. Pillai et al., *All File Systems Are Not Created Equal*, OSDI 2014: what is in which order on a disk after a
//!   crash.
//! * A. Rebello et al., *Can Applications Recover from fsync Failures?*, ATC 2020: why a database that failed is opened
//!   anew from the disk.
//!
//! # Example
//! ```
//! use cuzk_journal::{Journal, NewJob, Options, Outcome, State};
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let journal = Journal::open(directory, Options::default())?;
//! let job = NewJob {
//!     request_id: "porep-1000-7".to_owned(),
//!     digest: [7; 32],
//!     meta: b"anything".to_vec(),
//!     accepted_ms: 1_700_000_000_000,
//!     result_room: 192,
//! };
//! let id = journal.accept(job, &[b"a request, ", b"in parts"])?;
//! drop(journal);
//!
//! let journal = Journal::open(directory, Options::default())?;
//! assert_eq!(journal.unfinished()?[0].id, id);
//! assert_eq!(journal.request(&id)?, b"a request, in parts");
//! journal.finish(&id, Outcome::Completed(b"a proof".to_vec()), 1_700_000_090_000)?;
//!
//! let found = journal.by_request("porep-1000-7", &[7; 32])?.expect("it is known");
//! assert_eq!(found.state, State::Completed(1_700_000_090_000));
//! assert_eq!(journal.outcome(&found.id)?.as_deref(), Some(&b"a proof"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod bodies;
mod disk;
mod error;
mod ids;
mod journal;
mod lock;
mod options;
mod record;
mod store;
#[cfg(test)]
mod tests;
mod writer;

pub use error::Error;
pub use journal::Journal;
pub use options::{Options, Refusing, Usage};
pub use record::{NewJob, Outcome, Record, State};
