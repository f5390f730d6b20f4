//! The daemon as a process, with real circuits, keys and clients. Proofs are judged by bellperson.

mod common;
mod kill;
mod malformed;
mod process;
mod requests;
