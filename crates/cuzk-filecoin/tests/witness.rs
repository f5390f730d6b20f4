//! Witnesses in all shapes of trees against those that the published circuits give.

mod common;

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellpepper_core::Circuit;
use blstrs::Scalar as Fr;
use cuzk_filecoin::{
    CircuitId, FilecoinError, Partition, ProofKind, SectorSize, Statement,
    circuits::{self, Shape},
    parse_c1, synthetic,
};
use cuzk_r1cs::{Assignment, WitnessCs};
use filecoin_proofs::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

fn run<C: Circuit<Fr>>(built: Result<(C, Vec<Fr>), FilecoinError>) -> Assignment<Fr> {
    WitnessCs::generate(built.unwrap().0).unwrap()
}

fn published<Tree: Shape>(partition: &Partition) -> Assignment<Fr> {
    match partition.circuit_id().kind {
        ProofKind::PoRep => run(circuits::porep::<Tree>(partition)),
        ProofKind::WinningPoSt | ProofKind::WindowPoSt => run(circuits::post::<Tree>(partition)),
        ProofKind::Update => run(circuits::update::<Tree>(partition)),
    }
}

fn by_the_circuit(partition: &Partition) -> Assignment<Fr> {
    match partition.circuit_id().sector_size {
        SectorSize::GiB32 => published::<SectorShapeSub8>(partition),
        SectorSize::GiB64 => published::<SectorShapeTop2>(partition),
        _ => published::<SectorShapeBase>(partition),
    }
}

/// Partitions of a statement. A WindowPoSt has so many sectors: the last partition may be short of some.
fn check(circuit: &str, sectors: u64, partitions: &[usize]) {
    let circuit: CircuitId = circuit.parse().unwrap();
    let (statement, _) = synthetic::statement(circuit, sectors, &mut ChaCha20Rng::seed_from_u64(5)).unwrap();
    let mut used = None;
    for k in partitions {
        let partition = statement.partition(*k).unwrap();
        let start = Instant::now();
        // Each in the memory of the one before.
        let witness = partition.witness_reusing(used.take()).unwrap();
        let ours = start.elapsed();
        let start = Instant::now();
        let expected = by_the_circuit(&partition);
        println!("{circuit}, partition {k}: {ours:.1?}, the circuit {:.1?}", start.elapsed());
        assert!(witness == expected, "{circuit}, partition {k}");
        used = Some(witness);
    }
}

#[test]
fn poreps() {
    check("porep-2k", 1, &[0]);
    check("porep-8m", 1, &[0]);
}

#[test]
fn updates() {
    check("snap-2k", 1, &[0]);
    check("snap-8m", 1, &[0, 3]);
}

#[test]
fn winning_posts() {
    for circuit in ["winning-2k", "winning-8m", "winning-512m", "winning-32g", "winning-64g"] {
        check(circuit, 1, &[0]);
    }
}

#[test]
fn window_posts() {
    check("wpost-2k", 3, &[0, 1]);
    check("wpost-8m", 2, &[0]);
}

#[test]
#[ignore = "takes minutes: `cargo xtask oracle` runs it"]
fn poreps_of_32_and_64_gib() {
    check("porep-32g", 1, &[0, 9]);
    check("porep-64g", 1, &[4]);
}

#[test]
#[ignore = "takes minutes: `cargo xtask oracle` runs it"]
fn updates_of_32_and_64_gib() {
    check("snap-32g", 1, &[15, 0]);
    check("snap-64g", 1, &[7]);
}

#[test]
#[ignore = "takes minutes: `cargo xtask oracle` runs it"]
fn a_window_post_of_32_gib_with_fifty_sectors() {
    check("wpost-32g", 50, &[0]);
}

/// Changes some bytes or digits of an input again and again. What is still accepted, because its form is right, must
/// have the witness that the published circuit gives, which satisfies no constraints any more.
fn check_changed(original: &[u8], digits: bool, parse: impl Fn(&[u8]) -> Option<Statement>) {
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let right = parse(original).unwrap().partition(0).unwrap().witness().unwrap();
    let (mut compared, mut changed) = (0, 0);
    while compared < 6 {
        let mut input = original.to_vec();
        for _ in 0..rng.gen_range(1..4) {
            let at = rng.gen_range(0..input.len());
            match (digits, input[at]) {
                (true, b'0'..=b'9') => input[at] = b'0' + (input[at] - b'0' + rng.gen_range(1..10)) % 10,
                (true, _) => {}
                (false, byte) => input[at] = byte ^ 1 << rng.gen_range(0..8),
            }
        }
        let Some(statement) = parse(&input) else { continue };
        let partition = statement.partition(0).unwrap();
        let witness = partition.witness().unwrap();
        assert!(witness == by_the_circuit(&partition));
        compared += 1;
        changed += usize::from(witness != right);
    }
    assert!(changed > 0, "no change was of the circuit's variables");
}

#[test]
fn wrong_statements_have_the_witness_of_the_circuit() {
    let wrapper = common::json("2kib/porep/c1.json");
    let raw = STANDARD.decode(wrapper["Phase1Out"].as_str().unwrap()).unwrap();
    // A C1 is taken as it comes out of phase 1 as well.
    check_changed(&raw, true, |raw| parse_c1(raw).ok().map(Into::into));

    let one = |folder: &str, file: &str| common::vanilla(&format!("{folder}/{file}")).swap_remove(0);
    check_changed(&one("2kib/winning", "vanilla.json"), false, |bytes| {
        common::winning("2kib/winning", &[bytes.to_vec()]).ok().map(Into::into)
    });
    check_changed(&one("2kib/update", "vanilla.json"), false, |bytes| {
        common::update("2kib/update", &[bytes.to_vec()]).ok().map(Into::into)
    });
}
