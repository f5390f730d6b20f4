//! The prover: everything that a proof needs, in one stream's order, and its assembly on the host.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use cuzk_backend::{AssignmentView, DeviceAssignment, MsmScalars, Pending, QuotientPlan, Stream};
use cuzk_curve::{Curve, repr};
use cuzk_keys::VerifyingKey;
use cuzk_r1cs::Assignment;
use ff::Field;
use group::{Curve as _, Group};
use rand_core::{OsRng, RngCore};

use crate::{
    DeviceCircuit, DeviceKey, Proof, ProveError,
    key::VerifyingHalf,
    pace::{Clock, Span, Wanted, times},
};

/// The two scalars that make a proof reveal nothing of the witness.
#[derive(Clone, Copy)]
pub struct Randomness<F> {
    r: F,
    s: F,
}

impl<F: Field> Randomness<F> {
    /// Drawn from the operating system.
    ///
    /// # Errors
    /// It gives none.
    pub fn from_os() -> Result<Self, ProveError> {
        // A first draw that may fail: `Field::random` has no way to report it.
        OsRng.try_fill_bytes(&mut [0; 32]).map_err(|e| ProveError::Randomness(e.to_string()))?;
        Ok(Self { r: F::random(OsRng), s: F::random(OsRng) })
    }

    /// Given r and s. Such a proof is reproducible, and NOT zero-knowledge for whoever knows them: for comparing provers.
    pub fn insecure(r: F, s: F) -> Self {
        Self { r, s }
    }
}

impl<F> fmt::Debug for Randomness<F> {
    /// Shows nothing: r and s reveal the witness's contribution to the proof.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness(..)")
    }
}

/// A step of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The packed assignment travels to the device.
    Upload,
    /// A·w and B·w.
    Evaluate,
    /// The quotient polynomial.
    Quotient,
    /// `Σ hᵢ · h[i]`.
    MsmH,
    /// `Σ auxᵢ · l[i]`.
    MsmL,
    /// `Σ wᵢ · a[i]`.
    MsmA,
    /// `Σ wᵢ · b_g1[i]`.
    MsmBG1,
    /// `Σ wᵢ · b_g2[i]`.
    MsmBG2,
    /// Waiting for the results and assembling the proof.
    Finish,
    /// Verifying it.
    Verify,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Upload => "upload",
            Self::Evaluate => "evaluate",
            Self::Quotient => "quotient",
            Self::MsmH => "msm h",
            Self::MsmL => "msm l",
            Self::MsmA => "msm a",
            Self::MsmBG1 => "msm b_g1",
            Self::MsmBG2 => "msm b_g2",
            Self::Finish => "finish",
            Self::Verify => "verify",
        })
    }
}

/// How long each stage took, in order: on the device by its own clock, on the host by the host's.
pub type StageTimes = Vec<(Stage, Duration)>;

/// A proof whose work on the device is done, and which is not yet assembled.
#[derive(Debug)]
pub struct PendingProof<C: Curve> {
    h: Pending,
    l: Pending,
    a: Pending,
    b_g1: Pending,
    b_g2: Pending,
    randomness: Randomness<C::Fr>,
    verifying: Arc<VerifyingHalf<C>>,
    inputs: Vec<C::Fr>,
    times: StageTimes,
}

/// A proof that has passed its verification.
#[derive(Clone, Debug)]
pub struct FinishedProof<C: Curve> {
    /// The proof.
    pub proof: Proof<C>,
    /// The public inputs that it was verified with, without ONE.
    pub inputs: Vec<C::Fr>,
    /// How long each stage took.
    pub times: StageTimes,
}

/// A proof whose assignment is on the device, or on its way there.
#[derive(Debug)]
pub struct PreparedProof<C: Curve> {
    assignment: DeviceAssignment,
    inputs: Vec<C::Fr>,
    upload: Span,
}

impl<C: Curve> PreparedProof<C> {
    /// Waits until the device has the assignment.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(&self) -> Result<(), ProveError> {
        Ok(self.upload.end.wait()?)
    }
}

