//! Many multiples of one point, as key generation needs them.
//!
//! A table holds, for every window of c bits, the multiples d·2^(cw)·B with 1 <= d <= 2^(c-1). A multiple of B is then one table entry
//! a window, negated where the signed digit is negative: no doublings. The entries are added to many sums at a time, so that
//! these additions share their inversions.
//!
//! # References
//! * E. Brickell, D. Gordon, K. McCurley, D. Wilson, "Fast exponentiation with precomputation", EUROCRYPT '92.

use cuzk_curve::{AffineRepr, ScalarRepr};
use group::{Curve, Group};
use rayon::prelude::*;

use crate::{
    code_path::CodePath,
    field::Lanes,
    msm::{
        Ahead, HugeBox, MsmError, MsmPoint, Pairs, Point, Scratch, Segment, SignedScalar, Windows, batch_add,
        batch_add_assign, export, import,
    },
};

/// Sums that grow together: with their scratch they fit the second-level cache.
const BLOCK_LEN: usize = 1 << 11;

/// The widest window: tables of 16 windows with 2^15 entries, 64 MiB in G1 and 128 MiB in G2 of BLS12-381.
const MAX_WINDOW_BITS: usize = 16;

/// `out[i] = scalars[i]·base`, on the current thread pool.
///
/// Scratch: the tables, at most 64 MiB in G1 and 128 MiB in G2 of BLS12-381 (half of that for BN254), and about 1 MiB a thread.
///
/// # Errors
/// Different lengths.
///
/// ```
/// use cuzk_backend_cpu::{CodePath, fixed_base::fixed_base_mul};
/// use blstrs::{G1Affine, Scalar};
/// use group::prime::PrimeCurveAffine;
/// let mut out = [G1Affine::identity(); 2];
/// fixed_base_mul(CodePath::detect(), &G1Affine::generator(), &[Scalar::from(0), Scalar::from(1)], &mut out)?;
/// assert_eq!(out, [G1Affine::identity(), G1Affine::generator()]);
/// # Ok::<(), cuzk_backend_cpu::msm::MsmError>(())
/// ```
pub fn fixed_base_mul<A: MsmPoint>(
    path: CodePath,
    base: &A,
    scalars: &[A::Scalar],
    out: &mut [A],
) -> Result<(), MsmError> {
    MsmError::check_len("places for the multiples of a point", scalars.len(), out.len())?;
    A::fixed_base_mul(path, base, scalars, out);
    Ok(())
}

pub(crate) fn mul<F: Lanes, A: AffineRepr<Scalar: ScalarRepr>>(base: &A, scalars: &[A::Scalar], out: &mut [A]) {
    if bool::from(base.is_identity()) {
        out.fill(A::identity());
        return;
    }
    // An addition a window for each entry of the table and each scalar.
    let windows = (2..=MAX_WINDOW_BITS)
        .map(Windows::new::<A::Scalar>)
        .min_by_key(|w| w.count * (w.buckets() + scalars.len()))
        .unwrap_or(Windows::new::<A::Scalar>(2));
    let tables = tables::<F, A>(base, windows);
    scalars
        .par_chunks(BLOCK_LEN)
        .zip(out.par_chunks_mut(BLOCK_LEN))
        .for_each_init(Block::new, |block, (scalars, out)| block.mul(windows, &tables, scalars, out));
}

/// Entry `d - 1` of table w is d·2^(cw)·base; the tables follow each other.
fn tables<F: Lanes, A: AffineRepr>(base: &A, windows: Windows) -> HugeBox<Point<F>> {
    let mut base = base.to_curve();
    let mut bases = Vec::with_capacity(windows.count);
    for _ in 0..windows.count {
        bases.push(base);
        for _ in 0..windows.bits {
            base = base.double();
        }
    }
    let mut tables = HugeBox::zeroed(windows.count * windows.buckets());
    tables.par_chunks_mut(windows.buckets()).zip(bases).for_each(|(table, base)| {
        let base: A = base.to_affine();
        import(&mut table[..1], |_| &base);
        let (mut pairs, mut scratch) = (Pairs::default(), Scratch::new());
        let mut len = 1;
        while len < table.len() {
            // The next multiples are those so far plus the last of them.
            pairs.clear();
            for d in 0..len as u32 {
                pairs.push(d, len as u32 - 1, d);
            }
            let (done, next) = table.split_at_mut(len);
            let first = Segment::<_, false> { left: done, right: done, pairs: &mut pairs };
            let second = Segment { left: &[], right: &[], pairs: &mut Pairs::default() };
            batch_add(first, second, &mut next[..len], &mut scratch, &mut Ahead::nothing());
            len *= 2;
        }
    });
    tables
}

/// What one thread needs.
struct Block<F: Lanes> {
    sums: Vec<Point<F>>,
    scratch: Scratch<F>,
}

impl<F: Lanes> Block<F> {
    fn new() -> Self {
        Block { sums: Vec::new(), scratch: Scratch::new() }
    }

    fn mul<A: AffineRepr<Scalar: ScalarRepr>>(
        &mut self,
        windows: Windows,
        tables: &[Point<F>],
        scalars: &[A::Scalar],
        out: &mut [A],
    ) {
        self.sums.clear();
        self.sums.resize(scalars.len(), Point::INFINITY);
        let scalars: Vec<_> = scalars.iter().map(SignedScalar::new).collect();
        let pairs_of = |w: usize| {
            let mut pairs = Pairs::default();
            let window = windows.window(w);
            for (i, scalar) in (0..).zip(&scalars) {
                if let Some((entry, sign)) = window.digit(scalar) {
                    pairs.push(i, entry as u32 | sign, i);
                }
            }
            pairs
        };
        let mut pairs = pairs_of(0);
        let mut tables = tables.chunks(windows.buckets()).peekable();
        for w in 0..windows.count {
            let Some(table) = tables.next() else { break };
            let mut next = if w + 1 < windows.count { pairs_of(w + 1) } else { Pairs::default() };
            let mut ahead = Ahead { points: tables.peek().copied().unwrap_or(&[]), indices: &next.right };
            batch_add_assign(&mut self.sums, table, &mut pairs, &mut self.scratch, &mut ahead);
            std::mem::swap(&mut pairs, &mut next);
        }
        export(&mut self.sums, out);
    }
}
