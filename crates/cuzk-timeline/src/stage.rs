//! What a partition goes through, and what each of these stages keeps busy.

use serde::{Deserialize, Serialize};

/// The number of a stage that the caller named: its place in
/// [`Timeline::custom_stages`](crate::Timeline::custom_stages).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StageId(pub u32);

/// One step of a partition's way from submission to proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Waiting for admission.
    Queue,
    /// Waiting for one of the permits that bound the partitions in flight.
    PermitWait,
    /// Making the witness.
    Witness,
    /// On the way into the device queue.
    Send,
    /// In the device queue.
    DeviceQueue,
    /// Waiting for the compute lock of a device.
    LockWait,
    /// A key on its way to where it is used.
    KeyLoad,
    /// The packed witness, or evaluation vectors, on their way to a device.
    Upload,
    /// A·w and B·w.
    Evaluate,
    /// The transforms, and the quotient polynomial h.
    Quotient,
    /// Multi-scalar multiplication with the bases h, in G1.
    MsmH,
    /// With the bases l, in G1.
    MsmL,
    /// With the bases a, in G1.
    MsmA,
    /// With the bases b, in G1.
    MsmBG1,
    /// With the bases b, in G2.
    MsmBG2,
    /// All that is done under the compute lock, where it is not known in parts.
    Kernels,
    /// Assembling the proof from the sums.
    Finish,
    /// The pairing check.
    Verify,
    /// Any other, with a name of its own.
    Custom(StageId),
}

/// What a stage keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageClass {
    /// Nothing: it waits. Such spans may lie over each other in any number.
    Wait,
    /// Cores of the host.
    Host,
    /// A bus.
    Transfer,
    /// A device's multiprocessors. On the track of a device, this is what counts as utilization.
    Compute,
}

/// A stage that the caller named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomStage {
    /// Its name.
    pub name: String,
    /// What it keeps busy.
    pub class: StageClass,
}

impl Stage {
    /// All that have a name here.
    pub const NAMED: [Self; 18] = [
        Self::Queue,
        Self::PermitWait,
        Self::Witness,
        Self::Send,
        Self::DeviceQueue,
        Self::LockWait,
        Self::KeyLoad,
        Self::Upload,
        Self::Evaluate,
        Self::Quotient,
        Self::MsmH,
        Self::MsmL,
        Self::MsmA,
        Self::MsmBG1,
        Self::MsmBG2,
        Self::Kernels,
        Self::Finish,
        Self::Verify,
    ];

    /// Its name, for people. `custom` are the stages that the caller named.
    pub fn label(self, custom: &[CustomStage]) -> &str {
        match self {
            Self::Queue => "queue",
            Self::PermitWait => "wait for permit",
            Self::Witness => "witness",
            Self::Send => "send",
            Self::DeviceQueue => "device queue",
            Self::LockWait => "wait for lock",
            Self::KeyLoad => "key load",
            Self::Upload => "upload",
            Self::Evaluate => "evaluate",
            Self::Quotient => "quotient",
            Self::MsmH => "msm h",
            Self::MsmL => "msm l",
            Self::MsmA => "msm a",
            Self::MsmBG1 => "msm b_g1",
            Self::MsmBG2 => "msm b_g2",
            Self::Kernels => "kernels",
            Self::Finish => "finish",
            Self::Verify => "verify",
            Self::Custom(id) => custom.get(id.0 as usize).map_or("unknown stage", |s| &s.name),
        }
    }

    /// What it keeps busy. A custom stage that is not in `custom` counts as waiting.
    pub fn class(self, custom: &[CustomStage]) -> StageClass {
        match self {
            Self::Queue | Self::PermitWait | Self::DeviceQueue | Self::LockWait => StageClass::Wait,
            Self::Witness | Self::Finish | Self::Verify => StageClass::Host,
            Self::Send | Self::KeyLoad | Self::Upload => StageClass::Transfer,
            Self::Evaluate
            | Self::Quotient
            | Self::MsmH
            | Self::MsmL
            | Self::MsmA
            | Self::MsmBG1
            | Self::MsmBG2
            | Self::Kernels => StageClass::Compute,
            Self::Custom(id) => custom.get(id.0 as usize).map_or(StageClass::Wait, |s| s.class),
        }
    }
}
