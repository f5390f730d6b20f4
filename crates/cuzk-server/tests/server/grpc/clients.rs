//! Slow clients and those that vanish: they hold nothing.

use std::time::{Duration, Instant};

use cuzk_proto::v1::{GetStatusRequest, ProofKind, ProveRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tonic::Code;

use super::{Running, SOON, request, start, start_over, until};
use crate::fake::{FakeOptions, FakeProver};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A SETTINGS frame without settings: length 0, type 4, flags 0, stream 0.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fn open(running: &Running) -> usize {
    running.server.connections().open()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_do_not_begin_are_closed() {
    let running = start(&[("limits.handshake_timeout", "300ms")]).await;
    let mut clients = Vec::new();
    for sent in [&b""[..], b"PRI", b"GET / HTTP/1.1\r\n", &PREFACE[..23]] {
        for _ in 0..5 {
            let mut client = TcpStream::connect(&running.address).await.unwrap();
            client.write_all(sent).await.unwrap();
            clients.push(client);
        }
    }
    until("they are all there", || open(&running) > 0).await;
    until("they are all closed", || open(&running) == 0).await;
    for mut client in clients {
        let mut rest = Vec::new();
        // Closed, or reset because something was not read.
        let _end = timeout(SOON, client.read_to_end(&mut rest)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_answer_is_gone() {
    let running = start(&[("limits.keepalive_interval", "200ms"), ("limits.keepalive_timeout", "200ms")]).await;
    let mut silent = TcpStream::connect(&running.address).await.unwrap();
    silent.write_all(&[PREFACE, SETTINGS].concat()).await.unwrap();
    until("it is there", || open(&running) == 1).await;
    // It reads nothing and answers nothing, as behind a cable that was pulled; one that answers stays.
    let mut alive = running.proving().await;
    alive.get_status(GetStatusRequest {}).await.unwrap();
    until("it is given up", || open(&running) == 1).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(open(&running), 1);
    alive.get_status(GetStatusRequest {}).await.unwrap();
    drop(alive);
    until("it has left", || open(&running) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_holds_nothing_and_its_proof_goes_on() {
    let running = start(&[]).await;
    let mut proving = running.proving().await;
    let slow = request(ProofKind::PorepSealCommit, "slow", "slow");
    let message = ProveRequest { submit: Some(slow.clone()) };
    let mut leaving = running.proving().await;
    let call = tokio::spawn(async move { leaving.prove(message).await });
    let jobs = running.server.jobs().clone();
    until("it is worked on", || jobs.look().in_progress() == 1).await;
    assert_eq!((running.server.gate().waiting(), open(&running)), (1, 2));
    call.abort();
    until("its place is free", || running.server.gate().waiting() == 0).await;
    until("its connection is closed", || open(&running) == 1).await;
    assert_eq!(jobs.look().cancelled(), 0);
    let answer = proving.submit_proof(slow).await.unwrap().into_inner();
    assert!(answer.joined, "a retry joins it");
    until("it is done", || jobs.look().completed() == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_leaves_can_be_made_to_cancel() {
    let running = start(&[("daemon.cancel_on_disconnect", "true")]).await;
    let message = ProveRequest { submit: Some(request(ProofKind::PorepSealCommit, "slow", "slow")) };
    let mut leaving = running.proving().await;
    let call = tokio::spawn(async move { leaving.prove(message).await });
    let jobs = running.server.jobs().clone();
    until("it is worked on", || jobs.look().in_progress() == 1).await;
    call.abort();
    until("it is cancelled", || jobs.look().cancelled() == 1).await;
}

/// A HEADERS frame that begins a call to `SubmitProof`, by HPACK's literals without indexing (RFC 7541, 6.2.2).
fn headers(stream: u8) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/cuzk.v1.ProvingEngine/SubmitProof"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    // Type 1, END_HEADERS.
    [vec![0, 0, u8::try_from(block.len()).unwrap(), 1, 4, 0, 0, 0, stream], block].concat()
}

fn data(stream: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    [vec![0, length[0], length[1], 0, 0, 0, 0, 0, stream], bytes.to_vec()].concat()
}

/// A message of 64 KiB of which 16,000 bytes are sent.
fn part_of_a_request() -> Vec<u8> {
    let part = [vec![0, 0, 1, 0, 0], vec![0; 15_995]].concat();
    [headers(1), data(1, &part)].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_arrive_is_given_up() {
    let running = start(&[("limits.request_timeout", "500ms")]).await;
    let arriving = || running.server.gate().arriving_bytes();
    let mut dribbling = TcpStream::connect(&running.address).await.unwrap();
    let sent = Instant::now();
    dribbling.write_all(&[PREFACE, SETTINGS, &part_of_a_request()].concat()).await.unwrap();
    until("a part of it arrives", || arriving() == 16_000).await;
    until("it is given up", || arriving() == 0).await;
    assert!(sent.elapsed() >= Duration::from_millis(400));
    // Another that vanishes in the middle of its request.
    let patient = start(&[]).await;
    let mut vanishing = TcpStream::connect(&patient.address).await.unwrap();
    vanishing.write_all(&[PREFACE, SETTINGS, &part_of_a_request()].concat()).await.unwrap();
    until("a part of it arrives", || patient.server.gate().arriving_bytes() == 16_000).await;
    drop(vanishing);
    until("nothing is left of it", || patient.server.gate().arriving_bytes() == 0 && open(&patient) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_arrive_are_bounded() {
    let running = start(&[("limits.max_message_size", "20000"), ("limits.max_arriving_bytes", "1")]).await;
    let mut dribbling = TcpStream::connect(&running.address).await.unwrap();
    let part = [headers(1), data(1, &[vec![0, 0, 0, 64, 0], vec![0; 15_000]].concat())].concat();
    dribbling.write_all(&[PREFACE, SETTINGS, &part].concat()).await.unwrap();
    until("a part of it arrives", || running.server.gate().arriving_bytes() == 15_005).await;
    let mut proving = running.proving().await;
    let large = request(ProofKind::PorepSealCommit, "large", &"x".repeat(10_000));
    let refusal = proving.submit_proof(large.clone()).await.unwrap_err();
    assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal:?}");
    proving.get_status(GetStatusRequest {}).await.unwrap();
    drop(dribbling);
    until("nothing is left of it", || running.server.gate().arriving_bytes() == 0).await;
    proving.submit_proof(large).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_are_bounded_and_others_are_served() {
    let options = FakeOptions { partition_time: Duration::from_millis(2), ..FakeOptions::default() };
    let running = start_over(FakeProver::start(options), &[("limits.waiting_calls", "2")]).await.unwrap();
    let mut proving = running.proving().await;
    let slow = |id: &str| ProveRequest { submit: Some(request(ProofKind::PorepSealCommit, id, &format!("slow {id}"))) };
    let waiting: Vec<_> = ["a", "b"]
        .map(|id| {
            let (mut proving, message) = (proving.clone(), slow(id));
            tokio::spawn(async move { proving.prove(message).await })
        })
        .into_iter()
        .collect();
    until("two wait", || running.server.gate().waiting() == 2).await;
    let refusal = proving.prove(slow("c")).await.unwrap_err();
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    assert_eq!(refusal.message(), "2 calls wait already, limits.waiting_calls is 2");
    proving.get_status(GetStatusRequest {}).await.unwrap();
    proving.submit_proof(request(ProofKind::PorepSealCommit, "d", "d")).await.unwrap();
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    until("both places are free", || running.server.gate().waiting() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_bounded() {
    let running = start(&[("limits.connections", "3"), ("limits.handshake_timeout", "500ms")]).await;
    let mut holders = Vec::new();
    for _ in 0..3 {
        holders.push(TcpStream::connect(&running.address).await.unwrap());
    }
    until("all places are taken", || open(&running) == 3).await;
    // Who comes now waits until one of those that say nothing is closed.
    let mut proving = timeout(SOON, running.proving()).await.unwrap();
    timeout(SOON, proving.get_status(GetStatusRequest {})).await.unwrap().unwrap();
}
