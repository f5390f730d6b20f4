//! Connections over a real socket: that they end.

use std::{io, time::Duration};

use cuzk_server::http::{Access, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};

use super::Service;

const SOON: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_what_is_under_way_and_ends() {
    let service = Service::new(0.02, Access { loopback_only: true, ..Access::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = service.router.clone();
    let server = tokio::spawn(async move {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve(accept, router, async { stopped.await.unwrap_or_default() }).await;
    });
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = [0; 15];
    timeout(SOON, kept.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");

    stop.send(()).unwrap();
    let mut rest = Vec::new();
    timeout(SOON, kept.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.ends_with(b"ok\n"), "the connection that was kept is closed");
    timeout(SOON, idle.read_to_end(&mut rest)).await.unwrap().unwrap();
    half.write_all(b"alhost\r\n\r\n").await.unwrap();
    let mut late = String::new();
    // Begun before the stop, it is answered, or refused: it does not hang.
    match timeout(SOON, half.read_to_string(&mut late)).await.unwrap() {
        Ok(_) => assert!(late.is_empty() || late.starts_with("HTTP/1.1 200 OK"), "{late}"),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
    }
    timeout(SOON, server).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
