//! Connections over a real socket: that they end.

use std::{
    io,
    time::{Duration, Instant},
};

use cuzk_server::http::{Access, serve};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

use super::Service;

const SOON: Duration = Duration::from_secs(5);

/// Serves on a listener, until it is told to stop.
fn serving(service: &Service, listener: TcpListener) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    let router = service.router.clone();
    let server = tokio::spawn(async move {
        let accept = || async { listener.accept().await.map(|(stream, _)| stream) };
        serve(accept, router, 128, async { stopped.await.unwrap_or_default() }).await;
    });
    (stop, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_what_is_under_way_and_ends() {
    let service = Service::new(0.02, Access { loopback_only: true, ..Access::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, server) = serving(&service, listener);
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

/// More than there are places.
const MANY: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn those_who_hold_connections_keep_out_nobody() {
    let service = Service::new(0.02, Access::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, server) = serving(&service, listener);
    async fn ask(stream: &mut TcpStream, path: &str) -> io::Result<()> {
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok\n") && !answer.ends_with(b"ready\n") {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK"));
        Ok(())
    }
    let mut regular = TcpStream::connect(address).await.unwrap();
    let mut holders = Vec::new();
    for i in 0..MANY {
        let mut stream = TcpStream::connect(address).await.unwrap();
        match i % 3 {
            // Nothing, a part of a head, or a whole request and then nothing.
            0 => {}
            1 => stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").await.unwrap(),
            _ => timeout(SOON, ask(&mut stream, "/healthz")).await.unwrap().unwrap(),
        }
        holders.push(stream);
        if i % 40 == 0 {
            timeout(SOON, ask(&mut regular, "/healthz")).await.unwrap().unwrap();
        }
    }
    for path in ["/healthz", "/readyz"] {
        let began = Instant::now();
        let mut probe = TcpStream::connect(address).await.unwrap();
        timeout(SOON, ask(&mut probe, path)).await.unwrap().unwrap();
        // Far from the time that those who hold would have.
        assert!(began.elapsed() < Duration::from_secs(3), "{path}: {:?}", began.elapsed());
    }
    timeout(SOON, ask(&mut regular, "/healthz")).await.unwrap().expect("who asks regularly stays");
    // The oldest of those who did not ask are gone, the newest are not.
    let mut byte = [0];
    let first = timeout(SOON, holders[0].read(&mut byte)).await.unwrap();
    assert!(matches!(first, Ok(0) | Err(_)), "{first:?}");
    assert!(timeout(Duration::from_millis(50), holders[MANY - 1].read(&mut byte)).await.is_err(), "it is there");
    stop.send(()).unwrap();
    drop((holders, regular));
    timeout(SOON, server).await.unwrap().unwrap();
}
