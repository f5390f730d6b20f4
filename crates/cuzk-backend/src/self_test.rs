//! Known answers: what a device must get right before it is used.
//!
//! Drivers and compilers have computed wrong products on real cards, silently. The test takes well under a second on a processor
//! and asks for every operation, with the inputs that go wrong first: infinity, a point beside its negative, repeats, one bucket that
//! holds everything, cosets, every order of a transform.

mod msm;
mod ntt;
mod sparse;

use cuzk_curve::{Curve, CurveId, GroupId, ScalarRepr, repr, with_curve};
use ff::PrimeField;

use crate::{BackendError, Buffer, Device, Result, Stream};

/// Runs every check for a curve.
///
/// Needs about 2 MiB of device memory. The answers are computed with the arithmetic of `cuzk-curve`'s types.
///
/// # Errors
/// [`BackendError::SelfTest`] names the first answer that was wrong; any other error is what the device reported itself.
///
/// ```no_run
/// # fn example(device: &cuzk_backend::Device) -> cuzk_backend::Result<()> {
/// use cuzk_curve::CurveId;
/// for curve in CurveId::ALL {
///     cuzk_backend::self_test::run(device, curve)?;
/// }
/// # Ok(())
/// # }
/// ```
pub fn run(device: &Device, curve: CurveId) -> Result<()> {
    with_curve!(curve, C => checks::<C>(&Tester { device, stream: device.stream()?, curve }))
}

fn checks<C: Curve>(tester: &Tester<'_>) -> Result<()> {
    ntt::transforms::<C::Fr>(tester)?;
    ntt::quotient::<C::Fr>(tester)?;
    sparse::evaluation::<C::Fr>(tester)?;
    msm::group::<C::G1Affine>(tester, GroupId::G1)?;
    msm::group::<C::G2Affine>(tester, GroupId::G2)
}

/// A device under test.
struct Tester<'a> {
    device: &'a Device,
    stream: Stream,
    curve: CurveId,
}

impl Tester<'_> {
    /// Passes if an answer is right.
    fn expect(&self, right: bool, check: impl FnOnce() -> String) -> Result<()> {
        if right {
            return Ok(());
        }
        Err(BackendError::SelfTest {
            device: self.device.info().uuid.clone(),
            check: format!("{} of {}", check(), self.curve),
        })
    }

    /// A buffer with these scalars.
    fn upload<F: ScalarRepr>(&self, scalars: &[F]) -> Result<Buffer> {
        let buffer = self.device.alloc_for::<F>(scalars.len() as u64)?;
        self.stream.upload_bytes(repr::as_bytes(scalars), &buffer, 0)?;
        Ok(buffer)
    }

    /// The first scalars of a buffer.
    fn download<F: ScalarRepr>(&self, buffer: &Buffer, n: usize) -> Result<Vec<F>> {
        let mut scalars = vec![F::ZERO; n];
        self.stream.download_bytes(buffer, 0, repr::as_bytes_mut(&mut scalars))?;
        Ok(scalars)
    }
}

/// Scalars of full size without a pattern: the powers of an element of large order, plus their number.
fn scalars<F: PrimeField>(n: usize, seed: u64) -> Vec<F> {
    let base = F::from(seed).invert().unwrap_or(F::ONE) + F::from(0x9e37_79b9_7f4a_7c15);
    let powers = std::iter::successors(Some(base), |x| Some(*x * base));
    powers.zip(0u64..).map(|(x, i)| x + F::from(i)).take(n).collect()
}
