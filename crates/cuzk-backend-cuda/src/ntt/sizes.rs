//! What transforms take: the tables that they need, and the vectors between their passes.

use cuzk_backend::{Coset, Direction, NttPlan, Order, QuotientPlan, Result, Workspace};

use super::{plan, supported, tables::Kind};

/// Device memory that making a table takes for a moment.
const MAKING: u64 = 4 << 10;

/// What a transform takes beside its vector.
///
/// # Errors
/// A transform that is too large.
pub(crate) fn transform_workspace(plan: &NttPlan, room: u64) -> Result<Workspace> {
    supported("ntt", plan.log_n)?;
    if plan.log_n < plan::SMALLEST {
        return Ok(Workspace::fixed(if plan.log_n == 0 { 0 } else { 64 << plan.log_n }, 0));
    }
    let (unit, inverse) = (plan.coset == Coset::One, plan.direction == Direction::Inverse);
    let mut kinds = Kinds::default();
    let along = if unit { Along::Nothing } else { Along::Coset([1; 4]) };
    kinds.add(&needed(plan.log_n, along, [1; 4]), inverse);
    if !unit {
        kinds.0.push((false, Kind::Powers { log_n: plan.log_n, g: [1; 4] }));
    }
    let several = plan::passes(plan.log_n).len() > 1;
    let between = if plan.order == Order::Natural && several { 32 << plan.log_n } else { 0 };
    Ok(kinds.workspace(0, between, room))
}

/// What a quotient takes beside its two vectors.
///
/// # Errors
/// One that is too large.
pub(crate) fn quotient_workspace(plan: &QuotientPlan, room: u64) -> Result<Workspace> {
    let log_n = plan.log_n;
    supported("quotient", log_n)?;
    let vector = 32 << log_n;
    if log_n < plan::SMALLEST {
        // The halves, and tables of the definition, one for each transform.
        return Ok(Workspace::fixed(vector + 32 + 6 * (64 << log_n), 0));
    }
    let mut kinds = Kinds::default();
    // As `On::quotient` asks for them; the numbers stand for different shifts and factors.
    kinds.add(&needed(log_n, Along::Nothing, [0; 4]), true);
    kinds.add(&needed(log_n, Along::Nothing, [1; 4]), true);
    kinds.add(&needed(log_n, Along::OddElements([2; 4]), [2; 4]), false);
    kinds.add(&needed(log_n, Along::OddResults, [1; 4]), true);
    Ok(kinds.workspace(vector, vector, room))
}

/// What a transform multiplies by beside the powers of ω_n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// Nothing.
    Nothing,
    /// Element j by g^j in time, result i by g^i in frequency.
    Coset([u64; 4]),
    /// Element j by ω_2n^j, in time; ω_2n is given.
    OddElements([u64; 4]),
    /// Result i by ω_2n^i, in time.
    OddResults,
}

/// The kinds of tables of a transform.
pub(super) struct Needed {
    pub(super) heap: Option<Kind>,
    pub(super) plain: Kind,
    pub(super) roots: Kind,
    pub(super) shift: Option<Kind>,
    pub(super) results: Option<Kind>,
}

pub(super) fn needed(log_n: u32, along: Along, f: [u64; 4]) -> Needed {
    let passes = plan::passes(log_n);
    let last = passes[passes.len() - 1];
    // The contiguous pass does one step with the factors of all blocks.
    let levels = log_n - last + plan::LOG_RADIX;
    let heap = match along {
        Along::Coset(g) | Along::OddElements(g) => Some(Kind::Coset { log_n, levels, g }),
        Along::Nothing | Along::OddResults => None,
    };
    let odd = matches!(along, Along::OddElements(_) | Along::OddResults);
    Needed {
        plain: Kind::Plain { levels: if heap.is_some() { last } else { levels.max(last) } },
        heap,
        roots: Kind::Roots { log_n: log_n + u32::from(odd), f },
        shift: match along {
            Along::Coset(g) => Some(Kind::Shift { g, log_span: last - plan::LOG_RADIX }),
            _ => None,
        },
        results: (along == Along::OddResults).then_some(Kind::Results { k: last }),
    }
}

/// Different tables, with the direction of each.
#[derive(Default)]
struct Kinds(Vec<(bool, Kind)>);

impl Kinds {
    fn add(&mut self, needed: &Needed, inverse: bool) {
        let directed = [needed.heap, Some(needed.plain), Some(needed.roots), needed.results].into_iter().flatten();
        for kind in directed.map(|kind| (inverse, kind)).chain(needed.shift.map(|kind| (false, kind))) {
            if !self.0.contains(&kind) {
                self.0.push(kind);
            }
        }
    }

    /// With so many bytes that cannot be done without, and so many that can.
    fn workspace(&self, always: u64, rather: u64, room: u64) -> Workspace {
        let kept = self.0.iter().map(|(_, kind)| kind.bytes()).sum::<u64>();
        let least = always + kept + MAKING * self.0.len() as u64;
        let best = least + rather;
        Workspace { least, taken: if room >= best { best } else { least }, best, kept, pinned: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuzk_curve::CurveId;

    #[test]
    fn a_quotient_takes_one_vector_or_two_and_smaller_tables() {
        for log_n in plan::SMALLEST..=plan::LARGEST {
            let plan = QuotientPlan { curve: CurveId::Bls12_381, log_n };
            let w = quotient_workspace(&plan, u64::MAX).unwrap();
            let vector = 32u64 << log_n;
            assert_eq!((w.best - w.least, w.taken), (vector, w.best));
            assert_eq!(quotient_workspace(&plan, w.best - 1).unwrap().taken, w.least);
            assert!(w.kept < w.least - vector);
            assert!(log_n < 18 || w.kept < vector / 3, "2^{log_n}: {w:?}");
        }
        assert!(quotient_workspace(&QuotientPlan { curve: CurveId::Bn254, log_n: 29 }, 0).is_err());
    }

    #[test]
    fn only_natural_orders_of_several_passes_take_a_vector() {
        let plan = |log_n, order| NttPlan {
            curve: CurveId::Bls12_381,
            log_n,
            direction: Direction::Forward,
            coset: Coset::One,
            order,
        };
        let rather = |log_n, order| {
            let w = transform_workspace(&plan(log_n, order), u64::MAX).unwrap();
            w.best - w.least
        };
        assert_eq!(rather(20, Order::Natural), 32 << 20);
        assert_eq!((rather(10, Order::Natural), rather(20, Order::NaturalToBitReversed)), (0, 0));
        assert_eq!(transform_workspace(&plan(0, Order::Natural), 0).unwrap(), Workspace::default());
    }
}
