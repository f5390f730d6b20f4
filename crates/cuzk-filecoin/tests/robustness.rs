//! Malformed input: named cases with their errors, and seeded mutations of every kind of file. An
//! error is fine, a panic or an allocation out of proportion is not.

mod common;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use common::{bytes32, json};
use cuzk_filecoin::{
    Fault, FilecoinError, Partition, SealStatement, SectorSize, Statement, WindowPostVersion, WindowStatement,
    WinningStatement, parse_c1, parse_vanilla_list,
};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde_json::{Value, json};

/// r of BLS12-381, little-endian: the smallest number that is not canonical.
const MODULUS: [u8; 32] = [
    0x01, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe, 0xff, 0x02, 0xa4, 0xbd, 0x53, 0x05, 0xd8, 0xa1,
    0x09, 0x08, 0xd8, 0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73,
];

/// The phase-1 output inside the fixture's wrapper.
fn raw_c1() -> Vec<u8> {
    let wrapper = json("2kib/porep/c1.json");
    STANDARD.decode(wrapper["Phase1Out"].as_str().unwrap()).unwrap()
}

fn wrapped(raw: &[u8]) -> Vec<u8> {
    let wrapper = json!({"SectorNum": 1, "Phase1Out": STANDARD.encode(raw), "SectorSize": 2048});
    serde_json::to_vec(&wrapper).unwrap()
}

/// Parses the C1 with one change to its phase-1 output.
fn changed(change: impl FnOnce(&mut Value)) -> FilecoinError {
    let mut raw: Value = serde_json::from_slice(&raw_c1()).unwrap();
    change(&mut raw);
    parse_c1(&wrapped(&serde_json::to_vec(&raw).unwrap())).unwrap_err()
}

/// The first challenge of the C1.
fn first(raw: &mut Value) -> &mut Value {
    &mut raw["vanilla_proofs"]["StackedDrg2KiBV1"][0][0]
}

/// Place and fault of an [`FilecoinError::Invalid`].
fn invalid(error: FilecoinError) -> (String, Fault) {
    match error {
        FilecoinError::Invalid { place, source } => (place, source),
        other => panic!("{other}"),
    }
}

#[test]
fn c1_parses_wrapped_and_raw() {
    let wrapped = parse_c1(&common::read("2kib/porep/c1.json")).unwrap();
    let raw = parse_c1(&raw_c1()).unwrap();
    assert_eq!((wrapped.sector_number(), raw.sector_number()), (Some(1), None));
    assert_eq!(wrapped.comm_r(), raw.comm_r());
}

#[test]
fn json_that_does_not_parse() {
    let file = common::read("2kib/porep/c1.json");
    let is_json = |bytes: &[u8]| matches!(parse_c1(bytes), Err(FilecoinError::Json { .. }));
    for bytes in [&b""[..], b"[]", b"null", b"{}", b"\xff", b"{\"Phase1Out\":1}"] {
        assert!(is_json(bytes), "{bytes:?}");
    }
    for cut in [1, 100, file.len() / 2, file.len() - 1] {
        assert!(is_json(&file[..cut]));
    }
    let mut trailing = file;
    trailing.extend(b" {}");
    assert!(is_json(&trailing));

    let raw = raw_c1();
    assert!(is_json(&wrapped(&raw[..raw.len() - 1])));
    for key in ["registered_proof", "vanilla_proofs", "comm_r", "replica_id", "seed", "ticket"] {
        let error = changed(|raw| {
            raw.as_object_mut().unwrap().remove(key);
        });
        assert!(error.to_string().contains(&format!("missing field `{key}`")), "{error}");
    }
    let text = String::from_utf8(raw).unwrap();
    let twice = text.replacen('{', "{\"registered_proof\":\"StackedDrg2KiBV1_1\",", 1);
    let error = parse_c1(&wrapped(twice.as_bytes())).unwrap_err();
    assert!(error.to_string().contains("duplicate field"), "{error}");
    let short = changed(|raw| {
        raw["comm_r"].as_array_mut().unwrap().pop();
    });
    assert!(short.to_string().contains("expected an array of length 32"), "{short}");
    let unknown = changed(|raw| raw["registered_proof"] = json!("StackedDrg2KiBV9"));
    assert!(matches!(unknown, FilecoinError::Json { .. }));
    // Deep nesting must not exhaust the stack.
    let deep = format!("{{\"vanilla_proofs\":{}", "[".repeat(1 << 20));
    assert!(is_json(deep.as_bytes()));
}

