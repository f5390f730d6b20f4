//! Who may call: addresses, TLS, tokens, and how these change while the server serves.

use std::{fs, path::Path};

use cuzk_proto::v1::{GetStatusRequest, proving_engine_client::ProvingEngineClient};
use cuzk_server::{
    listen::BindError,
    server::{Effect, StartError},
};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::{
    Code, Request, Status,
    metadata::MetadataValue,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

use super::{Running, load, start, start_over};
use crate::fake::{FakeOptions, FakeProver};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

async fn status(channel: Channel, authorization: Option<&str>) -> Result<(), Status> {
    let mut request = Request::new(GetStatusRequest {});
    if let Some(text) = authorization {
        request.metadata_mut().insert("authorization", MetadataValue::try_from(text).unwrap());
    }
    ProvingEngineClient::new(channel).get_status(request).await.map(drop)
}

fn refused(outcome: Result<(), Status>) {
    assert_eq!(outcome.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_need_to_be_let_in() {
    for key in ["daemon.listen", "daemon.status_listen"] {
        let prover = FakeProver::start(FakeOptions::default());
        let outcome = start_over(prover.clone(), &[(key, "0.0.0.0:0")]).await;
        assert!(matches!(outcome, Err(StartError::Bind(BindError::Exposed { .. }))), "{key}");
        assert!(start_over(prover.clone(), &[(key, "0.0.0.0:0"), ("auth.token", TOKEN)]).await.is_ok());
        assert!(start_over(prover, &[(key, "0.0.0.0:0"), ("daemon.insecure_listen", "true")]).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_asked_for() {
    let socket = tempfile::tempdir().unwrap();
    let path = socket.path().join("cuzk.sock");
    let listen = format!("127.0.0.1:0,unix://{}", path.display());
    let running = start(&[("daemon.listen", &listen), ("auth.token", TOKEN)]).await;
    let channel = running.channel().await;
    status(channel.clone(), Some(&format!("Bearer {TOKEN}"))).await.unwrap();
    refused(status(channel.clone(), None).await);
    refused(status(channel.clone(), Some("Bearer 0123456789abcdef0123456789abcdeg")).await);
    refused(status(channel.clone(), Some(TOKEN)).await);
    // Whoever looks after the process needs none, and who is let in by the file system needs none.
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.clone());
    health.check(tonic_health::pb::HealthCheckRequest::default()).await.unwrap();
    status(unix(&path).await, None).await.unwrap();
    let reflection = tonic_reflection::pb::v1::ServerReflectionRequest::default();
    let mut client = tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(channel);
    let refusal = client.server_reflection_info(tokio_stream::iter([reflection])).await.unwrap_err();
    assert_eq!(refusal.code(), Code::Unauthenticated);
}

async fn unix(path: &Path) -> Channel {
    Endpoint::from_shared(format!("unix://{}", path.display())).unwrap().connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_serves_and_is_gone_in_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cuzk.sock");
    let running = start(&[("daemon.listen", &format!("unix://{}", path.display()))]).await;
    let channel = unix(&path).await;
    status(channel.clone(), None).await.unwrap();
    drop(channel);
    running.server.drain(std::time::Duration::from_secs(1)).await;
    assert!(!path.exists());
}

/// An authority, and what it signs.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(parameters, key), certificate }
    }

    /// Certificate and key.
    fn sign(&self, name: &str) -> (String, String) {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn trust(&self) -> ClientTlsConfig {
        ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.certificate)).domain_name("localhost")
    }
}

fn write(directory: &TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn secure(running: &Running, tls: ClientTlsConfig) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("https://{}", running.address)).unwrap().tls_config(tls).unwrap().connect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_mutual_tls() {
    let (authority, other) = (Authority::new(), Authority::new());
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("localhost");
    let certificate = write(&files, "cert.pem", &certificate);
    let key = write(&files, "key.pem", &key);
    let settings = [("tls.certificate", certificate.as_str()), ("tls.key", key.as_str())];
    let running = start(&settings).await;
    status(secure(&running, authority.trust()).await.unwrap(), None).await.unwrap();
    assert!(secure(&running, other.trust()).await.is_err(), "the client does not trust it");
    let plain = Endpoint::from_shared(format!("http://{}", running.address)).unwrap().connect().await;
    let failed = match plain {
        Ok(channel) => status(channel, None).await.is_err(),
        Err(_) => true,
    };
    assert!(failed, "without TLS nothing is said");

    let clients = write(&files, "clients.pem", &other.certificate);
    let mutual = start(&[settings[0], settings[1], ("tls.client_ca", &clients)]).await;
    let identity = |(certificate, key): (String, String)| Identity::from_pem(certificate, key);
    let known = authority.trust().identity(identity(other.sign("client")));
    status(secure(&mutual, known).await.unwrap(), None).await.unwrap();
    let unknown = authority.trust().identity(identity(authority.sign("client")));
    for tls in [authority.trust(), unknown] {
        // The handshake may seem done to the client before the server has looked at what it has shown.
        let failed = match secure(&mutual, tls).await {
            Ok(channel) => status(channel, None).await.is_err(),
            Err(_) => true,
        };
        assert!(failed, "who has no certificate of theirs stays outside");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_do_not_end_keep_out_nobody() {
    let authority = Authority::new();
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.sign("localhost");
    let (certificate, key) = (write(&files, "cert.pem", &certificate), write(&files, "key.pem", &key));
    let settings = [
        ("tls.certificate", certificate.as_str()),
        ("tls.key", key.as_str()),
        ("limits.connections", "3"),
        ("limits.handshake_timeout", "10m"),
    ];
    let running = start(&settings).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(&running.address).await.unwrap());
    }
    let secure = tokio::time::timeout(super::SOON, secure(&running, authority.trust())).await;
    status(secure.expect("it is let in").unwrap(), None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn token_and_certificates_are_reloaded() {
    let (authority, other) = (Authority::new(), Authority::new());
    let files = tempfile::tempdir().unwrap();
    let (pem, key_pem) = authority.sign("localhost");
    let certificate = write(&files, "cert.pem", &pem);
    let key = write(&files, "key.pem", &key_pem);
    let token = write(&files, "token", TOKEN);
    let mut settings =
        vec![("tls.certificate", certificate.as_str()), ("tls.key", key.as_str()), ("auth.token_file", token.as_str())];
    let running = start(&settings).await;
    let channel = secure(&running, authority.trust()).await.unwrap();
    let bearer = format!("Bearer {TOKEN}");
    status(channel.clone(), Some(&bearer)).await.unwrap();

    // The same configuration: other files.
    fs::write(&token, "another token of some length".replace(' ', "-")).unwrap();
    let (new, new_key) = other.sign("localhost");
    fs::write(&certificate, &new).unwrap();
    fs::write(&key, &new_key).unwrap();
    let again = |settings: &[(&str, &str)]| load(&running.directory, settings).unwrap();
    let done = running.server.reload(again(&settings), None);
    assert_eq!(done, [("auth", Effect::Now), ("tls", Effect::Now)]);
    refused(status(channel.clone(), Some(&bearer)).await);
    status(channel.clone(), Some("Bearer another-token-of-some-length")).await.unwrap();
    assert!(secure(&running, authority.trust()).await.is_err());
    assert!(secure(&running, other.trust()).await.is_ok());

    // What cannot be leaves what is.
    fs::write(&token, "short").unwrap();
    fs::write(&key, "nonsense").unwrap();
    let done = running.server.reload(again(&settings), None);
    assert!(matches!(&done[..], [("auth", Effect::Refused(_)), ("tls", Effect::Refused(_))]), "{done:?}");
    status(channel.clone(), Some("Bearer another-token-of-some-length")).await.unwrap();
    assert!(secure(&running, other.trust()).await.is_ok());

    // Other keys.
    fs::write(&token, TOKEN).unwrap();
    fs::write(&key, &new_key).unwrap();
    settings.extend([("limits.waiting_calls", "1"), ("limits.connections", "5"), ("logging.level", "warn")]);
    let done = running.server.reload(again(&settings), None);
    for expected in [
        ("limits.waiting_calls", Effect::Now),
        ("limits.connections", Effect::NextStart),
        ("logging.level", Effect::NextStart),
        ("auth", Effect::Now),
    ] {
        assert!(done.contains(&expected), "{expected:?} is not in {done:?}");
    }
    // What counts is told once, what does not yet each time.
    let done = running.server.reload(again(&settings), None);
    assert_eq!(done[0], ("limits.connections", Effect::NextStart));
    assert!(!done.iter().any(|(key, _)| *key == "limits.waiting_calls"), "{done:?}");
    // Without a token, or with nothing at all, as of a file that is being written: the token stays, again and again.
    for given in [&settings[..2], &[], &[]] {
        let done = running.server.reload(again(given), None);
        assert!(matches!(&done[..], [.., ("auth", Effect::Refused(_)), ("tls", _)]), "{done:?}");
        refused(status(channel.clone(), None).await);
        status(channel.clone(), Some(&bearer)).await.unwrap();
    }
    let done = running.server.reload(again(&[]), None);
    assert!(done.contains(&("tls", Effect::NextStart)), "{done:?}");
}

/// The status line of an HTTP answer.
async fn get(address: &str, path: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_page_has_the_same_token() {
    let files = tempfile::tempdir().unwrap();
    let token = write(&files, "token", TOKEN);
    let settings = [("daemon.status_listen", "127.0.0.1:0"), ("auth.token_file", token.as_str())];
    let running = start(&settings).await;
    let address = running.server.status_address().unwrap().to_string();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    assert_eq!(get(&address, "/healthz", "").await, "HTTP/1.1 200 OK");
    assert_eq!(get(&address, "/status", "").await, "HTTP/1.1 401 Unauthorized");
    assert_eq!(get(&address, "/status", &bearer).await, "HTTP/1.1 200 OK");
    fs::write(&token, "fedcba9876543210").unwrap();
    let done = running.server.reload(load(&running.directory, &settings).unwrap(), None);
    assert!(done.contains(&("auth", Effect::Now)), "{done:?}");
    assert_eq!(get(&address, "/status", &bearer).await, "HTTP/1.1 401 Unauthorized");
    assert_eq!(get(&address, "/status", "Authorization: Bearer fedcba9876543210\r\n").await, "HTTP/1.1 200 OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn reloading_does_not_take_away_the_only_protection() {
    let exposed = [("daemon.listen", "0.0.0.0:0"), ("auth.token", TOKEN)];
    let running = start(&exposed).await;
    let done = running.server.reload(load(&running.directory, &exposed[..1]).unwrap(), None);
    assert!(matches!(&done[..], [("auth", Effect::Refused(_))]), "{done:?}");
    let address = running.address.replace("0.0.0.0", "127.0.0.1");
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    refused(status(channel.clone(), None).await);
    status(channel, Some(&format!("bearer {TOKEN}"))).await.unwrap();
}
