//! Everything that must hold between two events, computed anew from what the partitions hold.

use std::collections::BTreeMap;

use super::Scheduler;
use crate::{PermitScope, Pool, Priority, Reservation, Stage, job::Partition};

/// A number that is kept and the same number computed anew, which differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {kept} where {counted} follows from the partitions")]
pub struct AuditError {
    /// Which number.
    pub what: String,
    /// As the scheduler keeps it.
    pub kept: u64,
    /// As it should be.
    pub counted: u64,
}

fn equal(what: impl Into<String>, kept: u64, counted: u64) -> Result<(), AuditError> {
    if kept == counted { Ok(()) } else { Err(AuditError { what: what.into(), kept, counted }) }
}

fn at_most(what: impl Into<String>, kept: u64, most: u64) -> Result<(), AuditError> {
    if kept <= most { Ok(()) } else { Err(AuditError { what: what.into(), kept, counted: most }) }
}

impl Scheduler {
    /// Checks the whole state against itself, in time linear in the number of partitions. For tests, and for an engine
    /// that suspects something; it never fails unless there is a mistake in this crate.
    ///
    /// # Errors
    /// The first number that is wrong.
    pub fn audit(&self) -> Result<(), AuditError> {
        self.audit_memory()?;
        self.audit_places()?;
        self.audit_devices()?;
        self.audit_keys()
    }

    fn all(&self) -> impl Iterator<Item = &Partition> {
        self.jobs.values().flat_map(|j| &j.partitions)
    }

    fn count(&self, wanted: impl Fn(&Partition) -> bool) -> u64 {
        self.all().filter(|p| wanted(p)).count() as u64
    }

    fn audit_memory(&self) -> Result<(), AuditError> {
        let mut held: BTreeMap<Pool, u64> = BTreeMap::new();
        for p in self.all() {
            for r in [&p.host, &p.pinned, &p.device].into_iter().flatten() {
                *held.entry(Reservation::pool(r)).or_default() += r.bytes();
            }
            let holds = u64::from(p.host.is_some() || p.pinned.is_some() || p.device.is_some() || p.permit || p.place);
            if p.stage == Stage::Pending || p.stage.is_over() {
                equal(format!("holdings of a partition that is {}", p.stage), holds, 0)?;
            }
            equal("device memory outside of a device", u64::from(p.device.is_some() && p.stage.device().is_none()), 0)?;
        }
        for key in self.residency.status() {
            *held.entry(key.pool).or_default() += key.bytes;
        }
        for d in &self.devices {
            *held.entry(d.pool()).or_default() += d.bytes_under_lock();
            let what = format!("memory for the holder of the lock of {}", d.id);
            equal(what, d.bytes_under_lock(), self.most_under_lock(d.id))?;
        }
        for (pool, usage) in self.budget.pools() {
            equal(format!("reserved {pool} memory"), usage.in_use, held.get(&pool).copied().unwrap_or(0))?;
            at_most(format!("peak of {pool} memory"), usage.high_water, usage.capacity)?;
        }
        Ok(())
    }

    fn audit_places(&self) -> Result<(), AuditError> {
        let at = |stage| self.count(move |p| p.stage == stage);
        equal("permits", self.permits as u64, self.count(|p| p.permit))?;
        equal("places", self.places as u64, self.count(|p| p.place))?;
        let critical = self.jobs.values().filter(|j| j.request.priority == Priority::Critical);
        let critical = critical.flat_map(|j| &j.partitions).filter(|p| p.place).count();
        equal("places of CRITICAL partitions", self.critical_places as u64, critical as u64)?;
        equal("syntheses", self.synthesizing as u64, at(Stage::Synthesizing))?;
        equal("queue", self.queue.len() as u64, at(Stage::Queued))?;
        equal("witnesses without a place", self.synthesized.len() as u64, at(Stage::Synthesized))?;
        let without = |p: &Partition| {
            let early = matches!(p.stage, Stage::Synthesizing);
            let sending = matches!(p.stage, Stage::Synthesized | Stage::Sending);
            !p.permit && (early || sending && self.config.permit != PermitScope::Synthesis)
        };
        equal("partitions in synthesis or being sent without a permit", self.count(without), 0)?;
        let lingering = |p: &Partition| {
            p.permit
                && self.config.permit == PermitScope::Send
                && (p.stage == Stage::Queued || p.stage.device().is_some())
        };
        equal("permits held beyond the send", self.count(lingering), 0)
    }

    fn audit_devices(&self) -> Result<(), AuditError> {
        for d in &self.devices {
            let here = self.count(|p| p.stage.device_slot() == Some(d.id));
            equal(format!("slots of {}", d.id), d.assigned.len() as u64, here)?;
            let critical = d.assigned.keys().filter(|r| r.priority == Priority::Critical).count();
            let extra = usize::from(critical > 0);
            at_most(format!("slots of {}", d.id), here, (self.config.gpu_workers_per_device + extra) as u64)?;
            let running = self.count(|p| p.stage == Stage::Running(d.id));
            equal(format!("holders of the lock of {}", d.id), d.running.len() as u64, running)?;
            at_most(format!("holders of the lock of {}", d.id), running, self.config.max_batch as u64)?;
            equal(format!("work on a device that is fenced, {}", d.id), u64::from(!d.is_healthy() && here > 0), 0)?;
        }
        Ok(())
    }

    fn audit_keys(&self) -> Result<(), AuditError> {
        for key in self.residency.status() {
            let users = self.jobs.values().filter(|j| j.request.circuit == key.circuit).flat_map(|j| &j.partitions);
            let uses = |p: &&Partition| match key.pool {
                Pool::Device(d) => p.device_key == Some(d),
                pool => p.shared_key && p.key.in_pool(pool).is_some(),
            };
            let what = format!("users of the key of {} in {} memory", key.circuit, key.pool);
            equal(what, u64::from(key.users), users.filter(uses).count() as u64)?;
        }
        let at_work = |s| matches!(s, Stage::Preparing(_) | Stage::Prepared(_) | Stage::Running(_));
        for job in self.jobs.values() {
            let needs_key = |p: &&Partition| p.stage.device().is_some_and(|d| p.on_device(d).key.is_some());
            for p in job.partitions.iter().filter(|p| at_work(p.stage)).filter(needs_key) {
                let circuit = job.request.circuit;
                let here =
                    |d| self.residency.status().any(|k| k.circuit == circuit && k.pool == Pool::Device(d) && k.loaded);
                equal("partitions at work without their key", u64::from(!p.stage.device().is_some_and(here)), 0)?;
            }
        }
        Ok(())
    }
}
