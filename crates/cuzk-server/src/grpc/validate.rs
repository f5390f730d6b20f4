//! What every request must satisfy, whatever proves it. Each refusal names the field, what it has, and what it may
//! have.

use cuzk_proto::v1::{Priority, ProofKind, SubmitProofRequest};
use tonic::Status;

use super::failure::invalid;

/// Bytes of a caller's name for its work.
const LONGEST_REQUEST_ID: usize = 256;
/// Bytes of the names of jobs and circuits.
const LONGEST_NAME: usize = 128;
/// A WindowPoSt partition has at most 2,349 sectors, a deadline at most 3 partitions' worth of the smaller sizes.
const MOST_VANILLA_PROOFS: usize = 16_384;
/// Numbers of sectors and actors are signed 64-bit numbers on the chain.
const LARGEST_CHAIN_NUMBER: u64 = i64::MAX as u64;
/// Numbers of all types of proof are below: seal proofs have the most.
const LARGEST_REGISTERED_PROOF: u64 = 19;
/// Ten years.
const LONGEST_DEADLINE_MS: u64 = 3_650 * 86_400_000;
/// Bytes of randomness and of commitments.
const NODE_BYTES: usize = 32;

/// The sizes of sectors, in the order of the numbers of proof types.
const SECTOR_SIZES: [u64; 5] = [2 << 10, 8 << 20, 512 << 20, 32 << 30, 64 << 30];

/// Checks every field of a request.
pub(super) fn submit(request: &SubmitProofRequest) -> Result<(), Status> {
    text("request_id", &request.request_id, LONGEST_REQUEST_ID)?;
    let kind = match ProofKind::try_from(request.proof_kind) {
        Ok(ProofKind::Unspecified) => return Err(invalid("proof_kind is absent: expected 1 to 4")),
        Ok(kind) => kind,
        Err(_) => return Err(invalid(format!("proof_kind is {}: expected 1 to 4", request.proof_kind))),
    };
    if Priority::try_from(request.priority).is_err() {
        return Err(invalid(format!("priority is {}: expected 0 to 4", request.priority)));
    }
    let Some(size) = SECTOR_SIZES.iter().position(|size| *size == request.sector_size) else {
        let sizes = SECTOR_SIZES.map(|size| size.to_string()).join(", ");
        return Err(invalid(format!("sector_size is {}: expected one of {sizes}", request.sector_size)));
    };
    at_most("registered_proof", request.registered_proof, LARGEST_REGISTERED_PROOF)?;
    let (sizes, registered) = (SECTOR_SIZES.len() as u64, request.registered_proof);
    // 0 is absent: nothing is compared with it.
    if kind == ProofKind::PorepSealCommit && registered > 0 && registered % sizes != size as u64 {
        return Err(invalid(format!(
            "registered_proof is {registered}, which is for sectors of {} bytes, but sector_size is {}",
            SECTOR_SIZES[(registered % sizes) as usize],
            request.sector_size
        )));
    }
    at_most("sector_number", request.sector_number, LARGEST_CHAIN_NUMBER)?;
    at_most("miner_id", request.miner_id, LARGEST_CHAIN_NUMBER)?;
    at_most("deadline_ms", request.deadline_ms, LONGEST_DEADLINE_MS)?;
    vanilla(kind, request)?;
    let post = matches!(kind, ProofKind::WindowPostPartition | ProofKind::WinningPost);
    node("randomness", &request.randomness, post, kind)?;
    let update = kind == ProofKind::SnapDealsUpdate;
    node("comm_r_old", &request.comm_r_old, update, kind)?;
    node("comm_r_new", &request.comm_r_new, update, kind)?;
    node("comm_d_new", &request.comm_d_new, update, kind)
}

fn vanilla(kind: ProofKind, request: &SubmitProofRequest) -> Result<(), Status> {
    let (one, several) = (&request.vanilla_proof, &request.vanilla_proofs);
    let name = kind.as_str_name();
    if kind == ProofKind::PorepSealCommit {
        if one.is_empty() {
            return Err(invalid(format!("vanilla_proof is absent: {name} needs the C1 output there")));
        }
        if !several.is_empty() {
            return Err(invalid(format!("vanilla_proofs has {}: {name} takes vanilla_proof alone", several.len())));
        }
        return Ok(());
    }
    if !one.is_empty() {
        return Err(invalid(format!("vanilla_proof has {} bytes: {name} takes vanilla_proofs alone", one.len())));
    }
    if several.is_empty() {
        return Err(invalid(format!("vanilla_proofs is absent: {name} needs at least one")));
    }
    at_most("vanilla_proofs: their number", several.len() as u64, MOST_VANILLA_PROOFS as u64)?;
    match several.iter().position(Vec::is_empty) {
        Some(index) => Err(invalid(format!("vanilla_proofs[{index}] of {} is empty", several.len()))),
        None => Ok(()),
    }
}

