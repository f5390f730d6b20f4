//! A matrix times an assignment, worked out by hand.

use cuzk_curve::{ScalarRepr, repr};

use super::Tester;
use crate::{AssignmentView, CoefficientIndices, MatrixView, Result, RowOffsets};

/// w = (1, 5, 0, 1, 7) times
///
/// ```text
///  0  1  0 -1  0      4
///  1  0  0  0  3     22
///  0  0  0  0  0      0
///  0  3  3  0 -1      8
///  1  0 -1  1  0      2
/// ```
///
/// and three zeros behind the last row.
pub(super) fn evaluation<F: ScalarRepr>(tester: &Tester<'_>) -> Result<()> {
    let number = F::from;
    let dictionary = [F::ONE, -F::ONE, number(3)];
    let matrix = tester.device.load_matrix(&MatrixView {
        curve: tester.curve,
        n_columns: 5,
        row_offsets: RowOffsets::U32(&[0, 2, 4, 4, 7, 10]),
        columns: &[1, 3, 0, 4, 1, 2, 4, 0, 2, 3],
        coefficients: CoefficientIndices::U8(&[0, 1, 0, 2, 2, 2, 1, 0, 1, 0]),
        dictionary: repr::as_bytes(&dictionary),
    })?;
    let assignment = tester.stream.upload_assignment(&AssignmentView {
        curve: tester.curve,
        n_variables: 5,
        ones: &[0b01001],
        wide: &[0b10010],
        rank: &[0],
        wide_scalars: repr::as_bytes(&[number(5), number(7)]),
    })?;
    let out = tester.upload(&[number(99); 9])?;
    tester.stream.evaluate(&matrix, &assignment, &out, 8)?;
    let expected = [4, 22, 0, 8, 2, 0, 0, 0, 99].map(number);
    tester.expect(tester.download::<F>(&out, 9)? == expected, || "a matrix times an assignment".to_owned())
}
