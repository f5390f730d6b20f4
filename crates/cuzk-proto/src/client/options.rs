//! How a client connects.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tonic::{
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, ClientTlsConfig, Endpoint, Identity},
};

use super::error::ClientError;
use crate::Address;

/// How a client connects, and how long it waits.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// For how long a server that is not there is tried again, at the start and whenever a connection is lost. Zero:
    /// not at all.
    pub connect_limit: Duration,
    /// The time of a call that does not wait for a proof or a key.
    pub call_limit: Duration,
    /// Encryption. An address with `https` needs it, one without scheme uses it if it is here, others refuse it.
    pub tls: Option<TlsOptions>,
    /// What the server knows the caller by. Without TLS everybody on the way can read it.
    pub token: Option<Token>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        let connect_limit = Duration::from_secs(10);
        Self { connect_limit, call_limit: Duration::from_secs(30), tls: None, token: None }
    }
}

/// Certificates in PEM.
#[derive(Clone)]
pub struct TlsOptions {
    /// Certificates of the authority that has signed the server's.
    pub ca_pem: Vec<u8>,
    /// What the client shows, if the server asks for it: its certificates and its private key.
    pub identity_pem: Option<(Vec<u8>, Vec<u8>)>,
    /// The name in the server's certificate, if it is not the host of the address.
    pub server_name: Option<String>,
}

impl TlsOptions {
    /// Reads certificates, and the key of the client's, from files.
    ///
    /// # Errors
    /// [`ClientError::File`] names the one that cannot be read.
    pub fn read(ca: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, ClientError> {
        let read = |path: &Path| fs::read(path).map_err(|source| ClientError::File { path: path.into(), source });
        let identity_pem = match identity {
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
            None => None,
        };
        Ok(Self { ca_pem: read(ca)?, identity_pem, server_name: None })
    }
}

impl fmt::Debug for TlsOptions {
    // The private key is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("server_name", &self.server_name)
            .field("identity", &self.identity_pem.is_some())
            .finish_non_exhaustive()
    }
}

/// A bearer token (RFC 6750).
#[derive(Clone)]
pub struct Token(MetadataValue<Ascii>);

impl Token {
    /// A token, without the white space around it.
    ///
    /// # Errors
    /// [`ClientError::Token`] if it is empty or has characters other than printable ASCII.
    pub fn new(token: &str) -> Result<Self, ClientError> {
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let mut value: MetadataValue<Ascii> = format!("Bearer {token}").parse().map_err(|_| ClientError::Token)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The token in a file.
    ///
    /// # Errors
    /// [`ClientError::File`]; or as [`Token::new`].
    pub fn read(path: &Path) -> Result<Self, ClientError> {
        let failed = |source| ClientError::File { path: PathBuf::from(path), source };
        Self::new(&fs::read_to_string(path).map_err(failed)?)
    }

    /// The value of the header `authorization`.
    pub(super) const fn header(&self) -> &MetadataValue<Ascii> {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How often a connection with calls under way asks its peer for a sign of life, and how long it waits for that: a peer
/// whose machine is gone says nothing by itself.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Longest time of one attempt to connect.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Where and how to connect.
pub(super) fn endpoint(address: &Address, options: &ClientOptions) -> Result<Endpoint, ClientError> {
    let refuse = |reason: &str| ClientError::Options { address: address.to_string(), reason: reason.into() };
    let failed = |e: tonic::transport::Error| refuse(&super::error::in_words(&e));
    let uri = match (address, &options.tls) {
        (Address::Unix(_), Some(_)) => return Err(refuse("a socket of this machine has no TLS")),
        (Address::Tcp { tls: Some(false), .. }, Some(_)) => return Err(refuse("http is without TLS: say https")),
        (Address::Tcp { tls: Some(true), .. }, None) => {
            return Err(refuse("https needs the certificate of an authority"));
        }
        (Address::Unix(path), None) => {
            let path = path.to_str().ok_or_else(|| refuse("the path of a socket is UTF-8 here"))?;
            format!("unix://{path}")
        }
        (Address::Tcp { authority, .. }, Some(_)) => format!("https://{authority}"),
        (Address::Tcp { authority, .. }, None) => format!("http://{authority}"),
    };
    let endpoint = Endpoint::from_shared(uri)
        .map_err(failed)?
        .connect_timeout(ATTEMPT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    let Some(tls) = &options.tls else { return Ok(endpoint) };
    // rustls skips what is no certificate, and would then trust nobody without saying why.
    if !contains(&tls.ca_pem, b"-----BEGIN CERTIFICATE-----") {
        return Err(refuse("there is no certificate in the authority's file"));
    }
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
    if let Some((certificate, key)) = &tls.identity_pem {
        config = config.identity(Identity::from_pem(certificate, key));
    }
    if let Some(name) = &tls.server_name {
        config = config.domain_name(name);
    }
    endpoint.tls_config(config).map_err(failed)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str, tls: Option<&str>) -> String {
        let tls = tls.map(|ca| TlsOptions { ca_pem: ca.into(), identity_pem: None, server_name: None });
        let options = ClientOptions { tls, ..ClientOptions::default() };
        endpoint(&address.parse().unwrap(), &options).expect_err(address).to_string()
    }

    #[test]
    fn what_does_not_fit_the_address_is_refused() {
        assert!(refused("https://a:1", None).contains("needs the certificate"));
        assert!(refused("http://a:1", Some("")).contains("say https"));
        assert!(refused("unix:///a", Some("")).contains("no TLS"));
        assert!(refused("a:1", Some("hello")).contains("no certificate"));
        let broken = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
        assert!(refused("a:1", Some(broken)).starts_with("a:1: "));
    }

    #[test]
    fn secrets_are_not_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert_eq!(token.header().to_str().unwrap(), "Bearer s3cret");
        let identity_pem = Some((b"certificate".to_vec(), b"s3cret".to_vec()));
        let tls = Some(TlsOptions { ca_pem: Vec::new(), identity_pem, server_name: Some("prover".into()) });
        let shown = format!("{:?}", ClientOptions { tls, token: Some(token), ..ClientOptions::default() });
        assert!(shown.contains("prover") && shown.contains("Token"), "{shown}");
        assert!(!shown.contains("s3cret") && !shown.contains("115, 51"), "{shown}");
        for bad in ["", " \n", "two\nlines", "naïve"] {
            assert!(matches!(Token::new(bad), Err(ClientError::Token)), "{bad:?}");
        }
    }
}
