//! One choice of what lies where: what each stage of a proof holds and takes with it, and what streaming costs.

use cuzk_backend::{
    AssignmentShape, BackendError, BasesSpec, Operation, QuotientPlan, Residency, ScalarsShape, Workspace,
};
use cuzk_curve::GroupId;
use cuzk_keys::Section;

use super::{CircuitShape, Part, Placement, SectionPlan, Sizing};
use crate::Stage;

/// The sections in the order of their multiplications, with the stage of each.
pub(super) const MSMS: [(Section, Stage); 5] = [
    (Section::H, Stage::MsmH),
    (Section::L, Stage::MsmL),
    (Section::A, Stage::MsmA),
    (Section::BG1, Stage::MsmBG1),
    (Section::BG2, Stage::MsmBG2),
];
/// Bytes that cross the bus in the time of one addition of points, in G1 and G2, and additions that a full-size scalar
/// takes: measured on an H200 behind PCIe 5, where they are 55 GB/s, 2.46 and 0.73 billion additions a second.
const BYTES_AN_ADDITION: [u64; 2] = [22, 75];
const ADDITIONS_A_SCALAR: u64 = 14;
/// Bytes that could cross in the time that the sums over buckets take because a section is done in chunks, whatever its
/// size: 1 ms in G1, 11 ms in G2, where the host's part weighs more. Measured there, too, with porep of 2 KiB.
const BYTES_A_SECTION: [u64; 2] = [55_000_000, 600_000_000];
/// The part of the additions of dense scalars that chunks add: their windows are smaller.
const DENSE_OVERHEAD: u64 = 3;

/// What is asked of the device for one choice of places.
pub(super) struct Candidate<'a> {
    pub(super) device: &'a dyn Sizing,
    pub(super) circuit: &'a CircuitShape,
    pub(super) assignment: &'a AssignmentShape,
    pub(super) sections: [SectionPlan; 5],
}

/// A stage: what is held while it runs, and what the operation takes.
pub(super) struct Need {
    pub(super) stage: Stage,
    pub(super) parts: Vec<Part>,
    operation: Option<Operation>,
}

impl Need {
    fn held(&self) -> u64 {
        self.parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes))
    }
}

