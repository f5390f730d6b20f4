//! What of a proving key stays on the device under a cap, and what a proof then takes: arithmetic over the workspaces
//! that the device tells, before anything is allocated.

mod candidate;

use std::fmt;

use cuzk_backend::{AssignmentShape, BackendError, BasesSpec, Device, MatrixShape, MemoryUsage, Operation, Workspace};
use cuzk_curve::{CurveId, ScalarRepr};
use cuzk_keys::{Counts, Section};
use cuzk_r1cs::{Assignment, R1cs};

use self::candidate::{Candidate, MSMS, Need};
use crate::{ProveError, Stage, circuit::view};

/// The sizes of a constraint system, as far as a plan needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitShape {
    /// The matrix A.
    pub a: MatrixShape,
    /// The matrix B.
    pub b: MatrixShape,
    /// Number of inputs, ONE included.
    pub n_inputs: u64,
    /// Number of variables, inputs and aux.
    pub n_variables: u64,
    /// Binary logarithm of the domain's size.
    pub log_n: u32,
    /// Variables that occur in A.
    pub a_dense: u64,
    /// Variables that occur in B.
    pub b_dense: u64,
}

impl CircuitShape {
    /// The sizes of a recorded system.
    pub fn of<F: ScalarRepr>(r1cs: &R1cs<F>) -> Self {
        let densities = r1cs.densities();
        Self {
            a: MatrixShape::of(&view(r1cs.a())),
            b: MatrixShape::of(&view(r1cs.b())),
            n_inputs: r1cs.n_inputs() as u64,
            n_variables: r1cs.n_variables() as u64,
            log_n: r1cs.log_domain(),
            a_dense: densities.a.count() as u64,
            b_dense: densities.b.count() as u64,
        }
    }

    fn curve(&self) -> CurveId {
        self.a.curve
    }

    /// Points of a section of this circuit's key.
    pub fn points(&self, section: Section) -> u64 {
        match section {
            Section::H => (1 << self.log_n) - 1,
            Section::L => self.n_variables - self.n_inputs,
            Section::A => self.a_dense,
            Section::BG1 | Section::BG2 => self.b_dense,
        }
    }

    /// Whether a key with these numbers of points can be this circuit's.
    ///
    /// # Errors
    /// [`ProveError::KeyMismatch`] or [`ProveError::InputMismatch`] with both numbers.
    pub fn check_counts(&self, counts: &Counts) -> Result<(), ProveError> {
        for section in Section::ALL {
            let (expected, actual) = (self.points(section), counts.of(section) as u64);
            if expected != actual {
                return Err(ProveError::KeyMismatch { section, expected, actual });
            }
        }
        let (expected, actual) = (self.n_inputs as usize, counts.ic);
        if expected == actual { Ok(()) } else { Err(ProveError::InputMismatch { expected, actual }) }
    }

    /// The sizes of an assignment of which nothing else is known: every variable may be wide.
    pub fn any_assignment(&self) -> AssignmentShape {
        let n = self.n_variables;
        AssignmentShape { curve: self.curve(), n_variables: n, n_ones: n, n_wide: n }
    }
}

/// The sizes that no assignment of the circuit should exceed, after this one.
pub fn assignment_shape<F: ScalarRepr>(assignment: &Assignment<F>) -> AssignmentShape {
    with_margin(AssignmentShape {
        curve: F::CURVE,
        n_variables: assignment.n_variables() as u64,
        n_ones: assignment.ones().iter().map(|word| u64::from(word.count_ones())).sum(),
        n_wide: assignment.wide_scalars().len() as u64,
    })
}

/// The sizes of an assignment, and `1/32` more of its ones and wide values: others of the same circuit differ little.
pub fn with_margin(shape: AssignmentShape) -> AssignmentShape {
    let more = |n: u64| n.saturating_add(n / 32 + 64).min(shape.n_variables);
    AssignmentShape { n_ones: more(shape.n_ones), n_wide: more(shape.n_wide), ..shape }
}

