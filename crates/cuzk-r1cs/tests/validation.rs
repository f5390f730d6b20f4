//! Every check of the constructors from parts, each on input that is right but for one fault.

use blstrs::Scalar;
use cuzk_r1cs::{
    Assignment, AssignmentError, CoeffIndices, CsrMatrix, MatrixBuilder, MatrixError, R1cs, R1csError, RowOffsets,
    ShapeError, evaluate_into,
};

fn f(value: u64) -> Scalar {
    Scalar::from(value)
}

/// The parts of a 3 × 4 matrix: [[1, 0, 0, 5], [0, 0, 0, 0], [0, 7, -1, 5]].
#[derive(Clone)]
struct Parts {
    n_cols: usize,
    offsets: RowOffsets,
    columns: Vec<u32>,
    indices: CoeffIndices,
    dictionary: Vec<Scalar>,
}

impl Parts {
    fn new() -> Self {
        Self {
            n_cols: 4,
            offsets: RowOffsets::U32(vec![0, 2, 2, 5]),
            columns: vec![0, 3, 1, 2, 3],
            indices: CoeffIndices::U8(vec![0, 2, 3, 1, 2]),
            dictionary: vec![f(1), -f(1), f(5), f(7)],
        }
    }

    fn build(self) -> Result<CsrMatrix<Scalar>, MatrixError> {
        CsrMatrix::from_parts(self.n_cols, self.offsets, self.columns, self.indices, self.dictionary)
    }
}

#[test]
fn each_fault_of_a_matrix_has_its_error() {
    let matrix = Parts::new().build().expect("no fault");
    assert_eq!((matrix.n_rows(), matrix.n_cols(), matrix.nnz()), (3, 4, 5));
    assert_eq!(matrix.weights(), [1, -1, 5, 7]);
    assert_eq!(matrix.row(2).collect::<Vec<_>>(), [(1, &f(7)), (2, &-f(1)), (3, &f(5))]);

    let fault = |change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::new();
        change(&mut parts);
        parts.build().expect_err("one fault")
    };
    let offsets = |offsets: &[u32]| fault(&|parts| parts.offsets = RowOffsets::U32(offsets.to_vec()));
    let columns = |columns: &[u32]| fault(&|parts| parts.columns = columns.to_vec());
    let indices = |indices: &[u8]| fault(&|parts| parts.indices = CoeffIndices::U8(indices.to_vec()));
    let dictionary = |entries: &[Scalar]| fault(&|parts| parts.dictionary = entries.to_vec());

    assert_eq!(offsets(&[]), MatrixError::NoOffsets);
    assert_eq!(offsets(&[1, 2, 2, 5]), MatrixError::FirstOffset { found: 1 });
    let error = MatrixError::NonMonotoneOffsets { row: 1, start: 3, end: 2 };
    assert_eq!(offsets(&[0, 3, 2, 5]), error);
    // Past the end, though the last offset is right again.
    let error = MatrixError::NonMonotoneOffsets { row: 1, start: u32::MAX.into(), end: 2 };
    assert_eq!(offsets(&[0, u32::MAX, 2, 5]), error);
    assert_eq!(offsets(&[0, 2, 2, 4]), MatrixError::LastOffset { expected: 5, found: 4 });
    assert_eq!(
        fault(&|parts| parts.offsets = RowOffsets::U64(vec![0, 2, 2, 5])),
        MatrixError::OffsetWidth { expected: 4, found: 8, nnz: 5 },
    );
    assert_eq!(columns(&[0, 3, 1, 2, 4]), MatrixError::ColumnOutOfRange { row: 2, column: 4, n_cols: 4 },);
    let error = MatrixError::UnsortedColumns { row: 2, previous: 2, column: 1 };
    assert_eq!(columns(&[0, 3, 2, 1, 3]), error);
    let error = MatrixError::UnsortedColumns { row: 0, previous: 3, column: 3 };
    assert_eq!(columns(&[3, 3, 1, 2, 3]), error);
    assert_eq!(
        fault(&|parts| parts.n_cols = 1 << 32),
        MatrixError::TooManyColumns { n_cols: 1 << 32, max: u32::MAX as usize },
    );
    let error = MatrixError::LengthMismatch { columns: 5, indices: 4 };
    assert_eq!(indices(&[0, 2, 3, 1]), error);
    assert_eq!(indices(&[0, 2, 3, 1, 4]), MatrixError::CoefficientOutOfRange { row: 2, index: 4, entries: 4 },);
    let error = MatrixError::DictionaryOrder { row: 0, index: 3, expected: 2 };
    assert_eq!(indices(&[0, 3, 2, 1, 3]), error);
    assert_eq!(indices(&[0, 2, 2, 1, 2]), MatrixError::UnusedCoefficients { entries: 4, used: 3 });
    assert_eq!(
        fault(&|parts| parts.indices = CoeffIndices::U16(vec![0, 2, 3, 1, 2])),
        MatrixError::IndexWidth { expected: 1, found: 2, entries: 4 },
    );
    assert_eq!(dictionary(&[]), MatrixError::DictionaryStart { entry: 0 });
    assert_eq!(dictionary(&[f(1)]), MatrixError::DictionaryStart { entry: 1 });
    assert_eq!(dictionary(&[f(1), f(5), -f(1), f(7)]), MatrixError::DictionaryStart { entry: 1 });
    assert_eq!(dictionary(&[f(1), -f(1), f(0), f(7)]), MatrixError::ZeroCoefficient { entry: 2 });
    assert_eq!(dictionary(&[f(1), -f(1), f(5), f(5)]), MatrixError::RepeatedCoefficient { entry: 3 });
    assert_eq!(dictionary(&[f(1), -f(1), f(1), f(5)]), MatrixError::RepeatedCoefficient { entry: 2 });
}

