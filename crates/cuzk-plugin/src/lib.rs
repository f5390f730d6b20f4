//! The C boundary between the prover and a backend in a shared library, and the loader.
//!
//! A backend implements `cuzk_backend::Backend` and says [`export_backend!`] in a shared library of its own; a
//! program finds it with [`Loader`] and uses it as a [`PluginBackend`], which is a `cuzk_backend::Backend` again. In
//! between there is one exported C symbol that leads to a table of C functions: a plugin may be written in any
//! language and built by any compiler.
//!
//! * The table begins with magic, version and size ([`vtable::Header`]). What does not fit is refused with the reason
//!   ([`LoadError`]); nothing falls back silently.
//! * Plans and views have fixed layouts ([`abi`]), checked when this crate is compiled.
//! * Every [`cuzk_backend::BackendError`] arrives as it was sent, numbers included. A panic inside the plugin arrives
//!   as [`cuzk_backend::BackendError::Panicked`].
//! * A plugin stays loaded for the life of the process; see [`Loader`].
//!
//! # Versions
//! Host and plugin must agree on the major version. Within a major, structures and functions that exist never change,
//! and a greater minor appends functions to the table: a host takes a table that is at least as long as what it
//! knows. The entry's signature, the error record and the table's header are the same in all majors, so that a
//! refusal can always be put into words.
//!
//! # Layering
//! Imports `cuzk-backend` and `cuzk-curve` (the numbers of curves). Plugins import it to export themselves, programs
//! to load them. It reads no environment variable: the caller says where to look.
//!
//! # References
//! * `docs/plugin-abi.md`: the boundary for the author of a plugin in C; `include/cuzk_plugin.h`: its declarations.
//! * The Rustonomicon, "FFI and unwinding", <https://doc.rust-lang.org/nomicon/ffi.html#ffi-and-unwinding>.
//! * The Arrow C data interface, <https://arrow.apache.org/docs/format/CDataInterface.html>: owned memory with its
//!   release function beside it.
//!
//! # Example
//! ```
//! use cuzk_backend::noop::NoopBackend;
//! use cuzk_plugin::{LoadError, Loader};
//!
//! // The whole source of a plugin:
//! cuzk_plugin::export_backend!(NoopBackend::new(1));
//!
//! # fn main() {
//! // And the program that wants it:
//! let loader = Loader::new(["plugins"], [] as [&str; 0]);
//! match loader.load("fpga") {
//!     Err(error @ LoadError::NotFound { .. }) => {
//!         assert!(error.to_string().starts_with(&format!("no {} in plugins, ", Loader::file_name("fpga").unwrap())));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! # }
//! ```
#![deny(rustdoc::broken_intra_doc_links)]

pub mod abi;
mod backend;
mod elf;
pub mod export;
mod failure;
mod loader;
mod plans;
pub mod vtable;

pub use abi::AbiVersion;
pub use backend::PluginBackend;
pub use loader::{LoadError, Loader};
