//! A sector sealed here, and Filecoin's own verifiers on stored proofs.

mod common;

use std::{env, fs, process::Command};

use cuzk_filecoin::{
    CircuitId, FilecoinError, SectorSize, Statement, WindowPostVersion,
    seal::{SectorInput, fr_safe, seal_sector, unpadded_bytes},
    verify,
};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

#[test]
fn a_sealed_sector_satisfies_all_four_circuits() {
    let mut rng = ChaCha20Rng::seed_from_u64(7);
    let mut random = || {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        bytes
    };
    let [ticket, seed, randomness] = [random(), random(), fr_safe(random())];
    let length = unpadded_bytes(SectorSize::KiB2) as usize;
    assert_eq!(length, 2032);
    let mut data = vec![0; length];
    rng.fill_bytes(&mut data);
    let mut update = vec![0; length];
    rng.fill_bytes(&mut update);
    let input = SectorInput {
        size: SectorSize::KiB2,
        miner: 123_456,
        number: 42,
        data: &data,
        update: &update,
        ticket,
        seed,
        randomness,
    };
    let dir = tempfile::tempdir().unwrap();

    let short = SectorInput { update: &update[1..], ..input };
    assert!(matches!(
        seal_sector(dir.path(), &short),
        Err(FilecoinError::DataLength { what: "update", expected: 2032, found: 2031 })
    ));

    let sector = seal_sector(dir.path(), &input).unwrap();
    let c1 = sector.seal_statement().unwrap();
    assert_eq!((c1.comm_r(), c1.comm_d()), (sector.comm_r, sector.comm_d));
    c1.check_replica_id(&sector.prover_id, 42).unwrap();
    let statements: [Statement; 4] = [
        c1.into(),
        sector.winning_statement().unwrap().into(),
        sector.window_statement().unwrap().into(),
        sector.update_statement().unwrap().into(),
    ];
    for statement in statements {
        for k in 0..statement.partitions() {
            let partition = statement.partition(k).unwrap();
            partition.check_named().unwrap();
            let inputs = partition.witness().unwrap().inputs();
            assert_eq!(inputs[1..], partition.public_inputs().unwrap());
        }
    }
    // A second sector does not overwrite the first.
    let again = seal_sector(dir.path(), &input);
    assert!(matches!(again, Err(FilecoinError::Io { .. })), "{again:?}");
}

/// The published crates read the parameter cache's place from the environment, once a process:
/// the checks below run in a child that has it set.
#[test]
fn published_verifiers_judge_stored_proofs() {
    let cache = tempfile::tempdir().unwrap();
    for (folder, circuit) in [
        ("2kib/porep", "porep-2k"),
        ("2kib/winning", "winning-2k"),
        ("2kib/window", "wpost-2k"),
        ("2kib/update", "snap-2k"),
    ] {
        let name = circuit.parse::<CircuitId>().unwrap().vk_file_name().unwrap();
        fs::copy(common::path(folder).join("vk.bin"), cache.path().join(name)).unwrap();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "in_child_process", "--ignored", "--nocapture"])
        .env("FIL_PROOFS_PARAMETER_CACHE", cache.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "started by published_verifiers_judge_stored_proofs with a parameter cache"]
fn in_child_process() {
    let verify = |statement: &Statement, proof: &[u8]| match statement {
        Statement::Seal(s) => verify::verify_seal(s, cuzk_filecoin::prover_id_from_miner(1000), 1, proof),
        Statement::Winning(s) => verify::verify_winning_post(s, proof),
        Statement::Window(s) => verify::verify_window_post(s, proof),
        Statement::Update(s) => verify::verify_empty_sector_update(s, proof),
    };
    let folders = ["2kib/porep", "2kib/winning", "2kib/window", "2kib/update"];
    for folder in folders {
        let statement = common::statement(folder);
        let proof = common::read(&format!("{folder}/proof.bin"));
        assert!(verify(&statement, &proof).unwrap(), "{folder}");

        // The fixed-randomness proofs are other proofs of the same statement.
        let fixed: Vec<u8> = (0..statement.partitions())
            .flat_map(|k| common::read(&format!("{folder}/proof-fixed-rs-p{k}.bin")))
            .collect();
        assert_ne!(fixed, proof);
        assert!(verify(&statement, &fixed).unwrap(), "{folder}");

        // A and C exchanged: valid points, wrong proof.
        let mut wrong = proof.clone();
        wrong[..48].copy_from_slice(&proof[144..192]);
        wrong[144..192].copy_from_slice(&proof[..48]);
        assert!(!verify(&statement, &wrong).unwrap(), "{folder}");

        let no_point = vec![0x55; proof.len()];
        let refused = verify(&statement, &no_point);
        assert!(matches!(refused, Err(FilecoinError::Published { .. })), "{refused:?}");
        let short = verify(&statement, &proof[1..]);
        assert!(matches!(short, Err(FilecoinError::ProofLength { found, .. }) if found == proof.len() - 1));
    }
    // The seal proof belongs to this prover and sector.
    let Statement::Seal(seal) = common::statement("2kib/porep") else {
        panic!("no seal");
    };
    let proof = common::read("2kib/porep/proof.bin");
    let other = cuzk_filecoin::prover_id_from_miner(1001);
    assert!(!verify::verify_seal(&seal, other, 1, &proof).unwrap());

    // One partition alone, and one without its key.
    let p1 = common::vanilla("2kib/window/vanilla-p1.json");
    let proof = common::read("2kib/window/proof-p1.bin");
    let alone = common::window("2kib/window", WindowPostVersion::V1_2, 1, &p1).unwrap();
    assert!(verify::verify_window_post(&alone, &proof).unwrap());
    let missing = verify(&common::statement("8mib/winning"), &[0; 192]);
    assert!(matches!(missing, Err(FilecoinError::VerifyingKeyMissing { .. })));
}
