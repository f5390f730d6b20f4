//! Everything that the owner thread is told: with the passing of time, all the triggers that there are.

use std::{
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use cuzk_backend::Device;
use cuzk_curve::Curve;
use cuzk_groth16::{FinishedProof, PendingProof};
use cuzk_r1cs::{Assignment, R1cs};
use cuzk_scheduler::{CircuitId, Fault, JobId};

use crate::{
    answer::Completer,
    calls::CallId,
    device::{LoadedKey, Prepared},
    job::{Ended, JobOptions},
    keys::{Evicted, KeyRequestError, Preloaded},
    plan::Plan,
    progress::Progress,
    status::{JobStatus, Status},
    workload::{CircuitSource, Workload},
};

/// What the owner thread is told.
pub(crate) enum Message<C: Curve> {
    /// A circuit was registered.
    Register { circuit: CircuitId, source: Arc<dyn CircuitSource<C>>, plan: Box<Plan> },
    /// A job was submitted.
    Submit {
        job: JobId,
        circuit: CircuitId,
        workload: Arc<dyn Workload<C>>,
        partitions: u32,
        options: JobOptions,
        completer: Completer<Ended<C>>,
    },
    /// A job is not wanted any more.
    Cancel { job: JobId },
    /// A key is wanted in advance.
    Preload { circuit: CircuitId, completer: Completer<Result<Preloaded, KeyRequestError>> },
    /// A key is to leave.
    Evict { circuit: CircuitId, completer: Completer<Result<Evicted, KeyRequestError>> },
    /// Somebody wants to watch.
    Subscribe { subscriber: mpsc::SyncSender<Progress> },
    /// Somebody wants to know.
    Status { reply: mpsc::Sender<Status> },
    /// Somebody wants to know about a job.
    JobStatus { job: JobId, reply: mpsc::Sender<Option<JobStatus>> },
    /// The engine is to stop.
    Shutdown { cancel: bool },
    /// Work that was handed to a thread is over.
    Returned { call: CallId, outcome: Outcome<C> },
}

/// What came of work on one of the threads.
pub(crate) enum Outcome<C: Curve> {
    /// A witness, and what it took.
    Witness(Result<Assignment<C::Fr>, Fault>, Measured),
    /// A partition is ready to compute; since when.
    Prepared(Result<Prepared<C>, Fault>, Instant),
    /// The kernels are done; when they began.
    Proved(Result<Box<PendingProof<C>>, Fault>, Instant),
    /// A verified proof; when its assembly began.
    Finished(Result<Box<FinishedProof<C>>, Fault>, Instant),
    /// Matrices in the host's memory.
    Matrices(Result<Arc<R1cs<C::Fr>>, String>),
    /// Circuit and key on a device.
    Key(Result<Arc<LoadedKey<C>>, KeyFault>),
    /// A device that has passed its self-test, opened anew.
    Tested(Result<Device, String>),
    /// Nothing: something was freed, or the attempt was told to stop.
    Nothing,
    /// It panicked.
    Panicked(String),
}

/// What making a witness took.
pub(crate) struct Measured {
    pub(crate) time: Duration,
    /// Host memory at the peak, if its maker has said so.
    pub(crate) bytes: Option<u64>,
}

/// Why a key was not loaded to a device.
pub(crate) struct KeyFault {
    pub(crate) cause: String,
    /// Whether the device is to be fenced for it.
    pub(crate) device: bool,
}