#[test]
fn a_builder_refuses_columns_that_do_not_exist() {
    let mut builder = MatrixBuilder::new();
    builder.push_row([(0, f(1)), (1, f(1))]);
    builder.push_row([]);
    builder.push_row([(9, f(0))]);
    builder.push_row([(1, f(1)), (4, f(3))]);
    let error = MatrixError::ColumnOutOfRange { row: 3, column: 4, n_cols: 4 };
    assert_eq!(builder.clone().finish(4), Err(error));
    assert!(builder.finish(5).is_ok());
}

/// A matrix of `n_cols` columns with the given rows.
fn matrix(n_cols: usize, rows: &[&[(u32, u64)]]) -> CsrMatrix<Scalar> {
    let mut builder = MatrixBuilder::new();
    for row in rows {
        builder.push_row(row.iter().map(|&(column, coeff)| (column, f(coeff))));
    }
    builder.finish(n_cols).expect("columns are in range")
}

#[test]
fn each_fault_of_a_system_has_its_error() {
    // One constraint, x · x = y, then the rows of ONE and y.
    let a = || matrix(3, &[&[(2, 1)], &[(0, 1)], &[(1, 1)]]);
    let b = || matrix(3, &[&[(2, 1)], &[], &[]]);
    let c = || matrix(3, &[&[(1, 1)], &[], &[]]);
    let r1cs = R1cs::from_parts(2, a(), b(), c()).expect("no fault");
    assert_eq!((r1cs.n_inputs(), r1cs.n_aux(), r1cs.n_constraints()), (2, 1, 3));

    assert_eq!(
        R1cs::from_parts(2, a(), matrix(3, &[&[(2, 1)], &[]]), c()),
        Err(R1csError::RowCount { matrix: 'B', expected: 3, found: 2 }),
    );
    assert_eq!(
        R1cs::from_parts(2, a(), b(), matrix(4, &[&[(1, 1)], &[], &[]])),
        Err(R1csError::ColumnCount { matrix: 'C', expected: 3, found: 4 }),
    );
    for n_inputs in [0, 4] {
        let error = R1csError::InputCount { n_inputs, max: 3, n_cols: 3, n_rows: 3 };
        assert_eq!(R1cs::from_parts(n_inputs, a(), b(), c()), Err(error));
    }
    // With three inputs the rows would have to start with that of ONE.
    let error = R1csError::InputRow { row: 0, input: 0 };
    assert_eq!(R1cs::from_parts(3, a(), b(), c()), Err(error));
    let error = R1csError::InputRow { row: 2, input: 1 };
    let scaled = matrix(3, &[&[(2, 1)], &[(0, 1)], &[(1, 2)]]);
    assert_eq!(R1cs::from_parts(2, scaled, b(), c()), Err(error.clone()));
    let occupied = || matrix(3, &[&[(2, 1)], &[], &[(0, 1)]]);
    assert_eq!(R1cs::from_parts(2, a(), occupied(), c()), Err(error.clone()));
    assert_eq!(R1cs::from_parts(2, a(), b(), occupied()), Err(error));
}

