//! Tiny keys of random points: right in every way that a key alone can show.

#![allow(dead_code, reason = "every test binary compiles this module and uses its own part of it")]

use std::path::{Path, PathBuf};

use cuzk_curve::Curve;
use cuzk_keys::{
    Counts, Digest, KeyError, KeySource, Provenance, ProvingKey, VerifyingKey, export_params, ignore_progress,
};
use group::Group;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

pub(crate) const TINY: Counts = Counts { ic: 3, h: 7, l: 5, a: 6, b_g1: 4, b_g2: 4 };

pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

pub(crate) fn points<G: Group + group::Curve>(rng: &mut ChaCha20Rng, count: usize) -> Vec<G::AffineRepr> {
    (0..count).map(|_| G::random(&mut *rng).to_affine()).collect()
}

pub(crate) fn random_key<C: Curve>(seed: u64, counts: Counts) -> ProvingKey<C> {
    let rng = &mut rng(seed);
    let mut g1 = |count| points::<C::G1>(rng, count);
    let (single, ic) = (g1(3), g1(counts.ic));
    let (h, l, a, b_g1) = (g1(counts.h), g1(counts.l), g1(counts.a), g1(counts.b_g1));
    let (g2, b_g2) = (points::<C::G2>(rng, 3), points::<C::G2>(rng, counts.b_g2));
    let vk = VerifyingKey {
        alpha_g1: single[0],
        beta_g1: single[1],
        beta_g2: g2[0],
        gamma_g2: g2[1],
        delta_g1: single[2],
        delta_g2: g2[2],
        ic,
    };
    ProvingKey { vk, h, l, a, b_g1, b_g2, provenance: Provenance::DeterministicSetup { seed: [9; 32] } }
}

pub(crate) fn tiny<C: Curve>() -> ProvingKey<C> {
    random_key(1, TINY)
}

pub(crate) fn export<C: Curve>(key: &dyn KeySource<C>, path: &Path) -> Result<(), KeyError> {
    export_params(key, path, &mut ignore_progress)
}

pub(crate) fn load<C: Curve>(source: &dyn KeySource<C>) -> Result<ProvingKey<C>, KeyError> {
    ProvingKey::load(source, &mut ignore_progress)
}

/// A directory that is removed when dropped, in memory where that exists: making thousands of files durable takes long.
pub(crate) fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The bytes of a key's `.params`, by way of a file.
pub(crate) fn params_bytes<C: Curve>(key: &dyn KeySource<C>) -> Vec<u8> {
    let directory = directory();
    let path = directory.path().join("key.params");
    export(key, &path).unwrap();
    std::fs::read(path).unwrap()
}

/// The bytes of a key in the native format, by way of a file.
pub(crate) fn native_bytes<C: Curve>(key: &dyn KeySource<C>) -> Vec<u8> {
    let directory = directory();
    let path = directory.path().join("key.cuzkkey");
    cuzk_keys::write_native(key, &path, &mut ignore_progress).unwrap();
    std::fs::read(path).unwrap()
}

/// Sets the digests of a native key's header right after a change of its bytes: as an attacker would.
pub(crate) fn seal(bytes: &mut [u8], sections_too: bool) {
    if sections_too {
        for i in 0..7 {
            let at = 72 + 64 * i;
            let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            let (offset, count) = (word(bytes, at + 8), word(bytes, at + 16));
            let coordinate = if bytes[16] == 1 { 48 } else { 32 };
            let point = if bytes[at + 4] == 1 { 2 * coordinate } else { 4 * coordinate };
            let Some(section) = count.checked_mul(point).and_then(|len| bytes.get(offset..offset.checked_add(len)?))
            else {
                continue;
            };
            let digest = Digest::of(section);
            bytes[at + 32..at + 64].copy_from_slice(&digest.0);
        }
    }
    let digest = Digest::of(&bytes[..4064]);
    bytes[4064..4096].copy_from_slice(&digest.0);
}

/// Verifying keys of real circuits, made by bellperson.
pub(crate) fn fixture_vks() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/filecoin");
    let mut found: Vec<PathBuf> =
        ["2kib/porep", "2kib/window", "2kib/winning", "2kib/update", "8mib/window", "8mib/winning"]
            .map(|circuit| root.join(circuit).join("vk.bin"))
            .into();
    found.retain(|path| path.exists());
    found
}
