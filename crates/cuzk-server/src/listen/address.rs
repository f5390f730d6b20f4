//! Where a server listens.

use std::{fmt, net::IpAddr, path::PathBuf};

use crate::config::{Expected, Setting, quoted};

/// A TCP address or a unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `host:port`; the host is an IP address (version 6 in brackets) or a name. Port 0: any that is free.
    Tcp {
        /// Without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `unix:///path`.
    Unix(PathBuf),
}

impl Address {
    /// Whether nobody outside of this machine can reach it. A name other than `localhost` can mean anything.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

impl Setting for Address {
    fn expected() -> Expected {
        "\"host:port\", \"[ipv6]:port\" or \"unix:///path\"".into()
    }

    fn from_text(text: &str) -> Result<Self, Expected> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let fits = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
            return if fits { Ok(Self::Unix(path.into())) } else { Err(Self::expected()) };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(Self::expected)?;
        let port = port.parse().map_err(|_| Self::expected())?;
        let host = match host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok().then_some(host),
            None => {
                let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
                (!host.is_empty() && host.chars().all(letters)).then_some(host)
            }
        };
        Ok(Self::Tcp { host: host.ok_or_else(Self::expected)?.to_owned(), port })
    }

    fn to_toml(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written() {
        for (text, local) in [
            ("127.0.0.1:9820", true),
            ("127.8.8.8:0", true),
            ("localhost:9820", true),
            ("[::1]:9820", true),
            ("unix:///run/cuzk/cuzk.sock", true),
            ("0.0.0.0:9820", false),
            ("[::]:9820", false),
            ("10.0.0.7:9820", false),
            ("prover.example:9820", false),
        ] {
            let address = Address::from_text(text).unwrap();
            assert_eq!((address.to_string().as_str(), address.is_local()), (text, local));
        }
        assert_eq!(Address::from_text("unix:/run/x").unwrap().to_string(), "unix:///run/x");
        for bad in
            ["", "9820", ":9820", "host", "host:", "host:70000", "::1:9820", "[host]:1", "unix://x", "unix:///x/"]
        {
            assert!(Address::from_text(bad).is_err(), "{bad}");
        }
        assert!(Address::from_text("http://127.0.0.1:9820").is_err());
    }
}
