//! Requests that are wrong: the answer is INVALID_ARGUMENT and nothing else.

use std::sync::Arc;

use cuzk_proto::v1::{
    AwaitProofRequest, CancelProofRequest, EvictSrsRequest, ListProofsRequest, PreloadSrsRequest, ProofKind,
    ProveRequest, SubmitProofRequest, WatchProofRequest,
};
use cuzk_server::prover::{
    Evicted, KeyError, Look, Observer, Order, Preloaded, Prover, Rejection, Running as Job, Summary,
};
use prost::{
    Message,
    bytes::{Buf, BufMut},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tonic::{
    Code, Request, Response, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};

use super::{Running, request, start, start_over};
use crate::fake::{FakeOptions, FakeProver};

/// Messages as bytes, whatever they mean.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = ();
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = ();
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<()>, Status> {
        buffer.advance(buffer.remaining());
        Ok(Some(()))
    }
}

async fn send(channel: &Channel, path: &'static str, bytes: Vec<u8>) -> Result<Response<()>, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static(path);
    client.unary(Request::new(bytes), path, Raw).await
}

async fn answer(channel: &Channel, path: &'static str, bytes: Vec<u8>) -> (Code, String) {
    match send(channel, path, bytes).await {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    }
}

const SUBMIT: &str = "/cuzk.v1.ProvingEngine/SubmitProof";

fn full(kind: ProofKind) -> SubmitProofRequest {
    SubmitProofRequest {
        registered_proof: 5,
        priority: 2,
        miner_id: 1000,
        sector_number: 7,
        deadline_ms: 100_000,
        ..request(kind, "some-id", "the only input that is right, of some length, so that it is hit often")
    }
}

/// Knows one right request of each kind, and that every other is wrong: an input with a flipped bit does not verify.
struct Strict {
    right: Vec<SubmitProofRequest>,
    fake: Arc<FakeProver>,
}

impl Prover for Strict {
    fn check(&self, request: &SubmitProofRequest) -> Result<Summary, Rejection> {
        // What the input does not say cannot be wrong.
        let about = |r: &SubmitProofRequest| SubmitProofRequest {
            request_id: String::new(),
            priority: 0,
            partition_index: 0,
            deadline_ms: 0,
            ..r.clone()
        };
        if self.right.iter().any(|right| about(right) == about(request)) {
            self.fake.check(request)
        } else {
            Err(Rejection::Invalid("the input does not verify".to_owned()))
        }
    }

    fn start(&self, order: Order, observer: Arc<dyn Observer>) -> Arc<dyn Job> {
        self.fake.start(order, observer)
    }

    fn look(&self) -> Look {
        self.fake.look()
    }

    fn timeline(&self, minutes: f64) -> cuzk_timeline::Timeline {
        self.fake.timeline(minutes)
    }

    fn preload(&self, circuit: &str) -> Result<Preloaded, KeyError> {
        self.fake.preload(circuit)
    }

    fn evict(&self, circuit: &str) -> Result<Evicted, KeyError> {
        self.fake.evict(circuit)
    }

    fn stop(&self) {
        self.fake.stop();
    }
}

