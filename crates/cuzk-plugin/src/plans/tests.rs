//! Numbers and pointers that no host of this version sends.

use std::{fmt::Debug, ptr};

use super::*;
use crate::abi::OperationKind;

fn refused<T: Debug>(outcome: Result<T>) -> (String, String) {
    match outcome {
        Err(BackendError::Precondition { what, actual, .. }) => (what, actual),
        other => panic!("{other:?}"),
    }
}

fn refusal(what: &str, actual: impl ToString) -> (String, String) {
    (what.to_owned(), actual.to_string())
}

const NTT: abi::NttPlan =
    abi::NttPlan { curve: 1, log_n: 3, direction: 1, order: 1, coset: 0, reserved: 0, shift: [0; 4] };

const BASES: abi::BasesSpec = abi::BasesSpec { curve: 1, group: 1, residency: 1, multiples: 1, count: 5 };

const OPERANDS: abi::MsmOperands =
    abi::MsmOperands { kind: 1, has_density: 0, source: 2, first: 3, len: 4, density: 0 };

#[test]
fn unknown_numbers_are_refused() {
    NTT.decode().unwrap();
    BASES.decode().unwrap();
    OPERANDS.decode().unwrap();
    for n in [0, 77] {
        assert_eq!(refused(abi::NttPlan { curve: n, ..NTT }.decode()), refusal("the curve", n));
        assert_eq!(refused(abi::NttPlan { direction: n, ..NTT }.decode()), refusal("the direction", n));
        assert_eq!(refused(abi::NttPlan { order: n, ..NTT }.decode()), refusal("the order", n));
        assert_eq!(refused(abi::NttPlan { coset: n + 2, ..NTT }.decode()), refusal("the coset", n + 2));
        assert_eq!(refused(abi::QuotientPlan { curve: n, log_n: 1 }.decode()), refusal("the curve", n));
        assert_eq!(refused(abi::BasesSpec { group: n, ..BASES }.decode()), refusal("the group", n));
        assert_eq!(refused(abi::BasesSpec { residency: n, ..BASES }.decode()), refusal("the residency", n));
        assert_eq!(refused(join(n, 1)), refusal("the kind of handle", n));
        let operation = abi::Operation { kind: n, ..abi::Operation::default() };
        assert_eq!(refused(operation.decode()), refusal("the kind of operation", n));
        let msm =
            abi::Operation { kind: OperationKind::Msm as u32, bases: BASES, scalars: n, ..abi::Operation::default() };
        assert_eq!(refused(msm.decode()), refusal("the kind of scalars", n));
    }
    for (kind, has_density) in [(0, 0), (1, 1), (2, 2), (3, 0)] {
        let (_, actual) = refused(abi::MsmOperands { kind, has_density, ..OPERANDS }.decode());
        assert_eq!(actual, format!("{kind} with {has_density}"));
    }
}

#[test]
fn handles_of_every_kind_come_back() {
    for kind in 1..=9 {
        let handle = join(kind, 40 + u64::from(kind)).unwrap();
        let (back, id) = split(handle);
        assert_eq!((back as u32, id), (kind, 40 + u64::from(kind)));
    }
}

#[test]
fn pointers_that_cannot_be_followed_are_refused() {
    let words = [1u64, 2];
    // SAFETY: only the first two slices are followed, and they are whole; the others are refused for their numbers.
    unsafe {
        assert_eq!(Slice::new(&words).elements("op", "the words").unwrap(), words);
        assert_eq!(Slice::<u64>::EMPTY.elements("op", "the words").unwrap(), []);
        assert_eq!(refused(slice(ptr::null::<u64>(), 1).elements("op", "the words")), refusal("the words", "0x0"));
        let odd = words.as_ptr().cast::<u8>().wrapping_add(1).cast::<u64>();
        assert_eq!(refused(slice(odd, 1).elements("op", "the words")).0, "the words");
        let endless = slice(words.as_ptr(), u64::MAX / 8);
        assert_eq!(refused(endless.elements("op", "the words")), refusal("the words", u64::MAX / 8));
        assert_eq!(refused(pointee("op", ptr::null::<u64>())).0, "a pointer");
        assert_eq!(refused(place("op", ptr::null_mut::<u64>())).0, "a pointer to a result");
        assert_eq!(refused(bytes_at("op", ptr::null_mut(), 3)).0, "the target");
        assert_eq!(bytes_at("op", ptr::null_mut(), 0).unwrap(), []);
    }
}

#[test]
fn a_matrix_of_odd_widths_is_refused() {
    let view = MatrixView {
        curve: CurveId::Bn254,
        n_columns: 1,
        row_offsets: RowOffsets::U32(&[0, 1]),
        columns: &[0],
        coefficients: CoefficientIndices::U8(&[0]),
        dictionary: &[0; 64],
    };
    let whole = abi::MatrixView::new(&view);
    // SAFETY: the views point to live memory of the sizes that their counts say, or are refused for their numbers.
    unsafe {
        whole.decode().unwrap();
        let odd = abi::MatrixView { row_offset_bytes: 2, ..whole };
        assert_eq!(refused(odd.decode()), refusal("the bytes of a row offset", 2));
        let odd = abi::MatrixView { coefficient_bytes: 8, ..whole };
        assert_eq!(refused(odd.decode()), refusal("the bytes of a coefficient index", 8));
        let endless = abi::MatrixView { n_rows: u64::MAX, ..whole };
        assert_eq!(refused(endless.decode()).0, "the row offsets");
        let nowhere = abi::MatrixView { columns: ptr::null(), ..whole };
        assert_eq!(refused(nowhere.decode()), refusal("the columns", "0x0"));
    }
}
