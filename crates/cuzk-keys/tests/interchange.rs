//! The formats against bellperson, against each other, and against the description of the native one.

mod common;

use std::sync::Arc;

use bellperson::groth16::{Parameters, VerifyingKey as BellpersonVk};
use common::{TINY, export, fixture_vks, load, native_bytes, params_bytes, tiny};
use cuzk_curve::{Bls12, Bn256, Curve, repr};
use cuzk_keys::{
    Counts, Digest, Digests, Format, KeySource, NativeKeyFile, ParamsFile, Progress, Provenance, ProvingKey, Section,
    Stage, VerifyingKey, check_points, convert, ignore_progress, inspect, write_native,
};
use group::prime::PrimeCurveAffine;

fn to_bellperson<C: Curve>(key: &ProvingKey<C>) -> Parameters<C> {
    Parameters {
        vk: BellpersonVk {
            alpha_g1: key.vk.alpha_g1,
            beta_g1: key.vk.beta_g1,
            beta_g2: key.vk.beta_g2,
            gamma_g2: key.vk.gamma_g2,
            delta_g1: key.vk.delta_g1,
            delta_g2: key.vk.delta_g2,
            ic: key.vk.ic.clone(),
        },
        h: Arc::new(key.h.clone()),
        l: Arc::new(key.l.clone()),
        a: Arc::new(key.a.clone()),
        b_g1: Arc::new(key.b_g1.clone()),
        b_g2: Arc::new(key.b_g2.clone()),
    }
}

fn bellperson_reads_and_writes_the_same<C: Curve>() {
    let key = tiny::<C>();
    let theirs = to_bellperson(&key);
    let mut written = Vec::new();
    theirs.write(&mut written).unwrap();
    assert_eq!(params_bytes(&key), written, "our bytes are bellperson's");
    assert!(Parameters::<C>::read(&written[..], true).unwrap() == theirs, "bellperson reads them, checked");

    let directory = common::directory();
    let path = directory.path().join("theirs.params");
    std::fs::write(&path, &written).unwrap();
    let file = ParamsFile::<C>::open(&path).unwrap();
    assert_eq!(file.counts(), TINY);
    check_points(&file, &mut ignore_progress).unwrap();
    let read = load(&file).unwrap();
    assert_eq!(read, ProvingKey { provenance: Provenance::Imported { source: None }, ..key.clone() });

    let mut vk = Vec::new();
    theirs.vk.write(&mut vk).unwrap();
    assert_eq!(key.vk.to_bytes().unwrap(), vk);
    assert_eq!(VerifyingKey::<C>::from_bytes(&vk).unwrap(), key.vk);
}

#[test]
fn bellperson_reads_and_writes_the_same_bytes_on_bls12_381() {
    bellperson_reads_and_writes_the_same::<Bls12>();
}

#[test]
fn bellperson_reads_and_writes_the_same_bytes_on_bn254() {
    bellperson_reads_and_writes_the_same::<Bn256>();
}

#[test]
fn verifying_keys_of_filecoin_round_trip() {
    let fixtures = fixture_vks();
    assert!(fixtures.len() >= 6, "the fixtures are part of the repository: {fixtures:?}");
    let directory = common::directory();
    for path in fixtures {
        let bytes = std::fs::read(&path).unwrap();
        let vk = VerifyingKey::<Bls12>::read_file(&path).unwrap();
        assert_eq!(vk.to_bytes().unwrap(), bytes, "{}", path.display());
        let copy = directory.path().join("copy.vk");
        vk.write_file(&copy).unwrap();
        assert_eq!(std::fs::read(copy).unwrap(), bytes);
        let info = inspect(&path, Digests::Recorded, &mut ignore_progress).unwrap();
        assert_eq!((info.format, info.curve.as_str(), info.inputs), (Format::Vk, "bls12-381", vk.ic.len()));
    }
}

/// params → native → memory → params, with one content digest all the way.
fn every_way_leads_back<C: Curve>() {
    let directory = common::directory();
    let path = |name: &str| directory.path().join(name);
    let key = tiny::<C>();
    export(&key, &path("a.params")).unwrap();
    let params = ParamsFile::<C>::open(&path("a.params")).unwrap();
    convert(&params, &path("b.cuzkkey"), &mut ignore_progress).unwrap();
    let native = NativeKeyFile::<C>::open(&path("b.cuzkkey")).unwrap();
    native.verify_digests(&mut ignore_progress).unwrap();
    check_points(&native, &mut ignore_progress).unwrap();

    let content = std::fs::read(path("a.params")).unwrap();
    let source = Some(Digest::of(&content));
    assert_eq!(*native.provenance(), Provenance::Imported { source });
    let digests = [&key as &dyn KeySource<C>, &params, &native].map(|source| source.digest().unwrap());
    assert_eq!(digests, [digests[0]; 3]);
    let other = ProvingKey { h: [&key.h[1..], &key.h[..1]].concat(), ..key.clone() };
    assert_ne!(other.digest().unwrap(), digests[0], "the order of points matters");

    let loaded = load(&native).unwrap();
    assert_eq!(loaded, ProvingKey { provenance: Provenance::Imported { source }, ..key.clone() });
    export(&loaded, &path("c.params")).unwrap();
    assert_eq!(std::fs::read(path("c.params")).unwrap(), content);
    export(&native, &path("d.params")).unwrap();
    assert_eq!(std::fs::read(path("d.params")).unwrap(), content);

    // A key from a setup keeps its provenance in the native format.
    write_native(&key, &path("e.cuzkkey"), &mut ignore_progress).unwrap();
    assert_eq!(load(&NativeKeyFile::<C>::open(&path("e.cuzkkey")).unwrap()).unwrap(), key);
    // No temporary file stays behind.
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 5);
}

