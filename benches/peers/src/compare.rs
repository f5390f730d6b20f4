//! What is compared, and how it is known that both sides computed the same.

use blstrs::{G1Affine, Scalar};
use cuzk_backend::{
    BackendError, Bases, BasesSpec, Buffer, Coset, Device, Direction, MsmScalars, NttPlan, Order, QuotientPlan,
    Residency, Stream,
};
use cuzk_curve::{CurveId, ScalarRepr, repr};
use ff::{Field, PrimeField};
use rayon::prelude::*;

use crate::{
    inputs::{self, Points, Witness},
    measure::{self, Pair, Repetitions},
    peer::{Array, Msm, Peer, PeerError, PeerGroup},
};

/// Why there is no number.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Our side refused.
    #[error("ours: {0}")]
    Ours(#[from] BackendError),
    /// The other side refused.
    #[error(transparent)]
    Theirs(#[from] PeerError),
    /// A result that is not what it must be.
    #[error("wrong result of {side}: {what}")]
    Wrong {
        /// Whose.
        side: &'static str,
        /// Which.
        what: String,
    },
}

fn ensure(holds: bool, side: &'static str, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::Wrong { side, what: what() }) }
}

const OURS: &str = "ours";
const THEIRS: &str = "sppark";

/// Both sides, open on one device.
pub(crate) struct Sides {
    pub(crate) device: Device,
    pub(crate) stream: Stream,
    pub(crate) peer: Peer,
    pub(crate) repetitions: Repetitions,
}

impl Sides {
    fn load_bases<G: PeerGroup>(&self, points: &[G], multiples: u32) -> Result<Bases, Failure> {
        let count = points.len() as u64;
        let spec = BasesSpec { curve: G::CURVE, group: G::GROUP, count, residency: Residency::Device, multiples };
        Ok(self.device.load_bases(spec, points)?)
    }

    /// Our buffer with these scalars.
    fn load(&self, scalars: &[Scalar]) -> Result<Buffer, Failure> {
        let buffer = self.device.alloc_for::<Scalar>(scalars.len() as u64)?;
        self.stream.upload_bytes(repr::as_bytes(scalars), &buffer, 0)?;
        Ok(buffer)
    }

    /// Uniform scalars. `multiples` of each point are kept on our side; sppark has no such thing.
    pub(crate) fn msm<G: PeerGroup>(&self, points: &Points<G>, log_n: u32, multiples: u32) -> Result<Pair, Failure> {
        let n = 1 << log_n;
        let scalars = inputs::scalars(3, n);
        let buffer = self.load(&scalars)?;
        let bases = self.load_bases(&points.points[..n], multiples)?;
        self.sums(points, &scalars, &bases, &MsmScalars::Dense { buffer: &buffer, first: 0, len: n as u64 })
    }

    /// An assignment: packed for us, as plain scalars for sppark, which adds points with the digit 1 in a kernel of
    /// their own.
    pub(crate) fn witness(&self, points: &Points<G1Affine>, log_n: u32) -> Result<Pair, Failure> {
        let n = 1 << log_n;
        let witness = Witness::new(n);
        let assignment = self.stream.upload_assignment(&witness.view())?;
        let ours = MsmScalars::Assignment { assignment: &assignment, variables: 0..n as u64, density: None };
        let bases = self.load_bases(&points.points[..n], 1)?;
        self.sums(points, &witness.scalars, &bases, &ours)
    }

    /// Every sum, timed or not, is compared with the one that the logarithms of the points give.
    fn sums<G: PeerGroup>(
        &self,
        points: &Points<G>,
        scalars: &[Scalar],
        bases: &Bases,
        ours: &MsmScalars<'_>,
    ) -> Result<Pair, Failure> {
        let n = scalars.len();
        let expected = points.sum(scalars);
        let (peer_points, peer_scalars): (Array<G>, _) =
            (self.peer.upload(&points.points[..n])?, self.peer.upload(scalars)?);
        let mut msm: Msm<G> = self.peer.msm(n)?;
        let run_ours = || {
            let sum: G = self.stream.msm(bases, ours)?.wait()?;
            ensure(sum == expected, OURS, || format!("{sum:?} instead of {expected:?}"))
        };
        let run_theirs = || {
            let sum = msm.run(&peer_points, &peer_scalars)?;
            ensure(sum == expected, THEIRS, || format!("{sum:?} instead of {expected:?}"))
        };
        measure::alternate(self.repetitions, 1, run_ours, run_theirs)
    }

    /// A forward transform, natural order in and out. Before it is timed, one value is compared with Horner's rule and
    /// all of them between the sides.
    pub(crate) fn ntt(&self, log_n: u32) -> Result<Pair, Failure> {
        let n = 1 << log_n;
        let plan = NttPlan {
            curve: CurveId::Bls12_381,
            log_n,
            direction: Direction::Forward,
            coset: Coset::One,
            order: Order::Natural,
        };
        let input = inputs::scalars(4, n);
        let (ours, mut theirs) = (self.load(&input)?, self.peer.upload(&input)?);
        self.stream.ntt(&plan, &ours)?;
        self.peer.ntt(&mut theirs)?;
        let index = n / 3;
        let found = self.same(&ours, &theirs, n, index)?;
        let x = Scalar::root_of_unity(log_n).unwrap_or(Scalar::ONE).pow_vartime([index as u64]);
        let expected = inputs::evaluate(&input, x);
        ensure(found == expected, OURS, || format!("value {index} is {found} instead of {expected}"))?;

        // Enough transforms in one sample that the host's part in starting and awaiting them does not show.
        let batch = 1 << 24u32.saturating_sub(log_n);
        let run_ours = || {
            (0..batch).try_for_each(|_| self.stream.ntt(&plan, &ours))?;
            Ok::<(), Failure>(self.stream.synchronize()?)
        };
        let run_theirs = || {
            (0..batch).try_for_each(|_| self.peer.ntt(&mut theirs))?;
            Ok(self.peer.synchronize()?)
        };
        measure::alternate(self.repetitions, batch, run_ours, run_theirs)
    }

    /// The quotient polynomial from evaluations: ours, and seven transforms of sppark with a pointwise step between
    /// them. Before it is timed, all coefficients are compared between the sides, which go over different cosets; timed
    /// runs work on what the run before left in the buffers.
    pub(crate) fn quotient(&self, log_n: u32) -> Result<Pair, Failure> {
        let n = 1 << log_n;
        let plan = QuotientPlan { curve: CurveId::Bls12_381, log_n };
        let (a, mut b) = (inputs::scalars(5, n), inputs::scalars(6, n));
        let (our_a, our_b) = (self.load(&a)?, self.load(&b)?);
        let (mut their_a, mut their_b) = (self.peer.upload(&a)?, self.peer.upload(&b)?);
        b.par_iter_mut().zip(&a).for_each(|(b, a)| *b *= a);
        let mut their_c = self.peer.upload(&b)?;
        drop((a, b));
        let vanishing = Scalar::MULTIPLICATIVE_GENERATOR.pow_vartime([n as u64]) - Scalar::ONE;
        let z = vanishing.invert().unwrap_or(Scalar::ZERO);

        let enqueue_ours = || self.stream.quotient(&plan, &our_a, &our_b);
        enqueue_ours()?;
        self.peer.quotient([&mut their_a, &mut their_b, &mut their_c], &z)?;
        let last = self.same(&our_a, &their_a, n, n - 1)?;
        ensure(last == Scalar::ZERO, OURS, || format!("the last coefficient is {last}"))?;

        let run_ours = || {
            enqueue_ours()?;
            Ok::<(), Failure>(self.stream.synchronize()?)
        };
        let run_theirs = || {
            self.peer.quotient([&mut their_a, &mut their_b, &mut their_c], &z)?;
            Ok(self.peer.synchronize()?)
        };
        measure::alternate(self.repetitions, 1, run_ours, run_theirs)
    }

    /// Compares both sides' first `n` elements, and returns ours at `index`.
    fn same(&self, ours: &Buffer, theirs: &Array<Scalar>, n: usize, index: usize) -> Result<Scalar, Failure> {
        /// Elements on the host at a time: 128 MiB of each side.
        const PART: usize = 1 << 22;
        self.peer.synchronize()?;
        let (mut mine, mut peers) = (vec![Scalar::ZERO; n.min(PART)], vec![Scalar::ZERO; n.min(PART)]);
        let mut found = Scalar::ZERO;
        for first in (0..n).step_by(PART) {
            let part = PART.min(n - first);
            let (mine, peers) = (&mut mine[..part], &mut peers[..part]);
            self.stream.download_bytes(ours, (first * size_of::<Scalar>()) as u64, repr::as_bytes_mut(mine))?;
            theirs.download(first, peers)?;
            if let Some(i) = mine.par_iter().zip(&*peers).position_first(|(x, y)| x != y) {
                let what = format!("element {} is {} for us and {} for sppark", first + i, mine[i], peers[i]);
                return Err(Failure::Wrong { side: "one side", what });
            }
            if (first..first + part).contains(&index) {
                found = mine[index - first];
            }
        }
        Ok(found)
    }
}
