//! The device that computes nothing keeps the contract of everything that is not computed.

cuzk_conformance::suite!(cuzk_backend::noop::NoopBackend::new(1), contract);
