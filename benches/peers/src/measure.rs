//! Alternating measurement of two sides by the same clock, and what is written down of it.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// How often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repetitions {
    pub(crate) warm_up: u32,
    pub(crate) timed: u32,
}

/// Times of one side, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Times {
    /// Of at least one sample.
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let (n, middle) = (samples.len(), samples.len() / 2);
        let median = if n % 2 == 1 { samples[middle] } else { (samples[middle - 1] + samples[middle]) / 2.0 };
        Self { median, min: samples[0], max: samples[n - 1] }
    }
}

/// Both sides of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) ours: Times,
    pub(crate) theirs: Times,
}

/// Runs both sides in turn and times each by the host's clock, from the first call to the return of the last, which
/// waits for the device. `batch` operations are in one sample; the times are of one operation.
pub(crate) fn alternate<E>(
    repetitions: Repetitions,
    batch: u32,
    mut ours: impl FnMut() -> Result<(), E>,
    mut theirs: impl FnMut() -> Result<(), E>,
) -> Result<Pair, E> {
    let timed = |side: &mut dyn FnMut() -> Result<(), E>| -> Result<Duration, E> {
        let start = Instant::now();
        side()?;
        Ok(start.elapsed())
    };
    let (mut our_samples, mut their_samples) = (Vec::new(), Vec::new());
    for i in 0..repetitions.warm_up + repetitions.timed {
        let pair = (timed(&mut ours)?, timed(&mut theirs)?);
        if i >= repetitions.warm_up {
            our_samples.push(pair.0.as_secs_f64() * 1e3 / f64::from(batch));
            their_samples.push(pair.1.as_secs_f64() * 1e3 / f64::from(batch));
        }
    }
    Ok(Pair { ours: Times::of(our_samples), theirs: Times::of(their_samples) })
}

/// Where the numbers come from.
pub(crate) struct Source {
    pub(crate) peer: &'static str,
    pub(crate) device: String,
    pub(crate) features: String,
    pub(crate) driver: String,
    /// What to type for the same measurement.
    pub(crate) command: String,
}

/// Prints the table, and appends records to a file.
pub(crate) struct Report {
    source: Source,
    /// The file, and the commit that was measured.
    record: Option<(PathBuf, String)>,
}

impl Report {
    /// Prints the head of the table.
    pub(crate) fn new(source: Source, record: Option<(PathBuf, String)>) -> Self {
        println!("{} ({}), driver {}; ms: median (min to max)", source.device, source.features, source.driver);
        println!("{:<38} {:>5}  {:>30}  {:>30}  ratio", "", "", "ours", source.peer);
        Self { source, record }
    }

    /// One row of the table.
    pub(crate) fn row(&self, what: &str, log_n: u32, pair: &Pair) -> std::io::Result<()> {
        let side = |t: &Times| format!("{:.3} ({:.3} to {:.3})", t.median, t.min, t.max);
        let ratio = pair.theirs.median / pair.ours.median;
        let size = format!("2^{log_n}");
        println!("{what:<38} {size:>5}  {:>30}  {:>30}  {ratio:>5.2}", side(&pair.ours), side(&pair.theirs));
        let Some((file, commit)) = &self.record else { return Ok(()) };
        let record = self.to_json(what, &size, pair, commit);
        writeln!(fs::OpenOptions::new().create(true).append(true).open(file)?, "{record}")
    }

    /// The record, as every file of `benches/results` has it.
    fn to_json(&self, what: &str, size: &str, pair: &Pair, commit: &str) -> Value {
        let round = |x: f64| (x * 1e4).round() / 1e4;
        let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output().ok();
        let date = date.and_then(|out| String::from_utf8(out.stdout).ok()).map(|text| text.trim().to_owned());
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let Source { peer, device, features, driver, command } = &self.source;
        json!({
            "what": what, "curve": "bls12-381", "size": size, "ours": round(pair.ours.median), "unit": "ms",
            "peer": peer, "peer_value": round(pair.theirs.median),
            "ratio": round(pair.theirs.median / pair.ours.median),
            "machine": format!("{device}, {cores} cores, {}", std::env::consts::ARCH),
            "device": format!("{device} ({features})"), "driver": driver,
            "commit": commit, "command": command, "date": date,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Times::of(vec![3.0, 1.0, 2.0]), Times { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(Times::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn sides_take_turns_and_warm_up_does_not_count() {
        let calls = RefCell::new(String::new());
        let side = |name: char| {
            let calls = &calls;
            move || {
                calls.borrow_mut().push(name);
                if calls.borrow().len() > 2 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Ok::<(), ()>(())
            }
        };
        let repetitions = Repetitions { warm_up: 1, timed: 2 };
        let pair = alternate(repetitions, 2, side('o'), side('t')).unwrap();
        assert_eq!(*calls.borrow(), "ototot");
        // The calls that slept 2 ms did two operations each; those that did not sleep were the first.
        assert!(pair.ours.min >= 1.0 && pair.theirs.min >= 1.0, "{pair:?}");
    }

    #[test]
    fn an_error_of_either_side_comes_out() {
        let repetitions = Repetitions { warm_up: 0, timed: 1 };
        assert_eq!(alternate(repetitions, 1, || Ok(()), || Err("theirs")), Err("theirs"));
    }
}