#[test]
fn wrapper_that_does_not_fit() {
    let mut wrapper = json("2kib/porep/c1.json");
    wrapper["SectorSize"] = json!(4096);
    let error = parse_c1(&serde_json::to_vec(&wrapper).unwrap()).unwrap_err();
    assert!(matches!(error, FilecoinError::UnknownSectorSize { bytes: 4096 }));
    wrapper["SectorSize"] = json!(8_388_608);
    let error = parse_c1(&serde_json::to_vec(&wrapper).unwrap()).unwrap_err();
    assert!(matches!(error, FilecoinError::SectorSizeMismatch { expected: 2048, found: 8_388_608, .. }));
    wrapper["Phase1Out"] = json!("@@@@");
    let error = parse_c1(&serde_json::to_vec(&wrapper).unwrap()).unwrap_err();
    assert!(matches!(error, FilecoinError::Base64 { .. }));
}

#[test]
fn registered_proof_and_vanilla_proofs_differ() {
    let error = changed(|raw| raw["registered_proof"] = json!("StackedDrg8MiBV1_1"));
    assert!(matches!(
        error,
        FilecoinError::SectorSizeMismatch { place: "C1 SectorSize", expected: 8_388_608, found: 2048, .. }
    ));
    let error = changed(|raw| {
        let proofs = raw["vanilla_proofs"]["StackedDrg2KiBV1"].take();
        raw["vanilla_proofs"] = json!({ "StackedDrg8MiBV1": proofs });
    });
    assert!(matches!(
        error,
        FilecoinError::SectorSizeMismatch { place: "C1 vanilla_proofs", expected: 2048, found: 8_388_608, .. }
    ));
    // The older version has other parents, the synthetic and non-interactive ones other challenges.
    for proof in
        ["StackedDrg2KiBV1", "StackedDrg2KiBV1_1_Feat_SyntheticPoRep", "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"]
    {
        invalid(changed(|raw| raw["registered_proof"] = json!(proof)));
    }
}

#[test]
fn counts_of_a_c1() {
    let proofs = |raw: &mut Value| raw["vanilla_proofs"]["StackedDrg2KiBV1"].take();
    for n in [0, 2] {
        let (_, fault) = invalid(changed(|raw| {
            let partition = proofs(raw)[0].take();
            raw["vanilla_proofs"] = json!({ "StackedDrg2KiBV1": vec![partition; n] });
        }));
        let expected = Fault::Count { what: "partitions", expected: 1, found: n };
        assert_eq!(fault, expected);
    }
    for n in [0, 1, 3] {
        let (place, fault) = invalid(changed(|raw| {
            let challenge = proofs(raw)[0][0].take();
            raw["vanilla_proofs"] = json!({ "StackedDrg2KiBV1": [vec![challenge; n]] });
        }));
        assert_eq!(place, "partition 0");
        let expected = Fault::Count { what: "challenges", expected: 2, found: n };
        assert_eq!(fault, expected);
    }
    type Change = fn(&mut Value) -> &mut Value;
    let lists: [(Change, &str, usize); 8] = [
        (|raw| &mut first(raw)["labeling_proofs"], "labels", 2),
        (|raw| &mut first(raw)["labeling_proofs"][0]["parents"], "parent labels", 37),
        (|raw| &mut first(raw)["encoding_proof"]["parents"], "parent labels", 37),
        (|raw| &mut first(raw)["replica_column_proofs"]["drg_parents"], "columns", 6),
        (|raw| &mut first(raw)["replica_column_proofs"]["exp_parents"], "columns", 8),
        (|raw| &mut first(raw)["replica_column_proofs"]["c_x"]["column"]["rows"], "layers", 2),
        (|raw| &mut first(raw)["comm_d_proofs"]["data"]["Single"]["path"]["path"], "base levels", 6),
        (|raw| &mut first(raw)["comm_r_last_proof"]["data"]["Single"]["path"]["path"][1]["hashes"], "siblings", 7),
    ];
    for (list, what, n) in lists {
        for found in [0, n - 1, n + 1] {
            let (_, fault) = invalid(changed(|raw| {
                let list = list(raw).as_array_mut().unwrap();
                let last = list[n - 1].clone();
                list.resize(found, last);
            }));
            assert_eq!(fault, Fault::Count { what, expected: n, found });
        }
    }
}

