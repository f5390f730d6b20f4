//! Names: circuits, their key files, and the numbers of the chain.

mod common;

use cuzk_filecoin::{
    CircuitId, FilecoinError, ProofKind, SectorSize, Statement, WindowPostVersion, circuits, prover_id_from_miner,
};
use storage_proofs_core::parameter_cache::get_parameter_data_from_id;

#[test]
fn circuit_ids_print_and_parse() {
    assert_eq!(CircuitId::all().count(), 20);
    for id in CircuitId::all() {
        assert_eq!(id.to_string().parse::<CircuitId>().unwrap(), id);
    }
    let expected = [
        ("porep-32g", ProofKind::PoRep, SectorSize::GiB32),
        ("snap-32g", ProofKind::Update, SectorSize::GiB32),
        ("wpost-32g", ProofKind::WindowPoSt, SectorSize::GiB32),
        ("winning-32g", ProofKind::WinningPoSt, SectorSize::GiB32),
        ("porep-2k", ProofKind::PoRep, SectorSize::KiB2),
        ("porep-8m", ProofKind::PoRep, SectorSize::MiB8),
        ("porep-512m", ProofKind::PoRep, SectorSize::MiB512),
        ("porep-64g", ProofKind::PoRep, SectorSize::GiB64),
    ];
    for (name, kind, size) in expected {
        assert_eq!(name.parse::<CircuitId>().unwrap(), CircuitId::new(kind, size));
    }
    for name in ["", "porep", "porep-", "porep-16g", "seal-32g", "porep-32G", "porep-2k-"] {
        assert!(matches!(
            name.parse::<CircuitId>(),
            Err(FilecoinError::UnknownCircuitId { text }) if text == name
        ));
    }
    assert!(matches!(SectorSize::try_from(4096), Err(FilecoinError::UnknownSectorSize { bytes: 4096 })));
}

/// The names of the fixtures' keys, as the published crates wrote them.
#[test]
fn key_files_are_named_as_published() {
    let listed = String::from_utf8(common::read("params.sha256")).unwrap();
    let mut names: Vec<&str> = listed.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    for id in ["porep-2k", "winning-2k", "wpost-2k", "snap-2k", "winning-8m", "wpost-8m"] {
        let id: CircuitId = id.parse().unwrap();
        let ours = [id.params_file_name().unwrap(), id.vk_file_name().unwrap()];
        let before = names.len();
        names.retain(|name| !ours.iter().any(|ours| ours == name));
        assert_eq!(names.len(), before - 2, "{id}: {ours:?}");
    }
    assert_eq!(names, [""; 0]);
}

/// Every circuit of every size has published parameters under the name that we give it.
#[test]
fn all_circuits_have_published_parameters() {
    for id in CircuitId::all() {
        for name in [id.params_file_name().unwrap(), id.vk_file_name().unwrap()] {
            let data = get_parameter_data_from_id(&name).unwrap_or_else(|| panic!("{id}: {name}"));
            assert_eq!(data.sector_size, id.sector_size.bytes(), "{id}");
        }
    }
    let porep: CircuitId = "porep-32g".parse().unwrap();
    assert_eq!(
        porep.params_file_name().unwrap(),
        "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-\
         82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820.params"
    );
}

/// By the published configurations.
#[test]
fn partitions_and_proof_sizes() {
    use filecoin_proofs_api::{RegisteredSealProof as Seal, RegisteredUpdateProof as Update};
    let seals = [
        Seal::StackedDrg2KiBV1_1,
        Seal::StackedDrg8MiBV1_1,
        Seal::StackedDrg512MiBV1_1,
        Seal::StackedDrg32GiBV1_1,
        Seal::StackedDrg64GiBV1_1,
    ];
    let updates = [
        Update::StackedDrg2KiBV1,
        Update::StackedDrg8MiBV1,
        Update::StackedDrg512MiBV1,
        Update::StackedDrg32GiBV1,
        Update::StackedDrg64GiBV1,
    ];
    for (size, (seal, update)) in SectorSize::ALL.into_iter().zip(seals.into_iter().zip(updates)) {
        assert_eq!(size.bytes(), u64::from(seal.sector_size()));
        let porep = CircuitId::new(ProofKind::PoRep, size);
        assert_eq!(porep.partitions(), usize::from(seal.partitions()));
        assert_eq!(porep.proof_bytes(), 192 * porep.partitions());
        let layers = filecoin_proofs::LAYERS.read().unwrap()[&size.bytes()];
        assert_eq!(size.layers(), layers);
        let sectors = filecoin_proofs::WINDOW_POST_SECTOR_COUNT.read().unwrap()[&size.bytes()];
        assert_eq!(size.window_sectors(), sectors);

        // `RegisteredUpdateProof::partitions` answers with the PoRep's.
        let config = filecoin_proofs::SectorUpdateConfig::from_porep_config(&update.as_v1_config());
        let snap = CircuitId::new(ProofKind::Update, size);
        assert_eq!(snap.partitions(), usize::from(config.update_partitions));
    }
}

