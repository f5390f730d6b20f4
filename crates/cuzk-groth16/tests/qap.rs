//! The reduction from constraints to polynomials, worked out by hand over a field of 17 elements.
//!
//! The statement is "I know x with x·x = y", y public. With one row for each input the system has three constraints:
//!
//! | row | A | B | C |
//! |---|---|---|---|
//! | 0 | x | x | y |
//! | 1 | ONE | 0 | 0 |
//! | 2 | y | 0 | 0 |
//!
//! The domain has four points: 3 generates the multiplicative group of order 16, so ω = 3⁴ = 81 = 13 has order 4, and the domain is
//! 1, 13, 13² = 169 = 16, 13³ = 208 = 4.
//!
//! At τ = 2: t(τ) = 2⁴ − 1 = 15, and 1/4 = 13 because 4·13 = 52 = 1, so t/4 = 195 = 8. With Lᵢ(τ) = t/4 · ωⁱ / (τ − ωⁱ):
//!
//! * L₀ = 8 ·  1 / ( 2 −  1 =  1)          = 8
//! * L₁ = 8 · 13 / ( 2 − 13 =  6), 1/6 = 3  → 8·13·3 = 312 = 6
//! * L₂ = 8 · 16 / ( 2 − 16 =  3), 1/3 = 6  → 8·16·6 = 768 = 3
//! * L₃ = 8 ·  4 / ( 2 −  4 = 15), 1/15 = 8 → 8·4·8 = 256 = 1
//!
//! (their sum is 18 = 1, as it must be). So A_ONE = L₁ = 6, A_y = L₂ = 3, A_x = L₀ = 8, B_x = 8, C_y = 8, all others 0.

#![allow(missing_docs, reason = "the derive of the field writes a second struct")]

use bellpepper_core::{ConstraintSystem, num::AllocatedNum};
use cuzk_groth16::{SetupError, qap};
use cuzk_r1cs::{R1cs, RecordingCs};
use ff::{Field, PrimeField};

/// The integers modulo 17.
#[derive(PrimeField)]
#[PrimeFieldModulus = "17"]
#[PrimeFieldGenerator = "3"]
#[PrimeFieldReprEndianness = "little"]
struct F17([u64; 1]);

fn square() -> R1cs<F17> {
    let mut cs = RecordingCs::new();
    cs.alloc_input(|| "ONE", || Ok(F17::ONE)).unwrap();
    let x = AllocatedNum::alloc(cs.namespace(|| "x"), || Ok(F17::from(3))).unwrap();
    let y = cs.alloc_input(|| "y", || Ok(F17::from(9))).unwrap();
    cs.enforce(|| "x·x = y", |lc| lc + x.get_variable(), |lc| lc + x.get_variable(), |lc| lc + y);
    cs.into_r1cs().unwrap()
}

fn f(values: [u64; 3]) -> Vec<F17> {
    values.into_iter().map(F17::from).collect()
}

#[test]
fn by_hand() {
    let qap = qap::evaluate_at(&square(), F17::from(2)).unwrap();
    assert_eq!(qap.log_n, 2);
    assert_eq!(qap.t, F17::from(15));
    // In the order ONE, y, x.
    assert_eq!(qap.a, f([6, 3, 8]));
    assert_eq!(qap.b, f([0, 0, 8]));
    assert_eq!(qap.c, f([0, 8, 0]));
}

#[test]
fn a_satisfying_assignment_makes_t_divide() {
    // w = (1, 9, 3): A = 6 + 3·9 + 8·3 = 57 = 6, B = 8·3 = 24 = 7, C = 8·9 = 72 = 4; A·B − C = 38 = 4 = h(τ)·t(τ) with
    // h(τ) = 4/15 = 4·8 = 32 = 15. That h is a polynomial is seen at every τ outside of the domain: it has degree at most 2,
    // so its values at 12 points fit one polynomial through the first three.
    let w = f([1, 9, 3]);
    let dot = |p: &[F17]| p.iter().zip(&w).fold(F17::ZERO, |sum, (p, w)| sum + *p * w);
    let h = |tau: F17| {
        let qap = qap::evaluate_at(&square(), tau).ok()?;
        Some((tau, (dot(&qap.a) * dot(&qap.b) - dot(&qap.c)) * qap.t.invert().unwrap()))
    };
    assert_eq!(h(F17::from(2)), Some((F17::from(2), F17::from(15))));
    let points: Vec<_> = (0..17).map(F17::from).filter_map(h).collect();
    assert_eq!(points.len(), 13, "17 elements without the 4 of the domain");
    let interpolate = |at: F17| {
        (0..3).fold(F17::ZERO, |sum, i| {
            let (xi, yi) = points[i];
            let others = (0..3).filter(|j| *j != i).map(|j| points[j].0);
            sum + others.fold(yi, |term, xj| term * (at - xj) * (xi - xj).invert().unwrap())
        })
    };
    for (tau, value) in &points {
        assert_eq!(interpolate(*tau), *value);
    }
}

#[test]
fn tau_in_the_domain_is_refused() {
    for point in [1, 13, 16, 4] {
        assert!(matches!(qap::evaluate_at(&square(), F17::from(point)), Err(SetupError::TauInDomain)));
    }
}

#[test]
fn a_domain_that_the_field_does_not_have_is_refused() {
    // 17 − 1 = 2⁴: 16 points at most; 15 constraints and the two rows for inputs are 17.
    let mut cs = RecordingCs::<F17>::new();
    cs.alloc_input(|| "ONE", || Ok(F17::ONE)).unwrap();
    let x = cs.alloc_input(|| "x", || Ok(F17::ONE)).unwrap();
    for i in 0..15 {
        cs.enforce(|| format!("{i}"), |lc| lc + x, |lc| lc + x, |lc| lc + x);
    }
    let refused = qap::evaluate_at(&cs.into_r1cs().unwrap(), F17::from(2));
    assert!(matches!(refused, Err(SetupError::DomainTooLarge { constraints: 17, log_n: 5, limit: 4 })));
}
