//! Nanoseconds, and how times are written for people.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
    time::Duration,
};

use serde::{Deserialize, Serialize};

/// Nanoseconds: a moment since the recorder's start, or a length of time. Sums and differences saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start, and an empty length.
    pub const ZERO: Self = Self(0);

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Seconds as nanoseconds; negative and not-a-number become zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates at both ends and maps not-a-number to zero.
        Self((seconds * 1e9).round() as u64)
    }

    /// This part of `whole`, from 0 to 1; zero of an empty whole.
    pub fn share_of(self, whole: Self) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    /// `"831 ns"`, `"4.10 ms"`, `"1.82 s"`, `"12 min 05 s"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            ns @ 0..1_000 => format!("{ns} ns"),
            ns @ 1_000..1_000_000 => format!("{} µs", three_digits(ns as f64 / 1e3)),
            ns @ 1_000_000..1_000_000_000 => format!("{} ms", three_digits(ns as f64 / 1e6)),
            ns @ 1_000_000_000..120_000_000_000 => format!("{} s", three_digits(ns as f64 / 1e9)),
            ns => {
                let seconds = ns.saturating_add(500_000_000) / 1_000_000_000;
                format!("{} min {:02} s", seconds / 60, seconds % 60)
            }
        };
        f.pad(&text)
    }
}

fn three_digits(value: f64) -> String {
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn times_for_people() {
        let show = |ns| Nanos(ns).to_string();
        assert_eq!(show(831), "831 ns");
        assert_eq!(show(1_500), "1.50 µs");
        assert_eq!(show(4_100_000), "4.10 ms");
        assert_eq!(show(41_600_000), "41.6 ms");
        assert_eq!(show(1_820_000_000), "1.82 s");
        assert_eq!(show(119_400_000_000), "119 s");
        assert_eq!(show(725_000_000_000), "12 min 05 s");
        assert_eq!(format!("[{:>8}]", Nanos(5)), "[    5 ns]");
    }

    #[test]
    fn seconds_saturate() {
        assert_eq!(Nanos::from_secs_f64(1.5), Nanos(1_500_000_000));
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(1e30), Nanos(u64::MAX));
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos(u64::MAX) + Nanos(5), Nanos(u64::MAX));
    }
}