#[test]
fn window_proofs_by_number_of_the_chain() {
    use WindowPostVersion::{V1, V1_2};
    let of = |number| WindowPostVersion::from_registered_proof(number).ok();
    assert_eq!(of(5), Some((SectorSize::KiB2, V1)));
    assert_eq!(of(8), Some((SectorSize::GiB32, V1)));
    assert_eq!(of(9), Some((SectorSize::GiB64, V1)));
    assert_eq!(of(10), Some((SectorSize::KiB2, V1_2)));
    assert_eq!(of(13), Some((SectorSize::GiB32, V1_2)));
    for number in [0, 4, 15, u64::MAX] {
        assert_eq!(of(number), None);
    }
    assert_eq!(WindowPostVersion::default(), V1_2);
}

#[test]
fn prover_ids_are_leb128() {
    let id = |miner, bytes: &[u8]| {
        let id = prover_id_from_miner(miner);
        assert_eq!(&id[..bytes.len()], bytes);
        assert!(id[bytes.len()..].iter().all(|byte| *byte == 0));
    };
    id(0, &[0]);
    id(127, &[0x7f]);
    id(128, &[0x80, 1]);
    id(624_485, &[0xe5, 0x8e, 0x26]);
    id(u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    let meta = common::json("2kib/porep/meta.json");
    assert_eq!(prover_id_from_miner(1000), common::bytes32(&meta, "prover_id"));
}

#[test]
fn c1_belongs_to_its_prover_and_sector() {
    let Statement::Seal(c1) = common::statement("2kib/porep") else {
        panic!("no seal");
    };
    let meta = common::json("2kib/porep/meta.json");
    let prover = common::bytes32(&meta, "prover_id");
    assert_eq!(c1.sector_number(), Some(1));
    assert_eq!(c1.comm_r(), common::bytes32(&meta, "comm_r"));
    assert_eq!(c1.comm_d(), common::bytes32(&meta, "comm_d"));
    assert_eq!(c1.ticket(), common::bytes32(&meta, "ticket"));
    assert_eq!(c1.seed(), common::bytes32(&meta, "seed"));
    c1.check_replica_id(&prover, 1).unwrap();
    assert!(c1.check_replica_id(&prover, 2).is_err());
    assert!(c1.check_replica_id(&prover_id_from_miner(1001), 1).is_err());
}

/// Blank circuits of the production sizes are made, not run: their matrices are for larger machines.
#[test]
fn blank_circuits_of_every_shape() {
    use filecoin_proofs::{SectorShapeBase, SectorShapeSub8, SectorShapeTop2};
    assert!(circuits::blank_update::<SectorShapeBase>(SectorSize::MiB512).is_ok());
    assert!(circuits::blank_update::<SectorShapeSub8>(SectorSize::GiB32).is_ok());
    assert!(circuits::blank_update::<SectorShapeTop2>(SectorSize::GiB64).is_ok());
    let winning = CircuitId::new(ProofKind::WinningPoSt, SectorSize::GiB32);
    assert!(circuits::blank_post::<SectorShapeSub8>(winning).is_ok());
    assert!(circuits::blank_post::<SectorShapeBase>(winning).is_err());
    assert!(circuits::blank_porep::<SectorShapeTop2>(SectorSize::GiB64).is_ok());
    assert!(circuits::blank_porep::<SectorShapeTop2>(SectorSize::GiB32).is_err());
}

/// WinningPoSt is small enough to be recorded at its production size.
#[test]
fn winning_post_of_32_gib_is_recorded() {
    let r1cs = cuzk_filecoin::record("winning-32g".parse().unwrap()).unwrap();
    let variables = r1cs.n_inputs()..r1cs.n_variables();
    let densities = r1cs.densities();
    assert_eq!(r1cs.n_constraints(), 370_723);
    assert_eq!((r1cs.n_inputs(), r1cs.n_aux()), (133, 375_210));
    assert_eq!(densities.a.count_in(variables.clone()), 284_196);
    assert_eq!(densities.b.count_in(variables), 272_184);
    assert_eq!(r1cs.log_domain(), 19);
}
