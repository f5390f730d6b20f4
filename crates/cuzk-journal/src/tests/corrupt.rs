//! Files that are damaged, of another version, or something else.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{disk::Simulated, job, open};
use crate::{Error, Options, Outcome};

/// A journal with a few jobs, as bytes.
fn journal() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let journal = open(directory.path(), Options::default(), &disk).unwrap();
    for i in 0..20 {
        let id = journal.accept(job("work", i), &[&[i; 3000]]).unwrap();
        if i % 2 == 0 {
            journal.finish(&id, Outcome::Completed(vec![i; 400]), 1).unwrap();
        }
    }
    drop(journal);
    disk.bytes()
}

fn error_of(bytes: Vec<u8>) -> Option<Error> {
    let directory = tempfile::tempdir().unwrap();
    let opened = open(directory.path(), Options::default(), &Simulated::of(bytes));
    opened.and_then(|journal| journal.unfinished().map(drop)).err()
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let mut bytes = journal();
    bytes[16..20].copy_from_slice(&7u32.to_le_bytes());
    let error = error_of(bytes).unwrap();
    assert!(matches!(error, Error::Version { found: 7, supported: 1, .. }), "{error}");
    assert_eq!(error.to_string(), "simulated has version 7 of the format, this program reads version 1");
}

#[test]
fn another_file_is_refused() {
    let error = error_of(b"SQLite format 3\0".repeat(1000)).unwrap();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    let mut zeros = vec![0; 100_000];
    zeros[99_999] = 1;
    let error = error_of(zeros).unwrap();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
}

#[test]
fn a_damaged_file_is_an_error_or_does_no_harm() {
    let whole = journal();
    assert!(error_of(whole.clone()).is_none());
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut errors = 0;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        // Where there is something, which is not behind the database's end.
        for _ in 0..random.gen_range(1..20) {
            let at = random.gen_range(0..whole.len() / 3);
            bytes[at] ^= 1 << random.gen_range(0..8);
        }
        errors += u32::from(error_of(bytes).is_some());
    }
    assert!(errors > 0, "no damage was noticed");
    let database = u64::from_le_bytes(whole[24..32].try_into().unwrap()) as usize;
    for len in [4096, 5000, 4096 + database / 2, 4096 + database - 1] {
        let error = error_of(whole[..len].to_vec());
        assert!(matches!(error, Some(Error::Corrupt { .. })), "{len} bytes of {}: {error:?}", whole.len());
    }
}
