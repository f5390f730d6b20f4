//! The power is cut after each write and each sync of a run.

use std::collections::BTreeMap;

use super::{disk::Simulated, job, open};
use crate::{Error, Journal, Options, Outcome, State};

/// What a caller was told.
#[derive(Clone, Debug, Default)]
struct Told {
    accepted: BTreeMap<String, Vec<u8>>,
    finished: BTreeMap<String, (bool, Vec<u8>)>,
    /// Asked for when the power went.
    asked: BTreeMap<String, (bool, Vec<u8>)>,
}

/// Twelve jobs, of which some end, with requests in the database and in files; stops at the first error.
fn run(journal: &Journal, told: &mut Told) -> Result<(), Error> {
    let mut ids = Vec::new();
    for i in 0..12u8 {
        let request = vec![i; if i % 8 == 3 { 40_000 } else { 1000 * usize::from(i) }];
        let id = journal.accept(
            job(&format!("work {}", i % 5), i),
            &[&request[..10.min(request.len())], &request[10.min(request.len())..]],
        )?;
        told.accepted.insert(id.clone(), request);
        ids.push(id.clone());
        journal.begin(&id);
        if i % 2 == 1 {
            let id = &ids[usize::from(i / 2)];
            let end = (i % 3 != 0, vec![i; 192]);
            told.asked.insert(id.clone(), end.clone());
            let (completed, bytes) = end.clone();
            let outcome = if completed { Outcome::Completed(bytes) } else { Outcome::Failed(bytes) };
            journal.finish(id, outcome, 2000 + u64::from(i))?;
            told.finished.insert(id.clone(), end);
        }
    }
    Ok(())
}

fn check(journal: &Journal, told: &Told, step: u64) {
    let unfinished = journal.unfinished().unwrap();
    let mut numbers: Vec<u64> = Vec::new();
    for record in &unfinished {
        numbers.push(record.id.split_once('-').unwrap().1.parse().unwrap());
        assert!(!told.finished.contains_key(&record.id), "step {step}: {} ended, and is unfinished", record.id);
        if let Some(request) = told.accepted.get(&record.id) {
            assert_eq!(&journal.request(&record.id).unwrap(), request, "step {step}");
        }
    }
    assert!(numbers.is_sorted());
    for (id, request) in &told.accepted {
        let record = journal.record(id).unwrap_or_else(|error| panic!("step {step}: {error}"));
        assert_eq!(record.request_bytes, request.len() as u64);
        assert_eq!(record.meta, vec![record.digest[0]; 40]);
        let end = journal.outcome(id).unwrap();
        match told.finished.get(id).or_else(|| told.asked.get(id).filter(|_| end.is_some())) {
            Some((completed, bytes)) => {
                assert_eq!(matches!(record.state, State::Completed(_)), *completed);
                assert_eq!(end.as_ref(), Some(bytes), "step {step}: {id}");
                let again = journal.finish(id, Outcome::Completed(Vec::new()), 9);
                assert!(matches!(again, Err(Error::AlreadyEnded(_))));
            }
            None => assert_eq!((record.state, end), (State::Unfinished, None), "step {step}: {id}"),
        }
    }
    // It is as usable as before, and no id comes again.
    let id = journal.accept(job("another", 99), &[b"x"]).unwrap();
    assert!(!told.accepted.contains_key(&id));
    journal.finish(&id, Outcome::Completed(vec![1]), 5000).unwrap();
}

#[test]
fn whatever_was_told_holds_after_the_power_was_cut_at_any_step() {
    let steps = {
        let directory = tempfile::tempdir().unwrap();
        let disk = Simulated::default();
        let journal = open(directory.path(), Options::default(), &disk).unwrap();
        run(&journal, &mut Told::default()).unwrap();
        drop(journal);
        disk.steps()
    };
    assert!(steps > 100, "{steps} steps are no run");
    for step in 0..=steps {
        let directory = tempfile::tempdir().unwrap();
        let disk = Simulated::default();
        disk.fail_at(Some(step));
        let mut told = Told::default();
        if let Ok(journal) = open(directory.path(), Options::default(), &disk) {
            // Cut in closing, the run itself is whole.
            let _ = run(&journal, &mut told);
        }
        // And again while it is opened.
        let disk = Simulated::of(disk.after_power_cut(step));
        disk.fail_at(Some(step % 23));
        drop(open(directory.path(), Options::default(), &disk));
        let disk = Simulated::of(disk.after_power_cut(step + 1));
        let journal = open(directory.path(), Options::default(), &disk);
        let journal = journal.unwrap_or_else(|error| panic!("step {step}: {error}"));
        check(&journal, &told, step);
    }
}

#[test]
fn a_disk_that_fails_for_a_while_is_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Simulated::default();
    let journal = open(directory.path(), Options::default(), &disk).unwrap();
    let old = journal.accept(job("old", 1), &[b"request"]).unwrap();
    for failing_after in 0..40 {
        disk.fail_at(Some(disk.steps() + failing_after));
        let mut refused = Vec::new();
        let mut accepted = Vec::new();
        for i in 0..3 {
            match journal.accept(job("new", failing_after as u8), &[&vec![i; 40_000]]) {
                Ok(id) => accepted.push(id),
                Err(error) => refused.push(error),
            }
        }
        disk.fail_at(None);
        for id in &accepted {
            journal.finish(id, Outcome::Failed(Vec::new()), 1).unwrap();
        }
        // What was refused is not there, even if it had come as far as the disk.
        journal.expire(0).unwrap();
        let unfinished: Vec<_> = journal.unfinished().unwrap().into_iter().map(|record| record.id).collect();
        assert_eq!(unfinished, std::slice::from_ref(&old), "{refused:?}");
        let files = std::fs::read_dir(directory.path().join("requests")).unwrap().count();
        assert_eq!((files, journal.usage().request_bytes), (0, 0));
    }
    journal.finish(&old, Outcome::Completed(vec![5; 192]), 2).unwrap();
}
