//! The directory and its files: whose they are, that they stay, and what a copy of them does.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::job;
use crate::{Error, Journal, Options, Outcome, Refusing};

fn open(directory: &Path) -> Journal {
    Journal::open(directory, Options::default()).unwrap()
}

fn accept(journal: &Journal) -> Result<String, Error> {
    journal.accept(job("", 1), &[b"request"])
}

fn database(directory: &Path) -> PathBuf {
    directory.join("journal.redb")
}

#[test]
fn an_older_copy_gives_no_id_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let mut given = BTreeSet::new();
    let journal = open(path);
    let first = accept(&journal).unwrap();
    given.insert(first.clone());
    drop(journal);
    let copy = fs::read(database(path)).unwrap();
    // As it was copied, and once more after it was put back.
    for _ in 0..3 {
        let journal = open(path);
        let ids: Vec<_> = (0..3).map(|_| accept(&journal).unwrap()).collect();
        for id in &ids {
            assert!(given.insert(id.clone()), "{id} comes again");
            journal.finish(id, Outcome::Completed(id.clone().into_bytes()), 1).unwrap();
        }
        drop(journal);
        // What was given is found after another opening, before and after that gives ids of its own.
        let journal = open(path);
        given.insert(accept(&journal).unwrap());
        for id in &ids {
            assert_eq!(journal.outcome(id).unwrap().unwrap(), id.as_bytes());
        }
        assert_eq!(journal.record(&first).unwrap().id, first);
        assert_eq!(journal.list(9).unwrap().len(), 5);
        drop(journal);
        fs::write(database(path), &copy).unwrap();
    }
    let journal = open(path);
    for id in given.iter().filter(|id| **id != first) {
        assert!(matches!(journal.record(id), Err(Error::UnknownJob(_))), "{id}");
    }
}

#[test]
fn a_second_opening_is_refused_whatever_was_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let journal = open(path);
    let refused = || matches!(Journal::open(path, Options::default()), Err(Error::Locked { .. }));
    assert!(refused());
    fs::remove_file(path.join("lock")).unwrap();
    assert!(refused());
    fs::remove_file(database(path)).unwrap();
    assert!(refused() && !database(path).exists());
    drop(journal);
    open(path);
}

#[test]
fn a_database_without_its_name_takes_no_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let (path, aside) = (database(directory.path()), directory.path().join("aside"));
    let journal = open(directory.path());
    let old = accept(&journal).unwrap();
    fs::rename(&path, &aside).unwrap();
    let error = accept(&journal).unwrap_err();
    assert!(matches!(error, Error::Replaced { missing: true, .. }), "{error}");
    assert_eq!(journal.usage().refusing, Some(Refusing::Replaced));
    fs::copy(&aside, &path).unwrap();
    let error = accept(&journal).unwrap_err();
    assert!(matches!(error, Error::Replaced { missing: false, .. }), "{error}");
    journal.probe();
    assert_eq!(journal.usage().refusing, Some(Refusing::Replaced));
    // What was accepted may end.
    journal.finish(&old, Outcome::Completed(vec![1]), 1).unwrap();
    fs::rename(&aside, &path).unwrap();
    journal.probe();
    assert_eq!(journal.usage().refusing, None);
    accept(&journal).unwrap();
}

#[test]
fn a_time_that_was_wrong_for_a_while_costs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { keep_for: std::time::Duration::from_millis(100), ..Options::default() };
    let journal = Journal::open(directory.path(), options).unwrap();
    let [early, ahead, late] = [(); 3].map(|()| accept(&journal).unwrap());
    for (id, at) in [(&early, 1000), (&ahead, 9_000_000), (&late, 1001)] {
        journal.finish(id, Outcome::Completed(vec![1]), at).unwrap();
    }
    // The job that ended in the future removed none, and holds up none.
    assert_eq!(journal.usage().ended, 3);
    journal.expire(1100).unwrap();
    assert_eq!(journal.usage().ended, 3);
    journal.expire(1102).unwrap();
    assert_eq!((journal.usage().ended, journal.list(9).unwrap()[0].id.clone()), (1, ahead));
}

#[test]
fn what_it_makes_is_its_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made");
    let journal = open(&path);
    journal.accept(job("", 1), &[&[1; 50_000]]).unwrap();
    let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["", "requests"].map(mode), [0o700; 2]);
    assert_eq!(["lock", "journal.redb", "requests/0000000000000001"].map(mode), [0o600; 3]);
    assert_eq!(journal.exposed(), None);
    // What was there keeps its mode, and is told.
    let set = |name: &str, mode| fs::set_permissions(path.join(name), fs::Permissions::from_mode(mode)).unwrap();
    set("journal.redb", 0o644);
    assert_eq!(journal.exposed(), None, "nobody can come as far");
    set("", 0o755);
    drop(journal);
    assert_eq!(open(&path).exposed(), Some((database(&path), 0o644)));
}
