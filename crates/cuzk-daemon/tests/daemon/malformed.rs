//! Requests that are wrong in a thousand ways.

use cuzk_daemon::statement;
use cuzk_proto::v1::SubmitProofRequest;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tonic::Code;

use crate::common::{Daemon, POREP, UPDATE, WINDOW, WINNING, request};

const SEED: u64 = 0x2026_1130;

/// Bytes of an input, some of them changed.
fn mutate(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        bytes.push(rng.r#gen());
        return;
    }
    match rng.gen_range(0..5) {
        0 => bytes.truncate(rng.gen_range(0..bytes.len())),
        1 => bytes.extend_from_slice(&[rng.r#gen(); 3]),
        2 => {
            let at = rng.gen_range(0..bytes.len());
            bytes[at] ^= 1 << rng.gen_range(0..8);
        }
        3 => {
            let (at, len) = (rng.gen_range(0..bytes.len()), rng.gen_range(1..64));
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        _ => {
            let at = rng.gen_range(0..bytes.len());
            let end = (at + 8).min(bytes.len());
            bytes[at..end].fill(0xff);
        }
    }
}

fn mutated(rng: &mut ChaCha8Rng) -> SubmitProofRequest {
    let circuit = [POREP, WINNING, WINDOW, UPDATE][rng.gen_range(0..4)];
    let mut request = request(circuit, "");
    match rng.gen_range(0..8) {
        0 => request.proof_kind = rng.gen_range(-2..9),
        1 => request.sector_size = rng.r#gen(),
        2 => request.registered_proof = rng.gen_range(0..30),
        3 => mutate(&mut request.randomness, rng),
        4 => mutate(&mut request.comm_r_new, rng),
        _ => match request.vanilla_proofs.first_mut() {
            Some(first) => mutate(first, rng),
            None => mutate(&mut request.vanilla_proof, rng),
        },
    }
    request
}

/// Of what is changed at random some stays right (a field that its kind does not use, white space in JSON); everything
/// else is refused, and nothing panics.
#[test]
fn a_thousand_mutated_requests_are_refused() {
    println!("seed {SEED:#x}");
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let refused = (0..1000).filter(|_| statement::check(&mutated(&mut rng)).is_err()).count();
    assert!(refused > 700, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_answers_mutated_requests_with_invalid_argument_and_nothing_else() {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let directory = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(directory.path(), &[]);
    let client = daemon.client().await;
    let mut refused = 0;
    while refused < 150 {
        let request = mutated(&mut rng);
        if statement::check(&request).is_ok() {
            continue;
        }
        match client.submit(&request).await {
            Err(cuzk_proto::ClientError::Refused { code: Code::InvalidArgument, message, .. }) => {
                assert!(!message.contains(directory.path().to_str().unwrap()), "{message}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    let status = client.status().await.unwrap();
    assert_eq!((status.total_proofs_completed, status.total_proofs_failed), (0, 0));
    assert!(daemon.pid() > 0);
}
