//! Disks without room.

use super::{disk::Simulated, job, open};
use crate::{Error, Journal, Options, Outcome, Refusing};

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
    assert_eq!(journal.usage().refused, 1);
    // As long as that is so, it says so, and it finds out by itself that it is over.
    for _ in 0..2 {
        assert!(matches!(journal.usage().refusing, Some(Refusing::Disk { needed }) if needed > 0));
        disk.set_capacity(Some(disk.bytes().len()));
        journal.probe();
    }
    disk.set_capacity(None);
    journal.probe();
    assert_eq!(journal.usage().refusing, None);
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
    // As long as such a job does not fit, it says so, though smaller ones do.
    journal.accept(job("c", 3), &[b"small"]).unwrap();
    match journal.usage().refusing {
        Some(Refusing::Limit { requested: r, limit: l, .. }) => assert_eq!((r, l), (requested, limit)),
        other => panic!("{other:?}"),
    }
    journal.finish(&first, Outcome::Completed(vec![0; 400]), 1).unwrap();
    assert_eq!((journal.usage().request_bytes, journal.usage().refusing), (0, None));
    // What would never fit says nothing about others.
    let error = journal.accept(job("b", 2), &[&vec![2; 5 << 20]]).unwrap_err();
    assert!(matches!(error, Error::OverBudget { .. }), "{error}");
    assert_eq!(journal.usage().refusing, None);
    // Another limit counts at once.
    journal.set_options(Options { max_bytes: 1 << 20, ..Options::default() });
    let Some(Refusing::Limit { limit, .. }) = journal.usage().refusing else { panic!("{:?}", journal.usage()) };
    assert_eq!((limit, journal.usage().max_bytes), (1 << 20, 1 << 20));
    assert!(journal.accept(job("d", 4), &[b"small"]).is_err());
    journal.set_options(Options { max_bytes: 4 << 20, ..Options::default() });
    journal.accept(job("b", 2), &[&vec![2; 2 << 20]]).unwrap();
}

#[test]
fn a_disk_that_fails_is_told_until_it_works() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let journal = open(directory.path(), Options::default(), &disk).unwrap();
    disk.fail_at(Some(disk.steps()));
    journal.accept(job("a", 1), &[b"request"]).unwrap_err();
    for _ in 0..2 {
        assert_eq!(journal.usage().refusing, Some(Refusing::Failing));
        journal.probe();
    }
    disk.fail_at(None);
    journal.probe();
    assert_eq!(journal.usage().refusing, None);
    journal.accept(job("a", 1), &[b"request"]).unwrap();
}

#[test]
fn a_disk_that_fills_up_is_found_before_a_job_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let journal = open(directory.path(), Options::default(), &disk).unwrap();
    disk.set_capacity(Some(0));
    assert_eq!(journal.usage().refusing, None);
    journal.probe();
    assert!(matches!(journal.usage().refusing, Some(Refusing::Disk { .. })), "{:?}", journal.usage());
    disk.set_capacity(None);
    journal.probe();
    assert_eq!((journal.usage().refusing, journal.usage().refused), (None, 0));
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
