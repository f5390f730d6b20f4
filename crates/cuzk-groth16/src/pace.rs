//! When the next operation of a proof is enqueued.
//!
//! A proof that may be cancelled enqueues nothing long before its turn: what is enqueued runs. But an operation that is
//! enqueued only when the one before has ended leaves the device idle while the host prepares it; at 2^27 that is tens of
//! milliseconds a proof, most of them for memory. So it is enqueued shortly before the end of the one that runs, which is
//! foreseen from the last proof of the same circuit.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use cuzk_backend::{Event, Stream};

use crate::{ProveError, Stage, StageTimes};

/// From this size of the domain on, operations take so long that a cancelled proof should not wait for two of them.
const LONG_LOG_N: u32 = 24;
/// So long before the foreseen end of an operation the next one is enqueued: several times what the host takes for that.
const MARGIN: Duration = Duration::from_millis(5);
/// How often it is looked whether an operation ended earlier, or the proof was cancelled.
const LOOK: Duration = Duration::from_millis(1);

/// What a stage did in its stream, between two marks.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) stage: Stage,
    pub(crate) begin: Event,
    pub(crate) end: Event,
}

/// Marks in a stream where its stages end, and their times by the device's clock.
pub(crate) struct Clock<'a> {
    stream: &'a Stream,
    begin: Event,
    spans: Vec<Span>,
}

impl<'a> Clock<'a> {
    pub(crate) fn new(stream: &'a Stream) -> Result<Self, ProveError> {
        Ok(Self { stream, begin: stream.record()?, spans: Vec::new() })
    }

    /// The work enqueued since the last mark is this stage.
    pub(crate) fn mark(&mut self, stage: Stage) -> Result<(), ProveError> {
        let end = self.stream.record()?;
        let begin = std::mem::replace(&mut self.begin, end.clone());
        self.spans.push(Span { stage, begin, end });
        Ok(())
    }

    /// Waits for all stages.
    pub(crate) fn times(&self) -> Result<StageTimes, ProveError> {
        times(&self.spans)
    }
}

/// Waits for all of these stages.
pub(crate) fn times(spans: &[Span]) -> Result<StageTimes, ProveError> {
    spans.iter().map(|s| Ok((s.stage, s.end.elapsed_since(&s.begin)?))).collect()
}

/// How long the stages of a circuit's last proof took, on one device.
#[derive(Debug, Default)]
pub(crate) struct Pace(Mutex<StageTimes>);

impl Pace {
    pub(crate) fn remember(&self, times: &StageTimes) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(times);
    }

    fn expected(&self, stage: Stage) -> Option<Duration> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().find(|(of, _)| *of == stage).map(|(_, time)| *time)
    }
}

/// Whether a proof is still wanted, asked between its operations and while they run.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    cancelled: Option<&'a dyn Fn() -> bool>,
    /// `None`: operations are so short that one is always enqueued behind the one that runs.
    pace: Option<&'a Pace>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(cancelled: Option<&'a dyn Fn() -> bool>, log_n: u32, pace: &'a Pace) -> Self {
        Self { cancelled, pace: (log_n >= LONG_LOG_N).then_some(pace) }
    }

    /// Returns when the next operation is to be enqueued, or an error if none is, because the proof is not wanted any
    /// more. Then the device has nothing of it to do.
    ///
    /// That is when the operation that runs is about to end: at its end if it was never seen before, at once if
    /// operations are short, or if nobody asks.
    pub(crate) fn go_on(self, clock: &Clock<'_>) -> Result<(), ProveError> {
        let Some(cancelled) = self.cancelled else { return Ok(()) };
        let (last, before) = match &clock.spans[..] {
            [] => (None, None),
            [last] => (Some(last), None),
            [.., before, last] => (Some(last), Some(before)),
        };
        if let Some(before) = before.filter(|_| !cancelled()) {
            before.end.wait()?;
        }
        if let (Some(last), Some(pace)) = (last, self.pace) {
            wait_nearly(last, pace.expected(last.stage), cancelled)?;
        }
        if !cancelled() {
            return Ok(());
        }
        // The device is not handed on with something still running there.
        last.map_or(Ok(()), |span| span.end.wait())?;
        Err(ProveError::Cancelled)
    }
}