fn node(field: &str, bytes: &[u8], needed: bool, kind: ProofKind) -> Result<(), Status> {
    match bytes.len() {
        NODE_BYTES => Ok(()),
        0 if !needed => Ok(()),
        0 => Err(invalid(format!("{field} is absent: {} needs {NODE_BYTES} bytes", kind.as_str_name()))),
        length => Err(invalid(format!("{field} has {length} bytes: expected {NODE_BYTES}"))),
    }
}

fn at_most(field: &str, value: u64, limit: u64) -> Result<(), Status> {
    if value <= limit { Ok(()) } else { Err(invalid(format!("{field} is {value}: expected at most {limit}"))) }
}

/// Texts come back in logs, metrics and pages, so they are short and in one line.
fn text(field: &str, text: &str, limit: usize) -> Result<(), Status> {
    at_most(&format!("{field}: its number of bytes"), text.len() as u64, limit as u64)?;
    match text.chars().position(char::is_control) {
        Some(place) => Err(invalid(format!("{field} has a control character, as character {place}"))),
        None => Ok(()),
    }
}

/// Checks the id of a job.
pub(super) fn job_id(job: &str) -> Result<(), Status> {
    if job.is_empty() {
        return Err(invalid("job_id is absent"));
    }
    text("job_id", job, LONGEST_NAME)
}

/// Checks the name of a circuit.
pub(super) fn circuit_id(circuit: &str) -> Result<(), Status> {
    if circuit.is_empty() {
        return Err(invalid("circuit_id is absent: expected a name such as porep-32g"));
    }
    text("circuit_id", circuit, LONGEST_NAME)
}

/// The most jobs that are listed at a time.
const MOST_LISTED: u32 = 10_000;

