//! What goes wrong again and again is told now and then.

use std::time::{Duration, Instant};

/// Between two lines about the same.
const EVERY: Duration = Duration::from_secs(60);

/// Counts events of one kind, of which the first is told and then one a minute.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    told: Option<Instant>,
    untold: u64,
}

impl Seldom {
    /// It has happened. Returns how often since it was told last, this time included, if it is to be told now.
    pub(crate) fn happened(&mut self, now: Instant) -> Option<u64> {
        self.untold += 1;
        if self.told.is_some_and(|told| now.duration_since(told) < EVERY) {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_and_then_counted() {
        let (start, mut seldom) = (Instant::now(), Seldom::default());
        let told: Vec<_> = (0..1300)
            .filter_map(|tenth| seldom.happened(start + Duration::from_millis(100 * tenth)).map(|count| (tenth, count)))
            .collect();
        assert_eq!(told, [(0, 1), (600, 600), (1200, 600)]);
    }
}