/// Says how much memory operations take on a device: on one that is there, or one that is only described.
///
/// The arithmetic is a backend's, because it follows from its kernels; a plan asks it through this, so that planning
/// for a machine one does not have takes no device, only the backend's function.
///
/// ```
/// use cuzk_backend::{BackendError, Operation, Workspace};
/// use cuzk_groth16::Sizing;
///
/// let nothing = |_: &Operation, _: u64| Ok::<_, BackendError>(Workspace::default());
/// fn plan(_: &dyn Sizing) {}
/// plan(&nothing);
/// ```
pub trait Sizing {
    /// As [`Device::workspace`].
    ///
    /// # Errors
    /// The device cannot do that.
    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace, BackendError>;
}

impl Sizing for Device {
    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace, BackendError> {
        Device::workspace(self, operation, room)
    }
}

impl<F: Fn(&Operation, u64) -> Result<Workspace, BackendError>> Sizing for F {
    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace, BackendError> {
        self(operation, room)
    }
}

/// What a plan may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of device memory for circuit, key and proof together.
    pub device_bytes: u64,
    /// Bytes of pinned memory for streamed sections and results.
    pub pinned_bytes: u64,
    /// Whether multiples of points may be computed in advance, if the memory is there: loading a key takes longer, and
    /// each proof is faster by a few per cent. It pays for a key that makes a hundred proofs.
    pub multiples: bool,
}

impl Budget {
    /// What is free now, without multiples.
    pub fn free(usage: &MemoryUsage) -> Self {
        let free = |pool: cuzk_backend::PoolUsage| pool.capacity.saturating_sub(pool.in_use);
        Self { device_bytes: free(usage.device), pinned_bytes: free(usage.pinned), multiples: false }
    }
}

/// Where a section of the key lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the device's memory, with so many multiples of each point (1: the point alone).
    Device {
        /// As in [`BasesSpec::multiples`].
        multiples: u32,
    },
    /// In pinned memory, streamed to the device for each proof.
    Streamed,
}

/// What was chosen for a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionPlan {
    /// The section.
    pub section: Section,
    /// Where it lies.
    pub placement: Placement,
    /// How it is loaded.
    pub spec: BasesSpec,
    /// Bytes that it holds, of the device's or of pinned memory.
    pub bytes: u64,
}

/// A plan: what of the key lies where, and what a proof takes at each stage.
#[derive(Clone, Debug)]
pub struct ResidencyPlan {
    circuit: CircuitShape,
    budget: Budget,
    sections: [SectionPlan; 5],
    stages: Vec<(Stage, u64)>,
    pinned_bytes: u64,
    streaming_cost: u64,
    /// The peak with the whole key on the device and the least workspaces.
    whole_key: u64,
}

/// A part of what does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub what: String,
    /// Its bytes.
    pub bytes: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResidencyError {
    /// However little of the key stays on the device, a stage of the proof does not fit.
    #[error(
        "a proof needs {} of device memory at its stage {stage}, but the cap is {}: {}",
        show(*.needed), show(*.capacity), list(.parts)
    )]
    Device {
        /// The stage that needs the most.
        stage: Stage,
        /// Bytes that it needs at least.
        needed: u64,
        /// Bytes that there may be.
        capacity: u64,
        /// What they are made of.
        parts: Vec<Part>,
    },
    /// What has to be streamed does not fit the pinned memory.
    #[error(
        "a proof needs {} of pinned memory, but the limit is {}: {}",
        show(*.needed), show(*.capacity), list(.parts)
    )]
    Pinned {
        /// Bytes that are needed at least.
        needed: u64,
        /// Bytes that there may be.
        capacity: u64,
        /// What they are made of.
        parts: Vec<Part>,
    },
    /// The device cannot do what a proof needs.
    #[error(transparent)]
    Backend(#[from] BackendError),
}

