//! Which class of failure each error of the crates below is. The classes and their exit codes are those of the bench.

use std::{fmt, ops::Deref};

use cuzk_backend::BackendError;
pub(crate) use cuzk_bench::Class;
use cuzk_filecoin::FilecoinError;
use cuzk_groth16::{ProveError, ResidencyError, SetupError, VerifyError};
use cuzk_keys::KeyError;
use cuzk_plugin::LoadError;
use cuzk_prover::{CircuitError, devices::FindError};

/// A failure with its class, of this crate's own type for the conversions below.
#[derive(Debug)]
pub(crate) struct Failure(cuzk_bench::Failure);

impl Failure {
    pub(crate) fn new(class: Class, message: impl fmt::Display) -> Self {
        Self(cuzk_bench::Failure::new(class, message))
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Class::Usage, message)
    }

    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self::new(Class::Input, message)
    }

    /// A failure that the printed result tells of.
    pub(crate) fn told(self) -> Self {
        Self(self.0.told())
    }
}

impl Deref for Failure {
    type Target = cuzk_bench::Failure;

    fn deref(&self) -> &cuzk_bench::Failure {
        &self.0
    }
}

impl From<cuzk_bench::Failure> for Failure {
    fn from(failure: cuzk_bench::Failure) -> Self {
        Self(failure)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let class = if matches!(error, BackendError::OutOfMemory { .. }) { Class::Memory } else { Class::Device };
        Self::new(class, error)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::new(Class::Device, error)
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::new(Class::Key, error)
    }
}

impl From<FilecoinError> for Failure {
    fn from(error: FilecoinError) -> Self {
        Self::new(Class::Input, error)
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Backend(error) => error.into(),
            other => Self::new(Class::Device, other),
        }
    }
}

impl From<CircuitError> for Failure {
    fn from(error: CircuitError) -> Self {
        match error {
            CircuitError::Key(error) => error.into(),
            CircuitError::Filecoin(error) => error.into(),
            error @ CircuitError::NoKey { .. } => Self::new(Class::Key, error),
            other => Self::new(Class::Input, other),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Backend(error) => error.into(),
            other => Self::new(Class::Input, other),
        }
    }
}

impl From<ProveError> for Failure {
    fn from(error: ProveError) -> Self {
        match error {
            ProveError::Backend(error) => error.into(),
            ProveError::Key(error) => error.into(),
            ProveError::KeyMismatch { .. } | ProveError::InputMismatch { .. } | ProveError::BadKey(_) => {
                Self::new(Class::Key, error)
            }
            ProveError::SelfCheck(_) => Self::new(Class::Verification, error),
            other => Self::new(Class::Input, other),
        }
    }
}

impl From<ResidencyError> for Failure {
    fn from(error: ResidencyError) -> Self {
        match error {
            ResidencyError::Backend(error) => error.into(),
            other => Self::new(Class::Memory, other),
        }
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        let class = match error {
            VerifyError::BadKey { .. } => Class::Key,
            VerifyError::ProofLength { .. }
            | VerifyError::InputNotCanonical { .. }
            | VerifyError::InputCount { .. }
            | VerifyError::BatchLength { .. } => Class::Input,
            _ => Class::Verification,
        };
        Self::new(class, error)
    }
}
