//! The test suite that every backend instantiates, so that the same inputs give the same bytes on every device.
//!
//! A backend writes one line, in an integration test of its own:
//!
//! ```
//! cuzk_conformance::suite!(cuzk_backend::noop::NoopBackend::new(1), contract);
//! # fn main() {}
//! ```
//!
//! which checks what the contract says of objects, streams and memory; `cuzk_conformance::suite!(MyBackend::new());` checks the
//! mathematics as well, for both curves. Each check is one `#[test]`, and each is a function here, to be called alone:
//!
//! ```
//! use cuzk_backend::noop::NoopBackend;
//! use cuzk_conformance::{Suite, memory};
//!
//! memory::accounting_returns_to_zero(&Suite::small(NoopBackend::new(1)));
//! ```
//!
//! Nothing is compared with what a device gave before: answers have a closed form, come from the definition, or from other
//! people's code (`halo2curves`). Inputs are random but fixed (ChaCha20 with the seed in the code), and not trivial: the checks
//! assert that too.
//!
//! [`faults`] wraps any device in one that fails when a test says so, for tests of what is above devices.
//!
//! # Layering
//! Imports `cuzk-backend` and `cuzk-curve`; imported by tests only.
//!
//! # References
//! The contract is `cuzk-backend`'s documentation; the conventions of transforms, matrices and sums are those of its plans.
#![forbid(unsafe_code)]

pub mod faults;
pub mod fixed_base;
pub mod large;
pub mod matrices;
pub mod memory;
pub mod msm;
mod oracle;
pub mod preconditions;
pub mod streams;
mod suite;
pub mod transforms;

pub use suite::Suite;

/// Instantiates the suite for a backend's device 0 as `#[test]` functions.
///
/// * `suite!(backend)`: everything, small: seconds on two cores.
/// * `suite!(backend, max_log_n = 20)`: transforms up to that size.
/// * `suite!(backend, large = 24)`: sums of up to 2^24 points, which want gigabytes, beside one of the others.
/// * `suite!(backend, contract)`: nothing that needs right answers, for devices that compute nothing.
///
/// The expression is evaluated for each test. Tests open devices of their own and may run at the same time.
#[macro_export]
macro_rules! suite {
    ($backend:expr $(,)?) => {
        $crate::suite!($backend, max_log_n = 14);
    };
    ($backend:expr, max_log_n = $max_log_n:expr) => {
        $crate::suite!($backend, contract);
        $crate::suite!(@curve bls12_381, $crate::__private::Bls12, $backend, $max_log_n);
        $crate::suite!(@curve bn254, $crate::__private::Bn256, $backend, $max_log_n);
    };
    ($backend:expr, contract) => {
        mod contract {
            use super::*;
            $crate::suite!(@tests $crate::Suite::small($backend);
                memory::buffers_keep_what_is_written,
                memory::pinned_memory_travels_at_offsets,
                memory::accounting_returns_to_zero,
                memory::what_is_taken_was_predicted,
                memory::out_of_memory_is_typed_and_harmless,
                streams::events_order_streams,
                streams::events_tell_the_time_between_them,
                streams::objects_may_be_dropped_while_work_is_pending,
                preconditions::of_memory,
                preconditions::of_transforms,
                preconditions::of_matrices,
                preconditions::of_assignments,
                preconditions::of_sums,
                preconditions::of_other_devices,
            );
        }
    };
    ($backend:expr, large = $max_log_n:expr) => {
        mod large {
            use super::*;
            mod bls12_381 {
                use super::*;
                $crate::suite!(@large $crate::__private::Bls12, $backend, $max_log_n);
            }
            mod bn254 {
                use super::*;
                $crate::suite!(@large $crate::__private::Bn256, $backend, $max_log_n);
            }
        }
    };
    (@large $curve:ty, $backend:expr, $max_log_n:expr) => {
        type Curve = $curve;
        $crate::suite!(@tests $crate::Suite::new($backend, $max_log_n);
            large::sums_of_every_size_g1::<Curve>,
            large::sums_of_every_size_g2::<Curve>,
            large::special_sums_g1::<Curve>,
            large::special_sums_g2::<Curve>,
        );
    };
    (@curve $module:ident, $curve:ty, $backend:expr, $max_log_n:expr) => {
        mod $module {
            use super::*;
            type Curve = $curve;
            $crate::suite!(@tests $crate::Suite::new($backend, $max_log_n);
                transforms::equal_their_definition::<Curve>,
                transforms::equal_another_implementation::<Curve>,
                transforms::of_extreme_values::<Curve>,
                transforms::leave_the_rest_of_the_buffer_alone::<Curve>,
                transforms::quotient_equals_its_definition::<Curve>,
                matrices::equal_a_naive_product::<Curve>,
                matrices::of_every_width::<Curve>,
                msm::with_a_closed_form_g1::<Curve>,
                msm::with_a_closed_form_g2::<Curve>,
                msm::of_every_size_g1::<Curve>,
                msm::of_every_size_g2::<Curve>,
                msm::packed_equals_dense_g1::<Curve>,
                msm::packed_equals_dense_g2::<Curve>,
                fixed_base::multiples_g1::<Curve>,
                fixed_base::multiples_g2::<Curve>,
                streams::threads_share_a_device::<Curve>,
                streams::a_proof_is_computed_in_one_order::<Curve>,
            );
        }
    };
    (@tests $suite:expr; $($module:ident :: $check:ident $(::<$curve:ident>)?),* $(,)?) => {
        $(
            #[test]
            fn $check() {
                $crate::$module::$check $(::<$curve>)? (&$suite);
            }
        )*
    };
}

/// What the macro needs at its place of use.
#[doc(hidden)]
pub mod __private {
    pub use cuzk_curve::{Bls12, Bn256};
}
