//! TLS of a server.

use std::{
    path::PathBuf,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        crypto::ring,
        server::{VerifierBuilderError, WebPkiClientVerifier},
    },
};

use crate::config::TlsConfig;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or has something else.
    #[error("{key} {}: {cause}", path.display())]
    File {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        cause: rustls_pki_types::pem::Error,
    },
    /// A file has no certificate.
    #[error("{key} {}: there is no certificate in it", path.display())]
    Empty {
        /// The key of the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The certificates of the clients' authorities cannot be used.
    #[error("tls.client_ca: {0}")]
    Authorities(VerifierBuilderError),
    /// Clients needed certificates, and would not any more.
    #[error(
        "tls.client_ca is not given any more: whoever has no certificate would be let in. To serve without it, start \
         the daemon again"
    )]
    Unguarded,
    /// Certificate and key cannot be used, or do not belong together.
    #[error("tls.certificate and tls.key: {0}")]
    Unusable(rustls::Error),
}

/// TLS of a server. Certificates can be replaced; connections that are there keep theirs.
#[derive(Debug)]
pub struct Tls {
    acceptor: RwLock<Arc<ServerConfig>>,
    protocols: Vec<Vec<u8>>,
    /// Whether clients need certificates; once they do, they do until the process ends.
    guarded: AtomicBool,
}

impl Tls {
    /// TLS of a configuration, if it has one, for these application protocols (`h2`, `http/1.1`).
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(config: &TlsConfig, protocols: &[&str]) -> Result<Option<Self>, TlsError> {
        let protocols: Vec<Vec<u8>> = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
        let server = server_config(config, &protocols)?;
        let guarded = AtomicBool::new(config.client_ca.is_some());
        Ok(server.map(|server| Self { acceptor: RwLock::new(server), protocols, guarded }))
    }

    /// Reads the files again. After an error, the old certificates count. That clients need certificates cannot be
    /// taken back: a configuration that is read while it is being written may lack anything.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn reload(&self, config: &TlsConfig) -> Result<(), TlsError> {
        if self.guarded.load(Ordering::Relaxed) && config.client_ca.is_none() {
            return Err(TlsError::Unguarded);
        }
        if let Some(server) = server_config(config, &self.protocols)? {
            self.guarded.fetch_or(config.client_ca.is_some(), Ordering::Relaxed);
            *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = server;
        }
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.acceptor.read().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

fn server_config(config: &TlsConfig, protocols: &[Vec<u8>]) -> Result<Option<Arc<ServerConfig>>, TlsError> {
    let (Some(certificate), Some(key)) = (&config.certificate, &config.key) else { return Ok(None) };
    let chain = certificates("tls.certificate", certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|cause| TlsError::File {
        key: "tls.key",
        path: key.clone(),
        cause,
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?;
    let builder = match &config.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for root in certificates("tls.client_ca", path)? {
                roots.add(root).map_err(TlsError::Unusable)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(TlsError::Authorities)?)
        }
    };
    let mut server = builder.with_single_cert(chain, key).map_err(TlsError::Unusable)?;
    server.alpn_protocols = protocols.to_vec();
    Ok(Some(Arc::new(server)))
}

fn certificates(key: &'static str, path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |cause| TlsError::File { key, path: path.clone(), cause };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(fail)?.collect();
    let found = found.map_err(fail)?;
    if found.is_empty() { Err(TlsError::Empty { key, path: path.clone() }) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_wrong_with_certificates_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path)
        };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let good = TlsConfig {
            certificate: file("cert.pem", &made.cert.pem()),
            key: file("key.pem", &made.signing_key.serialize_pem()),
            client_ca: None,
        };
        let tls = Tls::new(&good, &["h2"]).unwrap().unwrap();
        let told = |config: &TlsConfig| Tls::new(config, &["h2"]).unwrap_err().to_string();
        let absent = TlsConfig { key: Some("/absent".into()), ..good.clone() };
        assert!(told(&absent).starts_with("tls.key /absent: "));
        let empty = TlsConfig { certificate: file("empty.pem", ""), ..good.clone() };
        assert!(told(&empty).ends_with("empty.pem: there is no certificate in it"));
        let swapped = TlsConfig { key: good.certificate.clone(), ..good.clone() };
        assert!(told(&swapped).starts_with("tls.key "));
        let stranger = TlsConfig { key: file("other.pem", &other.signing_key.serialize_pem()), ..good.clone() };
        assert!(told(&stranger).starts_with("tls.certificate and tls.key: "));
        let nobody = TlsConfig { client_ca: empty.certificate.clone(), ..good.clone() };
        assert!(told(&nobody).starts_with("tls.client_ca "));
        assert!(tls.reload(&stranger).is_err());
        assert!(tls.reload(&good).is_ok());
        // Once clients need certificates, they go on needing them.
        let guarded = TlsConfig { client_ca: good.certificate.clone(), ..good.clone() };
        assert!(tls.reload(&guarded).is_ok());
        for _ in 0..2 {
            assert!(matches!(tls.reload(&good), Err(TlsError::Unguarded)));
        }
        assert!(tls.reload(&guarded).is_ok());
        let none = TlsConfig { certificate: None, key: None, client_ca: None };
        assert!(Tls::new(&none, &["h2"]).unwrap().is_none());
    }
}