/// How many jobs to list.
pub(super) fn list_limit(limit: u32) -> Result<usize, Status> {
    at_most("limit", limit.into(), MOST_LISTED.into())?;
    Ok(if limit == 0 { 100 } else { limit as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn porep() -> SubmitProofRequest {
        SubmitProofRequest {
            request_id: "porep-1000-1".to_owned(),
            proof_kind: ProofKind::PorepSealCommit.into(),
            sector_size: 32 << 30,
            registered_proof: 8,
            vanilla_proof: vec![1],
            ..SubmitProofRequest::default()
        }
    }

    fn window() -> SubmitProofRequest {
        SubmitProofRequest {
            proof_kind: ProofKind::WindowPostPartition.into(),
            sector_size: 2048,
            registered_proof: 10,
            vanilla_proofs: vec![vec![1], vec![2]],
            randomness: vec![0; 32],
            ..SubmitProofRequest::default()
        }
    }

    fn update() -> SubmitProofRequest {
        SubmitProofRequest {
            proof_kind: ProofKind::SnapDealsUpdate.into(),
            sector_size: 8 << 20,
            vanilla_proofs: vec![vec![1]],
            comm_r_old: vec![0; 32],
            comm_r_new: vec![0; 32],
            comm_d_new: vec![0; 32],
            ..SubmitProofRequest::default()
        }
    }

    #[test]
    fn each_field_is_checked() {
        for good in [porep(), window(), update()] {
            submit(&good).unwrap();
        }
        type Spoil = fn(&mut SubmitProofRequest);
        let cases: [(SubmitProofRequest, Spoil, &str); 26] = [
            (
                porep(),
                |r| r.request_id = "x".repeat(257),
                "request_id: its number of bytes is 257: expected at most 256",
            ),
            (porep(), |r| r.request_id = "a\nb".to_owned(), "request_id has a control character, as character 1"),
            (porep(), |r| r.proof_kind = 0, "proof_kind is absent: expected 1 to 4"),
            (porep(), |r| r.proof_kind = 17, "proof_kind is 17: expected 1 to 4"),
            (porep(), |r| r.proof_kind = -1, "proof_kind is -1: expected 1 to 4"),
            (porep(), |r| r.priority = 5, "priority is 5: expected 0 to 4"),
            (porep(), |r| r.sector_size = 0, "sector_size is 0: expected one of 2048, 8388608, 536870912"),
            (porep(), |r| r.sector_size = u64::MAX, "sector_size is 18446744073709551615: expected one of"),
            (porep(), |r| r.registered_proof = 20, "registered_proof is 20: expected at most 19"),
            (porep(), |r| r.registered_proof = 5, "registered_proof is 5, which is for sectors of 2048 bytes, but"),
            (porep(), |r| r.sector_number = 1 << 63, "sector_number is 9223372036854775808: expected at most"),
            (porep(), |r| r.miner_id = u64::MAX, "miner_id is 18446744073709551615: expected at most"),
            (porep(), |r| r.deadline_ms = u64::MAX, "deadline_ms is 18446744073709551615: expected at most"),
            (porep(), |r| r.vanilla_proof.clear(), "vanilla_proof is absent: POREP_SEAL_COMMIT needs the C1 output"),
            (
                porep(),
                |r| r.vanilla_proofs.push(vec![1]),
                "vanilla_proofs has 1: POREP_SEAL_COMMIT takes vanilla_proof",
            ),
            (porep(), |r| r.randomness = vec![1], "randomness has 1 bytes: expected 32"),
            (porep(), |r| r.comm_r_old = vec![1; 33], "comm_r_old has 33 bytes: expected 32"),
            (
                window(),
                |r| r.vanilla_proof = vec![1],
                "vanilla_proof has 1 bytes: WINDOW_POST_PARTITION takes vanilla_p",
            ),
            (window(), |r| r.vanilla_proofs.clear(), "vanilla_proofs is absent: WINDOW_POST_PARTITION needs at least"),
            (window(), |r| r.vanilla_proofs[1].clear(), "vanilla_proofs[1] of 2 is empty"),
            (window(), |r| r.vanilla_proofs = vec![vec![1]; 16_385], "vanilla_proofs: their number is 16385: expected"),
            (window(), |r| r.randomness.clear(), "randomness is absent: WINDOW_POST_PARTITION needs 32 bytes"),
            (window(), |r| r.randomness = vec![0; 1 << 20], "randomness has 1048576 bytes: expected 32"),
            (update(), |r| r.comm_r_old.clear(), "comm_r_old is absent: SNAP_DEALS_UPDATE needs 32 bytes"),
            (update(), |r| r.comm_r_new.clear(), "comm_r_new is absent: SNAP_DEALS_UPDATE needs 32 bytes"),
            (update(), |r| r.comm_d_new.truncate(31), "comm_d_new has 31 bytes: expected 32"),
        ];
        for (mut request, spoil, told) in cases {
            spoil(&mut request);
            let status = submit(&request).unwrap_err();
            assert_eq!(status.code(), tonic::Code::InvalidArgument);
            assert!(status.message().starts_with(told), "{} is not {told}", status.message());
        }
    }

    #[test]
    fn a_registered_proof_that_is_absent_contradicts_no_sector_size() {
        for sector_size in SECTOR_SIZES {
            let request = |registered_proof| SubmitProofRequest { registered_proof, sector_size, ..porep() };
            assert!(submit(&request(0)).is_ok(), "{sector_size}");
            let fitting = (1..5).filter(|registered| submit(&request(*registered)).is_ok()).count();
            assert_eq!(fitting, usize::from(sector_size > 2048), "{sector_size}");
        }
    }

    #[test]
    fn names_and_numbers_are_checked() {
        assert!(job_id("j-1").is_ok() && circuit_id("porep-32g").is_ok());
        assert_eq!(job_id("").unwrap_err().message(), "job_id is absent");
        assert!(job_id(&"j".repeat(200)).unwrap_err().message().contains("expected at most 128"));
        assert!(circuit_id("").unwrap_err().message().starts_with("circuit_id is absent"));
        assert!(circuit_id("a\0").is_err());
        assert_eq!((list_limit(0).unwrap(), list_limit(7).unwrap()), (100, 7));
        assert_eq!(list_limit(10_001).unwrap_err().message(), "limit is 10001: expected at most 10000");
    }
}