/// Waits until the operation that has just begun is about to end, or has ended, or nobody wants it any more.
fn wait_nearly(span: &Span, expected: Option<Duration>, cancelled: &dyn Fn() -> bool) -> Result<(), ProveError> {
    let Some(expected) = expected else {
        if !cancelled() {
            span.end.wait()?;
        }
        return Ok(());
    };
    let begun = Instant::now();
    let until = expected.saturating_sub(MARGIN);
    while let Some(left) = until.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        if cancelled() || span.end.is_done()? {
            break;
        }
        thread::sleep(left.min(LOOK));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use cuzk_backend::{Device, noop::Noop};

    use super::*;

    /// Two operations in a stream, of which the second is the one that runs; and how many have ended after `wanted`.
    fn ended_after(wanted: Wanted<'_>) -> (Result<(), ProveError>, usize) {
        let device = Device::new(Noop::new(1 << 10));
        let (stream, buffer) = (device.stream().unwrap(), device.alloc(64).unwrap());
        let mut clock = Clock::new(&stream).unwrap();
        for stage in [Stage::Evaluate, Stage::Quotient] {
            stream.fill_zero(&buffer, 0, 64).unwrap();
            clock.mark(stage).unwrap();
        }
        let result = wanted.go_on(&clock);
        // A question is answered before the device goes one step for it: the first operation is asked for first.
        (result, clock.spans.iter().take_while(|span| span.end.is_done().unwrap()).count())
    }

    fn pace(quotient: Duration) -> Pace {
        let pace = Pace::default();
        pace.remember(&vec![(Stage::Quotient, quotient)]);
        pace
    }

    /// A device that works only while somebody waits shows what was waited for.
    #[test]
    fn a_proof_that_can_be_cancelled_waits_for_what_runs_unless_it_is_short_or_its_end_is_near() {
        let go = || false;
        let go = Some(&go as &dyn Fn() -> bool);
        let (unknown, short) = (Pace::default(), pace(MARGIN));
        for (cancelled, log_n, pace, ended) in [
            (go, LONG_LOG_N, &unknown, 2),
            (go, LONG_LOG_N, &short, 1),
            (go, LONG_LOG_N - 1, &unknown, 1),
            (None, LONG_LOG_N, &unknown, 0),
        ] {
            let (result, seen) = ended_after(Wanted::new(cancelled, log_n, pace));
            assert!(result.is_ok());
            assert_eq!(seen, ended, "asks: {}, 2^{log_n}", cancelled.is_some());
        }
    }

    /// This device goes one step for each question whether it is done.
    #[test]
    fn an_operation_that_ends_before_its_time_is_noticed() {
        let go = || false;
        let long = pace(Duration::from_secs(3600));
        let (result, seen) = ended_after(Wanted::new(Some(&go), LONG_LOG_N, &long));
        assert!(result.is_ok());
        assert_eq!(seen, 2);
    }

    #[test]
    fn a_proof_that_is_cancelled_while_an_operation_runs_enqueues_no_other() {
        // Before the first wait, before the first look, and while the operation runs.
        for asked in 0..3 {
            let times = Cell::new(0);
            let cancelled = || times.replace(times.get() + 1) >= asked;
            let long = pace(Duration::from_secs(3600));
            let (result, seen) = ended_after(Wanted::new(Some(&cancelled), LONG_LOG_N, &long));
            assert!(matches!(result, Err(ProveError::Cancelled)), "after {asked} questions");
            assert_eq!(seen, 2, "what runs is waited for");
        }
    }
}