/// Makes all of a proof that needs the device, and returns when the device is done. What it no longer needs by then
/// (the evaluation vectors, its copy of the assignment) is freed. The same as [`prove_prepare`] and [`prove_prepared`].
///
/// # Errors
/// Circuit, key and assignment do not belong together (with numbers); the device has no room or fails.
#[tracing::instrument(level = "debug", skip_all, fields(log_n = circuit.log_n))]
pub fn prove_start<C: Curve>(
    stream: &Stream,
    circuit: &DeviceCircuit,
    key: &DeviceKey<C>,
    assignment: &Assignment<C::Fr>,
    randomness: Randomness<C::Fr>,
) -> Result<PendingProof<C>, ProveError> {
    key.check_fits(circuit)?;
    let prepared = prove_prepare(stream, circuit, assignment)?;
    prove_prepared(stream, circuit, key, prepared, randomness, None)
}

/// The first part of [`prove_start`], which needs nothing of the device but memory for the packed assignment and the
/// bus: it can be done while another proof computes. Returns at once; [`PreparedProof::wait`] waits for the upload.
///
/// # Errors
/// Circuit and assignment do not belong together (with numbers); the device has no room or fails.
pub fn prove_prepare<C: Curve>(
    stream: &Stream,
    circuit: &DeviceCircuit,
    assignment: &Assignment<C::Fr>,
) -> Result<PreparedProof<C>, ProveError> {
    let (n_inputs, n_variables) = (circuit.n_inputs, circuit.n_variables);
    if assignment.n_variables() as u64 != n_variables || assignment.n_inputs() as u64 != n_inputs {
        return Err(ProveError::AssignmentMismatch { expected: n_variables, actual: assignment.n_variables() as u64 });
    }
    let begin = stream.record()?;
    let uploaded = stream.upload_assignment(&AssignmentView {
        curve: C::ID,
        n_variables,
        ones: assignment.ones(),
        wide: assignment.wide(),
        rank: assignment.rank(),
        wide_scalars: repr::as_bytes(assignment.wide_scalars()),
    })?;
    let upload = Span { stage: Stage::Upload, begin, end: stream.record()? };
    let mut inputs = assignment.inputs();
    inputs.remove(0);
    Ok(PreparedProof { assignment: uploaded, inputs, upload })
}

