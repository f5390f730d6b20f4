//! Ten thousand damaged files of each format: a typed error or a key that is written back as the same bytes, never a
//! panic. Declared counts are held against the size of the file before memory is taken, so nothing here grows.

mod common;

use std::{fs, path::Path};

use common::{load, native_bytes, params_bytes, seal, tiny};
use cuzk_curve::{Bls12, Bn256, Curve};
use cuzk_keys::{KeyError, KeySource, NativeKeyFile, ParamsFile, VerifyingKey, check_points, ignore_progress};
use rand::Rng;
use rand_chacha::ChaCha20Rng;

const MUTATIONS: usize = 10_000;

/// Changes bytes in one of the ways in which files go wrong.
fn mutate(bytes: &[u8], point_bytes: usize, counts_at: &[usize], rng: &mut ChaCha20Rng) -> Vec<u8> {
    let mut mutated = bytes.to_vec();
    let at = rng.gen_range(0..bytes.len());
    match rng.gen_range(0..8) {
        0 => mutated[at] ^= 1 << rng.gen_range(0..8),
        1 => mutated[at] = rng.r#gen(),
        2 => mutated.truncate(at),
        3 => mutated.extend((0..rng.gen_range(1..200)).map(|_| rng.r#gen::<u8>())),
        4 => {
            let end = (at + rng.gen_range(1..300)).min(bytes.len());
            rng.fill(&mut mutated[at..end]);
        }
        5 => {
            // Points change places: often a valid file.
            let len = point_bytes.min(bytes.len() / 2);
            let (from, to) = (rng.gen_range(0..=bytes.len() - len), rng.gen_range(0..=bytes.len() - len));
            let from = from - from % 4;
            mutated[to..to + len].copy_from_slice(&bytes[from..from + len]);
        }
        6 => {
            let at = counts_at[rng.gen_range(0..counts_at.len())];
            let values = [0, 1, 2, 3, 7, 8, 0x7fff_ffff, 0x8000_0000, u32::MAX, rng.r#gen()];
            mutated[at..at + 4].copy_from_slice(&values[rng.gen_range(0..values.len())].to_be_bytes());
        }
        _ => {
            let end = (at + rng.gen_range(1..300)).min(bytes.len());
            mutated.drain(at..end);
        }
    }
    mutated
}

/// Swaps two whole points of one section: valid, and another key.
fn swap_points(bytes: &[u8], section_at: usize, count: usize, point_bytes: usize, rng: &mut ChaCha20Rng) -> Vec<u8> {
    let (i, j) = (rng.gen_range(0..count), rng.gen_range(0..count));
    let range = |i: usize| section_at + i * point_bytes..section_at + (i + 1) * point_bytes;
    let mut swapped = bytes.to_vec();
    swapped[range(i)].copy_from_slice(&bytes[range(j)]);
    swapped[range(j)].copy_from_slice(&bytes[range(i)]);
    swapped
}

fn assert_names_numbers(error: &KeyError) {
    assert!(
        error.to_string().bytes().any(|b| b.is_ascii_digit()) || matches!(error, KeyError::NotAKey { .. }),
        "{error}"
    );
}

fn params<C: Curve>(seed: u64) {
    let key = tiny::<C>();
    let bytes = params_bytes(&key);
    let (g1, g2) = (size_of::<C::G1Affine>(), size_of::<C::G2Affine>());
    let ic = 3 * (g1 + g2);
    let h = ic + 4 + 3 * g1;
    let counts_at = [ic, h, h + 4 + 7 * g1, h + 8 + 12 * g1, h + 12 + 18 * g1, h + 16 + 22 * g1];
    assert_eq!(counts_at[5] + 4 + 4 * g2, bytes.len());
    let rng = &mut common::rng(seed);
    let directory = common::directory();
    let path = directory.path().join("key");
    let mut accepted = 0;
    for i in 0..MUTATIONS {
        let mutated =
            if i % 50 == 0 { swap_points(&bytes, h + 4, 7, g1, rng) } else { mutate(&bytes, g1, &counts_at, rng) };
        fs::write(&path, &mutated).unwrap();
        match ParamsFile::<C>::open(&path).and_then(|file| load(&file)) {
            Ok(key) => {
                accepted += 1;
                assert!(params_bytes(&key) == mutated, "mutation {i} was accepted and comes back differently");
            }
            Err(error) => assert_names_numbers(&error),
        }
    }
    assert!(accepted >= MUTATIONS / 50, "{accepted}");
}

#[test]
fn mutations_of_params_on_bls12_381() {
    params::<Bls12>(1);
}

#[test]
fn mutations_of_params_on_bn254() {
    params::<Bn256>(2);
}

fn vk<C: Curve>(seed: u64) {
    let bytes = tiny::<C>().vk.to_bytes().unwrap();
    let (g1, g2) = (size_of::<C::G1Affine>(), size_of::<C::G2Affine>());
    let ic = 3 * (g1 + g2);
    let rng = &mut common::rng(seed);
    let mut accepted = 0;
    for i in 0..MUTATIONS {
        let mutated =
            if i % 50 == 0 { swap_points(&bytes, ic + 4, 3, g1, rng) } else { mutate(&bytes, g1, &[ic], rng) };
        match VerifyingKey::<C>::from_bytes(&mutated) {
            Ok(vk) => {
                accepted += 1;
                assert!(vk.to_bytes().unwrap() == mutated, "mutation {i} was accepted and comes back differently");
            }
            Err(error) => assert_names_numbers(&error),
        }
    }
    assert!(accepted >= MUTATIONS / 50, "{accepted}");
}

#[test]
fn mutations_of_verifying_keys() {
    vk::<Bls12>(3);
    vk::<Bn256>(4);
}

/// Opens, compares all digests, loads.
fn open_native<C: Curve>(path: &Path) -> Result<NativeKeyFile<C>, KeyError> {
    let file = NativeKeyFile::<C>::open(path)?;
    file.verify_digests(&mut ignore_progress)?;
    Ok(file)
}

fn native<C: Curve>(seed: u64) {
    let bytes = native_bytes(&tiny::<C>());
    let g1 = size_of::<C::G1Affine>();
    // Little-endian counts of 64 bits: their upper halves and lower halves get the odd values in turn.
    let counts_at: Vec<usize> = (0..7).flat_map(|i| [72 + 64 * i + 16, 72 + 64 * i + 20, 72 + 64 * i + 8]).collect();
    let rng = &mut common::rng(seed);
    let directory = common::directory();
    let path = directory.path().join("key");
    let (mut accepted, mut valid) = (0, 0);
    for i in 0..MUTATIONS {
        let mut mutated = match i % 50 {
            0 => swap_points(&bytes, 3 * 4096, 7, g1, rng),
            // Half of the rest in the header, where the structure is.
            n if n % 2 == 0 => {
                let head = mutate(&bytes[..520], g1, &counts_at, rng);
                let mut mutated = bytes.clone();
                let len = head.len().min(520);
                mutated[..len].copy_from_slice(&head[..len]);
                mutated
            }
            _ => mutate(&bytes, g1, &counts_at, rng),
        };
        if mutated.len() >= 4096 && i % 5 != 1 {
            seal(&mut mutated, i % 5 < 3);
        }
        fs::write(&path, &mutated).unwrap();
        match open_native::<C>(&path) {
            Ok(file) => {
                accepted += 1;
                match check_points(&file, &mut ignore_progress) {
                    Ok(()) => valid += 1,
                    Err(error) => assert!(matches!(error, KeyError::BadPoint { .. }), "{error}"),
                }
                // Limbs are kept as they are, valid or not; what comes back is the same file.
                assert!(native_bytes(&file as &dyn KeySource<C>) == mutated, "mutation {i} comes back differently");
                assert!(native_bytes(&load(&file).unwrap()) == mutated, "mutation {i} comes back differently");
            }
            Err(error) => assert_names_numbers(&error),
        }
    }
    assert!(accepted > valid && valid > 0, "{accepted} accepted, {valid} valid");
}

#[test]
fn mutations_of_native_keys_on_bls12_381() {
    native::<Bls12>(5);
}

#[test]
fn mutations_of_native_keys_on_bn254() {
    native::<Bn256>(6);
}
