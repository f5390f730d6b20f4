//! Random operations beside a model of what a journal is.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{disk::Simulated, open};
use crate::{Error, NewJob, Options, Outcome, State};

#[derive(Clone, Debug)]
enum Action {
    Accept { name: u8, digest: u8, len: usize },
    Begin { which: usize },
    Finish { which: usize, completed: bool, later: u64 },
    Expire { later: u64 },
    Reopen,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0..4u8, 0..3u8, prop_oneof![9 => 0..5000usize, 1 => 32_767..33_000usize])
            .prop_map(|(name, digest, len)| Action::Accept { name, digest, len }),
        1 => any::<usize>().prop_map(|which| Action::Begin { which }),
        4 => (any::<usize>(), any::<bool>(), 0..400u64)
            .prop_map(|(which, completed, later)| Action::Finish { which, completed, later }),
        1 => (0..2000u64).prop_map(|later| Action::Expire { later }),
        1 => Just(Action::Reopen),
    ]
}

/// A job as the model has it.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    digest: [u8; 32],
    request: Vec<u8>,
    attempts: u32,
    state: State,
    outcome: Option<Vec<u8>>,
}

const KEEP_ENDED: usize = 5;
const KEEP_FOR: u64 = 1000;

#[derive(Default)]
struct Model {
    /// All that were ever accepted, in order; forgotten ones are none.
    jobs: Vec<(String, Option<Job>)>,
    /// Indices in the order of their ends.
    ended: Vec<usize>,
    names: BTreeMap<(String, [u8; 32]), usize>,
}

