//! The CUDA backend as a plugin.
//!
//! A package of its own, because the exported symbol may be in a program only once.

cuzk_plugin::export_backend!(cuda::CudaBackend);
