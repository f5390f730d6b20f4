//! Binding addresses.

use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::Address;

/// What protects an address that strangers can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// TLS or a token.
    Protected,
    /// Nothing, so there must be no such address.
    Unprotected,
    /// Nothing, and that is what the operator wants.
    Insecure,
}

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Strangers could reach it.
    #[error(
        "{address} can be reached from other machines, and nothing protects it: whoever reaches it could have proofs \
         made and cancel others'. Set tls.certificate and tls.key, or auth.token_file; or listen on 127.0.0.1 or a \
         unix socket; or, if the network is safe, give --insecure-listen"
    )]
    Exposed {
        /// As configured.
        address: String,
    },
    /// A name has no address.
    #[error("{address}: the name has no address: {cause}")]
    Resolve {
        /// As configured.
        address: String,
        /// Why.
        cause: String,
    },
    /// The system refuses it.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// As configured.
        address: String,
        /// Why.
        cause: io::Error,
    },
    /// Another process serves the unix socket.
    #[error("cannot listen on {address}: another process does")]
    InUse {
        /// As configured.
        address: String,
    },
    /// There is something else than a socket at the path.
    #[error("cannot listen on {address}: there is something at that path which is no socket, and it stays")]
    NotASocket {
        /// As configured.
        address: String,
    },
}

/// An address that is listened on. A unix socket is removed in the end.
#[derive(Debug)]
pub struct Bound(Kind);

#[derive(Debug)]
pub(super) enum Kind {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Bound {
    /// Binds an address. A name with several addresses stands for the first that can be bound.
    ///
    /// # Errors
    /// [`BindError`].
    pub async fn bind(address: &Address, exposure: Exposure) -> Result<Self, BindError> {
        match address {
            Address::Tcp { host, port } => bind_tcp(address, host, *port, exposure).await.map(Self),
            Address::Unix(path) => bind_unix(address, path).await.map(Self),
        }
    }

    /// Where it is: a port of 0 is replaced by the one that was free.
    ///
    /// # Errors
    /// The system does not say.
    pub fn address(&self) -> io::Result<Address> {
        match &self.0 {
            Kind::Tcp(listener) => {
                let address = listener.local_addr()?;
                Ok(Address::Tcp { host: address.ip().to_string(), port: address.port() })
            }
            Kind::Unix(_, file) => Ok(Address::Unix(file.path.clone())),
        }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0
    }
}

async fn bind_tcp(address: &Address, host: &str, port: u16, exposure: Exposure) -> Result<Kind, BindError> {
    let resolve = |cause: String| BindError::Resolve { address: address.to_string(), cause };
    let found: Vec<SocketAddr> =
        tokio::net::lookup_host((host, port)).await.map_err(|e| resolve(e.to_string()))?.collect();
    if found.is_empty() {
        return Err(resolve("the resolver found none".to_owned()));
    }
    // What a name stands for is decided by the resolver, so it is the result that is judged.
    if exposure == Exposure::Unprotected && !found.iter().all(|socket| socket.ip().is_loopback()) {
        return Err(BindError::Exposed { address: address.to_string() });
    }
    match TcpListener::bind(&found[..]).await {
        Ok(listener) => Ok(Kind::Tcp(listener)),
        Err(cause) => Err(BindError::Bind { address: address.to_string(), cause }),
    }
}

async fn bind_unix(address: &Address, path: &Path) -> Result<Kind, BindError> {
    let name = || address.to_string();
    let fail = |cause| BindError::Bind { address: name(), cause };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(BindError::NotASocket { address: name() }),
        Ok(_) => match UnixStream::connect(path).await {
            Ok(_) => return Err(BindError::InUse { address: name() }),
            // Nobody listens any more: the process that made it is dead.
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(fail)?,
            Err(e) => return Err(fail(e)),
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(fail(e)),
    }
    // Until the mode is right, nobody but the owner may enter: the socket is made where only the owner can look, and
    // moved to its place. (The umask would do, but is the whole process's.)
    let parent = path.parent().unwrap_or(Path::new("/"));
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let private = parent.join(format!(".{file_name}.{}", std::process::id()));
    let _removed = fs::remove_dir_all(&private);
    fs::DirBuilder::new().create(&private).map_err(fail)?;
    let made = (|| {
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700))?;
        let inside = private.join("s");
        let listener = UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o660))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    })();
    let _removed = fs::remove_dir_all(&private);
    let listener = made.map_err(fail)?;
    let inode = fs::symlink_metadata(path).map_err(fail)?.ino();
    Ok(Kind::Unix(listener, SocketFile { path: path.to_owned(), inode }))
}

/// A socket's name in the file system.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // By now the name can be that of another process's socket.
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _removed = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    async fn bind(text: &str, exposure: Exposure) -> Result<Bound, BindError> {
        Bound::bind(&Address::from_text(text).unwrap(), exposure).await
    }

    #[tokio::test]
    async fn strangers_are_kept_out() {
        for text in ["0.0.0.0:0", "[::]:0"] {
            let error = bind(text, Exposure::Unprotected).await.unwrap_err();
            assert!(matches!(error, BindError::Exposed { .. }), "{error}");
            let told = error.to_string();
            assert!(["tls.certificate", "auth.token_file", "--insecure-listen"].iter().all(|way| told.contains(way)));
        }
        for exposure in [Exposure::Protected, Exposure::Insecure] {
            assert!(bind("0.0.0.0:0", exposure).await.is_ok());
        }
        for text in ["127.0.0.1:0", "localhost:0"] {
            let bound = bind(text, Exposure::Unprotected).await.unwrap();
            assert!(matches!(bound.address().unwrap(), Address::Tcp { port: 1.., .. }));
        }
        assert!(matches!(bind("no.such.name.invalid:1", Exposure::Insecure).await, Err(BindError::Resolve { .. })));
        // TEST-NET-3 is nobody's.
        assert!(matches!(bind("203.0.113.1:0", Exposure::Insecure).await, Err(BindError::Bind { .. })));
    }

    #[tokio::test]
    async fn a_dead_process_socket_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cuzk.sock");
        let text = format!("unix://{}", path.display());
        let bound = bind(&text, Exposure::Unprotected).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert!(matches!(bind(&text, Exposure::Unprotected).await, Err(BindError::InUse { .. })));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside the socket");
        drop(bound);
        assert!(!path.exists(), "it is removed in the end");
        // A listener of the standard library leaves its name behind, as a killed process does.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let bound = bind(&text, Exposure::Unprotected).await.unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        // Somebody else took the name: it stays.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(bound);
        assert!(matches!(bind(&text, Exposure::Unprotected).await, Err(BindError::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        let absent = format!("unix://{}/absent/x.sock", directory.path().display());
        assert!(matches!(bind(&absent, Exposure::Unprotected).await, Err(BindError::Bind { .. })));
    }
}