#[test]
fn every_way_leads_back_on_bls12_381() {
    every_way_leads_back::<Bls12>();
}

#[test]
fn every_way_leads_back_on_bn254() {
    every_way_leads_back::<Bn256>();
}

#[test]
fn every_provenance_survives_the_native_format() {
    let source = Digest::of(b"source");
    for provenance in [
        Provenance::Ceremony { source },
        Provenance::Imported { source: Some(source) },
        Provenance::Imported { source: None },
        Provenance::LocalSetup,
        Provenance::DeterministicSetup { seed: [3; 32] },
    ] {
        let key = ProvingKey { provenance: provenance.clone(), ..tiny::<Bn256>() };
        let directory = common::directory();
        let path = directory.path().join("key");
        write_native(&key, &path, &mut ignore_progress).unwrap();
        assert_eq!(*NativeKeyFile::<Bn256>::open(&path).unwrap().provenance(), provenance);
    }
}

#[test]
fn sections_larger_than_a_block_are_cut_and_joined() {
    // Doubling chains give many different points quickly; two blocks and a bit of h.
    let counts = Counts { ic: 2, h: (1 << 17) - 1, l: 70_000, a: 65_537, b_g1: 65_536, b_g2: 65_536 };
    let mut key = tiny::<Bls12>();
    let chain = |seed: u64, count: usize| {
        let mut point = common::points::<blstrs::G1Projective>(&mut common::rng(seed), 1)[0].to_curve();
        let mut projective = Vec::with_capacity(count);
        for _ in 0..count {
            projective.push(point);
            point = group::Group::double(&point);
        }
        let mut affine = vec![blstrs::G1Affine::default(); count];
        group::Curve::batch_normalize(&projective, &mut affine);
        affine
    };
    (key.h, key.l, key.a, key.b_g1) =
        (chain(1, counts.h), chain(2, counts.l), chain(3, counts.a), chain(4, counts.b_g1));
    key.b_g2 = common::points::<blstrs::G2Projective>(&mut common::rng(5), 16).repeat(counts.b_g2 / 16);
    key.vk.ic.truncate(2);
    let directory = common::directory();
    let path = |name: &str| directory.path().join(name);

    let mut reports = Vec::new();
    let mut record = |progress: Progress| {
        reports.push(progress);
        std::ops::ControlFlow::Continue(())
    };
    write_native(&key, &path("key.cuzkkey"), &mut record).unwrap();
    let bytes = 96 * (counts.h + counts.l + counts.a + counts.b_g1) as u64 + 192 * counts.b_g2 as u64;
    assert!(reports.is_sorted_by_key(|p| p.bytes_done) && reports.len() == 8, "2 + 2 + 2 + 1 + 1 blocks");
    assert_eq!(reports.last(), Some(&Progress { stage: Stage::Write, bytes_done: bytes, bytes_total: bytes }));

    let native = NativeKeyFile::<Bls12>::open(&path("key.cuzkkey")).unwrap();
    assert!(load(&native).unwrap() == key);
    export(&native, &path("key.params")).unwrap();
    let params = ParamsFile::<Bls12>::open(&path("key.params")).unwrap();
    assert_eq!(params.counts(), counts);
    assert_eq!(params.digest().unwrap(), key.digest().unwrap());
    let mut written = Vec::new();
    to_bellperson(&key).write(&mut written).unwrap();
    assert!(std::fs::read(path("key.params")).unwrap() == written);
    // A slice that starts and ends inside the pieces that threads share.
    let mut some = vec![blstrs::G1Affine::default(); 5000];
    for source in [&params as &dyn KeySource<Bls12>, &native, &key] {
        source.read_g1(Section::A, 1234, &mut some).unwrap();
        assert!(some == key.a[1234..6234]);
    }
}

