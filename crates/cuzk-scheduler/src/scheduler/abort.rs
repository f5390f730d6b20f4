//! Ends: of partitions and jobs, wanted or not, and everything that they give back.

use super::Scheduler;
use crate::{
    Action, JobId, PartitionId, Pool, Stage, Time,
    job::{Ending, Job},
};

impl Scheduler {
    /// Stops what a job has under way. The job ends when all of that has stopped.
    pub(super) fn end_job(&mut self, now: Time, id: JobId, ending: Ending, out: &mut Vec<Action>) {
        let Some(job) = self.jobs.get_mut(&id).filter(|j| j.ending.is_none()) else { return };
        job.ending = Some(ending);
        for index in 0..job.request.partitions {
            self.abort(now, PartitionId { job: id, index }, out);
        }
        self.report_if_over(id, out);
    }

    fn abort(&mut self, now: Time, id: PartitionId, out: &mut Vec<Action>) {
        let Some((rank, p)) = self.rank(id).zip(self.partition(id)) else { return };
        let stage = p.stage;
        if stage.is_over() || p.aborting {
            return;
        }
        match stage {
            Stage::Pending => return self.give_back_all(now, id, Stage::Dropped),
            Stage::Queued => {
                self.queue.remove(&rank);
                self.give_up_place(id);
            }
            Stage::Synthesized => {
                self.synthesized.remove(&rank);
            }
            Stage::AwaitingKey(_) => {
                self.leave_slot(id);
                self.release_device_key(now, id);
            }
            _ => {}
        }
        let at_rest = matches!(stage, Stage::Queued | Stage::Synthesized | Stage::AwaitingKey(_));
        if let Some(p) = self.partition_mut(id) {
            p.aborting = true;
            if at_rest {
                p.stage = Stage::Stopping;
                p.device = None;
            }
        }
        out.extend(self.ticket(id).map(|ticket| Action::AbortPartition { ticket }));
    }

    /// Nothing will happen to this partition any more: `stage` is how it ended.
    pub(super) fn partition_over(&mut self, now: Time, id: PartitionId, stage: Stage, out: &mut Vec<Action>) {
        self.give_back_all(now, id, stage);
        self.report_if_over(id.job, out);
    }

    /// Gives back all that a partition holds, and moves it to `stage`, where nothing is held.
    pub(super) fn give_back_all(&mut self, now: Time, id: PartitionId, stage: Stage) {
        let Some(circuit) = self.circuit_of(id) else { return };
        self.leave_slot(id);
        self.release_device_key(now, id);
        self.give_up_permit(id);
        self.give_up_place(id);
        if stage.is_over() {
            self.alone_on_host.remove(&id);
        }
        let Some(p) = self.partition_mut(id) else { return };
        let was_synthesizing = p.stage == Stage::Synthesizing;
        let key = p.key;
        let shared = std::mem::take(&mut p.shared_key);
        p.stage = stage;
        p.aborting = false;
        (p.host, p.pinned, p.device) = (None, None, None);
        self.synthesizing -= usize::from(was_synthesizing);
        for pool in [Pool::Host, Pool::Pinned] {
            if shared && key.in_pool(pool).is_some() {
                self.residency.release(now, circuit, pool);
            }
        }
    }

    /// Reports a job whose partitions are all over.
    fn report_if_over(&mut self, id: JobId, out: &mut Vec<Action>) {
        if !self.jobs.get(&id).is_some_and(|j| j.partitions.iter().all(|p| p.stage.is_over())) {
            return;
        }
        let Some(Job { request, arrival, ending, .. }) = self.jobs.remove(&id) else { return };
        self.order.remove(&(request.priority, arrival));
        out.push(match ending {
            None => Action::CompleteJob { job: id },
            Some(Ending::Cancelled) => Action::CancelledJob { job: id },
            Some(Ending::Failed(cause)) => Action::FailJob { job: id, cause },
        });
    }
}
