//! The gRPC side over real sockets.

mod calls;
mod clients;
mod limits;
mod malformed;
mod protection;

use std::{sync::Arc, time::Duration};

use cuzk_proto::v1::{SubmitProofRequest, engine_client::EngineClient, proving_engine_client::ProvingEngineClient};
use cuzk_server::{
    config::{ConfigErrors, Loaded, Sources},
    http::About,
    prover::Prover,
    server::{Server, StartError},
};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::fake::{FakeOptions, FakeProver};

/// Long for what takes milliseconds, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A server over a fake prover.
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: String,
    /// With the journal.
    pub(crate) directory: TempDir,
}

/// A configuration of options alone. The journal is in `directory`.
pub(crate) fn load(directory: &TempDir, settings: &[(&str, &str)]) -> Result<Loaded, ConfigErrors> {
    let journal = directory.path().join("journal");
    let flag = |(key, value): (&str, &str)| ("--set".to_owned(), key.to_owned(), value.to_owned());
    let own = [
        ("daemon.listen", "127.0.0.1:0"),
        ("daemon.status_listen", ""),
        ("journal.directory", journal.to_str().unwrap()),
    ];
    let flags = own.into_iter().chain(settings.iter().copied()).map(flag).collect();
    Sources { flags, ..Sources::default() }.load()
}

/// Starts a server over any prover.
pub(crate) async fn start_over(prover: Arc<dyn Prover>, settings: &[(&str, &str)]) -> Result<Running, StartError> {
    let directory = tempfile::tempdir().unwrap();
    let loaded = load(&directory, settings).unwrap();
    let server = Server::start(loaded, prover, About::now("test", "1.2.3", "")).await?;
    let address = server.addresses()[0].to_string();
    Ok(Running { server, address, directory })
}

pub(crate) async fn start(settings: &[(&str, &str)]) -> Running {
    start_over(FakeProver::start(FakeOptions::default()), settings).await.unwrap()
}

impl Running {
    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn proving(&self) -> ProvingEngineClient<Channel> {
        ProvingEngineClient::new(self.channel().await).max_encoding_message_size(usize::MAX)
    }

    pub(crate) async fn engine(&self) -> EngineClient<Channel> {
        EngineClient::new(self.channel().await)
    }
}

/// A request that has all that its kind needs.
pub(crate) fn request(kind: cuzk_proto::v1::ProofKind, id: &str, input: &str) -> SubmitProofRequest {
    let node = || vec![7; 32];
    SubmitProofRequest {
        randomness: node(),
        comm_r_old: node(),
        comm_r_new: node(),
        comm_d_new: node(),
        ..crate::fake::request(kind, id, input.as_bytes())
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let looking = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, looking).await.unwrap_or_else(|_| panic!("{what}"));
}
