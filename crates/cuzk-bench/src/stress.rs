//! The verb `stress`: proofs of several kinds, each at its rate, whether the daemon keeps up or not.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cuzk_proto::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    args::{Global, StressArgs},
    connect,
    failure::{Class, Failure},
    files,
    load::{Asker, Cut, Done},
    observe::{Look, Observation},
    output::{self, Progress},
    statement::{StatementArgs, Submission, Urgency, Work},
    stats::Distribution,
    stop::{Stop, interrupted},
};

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    load: Vec<Load>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    per_minute: f64,
    statement: StatementArgs,
    sector: Option<u64>,
    priority: Option<Urgency>,
}

/// A load whose input is read.
struct Source {
    work: Arc<Work>,
    /// Between two proofs.
    period: Duration,
}

fn read(path: &Path) -> Result<Vec<Source>, Failure> {
    let text = files::read_text(path)?;
    let wrong = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let plan: Plan = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    if plan.load.is_empty() {
        return Err(wrong("there is no [[load]]".into()));
    }
    let base = path.parent().unwrap_or(Path::new(""));
    let source = |(i, load): (usize, Load)| {
        let period = Duration::try_from_secs_f64(60.0 / load.per_minute).ok().filter(|p| !p.is_zero());
        let period = period.ok_or_else(|| wrong(format!("load {i}: per_minute = {}", load.per_minute)))?;
        let Load { statement, sector, priority, .. } = load;
        let submission = Submission { statement, sector, priority };
        Ok(Source { work: Arc::new(submission.read(base)?), period })
    };
    plan.load.into_iter().enumerate().map(source).collect()
}

/// When each load is due, merged: arrivals of load k are at `offset + i·period`, where the offset spreads the loads
/// over their first period.
struct Schedule {
    next: Vec<(Duration, Duration)>,
}

impl Schedule {
    fn new(periods: &[Duration]) -> Self {
        let count = periods.len() as u32;
        let next = periods.iter().enumerate().map(|(k, period)| (*period * k as u32 / count, *period)).collect();
        Self { next }
    }
}

impl Iterator for Schedule {
    /// When, and which load.
    type Item = (Duration, usize);

    fn next(&mut self) -> Option<(Duration, usize)> {
        let (k, slot) = self.next.iter_mut().enumerate().min_by_key(|(k, slot)| (slot.0, *k))?;
        let due = slot.0;
        slot.0 += slot.1;
        Some((due, k))
    }
}

/// What became of a load.
#[derive(Default)]
struct Tally {
    done: Vec<Done>,
    held_back: u64,
}

impl Tally {
    fn completed(&self) -> usize {
        self.done.iter().filter(|done| done.proved().is_some()).count()
    }

    fn verified(&self) -> usize {
        self.done.iter().filter_map(Done::proved).filter(|end| end.verified).count()
    }

    fn latency(&self) -> Option<Distribution> {
        Distribution::of(self.done.iter().filter(|done| done.proved().is_some()).map(|done| done.elapsed))
    }
}

/// The verb `stress`.
pub(crate) async fn run(global: &Global, args: &StressArgs, stop: &Stop) -> Result<(), Failure> {
    let sources = read(&args.plan)?;
    let client = stop.unless(connect(global)).await?;
    let before = stop.unless(Look::take(&client)).await?;
    let due = Schedule::new(&sources.iter().map(|s| s.period).collect::<Vec<_>>());
    let due: Vec<(Duration, usize)> = due.take_while(|(at, _)| *at < args.duration).collect();
    let progress = Progress::new(due.len() as u64, global.json);

    let answers: Answers = Arc::default();
    let watcher = tokio::spawn(watch_status(client.clone(), answers.clone()));
    let asker = Asker::new(client.clone(), args.limit.time);
    let mut tallies: Vec<Tally> = sources.iter().map(|_| Tally::default()).collect();
    let mut tasks: JoinSet<(usize, Done)> = JoinSet::new();
    let started = Instant::now();
    let mut asked = due.iter().enumerate();
    let mut next = asked.next();
    let mut cut = None;
    while next.is_some() || !tasks.is_empty() {
        let sleep = next.map_or(Duration::ZERO, |(_, (at, _))| at.saturating_sub(started.elapsed()));
        tokio::select! {
            () = tokio::time::sleep(sleep), if next.is_some() => {
                let Some((number, &(_, k))) = next else { continue };
                next = asked.next();
                if tasks.len() as u64 >= u64::from(args.concurrency.get()) {
                    tallies[k].held_back += 1;
                    progress.tell(&format!("{}: held back", sources[k].work.circuit));
                    continue;
                }
                let (asker, work) = (asker.clone(), sources[k].work.clone());
                tasks.spawn(async move { (k, asker.ask(&work, number as u64).await) });
            }
            Some(joined) = tasks.join_next() => {
                let (k, done) = joined.map_err(|e| Failure::new(Class::Device, format!("a task of the bench: {e}")))?;
                progress.tell(&format!("{}: {}", sources[k].work.circuit, done.line()));
                if let Some(gone) = done.gone() {
                    next = None;
                    cut.get_or_insert(gone);
                }
                tallies[k].done.push(done);
            }
            signal = stop.asked() => {
                cut = Some(Cut::Asked(signal));
                tasks.shutdown().await;
                asker.take_back().await;
                break;
            }
        }
    }
    let elapsed = started.elapsed();
    watcher.abort();
    progress.end();
    let circuits = sources.iter().map(|s| s.work.circuit.clone()).collect();
    let answers = Answered::take(&answers);
    let observation = Observation::end(before, &client, cut.is_some(), stop).await;
    let report = Report { circuits, tallies, elapsed, answers, cut, observation };
    output::conclude(global.json, report.failure(), || report.json(), || report.text())
}

