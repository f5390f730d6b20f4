//! The engine as its users see it.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

use cuzk_backend::{BackendError, Device};
use cuzk_curve::Curve;
use cuzk_scheduler::{
    CircuitId, ConfigError, DeviceId, DeviceResources, JobId, Resources, Scheduler, units::show_bytes,
};
use cuzk_timeline::Recorder;

use crate::{
    Answer, DescribedCircuit, DescribedDevice, DeviceSpec, EngineConfig, Estimate, EstimateError, Evicted, JobError,
    JobHandle, JobOptions, JobStatus, KeyRequestError, Machine, Preloaded, Progress, RegisterError, Status, ThreadPlan,
    answer,
    device::InUse,
    estimate, job,
    message::Message,
    owner::{DeviceState, Owner, Pools},
    plan::{Plan, PlanOptions, Target},
    pool::Pool,
    replay::DeviceRecord,
    workload::{CircuitSource, Workload},
};

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Nothing could ever run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device cannot be opened.
    #[error("device {index}: {cause}")]
    Device {
        /// Its number among those given.
        index: usize,
        /// What it says.
        #[source]
        cause: BackendError,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// What happens to jobs that have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// They end first.
    Drain,
    /// They are cancelled.
    Cancel,
}

/// Partitions that a job may have.
const MAX_PARTITIONS: u32 = 1 << 16;

/// A running engine. Dropping it is [`Shutdown::Cancel`].
pub struct Engine<C: Curve> {
    owner: mpsc::Sender<Message<C>>,
    thread: Option<JoinHandle<()>>,
    in_use: InUse,
    /// Bytes of each device's own memory, and of its pinned memory.
    capacities: Vec<(u64, u64)>,
    /// Which devices are a last resort.
    last_resorts: Vec<bool>,
    options: PlanOptions,
    config: EngineConfig,
    machine: Machine,
    next_circuit: AtomicU32,
    next_job: AtomicU64,
}

impl<C: Curve> fmt::Debug for Engine<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({}, {} devices)", C::ID, self.opened().len())
    }
}

