//! Why the program stops, by class: each class has its exit code.

use std::{fmt, process::ExitCode};

use cuzk_backend::BackendError;
use cuzk_filecoin::FilecoinError;
use cuzk_groth16::{ProveError, ResidencyError, SetupError, VerifyError};
use cuzk_keys::KeyError;
use cuzk_plugin::LoadError;
use cuzk_prover::{CircuitError, devices::FindError};

/// A class of failure. The numbers are the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A proof does not verify.
    Verification = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// An input file is malformed, or an output cannot be written.
    Input = 3,
    /// A key is malformed, missing, or another circuit's.
    Key = 4,
    /// A device or backend is missing or failed.
    Device = 5,
    /// Out of memory.
    Memory = 6,
}

/// A failure with its class.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(class: Class, message: impl fmt::Display) -> Self {
        Self { class, message: message.to_string() }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Class::Usage, message)
    }

    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self::new(Class::Input, message)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.class as u8)
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