impl<'a> Candidate<'a> {
    pub(super) fn new(
        device: &'a dyn Sizing,
        circuit: &'a CircuitShape,
        assignment: &'a AssignmentShape,
        place: impl Fn(Section) -> Placement,
    ) -> Result<Self, BackendError> {
        let section = |section: Section| {
            let placement = place(section);
            let (residency, multiples) = match placement {
                Placement::Device { multiples } => (Residency::Device, multiples),
                Placement::Streamed => (Residency::Pinned, 1),
            };
            let (curve, group, count) = (circuit.curve(), section.group(), circuit.points(section));
            let spec = BasesSpec { curve, group, count, residency, multiples };
            let Workspace { best, pinned, .. } = device.workspace(&Operation::Bases(spec), u64::MAX)?;
            Ok::<_, BackendError>(SectionPlan { section, placement, spec, bytes: best + pinned })
        };
        let [h, l, a, b1, b2] = MSMS.map(|(s, _)| section(s));
        Ok(Self { device, circuit, assignment, sections: [h?, l?, a?, b1?, b2?] })
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace, BackendError> {
        self.device.workspace(operation, room)
    }

    /// The stages of `prove_start`, in its order.
    fn needs(&self) -> Result<Vec<Need>, BackendError> {
        let (circuit, n_variables) = (self.circuit, self.circuit.n_variables);
        let size = |operation| self.workspace(&operation, u64::MAX).map(|w| w.best);
        let part = |what: &str, bytes| Part { what: what.to_owned(), bytes };
        let density = size(Operation::Density { len: n_variables })?;
        let mut held = vec![
            part("matrices", size(Operation::Matrix(circuit.a))?.saturating_add(size(Operation::Matrix(circuit.b))?)),
            part("densities", 2 * density),
        ];
        let resident = self.sections.iter().filter(|s| s.placement != Placement::Streamed);
        held.extend(resident.map(|s| part(&format!("key {}", s.section), s.bytes)));
        held.push(part("assignment", size(Operation::Assignment(*self.assignment))?));
        let vector = (circuit.curve().scalar_bytes() as u64) << circuit.log_n;
        let with = |extra: u64| {
            let mut parts = held.clone();
            parts.push(part("evaluation vectors", extra));
            parts
        };
        let quotient = QuotientPlan { curve: circuit.curve(), log_n: circuit.log_n };
        let mut needs = vec![
            Need { stage: Stage::Upload, parts: held.clone(), operation: None },
            Need { stage: Stage::Evaluate, parts: with(2 * vector), operation: Some(Operation::Evaluate(circuit.a)) },
            Need { stage: Stage::Quotient, parts: with(2 * vector), operation: Some(Operation::Quotient(quotient)) },
        ];
        for (section, (_, stage)) in self.sections.iter().zip(MSMS) {
            let packed = |len| ScalarsShape::Assignment { assignment: *self.assignment, len };
            let (scalars, parts) = match section.section {
                Section::H => (ScalarsShape::Dense, with(vector)),
                Section::L => (packed(n_variables - circuit.n_inputs), held.clone()),
                Section::A | Section::BG1 | Section::BG2 => (packed(n_variables), held.clone()),
            };
            needs.push(Need { stage, parts, operation: Some(Operation::Msm { bases: section.spec, scalars }) });
        }
        Ok(needs)
    }

    /// What is lacking at the worst stage with the least workspaces: nothing if it fits.
    pub(super) fn lacking(&self, capacity: u64) -> Result<(u64, Need, u64), BackendError> {
        let mut worst: Option<(u64, Need, u64)> = None;
        for need in self.needs()? {
            let least = match &need.operation {
                Some(operation) => self.workspace(operation, 0)?.least,
                None => 0,
            };
            let needed = need.held().saturating_add(least);
            if worst.as_ref().is_none_or(|(_, _, most)| needed > *most) {
                worst = Some((needed.saturating_sub(capacity), need, needed));
            }
        }
        worst.ok_or_else(|| BackendError::Unsupported {
            operation: "prove".to_owned(),
            reason: "a proof without stages".to_owned(),
        })
    }

    /// The bytes at each stage, and pinned bytes. Fits, by `lacking`.
    pub(super) fn simulate(&self, capacity: u64) -> Result<(Vec<(Stage, u64)>, u64), BackendError> {
        let mut stages = Vec::new();
        let mut pinned: u64 =
            self.sections.iter().filter(|s| s.placement == Placement::Streamed).map(|s| s.bytes).sum();
        let mut kept = 0;
        for need in self.needs()? {
            let held = need.held();
            let room = capacity.saturating_sub(held);
            let w = match &need.operation {
                Some(operation) => self.workspace(operation, room)?,
                None => Workspace::default(),
            };
            // Tables that an operation leaves are there until the room is needed; they are part of what it takes
            // itself.
            let beside = if w.kept == 0 && w.taken.saturating_add(kept) <= room { kept } else { 0 };
            stages.push((need.stage, held + w.taken + beside));
            kept = w.kept + beside;
            pinned += w.pinned;
        }
        Ok((stages, pinned))
    }

    /// Whether every stage has all the memory that it can make use of.
    pub(super) fn is_at_its_best(&self, capacity: u64) -> Result<bool, BackendError> {
        for need in self.needs()? {
            let best = match &need.operation {
                Some(operation) => self.workspace(operation, u64::MAX)?.best,
                None => 0,
            };
            if need.held().saturating_add(best) > capacity {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The time that streaming costs, in bytes that could cross the bus meanwhile: the transfer that no additions hide,
    /// and what chunks cost. Then, of equal ones, the fewer bytes.
    pub(super) fn cost(&self) -> (u64, u64) {
        let (mut time, mut bytes) = (0u64, 0u64);
        for s in self.sections.iter().filter(|s| s.placement == Placement::Streamed) {
            let group = usize::from(s.spec.group == GroupId::G2);
            let time_of = |additions: u64| additions.saturating_mul(BYTES_AN_ADDITION[group]);
            let (hidden, added) = match s.section {
                Section::H => {
                    let hidden = time_of(ADDITIONS_A_SCALAR * s.spec.count);
                    (hidden, hidden / DENSE_OVERHEAD)
                }
                _ => {
                    let w = self.assignment;
                    let additions = w.n_ones.saturating_add(w.n_wide.saturating_mul(ADDITIONS_A_SCALAR));
                    let part = u128::from(additions) * u128::from(s.spec.count) / u128::from(w.n_variables.max(1));
                    (time_of(part as u64), 0)
                }
            };
            let exposed = s.bytes.saturating_sub(hidden).saturating_add(added).saturating_add(BYTES_A_SECTION[group]);
            time = time.saturating_add(exposed);
            bytes = bytes.saturating_add(s.bytes);
        }
        (time, bytes)
    }
}
