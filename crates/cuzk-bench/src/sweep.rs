//! The verb `sweep`: a batch for each number of partition workers and each concurrency, each with a daemon of its own.

use std::{num::NonZeroU32, path::Path, sync::Arc};

use serde_json::{Value, json};

use crate::{
    args::{Global, SweepArgs},
    batch::{self, Measured},
    daemon::{Daemon, Derived},
    failure::Failure,
    files,
    observe::bytes,
    output::{self, Progress},
    plot::{self, Chart, Series},
    program,
    statement::Work,
    stop::{Stop, interrupted},
};

/// A point that was measured.
struct Point {
    workers: u32,
    concurrency: u32,
    /// The measurement and how the daemon ended after it, or why there is none.
    outcome: Result<(Measured, Ended), Failure>,
}

/// How a daemon ended: as it should, or with something to tell.
type Ended = Result<(), Failure>;

impl Point {
    fn measured(&self) -> Option<&Measured> {
        self.outcome.as_ref().ok().map(|(measured, _)| measured)
    }

    fn per_minute(&self) -> Option<f64> {
        self.measured()?.seconds_per_proof().map(|seconds| 60.0 / seconds)
    }

    fn peak_rss(&self) -> Option<f64> {
        self.measured()?.observation.peak_rss()
    }

    fn failure(&self) -> Option<Failure> {
        match &self.outcome {
            Ok((measured, Ok(()))) => measured.failure(),
            Ok((measured, Err(end))) => measured.failure().or_else(|| Some(Failure::new(end.class, &end.message))),
            Err(failure) => Some(Failure::new(failure.class, &failure.message)),
        }
    }

    fn json(&self) -> Value {
        let measured = self.measured().map(Measured::json);
        json!({
            "partition_workers": self.workers,
            "concurrency": self.concurrency,
            "measured": measured,
            "error": self.failure().map(|failure| failure.message),
        })
    }
}

/// The verb `sweep`.
pub(crate) async fn run(global: &Global, args: &SweepArgs, stop: &Stop) -> Result<(), Failure> {
    files::check_target(&args.results)?;
    files::check_target(&args.svg)?;
    let work = Arc::new(args.submission.read(Path::new(""))?);
    let config = match &args.config {
        None => String::new(),
        Some(path) => files::read_text(path)?,
    };
    let derive = |workers: &NonZeroU32| Ok((workers.get(), derived(&config, workers.get())?));
    let derived = args.partition_workers.iter().map(derive).collect::<Result<Vec<_>, Failure>>()?;
    let points = args.partition_workers.len() * args.concurrency.len();
    let progress = Progress::new(points as u64 * u64::from(args.count.get()), global.json);
    let mut measured = Vec::new();
    'points: for (workers, config) in &derived {
        for concurrency in &args.concurrency {
            let (workers, concurrency) = (*workers, concurrency.get());
            progress.say(&format!("partition workers {workers}, {concurrency} at a time"));
            let outcome = point(args, config.clone(), &work, concurrency, (&progress, stop)).await;
            measured.push(Point { workers, concurrency, outcome });
            // Each time, so that a program that is killed has told of the points before.
            files::write(&args.results, format!("{:#}\n", json(args, &work, &measured, stop)).as_bytes())?;
            files::write(&args.svg, plot::svg(&charts(&measured, &work.circuit)).as_bytes())?;
            if stop.now().is_some() {
                break 'points;
            }
        }
    }
    progress.end();

    let failure = match stop.now() {
        Some(signal) => Some(interrupted(signal, format!("interrupted at point {} of {points}", measured.len()))),
        None => measured.iter().find_map(Point::failure),
    };
    output::conclude(global.json, failure, || json(args, &work, &measured, stop), || table(&measured))
}

/// The configuration of the points with so many workers.
fn derived(config: &str, workers: u32) -> Result<Derived, Failure> {
    let bad = |e: String| Failure::input(format!("--config: {e}"));
    let mut derived = Derived::new(config).map_err(bad)?;
    derived.set("pipeline", "partition_workers", i64::from(workers)).map_err(bad)?;
    derived.remove("synthesis", "partition_workers");
    Ok(derived)
}

fn json(args: &SweepArgs, work: &Work, points: &[Point], stop: &Stop) -> Value {
    json!({
        "circuit": work.circuit,
        "count": args.count.get(),
        "cold": args.cold,
        "interrupted": stop.now().is_some(),
        "points": points.iter().map(Point::json).collect::<Vec<_>>(),
    })
}

/// Measures a point. A daemon that does not even start is an outcome, and the next point has its own.
async fn point(
    args: &SweepArgs,
    config: Derived,
    work: &Arc<Work>,
    concurrency: u32,
    (progress, stop): (&Progress, &Stop),
) -> Result<(Measured, Ended), Failure> {
    let folder = tempfile::Builder::new()
        .prefix("cuzk-sweep-")
        .tempdir()
        .map_err(|e| Failure::input(format!("cannot make a folder: {e}")))?;
    let program = program::daemon(args.daemon.as_deref());
    let start = Daemon::start(program, config, folder.path(), args.start_limit);
    let (daemon, client) = stop.unless(start).await?;
    if !args.cold {
        stop.unless(client.preload(&work.circuit, Some(args.limit.time))).await?;
    }
    let numbers = (args.count.get(), concurrency);
    let measured = batch::measure(&client, work, numbers, args.limit.time, progress, stop).await?;
    // What was measured counts, however the daemon ends.
    let ended = daemon.stop(stop).await;
    Ok((measured, ended))
}

fn table(points: &[Point]) -> String {
    let mut text = format!(
        "{:>7} {:>9} {:>10} {:>11} {:>9} {:>9} {:>11}\n",
        "workers", "at a time", "s/proof", "proofs/min", "completed", "failed", "peak RSS"
    );
    for point in points {
        let (workers, concurrency) = (point.workers, point.concurrency);
        text += &match &point.outcome {
            Err(failure) => format!("{workers:>7} {concurrency:>9} {}\n", failure.message),
            Ok((measured, _)) => {
                let number = |n: Option<f64>| n.map_or_else(|| "-".to_owned(), |n| format!("{n:.2}"));
                let rss = point.peak_rss().map_or_else(|| "not told".to_owned(), |b| bytes(b as u64));
                let completed = measured.completed();
                format!(
                    "{workers:>7} {concurrency:>9} {:>10} {:>11} {completed:>9} {:>9} {rss:>11}\n",
                    number(measured.seconds_per_proof()),
                    number(point.per_minute()),
                    measured.done.len() - completed,
                )
            }
        };
    }
    text.pop();
    text
}

/// Throughput and memory over the concurrency, a line for each number of workers.
fn charts(points: &[Point], circuit: &str) -> [Chart; 2] {
    let chart = |title: String, value: fn(&Point) -> Option<f64>| {
        let mut workers: Vec<u32> = points.iter().map(|p| p.workers).collect();
        workers.sort_unstable();
        workers.dedup();
        let series = workers.into_iter().map(|w| {
            let here = points.iter().filter(|p| p.workers == w);
            let mut points: Vec<_> = here.filter_map(|p| Some((f64::from(p.concurrency), value(p)?))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series { name: format!("{w} workers"), points }
        });
        Chart { title, x: "proofs at a time".into(), series: series.collect() }
    };
    [
        chart(format!("{circuit}: proofs a minute"), Point::per_minute),
        chart("peak resident memory, GiB".into(), |point| Some(point.peak_rss()? / f64::from(1 << 30))),
    ]
}
