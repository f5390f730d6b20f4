//! Disks without room.

use super::{disk::Simulated, job, open};
use crate::{Error, Journal, Options, Outcome};

#[test]
fn a_full_disk_refuses_new_jobs_and_lets_the_old_end() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    disk.set_capacity(Some(6 << 20));
    let journal = open(directory.path(), Options::default(), &disk).unwrap();
    let mut ids = Vec::new();
    let error = loop {
        match journal.accept(job("work", ids.len() as u8), &[&[7; 5000]]) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { needed, .. } if needed > 0) && error.is_full(), "{error}");
    assert!(ids.len() > 50, "{} jobs fit", ids.len());
    // Not one byte more.
    disk.set_capacity(Some(0));
    assert_eq!(journal.unfinished().unwrap().len(), ids.len());
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(journal.request(id).unwrap(), vec![7; 5000]);
        journal.finish(id, Outcome::Completed(vec![i as u8; 400]), 1).unwrap();
        assert_eq!(journal.outcome(id).unwrap().unwrap(), vec![i as u8; 400]);
    }
    let refused = journal.usage().refused;
    assert_eq!(refused, 1);
    disk.set_capacity(None);
    journal.accept(job("work", 1), &[&[7; 5000]]).unwrap();
}

#[test]
fn the_limit_refuses_with_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 4 << 20, ..Options::default() };
    let disk = Simulated::default();
    let journal = open(directory.path(), options, &disk).unwrap();
    let first = journal.accept(job("a", 1), &[&vec![1; 1 << 20]]).unwrap();
    let error = journal.accept(job("b", 2), &[&vec![2; 2 << 20]]).unwrap_err();
    let Error::OverBudget { in_use, requested, limit } = error else { panic!("{error}") };
    assert_eq!((requested, limit), ((2 << 20) + 400, 4 << 20));
    assert!((1 << 20..4 << 20).contains(&in_use), "{in_use}");
    assert_eq!(std::fs::read_dir(directory.path().join("requests")).unwrap().count(), 1);
    journal.finish(&first, Outcome::Completed(vec![0; 400]), 1).unwrap();
    assert_eq!(journal.usage().request_bytes, 0);
    journal.accept(job("b", 2), &[&vec![2; 2 << 20]]).unwrap();
}

/// Two hundred jobs with requests in the database, which end.
fn rush(journal: &Journal) {
    let ids: Vec<_> = (0..200).map(|i| journal.accept(job("", i as u8), &[&[1; 30_000]]).unwrap()).collect();
    let during = journal.usage().database_bytes;
    assert!(during > 6_000_000, "{during} bytes are no rush");
    let last = journal.accept(job("last", 0), &[&[2; 30_000]]).unwrap();
    for id in ids.iter().chain([&last]).take(200) {
        journal.finish(id, Outcome::Failed(Vec::new()), 1).unwrap();
    }
    assert_eq!(journal.request(&last).unwrap(), [2; 30_000]);
}

#[test]
fn room_is_given_back_after_a_rush() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let options = Options { keep_ended: 1, ..Options::default() };
    let journal = open(directory.path(), options.clone(), &disk).unwrap();
    rush(&journal);
    // The job that remains is at the end of the file.
    let before = journal.usage().database_bytes;
    drop(journal);
    let journal = open(directory.path(), options, &disk).unwrap();
    let reopened = journal.usage().database_bytes;
    assert!(reopened < before / 4, "{before} → {reopened} bytes");
    let last = journal.unfinished().unwrap().remove(0);
    assert_eq!(journal.request(&last.id).unwrap(), [2; 30_000]);
    // Without one there, the file shrinks by and by.
    rush(&journal);
    journal.finish(&last.id, Outcome::Failed(Vec::new()), 1).unwrap();
    for record in journal.unfinished().unwrap() {
        journal.finish(&record.id, Outcome::Failed(Vec::new()), 1).unwrap();
    }
    for _ in 0..20 {
        journal.expire(1).unwrap();
    }
    let after = journal.usage().database_bytes;
    assert!(after < before / 2, "{before} → {after} bytes");
}