impl<C: Curve> Engine<C> {
    /// Starts an engine on devices; [`DeviceId`] is the index among them.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(config: EngineConfig, devices: Vec<DeviceSpec>) -> Result<Self, StartError> {
        Self::launch(config, devices, None)
    }

    /// As [`Engine::start`], with all that happens taken down: every stage of every partition as a span with bytes,
    /// the bytes that are reserved of each pool, and why a device idles whenever it does.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_recorded(
        config: EngineConfig,
        devices: Vec<DeviceSpec>,
        recorder: Arc<Recorder>,
    ) -> Result<Self, StartError> {
        Self::launch(config, devices, Some(recorder))
    }

    fn launch(
        config: EngineConfig,
        specs: Vec<DeviceSpec>,
        recorder: Option<Arc<Recorder>>,
    ) -> Result<Self, StartError> {
        let machine = Machine::detect();
        let threads = ThreadPlan::new(&config, &machine);
        let open = |(index, spec): (usize, &DeviceSpec)| {
            let cause = |cause| StartError::Device { index, cause };
            capacity(spec.open().map_err(cause)?).map_err(cause)
        };
        let devices = specs.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?;
        let resources = Resources {
            cores: threads.cores,
            host: config.memory.total_budget.resolve(machine.memory_bytes, config.memory.safety_margin),
            pinned: devices.iter().map(|d| d.pinned_bytes).sum(),
            devices: devices
                .iter()
                .zip(&specs)
                .map(|(d, spec)| DeviceResources { memory: d.device_bytes, last_resort: spec.is_last_resort() })
                .collect(),
        };
        let last_resorts = resources.devices.iter().map(|device| device.last_resort).collect();
        let [host, pinned] = [resources.host, resources.pinned].map(show_bytes);
        tracing::info!("{machine}, of which {host} for proofs, and {pinned} pinned; {threads}");
        let scheduler = Scheduler::new(config.scheduler.clone(), resources)?;
        let pools = Pools {
            synthesis: Pool::yielding("cuzk-synthesis", threads.synthesis, threads.per_synthesis)?,
            finish: Pool::new("cuzk-finish", threads.finish, 0)?,
            runtime: Pool::new("cuzk-runtime", threads.runtime, 0)?,
            callback: Pool::new("cuzk-callback", 1, 0)?,
        };
        let states = devices.iter().zip(specs).enumerate().map(|(index, (Capacity { device, .. }, spec))| {
            // Their number was checked by the scheduler.
            DeviceState::new(DeviceId(index as u16), spec, device.clone(), threads.preparing)
        });
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let records = devices.iter().map(|d| record(&d.device)).collect();
        let options = PlanOptions {
            multiples: config.multiples,
            threads_per_synthesis: threads.per_synthesis,
            spare_witnesses: config.memory.spare_witnesses,
        };
        let (sender, inbox) = mpsc::channel();
        let channel = (sender.clone(), inbox);
        let capacities = devices.iter().map(|d| (d.device_bytes, d.pinned_bytes)).collect();
        let in_use: InUse = Arc::new(Mutex::new(devices.into_iter().map(|d| Some(d.device)).collect()));
        let states = (states, Arc::clone(&in_use), records);
        let owner = Owner::new(scheduler, channel, config.clone(), pools, states, recorder);
        let thread = thread::Builder::new().name("cuzk-owner".to_owned()).spawn(|| owner.run())?;
        Ok(Self {
            owner: sender,
            thread: Some(thread),
            in_use,
            capacities,
            last_resorts,
            options,
            config,
            machine,
            next_circuit: AtomicU32::new(0),
            next_job: AtomicU64::new(0),
        })
    }

    /// What this engine would choose for a circuit that is described, if it did nothing else: whether one partition fits
    /// and what it lacks, before anything of the circuit is loaded. Devices that are fenced now are left out.
    ///
    /// # Errors
    /// [`EstimateError`].
    pub fn estimate(&self, circuit: &DescribedCircuit) -> Result<Estimate, EstimateError> {
        let targets = self.targets();
        let devices: Vec<_> = targets
            .iter()
            .zip(&self.last_resorts)
            .filter_map(|(target, last_resort)| {
                let sizing = target.device.as_ref()?;
                Some(DescribedDevice {
                    name: sizing.info().name.clone(),
                    device_bytes: target.device_bytes,
                    pinned_bytes: target.pinned_bytes,
                    last_resort: *last_resort,
                    sizing,
                })
            })
            .collect();
        estimate::estimate(&self.config, &self.machine, &devices, circuit)
    }

    /// Makes a circuit known. Its costs are computed here, from the sizes of its matrices and what each device says
    /// of each operation; nothing is loaded. Takes as long as its source takes to bring the matrices.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, source: impl CircuitSource<C> + 'static) -> Result<CircuitId, RegisterError> {
        let plan = Box::new(Plan::new(&source, || self.targets(), &self.options)?);
        let circuit = CircuitId(self.next_circuit.fetch_add(1, Ordering::Relaxed));
        let message = Message::Register { circuit, source: Arc::new(source), plan };
        self.owner.send(message).map_err(|_| RegisterError::Stopped)?;
        Ok(circuit)
    }

    /// Submits a job. All that can be wrong with it comes out of the handle.
    pub fn submit(
        &self,
        circuit: CircuitId,
        workload: impl Workload<C> + 'static,
        options: JobOptions,
    ) -> JobHandle<C> {
        let job = JobId(self.next_job.fetch_add(1, Ordering::Relaxed));
        let (handle, completer) = job::handle(job, self.owner.clone());
        let partitions = workload.partitions();
        if partitions > MAX_PARTITIONS {
            let error = JobError::TooManyPartitions { given: partitions, limit: MAX_PARTITIONS };
            // Nobody has the handle yet.
            let _no_callbacks = completer.complete(error.into());
            return handle;
        }
        let workload = Arc::new(workload);
        // If the owner is gone the message is dropped with the completer in it, and the handle says that the engine
        // has stopped.
        let _stopped = self.owner.send(Message::Submit { job, circuit, workload, partitions, options, completer });
        handle
    }

    /// Brings a circuit's key to the devices before a job needs it, if that costs nobody anything. The answer comes
    /// when it is there, or is known not to fit.
    pub fn preload(&self, circuit: CircuitId) -> Answer<Result<Preloaded, KeyRequestError>> {
        let (answer, completer) = answer::answer(|| Err(KeyRequestError::Stopped));
        self.tell(Message::Preload { circuit, completer });
        answer
    }

    /// Frees a circuit's key wherever no partition uses it. The answer comes when the memory is free.
    pub fn evict(&self, circuit: CircuitId) -> Answer<Result<Evicted, KeyRequestError>> {
        let (answer, completer) = answer::answer(|| Err(KeyRequestError::Stopped));
        self.tell(Message::Evict { circuit, completer });
        answer
    }

    /// News of all partitions from now on. A receiver that lets `capacity` of them pile up loses those that come then.
    pub fn subscribe(&self, capacity: usize) -> mpsc::Receiver<Progress> {
        let (subscriber, receiver) = mpsc::sync_channel(capacity);
        self.tell(Message::Subscribe { subscriber });
        receiver
    }

    /// A look at everything; `None` if the engine has stopped.
    pub fn status(&self) -> Option<Status> {
        let (reply, answer) = mpsc::channel();
        self.tell(Message::Status { reply });
        answer.recv().ok()
    }

    /// Where a job's partitions are, and why they wait; `None` if it has ended or is not known.
    pub fn job_status(&self, job: JobId) -> Option<JobStatus> {
        let (reply, answer) = mpsc::channel();
        self.tell(Message::JobStatus { job, reply });
        answer.recv().ok()?
    }

    /// Takes no more jobs, deals with those that are there, frees everything and ends all threads. Returns when that
    /// is done. Calls that hang in a device are left behind.
    pub fn shutdown(mut self, how: Shutdown) {
        self.stop(how);
    }

    fn stop(&mut self, how: Shutdown) {
        self.tell(Message::Shutdown { cancel: how == Shutdown::Cancel });
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the owner thread panicked");
        }
    }

    fn targets(&self) -> Vec<Target> {
        let target = |(device, &(device_bytes, pinned_bytes))| Target { device, device_bytes, pinned_bytes };
        self.opened().into_iter().zip(&self.capacities).map(target).collect()
    }

    fn opened(&self) -> Vec<Option<Device>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, message: Message<C>) {
        // An owner that is gone has nothing left to do.
        let _stopped = self.owner.send(message);
    }
}

impl<C: Curve> Drop for Engine<C> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop(Shutdown::Cancel);
        }
    }
}

/// A device that is open, and bytes of its two pools that the engine may take.
struct Capacity {
    device: Device,
    device_bytes: u64,
    pinned_bytes: u64,
}

fn capacity(device: Device) -> Result<Capacity, BackendError> {
    let usage = device.memory()?;
    let free = |pool: cuzk_backend::PoolUsage| pool.capacity.saturating_sub(pool.in_use);
    Ok(Capacity { device_bytes: free(usage.device), pinned_bytes: free(usage.pinned), device })
}

fn record(device: &Device) -> DeviceRecord {
    let info = device.info();
    DeviceRecord {
        uuid: info.uuid.clone(),
        name: info.name.clone(),
        driver: info.driver.clone(),
        features: info.features.clone(),
    }
}
