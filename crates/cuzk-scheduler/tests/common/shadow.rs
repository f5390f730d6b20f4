//! The second bookkeeping: naive, from actions and events alone, and compared with the scheduler after each event.

use std::collections::{BTreeMap, BTreeSet};

use cuzk_scheduler::*;

/// A partition as an onlooker sees it.
#[derive(Clone, Debug, Default)]
struct Seen {
    attempt: u32,
    /// Where its last action put it.
    stage: &'static str,
    device: Option<DeviceId>,
    done: bool,
    bytes: PartitionBytes,
    /// As of its admission.
    profile: Option<CircuitProfile>,
}

#[derive(Debug)]
struct SeenJob {
    request: JobRequest,
    arrival: usize,
    partitions: Vec<Seen>,
    ending: bool,
}

#[derive(Debug)]
pub(crate) struct Shadow {
    config: Config,
    capacities: BTreeMap<Pool, u64>,
    workers: usize,
    profiles: BTreeMap<CircuitId, CircuitProfile>,
    synthesis_peaks: BTreeMap<CircuitId, u64>,
    jobs: BTreeMap<JobId, SeenJob>,
    ended: BTreeSet<JobId>,
    arrivals: usize,
    keys: BTreeMap<(CircuitId, Pool), u64>,
    /// Whether all starts of syntheses must be in strict order: nothing groups, loads or excludes.
    pub(crate) strict: bool,
    pub(crate) starts: usize,
    pub(crate) finished: usize,
}

impl Shadow {
    pub(crate) fn new(config: &Config, resources: &Resources) -> Self {
        let devices = resources.device_ids().map(Pool::Device);
        let pools = [Pool::Host, Pool::Pinned].into_iter().chain(devices);
        Self {
            capacities: pools.map(|p| (p, resources.capacity(p))).collect(),
            workers: match config.partition_workers {
                Workers::Fixed(n) => n,
                Workers::Auto => 1,
            },
            strict: !config.sort_by_type,
            config: config.clone(),
            profiles: BTreeMap::new(),
            synthesis_peaks: BTreeMap::new(),
            jobs: BTreeMap::new(),
            ended: BTreeSet::new(),
            arrivals: 0,
            keys: BTreeMap::new(),
            starts: 0,
            finished: 0,
        }
    }

    pub(crate) fn profile(&self, circuit: CircuitId) -> &CircuitProfile {
        &self.profiles[&circuit]
    }

    fn seen(&mut self, ticket: Ticket) -> &mut Seen {
        let PartitionId { job, index } = ticket.partition;
        let job = self.jobs.get_mut(&job).unwrap_or_else(|| panic!("{ticket} of a job that has ended"));
        let seen = &mut job.partitions[index as usize];
        assert!(!seen.done, "{ticket} is done");
        seen
    }

    /// The partition of an action, which must be at `from`; the attempt must be the current one, or the next of one
    /// that was returned.
    fn step(&mut self, ticket: Ticket, from: &[&str], to: &'static str) -> &mut Seen {
        let seen = self.seen(ticket);
        assert_eq!(seen.attempt, ticket.attempt, "{ticket} at {}", seen.stage);
        assert!(from.contains(&seen.stage), "{ticket} goes from {} to {to}", seen.stage);
        seen.stage = to;
        seen
    }

    /// What is measured counts, and a sixteenth more.
    fn go_by_peak(&mut self, circuit: CircuitId) {
        if let Some((peak, profile)) = self.synthesis_peaks.get(&circuit).zip(self.profiles.get_mut(&circuit)) {
            let witness = profile.partition.synthesized.host;
            profile.partition.synthesis.host = witness.max(peak + peak / 16);
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::CircuitKnown { circuit, profile } => {
                self.strict &= profile.key == KeyBytes::default();
                self.profiles.insert(*circuit, profile.clone());
                self.go_by_peak(*circuit);
            }
            Event::SynthesisMeasured { circuit, bytes } => {
                let peak = self.synthesis_peaks.entry(*circuit).or_default();
                *peak = (*peak).max(*bytes);
                self.go_by_peak(*circuit);
            }
            Event::JobSubmitted(request) => {
                let partitions = vec![Seen { stage: "pending", ..Seen::default() }; request.partitions as usize];
                let (arrival, request) = (self.arrivals, request.clone());
                self.arrivals += 1;
                self.jobs.insert(request.job, SeenJob { request, arrival, partitions, ending: false });
            }
            Event::Cancelled { job } => self.ending(*job),
            Event::Shutdown { cancel: true } => {
                self.jobs.keys().copied().collect::<Vec<_>>().into_iter().for_each(|j| self.ending(j))
            }
            Event::WitnessReady { ticket } => _ = self.step(*ticket, &["synthesis"], "synthesized"),
            Event::SendDone { ticket } => _ = self.step(*ticket, &["sending"], "queued"),
            Event::DevicePrepared { ticket } => _ = self.step(*ticket, &["preparing"], "prepared"),
            Event::StartReturned { ticket } => _ = self.step(*ticket, &["running"], "finishing"),
            Event::FinishDone { ticket } => {
                self.finished += 1;
                let seen = self.step(*ticket, &["finishing"], "over");
                seen.done = true;
            }
            Event::Stopped { ticket } => {
                let seen = self.seen(*ticket);
                assert_eq!(seen.stage, "aborting");
                seen.stage = "over";
            }
            Event::Failed { ticket, .. } => {
                let seen = self.seen(*ticket);
                let (keeps, aborted) =
                    (["preparing", "prepared", "running"].contains(&seen.stage), seen.stage == "aborting");
                seen.attempt += 1;
                seen.device = None;
                seen.stage = if aborted {
                    "over"
                } else if keeps {
                    "queued"
                } else {
                    "pending"
                };
            }
            Event::KeyEvicted { circuit, pool } => _ = self.keys.remove(&(*circuit, *pool)).unwrap(),
            Event::KeyLoadFailed { circuit, pool, .. } => _ = self.keys.remove(&(*circuit, *pool)).unwrap(),
            _ => {}
        }
    }

