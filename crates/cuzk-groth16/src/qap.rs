//! From constraints to polynomials: the quadratic arithmetic program of a constraint system, evaluated at one point.
//!
//! Row i of the matrices belongs to the point ωⁱ of the domain of n = 2^log_n points. `Aⱼ` is the polynomial of degree below n
//! with `Aⱼ(ωⁱ) = A[i][j]`, so `Aⱼ(τ) = Σᵢ A[i][j] · Lᵢ(τ)` with the Lagrange basis `Lᵢ(τ) = (τⁿ − 1)/n · ωⁱ/(τ − ωⁱ)`; likewise
//! B and C. Nothing but the matrices and vectors of n or `n_variables` scalars is held in memory.

use cuzk_r1cs::{CsrMatrix, R1cs};
use ff::{BatchInvert, PrimeField};
use rayon::prelude::*;

use crate::SetupError;

/// Scalars that one task works on: long enough to hide the cost of its first power.
const CHUNK: usize = 1 << 14;

/// The polynomials of a constraint system at τ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QapAtTau<F> {
    /// `Aⱼ(τ)` for every variable j: inputs with ONE first, then aux.
    pub a: Vec<F>,
    /// `Bⱼ(τ)`.
    pub b: Vec<F>,
    /// `Cⱼ(τ)`.
    pub c: Vec<F>,
    /// `t(τ) = τⁿ − 1`.
    pub t: F,
    /// Binary logarithm of the domain's size n.
    pub log_n: u32,
}

/// Evaluates the polynomials of a constraint system at τ.
///
/// # Errors
/// The field has no domain that is large enough; τ lies in the domain.
pub fn evaluate_at<F: PrimeField>(r1cs: &R1cs<F>, tau: F) -> Result<QapAtTau<F>, SetupError> {
    let log_n = r1cs.log_domain();
    if log_n > F::S {
        return Err(SetupError::DomainTooLarge { constraints: r1cs.n_constraints(), log_n, limit: F::S });
    }
    let t = tau.pow_vartime([1u64 << log_n]) - F::ONE;
    if t.is_zero_vartime() {
        return Err(SetupError::TauInDomain);
    }
    let lagrange = lagrange_at(log_n, tau, t);
    let ((a, b), c) = rayon::join(
        || rayon::join(|| transpose_times(r1cs.a(), &lagrange), || transpose_times(r1cs.b(), &lagrange)),
        || transpose_times(r1cs.c(), &lagrange),
    );
    Ok(QapAtTau { a, b, c, t, log_n })
}

/// `first · baseⁱ` for i below n.
pub fn powers<F: PrimeField>(first: F, base: F, n: usize) -> Vec<F> {
    let mut out = vec![F::ZERO; n];
    out.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, out)| {
        let mut power = first * base.pow_vartime([(chunk * CHUNK) as u64]);
        for x in out {
            *x = power;
            power *= base;
        }
    });
    out
}

/// `Lᵢ(τ)` for every i below n; τ is not in the domain.
fn lagrange_at<F: PrimeField>(log_n: u32, tau: F, t: F) -> Vec<F> {
    let omega = (log_n..F::S).fold(F::ROOT_OF_UNITY, |w, _| w.square());
    // 1/n as a power of 1/2, which every odd field has a constant for.
    let scale = t * F::TWO_INV.pow_vartime([u64::from(log_n)]);
    let mut lagrange = powers(scale, omega, 1 << log_n);
    lagrange.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, numerators)| {
        let mut point = omega.pow_vartime([(chunk * CHUNK) as u64]);
        let mut denominators = Vec::with_capacity(numerators.len());
        for _ in 0..numerators.len() {
            denominators.push(tau - point);
            point *= omega;
        }
        denominators.iter_mut().batch_invert();
        for (numerator, inverse) in numerators.iter_mut().zip(denominators) {
            *numerator *= inverse;
        }
    });
    lagrange
}

/// `Σᵢ M[i][j] · x[i]` for every column j.
fn transpose_times<F: PrimeField>(matrix: &CsrMatrix<F>, x: &[F]) -> Vec<F> {
    let mut out = vec![F::ZERO; matrix.n_cols()];
    let minus_one = -F::ONE;
    for (i, x) in x.iter().enumerate().take(matrix.n_rows()) {
        for (column, coefficient) in matrix.row(i) {
            let out = &mut out[column as usize];
            if *coefficient == F::ONE {
                *out += x;
            } else if *coefficient == minus_one {
                *out -= x;
            } else {
                *out += *x * coefficient;
            }
        }
    }
    out
}