/// The second part of [`prove_start`], on the stream and with the circuit of the first: everything that computes.
///
/// `cancelled`, if given, is asked between the operations: when it says true, the operation that runs still ends (and the
/// one behind it, for domains below 2^24 or if the first is about to end), all is freed, and the call returns
/// [`ProveError::Cancelled`].
///
/// # Errors
/// Circuit, key and assignment do not belong together (with numbers); the device has no room or fails; the proof is not
/// wanted any more.
pub fn prove_prepared<C: Curve>(
    stream: &Stream,
    circuit: &DeviceCircuit,
    key: &DeviceKey<C>,
    prepared: PreparedProof<C>,
    randomness: Randomness<C::Fr>,
    cancelled: Option<&dyn Fn() -> bool>,
) -> Result<PendingProof<C>, ProveError> {
    key.check_fits(circuit)?;
    let PreparedProof { assignment: w, inputs, upload } = prepared;
    let (n_inputs, n_variables) = (circuit.n_inputs, circuit.n_variables);
    if w.n_variables() != n_variables {
        return Err(ProveError::AssignmentMismatch { expected: n_variables, actual: w.n_variables() });
    }
    let device = stream.device();
    let n = 1u64 << circuit.log_n;
    let mut clock = Clock::new(stream)?;
    let wanted = Wanted::new(cancelled, circuit.log_n, &circuit.pace);

    wanted.go_on(&clock)?;
    let (a, b) = (device.alloc_for::<C::Fr>(n)?, device.alloc_for::<C::Fr>(n)?);
    stream.evaluate(&circuit.a, &w, &a, n)?;
    stream.evaluate(&circuit.b, &w, &b, n)?;
    clock.mark(Stage::Evaluate)?;

    wanted.go_on(&clock)?;
    stream.quotient(&QuotientPlan { curve: C::ID, log_n: circuit.log_n }, &a, &b)?;
    drop(b);
    clock.mark(Stage::Quotient)?;

    wanted.go_on(&clock)?;
    let h = stream.msm(&key.h, &MsmScalars::Dense { buffer: &a, first: 0, len: n - 1 })?;
    drop(a);
    clock.mark(Stage::MsmH)?;

    wanted.go_on(&clock)?;
    let l = stream
        .msm(&key.l, &MsmScalars::Assignment { assignment: &w, variables: n_inputs..n_variables, density: None })?;
    clock.mark(Stage::MsmL)?;

    let dense_in =
        |density| MsmScalars::Assignment { assignment: &w, variables: 0..n_variables, density: Some(density) };
    wanted.go_on(&clock)?;
    let a = stream.msm(&key.a, &dense_in(&circuit.a_density))?;
    clock.mark(Stage::MsmA)?;

    wanted.go_on(&clock)?;
    let b_g1 = stream.msm(&key.b_g1, &dense_in(&circuit.b_density))?;
    clock.mark(Stage::MsmBG1)?;

    wanted.go_on(&clock)?;
    let b_g2 = stream.msm(&key.b_g2, &dense_in(&circuit.b_density))?;
    clock.mark(Stage::MsmBG2)?;
    drop(w);

    let mut times = times(&[upload])?;
    let computed = clock.times()?;
    circuit.pace.remember(&computed);
    times.extend(computed);
    Ok(PendingProof { h, l, a, b_g1, b_g2, randomness, verifying: key.verifying.clone(), inputs, times })
}

impl<C: Curve> PendingProof<C> {
    /// Collects the results, assembles the proof and verifies it.
    ///
    /// # Errors
    /// The device failed; [`ProveError::SelfCheck`] if the proof does not verify, and then it is not handed out.
    pub fn finish(self) -> Result<FinishedProof<C>, ProveError> {
        let mut times = self.times;
        let started = Instant::now();
        let h = self.h.wait::<C::G1Affine>()?;
        let l = self.l.wait::<C::G1Affine>()?;
        let a = self.a.wait::<C::G1Affine>()?;
        let b_g1 = self.b_g1.wait::<C::G1Affine>()?;
        let b_g2 = self.b_g2.wait::<C::G2Affine>()?;
        let proof = assemble(&self.verifying.vk, &self.randomness, &Sums { h, l, a, b_g1, b_g2 });
        let assembled = Instant::now();
        times.push((Stage::Finish, assembled - started));
        self.verifying.prepared.verify(&proof, &self.inputs).map_err(ProveError::SelfCheck)?;
        times.push((Stage::Verify, assembled.elapsed()));
        Ok(FinishedProof { proof, inputs: self.inputs, times })
    }
}

/// The results of the five multi-scalar multiplications.
struct Sums<C: Curve> {
    h: C::G1Affine,
    l: C::G1Affine,
    a: C::G1Affine,
    b_g1: C::G1Affine,
    b_g2: C::G2Affine,
}

/// A = α + a + r δ; B = β + b + s δ; C = l + h + s A + r B₁ − r s δ, with B₁ the image of B in G1.
fn assemble<C: Curve>(vk: &VerifyingKey<C>, &Randomness { r, s }: &Randomness<C::Fr>, sums: &Sums<C>) -> Proof<C> {
    let a = vk.delta_g1 * r + vk.alpha_g1 + sums.a;
    let b = vk.delta_g2 * s + vk.beta_g2 + sums.b_g2;
    let b_g1 = vk.delta_g1 * s + vk.beta_g1 + sums.b_g1;
    let c = C::G1::identity() + sums.l + sums.h + a * s + b_g1 * r - vk.delta_g1 * (r * s);
    Proof { a: a.to_affine(), b: b.to_affine(), c: c.to_affine() }
}