impl Model {
    fn forget(&mut self, expired_at: u64) {
        while let Some(&oldest) = self.ended.first() {
            let at = self.jobs[oldest].1.as_ref().and_then(|job| job.state.ended_ms()).unwrap();
            if self.ended.len() <= KEEP_ENDED && at + KEEP_FOR >= expired_at {
                break;
            }
            self.ended.remove(0);
            self.jobs[oldest].1 = None;
            self.names.retain(|_, holder| *holder != oldest);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_is_what_the_model_is(actions in prop::collection::vec(action(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        let disk = Simulated::default();
        let options = Options {
            keep_ended: KEEP_ENDED,
            keep_for: std::time::Duration::from_millis(KEEP_FOR),
            ..Options::default()
        };
        let mut journal = Some(open(directory.path(), options.clone(), &disk).unwrap());
        let mut model = Model::default();
        let mut now = 10_000;
        for action in actions {
            let live = journal.as_ref().unwrap();
            match action {
                Action::Accept { name, digest, len } => {
                    // The name 0 is none.
                    let request_id = if name == 0 { String::new() } else { format!("name {name}") };
                    let request: Vec<u8> = (0..len).map(|i| (i * 31) as u8 ^ digest).collect();
                    let new = NewJob {
                        request_id: request_id.clone(),
                        digest: [digest; 32],
                        meta: vec![name],
                        accepted_ms: now,
                        result_room: 300,
                    };
                    let (head, tail) = request.split_at(len / 3);
                    let id = live.accept(new, &[head, tail]).unwrap();
                    prop_assert!(model.jobs.iter().all(|(other, _)| *other != id), "{} again", id);
                    if name != 0 {
                        model.names.insert((request_id.clone(), [digest; 32]), model.jobs.len());
                    }
                    let job = Job {
                        name: request_id,
                        digest: [digest; 32],
                        request,
                        attempts: 0,
                        state: State::Unfinished,
                        outcome: None,
                    };
                    model.jobs.push((id, Some(job)));
                    model.forget(0);
                }
                Action::Begin { which } if !model.jobs.is_empty() => {
                    let (id, job) = &mut { which }.checked_rem(model.jobs.len()).map(|i| &mut model.jobs[i]).unwrap();
                    live.begin(id);
                    if let Some(job) = job {
                        job.attempts += 1;
                    }
                }
                Action::Finish { which, completed, later } if !model.jobs.is_empty() => {
                    now += later;
                    let index = which % model.jobs.len();
                    let (id, job) = &mut model.jobs[index];
                    let bytes = vec![which as u8; 192];
                    let outcome =
                        if completed { Outcome::Completed(bytes.clone()) } else { Outcome::Failed(bytes.clone()) };
                    let result = live.finish(id, outcome, now);
                    match job {
                        None => prop_assert!(matches!(result, Err(Error::UnknownJob(_)))),
                        Some(job) if job.outcome.is_some() => {
                            prop_assert!(matches!(result, Err(Error::AlreadyEnded(_))));
                        }
                        Some(job) => {
                            prop_assert!(result.is_ok());
                            job.outcome = Some(bytes);
                            job.state = if completed { State::Completed(now) } else { State::Failed(now) };
                            let name = (job.name.clone(), job.digest);
                            if !completed && model.names.get(&name) == Some(&index) {
                                model.names.remove(&name);
                            }
                            model.ended.push(index);
                        }
                    }
                    // Age counts only where it is asked for.
                    model.forget(0);
                }
                Action::Expire { later } => {
                    now += later;
                    live.expire(now).unwrap();
                    model.forget(now);
                }
                Action::Reopen => {
                    drop(journal.take());
                    journal = Some(open(directory.path(), options.clone(), &disk).unwrap());
                    // Ends of one moment are in the order of acceptance from now on.
                    let ended = std::mem::take(&mut model.ended);
                    let at = |i: &usize| model.jobs[*i].1.as_ref().and_then(|job| job.state.ended_ms());
                    let mut ended: Vec<_> = ended.into_iter().map(|i| (at(&i), i)).collect();
                    ended.sort_unstable();
                    model.ended = ended.into_iter().map(|(_, i)| i).collect();
                }
                Action::Begin { .. } | Action::Finish { .. } => {}
            }
        }
        let journal = journal.unwrap();
        // What was begun is on disk with the next commit.
        journal.expire(now).unwrap();
        model.forget(now);
        for (id, job) in &model.jobs {
            let Some(job) = job else {
                prop_assert!(matches!(journal.record(id), Err(Error::UnknownJob(_))));
                prop_assert!(matches!(journal.outcome(id), Err(Error::UnknownJob(_))));
                continue;
            };
            let record = journal.record(id).unwrap();
            prop_assert_eq!((&record.request_id, record.digest), (&job.name, job.digest));
            prop_assert_eq!((record.state, &journal.outcome(id).unwrap()), (job.state, &job.outcome));
            match job.state {
                State::Unfinished => {
                    prop_assert_eq!(record.attempts, job.attempts);
                    prop_assert_eq!(&journal.request(id).unwrap(), &job.request);
                }
                _ => prop_assert!(matches!(journal.request(id), Err(Error::AlreadyEnded(_)))),
            }
        }
        for name in (1..4u8).flat_map(|name| (0..3u8).map(move |digest| (format!("name {name}"), [digest; 32]))) {
            let found = journal.by_request(&name.0, &name.1).unwrap().map(|record| record.id);
            prop_assert_eq!(found, model.names.get(&name).map(|index| model.jobs[*index].0.clone()));
        }
        let known = || model.jobs.iter().filter_map(|(id, job)| job.as_ref().map(|job| (id, job)));
        let unfinished: Vec<_> = journal.unfinished().unwrap().into_iter().map(|record| record.id).collect();
        let expected: Vec<_> =
            known().filter(|(_, job)| job.outcome.is_none()).map(|(id, _)| id.clone()).collect();
        prop_assert_eq!(&unfinished, &expected);
        let newest: Vec<_> = journal.list(3).unwrap().into_iter().map(|record| record.id).collect();
        prop_assert_eq!(newest, known().map(|(id, _)| id.clone()).rev().take(3).collect::<Vec<_>>());
        let usage = journal.usage();
        prop_assert_eq!((usage.unfinished, usage.ended), (unfinished.len() as u64, model.ended.len() as u64));
        let files: Vec<_> = known().filter(|(_, job)| job.outcome.is_none() && job.request.len() > 32_768).collect();
        prop_assert_eq!(std::fs::read_dir(directory.path().join("requests")).unwrap().count(), files.len());
        prop_assert_eq!(usage.request_bytes, files.iter().map(|(_, job)| job.request.len() as u64).sum::<u64>());
    }
}
