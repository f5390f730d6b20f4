//! Attempts at partitions: each stage as a call, what came of it, and how one is stopped.

use std::{
    any::Any,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_backend::AssignmentShape;
use cuzk_curve::{Curve, repr};
use cuzk_r1cs::{Assignment, CheckError, R1cs};
use cuzk_scheduler::{DeviceId, Event, Fault, MeasuredStage, Ticket};
use cuzk_timeline::Outcome as End;

use super::{Owner, jobs::Held};
use crate::{
    calls::{Call, CallId, Lane, Purpose},
    device,
    message::{Measured, Outcome},
    progress::ProgressStage,
    report::Phase,
    workload::{Cancel, WitnessContext, Workload},
};

impl<C: Curve> Owner<C> {
    pub(super) fn synthesize(&mut self, ticket: Ticket) {
        self.enter(ticket, Some(Phase::Synthesis), End::Ok);
        let index = ticket.partition.index;
        let Some(job) = self.jobs.get_mut(&ticket.partition.job) else { return };
        let Some(circuit) = self.circuits.get_mut(&job.circuit) else { return };
        let Some(partition) = job.partitions.get_mut(index as usize) else { return };
        let cancel = Cancel::default();
        (partition.cancel, partition.device) = (cancel.clone(), None);
        partition.syntheses += 1;
        let matrices = if partition.suspect { circuit.matrices.clone() } else { None };
        let (used, largest) = (circuit.spare.pop(), circuit.plan.request.assignment);
        let workload = Arc::clone(&job.workload);
        let work = move || {
            if cancel.is_set() {
                return Outcome::Nothing;
            }
            let began = Instant::now();
            let mut context = WitnessContext { cancel, used, peak_bytes: None };
            let witness = witness(&*workload, index, &mut context, &largest, matrices.as_deref());
            let measured = Measured { time: began.elapsed(), bytes: context.peak_bytes };
            Outcome::Witness(witness.map_err(|cause| Fault::Synthesis { cause }), measured)
        };
        let call = self.call(Lane::Synthesis, None, Purpose::Synthesis(ticket), work);
        self.wait_for(ticket, call);
        self.tell(ticket, ProgressStage::Synthesizing);
    }

    /// The device queue is the scheduler's order of what lies here: sending moves nothing.
    pub(super) fn send(&mut self, ticket: Ticket) {
        self.enter(ticket, Some(Phase::Queue), End::Ok);
        self.due.push_back(Event::SendDone { ticket });
    }

    /// It has a slot of a device, and waits for the key there.
    pub(super) fn await_key(&mut self, ticket: Ticket, id: DeviceId) {
        self.enter(ticket, Some(Phase::Key), End::Ok);
        if let Some(partition) = self.partition(ticket.partition) {
            partition.device = Some(id);
        }
    }

    pub(super) fn prepare(&mut self, ticket: Ticket, id: DeviceId) {
        self.enter(ticket, Some(Phase::Prepare), End::Ok);
        let Some(job) = self.jobs.get_mut(&ticket.partition.job) else { return };
        let (circuit, workload, index) = (job.circuit, Arc::clone(&job.workload), ticket.partition.index);
        let Some(partition) = job.partitions.get_mut(index as usize) else { return };
        partition.device = Some(id);
        let (cancel, witness) = (partition.cancel.clone(), partition.witness.clone());
        let opened = self.device(id).and_then(|d| Some((d.device.clone()?, Arc::clone(d.keys.get(&circuit)?))));
        let (Some((device, key)), Some(witness)) = (opened, witness) else {
            return self.lacks(ticket, "the device is not open, or the key or the witness is not there");
        };
        let call = self.call(Lane::Preparing(id), Some(id), Purpose::Prepare(ticket), move || {
            if cancel.is_set() {
                return Outcome::Nothing;
            }
            let prepared = device::prepare(id, &device, key, (&*workload, index), &witness);
            drop(witness);
            Outcome::Prepared(prepared, Instant::now())
        });
        self.wait_for(ticket, call);
        self.tell(ticket, ProgressStage::Preparing(id));
    }

    pub(super) fn prove(&mut self, ticket: Ticket, id: DeviceId) {
        self.enter(ticket, Some(Phase::Device), End::Ok);
        let locked_at = self.applied_at;
        let Some(partition) = self.partition(ticket.partition) else { return };
        partition.locked_at = locked_at;
        let held = std::mem::replace(&mut partition.held, Held::Nothing);
        let Held::Prepared(prepared) = held else {
            return self.lacks(ticket, "nothing is prepared");
        };
        let cancel = partition.cancel.clone();
        let call = self.call(Lane::Computing(id), Some(id), Purpose::Prove(ticket), move || {
            if cancel.is_set() {
                return Outcome::Nothing;
            }
            let began = Instant::now();
            match device::prove(id, prepared, &|| cancel.is_set()) {
                Some(pending) => Outcome::Proved(pending, began),
                None => Outcome::Nothing,
            }
        });
        self.wait_for(ticket, call);
        self.tell(ticket, ProgressStage::Proving(id));
    }

    pub(super) fn finish(&mut self, ticket: Ticket) {
        let Some(partition) = self.partition(ticket.partition) else { return };
        let held = std::mem::replace(&mut partition.held, Held::Nothing);
        let (Held::Pending(pending), Some(id)) = (held, partition.device) else {
            return self.lacks(ticket, "nothing is computed");
        };
        let cancel = partition.cancel.clone();
        let call = self.call(Lane::Finish, Some(id), Purpose::Finish(ticket), move || {
            if cancel.is_set() {
                return Outcome::Nothing;
            }
            let began = Instant::now();
            Outcome::Finished(device::finish(id, *pending), began)
        });
        self.wait_for(ticket, call);
        self.tell(ticket, ProgressStage::Finishing(id));
    }

    /// What a stage needs is not there: a mistake of this crate, which must not keep the job waiting for ever.
    fn lacks(&mut self, ticket: Ticket, cause: &str) {
        tracing::error!(job = self.job_name(ticket.partition.job), "{ticket}: {cause}");
        self.due.push_back(Event::Failed { ticket, fault: Fault::Device { cause: cause.to_owned() } });
    }

    fn wait_for(&mut self, ticket: Ticket, call: CallId) {
        if let Some(partition) = self.partition(ticket.partition) {
            partition.call = Some(call);
        }
    }

    /// A stage of an attempt is over, if the attempt is.
    pub(super) fn attempt_returned(&mut self, id: CallId, call: &Call, ticket: Ticket, outcome: Outcome<C>) {
        let (now, epoch) = (self.now(), self.epoch);
        let Some(partition) = self.partition(ticket.partition).filter(|p| p.call == Some(id)) else {
            return self.free(call.device, outcome);
        };
        partition.call = None;
        if partition.aborting {
            return self.stop(ticket, outcome);
        }
        match outcome {
            Outcome::Witness(Ok(witness), Measured { time, bytes }) => {
                partition.witness = Some(Arc::new(witness));
                self.enter(ticket, Some(Phase::Send), End::Ok);
                self.measured(ticket, MeasuredStage::Synthesis, time);
                if let (Some(bytes), Some(job)) = (bytes, self.jobs.get(&ticket.partition.job)) {
                    self.due.push_back(Event::SynthesisMeasured { circuit: job.circuit, bytes });
                }
                self.tell(ticket, ProgressStage::Synthesized);
                self.due.push_back(Event::WitnessReady { ticket });
            }
            Outcome::Prepared(Ok(prepared), at) => {
                partition.held = Held::Prepared(prepared);
                partition.prepared_at = at - epoch;
                self.enter(ticket, Some(Phase::Lock), End::Ok);
                self.due.push_back(Event::DevicePrepared { ticket });
            }
            Outcome::Proved(Ok(pending), began) => {
                partition.held = Held::Pending(pending);
                (partition.kernels_from, partition.computed_at) = (began - epoch, now);
                self.enter(ticket, Some(Phase::Finish), End::Ok);
                // Freed before the scheduler gives its bytes to somebody else.
                self.drop_witness(ticket);
                self.measured(ticket, MeasuredStage::Device, began.elapsed());
                self.due.push_back(Event::StartReturned { ticket });
            }
            Outcome::Finished(Ok(proof), began) => {
                self.steps(ticket, &proof.times, began - epoch);
                self.enter(ticket, None, End::Ok);
                self.totals.proofs += 1;
                if let Some(device) = call.device.and_then(|id| self.device_mut(id)) {
                    device.proofs += 1;
                }
                if let Some(partition) = self.partition(ticket.partition) {
                    partition.proof = Some(*proof);
                }
                self.tell(ticket, ProgressStage::Proved);
                self.due.push_back(Event::FinishDone { ticket });
            }
            Outcome::Witness(Err(fault), _)
            | Outcome::Prepared(Err(fault), _)
            | Outcome::Proved(Err(fault), _)
            | Outcome::Finished(Err(fault), _) => self.failed(ticket, fault),
            Outcome::Panicked(text) => {
                let cause = format!("{} panicked: {text}", call.purpose.name());
                let fault = match call.purpose {
                    Purpose::Synthesis(_) => Fault::Synthesis { cause },
                    _ => Fault::Device { cause },
                };
                self.failed(ticket, fault);
            }
            // Only what was told to stop returns nothing.
            Outcome::Nothing | Outcome::Matrices(_) | Outcome::Key(_) | Outcome::Tested(_) => {
                let cause = format!("{} returned nothing", call.purpose.name());
                self.failed(ticket, Fault::Device { cause });
            }
        }
    }

    /// An attempt has failed.
    pub(super) fn failed(&mut self, ticket: Ticket, fault: Fault) {
        let witness = self.partition(ticket.partition).is_some_and(|p| p.witness.is_some());
        self.enter(ticket, Some(if witness { Phase::Queue } else { Phase::Admission }), End::Failed);
        self.note_failure(ticket, &fault);
        if let Some(partition) = self.partition(ticket.partition) {
            partition.suspect |= matches!(fault, Fault::WrongProof { .. });
        }
        self.due.push_back(Event::Failed { ticket, fault });
    }

    /// Tells an attempt to stop. At rest it stops at once, in a call as soon as that returns.
    pub(super) fn abort(&mut self, ticket: Ticket) {
        let Some(partition) = self.partition(ticket.partition) else { return };
        partition.aborting = true;
        partition.cancel.set();
        if partition.call.is_none() {
            self.stop(ticket, Outcome::Nothing);
        }
    }

    /// Frees all that a partition has, and `outcome`; then it is stopped.
    fn stop(&mut self, ticket: Ticket, outcome: Outcome<C>) {
        self.enter(ticket, None, End::Cancelled);
        self.drop_witness(ticket);
        let Some(partition) = self.partition(ticket.partition) else { return };
        let held = std::mem::replace(&mut partition.held, Held::Nothing);
        let mut on_device: Vec<Box<dyn Any + Send>> = Vec::new();
        match held {
            Held::Nothing => {}
            Held::Prepared(prepared) => on_device.push(Box::new(prepared)),
            Held::Pending(pending) => on_device.push(pending),
        }
        match outcome {
            Outcome::Prepared(Ok(prepared), _) => on_device.push(Box::new(prepared)),
            Outcome::Proved(Ok(pending), _) => on_device.push(pending),
            _ => {}
        }
        match partition.device.filter(|_| !on_device.is_empty()) {
            None => self.due.push_back(Event::Stopped { ticket }),
            Some(device) => {
                let call = self.call(Lane::Preparing(device), Some(device), Purpose::Stop(ticket), move || {
                    drop(on_device);
                    Outcome::Nothing
                });
                self.wait_for(ticket, call);
            }
        }
    }

    /// What a partition had on its device is freed.
    pub(super) fn stopped(&mut self, id: CallId, ticket: Ticket) {
        if let Some(partition) = self.partition(ticket.partition).filter(|p| p.call == Some(id)) {
            partition.call = None;
            self.due.push_back(Event::Stopped { ticket });
        }
    }

    /// An attempt is void because its device is fenced. Its witness stays.
    pub(super) fn abandon(&mut self, ticket: Ticket, device: DeviceId) {
        self.enter(ticket, Some(Phase::Queue), End::Cancelled);
        let Some(partition) = self.partition(ticket.partition) else { return };
        partition.cancel.set();
        (partition.cancel, partition.call, partition.device) = (Cancel::default(), None, None);
        if let Held::Prepared(prepared) = std::mem::replace(&mut partition.held, Held::Nothing) {
            self.free(Some(device), Outcome::Prepared(Ok(prepared), Instant::now()));
        }
    }

    /// The witness is not needed any more; its memory may be. Kept is no more than is reserved for it beside the
    /// matrices.
    fn drop_witness(&mut self, ticket: Ticket) {
        let spare_witnesses = self.config.memory.spare_witnesses as usize;
        let Some(job) = self.jobs.get_mut(&ticket.partition.job) else { return };
        let Some(partition) = job.partitions.get_mut(ticket.partition.index as usize) else { return };
        let Some(witness) = partition.witness.take() else { return };
        if let (Some(circuit), Ok(witness)) = (self.circuits.get_mut(&job.circuit), Arc::try_unwrap(witness))
            && circuit.matrices.is_some()
            && circuit.spare.len() < spare_witnesses
            && witness.bytes_held() as u64 <= circuit.plan.request.assignment.bytes()
        {
            circuit.spare.push(witness);
        }
    }

    fn measured(&mut self, ticket: Ticket, stage: MeasuredStage, took: Duration) {
        if let Some(circuit) = self.jobs.get(&ticket.partition.job).map(|j| j.circuit) {
            self.due.push_back(Event::Measured { circuit, stage, took });
        }
    }
}

/// Makes a witness, and checks that it is what memory was reserved for. Where `matrices` are given, it is checked
/// against the constraints, too: a proof of this partition did not verify, and if that is the witness's fault, no
/// device must answer for it.
fn witness<C: Curve>(
    workload: &dyn Workload<C>,
    index: u32,
    context: &mut WitnessContext<C::Fr>,
    largest: &AssignmentShape,
    matrices: Option<&R1cs<C::Fr>>,
) -> Result<Assignment<C::Fr>, String> {
    let witness = workload.witness(index, context).map_err(|e| e.to_string())?;
    if context.is_cancelled() {
        return Ok(witness);
    }
    let n_variables = witness.n_variables() as u64;
    if n_variables != largest.n_variables {
        return Err(format!("the witness has {n_variables} variables, its circuit has {}", largest.n_variables));
    }
    let (n_wide, wide_bytes) = (witness.wide_scalars().len() as u64, repr::as_bytes(witness.wide_scalars()).len());
    if n_wide > largest.n_wide {
        let most = largest.n_wide;
        return Err(format!(
            "the witness has {n_wide} wide values ({wide_bytes} bytes), memory is reserved for {most}"
        ));
    }
    let n_ones: u64 = witness.ones().iter().map(|word| u64::from(word.count_ones())).sum();
    if n_ones > largest.n_ones {
        return Err(format!("the witness has {n_ones} ones, memory is reserved for {}", largest.n_ones));
    }
    match matrices.map(|m| cuzk_r1cs::check(m, &witness)) {
        None | Some(Ok(())) => Ok(witness),
        Some(Err(CheckError::Shape(e))) => Err(e.to_string()),
        // The values are the witness's secrets.
        Some(Err(CheckError::Unsatisfied(e))) => Err(format!("the witness does not satisfy constraint {}", e.index)),
    }
}
