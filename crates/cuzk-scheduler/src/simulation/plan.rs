//! What is simulated: to be read from a file, by whoever reads files.

use serde::{Deserialize, Serialize};

use crate::{CircuitProfile, Config, ConfigError, DeviceResources, Priority, Resources, units::bytes};

/// A machine, its policy, and what it has to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The machine.
    pub machine: MachineModel,
    /// The scheduler's policy.
    #[serde(default)]
    pub config: Config,
    /// The circuits.
    pub circuits: Vec<CircuitModel>,
    /// The jobs.
    pub streams: Vec<Stream>,
    /// Whether keys are loaded before the clock starts.
    #[serde(default)]
    pub preload: bool,
}

/// What a machine has, and how fast it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineModel {
    /// Cores.
    pub cores: usize,
    /// Host memory that may be reserved, in bytes.
    #[serde(with = "bytes")]
    pub host: u64,
    /// Pinned memory that may be reserved, in bytes.
    #[serde(with = "bytes")]
    pub pinned: u64,
    /// Resident bytes of the process beside keys and partitions: never reserved, part of the resident set.
    #[serde(with = "bytes", default)]
    pub process: u64,
    /// Bytes a second that memory can move.
    #[serde(with = "bytes")]
    pub memory_bandwidth: u64,
    /// Bytes a second at which keys are loaded.
    #[serde(with = "bytes")]
    pub disk_bandwidth: u64,
    /// The devices.
    pub devices: Vec<DeviceModel>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceModel {
    /// For people.
    pub name: String,
    /// Its memory that may be reserved, in bytes.
    #[serde(with = "bytes")]
    pub memory: u64,
    /// Bytes a second of its link to the host.
    #[serde(with = "bytes")]
    pub link_bandwidth: u64,
    /// How fast its kernels are, relative to the device whose times the circuits state.
    #[serde(default = "one")]
    pub speed: f64,
    /// See [`DeviceResources::last_resort`].
    #[serde(default)]
    pub last_resort: bool,
    /// How many of these there are.
    #[serde(default = "once")]
    pub count: usize,
}

fn one() -> f64 {
    1.0
}

fn once() -> usize {
    1
}

/// A stage on the host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostStage {
    /// Seconds with nothing beside it.
    pub seconds: f64,
    /// Cores that it keeps busy.
    pub cores: f64,
    /// Bytes a second that it moves from and to memory then.
    #[serde(with = "bytes", default)]
    pub traffic: u64,
    /// How much slower it is when others use all of the memory's bandwidth: 1 is twice as slow.
    #[serde(default)]
    pub sensitivity: f64,
}

/// A stage on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceStage {
    /// Seconds with nothing beside it, without the transfers, on a device of speed 1.
    pub seconds: f64,
    /// Bytes that cross the link meanwhile. Kernels and transfers overlap: the longer of the two counts.
    #[serde(with = "bytes", default)]
    pub transfer: u64,
    /// As of a host stage: what comes from the host's memory competes with synthesis.
    #[serde(default)]
    pub sensitivity: f64,
    /// Which part of the time each further partition of a batch saves.
    #[serde(default)]
    pub batch_saving: f64,
}

/// A circuit: what the scheduler knows of it, and what it does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitModel {
    /// What the scheduler is told.
    pub profile: CircuitProfile,
    /// Which part of its memory a synthesis touches at once; the rest grows linearly until it ends. The scheduler
    /// reserves all of it.
    #[serde(default = "one")]
    pub touched_at_once: f64,
    /// Making the witness.
    pub synthesis: HostStage,
    /// Bringing it to the device.
    pub prepare: DeviceStage,
    /// Under the compute lock.
    pub compute: DeviceStage,
    /// Finishing the proof.
    pub finish: HostStage,
}

/// Jobs of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The name in the circuit's profile.
    pub circuit: String,
    /// Partitions of each job.
    pub partitions: u32,
    /// How urgent they are.
    pub priority: Priority,
    /// How many jobs.
    pub jobs: u32,
    /// How many at a time: the next one arrives when one ends.
    pub concurrency: u32,
    /// Seconds until the first arrives.
    #[serde(default)]
    pub first: f64,
    /// Seconds from the arrival of one to that of the next at the earliest.
    #[serde(default)]
    pub every: f64,
}

