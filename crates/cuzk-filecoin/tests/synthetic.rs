//! Statements of sectors that do not exist, judged by the published vanilla verifiers and by the
//! circuits.

mod common;

use std::time::Instant;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cuzk_filecoin::{
    CircuitId, ProofKind, SectorSize, Statement, UpdateStatement, WindowPostVersion, WindowStatement, WinningStatement,
    circuits::Shape, parse_c1, prover_id_from_miner, synthetic,
};
use filecoin_proofs::{
    DefaultPieceHasher, FallbackPoStSectorProof, PartitionProof, SectorShapeBase, SectorShapeSub8, SectorShapeTop2,
    parameters::public_params,
};
use filecoin_proofs_api::seal::SealCommitPhase1Output;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use serde_json::Value;
use storage_proofs_core::{drgraph::Graph, merkle::MerkleProofTrait, proof::ProofScheme};
use storage_proofs_porep::stacked;
use storage_proofs_update::{EmptySectorUpdate, PublicParams, constants::h_default};

const MINER: u64 = 77;

fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(1)
}

fn c1(size: SectorSize) -> Vec<u8> {
    let input = synthetic::SealInput { size, miner: MINER, number: 5, ticket: [1; 32], seed: [2; 32] };
    synthetic::c1(&input, &mut rng()).unwrap()
}

/// Everything that filecoin-proofs can say about a vanilla PoRep.
fn verify_seal<Tree: Shape>(size: SectorSize) {
    let start = Instant::now();
    let file = c1(size);
    println!("{size}: C1 of {} bytes in {:.2?}", file.len(), start.elapsed());
    let start = Instant::now();
    let statement = parse_c1(&file).unwrap();
    println!("{size}: parsed in {:.2?}", start.elapsed());
    statement.check_replica_id(&prover_id_from_miner(MINER), 5).unwrap();
    assert_eq!(statement.partitions(), CircuitId::new(ProofKind::PoRep, size).partitions());

    let wrapper: Value = serde_json::from_slice(&file).unwrap();
    let raw = STANDARD.decode(wrapper["Phase1Out"].as_str().unwrap()).unwrap();
    let c1: SealCommitPhase1Output = serde_json::from_slice(&raw).unwrap();
    let params = public_params::<Tree>(&c1.registered_proof.as_v1_config()).unwrap();
    let domain = |bytes: [u8; 32]| filecoin_proofs::as_safe_commitment(&bytes, "commitment").unwrap();
    let inputs = stacked::PublicInputs {
        replica_id: c1.replica_id,
        seed: Some(c1.seed),
        tau: Some(stacked::Tau { comm_r: domain(c1.comm_r), comm_d: c1.comm_d.into() }),
        k: None,
    };
    let partitions: Vec<Vec<stacked::Proof<Tree, DefaultPieceHasher>>> = c1.vanilla_proofs.try_into().unwrap();
    assert_eq!(partitions.len(), statement.partitions());
    for (k, proofs) in partitions.iter().enumerate() {
        let challenges = inputs.challenges(&params.challenges, params.graph.size(), Some(k));
        assert_eq!(proofs.len(), challenges.len());
        for (proof, challenge) in proofs.iter().zip(challenges) {
            assert!(proof.verify(&params, &inputs, challenge, &params.graph));
            // `Proof::verify` leaves these two to the circuit.
            assert!(proof.comm_d_proofs.verify());
            assert!(proof.comm_r_last_proof.verify());
        }
    }
}

#[test]
fn c1_of_2_kib() {
    verify_seal::<SectorShapeBase>(SectorSize::KiB2);
    let statement = parse_c1(&c1(SectorSize::KiB2)).unwrap();
    statement.partition(0).unwrap().check_named().unwrap();
}

#[test]
fn c1_of_8_and_512_mib() {
    verify_seal::<SectorShapeBase>(SectorSize::MiB8);
    verify_seal::<SectorShapeBase>(SectorSize::MiB512);
}

#[test]
fn c1_of_32_gib() {
    verify_seal::<SectorShapeSub8>(SectorSize::GiB32);
}

#[test]
fn c1_of_64_gib() {
    verify_seal::<SectorShapeTop2>(SectorSize::GiB64);
}

fn verify_openings<Tree: Shape>(vanilla: &[Vec<u8>]) {
    for bytes in vanilla {
        let proof: FallbackPoStSectorProof<Tree> = bincode::deserialize(bytes).unwrap();
        let sector = &proof.vanilla_proof.sectors[0];
        assert!(sector.inclusion_proofs.iter().all(MerkleProofTrait::verify));
    }
}

