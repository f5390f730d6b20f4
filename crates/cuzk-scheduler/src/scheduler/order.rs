//! Who goes first: the strict order, and its one exception, for those who were overtaken too often.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{
    PartitionId, Priority,
    job::{Rank, Ranked},
};

impl Scheduler {
    /// The first of `candidates`, which are in strict order.
    ///
    /// That is the first in that order, unless one of the others was overtaken
    /// [`max_overtakes`](crate::Config::max_overtakes) times: then the one of those that waits longest. A CRITICAL one
    /// yields to it only right after another CRITICAL one had its turn (`after_critical`): so it waits for one kernel
    /// of somebody else at most, and a stream of them does not starve the others.
    pub(super) fn first_of(&self, candidates: &BTreeMap<Rank, PartitionId>, after_critical: bool) -> Option<Ranked> {
        let (&first, &id) = candidates.first_key_value()?;
        if first.priority == Priority::Critical && !after_critical {
            return Some((first, id));
        }
        let aged = candidates.iter().filter_map(|(rank, id)| {
            let p = self.partition(*id).filter(|p| p.overtaken >= self.config.max_overtakes)?;
            Some((p.ready, (*rank, *id)))
        });
        Some(aged.min().map_or((first, id), |(_, aged)| aged))
    }

    /// Whether it has been overtaken so often that it goes next.
    pub(super) fn is_due(&self, id: PartitionId) -> bool {
        self.partition(id).is_some_and(|p| p.overtaken >= self.config.max_overtakes)
    }

    /// `chosen` goes before `others`: those of lower priority whose witness was there before are overtaken.
    pub(super) fn note_overtaken(&mut self, chosen: Ranked, others: &BTreeMap<Rank, PartitionId>) {
        let Some(ready) = self.partition(chosen.1).map(|p| p.ready) else { return };
        for (rank, id) in others {
            if rank.priority > chosen.0.priority
                && let Some(p) = self.partition_mut(*id).filter(|p| p.ready < ready)
            {
                p.overtaken += 1;
            }
        }
    }

    /// `skipped` was first, but another one is taken because its key is there.
    pub(super) fn note_skipped(&mut self, skipped: PartitionId) {
        if let Some(p) = self.partition_mut(skipped) {
            p.overtaken += 1;
        }
    }
}
