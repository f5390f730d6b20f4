//! Real processes on real files: killed, locked out, out of room.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use cuzk_journal::{Error, Journal, NewJob, Options, Outcome, State};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DIRECTORY: &str = "CUZK_JOURNAL_TEST_DIRECTORY";
const TASK: &str = "CUZK_JOURNAL_TEST_TASK";

fn job(digest: u8) -> NewJob {
    NewJob {
        request_id: format!("work {}", digest % 7),
        digest: [digest; 32],
        meta: Vec::new(),
        accepted_ms: 1,
        result_room: 192,
    }
}

fn request(digest: u8) -> Vec<u8> {
    vec![digest; if digest.is_multiple_of(5) { 50_000 } else { 500 }]
}

/// Not a test of its own: what the other processes of these tests do.
#[test]
fn child() {
    let (Ok(directory), Ok(task)) = (env::var(DIRECTORY), env::var(TASK)) else { return };
    let journal = Journal::open(Path::new(&directory), Options::default()).unwrap();
    println!("\nopen");
    match task.as_str() {
        "work" => work(&journal),
        "fill" => fill(&journal),
        task => panic!("no task {task:?}"),
    }
}

/// Accepts and ends jobs for ever, on four threads, and says so after each.
fn work(journal: &Journal) {
    thread::scope(|scope| {
        for worker in 0..4u8 {
            scope.spawn(move || {
                for i in 0u8.. {
                    let digest = i.wrapping_mul(4).wrapping_add(worker);
                    let id = journal.accept(job(digest), &[&request(digest)]).unwrap();
                    println!("\naccepted {id} {digest}");
                    if i % 3 != 0 {
                        journal.finish(&id, Outcome::Completed(vec![digest; 192]), 2).unwrap();
                        println!("\nfinished {id} {digest}");
                    }
                }
            });
        }
    });
}

/// Accepts jobs until there is no room, then ends them all.
fn fill(journal: &Journal) {
    let mut ids = Vec::new();
    let error = loop {
        match journal.accept(job(1), &[&[1; 20_000]]) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
        assert!(ids.len() < 10_000, "it never fills");
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    for id in &ids {
        journal.finish(id, Outcome::Completed(vec![1; 192]), 2).unwrap();
    }
    let left = journal.unfinished().unwrap().len();
    println!("\nfilled {} {left}", ids.len());
}

fn start(command: &mut Command, directory: &Path, task: &str) -> Child {
    let exe = env::current_exe().unwrap();
    command
        .arg(exe)
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(TASK, task)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A shell that becomes the program that follows.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]);
    command
}

#[test]
fn whatever_was_told_holds_after_a_kill_at_any_moment() {
    let seed = 1;
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let directory = tempfile::tempdir().unwrap();
    let (mut accepted, mut finished) = (BTreeMap::new(), BTreeSet::new());
    for round in 0..25 {
        let mut child = start(&mut shell(r#"exec "$@""#), directory.path(), "work");
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while line.trim() != "open" {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "round {round}: it does not open");
        }
        thread::sleep(Duration::from_micros(random.gen_range(0..60_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        let rest = String::from_utf8(rest).unwrap();
        // A line that the kill cut off was not told.
        for line in rest.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["accepted", id, digest] => {
                    let digest: u8 = digest.parse().unwrap();
                    assert!(accepted.insert(id.to_owned(), digest).is_none(), "round {round}: {id} comes again");
                }
                ["finished", id, _] => drop(finished.insert(id.to_owned())),
                _ => {}
            }
        }
        let journal = Journal::open(directory.path(), Options::default()).unwrap();
        for (id, digest) in &accepted {
            let record = journal.record(id).unwrap_or_else(|error| panic!("round {round}: {error}"));
            assert_eq!(record.digest, [*digest; 32]);
            match record.state {
                State::Completed(2) => assert_eq!(journal.outcome(id).unwrap().unwrap(), vec![*digest; 192]),
                State::Unfinished => {
                    assert!(!finished.contains(id), "round {round}: {id} ended, and is unfinished");
                    assert_eq!(journal.request(id).unwrap(), request(*digest));
                }
                other => panic!("round {round}: {id} is {other:?}"),
            }
        }
    }
    assert!(accepted.len() > 50 && finished.len() > 20, "{} accepted, {} finished", accepted.len(), finished.len());
}

#[test]
fn one_process_at_a_time_and_a_dead_one_holds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(&mut shell(r#"exec "$@""#), directory.path(), "work");
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(output.any(|line| line.unwrap() == "open"));
    let Err(error) = Journal::open(directory.path(), Options::default()) else { panic!("it is open twice") };
    let path = directory.path();
    assert!(matches!(&error, Error::Locked { pid, .. } if *pid == Some(child.id())), "{error}");
    assert_eq!(error.to_string(), format!("{} is in use by process {}", path.display(), child.id()));
    // Nor after somebody removed the file that tells whose it is.
    std::fs::remove_file(path.join("lock")).unwrap();
    let Err(error) = Journal::open(path, Options::default()) else { panic!("it is open twice") };
    assert!(matches!(error, Error::Locked { pid: None, .. }), "{error}");
    assert!(!path.join("lock").exists(), "the second one leaves nothing");
    child.kill().unwrap();
    child.wait().unwrap();
    let journal = Journal::open(directory.path(), Options::default()).unwrap();
    assert!(matches!(Journal::open(directory.path(), Options::default()), Err(Error::Locked { .. })));
    drop(journal);
    Journal::open(directory.path(), Options::default()).unwrap();
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    // Blocks of 512 or of 1024 bytes, as the shell likes.
    let limited = shell(r#"trap '' XFSZ; ulimit -f 8192; exec "$@""#);
    let mut limited = limited;
    let child = start(&mut limited, directory.path(), "fill");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("filled")).unwrap_or_else(|| panic!("{text}"));
    let numbers: Vec<u64> = line.split_whitespace().skip(1).map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] > 20 && numbers[1] == 0, "{line}");
}
