//! Files with one fault each: the error says which, where, and both numbers.

mod common;

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
};

use common::{export, load, native_bytes, params_bytes, seal, tiny};
use cuzk_curve::{AffineRepr, Bls12, Bn256, Curve, CurveId, GroupId, repr};
use cuzk_keys::{
    Counts, Digests, Format, KeyError, KeySource, LooksLike, NativeKeyFile, Origin, ParamsFile, Part, PointFault,
    ProvingKey, Section, VerifyingKey, check_points, ignore_progress, inspect, write_native,
};
use group::{UncompressedEncoding, prime::PrimeCurveAffine};

/// A file with these bytes that lives as long as the returned directory.
fn file(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = common::directory();
    let path = directory.path().join("key");
    fs::write(&path, bytes).unwrap();
    (directory, path)
}

fn open_params(bytes: &[u8]) -> Result<ProvingKey<Bls12>, KeyError> {
    let (_directory, path) = file(bytes);
    load(&ParamsFile::<Bls12>::open(&path)?)
}

fn open_native(bytes: &[u8]) -> Result<ProvingKey<Bls12>, KeyError> {
    let (_directory, path) = file(bytes);
    load(&NativeKeyFile::<Bls12>::open(&path)?)
}

/// Ends of all parts of the tiny key's `.params`, and what a file cut just before names.
fn boundaries() -> Vec<(u64, Part)> {
    let (g1, g2) = (96, 192);
    let sizes = [
        (Part::AlphaG1, g1),
        (Part::BetaG1, g1),
        (Part::BetaG2, g2),
        (Part::GammaG2, g2),
        (Part::DeltaG1, g1),
        (Part::DeltaG2, g2),
        (Part::Ic, 4),
        (Part::Ic, 3 * g1),
        (Part::H, 4),
        (Part::H, 7 * g1),
        (Part::L, 4),
        (Part::L, 5 * g1),
        (Part::A, 4),
        (Part::A, 6 * g1),
        (Part::BG1, 4),
        (Part::BG1, 4 * g1),
        (Part::BG2, 4),
        (Part::BG2, 4 * g2),
    ];
    let mut end = 0;
    sizes
        .map(|(part, size)| {
            end += size;
            (end, part)
        })
        .into()
}

#[test]
fn params_truncated_at_every_boundary() {
    let bytes = params_bytes(&tiny::<Bls12>());
    let ends = boundaries();
    assert_eq!(ends.last().unwrap().0, bytes.len() as u64);
    for (i, (end, part)) in ends.iter().enumerate() {
        // One byte short of the end of a part: that part is named, with its end.
        let error = open_params(&bytes[..*end as usize - 1]).unwrap_err();
        assert!(
            matches!(&error, KeyError::Truncated { part: p, expected, actual, .. } if p == part && expected == end && *actual == end - 1),
            "{error}"
        );
        // At the end of a part, and one byte after: the next one is named.
        let Some((next_end, next)) = ends.get(i + 1) else { continue };
        for len in [*end, end + 1] {
            let error = open_params(&bytes[..len as usize]).unwrap_err();
            assert!(
                matches!(&error, KeyError::Truncated { part: p, expected, actual, .. } if p == next && expected == next_end && *actual == len),
                "{error}"
            );
        }
    }
    let error = open_params(&[&bytes[..], &[0]].concat()).unwrap_err();
    let len = bytes.len() as u64;
    assert!(
        matches!(error, KeyError::TrailingBytes { expected, actual, .. } if (expected, actual) == (len, len + 1)),
        "{error}"
    );
}

#[test]
fn native_truncated_at_every_boundary() {
    let bytes = native_bytes(&tiny::<Bls12>());
    let ends = [Part::Header, Part::VkG1, Part::VkG2, Part::H, Part::L, Part::A, Part::BG1, Part::BG2];
    assert_eq!(bytes.len(), 4096 * ends.len());
    for (i, part) in ends.into_iter().enumerate() {
        let end = 4096 * (i + 1);
        for len in [end - 4095, end - 1] {
            let error = open_native(&bytes[..len]).unwrap_err();
            match (&error, part) {
                (KeyError::NotAKey { .. }, Part::Header) => assert!(len < 8),
                (KeyError::Truncated { part: p, expected, actual, .. }, _) => {
                    assert_eq!((*p, *expected, *actual), (part, end as u64, len as u64));
                }
                _ => panic!("{error}"),
            }
        }
    }
    let len = bytes.len() as u64;
    let error = open_native(&[&bytes[..], &[0]].concat()).unwrap_err();
    assert!(
        matches!(error, KeyError::TrailingBytes { expected, actual, .. } if (expected, actual) == (len, len + 1)),
        "{error}"
    );
}