    fn ending(&mut self, job: JobId) {
        let Some(job) = self.jobs.get_mut(&job) else { return };
        job.ending = true;
        job.partitions.iter_mut().filter(|p| p.stage == "pending").for_each(|p| p.stage = "over");
    }

    pub(crate) fn action(&mut self, action: &Action) {
        match action {
            Action::StartSynthesis { ticket } => {
                if self.strict {
                    self.check_order(ticket.partition);
                }
                self.starts += 1;
                let circuit = self.jobs[&ticket.partition.job].request.circuit;
                let profile = self.profiles[&circuit].clone();
                let seen = self.step(*ticket, &["pending"], "synthesis");
                (seen.bytes, seen.profile) = (profile.partition, Some(profile));
            }
            Action::Send { ticket } => _ = self.step(*ticket, &["synthesized"], "sending"),
            Action::AwaitKey { ticket, .. } => assert_eq!(self.seen(*ticket).stage, "queued"),
            Action::Prepare { ticket, device } => self.step(*ticket, &["queued"], "preparing").device = Some(*device),
            Action::Start { device, batch } => {
                assert!(!batch.is_empty());
                for ticket in batch {
                    let seen = self.step(*ticket, &["prepared"], "running");
                    assert_eq!(seen.device, Some(*device), "it stays on its device");
                }
            }
            Action::Finish { ticket } => assert_eq!(self.seen(*ticket).stage, "finishing"),
            Action::AbortPartition { ticket } => {
                let seen = self.seen(*ticket);
                assert_ne!(seen.stage, "pending", "only what is under way is aborted");
                seen.stage = "aborting";
                let job = ticket.partition.job;
                self.ending(job);
            }
            Action::Abandon { ticket, device } => {
                let seen = self.seen(*ticket);
                assert_eq!((seen.attempt, seen.device), (ticket.attempt, Some(*device)));
                (seen.attempt, seen.device, seen.stage) = (ticket.attempt + 1, None, "queued");
            }
            Action::LoadKey { circuit, pool } => {
                let bytes = self.profiles[circuit].key_in(*pool).unwrap();
                self.keys.insert((*circuit, *pool), bytes);
            }
            Action::EvictKey { circuit, pool } => self.check_unused(*circuit, *pool),
            Action::RunSelfTest { device } => self.keys.retain(|(_, p), _| *p != Pool::Device(*device)),
            Action::SetPartitionWorkers { choice } => self.workers = choice.workers,
            Action::CompleteJob { job } => {
                let job = self.end(*job);
                assert!(job.partitions.iter().all(|p| p.done), "a completed job has all its proofs");
            }
            Action::FailJob { job, .. } | Action::CancelledJob { job } => {
                let job = self.end(*job);
                assert!(
                    job.partitions.iter().all(|p| matches!(p.stage, "over" | "pending")),
                    "all of it has stopped: {job:?}"
                );
            }
            Action::RefuseJob { job, .. } => _ = self.end(*job),
            _ => {}
        }
    }

    fn end(&mut self, job: JobId) -> SeenJob {
        assert!(self.ended.insert(job), "{job} ends once");
        self.jobs.remove(&job).unwrap()
    }

    /// Nothing that could be synthesized comes before it in the order.
    fn check_order(&self, id: PartitionId) {
        let rank = |job: &SeenJob, index: u32| (job.request.priority, job.arrival, index);
        let own = rank(&self.jobs[&id.job], id.index);
        for job in self.jobs.values().filter(|j| !j.ending) {
            for (index, seen) in job.partitions.iter().enumerate() {
                let before = seen.stage == "pending" && rank(job, index as u32) < own;
                assert!(!before, "{id} is synthesized before partition {index} of {}", job.request.job);
            }
        }
    }

