//! The host does what every device does.

cuzk_conformance::suite!(cuzk_backend_cpu::CpuBackend);
cuzk_conformance::suite!(cuzk_backend_cpu::CpuBackend, large = 14);
