//! The verb `sweep`: a batch for each number of partition workers and each concurrency, each with a daemon of its own.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};

use crate::{
    args::{Global, SweepArgs},
    batch::{self, Measured},
    daemon::{Daemon, Derived},
    failure::{Class, Failure},
    files,
    observe::bytes,
    output::{self, Progress},
    plot::{self, Chart, Series},
    program,
    statement::Work,
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
        self.measured()?.observation.after().peak_rss()
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
        let error = match &self.outcome {
            Ok((_, Ok(()))) => None,
            Ok((_, Err(failure))) | Err(failure) => Some(failure.message.clone()),
        };
        json!({
            "partition_workers": self.workers,
            "concurrency": self.concurrency,
            "measured": measured,
            "error": error,
        })
    }
}

/// The verb `sweep`.
pub(crate) async fn run(global: &Global, args: &SweepArgs) -> Result<(), Failure> {
    let work = Arc::new(args.submission.read(Path::new(""))?);
    let config = match &args.config {
        None => String::new(),
        Some(path) => files::read_text(path)?,
    };
    let points = args.partition_workers.len() * args.concurrency.len();
    let progress = Progress::new(points as u64 * u64::from(args.count.get()), global.json);
    let mut measured = Vec::new();
    'points: for workers in &args.partition_workers {
        for concurrency in &args.concurrency {
            let (workers, concurrency) = (workers.get(), concurrency.get());
            progress.say(&format!("partition workers {workers}, {concurrency} at a time"));
            let outcome = point(args, &config, &work, workers, concurrency, &progress).await;
            let interrupted = outcome.as_ref().is_ok_and(|(measured, _)| measured.interrupted);
            measured.push(Point { workers, concurrency, outcome });
            if interrupted {
                break 'points;
            }
        }
    }
    progress.end();

    let results = json!({
        "circuit": work.circuit,
        "count": args.count.get(),
        "cold": args.cold,
        "points": measured.iter().map(Point::json).collect::<Vec<_>>(),
    });
    files::write(&args.results, format!("{results:#}\n").as_bytes())?;
    files::write(&args.svg, plot::svg(&charts(&measured, &work.circuit)).as_bytes())?;
    output::print(global.json, || results, || table(&measured))?;
    measured.iter().find_map(Point::failure).map_or(Ok(()), |failure| Err(failure.told()))
}

/// Measures a point. A daemon that does not even start is an outcome, and the next point has its own.
async fn point(
    args: &SweepArgs,
    config: &str,
    work: &Arc<Work>,
    workers: u32,
    concurrency: u32,
    progress: &Progress,
) -> Result<(Measured, Ended), Failure> {
    let mut derived = Derived::new(config).map_err(|e| Failure::input(format!("--config: {e}")))?;
    let bad = |e: String| Failure::input(format!("--config: {e}"));
    derived.set("pipeline", "partition_workers", i64::from(workers)).map_err(bad)?;
    derived.remove("synthesis", "partition_workers");
    let folder = tempfile::Builder::new()
        .prefix("cuzk-sweep-")
        .tempdir()
        .map_err(|e| Failure::input(format!("cannot make a folder: {e}")))?;
    let program = program::daemon(args.daemon.as_deref());
    let (daemon, client) = Daemon::start(program, derived, folder.path(), args.start_limit).await?;
    if !args.cold {
        client.preload(&work.circuit, Some(args.limit.time)).await?;
    }
    let numbers = (args.count.get(), concurrency);
    let measured = batch::measure(&client, work, numbers, args.limit.time, progress).await?;
    // What was measured counts, however the daemon ends.
    let ended = match daemon.stop().await {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(Class::Device, format!("the daemon ended with {status}"))),
        Err(failure) => Err(failure),
    };
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