/// How long the daemon took to answer GetStatus, and how often it did not.
#[derive(Default)]
struct Answered {
    times: Vec<Duration>,
    failed: u64,
}

type Answers = Arc<Mutex<Answered>>;

impl Answered {
    fn take(answers: &Answers) -> Self {
        std::mem::take(&mut *answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Asks for the status several times a second: an answer that takes long is a daemon that is in its own way.
async fn watch_status(client: Client, answers: Answers) {
    loop {
        let started = Instant::now();
        let answer = client.status().await;
        let elapsed = started.elapsed();
        {
            let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
            match answer {
                Ok(_) => answers.times.push(elapsed),
                Err(_) => answers.failed += 1,
            }
        }
        tokio::time::sleep(STATUS_PERIOD).await;
    }
}

const STATUS_PERIOD: Duration = Duration::from_millis(200);

struct Report {
    circuits: Vec<String>,
    tallies: Vec<Tally>,
    elapsed: Duration,
    answers: Answered,
    cut: Option<Cut>,
    observation: Observation,
}

impl Report {
    fn failure(&self) -> Option<Failure> {
        let failures: Vec<Failure> = self.tallies.iter().flat_map(|t| &t.done).filter_map(Done::failure).collect();
        let (count, of) = (failures.len(), self.tallies.iter().map(|t| t.done.len()).sum::<usize>());
        match &self.cut {
            Some(Cut::Asked(signal)) => return Some(interrupted(*signal, format!("interrupted after {of} proofs"))),
            Some(Cut::Gone(why)) => {
                let completed: usize = self.tallies.iter().map(Tally::completed).sum();
                let message = format!("the daemon is gone, {completed} proofs are completed: {why}");
                return Some(Failure::new(Class::Device, message));
            }
            None => {}
        }
        let Some(first) = failures.into_iter().next() else { return self.observation.failure() };
        Some(Failure::new(first.class, format!("{count} of {of}, the first: {}", first.message)))
    }

    fn status_latency(&self) -> Option<Distribution> {
        Distribution::of(self.answers.times.iter().copied())
    }

    fn json(&self) -> Value {
        let loads: Vec<Value> = self
            .circuits
            .iter()
            .zip(&self.tallies)
            .map(|(circuit, tally)| {
                json!({
                    "circuit": circuit,
                    "asked": tally.done.len(),
                    "held_back": tally.held_back,
                    "completed": tally.completed(),
                    "failed": tally.done.len() - tally.completed(),
                    "verified": tally.verified(),
                    "latency": tally.latency().map(|latency| latency.json()),
                    "key": self.observation.key_json(circuit),
                })
            })
            .collect();
        json!({
            "elapsed_s": self.elapsed.as_secs_f64(),
            "interrupted": matches!(self.cut, Some(Cut::Asked(_))),
            "loads": loads,
            "get_status": self.status_latency().map(|latency| latency.json()),
            "get_status_failed": self.answers.failed,
            "daemon": self.observation.json(),
        })
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        for (circuit, tally) in self.circuits.iter().zip(&self.tallies) {
            let (asked, completed) = (tally.done.len(), tally.completed());
            let latency = tally
                .latency()
                .map_or_else(String::new, |l| format!("; p50 {:.2} s, p95 {:.2} s, p99 {:.2} s", l.p50, l.p95, l.p99));
            let (failed, verified, held_back) = (asked - completed, tally.verified(), tally.held_back);
            lines.push(format!(
                "{circuit:<13}{asked} asked for, {completed} completed, {failed} failed, {verified} verified, \
                 {held_back} held back{latency}"
            ));
        }
        if let Some(status) = self.status_latency() {
            let (p50, p99) = (status.p50 * 1e3, status.p99 * 1e3);
            let failed = self.answers.failed;
            lines.push(format!("GetStatus    p50 {p50:.1} ms, p99 {p99:.1} ms, {failed} not answered"));
        }
        lines.push(self.observation.text());
        lines.extend(self.circuits.iter().map(|circuit| self.observation.key_text(circuit)));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn loads_are_merged_by_their_rates() {
        let due: Vec<(u128, usize)> = Schedule::new(&[Duration::from_millis(100), Duration::from_millis(300)])
            .map(|(at, k)| (at.as_millis(), k))
            .take_while(|(at, _)| *at < 500)
            .collect();
        // The second load begins half a period of its own later: two loads share the first period.
        assert_eq!(due, [(0, 0), (100, 0), (150, 1), (200, 0), (300, 0), (400, 0), (450, 1)]);
        assert_eq!(Schedule::new(&[]).next(), None);
    }

    #[test]
    fn a_plan_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |text: &str| {
            let path = folder.path().join("plan.toml");
            fs::write(&path, text).unwrap();
            read(&path).err().unwrap().message
        };
        assert!(refused("").contains("load"));
        assert!(refused("load = []").contains("there is no [[load]]"));
        let load = |rate: &str| format!("[[load]]\nper_minute = {rate}\n[load.statement]\ntype = 'winning'\n");
        for rate in ["0.0", "-1.0", "nan"] {
            assert!(refused(&load(rate)).contains("load 0: per_minute"), "{rate}");
        }
        assert!(refused(&load("1.0")).contains("--vanilla"));
        assert!(refused(&format!("{}colour = 1", load("1.0"))).contains("colour"));
    }
}