/// Bytes for a person.
fn show(bytes: u64) -> String {
    match bytes {
        0..0x10_0000 => format!("{bytes} bytes"),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

fn list(parts: &[Part]) -> String {
    parts.iter().map(|p| format!("{} {}", p.what, show(p.bytes))).collect::<Vec<_>>().join(", ")
}

/// Tried in this order; a device takes as many as serve it.
const MULTIPLES: [u32; 4] = [16, 8, 4, 2];

impl ResidencyPlan {
    /// Plans for a circuit, its key and assignments of these sizes.
    ///
    /// Every choice of what is streamed is looked at. Of those with which every stage fits under the cap, in the least
    /// workspace if need be, the one is taken that costs the least time. Multiples, if wanted, are computed for h,
    /// whose scalars are dense, when no stage is the slower for it.
    ///
    /// # Errors
    /// Not even with the whole key streamed does it fit: with the numbers of each part.
    pub fn new(
        device: &dyn Sizing,
        budget: &Budget,
        circuit: &CircuitShape,
        assignment: &AssignmentShape,
    ) -> Result<Self, ResidencyError> {
        let capacity = budget.device_bytes;
        let resident = Placement::Device { multiples: 1 };
        let choice = |streamed: usize| {
            Candidate::new(device, circuit, assignment, move |section| {
                let bit = MSMS.iter().position(|(s, _)| *s == section).unwrap_or(0);
                if streamed >> bit & 1 == 1 { Placement::Streamed } else { resident }
            })
        };
        let mut best: Option<((u64, u64), Candidate<'_>)> = None;
        let mut frugal: Option<(u64, Need, u64)> = None;
        let mut least_pinned: Option<(u64, Candidate<'_>)> = None;
        let mut whole_key = 0;
        for streamed in 0..1 << MSMS.len() {
            let candidate = choice(streamed)?;
            let lacking = candidate.lacking(capacity)?;
            if streamed == 0 {
                whole_key = lacking.2;
            }
            if lacking.0 > 0 {
                if frugal.as_ref().is_none_or(|(least, ..)| lacking.0 < *least) {
                    frugal = Some(lacking);
                }
                continue;
            }
            let (_, pinned) = candidate.simulate(capacity)?;
            if pinned > budget.pinned_bytes {
                if least_pinned.as_ref().is_none_or(|(least, _)| pinned < *least) {
                    least_pinned = Some((pinned, candidate));
                }
                continue;
            }
            let cost = candidate.cost();
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, candidate));
            }
        }
        let Some((_, mut chosen)) = best else { return Err(refusal(budget, least_pinned, frugal)) };
        if budget.multiples && chosen.sections[0].placement == resident {
            let places = chosen.sections.map(|s| (s.section, s.placement));
            for multiples in MULTIPLES {
                let place = |section| match places.into_iter().find(|(s, _)| *s == section) {
                    Some((Section::H, _)) => Placement::Device { multiples },
                    Some((_, placement)) => placement,
                    None => resident,
                };
                let with = match Candidate::new(device, circuit, assignment, place) {
                    // A device that keeps none, or not of so many points.
                    Err(BackendError::Unsupported { .. }) => continue,
                    with => with?,
                };
                if with.is_at_its_best(capacity)? {
                    chosen = with;
                    break;
                }
            }
        }
        let (stages, pinned_bytes) = chosen.simulate(capacity)?;
        let (streaming_cost, _) = chosen.cost();
        let (circuit, budget, sections) = (*circuit, *budget, chosen.sections);
        Ok(Self { circuit, budget, sections, stages, pinned_bytes, streaming_cost, whole_key })
    }

    /// The same places for an assignment of other sizes, with what a proof of it takes.
    ///
    /// # Errors
    /// It does not fit.
    pub fn with_assignment(&self, device: &dyn Sizing, assignment: &AssignmentShape) -> Result<Self, ResidencyError> {
        let candidate = Candidate { device, circuit: &self.circuit, assignment, sections: self.sections };
        let lacking = candidate.lacking(self.budget.device_bytes)?;
        if lacking.0 > 0 {
            return Err(refusal(&self.budget, None, Some(lacking)));
        }
        let (stages, pinned_bytes) = candidate.simulate(self.budget.device_bytes)?;
        if pinned_bytes > self.budget.pinned_bytes {
            return Err(refusal(&self.budget, Some((pinned_bytes, candidate)), None));
        }
        let (streaming_cost, _) = candidate.cost();
        Ok(Self { stages, pinned_bytes, streaming_cost, ..self.clone() })
    }

    /// The circuit that it was made for.
    pub fn circuit(&self) -> &CircuitShape {
        &self.circuit
    }

    /// What was chosen for each section, in the order h, l, a, b_g1, b_g2.
    pub fn sections(&self) -> &[SectionPlan; 5] {
        &self.sections
    }

    /// Bytes of device memory at each stage of a proof: circuit, key, vectors, workspace, and what the device keeps for
    /// later.
    pub fn stages(&self) -> &[(Stage, u64)] {
        &self.stages
    }

    /// The most bytes of device memory at a time, beside tables that earlier work has left on the device, which it
    /// gives up when their room is needed. Never more than the budget.
    pub fn predicted_peak(&self) -> u64 {
        self.stages.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    /// Bytes of pinned memory: streamed sections, and the results of a proof.
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes
    }

    /// The time that streaming costs each proof, in bytes that could cross the bus meanwhile: an estimate, which orders
    /// plans. 0 if nothing is streamed.
    pub fn streaming_cost(&self) -> u64 {
        self.streaming_cost
    }

    /// The budget that it was made for.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A sentence for a section: what was chosen, and why.
    pub fn explain(&self, plan: &SectionPlan) -> String {
        let (section, bytes) = (plan.section, show(plan.bytes));
        let (whole, cap) = (show(self.whole_key), show(self.budget.device_bytes));
        match plan.placement {
            Placement::Device { multiples: 1 } if self.whole_key <= self.budget.device_bytes => {
                format!("{section}: on the device ({bytes}), because the whole key fits: {whole} of {cap}")
            }
            Placement::Device { multiples: 1 } => {
                format!("{section}: on the device ({bytes}), because what is streamed instead costs less time")
            }
            Placement::Device { .. } => {
                let points = plan.spec.count * plan.spec.curve.affine_bytes(plan.spec.group) as u64;
                let multiples = plan.bytes / points.max(1);
                format!(
                    "{section}: on the device with {multiples} multiples of each point ({bytes}), because they leave \
                     every stage the memory that it can use"
                )
            }
            Placement::Streamed => format!(
                "{section}: streamed from pinned memory ({bytes}), because with the whole key on the device a proof \
                 would need {whole} at least and the cap is {cap}"
            ),
        }
    }
}

fn refusal(budget: &Budget, pinned: Option<(u64, Candidate<'_>)>, frugal: Option<(u64, Need, u64)>) -> ResidencyError {
    if let Some((needed, candidate)) = pinned {
        let streamed = candidate.sections.iter().filter(|s| s.placement == Placement::Streamed);
        let mut parts: Vec<_> = streamed.map(|s| Part { what: format!("key {}", s.section), bytes: s.bytes }).collect();
        let sections: u64 = parts.iter().map(|p| p.bytes).sum();
        parts.push(Part { what: "results".to_owned(), bytes: needed - sections });
        return ResidencyError::Pinned { needed, capacity: budget.pinned_bytes, parts };
    }
    let capacity = budget.device_bytes;
    match frugal {
        Some((_, need, needed)) => {
            let mut parts = need.parts;
            let held: u64 = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes));
            parts.push(Part { what: "workspace".to_owned(), bytes: needed.saturating_sub(held) });
            ResidencyError::Device { stage: need.stage, needed, capacity, parts }
        }
        None => ResidencyError::Device { stage: Stage::Upload, needed: 0, capacity, parts: Vec::new() },
    }
}

impl fmt::Display for ResidencyPlan {
    /// A line for each section, and one for the peak.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for plan in &self.sections {
            writeln!(f, "{}", self.explain(plan))?;
        }
        let at = self.stages.iter().max_by_key(|(_, bytes)| *bytes).map_or(Stage::Upload, |(stage, _)| *stage);
        let (peak, cap, pinned) = (self.predicted_peak(), self.budget.device_bytes, self.pinned_bytes);
        write!(f, "peak {} of {} at stage {at}, pinned {}", show(peak), show(cap), show(pinned))
    }
}
