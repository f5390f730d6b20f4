//! What is on the wire: names, numbers and bytes that other implementations rely on.

use std::collections::{BTreeMap, BTreeSet};

use cuzk_proto::{FILE_DESCRIPTOR_SET, v1::*};
use prost::Message;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// What Curio's client sends and reads: message, then `type name = number` of each field.
const FIELDS: &[(&str, &str)] = &[
    (
        "SubmitProofRequest",
        "string request_id = 1, ProofKind proof_kind = 2, uint64 sector_size = 3, uint64 registered_proof = 4, \
         Priority priority = 5, bytes vanilla_proof = 10, repeated bytes vanilla_proofs = 11, \
         uint64 sector_number = 20, uint64 miner_id = 21, bytes randomness = 22, uint32 partition_index = 23, \
         bytes comm_r_old = 30, bytes comm_r_new = 31, bytes comm_d_new = 32",
    ),
    ("SubmitProofResponse", "string job_id = 1, uint32 queue_position = 2, string assigned_gpu = 3"),
    ("AwaitProofRequest", "string job_id = 1, uint64 timeout_ms = 2"),
    (
        "AwaitProofResponse",
        "string job_id = 1, AwaitProofResponse.Status status = 2, bytes proof = 3, string error_message = 4, \
         uint64 queue_wait_ms = 10, uint64 srs_load_ms = 11, uint64 synthesis_ms = 12, uint64 gpu_compute_ms = 13, \
         uint64 total_ms = 14",
    ),
    ("ProveRequest", "SubmitProofRequest submit = 1"),
    ("ProveResponse", "AwaitProofResponse result = 1"),
    ("CancelProofRequest", "string job_id = 1"),
    ("CancelProofResponse", "bool was_running = 1"),
    ("GetStatusRequest", ""),
    (
        "GetStatusResponse",
        "repeated GPUStatus gpus = 1, repeated SRSStatus loaded_srs = 2, repeated QueueStatus queues = 3, \
         uint64 total_proofs_completed = 4, uint64 total_proofs_failed = 5, uint64 uptime_seconds = 6, \
         uint64 pinned_memory_bytes = 7, uint64 pinned_memory_limit_bytes = 8",
    ),
    (
        "GPUStatus",
        "uint32 ordinal = 1, string name = 2, uint64 vram_total_bytes = 3, uint64 vram_free_bytes = 4, \
         string current_job_id = 5, string current_proof_kind = 6",
    ),
    ("SRSStatus", "string circuit_id = 1, SRSStatus.Tier tier = 2, uint64 size_bytes = 3, uint32 ref_count = 4"),
    ("QueueStatus", "string proof_kind = 1, uint32 pending = 2, uint32 in_progress = 3"),
    ("GetMetricsRequest", ""),
    ("GetMetricsResponse", "string prometheus_text = 1"),
    ("PreloadSrsRequest", "string circuit_id = 1"),
    ("PreloadSrsResponse", "bool already_loaded = 1, uint64 load_time_ms = 2"),
    ("EvictSrsRequest", "string circuit_id = 1"),
    ("EvictSrsResponse", "bool was_loaded = 1, uint64 freed_bytes = 2"),
];

const ENUMS: &[(&str, &str)] = &[
    (
        "ProofKind",
        "PROOF_KIND_UNSPECIFIED = 0, POREP_SEAL_COMMIT = 1, SNAP_DEALS_UPDATE = 2, WINDOW_POST_PARTITION = 3, \
         WINNING_POST = 4",
    ),
    ("Priority", "PRIORITY_UNSPECIFIED = 0, LOW = 1, NORMAL = 2, HIGH = 3, CRITICAL = 4"),
    ("AwaitProofResponse.Status", "UNKNOWN = 0, COMPLETED = 1, FAILED = 2, CANCELLED = 3, TIMEOUT = 4"),
    ("SRSStatus.Tier", "HOT = 0, WARM = 1, COLD = 2"),
];

const METHODS: &[(&str, &str, &str)] = &[
    ("SubmitProof", "SubmitProofRequest", "SubmitProofResponse"),
    ("AwaitProof", "AwaitProofRequest", "AwaitProofResponse"),
    ("Prove", "ProveRequest", "ProveResponse"),
    ("CancelProof", "CancelProofRequest", "CancelProofResponse"),
    ("GetStatus", "GetStatusRequest", "GetStatusResponse"),
    ("GetMetrics", "GetMetricsRequest", "GetMetricsResponse"),
    ("PreloadSRS", "PreloadSrsRequest", "PreloadSrsResponse"),
    ("EvictSRS", "EvictSrsRequest", "EvictSrsResponse"),
];

