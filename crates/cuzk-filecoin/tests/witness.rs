//! Witnesses in all shapes of trees against those that the published circuits give.

use std::time::Instant;

use bellpepper_core::Circuit;
use blstrs::Scalar as Fr;
use cuzk_filecoin::{
    CircuitId, FilecoinError, Partition, ProofKind, SectorSize,
    circuits::{self, Shape},
    synthetic,
};
use cuzk_r1cs::{Assignment, WitnessCs};
use filecoin_proofs::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use rand::SeedableRng;
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
        let expected = match circuit.sector_size {
            SectorSize::GiB32 => published::<SectorShapeSub8>(&partition),
            SectorSize::GiB64 => published::<SectorShapeTop2>(&partition),
            _ => published::<SectorShapeBase>(&partition),
        };
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