/// The parts of [1, 35 | 3, 0, 1] and 60 zeros, so that there is a second word.
#[derive(Clone)]
struct Packed {
    n_inputs: usize,
    n_aux: usize,
    ones: Vec<u64>,
    wide: Vec<u64>,
    rank: Vec<u32>,
    scalars: Vec<Scalar>,
}

impl Packed {
    fn new() -> Self {
        Self {
            n_inputs: 2,
            n_aux: 63,
            ones: vec![0b10001, 0],
            wide: vec![0b00110, 0],
            rank: vec![0, 2],
            scalars: vec![f(35), f(3)],
        }
    }

    fn build(self) -> Result<Assignment<Scalar>, AssignmentError> {
        let Self { n_inputs, n_aux, ones, wide, rank, scalars } = self;
        Assignment::from_parts(n_inputs, n_aux, ones, wide, rank, scalars)
    }
}

#[test]
fn each_fault_of_an_assignment_has_its_error() {
    let w = Packed::new().build().expect("no fault");
    assert_eq!(w.inputs(), [f(1), f(35)]);
    assert_eq!(w.bytes(), 2 * (8 + 8 + 4) + 2 * 32);

    let fault = |change: &dyn Fn(&mut Packed)| {
        let mut parts = Packed::new();
        change(&mut parts);
        parts.build().expect_err("one fault")
    };
    assert_eq!(fault(&|p| p.ones[0] ^= 1), AssignmentError::VariableZero { n_inputs: 2 });
    let error = AssignmentError::VariableZero { n_inputs: 0 };
    assert_eq!(fault(&|p| (p.n_inputs, p.n_aux) = (0, 65)), error);
    let max = u32::MAX as usize;
    for n_aux in [max - 1, usize::MAX] {
        let error = AssignmentError::TooManyVariables { n_inputs: 2, n_aux, max };
        assert_eq!(fault(&|p| p.n_aux = n_aux), error);
    }
    let length = |array, found| AssignmentError::Length { array, expected: 2, found };
    assert_eq!(fault(&|p| p.ones.push(0)), length("ones", 3));
    assert_eq!(fault(&|p| p.wide.truncate(1)), length("wide", 1));
    assert_eq!(fault(&|p| p.rank.clear()), length("rank", 0));
    assert_eq!(fault(&|p| p.scalars.push(f(9))), length("wide_scalars", 3));
    let past_end = |array| AssignmentError::BitPastEnd { array, n_variables: 65 };
    assert_eq!(fault(&|p| p.ones[1] = 0b10), past_end("ones"));
    assert_eq!(fault(&|p| p.wide[1] = 1 << 63), past_end("wide"));
    assert_eq!(fault(&|p| p.ones[0] |= 0b100), AssignmentError::Overlap { variable: 2 });
    let error = AssignmentError::Rank { word: 1, expected: 2, found: 1 };
    assert_eq!(fault(&|p| p.rank[1] = 1), error);
    for value in [0, 1] {
        let error = AssignmentError::NarrowValue { index: 1, value };
        assert_eq!(fault(&|p| p.scalars[1] = f(value.into())), error);
    }
    assert_eq!(Assignment::from_values(&[f(2)], &[f(1)]), Err(AssignmentError::VariableZero { n_inputs: 1 }),);
}

#[test]
fn evaluation_leaves_the_output_alone_when_shapes_differ() {
    let w = Assignment::from_values(&[f(1)], &[f(4), f(0)]).expect("valid");
    let m = matrix(3, &[&[(1, 2)], &[]]);
    let mut out = [f(77); 2];
    assert_eq!(evaluate_into(&m, &w, &mut out[..1]), Err(ShapeError::Output { n_rows: 2, len: 1 }),);
    assert_eq!(
        evaluate_into(&matrix(4, &[&[], &[]]), &w, &mut out),
        Err(ShapeError::Variables { n_cols: 4, n_variables: 3 }),
    );
    assert_eq!(out, [f(77); 2]);
    assert_eq!(evaluate_into(&m, &w, &mut out), Ok(()));
    assert_eq!(out, [f(8), f(0)]);
}