fn file() -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap();
    assert_eq!(set.file.len(), 1, "it imports nothing, so reflection needs no other file");
    let file = set.file.into_iter().next().unwrap();
    assert_eq!((file.package(), file.syntax()), ("cuzk.v1", "proto3"));
    file
}

/// A field's or enumeration's type without the package.
fn local(name: &str) -> &str {
    name.strip_prefix(".cuzk.v1.").unwrap()
}

/// The fields of a message below a number, as in the tables.
fn fields(message: &DescriptorProto, below: i32) -> BTreeSet<String> {
    let line = |f: &prost_types::FieldDescriptorProto| {
        let kind = match f.r#type() {
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Uint32 => "uint32",
            Type::Uint64 => "uint64",
            Type::Bool => "bool",
            Type::Enum | Type::Message => local(f.type_name()),
            other => panic!("{other:?}: no type that Curio's protocol has"),
        };
        let label = if f.label() == Label::Repeated { "repeated " } else { "" };
        format!("{label}{kind} {} = {}", f.name(), f.number())
    };
    message.field.iter().filter(|f| f.number() < below).map(line).collect()
}

fn table(line: &str) -> BTreeSet<String> {
    line.split(", ").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[test]
fn messages_have_the_names_and_numbers_that_curio_uses() {
    let file = file();
    let messages: BTreeMap<_, _> = file.message_type.iter().map(|m| (m.name(), m)).collect();
    for (name, expected) in FIELDS {
        let message = messages.get(name).unwrap_or_else(|| panic!("there is no message {name}"));
        assert_eq!(fields(message, 100), table(expected), "{name}");
        assert!(message.field.iter().all(|f| f.number() < 19_000), "{name}: numbers from 19000 are reserved");
    }
}

#[test]
fn enumerations_have_the_numbers_that_curio_uses() {
    let file = file();
    let mut found: BTreeMap<String, &EnumDescriptorProto> =
        file.enum_type.iter().map(|e| (e.name().to_owned(), e)).collect();
    for message in &file.message_type {
        found.extend(message.enum_type.iter().map(|e| (format!("{}.{}", message.name(), e.name()), e)));
    }
    for (name, expected) in ENUMS {
        let values = found[*name].value.iter().map(|v| format!("{} = {}", v.name(), v.number())).collect();
        assert_eq!(table(expected), values, "{name}");
    }
}

#[test]
fn the_service_has_the_methods_that_curio_calls() {
    let file = file();
    let service = file.service.iter().find(|s| s.name() == "ProvingEngine").unwrap();
    let methods: BTreeSet<_> =
        service.method.iter().map(|m| (m.name(), local(m.input_type()), local(m.output_type()))).collect();
    assert_eq!(methods, METHODS.iter().copied().collect());
    assert!(service.method.iter().all(|m| !m.client_streaming() && !m.server_streaming()), "all are unary");
}

/// Bytes written by hand: `tag` is number << 3 | wire type, 0 for a varint and 2 for a length.
#[track_caller]
fn golden<M: Message + Default + PartialEq + std::fmt::Debug>(message: M, bytes: &[&[u8]]) {
    let bytes = bytes.concat();
    assert_eq!(M::decode(&bytes[..]).unwrap(), message, "what the bytes say");
    assert_eq!(message.encode_to_vec(), bytes, "the bytes that are sent");
}

#[test]
fn a_submission_on_the_wire() {
    golden(
        SubmitProofRequest {
            request_id: "porep-1000-7".into(),
            proof_kind: ProofKind::SnapDealsUpdate.into(),
            sector_size: 32 << 30,
            registered_proof: 8,
            priority: Priority::High.into(),
            vanilla_proof: b"C1".to_vec(),
            vanilla_proofs: vec![b"a".to_vec(), b"bc".to_vec()],
            sector_number: 7,
            miner_id: 1000,
            randomness: vec![0xff],
            partition_index: 300,
            comm_r_old: vec![1],
            comm_r_new: vec![2],
            comm_d_new: vec![3],
            deadline_ms: 1,
        },
        &[
            b"\x0a\x0cporep-1000-7",
            b"\x10\x02",
            b"\x18\x80\x80\x80\x80\x80\x01",
            b"\x20\x08",
            b"\x28\x03",
            b"\x52\x02C1",
            b"\x5a\x01a\x5a\x02bc",
            // From number 16 on, a tag has two bytes: 20 << 3 = 160 = 0xa0 0x01.
            b"\xa0\x01\x07",
            b"\xa8\x01\xe8\x07",
            b"\xb2\x01\x01\xff",
            b"\xb8\x01\xac\x02",
            b"\xf2\x01\x01\x01",
            b"\xfa\x01\x01\x02",
            b"\x82\x02\x01\x03",
            b"\xa0\x06\x01",
        ],
    );
    golden(
        SubmitProofResponse { job_id: "j".into(), queue_position: 2, assigned_gpu: "cuda: 0".into(), joined: true },
        &[b"\x0a\x01j", b"\x10\x02", b"\x1a\x07cuda: 0", b"\xa0\x06\x01"],
    );
}

#[test]
fn a_wait_and_its_end_on_the_wire() {
    golden(AwaitProofRequest { job_id: "j".into(), timeout_ms: 1000 }, &[b"\x0a\x01j", b"\x10\xe8\x07"]);
    let end = AwaitProofResponse {
        job_id: "j".into(),
        status: await_proof_response::Status::Timeout.into(),
        proof: vec![9, 8].into(),
        error_message: "no".into(),
        queue_wait_ms: 1,
        srs_load_ms: 2,
        synthesis_ms: 3,
        gpu_compute_ms: 4,
        total_ms: 128,
        verified: true,
        device: "d".into(),
        finish_ms: 5,
        partitions: 10,
        circuit_id: "c".into(),
    };
    let bytes: &[u8] = b"\x0a\x01j\x10\x04\x1a\x02\x09\x08\x22\x02no\x50\x01\x58\x02\x60\x03\x68\x04\x70\x80\x01\
                         \xa0\x06\x01\xaa\x06\x01d\xb0\x06\x05\xb8\x06\x0a\xc2\x06\x01c";
    golden(end.clone(), &[bytes]);
    golden(ProveResponse { result: Some(end) }, &[b"\x0a", &[bytes.len() as u8], bytes]);
    let submit = SubmitProofRequest { request_id: "r".into(), ..SubmitProofRequest::default() };
    golden(ProveRequest { submit: Some(submit) }, &[b"\x0a\x03\x0a\x01r"]);
    golden(CancelProofRequest { job_id: "j".into() }, &[b"\x0a\x01j"]);
    golden(CancelProofResponse { was_running: true }, &[b"\x08\x01"]);
}

#[test]
fn a_status_on_the_wire() {
    let gpu = GpuStatus {
        ordinal: 1,
        name: "H200".into(),
        vram_total_bytes: 300,
        vram_free_bytes: 2,
        current_job_id: "j".into(),
        current_proof_kind: "k".into(),
        ..GpuStatus::default()
    };
    let srs = SrsStatus {
        circuit_id: "c".into(),
        tier: srs_status::Tier::Cold.into(),
        size_bytes: 5,
        ref_count: 6,
        key_digest: "d".into(),
    };
    golden(
        GetStatusResponse {
            gpus: vec![gpu],
            loaded_srs: vec![srs],
            queues: vec![QueueStatus { proof_kind: "k".into(), pending: 1, in_progress: 2 }],
            total_proofs_completed: 4,
            total_proofs_failed: 5,
            uptime_seconds: 6,
            pinned_memory_bytes: 7,
            pinned_memory_limit_bytes: 8,
            ..GetStatusResponse::default()
        },
        &[
            b"\x0a\x13\x08\x01\x12\x04H200\x18\xac\x02\x20\x02\x2a\x01j\x32\x01k",
            b"\x12\x0d\x0a\x01c\x10\x02\x18\x05\x20\x06\xa2\x06\x01d",
            b"\x1a\x07\x0a\x01k\x10\x01\x18\x02",
            b"\x20\x04\x28\x05\x30\x06\x38\x07\x40\x08",
        ],
    );
    golden(GetStatusRequest {}, &[]);
    golden(GetMetricsRequest {}, &[]);
    golden(GetMetricsResponse { prometheus_text: "x 1".into() }, &[b"\x0a\x03x 1"]);
}

#[test]
fn keys_on_the_wire() {
    golden(PreloadSrsRequest { circuit_id: "porep-32g".into() }, &[b"\x0a\x09porep-32g"]);
    golden(PreloadSrsResponse { already_loaded: true, load_time_ms: 300 }, &[b"\x08\x01\x10\xac\x02"]);
    golden(EvictSrsRequest { circuit_id: "snap-32g".into() }, &[b"\x0a\x08snap-32g"]);
    golden(EvictSrsResponse { was_loaded: true, freed_bytes: 1 << 35 }, &[b"\x08\x01\x10\x80\x80\x80\x80\x80\x01"]);
}

#[test]
fn fields_of_a_newer_peer_are_skipped() {
    let bytes = b"\x0a\x01j\xf8\x3e\x07\x82\x3f\x02hi\x10\x05";
    let read = AwaitProofRequest::decode(&bytes[..]).unwrap();
    assert_eq!(read, AwaitProofRequest { job_id: "j".into(), timeout_ms: 5 });
}
