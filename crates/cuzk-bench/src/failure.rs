//! Why a program stops, by class: each class has its exit code, here and in `cuzk`.

use std::{fmt, process::ExitCode};

use clap::error::ErrorKind;
use cuzk_proto::{ClientError, Code};
use serde_json::{Value, json};

use crate::Signal;

/// A class of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A proof does not verify, or was not verified.
    Verification,
    /// The command line makes no sense, or the server does not know the caller.
    Usage,
    /// An input is malformed, or an output cannot be written.
    Input,
    /// A key is malformed, missing, another circuit's, or in use.
    Key,
    /// A device, a backend or a server is missing or failed.
    Device,
    /// There is not enough memory, or the server has no room.
    Memory,
    /// A signal ended it.
    Interrupted(Signal),
}

impl Class {
    /// The exit code of a program that stops for such a reason.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Verification => 1,
            Self::Usage => 2,
            Self::Input => 3,
            Self::Key => 4,
            Self::Device => 5,
            Self::Memory => 6,
            // As a shell tells of a program that a signal has killed.
            Self::Interrupted(signal) => 128 + signal.number(),
        }
    }

    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Usage => "usage",
            Self::Input => "input",
            Self::Key => "key",
            Self::Device => "device",
            Self::Memory => "memory",
            Self::Interrupted(_) => "interrupted",
        }
    }
}

/// A failure with its class.
#[derive(Debug)]
pub struct Failure {
    /// Its class.
    pub class: Class,
    /// What a person reads.
    pub message: String,
    /// Whether a result that is printed already tells of it.
    pub told: bool,
}

impl Failure {
    /// A failure that nobody has heard of.
    pub fn new(class: Class, message: impl fmt::Display) -> Self {
        Self { class, message: message.to_string(), told: false }
    }

    /// A failure that the printed result tells of.
    #[must_use]
    pub fn told(self) -> Self {
        Self { told: true, ..self }
    }

    /// Of [`Class::Usage`].
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Class::Usage, message)
    }

    /// Of [`Class::Input`].
    pub fn input(message: impl fmt::Display) -> Self {
        Self::new(Class::Input, message)
    }

    /// What a parser of command lines has to say, without the hints and the usage that follow after an empty line.
    pub fn of_parser(error: &clap::Error) -> Self {
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            // The help stands where the failure would.
            return Self::usage("a subcommand or an argument is missing");
        }
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim();
        Self::usage(first.strip_prefix("error: ").unwrap_or(first))
    }

    /// What a program reads: the message, the class, the exit code.
    pub(crate) fn json(&self) -> Value {
        json!({ "error": self.message, "class": self.class.name(), "exit_code": self.class.exit_code() })
    }

    /// The exit code of its class.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.class.exit_code())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_codes_and_names_of_their_own() {
        use Class::*;
        let all = [Verification, Usage, Input, Key, Device, Memory];
        assert_eq!(all.map(Class::exit_code), [1, 2, 3, 4, 5, 6]);
        assert!(all.iter().all(|class| class.name() == format!("{class:?}").to_lowercase()));
        let ended = [Signal::HangUp, Signal::Interrupt, Signal::Terminate].map(Interrupted);
        assert_eq!(ended.map(Class::exit_code), [129, 130, 143]);
        assert!(ended.iter().all(|class| class.name() == "interrupted"));
    }
}
