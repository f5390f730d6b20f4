//! A database that does not belong to the requests beside it, and requests that are not what the database says.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{disk::Simulated, job};
use crate::{Error, Journal, Options, Outcome, Refusing};

fn open(directory: &Path) -> Result<Journal, Error> {
    Journal::open(directory, Options::default())
}

/// Bytes of a request that is a file.
const LARGE: usize = 50_000;

/// A directory with `count` unfinished jobs in files, and their ids.
fn journal(count: u8) -> (tempfile::TempDir, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let journal = open(directory.path()).unwrap();
    let accept = |i| journal.accept(job("work", i), &[&vec![i; LARGE]]).unwrap();
    let ids = (0..count).map(accept).collect();
    drop(journal);
    (directory, ids)
}

fn database(directory: &Path) -> PathBuf {
    directory.join("journal.redb")
}

/// Every file of `requests`, with its content.
fn requests(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory.join("requests")).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_lost_database_costs_no_request() {
    let (directory, ids) = journal(3);
    let before = requests(directory.path());
    assert_eq!(before.len(), 3);
    let whole = fs::read(database(directory.path())).unwrap();
    let refused = |what: &str| {
        let Err(error) = open(directory.path()) else { panic!("{what}: it is opened") };
        assert_eq!(requests(directory.path()), before, "{what}");
        error
    };
    for what in ["missing", "empty", "only room for a header", "without its first commit"] {
        let path = database(directory.path());
        match what {
            "missing" => fs::remove_file(path).unwrap(),
            "empty" => fs::write(path, b"").unwrap(),
            "only room for a header" => fs::write(path, [0; 4096]).unwrap(),
            _ => {
                let mut new = whole[..4096].to_vec();
                new[20..].fill(0);
                fs::write(path, new).unwrap();
            }
        }
        // Again and again: it does not get used to it.
        for _ in 0..2 {
            let error = refused(what);
            let Error::Orphans { files, bytes, empty, .. } = &error else { panic!("{what}: {error}") };
            assert_eq!((*files, *bytes, *empty), (3, 3 * LARGE as u64, true), "{what}");
            let text = error.to_string();
            assert!(text.contains("3 files") && text.contains("150000 bytes") && text.contains("is missing or empty"));
        }
    }
    let length = u64::from_le_bytes(whole[24..32].try_into().unwrap()) as usize;
    for len in [4096, 4096 + length / 2] {
        fs::write(database(directory.path()), &whole[..len]).unwrap();
        let error = refused("cut short");
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    }
    let mut other = whole.clone();
    other[16] = 9;
    fs::write(database(directory.path()), other).unwrap();
    assert!(matches!(refused("another version"), Error::Version { found: 9, .. }));
    // Nothing happened that cannot be mended.
    fs::write(database(directory.path()), whole).unwrap();
    let journal = open(directory.path()).unwrap();
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(journal.request(id).unwrap(), vec![i as u8; LARGE]);
    }
}

#[test]
fn an_older_copy_of_the_database_costs_no_request() {
    let (directory, ids) = journal(1);
    let old = fs::read(database(directory.path())).unwrap();
    let journal = open(directory.path()).unwrap();
    journal.accept(job("newer", 9), &[&vec![9; LARGE]]).unwrap();
    drop(journal);
    let new = fs::read(database(directory.path())).unwrap();
    let before = requests(directory.path());
    fs::write(database(directory.path()), old).unwrap();
    let Err(error) = open(directory.path()) else { panic!("it is opened") };
    assert!(matches!(error, Error::Orphans { files: 1, empty: false, .. }), "{error}");
    assert_eq!((requests(directory.path()), before.len()), (before, 2));
    fs::write(database(directory.path()), new).unwrap();
    assert_eq!(open(directory.path()).unwrap().unfinished().unwrap().len(), 2);
    // Or without them, as the error says.
    fs::remove_file(database(directory.path())).unwrap();
    fs::rename(directory.path().join("requests"), directory.path().join("requests.lost")).unwrap();
    let journal = open(directory.path()).unwrap();
    assert!(journal.unfinished().unwrap().is_empty());
    assert!(matches!(journal.record(&ids[0]), Err(Error::UnknownJob(_))), "an id never comes again");
    assert_eq!(fs::read_dir(directory.path().join("requests.lost")).unwrap().count(), 2);
}

