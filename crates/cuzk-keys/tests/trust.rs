//! The memory of checked keys: what it spares, and what it must not.

mod common;

use std::{fs, thread, time::Duration};

use common::{export, native_bytes, seal, tiny};
use cuzk_curve::{Bls12, Bn256};
use cuzk_keys::{
    KeyError, KeySource, NativeKeyFile, ParamsFile, Part, Progress, Stage, Trust, TrustStore, ignore_progress,
    write_native,
};

/// Trusts a key and says which stages that took.
fn ensure(store: &mut TrustStore, source: &dyn KeySource<Bls12>) -> (Result<Trust, KeyError>, Vec<Stage>) {
    let mut stages = Vec::new();
    let mut record = |progress: Progress| {
        stages.push(progress.stage);
        std::ops::ControlFlow::Continue(())
    };
    let trust = store.ensure_checked(source, &mut record);
    stages.dedup();
    (trust, stages)
}

#[test]
fn a_content_is_checked_once_in_any_format() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let key = tiny::<Bls12>();
    export(&key, &path("key.params")).unwrap();
    write_native(&key, &path("key.cuzkkey"), &mut ignore_progress).unwrap();
    let cache = path("cache");

    let params = ParamsFile::<Bls12>::open(&path("key.params")).unwrap();
    let mut store = TrustStore::open(&cache).unwrap();
    let (trust, stages) = ensure(&mut store, &params);
    assert_eq!((trust.unwrap(), stages.contains(&Stage::Check)), (Trust::Checked, true));
    assert!(store.is_checked(&key.digest().unwrap()));

    // Another process, another format: hashed, not checked.
    let mut store = TrustStore::open(&cache).unwrap();
    let native = NativeKeyFile::<Bls12>::open(&path("key.cuzkkey")).unwrap();
    let (trust, stages) = ensure(&mut store, &native);
    assert_eq!((trust.unwrap(), stages), (Trust::SameContent, vec![Stage::Hash]));
    let (trust, _) = ensure(&mut store, &key);
    assert_eq!(trust.unwrap(), Trust::SameContent);

    // These files are too young to be known by their times; once they have settled they are.
    assert_eq!(ensure(&mut store, &native).0.unwrap(), Trust::SameContent);
    thread::sleep(Duration::from_millis(3100));
    assert_eq!(ensure(&mut store, &native).0.unwrap(), Trust::SameContent);
    let mut store = TrustStore::open(&cache).unwrap();
    let (trust, stages) = ensure(&mut store, &native);
    assert_eq!((trust.unwrap(), stages), (Trust::SameFile, vec![]));

    // Written anew with the same bytes and the same time of last write: read again.
    let modified = fs::metadata(path("key.cuzkkey")).unwrap().modified().unwrap();
    let bytes = fs::read(path("key.cuzkkey")).unwrap();
    fs::write(path("key.cuzkkey"), &bytes).unwrap();
    fs::File::options().write(true).open(path("key.cuzkkey")).unwrap().set_modified(modified).unwrap();
    let native = NativeKeyFile::<Bls12>::open(&path("key.cuzkkey")).unwrap();
    assert_eq!(ensure(&mut store, &native).0.unwrap(), Trust::SameContent);

    // Damaged: the header still names the trusted content, but the content is looked at.
    let mut damaged = bytes;
    damaged[3 * 4096] ^= 1;
    fs::write(path("key.cuzkkey"), &damaged).unwrap();
    let native = NativeKeyFile::<Bls12>::open(&path("key.cuzkkey")).unwrap();
    let error = ensure(&mut store, &native).0.unwrap_err();
    assert!(matches!(error, KeyError::DigestMismatch { part: Part::H, .. }), "{error}");
}

#[test]
fn a_bad_key_is_never_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = native_bytes(&tiny::<Bls12>());
    bytes[3 * 4096] ^= 1;
    seal(&mut bytes, true);
    let path = directory.path().join("key");
    fs::write(&path, bytes).unwrap();
    let key = NativeKeyFile::<Bls12>::open(&path).unwrap();
    let mut store = TrustStore::open(directory.path()).unwrap();
    for _ in 0..2 {
        let error = store.ensure_checked(&key, &mut ignore_progress).unwrap_err();
        assert!(matches!(error, KeyError::BadPoint { part: Part::H, index: 0, .. }), "{error}");
    }
    assert!(!store.is_checked(&key.digest().unwrap()));
}

#[test]
fn stores_of_two_processes_are_merged_and_nonsense_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (tiny::<Bls12>(), tiny::<Bn256>());
    let mut first = TrustStore::open(directory.path()).unwrap();
    let mut second = TrustStore::open(directory.path()).unwrap();
    assert_eq!(first.ensure_checked(&one, &mut ignore_progress).unwrap(), Trust::Checked);
    assert_eq!(second.ensure_checked(&two, &mut ignore_progress).unwrap(), Trust::Checked);
    let mut both = TrustStore::open(directory.path()).unwrap();
    assert_eq!(both.ensure_checked(&one, &mut ignore_progress).unwrap(), Trust::SameContent);
    assert_eq!(both.ensure_checked(&two, &mut ignore_progress).unwrap(), Trust::SameContent);

    let file = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{\"keys\": 3").unwrap();
    let mut store = TrustStore::open(directory.path()).unwrap();
    assert_eq!(store.ensure_checked(&one, &mut ignore_progress).unwrap(), Trust::Checked);
    let error = TrustStore::open(&file).unwrap_err();
    assert!(matches!(error, KeyError::Io { action: "create", .. }), "{error}");
}
