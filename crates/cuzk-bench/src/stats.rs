//! Numbers that sum up many.

use std::time::Duration;

/// The distribution of some times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Distribution {
    /// Of some times; nothing of none.
    pub(crate) fn of(times: impl IntoIterator<Item = Duration>) -> Option<Self> {
        let mut seconds: Vec<f64> = times.into_iter().map(|t| t.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        let max = *seconds.last()?;
        let rank = |p: usize| seconds[nearest_rank(p, seconds.len())];
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        Some(Self { count: seconds.len(), mean, p50: rank(50), p95: rank(95), p99: rank(99), max })
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "count": self.count, "mean_s": self.mean, "p50_s": self.p50, "p95_s": self.p95, "p99_s": self.p99,
            "max_s": self.max,
        })
    }
}

/// The index of a percentile by nearest rank: the smallest value that at least p % of the values do not exceed. It is
/// always a value that occurred.
const fn nearest_rank(p: usize, count: usize) -> usize {
    let rank = (p * count).div_ceil(100);
    if rank == 0 { 0 } else { rank - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        // The example of Wikipedia's "Percentile": 15, 20, 35, 40, 50.
        for (p, value) in [(5, 15), (30, 20), (40, 20), (50, 35), (100, 50)] {
            assert_eq!([15, 20, 35, 40, 50][nearest_rank(p, 5)], value, "{p}");
        }
        let times = (1..=100).rev().map(Duration::from_secs);
        let all = Distribution::of(times).unwrap();
        assert_eq!((all.p50, all.p95, all.p99, all.max, all.mean, all.count), (50.0, 95.0, 99.0, 100.0, 50.5, 100));
        let one = Distribution::of([Duration::from_millis(1500)]).unwrap();
        assert_eq!((one.p50, one.p95, one.mean), (1.5, 1.5, 1.5));
        assert_eq!(Distribution::of([]), None);
    }
}
