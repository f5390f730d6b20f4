//! The daemon as a process, with real circuits, keys and clients. Proofs are judged by bellperson.

mod browser;
mod commit;
mod common;
mod feasible;
mod kill;
mod load;
mod malformed;
mod process;
mod python;
mod requests;