#[test]
fn a_flipped_byte_of_a_native_key_is_found_wherever_it_is() {
    let bytes = native_bytes(&tiny::<Bls12>());
    let (_directory, path) = file(&bytes);
    for at in (0..bytes.len()).step_by(61) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).unwrap();
        let result = NativeKeyFile::<Bls12>::open(&path).and_then(|key| key.verify_digests(&mut ignore_progress));
        let error = result.expect_err("every byte counts");
        match (&error, at) {
            (KeyError::NotAKey { .. }, 0..8) | (KeyError::UnsupportedVersion { .. }, 8..12) => {}
            (KeyError::DigestMismatch { part, .. }, _) => {
                let parts = [Part::Header, Part::VkG1, Part::VkG2, Part::H, Part::L, Part::A, Part::BG1, Part::BG2];
                assert_eq!(*part, parts[at / 4096], "{at}");
            }
            (KeyError::BadField { field: "padding", offset, .. }, _) => assert_eq!(*offset, at as u64),
            _ => panic!("{at}: {error}"),
        }
    }
    // Loading compares each section with its digest too.
    let mut damaged = bytes.clone();
    damaged[5 * 4096 + 7] ^= 1;
    let error = open_native(&damaged).unwrap_err();
    assert!(matches!(error, KeyError::DigestMismatch { part: Part::A, .. }), "{error}");
}

#[test]
fn a_flipped_byte_of_a_params_file_is_a_bad_point_or_count() {
    let bytes = params_bytes(&tiny::<Bls12>());
    // After a wrong count the rest is read in the wrong places.
    let is_count = |at: u64| boundaries().chunks(2).skip(3).any(|pair| (pair[0].0 - 4..pair[0].0).contains(&at));
    for at in (0..bytes.len()).step_by(17) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let error = open_params(&damaged).unwrap_err();
        match &error {
            KeyError::BadPoint { offset, .. } => {
                assert!((*offset..offset + 192).contains(&(at as u64)) || is_count(at as u64), "{at}: {error}");
            }
            KeyError::Truncated { .. } | KeyError::TrailingBytes { .. } | KeyError::BadCount { .. } => {}
            _ => panic!("{at}: {error}"),
        }
    }
}

