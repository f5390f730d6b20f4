//! Roots of unity, in the orders in which the passes use them.
//!
//! Nothing here is as long as the data: one multiplier for each row of a tile, and two tables of the square root of the number of
//! tiles for the cosets, made anew for each transform in some microseconds.

use cuzk_curve::ScalarRepr;

/// The `bits` lowest bits of a number in reverse.
#[inline(always)]
pub(super) fn reverse(x: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { x.reverse_bits() >> (usize::BITS - bits) }
}

/// The roots of unity of a transform of 2^log_n elements, or their inverses, and the powers of its coset's shift.
pub(super) struct Roots<F> {
    /// Entry i has order 2^i.
    omega: Vec<F>,
    /// Entry i is shift^(n / 2^i).
    shift: Vec<F>,
}

/// Powers of a root by exponent: two tables and one product.
pub(super) struct Powers<F> {
    low: Vec<F>,
    high: Vec<F>,
    log_low: u32,
}

/// From entry 0 up; each is the square of the next, the last one is given.
fn squares<F: ScalarRepr>(last: F, log_n: u32) -> Vec<F> {
    let mut all: Vec<F> = std::iter::successors(Some(last), |x| Some(x.square())).take(log_n as usize + 1).collect();
    all.reverse();
    all
}

/// 1, x, x², …
fn powers<F: ScalarRepr>(first: F, x: F, count: usize) -> Vec<F> {
    std::iter::successors(Some(first), |y| Some(*y * x)).take(count).collect()
}

impl<F: ScalarRepr> Roots<F> {
    /// For `log_n` up to the field's two-adicity and a shift that is not zero.
    pub(super) fn new(log_n: u32, shift: F, inverse: bool) -> Self {
        let invert = |x: F| if inverse { x.invert().unwrap_or(F::ONE) } else { x };
        // Validated by the caller: the field has the root, and the shift an inverse.
        let omega = F::root_of_unity(log_n).unwrap_or(F::ONE);
        Self { omega: squares(invert(omega), log_n), shift: squares(invert(shift), log_n) }
    }

    /// Entry t, below 2^(layers - 1), is ω^rev(t), ω of order 2^layers, rev over layers - 1 bits.
    pub(super) fn tree(&self, layers: u32) -> Vec<F> {
        let mut tree = vec![F::ONE];
        for s in 2..=layers {
            let omega = self.omega[s as usize];
            tree.extend_from_within(..);
            let half = tree.len() / 2;
            tree[half..].iter_mut().for_each(|x| *x *= omega);
        }
        tree
    }

    /// The multipliers of the first layers: those of layer s, on the whole coset, begin at entry 2^s. Those that
    /// [`super::tile::inverse`] wants scaled are.
    pub(super) fn shared(&self, layers: u32, scale: Option<F>) -> Vec<F> {
        let tree = self.tree(layers);
        // Entry 0 belongs to no layer.
        let mut all = vec![F::ONE];
        for s in 0..layers {
            let mut factor = self.shift[s as usize + 1];
            if s == (layers + 1) % 2 {
                factor *= scale.unwrap_or(F::ONE);
            }
            all.extend(tree[..1 << s].iter().map(|x| *x * factor));
        }
        all
    }

    /// The powers of the root of order 2^log_order, exponents below 2^bits, times what the coset's shift adds at that layer.
    pub(super) fn powers(&self, log_order: u32, bits: u32) -> Powers<F> {
        let omega = self.omega[log_order as usize];
        let log_low = bits / 2;
        let step = self.omega[(log_order - log_low) as usize];
        Powers {
            low: powers(F::ONE, omega, 1 << log_low),
            high: powers(self.shift[log_order as usize], step, 1 << (bits - log_low)),
            log_low,
        }
    }
}

impl<F: ScalarRepr> Powers<F> {
    #[inline(always)]
    pub(super) fn get(&self, exponent: usize) -> F {
        self.low[exponent & ((1 << self.log_low) - 1)] * self.high[exponent >> self.log_low]
    }
}
