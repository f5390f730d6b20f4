//! What can go wrong between a client and its server.

use std::{error::Error, io, path::PathBuf, time::Duration};

use tonic::{Code, ConnectError, Status, TimeoutExpired};

use crate::AddressError;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address makes no sense.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The options make no sense for the address.
    #[error("{address}: {reason}")]
    Options {
        /// The server's address.
        address: String,
        /// What does not fit.
        reason: String,
    },
    /// A file of a certificate, key or token cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A token is empty, or has characters other than printable ASCII.
    #[error("the token is empty, or has characters other than printable ASCII")]
    Token,
    /// Nobody answers at the address.
    #[error("cannot connect to {address} ({attempts} attempts in {elapsed:.1?}): {cause}")]
    Connect {
        /// The server's address.
        address: String,
        /// How often it was tried.
        attempts: u32,
        /// For how long.
        elapsed: Duration,
        /// Why the last attempt failed.
        cause: String,
    },
    /// The connection broke during a call that must not be repeated, or broke again and again.
    #[error("{call}: the connection to {address} was lost: {cause}")]
    Lost {
        /// Name of the call.
        call: &'static str,
        /// The server's address.
        address: String,
        /// What was seen.
        cause: String,
    },
    /// The server refused.
    #[error("{call} was refused: {}: {message}", code.description())]
    Refused {
        /// Name of the call.
        call: &'static str,
        /// The status.
        code: Code,
        /// The server's words.
        message: String,
    },
    /// The call's time is over, here or at the server.
    #[error("{call}: no answer within {limit:.1?}")]
    Deadline {
        /// Name of the call.
        call: &'static str,
        /// The time that it had.
        limit: Duration,
    },
}

impl ClientError {
    /// The status with which the server refused, if it is that.
    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// What a failed attempt of a call means.
#[derive(Debug)]
pub(super) enum Fault {
    /// Nothing was sent: there is no connection.
    NotSent(String),
    /// It was sent, perhaps, and the connection broke.
    Lost(String),
    /// The server answered with this status.
    Refused(Code, String),
    /// Its time is over.
    Deadline,
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        // tonic gives a source to a status that it made itself, and none to one that came from the server.
        let Some(source) = status.source() else {
            return match status.code() {
                Code::DeadlineExceeded => Self::Deadline,
                code => Self::Refused(code, status.message().to_owned()),
            };
        };
        if chain(source).any(|e| e.is::<TimeoutExpired>()) {
            Self::Deadline
        } else if chain(source).any(|e| e.is::<ConnectError>()) {
            Self::NotSent(in_words(source))
        } else {
            Self::Lost(in_words(source))
        }
    }
}

/// An error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |e| (*e).source())
}

/// An error's words and those of its causes, each once.
pub(super) fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words: Vec<String> = Vec::new();
    for error in chain(error).map(ToString::to_string) {
        if !words.iter().any(|w| w.contains(&error)) {
            words.push(error);
        }
    }
    words.join(": ")
}

/// Whether trying again cannot help: TLS was refused, by either side.
pub(super) fn is_permanent(error: &(dyn Error + 'static)) -> bool {
    // rustls reports certificates that it does not accept, and the peer's alerts, as invalid data.
    chain(error).any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::InvalidData))
}
