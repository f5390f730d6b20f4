//! Pauses between attempts: exponential, with jitter, under a limit.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// How much longer it is tried.
pub(super) struct Patience {
    started: Instant,
    limit: Duration,
    next: Duration,
    attempts: u32,
}

impl Patience {
    /// Before the first attempt.
    pub(super) fn new(limit: Duration) -> Self {
        Self { started: Instant::now(), limit, next: FIRST, attempts: 1 }
    }

    /// Sleeps before the next attempt, `at_most` if that is less; false at once if there shall be none.
    pub(super) async fn pause(&mut self, at_most: Option<Duration>) -> bool {
        let left = self.limit.saturating_sub(self.started.elapsed());
        let left = at_most.map_or(left, |most| left.min(most));
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(jittered(self.next).min(left)).await;
        self.next = (self.next * 2).min(LONGEST);
        self.attempts += 1;
        true
    }

    /// Attempts so far, and the time that they took.
    pub(super) fn spent(&self) -> (u32, Duration) {
        (self.attempts, self.started.elapsed())
    }
}

/// From half of a pause to all of it, so that clients which lost the same server do not return in step.
fn jittered(pause: Duration) -> Duration {
    // The standard library keys its hash maps at random: randomness enough for a pause.
    let random = RandomState::new().hash_one(0u8) as u32;
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_stays_between_half_and_all() {
        let pauses: Vec<_> = (0..100).map(|_| jittered(LONGEST)).collect();
        assert!(pauses.iter().all(|p| (LONGEST / 2..=LONGEST).contains(p)), "{pauses:?}");
        assert!(pauses.iter().any(|p| p != &pauses[0]), "they differ");
    }

    #[tokio::test]
    async fn pauses_grow_and_end_with_the_limit() {
        let mut patience = Patience::new(Duration::ZERO);
        assert!(!patience.pause(None).await);
        let mut patience = Patience::new(Duration::from_secs(3600));
        for (attempts, next) in [(2, 100), (3, 200), (4, 400)] {
            assert!(patience.pause(Some(Duration::from_millis(1))).await);
            assert_eq!((patience.spent().0, patience.next), (attempts, Duration::from_millis(next)));
        }
        for _ in 0..5 {
            assert!(patience.pause(Some(Duration::from_nanos(1))).await);
        }
        assert_eq!(patience.next, LONGEST);
        assert!(!patience.pause(Some(Duration::ZERO)).await);
        assert_eq!(patience.spent().0, 9);
    }
}