/// A plan that cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The policy is impossible.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A stream names a circuit that is not there.
    #[error("stream {stream} is of circuit {circuit:?}, which the plan does not describe")]
    UnknownCircuit {
        /// Index of the stream.
        stream: usize,
        /// The name.
        circuit: String,
    },
    /// A number is out of its range.
    #[error("{name} is {value}, must be {range}")]
    OutOfRange {
        /// Which number.
        name: String,
        /// Its value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
}

fn positive(name: impl Into<String>, value: f64) -> Result<(), PlanError> {
    let good = value.is_finite() && value > 0.0;
    if good { Ok(()) } else { Err(PlanError::OutOfRange { name: name.into(), value, range: "positive" }) }
}

fn not_negative(name: impl Into<String>, value: f64) -> Result<(), PlanError> {
    // A year is far beyond any stage, and keeps sums of times exact enough.
    let good = (0.0..=3.2e7).contains(&value);
    if good { Ok(()) } else { Err(PlanError::OutOfRange { name: name.into(), value, range: "0 to 3.2e7" }) }
}

impl Plan {
    /// Finds what cannot be simulated.
    ///
    /// # Errors
    /// The first such thing.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.config.validate(&self.resources())?;
        positive("memory_bandwidth", self.machine.memory_bandwidth as f64)?;
        positive("disk_bandwidth", self.machine.disk_bandwidth as f64)?;
        for device in &self.machine.devices {
            positive(format!("link_bandwidth of {}", device.name), device.link_bandwidth as f64)?;
            positive(format!("speed of {}", device.name), device.speed)?;
        }
        for circuit in &self.circuits {
            circuit.validate()?;
        }
        for (index, stream) in self.streams.iter().enumerate() {
            positive(format!("partitions of stream {index}"), f64::from(stream.partitions))?;
            positive(format!("concurrency of stream {index}"), f64::from(stream.concurrency))?;
            not_negative(format!("first of stream {index}"), stream.first)?;
            not_negative(format!("every of stream {index}"), stream.every)?;
            if !self.circuits.iter().any(|c| c.profile.name == stream.circuit) {
                return Err(PlanError::UnknownCircuit { stream: index, circuit: stream.circuit.clone() });
            }
        }
        Ok(())
    }

    /// The devices one by one.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceModel> {
        self.machine.devices.iter().flat_map(|d| std::iter::repeat_n(d, d.count))
    }

    /// What the scheduler is told of the machine.
    pub fn resources(&self) -> Resources {
        let MachineModel { cores, host, pinned, .. } = self.machine;
        let resources = |d: &DeviceModel| DeviceResources { memory: d.memory, last_resort: d.last_resort };
        Resources { cores, host, pinned, devices: self.devices().map(resources).collect() }
    }
}

impl CircuitModel {
    fn validate(&self) -> Result<(), PlanError> {
        let name = &self.profile.name;
        if !(0.0..=1.0).contains(&self.touched_at_once) {
            let (name, value) = (format!("touched_at_once of {name}"), self.touched_at_once);
            return Err(PlanError::OutOfRange { name, value, range: "0 to 1" });
        }
        for (stage, s) in [("synthesis", self.synthesis), ("finish", self.finish)] {
            not_negative(format!("{stage}.seconds of {name}"), s.seconds)?;
            not_negative(format!("{stage}.cores of {name}"), s.cores)?;
            not_negative(format!("{stage}.sensitivity of {name}"), s.sensitivity)?;
        }
        for (stage, s) in [("prepare", self.prepare), ("compute", self.compute)] {
            not_negative(format!("{stage}.seconds of {name}"), s.seconds)?;
            not_negative(format!("{stage}.sensitivity of {name}"), s.sensitivity)?;
            if !(0.0..=1.0).contains(&s.batch_saving) {
                let name = format!("{stage}.batch_saving of {name}");
                return Err(PlanError::OutOfRange { name, value: s.batch_saving, range: "0 to 1" });
            }
        }
        Ok(())
    }
}
