//! From requests to statements.

use cuzk_daemon::statement::{self, RequestError};
use cuzk_filecoin::CircuitId;
use cuzk_proto::v1::SubmitProofRequest;

use crate::common::{POREP, UPDATE, WINDOW, WINNING, request};

fn refused(circuit: CircuitId, change: impl FnOnce(&mut SubmitProofRequest)) -> RequestError {
    let mut request = request(circuit, "");
    change(&mut request);
    statement::read(&request).expect_err("it is wrong")
}

#[test]
fn what_curio_sends_is_understood() {
    for circuit in [POREP, WINNING, WINDOW, UPDATE] {
        let statement = statement::read(&request(circuit, "x")).unwrap();
        assert_eq!((statement.circuit_id(), statement.partitions()), (circuit, 1));
    }
}

#[test]
fn what_is_not_given_is_taken_from_elsewhere() {
    for circuit in [WINDOW, POREP] {
        let mut request = request(circuit, "");
        request.sector_size = 0;
        assert_eq!(statement::read(&request).unwrap().circuit_id(), circuit);
    }
    let mut request = request(POREP, "");
    (request.registered_proof, request.miner_id, request.sector_number) = (0, 0, 0);
    assert_eq!(statement::read(&request).unwrap().circuit_id(), POREP);
}

#[test]
fn fields_that_are_missing_are_named() {
    let missing = |circuit, name: &str, change: fn(&mut SubmitProofRequest)| match refused(circuit, change) {
        RequestError::Missing { field } => assert_eq!(field, name),
        other => panic!("{name}: {other}"),
    };
    missing(POREP, "proof_kind", |r| r.proof_kind = 0);
    missing(POREP, "vanilla_proof", |r| r.vanilla_proof.clear());
    missing(WINDOW, "vanilla_proofs", |r| r.vanilla_proofs.clear());
    missing(WINDOW, "randomness", |r| r.randomness.clear());
    missing(WINDOW, "miner_id", |r| r.miner_id = 0);
    missing(WINDOW, "sector_size", |r| (r.sector_size, r.registered_proof) = (0, 0));
    missing(UPDATE, "comm_d_new", |r| r.comm_d_new.clear());
    assert!(statement::read(&SubmitProofRequest::default()).is_err());
}

#[test]
fn contradictions_are_refused_with_both_numbers() {
    let contradiction = |circuit, change: fn(&mut SubmitProofRequest)| match refused(circuit, change) {
        RequestError::Contradiction { field, given, found } => (field, given, found),
        other => panic!("{other}"),
    };
    assert_eq!(contradiction(POREP, |r| r.sector_size = 1 << 35), ("sector_size", 1 << 35, 2048));
    assert_eq!(contradiction(POREP, |r| r.registered_proof = 8), ("registered_proof", 8, 5));
    assert_eq!(contradiction(POREP, |r| r.sector_number = 7), ("sector_number", 7, 1));
    assert_eq!(contradiction(WINDOW, |r| r.registered_proof = 13), ("sector_size", 2048, 1 << 35));
}

#[test]
fn what_is_not_of_its_kind_is_refused() {
    let text = |circuit, change: fn(&mut SubmitProofRequest)| refused(circuit, change).to_string();
    assert!(text(WINDOW, |r| r.registered_proof = 3).starts_with("registered_proof 3 is unknown: 5 to 14"));
    assert!(text(WINDOW, |r| r.sector_size = 1000).starts_with("sector_size 1000 is unknown: 2048, "));
    assert!(text(WINDOW, |r| r.proof_kind = 9).starts_with("proof_kind 9 is unknown"));
    assert!(text(POREP, |r| r.vanilla_proofs.push(vec![1])).contains("does not belong to a request for PoRep"));
    assert!(text(UPDATE, |r| r.vanilla_proof = vec![1]).contains("does not belong to a request for SnapDeals"));
    assert_eq!(text(WINNING, |r| r.randomness.truncate(31)), "randomness has 31 bytes, expected 32");
    // The input of another kind, of another provider, and less than all of it.
    assert!(
        text(WINNING, |r| r.proof_kind = 3).starts_with("registered_proof 0")
            || text(WINNING, |r| r.proof_kind = 3).starts_with("vanilla_proofs: ")
    );
    assert!(text(POREP, |r| r.miner_id = 1001).starts_with("vanilla_proof: "));
    assert!(text(POREP, |r| r.vanilla_proof.truncate(1000)).starts_with("vanilla_proof: "));
    assert!(text(WINDOW, |r| r.vanilla_proofs[0].truncate(100)).starts_with("vanilla_proofs: "));
}

#[test]
fn a_window_post_partition_has_no_more_sectors_than_its_circuit() {
    let text = |change: fn(&mut SubmitProofRequest)| refused(WINDOW, change).to_string();
    let copies = text(|r| r.vanilla_proofs = vec![r.vanilla_proofs[0].clone(); 5000]);
    assert_eq!(copies, "vanilla_proofs has 5000 proofs, but a WindowPoSt partition of 2k sectors has at most 2");
    let twice = text(|r| r.vanilla_proofs[1] = r.vanilla_proofs[0].clone());
    assert_eq!(twice, "vanilla_proofs: vanilla proof 1: sector 1 is that of vanilla proof 0 again");
    let reversed = text(|r| r.vanilla_proofs.reverse());
    assert!(reversed.contains("vanilla proof 1: sector 1 comes after sector 2"), "{reversed}");
}

/// What parses and has the right form and roots, but does not hash, is refused before anything is proved.
#[test]
fn a_corrupt_vanilla_proof_is_named_with_its_sector() {
    for (circuit, place) in [(WINDOW, "vanilla proof 1 (sector 2), challenge 9"), (WINNING, "(sector 1), challenge 65")]
    {
        let mut request = request(circuit, "");
        // The last opening ends with its topmost level: the siblings, then the position.
        let last = request.vanilla_proofs.last_mut().unwrap();
        let sibling = last.len() - 64 - 8 - 32;
        last[sibling] ^= 1;
        assert!(statement::read(&request).is_ok());
        let text = statement::check(&request).unwrap_err().to_string();
        assert!(text.starts_with("vanilla_proofs: ") && text.contains(place) && text.contains("root is"), "{text}");
    }
}
