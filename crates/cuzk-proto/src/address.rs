//! Where a server listens.

use std::{fmt, path::PathBuf, str::FromStr};

/// The address of a server: `host:port`, `http://host:port`, `https://host:port` or `unix:///path`.
///
/// ```
/// use cuzk_proto::Address;
///
/// let address: Address = "127.0.0.1:9820".parse()?;
/// assert_eq!(address, Address::Tcp { authority: "127.0.0.1:9820".into(), tls: None });
/// let address: Address = "unix:///run/cuzk/cuzk.sock".parse()?;
/// assert_eq!(address, Address::Unix("/run/cuzk/cuzk.sock".into()));
/// # Ok::<(), cuzk_proto::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A port of a machine.
    Tcp {
        /// Host and port: a name, an IPv4 address, or an IPv6 address in brackets.
        authority: String,
        /// What the scheme says: TLS (`https`), none (`http`); without a scheme the client's options decide.
        tls: Option<bool>,
    },
    /// A socket of this machine, by its absolute path.
    Unix(PathBuf),
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme is not known.
    #[error("{text:?}: the scheme {scheme:?} is not known; expected host:port, http://, https:// or unix:///path")]
    Scheme {
        /// The whole text.
        text: String,
        /// What stands before `://`.
        scheme: String,
    },
    /// The path of a socket is not absolute.
    #[error("{0:?}: the path of a socket is absolute, with three slashes: unix:///run/cuzk.sock")]
    Path(String),
    /// There is no host.
    #[error("{0:?}: there is no host before the port")]
    Host(String),
    /// There is no port, or it is none from 1 to 65535.
    #[error("{0:?}: after the host follows a port from 1 to 65535: 127.0.0.1:9820")]
    Port(String),
    /// Something else follows the port.
    #[error("{text:?}: nothing follows the port, but here does {rest:?}")]
    Rest {
        /// The whole text.
        text: String,
        /// What follows.
        rest: String,
    },
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let owned = || text.to_owned();
        let (tls, rest) = match text.split_once("://") {
            None if text.starts_with("unix:") => return Err(AddressError::Path(owned())),
            None => (None, text),
            Some(("unix", path)) if path.starts_with('/') && path.len() > 1 => return Ok(Self::Unix(path.into())),
            Some(("unix", _)) => return Err(AddressError::Path(owned())),
            Some(("http", rest)) => (Some(false), rest),
            Some(("https", rest)) => (Some(true), rest),
            Some((scheme, _)) => return Err(AddressError::Scheme { text: owned(), scheme: scheme.to_owned() }),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(at) = authority.find(['/', '?', '#']) {
            return Err(AddressError::Rest { text: owned(), rest: authority[at..].to_owned() });
        }
        // The last colon: those of an IPv6 address are in brackets.
        let (host, port) = authority.rsplit_once(':').ok_or_else(|| AddressError::Port(owned()))?;
        let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        if !port.bytes().all(|b| b.is_ascii_digit()) || port.parse::<u16>().unwrap_or(0) == 0 {
            return Err(AddressError::Port(owned()));
        }
        let well_formed = match bracketed {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)),
        };
        if !well_formed {
            return Err(AddressError::Host(owned()));
        }
        Ok(Self::Tcp { authority: authority.to_owned(), tls })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { authority, tls: None } => f.write_str(authority),
            Self::Tcp { authority, tls: Some(false) } => write!(f, "http://{authority}"),
            Self::Tcp { authority, tls: Some(true) } => write!(f, "https://{authority}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, authority, tls) in [
            ("127.0.0.1:9820", "127.0.0.1:9820", None),
            ("http://127.0.0.1:9820", "127.0.0.1:9820", Some(false)),
            ("https://prover.example:443", "prover.example:443", Some(true)),
            ("[::1]:9820", "[::1]:9820", None),
            ("https://[2001:db8::7]:1", "[2001:db8::7]:1", Some(true)),
            ("localhost:65535", "localhost:65535", None),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address, Address::Tcp { authority: authority.into(), tls }, "{text}");
            assert_eq!(address.to_string(), text);
        }
        assert_eq!(
            "http://a:1/".parse::<Address>().unwrap().to_string(),
            "http://a:1",
            "a slash at the end is allowed"
        );
        let socket: Address = "unix:///run/a b/cuzk.sock".parse().unwrap();
        assert_eq!(socket, Address::Unix("/run/a b/cuzk.sock".into()));
        assert_eq!(socket.to_string(), "unix:///run/a b/cuzk.sock");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason() {
        for text in ["unix:/run/cuzk.sock", "unix:cuzk.sock", "unix://cuzk.sock", "unix:///", "unix://"] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Path(text.into())));
        }
        for text in ["localhost", "http://localhost", "127.0.0.1:", "a:0", "a:65536", "a:-1", "a:+1", "a:1x", "", ":"] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Port(text.into())));
        }
        for text in [":9820", "::1:9820", "[localhost]:9820", "[::1:9820", "user@host:1", "two words:1", "é:1"] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Host(text.into())));
        }
        let refused = "grpc://a:1".parse::<Address>();
        assert_eq!(refused, Err(AddressError::Scheme { text: "grpc://a:1".into(), scheme: "grpc".into() }));
        let refused = "http://a:1/v1".parse::<Address>();
        assert_eq!(refused, Err(AddressError::Rest { text: "http://a:1/v1".into(), rest: "/v1".into() }));
    }
}
