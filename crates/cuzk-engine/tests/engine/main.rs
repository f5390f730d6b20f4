//! Tests of the engine: one binary, because most of it is the same code.

mod common;
mod endurance;
mod estimates;
mod faults;
mod lessons;
mod proofs;
mod random;
mod reports;
mod stop;
