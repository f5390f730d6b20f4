//! Time that holds when the wall clock is set.
//!
//! * **Deadlines and durations across a restart** are counted by the clock that runs since the machine's boot, if the
//!   boot is still the same: nobody sets it. After another boot only the wall clock is left: then time that has passed
//!   is what it says, and none if it stands before the acceptance.
//! * **Age.** An ended job is old when it was so by the wall clock during all of the last hour of this process: see
//!   [`Agreed`].

use std::{
    collections::VecDeque,
    fs,
    sync::LazyLock,
    time::{Duration, Instant},
};

/// A moment by the clock that runs since a boot of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SinceBoot {
    /// Which boot; empty: it is not known.
    pub(crate) boot: String,
    pub(crate) ms: u64,
}

impl SinceBoot {
    /// Now; of an unknown boot where the system does not say.
    pub(crate) fn now() -> Self {
        static BOOT: LazyLock<String> = LazyLock::new(|| {
            let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            id.trim().to_owned()
        });
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        match uptime.split(' ').next().and_then(|seconds| seconds.parse::<f64>().ok()) {
            Some(seconds) => Self { boot: BOOT.clone(), ms: (seconds * 1000.0) as u64 },
            None => Self::default(),
        }
    }

    /// Since an earlier moment of the same boot.
    fn since(&self, earlier: &Self) -> Option<Duration> {
        let same = !self.boot.is_empty() && self.boot == earlier.boot;
        self.ms.checked_sub(earlier.ms).filter(|_| same).map(Duration::from_millis)
    }
}

/// A moment by both clocks; the wall clock's in milliseconds since 1970.
pub(crate) struct Moment<'a> {
    pub(crate) since_boot: &'a SinceBoot,
    pub(crate) wall_ms: u64,
}

/// From an earlier moment to a later one.
pub(crate) fn elapsed(earlier: &Moment<'_>, later: &Moment<'_>) -> Duration {
    let by_wall = || Duration::from_millis(later.wall_ms.saturating_sub(earlier.wall_ms));
    later.since_boot.since(earlier.since_boot).unwrap_or_else(by_wall)
}

/// How long something must have been old by the wall clock, while this process ran, until it is.
const LONG_ENOUGH: Duration = Duration::from_secs(3600);

/// What the wall clock has agreed to for long enough. A clock that is ahead for less than that makes nothing old.
#[derive(Default)]
pub(crate) struct Agreed {
    /// What it said and when that was, from the newest moment that is long enough ago on.
    seen: VecDeque<(Instant, u64)>,
}

impl Agreed {
    /// What the wall clock says now, in milliseconds since 1970. Returns the least that it has said for long enough, if
    /// it was looked at for so long; to be called several times within that.
    pub(crate) fn note(&mut self, now: Instant, wall_ms: u64) -> Option<u64> {
        self.seen.push_back((now, wall_ms));
        let long_ago = |at: &Instant| now.duration_since(*at) >= LONG_ENOUGH;
        while self.seen.get(1).is_some_and(|(at, _)| long_ago(at)) {
            self.seen.pop_front();
        }
        self.seen.front().filter(|(at, _)| long_ago(at))?;
        self.seen.iter().map(|(_, wall_ms)| *wall_ms).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_by_the_clock_that_nobody_sets() {
        let boot = |boot: &str, ms| SinceBoot { boot: boot.to_owned(), ms };
        let passed = |earlier: (SinceBoot, u64), later: (SinceBoot, u64)| {
            let moment = |moment: &(SinceBoot, u64)| {
                elapsed(
                    &Moment { since_boot: &earlier.0, wall_ms: earlier.1 },
                    &Moment { since_boot: &moment.0, wall_ms: moment.1 },
                )
            };
            moment(&later).as_millis()
        };
        // The clock was set by a year, forth and back.
        assert_eq!(passed((boot("a", 10), 1000), (boot("a", 15), 31_536_001_000)), 5);
        assert_eq!(passed((boot("a", 10), 31_536_001_000), (boot("a", 15), 1000)), 5);
        // After another boot, or if it is not known, the wall clock is all there is.
        for (earlier, later) in [("a", "b"), ("", "b"), ("a", ""), ("", "")] {
            assert_eq!(passed((boot(earlier, 10), 1000), (boot(later, 15), 1700)), 700);
            assert_eq!(passed((boot(earlier, 10), 1000), (boot(later, 15), 300)), 0);
        }
        // A container may count from its own start.
        assert_eq!(passed((boot("a", 10), 1000), (boot("a", 9), 1700)), 700);
        let now = SinceBoot::now();
        assert!(SinceBoot::now().since(&now).is_some_and(|passed| passed < Duration::from_secs(60)), "{now:?}");
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_while_makes_nothing_old() {
        let (start, mut agreed) = (Instant::now(), Agreed::default());
        let mut note = |minutes: u64, wall_ms| agreed.note(start + Duration::from_secs(60 * minutes), wall_ms);
        for minutes in (0..60).step_by(10) {
            assert_eq!(note(minutes, 1000 + minutes), None, "after {minutes} minutes");
        }
        assert_eq!(note(60, 1060), Some(1000));
        assert_eq!(note(70, 1070), Some(1010));
        // Fifty minutes ahead.
        for minutes in (80..130).step_by(10) {
            assert!(note(minutes, 1_000_000_000).is_some_and(|agreed| agreed < 1100));
        }
        // An hour behind counts at once.
        assert_eq!(note(130, 5), Some(5));
        for minutes in (140..190).step_by(10) {
            assert_eq!(note(minutes, 1000 + minutes), Some(5));
        }
        assert_eq!(note(190, 1190), Some(5));
        assert_eq!(note(200, 1200), Some(1140));
    }
}
