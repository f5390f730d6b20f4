//! Why the program stops, by class: each class has its exit code, the same as those of `cuzk`.

use std::{fmt, process::ExitCode};

use cuzk_proto::{ClientError, Code};

/// A class of failure. The numbers are the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A proof was not verified.
    Verification = 1,
    /// The command line makes no sense, or the server does not know the caller.
    Usage = 2,
    /// An input is malformed, or an output cannot be written.
    Input = 3,
    /// A key is missing or in use.
    Key = 4,
    /// The server or its device is missing or failed.
    Device = 5,
    /// The server has no room.
    Memory = 6,
    /// It was interrupted.
    Interrupted = 130,
}

/// A failure with its class.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) message: String,
    /// Whether a result that is printed already tells of it.
    pub(crate) told: bool,
}

impl Failure {
    pub(crate) fn new(class: Class, message: impl fmt::Display) -> Self {
        Self { class, message: message.to_string(), told: false }
    }

    /// A failure that the printed result tells of.
    pub(crate) fn told(self) -> Self {
        Self { told: true, ..self }
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

/// The class of what a client says.
pub(crate) const fn class_of(error: &ClientError) -> Class {
    match error {
        ClientError::Address(_) | ClientError::Options { .. } | ClientError::Token => Class::Usage,
        ClientError::File { .. } => Class::Input,
        ClientError::Refused { code, .. } => match code {
            Code::InvalidArgument => Class::Input,
            Code::FailedPrecondition => Class::Key,
            Code::NotFound | Code::Unauthenticated | Code::PermissionDenied => Class::Usage,
            Code::ResourceExhausted => Class::Memory,
            _ => Class::Device,
        },
        _ => Class::Device,
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::new(class_of(&error), error)
    }
}