#[test]
fn places_of_a_c1() {
    let (place, fault) = invalid(changed(|raw| {
        first(raw)["replica_column_proofs"]["exp_parents"][3]["inclusion_proof"]["data"]["Single"]["path"]["path"][1]
            ["index"] = json!(8);
    }));
    assert_eq!(place, "partition 0, challenge 0, expander parent 3");
    assert_eq!(fault, Fault::Position { level: 1, arity: 8, found: 8 });

    let (_, fault) = invalid(changed(|raw| {
        let path = &mut first(raw)["comm_d_proofs"]["data"]["Single"]["path"]["path"];
        let index = path[0]["index"].as_u64().unwrap();
        path[0]["index"] = json!(1 - index);
    }));
    assert!(matches!(fault, Fault::Number { what: "path to leaf", .. }));

    let (_, fault) = invalid(changed(|raw| {
        let single = first(raw)["comm_r_last_proof"]["data"]["Single"].take();
        let mut sub = single.clone();
        sub["base_proof"] = single["path"].clone();
        sub["sub_proof"] = json!({ "path": [] });
        first(raw)["comm_r_last_proof"]["data"] = json!({ "Sub": sub });
    }));
    assert_eq!(fault, Fault::Form { expected: "single", found: "sub" });

    for key in ["comm_r", "comm_d", "seed", "replica_id"] {
        invalid(changed(|raw| {
            let low = raw[key][0].as_u64().unwrap();
            raw[key][0] = json!(low ^ 1);
        }));
    }
}

#[test]
fn field_elements_of_a_c1_must_be_canonical() {
    type Change = fn(&mut Value) -> &mut Value;
    let elements: [Change; 9] = [
        |raw| &mut raw["comm_r"],
        |raw| &mut raw["comm_d"],
        |raw| &mut raw["replica_id"],
        |raw| &mut first(raw)["comm_d_proofs"]["data"]["Single"]["leaf"],
        |raw| &mut first(raw)["comm_r_last_proof"]["data"]["Single"]["root"],
        |raw| &mut first(raw)["comm_r_last_proof"]["data"]["Single"]["path"]["path"][0]["hashes"][6],
        |raw| &mut first(raw)["replica_column_proofs"]["drg_parents"][5]["column"]["rows"][1],
        |raw| &mut first(raw)["labeling_proofs"][1]["parents"][36],
        |raw| &mut first(raw)["encoding_proof"]["parents"][0],
    ];
    for element in elements {
        let (place, fault) = invalid(changed(|raw| *element(raw) = json!(MODULUS)));
        assert!(matches!(fault, Fault::NotCanonical { bytes, .. } if bytes.0 == MODULUS), "{place}: {fault}");
    }
}