#[test]
fn winning_posts_satisfy_the_circuit() {
    for size in [SectorSize::KiB2, SectorSize::GiB32, SectorSize::GiB64] {
        let vanilla = synthetic::winning_vanilla(size, 9, [3; 32], &mut rng()).unwrap();
        let statement = WinningStatement::new(size, prover_id_from_miner(MINER), [3; 32], &vanilla).unwrap();
        let partition = statement.partition(0).unwrap();
        partition.check_named().unwrap();
        assert_eq!(partition.witness().unwrap().inputs()[1..], partition.public_inputs().unwrap());
        match size {
            SectorSize::GiB32 => verify_openings::<SectorShapeSub8>(&vanilla),
            SectorSize::GiB64 => verify_openings::<SectorShapeTop2>(&vanilla),
            _ => verify_openings::<SectorShapeBase>(&vanilla),
        }
    }
}

#[test]
fn window_posts() {
    let prover = prover_id_from_miner(MINER);
    let version = WindowPostVersion::V1_2;
    let vanilla = synthetic::window_vanilla(SectorSize::MiB8, 10..13, [4; 32], &mut rng()).unwrap();
    let statement: Statement =
        WindowStatement::new(SectorSize::MiB8, version, prover, [4; 32], 7, &vanilla).unwrap().into();
    assert_eq!((statement.partitions(), statement.proof_bytes()), (2, 384));
    for k in 0..2 {
        let partition = statement.partition(k).unwrap();
        assert_eq!(partition.index(), 7 + k);
        partition.check_named().unwrap();
        assert_eq!(partition.witness().unwrap().inputs()[1..], partition.public_inputs().unwrap());
    }
    let vanilla = synthetic::window_vanilla(SectorSize::GiB32, [1, 2, 3], [4; 32], &mut rng()).unwrap();
    verify_openings::<SectorShapeSub8>(&vanilla);
    let statement = WindowStatement::new(SectorSize::GiB32, version, prover, [4; 32], 0, &vanilla).unwrap();
    let inputs = statement.partition(0).unwrap().public_inputs().unwrap();
    assert_eq!(inputs.len(), 25_839);
    // The last of three sectors fills the other 2346 places of the partition.
    assert!(inputs[22..].chunks(11).all(|slot| slot == &inputs[22..33]));
}

fn verify_update<Tree: Shape>(size: SectorSize) -> UpdateStatement {
    let start = Instant::now();
    let update = synthetic::update(size, &mut rng()).unwrap();
    println!("{size}: update in {:.2?}", start.elapsed());
    let statement =
        UpdateStatement::new(size, update.comm_r_old, update.comm_r_new, update.comm_d_new, &update.vanilla).unwrap();
    assert_eq!(statement.partitions(), CircuitId::new(ProofKind::Update, size).partitions());
    let params = PublicParams::from_sector_size(size.bytes());
    let domain = |bytes: [u8; 32]| filecoin_proofs::as_safe_commitment(&bytes, "commitment").unwrap();
    for (k, bytes) in update.vanilla.iter().enumerate() {
        let proof: PartitionProof<Tree> = bincode::deserialize(bytes).unwrap();
        let inputs = storage_proofs_update::PublicInputs {
            k,
            comm_r_old: domain(update.comm_r_old),
            comm_d_new: update.comm_d_new.into(),
            comm_r_new: domain(update.comm_r_new),
            h: h_default(params.sector_nodes),
        };
        assert!(EmptySectorUpdate::<Tree>::verify(&params, &inputs, &proof).unwrap(), "{size}, partition {k}");
    }
    statement
}

#[test]
fn updates() {
    let statement = verify_update::<SectorShapeBase>(SectorSize::KiB2);
    statement.partition(0).unwrap().check_named().unwrap();
    // Four partitions; the index of the last has every bit set.
    let statement = verify_update::<SectorShapeBase>(SectorSize::MiB8);
    let partition = statement.partition(3).unwrap();
    assert_eq!(partition.witness().unwrap().inputs()[1..], partition.public_inputs().unwrap());
    verify_update::<SectorShapeBase>(SectorSize::MiB512);
    verify_update::<SectorShapeSub8>(SectorSize::GiB32);
    verify_update::<SectorShapeTop2>(SectorSize::GiB64);
}

/// 130 million constraints, each of which must hold.
#[test]
#[ignore = "takes some minutes: `cargo xtask oracle` runs it"]
fn porep_of_32_gib_satisfies_the_circuit() {
    let statement = parse_c1(&c1(SectorSize::GiB32)).unwrap();
    let partition = statement.partition(9).unwrap();
    let witness = partition.witness().unwrap();
    assert_eq!((witness.n_inputs(), witness.n_aux()), (328, 130_169_893));
    assert_eq!(witness.inputs()[1..], partition.public_inputs().unwrap());
    partition.check_named().unwrap();
}
