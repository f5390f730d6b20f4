//! Operations by their sizes, and what they take.

use cuzk_backend::{AssignmentShape, MatrixShape, Operation, QuotientPlan, Result, ScalarsShape, Workspace};

use super::{broken, curve, group, known};
use crate::abi::{self, OperationKind};

impl abi::MatrixShape {
    pub(crate) fn new(shape: &MatrixShape) -> Self {
        let MatrixShape { curve, n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes } = *shape;
        let (curve, reserved) = (curve as u32, 0);
        Self { curve, row_offset_bytes, coefficient_bytes, reserved, n_rows, n_nonzeros, n_coefficients }
    }

    pub(crate) fn decode(&self) -> Result<MatrixShape> {
        let Self { n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes, .. } = *self;
        let curve = curve("workspace", self.curve)?;
        Ok(MatrixShape { curve, n_rows, n_nonzeros, n_coefficients, row_offset_bytes, coefficient_bytes })
    }
}

impl abi::AssignmentShape {
    pub(crate) fn new(shape: &AssignmentShape) -> Self {
        let AssignmentShape { curve, n_variables, n_ones, n_wide } = *shape;
        Self { curve: curve as u32, reserved: 0, n_variables, n_ones, n_wide }
    }

    pub(crate) fn decode(&self) -> Result<AssignmentShape> {
        let Self { n_variables, n_ones, n_wide, .. } = *self;
        Ok(AssignmentShape { curve: curve("workspace", self.curve)?, n_variables, n_ones, n_wide })
    }
}

impl abi::Operation {
    pub(crate) fn new(operation: &Operation) -> Self {
        let of = |kind: OperationKind| Self { kind: kind as u32, ..Self::default() };
        match operation {
            Operation::Ntt(plan) => {
                Self { ntt: abi::NttPlan { shift: [0; 4], ..abi::NttPlan::new(plan) }, ..of(OperationKind::Ntt) }
            }
            Operation::Quotient(plan) => {
                let ntt = abi::NttPlan { curve: plan.curve as u32, log_n: plan.log_n, ..abi::NttPlan::default() };
                Self { ntt, ..of(OperationKind::Quotient) }
            }
            Operation::Matrix(shape) => Self { matrix: abi::MatrixShape::new(shape), ..of(OperationKind::Matrix) },
            Operation::Density { len } => Self { len: *len, ..of(OperationKind::Density) },
            Operation::Assignment(shape) => {
                Self { assignment: abi::AssignmentShape::new(shape), ..of(OperationKind::Assignment) }
            }
            Operation::Evaluate(shape) => Self { matrix: abi::MatrixShape::new(shape), ..of(OperationKind::Evaluate) },
            Operation::Bases(spec) => Self { bases: abi::BasesSpec::new(spec), ..of(OperationKind::Bases) },
            Operation::Msm { bases, scalars } => {
                let msm = Self { bases: abi::BasesSpec::new(bases), ..of(OperationKind::Msm) };
                match scalars {
                    ScalarsShape::Dense => Self { scalars: abi::MsmOperands::DENSE, ..msm },
                    ScalarsShape::Assignment { assignment, len } => Self {
                        scalars: abi::MsmOperands::ASSIGNMENT,
                        len: *len,
                        assignment: abi::AssignmentShape::new(assignment),
                        ..msm
                    },
                }
            }
            Operation::FixedBase { curve, group, count } => {
                let (curve, group, count) = (*curve as u32, *group as u32, *count);
                let bases = abi::BasesSpec { curve, group, count, ..abi::BasesSpec::default() };
                Self { bases, ..of(OperationKind::FixedBase) }
            }
        }
    }

    pub(crate) fn decode(&self) -> Result<Operation> {
        const OP: &str = "workspace";
        const KINDS: [OperationKind; 9] = [
            OperationKind::Ntt,
            OperationKind::Quotient,
            OperationKind::Matrix,
            OperationKind::Density,
            OperationKind::Assignment,
            OperationKind::Evaluate,
            OperationKind::Bases,
            OperationKind::Msm,
            OperationKind::FixedBase,
        ];
        let kind = KINDS.into_iter().find(|k| *k as u32 == self.kind);
        let len = self.len;
        Ok(match known(OP, "the kind of operation", self.kind, kind)? {
            OperationKind::Ntt => Operation::Ntt(self.ntt.decode()?),
            OperationKind::Quotient => {
                Operation::Quotient(QuotientPlan { curve: curve(OP, self.ntt.curve)?, log_n: self.ntt.log_n })
            }
            OperationKind::Matrix => Operation::Matrix(self.matrix.decode()?),
            OperationKind::Density => Operation::Density { len },
            OperationKind::Assignment => Operation::Assignment(self.assignment.decode()?),
            OperationKind::Evaluate => Operation::Evaluate(self.matrix.decode()?),
            OperationKind::Bases => Operation::Bases(self.bases.decode()?),
            OperationKind::Msm => Operation::Msm {
                bases: self.bases.decode()?,
                scalars: match self.scalars {
                    abi::MsmOperands::DENSE => ScalarsShape::Dense,
                    abi::MsmOperands::ASSIGNMENT => {
                        ScalarsShape::Assignment { assignment: self.assignment.decode()?, len }
                    }
                    other => return broken(OP, "the kind of scalars", "1 or 2", other),
                },
            },
            OperationKind::FixedBase => Operation::FixedBase {
                curve: curve(OP, self.bases.curve)?,
                group: group(OP, self.bases.group)?,
                count: self.bases.count,
            },
        })
    }
}

impl abi::Workspace {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        let Workspace { least, taken, best, kept, pinned } = *workspace;
        Self { least, taken, best, kept, pinned }
    }

    pub(crate) fn decode(&self) -> Workspace {
        let Self { least, taken, best, kept, pinned } = *self;
        Workspace { least, taken, best, kept, pinned }
    }
}