    fn check_unused(&self, circuit: CircuitId, pool: Pool) {
        for job in self.jobs.values().filter(|j| j.request.circuit == circuit) {
            for p in &job.partitions {
                let used = match pool {
                    Pool::Device(d) => matches!(p.stage, "preparing" | "prepared" | "running") && p.device == Some(d),
                    _ => !matches!(p.stage, "pending" | "over"),
                };
                assert!(
                    !used,
                    "the key of {circuit} leaves {pool} memory, where a partition that is {} uses it",
                    p.stage
                );
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Seen> {
        self.jobs.values().flat_map(|j| &j.partitions)
    }

    fn count(&self, stages: &[&str]) -> usize {
        self.all().filter(|p| stages.contains(&p.stage)).count()
    }

    /// What one can know from outside, against what the scheduler says.
    pub(crate) fn check(&self, scheduler: &Scheduler) {
        let counts = scheduler.counts();
        let critical = self.config.critical_permits;
        // Aborted partitions may be anywhere: the bounds are on those that go on.
        let synthesizing = self.count(&["synthesis"]);
        assert!(synthesizing <= counts.synthesizing);
        let before_queue = match self.config.permit {
            PermitScope::Synthesis => synthesizing,
            PermitScope::Send => self.count(&["synthesis", "synthesized", "sending"]),
            PermitScope::Proved => {
                self.count(&["synthesis", "synthesized", "sending", "queued", "preparing", "prepared", "running"])
            }
        };
        // Fewer workers than before are fewer for those to come.
        if self.config.partition_workers != Workers::Auto {
            assert!(before_queue <= self.workers + critical, "{before_queue} hold a permit of {}", self.workers);
            assert!(counts.places <= counts.queue_capacity + critical);
        }
        for (pool, capacity) in &self.capacities {
            let usage = scheduler.budget().usage(*pool).unwrap();
            assert!(usage.in_use <= *capacity && usage.high_water <= *capacity);
            let keys: u64 = self.keys.iter().filter(|((_, p), _)| p == pool).map(|(_, b)| b).sum();
            let held: u64 = self.all().map(|p| self.least(p, *pool)).sum();
            let held = held + self.least_under_lock(*pool);
            let in_use = usage.in_use;
            assert!(
                keys + held <= in_use,
                "{pool}: {keys} of keys and {held} of partitions, but {in_use} are reserved"
            );
            if let Pool::Device(device) = pool {
                let here = |p: &&Seen| p.device == Some(*device);
                let running = self.all().filter(here).filter(|p| p.stage == "running").count();
                assert!(running <= self.config.max_batch, "one holder of the lock of {device}");
                let slots = self.all().filter(here).filter(|p| matches!(p.stage, "preparing" | "prepared" | "running"));
                assert!(slots.count() <= self.config.gpu_workers_per_device + 1);
                let computes = scheduler.idle_reason(*device).is_none();
                assert!(running == 0 || computes, "{device} computes");
            }
        }
        if self.jobs.is_empty() {
            for pool in self.capacities.keys() {
                let keys: u64 = self.keys.iter().filter(|((_, p), _)| p == pool).map(|(_, b)| b).sum();
                assert_eq!(
                    scheduler.budget().usage(*pool).unwrap().in_use,
                    keys,
                    "only keys are left in {pool} memory"
                );
            }
        }
    }

    /// Bytes that must be reserved for the holder of a device's lock at the least, beyond what it had when it was
    /// prepared.
    fn least_under_lock(&self, pool: Pool) -> u64 {
        let Pool::Device(device) = pool else { return 0 };
        let holders = self.all().filter(|p| p.device == Some(device) && p.stage == "running");
        let needs = holders.map(|p| p.profile.as_ref().unwrap().on_device(device));
        needs.map(|n| n.running.saturating_sub(n.prepared)).max().unwrap_or(0)
    }

    /// Bytes that must be reserved for a partition at the least: what it holds at its stage.
    fn least(&self, p: &Seen, pool: Pool) -> u64 {
        let bytes = &p.bytes;
        let of = |b: HostBytes| if pool == Pool::Host { b.host } else { b.pinned };
        match (pool, p.stage) {
            (Pool::Device(d), "preparing" | "prepared" | "running") if p.device == Some(d) => {
                p.profile.as_ref().unwrap().on_device(d).prepared
            }
            (Pool::Device(_), _) => 0,
            (_, "synthesis") => of(bytes.synthesis),
            (_, "synthesized" | "sending" | "queued" | "preparing" | "prepared" | "running") => of(bytes.synthesized),
            (_, "finishing") => of(bytes.finishing),
            _ => 0,
        }
    }
}