#[test]
fn vanilla_lists() {
    let list = br#"["AQI=", "", "AwQF"]"#;
    assert_eq!(parse_vanilla_list(list).unwrap(), [&[1, 2][..], &[], &[3, 4, 5]]);
    for json in [&b""[..], b"{}", b"[1]", b"[\"AA==\""] {
        assert!(matches!(parse_vanilla_list(json), Err(FilecoinError::Json { .. })));
    }
    let error = parse_vanilla_list(br#"["AQI=", "AQI"]"#).unwrap_err();
    assert!(matches!(error, FilecoinError::Base64 { place, .. } if place == "vanilla proof 1"));
}

#[test]
fn numbers_of_vanilla_proofs() {
    let winning = common::vanilla("2kib/winning/vanilla.json");
    let window = common::window_vanilla("2kib/window");
    let update = common::vanilla("2kib/update/vanilla.json");
    for n in [0, 2] {
        let (_, fault) = invalid(common::winning("2kib/winning", &vec![winning[0].clone(); n]).unwrap_err());
        let expected = Fault::Count { what: "vanilla proofs", expected: 1, found: n };
        assert_eq!(fault, expected);
        let (_, fault) = invalid(common::update("2kib/update", &vec![update[0].clone(); n]).unwrap_err());
        assert_eq!(fault, expected);
    }
    invalid(common::window("2kib/window", WindowPostVersion::V1_2, 0, &[]).unwrap_err());
    // Three sectors, two to a partition.
    let statement = common::window("2kib/window", WindowPostVersion::V1_2, u32::MAX, &window).unwrap();
    assert_eq!(statement.partitions(), 2);
    assert_eq!(statement.partition(1).unwrap().index(), u32::MAX as usize + 1);
    assert!(matches!(statement.partition(2), Err(FilecoinError::PartitionOutOfRange { index: 2, partitions: 2 })));
}

#[test]
fn a_window_post_has_each_sector_once() {
    let vanilla = common::window_vanilla("2kib/window");
    let first = json("2kib/window/meta.json")["sectors"][0]["number"].as_u64().unwrap();
    // Under V1_2 challenges do not depend on the place, so that the openings are right in both.
    let twice = [&vanilla[..], &vanilla[..1]].concat();
    let (place, fault) = invalid(common::window("2kib/window", WindowPostVersion::V1_2, 0, &twice).unwrap_err());
    assert_eq!((place.as_str(), fault), ("vanilla proof 3", Fault::Repeated { sector: first, first: 0 }));
}

/// Filecoin's verifier takes the sectors from a map: it accepts no proof of another order.
#[test]
fn a_window_post_has_its_sectors_in_ascending_order() {
    let mut vanilla = common::window_vanilla("2kib/window");
    vanilla.swap(1, 2);
    let (place, fault) = invalid(common::window("2kib/window", WindowPostVersion::V1_2, 0, &vanilla).unwrap_err());
    assert_eq!((place.as_str(), fault), ("vanilla proof 2", Fault::Order { previous: 3, found: 2 }));
}

#[test]
fn vanilla_proofs_of_another_kind_or_size() {
    let bincode = |error| matches!(error, FilecoinError::Bincode { .. });
    let winning = common::vanilla("2kib/winning/vanilla.json");
    let window = common::vanilla("2kib/window/vanilla-p1.json");
    let update = common::vanilla("2kib/update/vanilla.json");
    let of_8_mib = common::vanilla("8mib/winning/vanilla.json");

    assert!(bincode(common::winning("2kib/winning", &update).unwrap_err()));
    assert!(bincode(common::update("2kib/update", &winning).unwrap_err()));
    let (_, fault) = invalid(common::winning("2kib/winning", &window).unwrap_err());
    assert_eq!(fault, Fault::Count { what: "challenges", expected: 66, found: 10 });
    let (_, fault) = invalid(common::winning("2kib/winning", &of_8_mib).unwrap_err());
    assert_eq!(fault, Fault::Count { what: "base levels", expected: 2, found: 6 });

    // At position 0 both versions challenge the same nodes, later they do not.
    common::window("2kib/window", WindowPostVersion::V1, 0, &window).unwrap();
    let (place, fault) = invalid(common::window("2kib/window", WindowPostVersion::V1, 1, &window).unwrap_err());
    assert_eq!(place, "vanilla proof 0 (sector 3), challenge 0");
    assert!(matches!(fault, Fault::Number { .. }));
}

#[test]
fn public_data_of_a_proof_of_spacetime() {
    let vanilla = common::vanilla("2kib/winning/vanilla.json");
    let meta = json("2kib/winning/meta.json");
    let prover = bytes32(&meta, "prover_id");
    let randomness = bytes32(&meta, "randomness");
    let size = SectorSize::KiB2;
    WinningStatement::new(size, prover, randomness, &vanilla).unwrap();
    for (prover, randomness, what) in [(MODULUS, randomness, "prover_id"), (prover, MODULUS, "randomness")] {
        let error = WinningStatement::new(size, prover, randomness, &vanilla).unwrap_err();
        assert!(matches!(invalid(error).1, Fault::NotCanonical { what: w, .. } if w == what));
    }
    let mut other = randomness;
    other[0] ^= 1;
    let error = WinningStatement::new(size, prover, other, &vanilla).unwrap_err();
    assert!(matches!(invalid(error).1, Fault::Number { what: "path to leaf", .. }));
}

#[test]
fn public_data_of_an_update() {
    use cuzk_filecoin::UpdateStatement;
    let vanilla = common::vanilla("2kib/update/vanilla.json");
    let meta = json("2kib/update/meta.json");
    let comms = ["comm_r_old", "comm_r_new", "comm_d_new"].map(|key| bytes32(&meta, key));
    for i in 0..3 {
        for value in [MODULUS, [0; 32]] {
            let mut comms = comms;
            comms[i] = value;
            let [old, new, data] = comms;
            let error = UpdateStatement::new(SectorSize::KiB2, old, new, data, &vanilla).unwrap_err();
            invalid(error);
        }
    }
}

/// A count in bincode can claim anything; only as much as the bytes can hold may be believed.
#[test]
fn lying_lengths() {
    let original = common::vanilla("2kib/winning/vanilla.json").remove(0);
    // Sector number and comm_r come first, then the count of sectors and that of openings.
    for at in [40, 48] {
        for lie in [1 << 16, 1 << 32, 1 << 40, 1 << 62, u64::MAX] {
            let mut bytes = original.clone();
            bytes[at..at + 8].copy_from_slice(&lie.to_le_bytes());
            let error = common::winning("2kib/winning", &[bytes]).unwrap_err();
            assert!(matches!(error, FilecoinError::Bincode { .. }), "{error}");
        }
    }
    let cut = original[..original.len() - 1].to_vec();
    let mut long = original;
    long.push(0);
    for bytes in [cut, long, Vec::new()] {
        let length = bytes.len();
        let error = common::winning("2kib/winning", &[bytes]).unwrap_err();
        assert!(matches!(error, FilecoinError::Bincode { bytes, .. } if bytes == length));
    }
}

/// A wrong sibling passes the parser, which does not hash, and is found by the circuit.
#[test]
fn an_unsatisfied_constraint_is_named() {
    let mut vanilla = common::vanilla("2kib/winning/vanilla.json");
    // The last opening ends with its topmost level: the siblings, then the position.
    let length = vanilla[0].len();
    let sibling = length - 64 - 8 - 32;
    vanilla[0][sibling] ^= 1;
    let statement = common::winning("2kib/winning", &vanilla).unwrap();
    let partition = statement.partition(0).unwrap();
    let error = partition.check_named().unwrap_err();
    assert!(matches!(error, FilecoinError::Unsatisfied { partition: 0, .. }));
    let text = error.to_string();
    assert!(text.contains("sector_65/challenge_inclusion_0"), "{text}");
    assert!(text.contains("enforce root is correct"), "{text}");
    partition.witness().unwrap();
}

/// Where and which hash is wrong.
fn wrong_hash(statement: &Statement) -> (String, &'static str) {
    match invalid(statement.check_hashes().unwrap_err()) {
        (place, Fault::Mismatch { what, .. }) => (place, what),
        (place, fault) => panic!("{place}: {fault}"),
    }
}

/// What the published crates made hashes as it should, for each kind.
#[test]
fn recorded_vanilla_proofs_hash() {
    for folder in ["porep", "winning", "update"].map(|kind| format!("2kib/{kind}")) {
        common::statement(&folder).check_hashes().unwrap();
    }
    for folder in ["2kib/window", "8mib/window"] {
        let vanilla = common::window_vanilla(folder);
        let statement = common::window(folder, WindowPostVersion::V1_2, 0, &vanilla).unwrap();
        Statement::from(statement).check_hashes().unwrap();
    }
}

#[test]
fn a_wrong_hash_is_named_with_its_sector() {
    let mut vanilla = common::window_vanilla("2kib/window");
    // The last opening of sector 2 ends with its topmost level: the siblings, then the position.
    let sibling = vanilla[1].len() - 64 - 8 - 32;
    vanilla[1][sibling] ^= 1;
    let statement = common::window("2kib/window", WindowPostVersion::V1_2, 0, &vanilla).unwrap();
    assert_eq!(wrong_hash(&statement.into()), ("vanilla proof 1 (sector 2), challenge 9".to_owned(), "root"));

    let seal = |change: fn(&mut Value)| {
        let mut raw: Value = serde_json::from_slice(&raw_c1()).unwrap();
        change(first(&mut raw));
        wrong_hash(&parse_c1(&serde_json::to_vec(&raw).unwrap()).unwrap().into())
    };
    fn flip(node: &mut Value) {
        node[0] = json!(node[0].as_u64().unwrap() ^ 1);
    }
    let of_challenge = |part: &str| format!("partition 0, challenge 0, {part}");
    let label = seal(|challenge| flip(&mut challenge["labeling_proofs"][1]["parents"][3]));
    assert_eq!(label, (of_challenge("layer 2"), "label"));
    let encoding = seal(|challenge| flip(&mut challenge["encoding_proof"]["parents"][3]));
    assert_eq!(encoding, (of_challenge("encoding"), "replica node"));
    let column = seal(|challenge| {
        flip(&mut challenge["replica_column_proofs"]["exp_parents"][2]["column"]["rows"][0]);
    });
    assert_eq!(column, (of_challenge("expander parent 2"), "column"));
    let tree = seal(|challenge| {
        flip(&mut challenge["comm_d_proofs"]["data"]["Single"]["path"]["path"][0]["hashes"][0]);
    });
    assert_eq!(tree, (of_challenge("tree D"), "root"));
}

/// One seeded mutation: flipped, overwritten, removed, repeated, moved or cut bytes; in text also
/// digits, which keep it valid more often.
fn mutate(rng: &mut ChaCha20Rng, bytes: &mut Vec<u8>, text: bool) {
    let at = rng.gen_range(0..bytes.len());
    let length = rng.gen_range(1..=64).min(bytes.len() - at);
    match rng.gen_range(0..if text { 14 } else { 10 }) {
        0 => bytes[at] ^= 1 << rng.gen_range(0..8),
        1 => bytes[at] = rng.r#gen(),
        2 => drop(bytes.drain(at..at + length)),
        3 => bytes.truncate(at),
        4 => {
            let piece = bytes[at..at + length].to_vec();
            let to = rng.gen_range(0..bytes.len());
            drop(bytes.splice(to..to, piece));
        }
        5 => {
            let piece = bytes[at..at + length].to_vec();
            let to = rng.gen_range(0..=bytes.len() - length);
            bytes[to..to + length].copy_from_slice(&piece);
        }
        6..=9 => {
            // A number where a count or an index may be: huge, small, off by one.
            let at = at.min(bytes.len().saturating_sub(8));
            let number = match rng.gen_range(0..5) {
                0 => u64::MAX,
                1 => 1 << rng.gen_range(0..64),
                2 => rng.gen_range(0..70),
                _ => rng.next_u64(),
            };
            let number = number.to_le_bytes();
            let end = bytes.len().min(at + 8);
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        _ => {
            let digit = bytes[at..].iter().position(u8::is_ascii_digit);
            if let Some(offset) = digit {
                bytes[at + offset] = rng.gen_range(b'0'..=b'9');
            }
        }
    }
}

const MUTATIONS: u64 = 10_000;

/// Runs the mutations of one input; returns how many the parser accepted. Of those, up to
/// `circuits` go through the circuit as well.
fn survive<T: Send>(
    input: &[u8],
    text: bool,
    circuits: usize,
    parse: impl Fn(Vec<u8>) -> Result<T, FilecoinError> + Sync,
    partition: impl Fn(&T) -> Partition,
) -> usize {
    let mut accepted: Vec<(u64, T)> = (0..MUTATIONS)
        .into_par_iter()
        .filter_map(|seed| {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let mut bytes = input.to_vec();
            for _ in 0..rng.gen_range(1..=3) {
                if !bytes.is_empty() {
                    mutate(&mut rng, &mut bytes, text);
                }
            }
            match parse(bytes) {
                Ok(statement) => Some((seed, statement)),
                Err(FilecoinError::Panicked { call, message }) => {
                    panic!("seed {seed}: {call}: {message}")
                }
                Err(_) => None,
            }
        })
        .collect();
    let count = accepted.len();
    accepted.truncate(circuits);
    for (seed, statement) in accepted {
        let witness = partition(&statement).witness();
        assert!(witness.is_ok(), "seed {seed}: {}", witness.unwrap_err());
    }
    count
}

fn seal_partition(statement: &SealStatement) -> Partition {
    statement.partition(0).unwrap()
}

#[test]
fn mutated_c1_wrapper() {
    let file = common::read("2kib/porep/c1.json");
    survive(&file, true, 2, |bytes| parse_c1(&bytes), seal_partition);
}

#[test]
fn mutated_c1_inside_its_wrapper() {
    let parse = |bytes: Vec<u8>| parse_c1(&wrapped(&bytes));
    let accepted = survive(&raw_c1(), true, 3, parse, seal_partition);
    // Enough of them get past the parser for the circuit to be tried.
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn mutated_winning_post() {
    let original = common::vanilla("2kib/winning/vanilla.json").remove(0);
    let meta = json("2kib/winning/meta.json");
    let (prover, randomness) = (bytes32(&meta, "prover_id"), bytes32(&meta, "randomness"));
    let parse = |bytes| WinningStatement::new(SectorSize::KiB2, prover, randomness, &[bytes]);
    let accepted = survive(&original, false, 20, parse, |s| s.partition(0).unwrap());
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn mutated_window_post() {
    let original = common::vanilla("2kib/window/vanilla-p1.json").remove(0);
    let meta = json("2kib/window/meta.json");
    let (prover, randomness) = (bytes32(&meta, "prover_id"), bytes32(&meta, "randomness"));
    let parse = |bytes| {
        let version = WindowPostVersion::V1_2;
        WindowStatement::new(SectorSize::KiB2, version, prover, randomness, 0, &[bytes])
    };
    let accepted = survive(&original, false, 20, parse, |s| s.partition(0).unwrap());
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn mutated_update() {
    let original = common::vanilla("2kib/update/vanilla.json").remove(0);
    let meta = json("2kib/update/meta.json");
    let [old, new, data] = ["comm_r_old", "comm_r_new", "comm_d_new"].map(|key| bytes32(&meta, key));
    let parse = |bytes: Vec<u8>| -> Result<Statement, FilecoinError> {
        use cuzk_filecoin::UpdateStatement;
        let size = SectorSize::KiB2;
        Ok(UpdateStatement::new(size, old, new, data, &[bytes])?.into())
    };
    let accepted = survive(&original, false, 5, parse, |s| s.partition(0).unwrap());
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn mutated_vanilla_list() {
    let file = common::read("2kib/window/vanilla-p0.json");
    let meta = json("2kib/window/meta.json");
    let (prover, randomness) = (bytes32(&meta, "prover_id"), bytes32(&meta, "randomness"));
    let parse = |bytes: Vec<u8>| {
        let list = parse_vanilla_list(&bytes)?;
        let version = WindowPostVersion::V1_2;
        WindowStatement::new(SectorSize::KiB2, version, prover, randomness, 0, &list)
    };
    survive(&file, true, 5, parse, |s| s.partition(0).unwrap());
}