#[test]
fn what_a_crash_leaves_is_cleared_and_nothing_else() {
    let (directory, ids) = journal(4);
    let journal = open(directory.path()).unwrap();
    journal.finish(&ids[0], Outcome::Completed(vec![0; 192]), 1).unwrap();
    drop(journal);
    let path = |name: &str| directory.path().join("requests").join(name);
    // The file of a job that has ended, one that no job has come of, one whose job was written and not yet renamed.
    fs::write(path("0000000000000001"), [0; 10]).unwrap();
    fs::write(path("0000000000000009.part"), [0; 10]).unwrap();
    fs::rename(path("0000000000000002"), path("0000000000000002.part")).unwrap();
    // Somebody's own.
    fs::write(path("README"), "hands off").unwrap();
    fs::write(path("beef"), "not sixteen digits").unwrap();
    fs::create_dir(path("0000000000000007")).unwrap();
    let journal = open(directory.path()).unwrap();
    for (i, id) in ids.iter().enumerate().skip(1) {
        assert_eq!(journal.request(id).unwrap(), vec![i as u8; LARGE]);
    }
    let names = fs::read_dir(directory.path().join("requests")).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let numbers = ["0000000000000002", "0000000000000003", "0000000000000004", "0000000000000007"];
    assert_eq!(names, [&numbers[..], &["README", "beef"]].concat());
}

#[test]
fn a_request_that_is_lost_costs_its_own_job() {
    let (directory, ids) = journal(3);
    let path = |name: &str| directory.path().join("requests").join(name);
    fs::remove_file(path("0000000000000001")).unwrap();
    fs::write(path("0000000000000002"), [1; 7]).unwrap();
    let journal = open(directory.path()).unwrap();
    let records = journal.unfinished().unwrap();
    for (record, there) in records.iter().zip([None, Some(7)]) {
        let id = &record.id;
        for error in [journal.check_request(record).unwrap_err(), journal.request(id).unwrap_err()] {
            let Error::RequestLost { job, found, expected } = &error else { panic!("{error}") };
            assert_eq!((job, *found, *expected), (id, there, LARGE as u64));
        }
        journal.finish(id, Outcome::Failed(Vec::new()), 1).unwrap();
    }
    journal.check_request(&records[2]).unwrap();
    assert_eq!(journal.request(&ids[2]).unwrap(), vec![2; LARGE]);
}

#[test]
fn requests_that_cannot_be_written_are_told_until_they_can() {
    let (directory, _) = journal(1);
    let journal = open(directory.path()).unwrap();
    let (requests, aside) = (directory.path().join("requests"), directory.path().join("aside"));
    fs::rename(&requests, &aside).unwrap();
    assert_eq!(journal.usage().refusing, None);
    journal.probe();
    for _ in 0..2 {
        assert_eq!(journal.usage().refusing, Some(Refusing::Failing));
        journal.accept(job("large", 1), &[&vec![1; LARGE]]).unwrap_err();
        // That the database works does not mean that this does.
        journal.accept(job("small", 1), &[b"small"]).unwrap();
        journal.probe();
    }
    fs::rename(&aside, &requests).unwrap();
    journal.probe();
    assert_eq!(journal.usage().refusing, None);
    journal.accept(job("large", 1), &[&vec![1; LARGE]]).unwrap();
}

#[test]
fn a_database_that_vanishes_under_way_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let journal = super::open(directory.path(), Options::default(), &disk).unwrap();
    let id = journal.accept(job("a", 1), &[b"request"]).unwrap();
    disk.fail_at(Some(disk.steps()));
    journal.expire(1).unwrap_err();
    disk.lose();
    let error = journal.expire(1).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    assert!(journal.accept(job("a", 1), &[b"request"]).is_err());
    assert!(journal.record(&id).is_err());
}