async fn strict() -> Running {
    let right = vec![full(ProofKind::PorepSealCommit), full(ProofKind::WindowPostPartition)];
    let fake = FakeProver::start(FakeOptions::default());
    start_over(Arc::new(Strict { right, fake }), &[]).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_mutated_messages() {
    let running = strict().await;
    let channel = running.channel().await;
    let mut rng = ChaCha8Rng::seed_from_u64(9820);
    let bases = [full(ProofKind::PorepSealCommit), full(ProofKind::WindowPostPartition)];
    let (mut refused, mut undecodable, mut harmless) = (0, 0, 0);
    while refused < 1000 {
        let base = &bases[rng.gen_range(0..bases.len())];
        let mut bytes = base.encode_to_vec();
        mutate(&mut bytes, &mut rng);
        let decoded = SubmitProofRequest::decode(&bytes[..]).ok();
        // Renamed, more urgent, or with an unknown field, it is a right request still.
        let told = |r: &SubmitProofRequest| {
            (r.sector_size, r.proof_kind, r.vanilla_proof.clone(), r.vanilla_proofs.clone(), r.randomness.clone())
        };
        let same = decoded.as_ref().is_some_and(|d| bases.iter().any(|base| told(d) == told(base)));
        let (code, message) = answer(&channel, SUBMIT, bytes).await;
        if same && code == Code::Ok {
            harmless += 1;
            continue;
        }
        assert_eq!(code, Code::InvalidArgument, "{message}: {decoded:?}");
        assert!(!message.is_empty());
        refused += 1;
        undecodable += usize::from(decoded.is_none());
    }
    println!("{refused} refused, {undecodable} of them undecodable; {harmless} more were right requests still");
    assert!(undecodable > 100 && undecodable < 950, "both ways of being wrong were met");
    // Nothing came of them.
    assert_eq!(running.server.gate().arriving_bytes(), 0);
    assert_eq!(running.server.gate().waiting(), 0);
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    for _ in 0..rng.gen_range(1..4) {
        let place = rng.gen_range(0..bytes.len());
        match rng.gen_range(0..6) {
            0 => bytes[place] ^= 1 << rng.gen_range(0..8),
            1 => bytes[place] = rng.r#gen(),
            2 => drop(bytes.remove(place)),
            3 => bytes.insert(place, rng.r#gen()),
            4 => bytes.truncate(place.max(1)),
            _ => {
                let end = rng.gen_range(place..bytes.len().min(place + 40));
                let piece = bytes[place..=end].to_vec();
                let to = rng.gen_range(0..=bytes.len());
                bytes.splice(to..to, piece);
            }
        }
        if bytes.is_empty() {
            bytes.push(0xff);
        }
    }
}

/// A field of each wire type, of a number that has another one.
fn wrong_types() -> Vec<Vec<u8>> {
    let key = |number: u32, wire: u8| {
        let mut key = Vec::new();
        prost::encoding::encode_varint(u64::from(number << 3) | u64::from(wire), &mut key);
        key
    };
    let mut messages = Vec::new();
    // Texts and bytes as numbers, numbers as bytes.
    for number in [1, 10, 11, 22, 30, 31, 32] {
        messages.push([key(number, 0), vec![1]].concat());
        messages.push([key(number, 5), vec![1; 4]].concat());
    }
    for number in [2, 3, 4, 5, 20, 21, 23, 100] {
        messages.push([key(number, 2), vec![1, 1]].concat());
        messages.push([key(number, 1), vec![1; 8]].concat());
    }
    // A length beyond the end, a group that does not end, a varint without end, field 0, bytes that are no UTF-8.
    messages.push([key(10, 2), vec![0xff, 0xff, 0xff, 0xff, 0x0f]].concat());
    messages.push(key(50, 3));
    messages.push(vec![0x10; 1].into_iter().chain(vec![0xff; 11]).collect());
    messages.push(vec![0x00, 0x01]);
    messages.push([key(1, 2), vec![2, 0xc3, 0x28]].concat());
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_wrong_types_and_broken_messages() {
    let running = start(&[]).await;
    let channel = running.channel().await;
    for prefix in [Vec::new(), full(ProofKind::PorepSealCommit).encode_to_vec()] {
        for wrong in wrong_types() {
            let bytes = [prefix.clone(), wrong.clone()].concat();
            let (code, message) = answer(&channel, SUBMIT, bytes).await;
            assert_eq!(code, Code::InvalidArgument, "{wrong:?}: {message}");
        }
    }
    // A request that ends anywhere.
    let whole = full(ProofKind::PorepSealCommit).encode_to_vec();
    for length in 0..whole.len() - 1 {
        let left = SubmitProofRequest::decode(&whole[..length]).is_ok_and(|r| !r.vanilla_proof.is_empty());
        if !left {
            let (code, message) = answer(&channel, SUBMIT, whole[..length].to_vec()).await;
            assert_eq!(code, Code::InvalidArgument, "{length}: {message}");
        }
    }
    let (code, _) = answer(&channel, "/cuzk.v1.ProvingEngine/Unheard", Vec::new()).await;
    assert_eq!(code, Code::Unimplemented);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_absent_or_huge() {
    let running = start(&[]).await;
    let channel = running.channel().await;
    type Spoil = fn(&mut SubmitProofRequest);
    let spoils: [(ProofKind, Spoil); 22] = [
        (ProofKind::PorepSealCommit, |r| *r = SubmitProofRequest::default()),
        (ProofKind::PorepSealCommit, |r| r.proof_kind = 0),
        (ProofKind::PorepSealCommit, |r| r.proof_kind = i32::MAX),
        (ProofKind::PorepSealCommit, |r| r.proof_kind = i32::MIN),
        (ProofKind::PorepSealCommit, |r| r.sector_size = 0),
        (ProofKind::PorepSealCommit, |r| r.sector_size = u64::MAX),
        (ProofKind::PorepSealCommit, |r| r.registered_proof = u64::MAX),
        (ProofKind::PorepSealCommit, |r| r.registered_proof = 6),
        (ProofKind::PorepSealCommit, |r| r.priority = i32::MAX),
        (ProofKind::PorepSealCommit, |r| r.vanilla_proof.clear()),
        (ProofKind::PorepSealCommit, |r| r.vanilla_proofs = vec![Vec::new(); 1000]),
        (ProofKind::PorepSealCommit, |r| r.request_id = "x".repeat(1 << 20)),
        (ProofKind::PorepSealCommit, |r| r.sector_number = u64::MAX),
        (ProofKind::PorepSealCommit, |r| r.miner_id = u64::MAX),
        (ProofKind::PorepSealCommit, |r| r.deadline_ms = u64::MAX),
        (ProofKind::WinningPost, |r| r.randomness.clear()),
        (ProofKind::WinningPost, |r| r.randomness = vec![0; 1 << 20]),
        (ProofKind::WinningPost, |r| r.vanilla_proofs.clear()),
        (ProofKind::WindowPostPartition, |r| r.vanilla_proofs = vec![Vec::new(); 100_000]),
        (ProofKind::SnapDealsUpdate, |r| r.comm_r_old.clear()),
        (ProofKind::SnapDealsUpdate, |r| r.comm_r_new = vec![0; 31]),
        (ProofKind::SnapDealsUpdate, |r| r.comm_d_new = vec![0; 1 << 20]),
    ];
    for (place, (kind, spoil)) in spoils.into_iter().enumerate() {
        let mut submit = full(kind);
        spoil(&mut submit);
        for (path, bytes) in [
            (SUBMIT, submit.encode_to_vec()),
            ("/cuzk.v1.ProvingEngine/Prove", ProveRequest { submit: Some(submit.clone()) }.encode_to_vec()),
        ] {
            let (code, message) = answer(&channel, path, bytes).await;
            assert_eq!(code, Code::InvalidArgument, "case {place}: {message}");
        }
    }
    let long = || "x".repeat(1 << 20);
    for (path, empty, huge) in [
        (
            "/cuzk.v1.ProvingEngine/AwaitProof",
            AwaitProofRequest::default().encode_to_vec(),
            AwaitProofRequest { job_id: long(), timeout_ms: u64::MAX }.encode_to_vec(),
        ),
        (
            "/cuzk.v1.ProvingEngine/CancelProof",
            CancelProofRequest::default().encode_to_vec(),
            CancelProofRequest { job_id: long() }.encode_to_vec(),
        ),
        (
            "/cuzk.v1.ProvingEngine/PreloadSRS",
            PreloadSrsRequest::default().encode_to_vec(),
            PreloadSrsRequest { circuit_id: long() }.encode_to_vec(),
        ),
        (
            "/cuzk.v1.ProvingEngine/EvictSRS",
            EvictSrsRequest::default().encode_to_vec(),
            EvictSrsRequest { circuit_id: "a\u{7}".to_owned() }.encode_to_vec(),
        ),
        (
            "/cuzk.v1.Engine/WatchProof",
            WatchProofRequest::default().encode_to_vec(),
            WatchProofRequest { job_id: long() }.encode_to_vec(),
        ),
        ("/cuzk.v1.Engine/ListProofs", vec![0x08], ListProofsRequest { limit: u32::MAX }.encode_to_vec()),
    ] {
        for bytes in [empty, huge, vec![0xff]] {
            let (code, message) = answer(&channel, path, bytes).await;
            assert_eq!(code, Code::InvalidArgument, "{path}: {message}");
        }
    }
}