#[test]
fn the_native_format_is_the_one_described() {
    // A reader of the description alone: offsets and sizes as numbers, limbs as numbers.
    let mut key = tiny::<Bls12>();
    key.h[0] = blstrs::G1Affine::generator();
    let bytes = native_bytes(&key);
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(&bytes[..8], b"CUZKKEY\0");
    assert_eq!([8, 12, 16, 20].map(u32_at), [1, 4096, 1, 7]);
    assert_eq!(u64_at(24), bytes.len() as u64);
    assert_eq!((u32_at(32), u32_at(36)), (5, 0));
    assert_eq!(bytes[40..72], [9; 32]);
    let mut offset = 4096;
    let expected = [(1, 3 + 3), (2, 3), (1, 7), (1, 5), (1, 6), (1, 4), (2, 4)];
    for (i, (group, count)) in expected.into_iter().enumerate() {
        let at = 72 + 64 * i;
        let len = count as usize * if group == 1 { 96 } else { 192 };
        assert_eq!((u32_at(at), u32_at(at + 4)), (i as u32 + 1, group));
        assert_eq!((u64_at(at + 8), u64_at(at + 16), u64_at(at + 24)), (offset as u64, count, 0));
        assert_eq!(bytes[at + 32..at + 64], *blake3::hash(&bytes[offset..offset + len]).as_bytes());
        let end = (offset + len).next_multiple_of(4096);
        assert!(bytes[offset + len..end].iter().all(|b| *b == 0));
        offset = end;
    }
    assert_eq!(offset, bytes.len());
    assert!(bytes[520..4064].iter().all(|b| *b == 0));
    assert_eq!(bytes[4064..4096], *blake3::hash(&bytes[..4064]).as_bytes());

    // h starts with the generator of G1: x in Montgomery form, as published with blst (BLS12_381_G1.X).
    let h = u64_at(72 + 64 * 2 + 8) as usize;
    let x = [
        0x5cb3_8790_fd53_0c16_u64,
        0x7817_fc67_9976_fff5,
        0x154f_95c7_143b_a1c1,
        0xf0ae_6acd_f3d0_e747,
        0xedce_6ecc_21db_f440,
        0x1201_7741_9e0b_fb75,
    ];
    assert_eq!([0, 1, 2, 3, 4, 5].map(|i| u64_at(h + 8 * i)), x);
    assert_eq!(&bytes[h..h + 7 * 96], repr::as_bytes(&key.h));

    // The content digest, computed as described.
    let mut hasher = blake3::Hasher::new_derive_key("cuzk-keys 2026-11 content digest of a Groth16 proving key");
    hasher.update(&1u32.to_le_bytes());
    for i in 0..7 {
        let at = 72 + 64 * i;
        hasher.update(&bytes[at + 4..at + 8]);
        hasher.update(&bytes[at + 16..at + 24]);
        hasher.update(&bytes[at + 32..at + 64]);
    }
    assert_eq!(key.digest().unwrap().0, *hasher.finalize().as_bytes());
}

#[test]
fn inspection_describes_every_format() {
    let directory = common::directory();
    let path = |name: &str| directory.path().join(name);
    let key = tiny::<Bn256>();
    export(&key, &path("key.params")).unwrap();
    write_native(&key, &path("key.cuzkkey"), &mut ignore_progress).unwrap();
    for (name, format) in [("key.params", Format::Params), ("key.cuzkkey", Format::Native)] {
        let info = inspect(&path(name), Digests::Computed, &mut ignore_progress).unwrap();
        assert_eq!((info.format, info.curve.as_str(), info.inputs), (format, "bn254", 3));
        assert_eq!(info.log_domain, Some(3));
        assert_eq!(info.file_bytes, std::fs::metadata(path(name)).unwrap().len());
        assert_eq!(info.file_digest, Some(Digest::of(&std::fs::read(path(name)).unwrap())));
        assert_eq!(info.content_digest, Some(key.digest().unwrap()));
        assert_eq!(info.sections.iter().map(|s| s.points).collect::<Vec<_>>(), [7, 5, 6, 4, 4]);
        assert!(!info.is_production);
        let json = serde_json::to_value(&info).unwrap();
        assert_eq!(json["sections"][4]["section"], "b_g2");
        assert_eq!(json["content_digest"], key.digest().unwrap().to_string());
    }
    let bytes = params_bytes(&key);
    let info = inspect(&path("key.params"), Digests::Recorded, &mut ignore_progress).unwrap();
    let h = info.sections[0].offset as usize;
    assert_eq!(bytes[h - 4..h], 7u32.to_be_bytes());
    assert_eq!((info.file_digest, info.content_digest), (None, None));
}

#[test]
fn a_callback_stops_a_long_operation_and_leaves_nothing_behind() {
    let directory = common::directory();
    let mut stop = |_: Progress| std::ops::ControlFlow::Break(());
    let error = write_native(&tiny::<Bls12>(), &directory.path().join("key"), &mut stop).unwrap_err();
    assert!(matches!(error, cuzk_keys::KeyError::Cancelled));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
