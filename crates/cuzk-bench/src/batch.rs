//! The verbs `single` and `batch`: the same proof once or many times, measured.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_proto::Client;
use serde_json::{Value, json};

use crate::{
    args::{BatchArgs, Global, SingleArgs},
    connect,
    failure::{Class, Failure},
    files,
    load::{self, Asker, Cut, Done},
    observe::{Look, Observation},
    output::{self, Progress},
    statement::Work,
    stats::Distribution,
    stop::{Stop, interrupted},
};

/// A measurement that has ended.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) circuit: String,
    pub(crate) asked: u32,
    pub(crate) concurrency: u32,
    /// From the first submission to the last answer.
    pub(crate) elapsed: Duration,
    pub(crate) done: Vec<Done>,
    /// Why not all was asked for, if it was not.
    pub(crate) cut: Option<Cut>,
    pub(crate) observation: Observation,
}

/// Has a proof made `count` times, `concurrency` at a time.
pub(crate) async fn measure(
    client: &Client,
    work: &Arc<Work>,
    (count, concurrency): (u32, u32),
    limit: Duration,
    progress: &Progress,
    stop: &Stop,
) -> Result<Measured, Failure> {
    let before = stop.unless(Look::take(client)).await?;
    let asker = Asker::new(client.clone(), limit);
    let started = Instant::now();
    let mut number = 0;
    let tell = |done: &Done| {
        number += 1;
        progress.tell(&format!("[{number}/{count}] {}", done.line()));
    };
    let (done, cut) = load::batch(&asker, work, (count, concurrency), stop, tell).await?;
    let elapsed = started.elapsed();
    let observation = Observation::end(before, client, cut.is_some(), stop).await;
    // What the daemon calls the circuit is right, if it says it.
    let named = done.iter().filter_map(Done::proved).map(|end| end.circuit_id.clone()).find(|name| !name.is_empty());
    Ok(Measured {
        circuit: named.unwrap_or_else(|| work.circuit.clone()),
        asked: count,
        concurrency,
        elapsed,
        done,
        cut,
        observation,
    })
}

impl Measured {
    pub(crate) fn completed(&self) -> usize {
        self.done.iter().filter(|done| done.proved().is_some()).count()
    }

    fn verified(&self) -> usize {
        self.done.iter().filter_map(Done::proved).filter(|end| end.verified).count()
    }

    /// Wall-clock seconds a proof that was completed, which is not how long one takes if several are under way.
    pub(crate) fn seconds_per_proof(&self) -> Option<f64> {
        (self.completed() > 0).then(|| self.elapsed.as_secs_f64() / self.completed() as f64)
    }

    fn latency(&self) -> Option<Distribution> {
        Distribution::of(self.done.iter().filter(|done| done.proved().is_some()).map(|done| done.elapsed))
    }

    /// The first reason to end with another code than 0, and how many there are.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let so_far = || format!("after {} of {} proofs", self.done.len(), self.asked);
        let failures: Vec<Failure> = self.done.iter().filter_map(Done::failure).collect();
        let count = failures.len();
        let first = failures.into_iter().next();
        match &self.cut {
            Some(Cut::Asked(signal)) => return Some(interrupted(*signal, format!("interrupted {}", so_far()))),
            Some(Cut::Gone(why)) if self.asked > 1 => {
                let (completed, of) = (self.completed(), self.asked);
                let message = format!("the daemon is gone, {completed} of {of} proofs are completed: {why}");
                return Some(Failure::new(Class::Device, message));
            }
            _ => {}
        }
        let Some(first) = first else { return self.observation.failure() };
        if self.asked == 1 {
            return Some(first);
        }
        Some(Failure::new(first.class, format!("{count} of {}, the first: {}", self.asked, first.message)))
    }

    pub(crate) fn json(&self) -> Value {
        let mean = |part: fn(&Done) -> Option<u64>| {
            let parts: Vec<u64> = self.done.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| parts.iter().sum::<u64>() as f64 / parts.len() as f64)
        };
        let errors: Vec<String> = self.done.iter().filter_map(Done::failure).map(|failure| failure.message).collect();
        json!({
            "circuit": self.circuit,
            "count": self.asked,
            "concurrency": self.concurrency,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "completed": self.completed(),
            "failed": self.done.len() - self.completed(),
            "verified": self.verified(),
            "interrupted": matches!(self.cut, Some(Cut::Asked(_))),
            "seconds_per_proof": self.seconds_per_proof(),
            "proofs_per_minute": self.seconds_per_proof().map(|s| 60.0 / s),
            "latency": self.latency().map(|latency| latency.json()),
            "mean_ms": {
                "queue": mean(|d| Some(d.proved()?.queue_wait_ms)),
                "key": mean(|d| Some(d.proved()?.srs_load_ms)),
                "prove": mean(|d| d.proved().map(Done::prove_ms)),
                "synthesis": mean(|d| Some(d.proved()?.synthesis_ms)),
                "device": mean(|d| Some(d.proved()?.gpu_compute_ms)),
                "finish": mean(|d| Some(d.proved()?.finish_ms)),
            },
            "errors": errors,
            "daemon": self.observation.json(),
            "key": self.observation.key_json(&self.circuit),
        })
    }

    pub(crate) fn text(&self) -> String {
        let (completed, verified) = (self.completed(), self.verified());
        let mut text = format!(
            "proofs       {completed} completed, {} failed, {verified} verified\n",
            self.done.len() - completed
        );
        if let (Some(seconds), Some(latency)) = (self.seconds_per_proof(), self.latency()) {
            text += &format!(
                "throughput   {seconds:.2} s/proof, {:.2} proofs/min ({} at a time, {:.1} s in all)\n\
                 latency      p50 {:.1} s, p95 {:.1} s, longest {:.1} s\n",
                60.0 / seconds,
                self.concurrency,
                self.elapsed.as_secs_f64(),
                latency.p50,
                latency.p95,
                latency.max
            );
        }
        text + &format!("{}\n{}", self.observation.text(), self.observation.key_text(&self.circuit))
    }
}

/// The verb `batch`.
pub(crate) async fn run(global: &Global, args: &BatchArgs, stop: &Stop) -> Result<(), Failure> {
    let work = Arc::new(args.submission.read(Path::new(""))?);
    let client = stop.unless(connect(global)).await?;
    let progress = Progress::new(args.count.get().into(), global.json);
    let numbers = (args.count.get(), args.concurrency.get());
    let measured = measure(&client, &work, numbers, args.limit.time, &progress, stop).await?;
    progress.end();
    output::conclude(global.json, measured.failure(), || measured.json(), || measured.text())
}

/// The verb `single`.
pub(crate) async fn single(global: &Global, args: &SingleArgs, stop: &Stop) -> Result<(), Failure> {
    args.out.as_deref().map_or(Ok(()), files::check_target)?;
    let work = Arc::new(args.submission.read(Path::new(""))?);
    let client = stop.unless(connect(global)).await?;
    let progress = Progress::new(1, global.json);
    let measured = measure(&client, &work, (1, 1), args.limit.time, &progress, stop).await?;
    progress.end();
    if let (Some(path), Some(end)) = (&args.out, measured.done.first().and_then(Done::proved)) {
        files::write(path, &end.proof)?;
    }
    output::conclude(global.json, measured.failure(), || measured.json(), || measured.text())
}
