//! Witnesses in all shapes of trees against those that the published circuits give.

mod common;

use std::time::Instant;

use bellpepper_core::Circuit;
use blstrs::Scalar as Fr;
use cuzk_filecoin::{
    FilecoinError, Partition, ProofKind, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement,
    WinningStatement,
    circuits::{self, Shape},
    parse_c1, prover_id_from_miner, synthetic,
};
use cuzk_r1cs::{Assignment, WitnessCs};
use filecoin_proofs::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(5)
}

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

/// Some partitions of a statement, each in the memory of the one before.
fn check(statement: &Statement, partitions: &[usize]) {
    let mut used = None;
    for k in partitions {
        let partition = statement.partition(*k).unwrap();
        let circuit = partition.circuit_id();
        let start = Instant::now();
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

fn porep(size: SectorSize, partitions: &[usize]) {
    let input = synthetic::SealInput { size, miner: 77, number: 5, ticket: [1; 32], seed: [2; 32] };
    let statement = parse_c1(&synthetic::c1(&input, &mut rng()).unwrap()).unwrap();
    check(&statement.into(), partitions);
}

fn update(size: SectorSize, partitions: &[usize]) {
    let update = synthetic::update(size, &mut rng()).unwrap();
    let (old, new, data) = (update.comm_r_old, update.comm_r_new, update.comm_d_new);
    let statement = UpdateStatement::new(size, old, new, data, &update.vanilla).unwrap();
    check(&statement.into(), partitions);
}

fn winning(size: SectorSize) {
    let vanilla = synthetic::winning_vanilla(size, 9, [3; 32], &mut rng()).unwrap();
    let statement = WinningStatement::new(size, prover_id_from_miner(77), [3; 32], &vanilla).unwrap();
    check(&statement.into(), &[0]);
}

/// `sectors` of a deadline: the last partition may be short of some.
fn window(size: SectorSize, sectors: u64, partitions: &[usize]) {
    let vanilla = synthetic::window_vanilla(size, 1..=sectors, [4; 32], &mut rng()).unwrap();
    let version = WindowPostVersion::default();
    let statement = WindowStatement::new(size, version, prover_id_from_miner(77), [4; 32], 0, &vanilla).unwrap();
    check(&statement.into(), partitions);
}

#[test]
fn poreps() {
    porep(SectorSize::KiB2, &[0]);
    porep(SectorSize::MiB8, &[0]);
}

#[test]
fn updates() {
    update(SectorSize::KiB2, &[0]);
    update(SectorSize::MiB8, &[0, 3]);
}

#[test]
fn winning_posts() {
    for size in SectorSize::ALL {
        winning(size);
    }
}

#[test]
fn window_posts() {
    window(SectorSize::KiB2, 3, &[0, 1]);
    window(SectorSize::MiB8, 2, &[0]);
}

#[test]
#[ignore = "takes minutes: `cargo xtask oracle` runs it"]
fn poreps_of_32_and_64_gib() {
    porep(SectorSize::GiB32, &[0, 9]);
    porep(SectorSize::GiB64, &[4]);
}

#[test]
#[ignore = "takes minutes: `cargo xtask oracle` runs it"]
fn updates_of_32_and_64_gib() {
    update(SectorSize::GiB32, &[15, 0]);
    update(SectorSize::GiB64, &[7]);
}

#[test]
#[ignore = "takes a minute: `cargo xtask oracle` runs it"]
fn a_window_post_of_32_gib_with_fifty_sectors() {
    window(SectorSize::GiB32, 50, &[0]);
}
