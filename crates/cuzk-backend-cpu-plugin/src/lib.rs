//! The CPU backend as a plugin.
//!
//! A package of its own, because the exported symbol may be in a program only once: a program that links the CPU backend in must not
//! get it along.

cuzk_plugin::export_backend!(cpu::CpuBackend);
