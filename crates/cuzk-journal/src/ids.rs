//! Ids of jobs: a number, and a random half that is another one after each opening of the journal.
//!
//! Numbers alone come again when an older copy of the database is put back: then somebody who asks for a job of the
//! time since would be answered with another one. So each opening draws a random half for the numbers from there on. It
//! is written with the first job that gets it; where a job's number stands between those that are written says which
//! half its id has.

use std::collections::{BTreeMap, BTreeSet};

/// The random halves, by the first number that has them.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    /// Of the numbers below the first entry.
    base: u32,
    from: BTreeMap<u64, u32>,
}

impl Epochs {
    pub(crate) fn new(base: u32) -> Self {
        Self { base, from: BTreeMap::new() }
    }

    /// The numbers from `first` on have this half.
    pub(crate) fn insert(&mut self, first: u64, random: u32) {
        self.from.insert(first, random);
    }

    /// The id of a number.
    pub(crate) fn id(&self, number: u64) -> String {
        let random = self.from.range(..=number).next_back().map_or(self.base, |(_, random)| *random);
        format!("{random:08x}-{number}")
    }

    /// The number of an id that is written as this writes it.
    pub(crate) fn number(&self, id: &str) -> Option<u64> {
        let (_, number) = id.split_once('-')?;
        number.parse().ok().filter(|number: &u64| self.id(*number) == id)
    }

    /// Entries below `next` that count for none of these numbers.
    pub(crate) fn unused(&self, numbers: &BTreeSet<u64>, next: u64) -> Vec<u64> {
        let ends = self.from.keys().copied().skip(1).chain([next]);
        let ranges = self.from.keys().copied().zip(ends).filter(|(first, _)| *first < next);
        ranges.filter(|(first, end)| numbers.range(first..end).next().is_none()).map(|(first, _)| first).collect()
    }
}

/// A random half.
pub(crate) fn random() -> u32 {
    rand_core::RngCore::next_u32(&mut rand_core::OsRng)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_half_of_its_time() {
        let mut epochs = Epochs::new(1);
        epochs.insert(5, 2);
        epochs.insert(9, 3);
        for (number, id) in
            [(1, "00000001-1"), (4, "00000001-4"), (5, "00000002-5"), (8, "00000002-8"), (9, "00000003-9")]
        {
            assert_eq!((epochs.id(number).as_str(), epochs.number(id)), (id, Some(number)));
        }
        for other in ["00000001-5", "00000002-4", "00000002-05", "2-5", "00000002", "00000002-+5", "", "-"] {
            assert_eq!(epochs.number(other), None, "{other}");
        }
    }

    #[test]
    fn halves_without_jobs_are_found() {
        let mut epochs = Epochs::new(1);
        for first in [5, 9, 20] {
            epochs.insert(first, 7);
        }
        assert_eq!(epochs.unused(&[4, 8, 20].into(), 30), [9]);
        assert_eq!(epochs.unused(&[9, 19].into(), 20), [5]);
        assert_eq!(epochs.unused(&BTreeSet::new(), 30), [5, 9, 20]);
    }
}