#[test]
fn what_is_no_key_is_named() {
    let cases: [(&[u8], LooksLike); 9] = [
        (b"", LooksLike::Empty),
        (b"\n<!DOCTYPE html><html><body>404 Not Found</body></html>", LooksLike::Html),
        (b"{\"error\": \"no such key\"}", LooksLike::Json),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", LooksLike::GitLfsPointer),
        (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", LooksLike::Compressed),
        (b"zkey\x01\x00\x00\x00", LooksLike::Zkey),
        (b"wtns\x02\x00\x00\x00", LooksLike::Circom),
        (b"r1cs\x01\x00\x00\x00", LooksLike::Circom),
        (b"CUZKKEY\0\x01\x00\x00\x00", LooksLike::NativeKey),
    ];
    for (bytes, expected) in cases {
        // Long enough to hold a verifying key, and shorter.
        for padding in [0, 5000] {
            let mut padded = bytes.to_vec();
            padded.resize(if bytes.is_empty() { 0 } else { bytes.len() + padding }, b' ');
            let (_directory, path) = file(&padded);
            for error in [
                ParamsFile::<Bls12>::open(&path).unwrap_err(),
                ParamsFile::<Bn256>::open(&path).unwrap_err(),
                VerifyingKey::<Bls12>::read_file(&path).unwrap_err(),
            ] {
                assert!(matches!(&error, KeyError::NotAKey { found, .. } if *found == expected), "{error}");
            }
            if expected != LooksLike::NativeKey {
                for error in [
                    NativeKeyFile::<Bls12>::open(&path).unwrap_err(),
                    inspect(&path, Digests::Recorded, &mut ignore_progress).unwrap_err(),
                ] {
                    assert!(matches!(&error, KeyError::NotAKey { found, .. } if *found == expected), "{error}");
                }
            }
        }
    }
    let (_directory, path) = file(&params_bytes(&tiny::<Bls12>()));
    let error = NativeKeyFile::<Bls12>::open(&path).unwrap_err();
    assert!(matches!(&error, KeyError::NotAKey { expected: Format::Native, found: LooksLike::Unknown, .. }), "{error}");
}

#[test]
fn what_is_no_file_is_named() {
    let directory = common::directory();
    let error = ParamsFile::<Bls12>::open(directory.path()).unwrap_err();
    assert!(matches!(&error, KeyError::NotAFile { found: "a directory", .. }), "{error}");
    let error = NativeKeyFile::<Bls12>::open(Path::new("/dev/null")).unwrap_err();
    assert!(matches!(&error, KeyError::NotAFile { .. }), "{error}");
    let missing = directory.path().join("missing");
    let error = NativeKeyFile::<Bls12>::open(&missing).unwrap_err();
    assert!(
        matches!(&error, KeyError::Io { path, source, .. } if *path == missing && source.kind() == std::io::ErrorKind::NotFound),
        "{error}"
    );
    // Nothing is left behind where nothing can be written.
    let error = export(&tiny::<Bls12>(), &directory.path().join("no/such/directory")).unwrap_err();
    assert!(matches!(&error, KeyError::Io { action: "create", .. }), "{error}");
}

#[test]
fn a_key_for_the_other_curve_is_named() {
    fn wrong_curve<Right: Curve, Wrong: Curve>() {
        let key = tiny::<Right>();
        let (_directory, params) = file(&params_bytes(&key));
        let (_directory, vk) = file(&key.vk.to_bytes().unwrap());
        let (_directory, native) = file(&native_bytes(&key));
        for error in [
            ParamsFile::<Wrong>::open(&params).unwrap_err(),
            VerifyingKey::<Wrong>::read_file(&vk).unwrap_err(),
            NativeKeyFile::<Wrong>::open(&native).unwrap_err(),
        ] {
            assert!(
                matches!(&error, KeyError::WrongCurve { expected, found, .. } if (*expected, *found) == (Wrong::ID, Right::ID)),
                "{error}"
            );
        }
    }
    wrong_curve::<Bls12, Bn256>();
    wrong_curve::<Bn256, Bls12>();
}

#[test]
fn a_file_that_changes_while_open() {
    let key = tiny::<Bls12>();
    for bytes in [params_bytes(&key), native_bytes(&key)] {
        let (_directory, path) = file(&bytes);
        let source: Box<dyn KeySource<Bls12>> = match NativeKeyFile::open(&path) {
            Ok(native) => Box::new(native),
            Err(_) => Box::new(ParamsFile::open(&path).unwrap()),
        };
        let size = bytes.len() as u64;
        let writer = OpenOptions::new().write(true).open(&path).unwrap();

        writer.set_len(size - 100).unwrap();
        let shrunk = |error: &KeyError| matches!(error, KeyError::Shrunk { expected, actual, .. } if (*expected, *actual) == (size, size - 100));
        let mut last = vec![blstrs::G2Affine::default(); 4];
        if source.section_digest(Section::H).is_none() {
            let error = source.read_g2(Section::BG2, 0, &mut last).unwrap_err();
            assert!(shrunk(&error), "{error}");
        }
        for error in [load(&*source).unwrap_err(), source.check_unchanged().unwrap_err()] {
            assert!(shrunk(&error), "{error}");
        }

        // Long enough again, with other bytes.
        writer.set_len(size + 5).unwrap();
        let error = source.check_unchanged().unwrap_err();
        assert!(
            matches!(&error, KeyError::Changed { size_before, size_now, .. } if (*size_before, *size_now) == (size, size + 5)),
            "{error}"
        );
    }
}

/// The tiny key's `.params` with the encoding of one point of `h` replaced.
fn with_h(index: usize, encoding: &[u8; 96]) -> (Vec<u8>, u64) {
    let mut bytes = params_bytes(&tiny::<Bls12>());
    let at = boundaries()[8].0 as usize + 96 * index;
    bytes[at..at + 96].copy_from_slice(encoding);
    (bytes, at as u64)
}

/// On the curve y² = x³ + 4 with x = 4, not of order r.
fn outside_the_subgroup() -> blstrs::G1Affine {
    let mut compressed = [0; 48];
    (compressed[0], compressed[47]) = (0x80, 4);
    blstrs::G1Affine::from_compressed_unchecked(&compressed).unwrap()
}

#[test]
fn bad_points_of_a_params_file() {
    let good = blstrs::G1Affine::generator().to_uncompressed();
    let mut off_curve = good;
    off_curve[95] ^= 1;
    let mut x_not_canonical = good;
    x_not_canonical[..48].copy_from_slice(&[&[0x1f; 1][..], &[0xff; 47]].concat());
    let mut y_not_canonical = good;
    y_not_canonical[48] |= 0x20;
    let mut compressed = [0; 96];
    compressed[..48].copy_from_slice(&blstrs::G1Affine::generator().to_compressed());
    let mut flag = good;
    flag[0] |= 0x20;
    // x = 0, y = 2: on the curve, of order 3.
    let mut of_order_three = [0; 96];
    of_order_three[95] = 2;
    for (encoding, reason) in [
        (off_curve, PointFault::NotOnCurve),
        (x_not_canonical, PointFault::NotCanonical),
        (y_not_canonical, PointFault::NotCanonical),
        (compressed, PointFault::Flags),
        (flag, PointFault::Flags),
        (of_order_three, PointFault::NotInSubgroup),
        (blstrs::G1Affine::identity().to_uncompressed(), PointFault::Infinity),
    ] {
        let (bytes, at) = with_h(3, &encoding);
        let error = open_params(&bytes).unwrap_err();
        assert!(
            matches!(&error, KeyError::BadPoint { origin: Origin::File(_), part: Part::H, index: 3, offset, reason: r } if *offset == at && *r == reason),
            "{error}, expected {reason}"
        );
    }
    // The subgroup is a matter of the check, not of reading.
    let (bytes, at) = with_h(6, &outside_the_subgroup().to_uncompressed());
    open_params(&bytes).unwrap();
    let (_directory, path) = file(&bytes);
    let error = check_points(&ParamsFile::<Bls12>::open(&path).unwrap(), &mut ignore_progress).unwrap_err();
    let reason = PointFault::NotInSubgroup;
    assert!(
        matches!(&error, KeyError::BadPoint { part: Part::H, index: 6, offset, reason: r, .. } if *offset == at && *r == reason),
        "{error}"
    );
    // In a verifying key it is found at once.
    let mut vk = tiny::<Bls12>().vk;
    vk.ic[2] = outside_the_subgroup();
    let error = VerifyingKey::<Bls12>::from_bytes(&vk.to_bytes().unwrap()).unwrap_err();
    assert!(
        matches!(&error, KeyError::BadPoint { part: Part::Ic, index: 2, offset: 1060, reason: r, .. } if *r == reason),
        "{error}"
    );
}

#[test]
fn bad_points_of_the_other_curve() {
    let key = tiny::<Bn256>();
    let good = key.h[0].to_uncompressed();
    let bytes = params_bytes(&key);
    let at = bytes.windows(64).position(|w| w == good.as_ref()).unwrap();
    for (byte, flip, reason) in [(0, 1, PointFault::NotOnCurve), (31, 0xff, PointFault::NotCanonical)] {
        let mut damaged = bytes.clone();
        damaged[at + byte] ^= flip;
        let (_directory, path) = file(&damaged);
        let error = load(&ParamsFile::<Bn256>::open(&path).unwrap()).unwrap_err();
        assert!(
            matches!(&error, KeyError::BadPoint { part: Part::H, index: 0, offset, reason: r, .. } if *offset == at as u64 && *r == reason),
            "{error}"
        );
    }
    // G2 of BN254 has a cofactor: a random point of the curve is not in the subgroup. (G1 has none.)
    let mut other = tiny::<Bn256>();
    other.b_g2[1] = outside_the_subgroup_of_bn254();
    let error = check_points(&other, &mut ignore_progress).unwrap_err();
    let reason = PointFault::NotInSubgroup;
    assert!(
        matches!(&error, KeyError::BadPoint { origin: Origin::Memory, part: Part::BG2, index: 1, offset: 128, reason: r } if *r == reason),
        "{error}"
    );
}

/// The first point with x.c0 = 1, 2, 3, … and x.c1 = 0 that is on the curve: found through the compressed encoding.
fn outside_the_subgroup_of_bn254() -> halo2curves::bn256::G2Affine {
    use group::GroupEncoding;
    (1u8..)
        .find_map(|x| {
            let mut encoding = <halo2curves::bn256::G2Affine as GroupEncoding>::Repr::default();
            encoding.as_mut()[0] = x;
            let point: Option<halo2curves::bn256::G2Affine> =
                halo2curves::bn256::G2Affine::from_bytes_unchecked(&encoding).into();
            point.filter(|p| AffineRepr::is_on_curve(p) && !AffineRepr::is_torsion_free(p))
        })
        .unwrap()
}

#[test]
fn bad_points_of_a_native_key() {
    // Damage that comes with right digests: only the check of the points can find it.
    let h = 3 * 4096;
    let limbs = |bytes: &mut [u8], index: usize, point: &blstrs::G1Affine| {
        bytes[h + 96 * index..][..96].copy_from_slice(repr::as_bytes(&[*point]));
    };
    let mut too_large = [blstrs::G1Affine::generator()];
    repr::as_limbs_mut(&mut too_large)[5] = u64::MAX;
    let mut off_curve = [blstrs::G1Affine::generator()];
    repr::as_limbs_mut(&mut off_curve)[0] ^= 1;
    for (point, reason) in [
        (too_large[0], PointFault::NotCanonical),
        (off_curve[0], PointFault::NotOnCurve),
        (outside_the_subgroup(), PointFault::NotInSubgroup),
        (blstrs::G1Affine::identity(), PointFault::Infinity),
    ] {
        let mut bytes = native_bytes(&tiny::<Bls12>());
        limbs(&mut bytes, 5, &point);
        seal(&mut bytes, true);
        let (_directory, path) = file(&bytes);
        let key = NativeKeyFile::<Bls12>::open(&path).unwrap();
        key.verify_digests(&mut ignore_progress).unwrap();
        let error = check_points(&key, &mut ignore_progress).unwrap_err();
        assert!(
            matches!(&error, KeyError::BadPoint { part: Part::H, index: 5, offset, reason: r, .. } if *offset == (h + 480) as u64 && *r == reason),
            "{error}"
        );
        // In the verifying key it is found at once: delta_g1 is the third point.
        let mut bytes = native_bytes(&tiny::<Bls12>());
        bytes[4096 + 192..][..96].copy_from_slice(repr::as_bytes(&[point]));
        seal(&mut bytes, true);
        let error = open_native(&bytes).unwrap_err();
        assert!(
            matches!(&error, KeyError::BadPoint { part: Part::DeltaG1, index: 0, offset: 4288, reason: r, .. } if *r == reason),
            "{error}"
        );
    }
}

#[test]
fn impossible_counts() {
    let counts = |change: fn(&mut ProvingKey<Bls12>)| {
        let mut key = tiny::<Bls12>();
        change(&mut key);
        let directory = common::directory();
        let path = directory.path().join("key");
        let errors = [
            export(&key, &path).unwrap_err(),
            write_native(&key, &path, &mut ignore_progress).unwrap_err(),
            key.check_counts().unwrap_err(),
        ];
        errors.map(|error| match error {
            KeyError::BadCount { part, declared, limit, .. } => (part, declared, limit),
            error => panic!("{error}"),
        })
    };
    assert_eq!(counts(|key| key.vk.ic.clear()), [(Part::Ic, 0, 1); 3]);
    assert_eq!(counts(|key| key.h.truncate(6)), [(Part::H, 6, 7); 3]);
    assert_eq!(counts(|key| key.a.resize(9, key.a[0])), [(Part::A, 9, 8); 3]);
    assert_eq!(counts(|key| key.b_g1.resize(9, key.a[0])), [(Part::BG1, 9, 8); 3]);
    assert_eq!(counts(|key| key.b_g2.truncate(3)), [(Part::BG2, 3, 4); 3]);

    // The same from files: h says 6 although 7 points follow, ic says four thousand million.
    let mut bytes = params_bytes(&tiny::<Bls12>());
    bytes[864..868].copy_from_slice(&u32::MAX.to_be_bytes());
    let (error, size) = (open_params(&bytes).unwrap_err(), bytes.len() as u64);
    let needed = 868 + 96 * u64::from(u32::MAX);
    assert!(
        matches!(&error, KeyError::Truncated { part: Part::Ic, expected, actual, .. } if (*expected, *actual) == (needed, size)),
        "{error}"
    );
    let mut without_ic = tiny::<Bls12>().vk;
    without_ic.ic.clear();
    let error = VerifyingKey::<Bls12>::from_bytes(&without_ic.to_bytes().unwrap()).unwrap_err();
    assert!(matches!(&error, KeyError::BadCount { part: Part::Ic, declared: 0, limit: 1, .. }), "{error}");
}

#[test]
fn header_fields_of_a_native_key() {
    let bytes = native_bytes(&tiny::<Bls12>());
    let with = |at: usize, value: &[u8]| {
        let mut changed = bytes.clone();
        changed[at..at + value.len()].copy_from_slice(value);
        seal(&mut changed, false);
        open_native(&changed).unwrap_err()
    };
    let error = with(8, &2u32.to_le_bytes());
    assert!(matches!(&error, KeyError::UnsupportedVersion { found: 2, supported: 1, .. }), "{error}");
    // The tiny sections lie in the same places for both curves.
    let error = with(16, &2u32.to_le_bytes());
    assert!(matches!(&error, KeyError::WrongCurve { found: CurveId::Bn254, .. }), "{error}");
    let table = 72;
    let h_count = table + 2 * 64 + 16;
    for (at, value, field) in [
        (12, 8192u64, "header_bytes"),
        (16, 3, "curve"),
        (20, 8, "section_count"),
        (24, 1 << 40, "file_bytes"),
        (32, 6, "provenance"),
        (36, 1, "reserved"),
        (table, 2, "section"),
        (table + 4, 2, "group"),
        (table + 8, 8192, "offset"),
        (table + 24, 1, "reserved"),
        (h_count, u64::MAX / 96, "count"),
        (h_count, u64::MAX, "count"),
        (600, 1, "reserved"),
    ] {
        // Fields of 32 bits are followed by others: leave those as they are.
        let short = at < 24 || (32..40).contains(&at) || at == table || at == table + 4;
        let value = value.to_le_bytes();
        let error = with(at, if short { &value[..4] } else { &value });
        assert!(matches!(&error, KeyError::BadField { field: f, .. } if *f == field), "{at}: {error}");
    }
    // A local setup has no payload.
    let error = with(32, &4u32.to_le_bytes());
    assert!(matches!(&error, KeyError::BadField { field: "provenance_payload", offset: 40, .. }), "{error}");
    // Verifying keys with too few points, all digests right.
    for (entry, count, part) in [(0, 2u64, Part::VkG1), (1, 2, Part::VkG2), (1, 4, Part::VkG2), (0, 3, Part::Ic)] {
        let mut changed = bytes.clone();
        changed[table + 64 * entry + 16..][..8].copy_from_slice(&count.to_le_bytes());
        seal(&mut changed, true);
        let error = open_native(&changed).unwrap_err();
        assert!(matches!(&error, KeyError::BadCount { part: p, .. } if *p == part), "{error}");
    }
}

#[test]
fn a_key_for_another_circuit_is_refused_with_both_numbers() {
    let key = tiny::<Bls12>().counts();
    key.require(&key).unwrap();
    let error = key.require(&Counts { l: 6, ..key }).unwrap_err();
    assert!(matches!(&error, KeyError::CountMismatch { part: Part::L, key: 5, circuit: 6 }), "{error}");
    assert_eq!(key.log_domain(), Some(3));
    assert_eq!(Counts { h: usize::MAX, ..key }.log_domain(), None);
}

#[test]
fn requests_outside_a_section() {
    let key = tiny::<Bls12>();
    let (_directory, params) = file(&params_bytes(&key));
    let (_directory, native) = file(&native_bytes(&key));
    let sources: [Box<dyn KeySource<Bls12>>; 3] =
        [Box::new(ParamsFile::open(&params).unwrap()), Box::new(NativeKeyFile::open(&native).unwrap()), Box::new(key)];
    let mut out = [blstrs::G1Affine::identity(); 2];
    for source in sources {
        source.read_g1(Section::H, 7, &mut []).unwrap();
        source.read_g1(Section::H, 5, &mut out).unwrap();
        for (section, start, count) in [(Section::H, 6, 7), (Section::H, usize::MAX, 7), (Section::BG2, 0, 0)] {
            let error = source.read_g1(section, start, &mut out).unwrap_err();
            assert!(
                matches!(error, KeyError::OutOfRange { group: GroupId::G1, start: s, len: 2, count: c, .. } if (s, c) == (start, count)),
                "{error}"
            );
        }
        let error = source.read_g2(Section::A, 0, &mut [blstrs::G2Affine::identity()]).unwrap_err();
        assert!(matches!(error, KeyError::OutOfRange { group: GroupId::G2, count: 0, .. }), "{error}");
    }
}
