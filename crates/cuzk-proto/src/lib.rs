//! The wire of a proving daemon: protocol buffers `cuzk.v1` over gRPC, and a client that outlives its restarts.
//!
//! [`v1`] is generated from `proto/cuzk.proto`, which says what each field means. Its service `ProvingEngine` is the
//! one that Curio's client calls; [`Client`] is ours, and works with any implementation of it. A server registers
//! [`FILE_DESCRIPTOR_SET`] for reflection, so that generic clients need no proto file.
//!
//! Clients that are built on gRPC's C core (Python, C++, Ruby) send the path of a unix socket as `:authority`, which is
//! no authority, and strict HTTP/2 servers refuse it: there they need the channel option `grpc.default_authority`, for
//! example `localhost`. Go's, and with it Curio, does that by itself.
//!
//! # Layering
//! Bottom layer. May import no other crate of this workspace; servers and clients import it. Knows no circuit, key or
//! device. Does not print or read the environment, and opens no files but those of certificates and tokens that its
//! caller names.
//!
//! # References
//! * [Protocol Buffers, encoding](https://protobuf.dev/programming-guides/encoding/) and
//!   [gRPC over HTTP/2](https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md): what is on the wire.
//! * [gRPC connection back-off](https://github.com/grpc/grpc/blob/master/doc/connection-backoff.md) and
//!   [status codes](https://grpc.io/docs/guides/status-codes/): what is tried again.
//! * [Curio](https://github.com/filecoin-project/curio), `proving.proto`: names and numbers below 100.
//! * RFC 6750: bearer tokens.
//!
//! # Example
//! ```no_run
//! use cuzk_proto::{Client, ClientOptions, v1::{ProofKind, SubmitProofRequest}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(&"127.0.0.1:9820".parse()?, ClientOptions::default()).await?;
//! let request = SubmitProofRequest {
//!     request_id: "porep-1000-1".into(),
//!     proof_kind: ProofKind::PorepSealCommit.into(),
//!     sector_size: 32 << 30,
//!     registered_proof: 8,
//!     vanilla_proof: std::fs::read("c1.json")?,
//!     miner_id: 1000,
//!     sector_number: 1,
//!     ..SubmitProofRequest::default()
//! };
//! let job = client.submit(&request).await?.job_id;
//! let end = client.wait(&job, None).await?;
//! println!("{:?}: {} bytes in {} ms on {}", end.status(), end.proof.len(), end.total_ms, end.device);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]
#![deny(rustdoc::broken_intra_doc_links)]

mod address;
mod client;

pub use address::{Address, AddressError};
pub use client::{Client, ClientError, ClientOptions, MESSAGE_LIMIT, TlsOptions, Token, Watch};
/// The status of a refusal.
pub use tonic::Code;

/// Messages and services, generated from `proto/cuzk.proto`.
// Generated: its fields are named well enough where the file says nothing of them, and its style is the generator's.
#[allow(missing_docs, unreachable_pub, clippy::all, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("cuzk.v1");
}

/// The encoded `FileDescriptorSet` of `cuzk.v1`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cuzk.v1.bin"));
