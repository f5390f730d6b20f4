//! Sums over bitmaps: bases with scalar one are added, the few wide scalars go to the bucket method, zeros cost nothing.

use std::ops::Range;

use cuzk_curve::{AffineRepr, ScalarRepr};
use group::Group;
use rayon::prelude::*;

use super::{MsmError, buckets, groups::Workspaces};
use crate::field::Lanes;

/// Words of a bitmap that one task takes.
const TASK_WORDS: usize = 1 << 10;

/// A bitmap: bit i is bit `i % 64` of word `i / 64`.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    words: &'a [u64],
    len: usize,
}

impl<'a> Bits<'a> {
    /// The first `len` bits of some words. Bits past these are ignored.
    ///
    /// # Errors
    /// Another number of words than `len` bits take.
    pub fn new(words: &'a [u64], len: usize) -> Result<Self, MsmError> {
        MsmError::check_len("words of a bitmap", len.div_ceil(64), words.len())?;
        Ok(Bits { words, len })
    }

    /// How many bits there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// An assignment to the variables of a circuit: zero unless a bitmap says otherwise. No variable is in both bitmaps.
#[derive(Clone, Copy, Debug)]
pub struct PackedAssignment<'a, S> {
    /// The variables that are one.
    pub ones: Bits<'a>,
    /// The variables whose value stands in `wide_scalars`, in this order.
    pub wide: Bits<'a>,
    /// For each word of `wide`: how many bits are set in the words before it.
    pub rank: &'a [u32],
    /// The values of the wide variables.
    pub wide_scalars: &'a [S],
}

/// Some variables of an assignment, and which of them have bases: checked.
pub struct Variables<'a, S> {
    assignment: PackedAssignment<'a, S>,
    density: Option<&'a [u64]>,
    range: Range<usize>,
    /// Words of the bitmaps that the range touches.
    words: Range<usize>,
    /// For each [`TASK_WORDS`] of these words: how many bases belong to the variables before them.
    bases_before: Vec<usize>,
}

impl<'a, S: Sync> Variables<'a, S> {
    pub(super) fn new(
        bases: usize,
        density: Option<Bits<'a>>,
        assignment: PackedAssignment<'a, S>,
        range: Range<usize>,
    ) -> Result<Self, MsmError> {
        let len = assignment.ones.len();
        MsmError::check_len("bits of wide variables", len, assignment.wide.len())?;
        MsmError::check_len("words of the rank index", len.div_ceil(64), assignment.rank.len())?;
        if let Some(density) = density {
            MsmError::check_len("bits of a density", len, density.len())?;
        }
        if range.start > range.end || range.end > len {
            return Err(MsmError::Length {
                what: "variables up to the end of a range",
                expected: len,
                actual: range.end,
            });
        }
        let words = if range.is_empty() { 0..0 } else { range.start / 64..range.end.div_ceil(64) };
        check_ranks(&assignment, words.clone())?;
        let mut variables =
            Variables { assignment, density: density.map(|d| d.words), range, words, bases_before: Vec::new() };
        let mut total = 0;
        let counts: Vec<usize> =
            variables.tasks().map(|words| words.map(|w| variables.dense(w).count_ones() as usize).sum()).collect();
        for count in counts {
            variables.bases_before.push(total);
            total += count;
        }
        MsmError::check_len("bases", total, bases)?;
        Ok(variables)
    }

    fn tasks(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + use<'_, S> {
        let Range { start, end } = self.words;
        (0..self.words.len().div_ceil(TASK_WORDS))
            .into_par_iter()
            .map(move |task| start + task * TASK_WORDS..end.min(start + (task + 1) * TASK_WORDS))
    }

    /// The variables of a word that have a base.
    fn dense(&self, word: usize) -> u64 {
        let mut bits = self.density.map_or(u64::MAX, |density| density[word]);
        if word == self.range.start / 64 {
            bits &= u64::MAX << (self.range.start % 64);
        }
        if word == self.range.end / 64 {
            bits &= (1 << (self.range.end % 64)) - 1;
        }
        bits
    }

    /// The numbers of the bases whose variable is one, in some words.
    fn ones(&self, task: usize, words: Range<usize>) -> impl Iterator<Item = usize> {
        let mut before = self.bases_before[task];
        words.flat_map(move |word| {
            let dense = self.dense(word);
            let first = before;
            before += dense.count_ones() as usize;
            set_bits(dense & self.assignment.ones.words[word]).map(move |bit| first + rank(dense, bit))
        })
    }

    /// The numbers of base and scalar for each wide variable that has a base, in some words.
    fn wide(&self, task: usize, words: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let mut before = self.bases_before[task];
        words.flat_map(move |word| {
            let dense = self.dense(word);
            let first = before;
            before += dense.count_ones() as usize;
            let wide = self.assignment.wide.words[word];
            let first_scalar = self.assignment.rank[word] as usize;
            set_bits(dense & wide).map(move |bit| (first + rank(dense, bit), first_scalar + rank(wide, bit)))
        })
    }
}

/// Whether the rank index counts the wide variables, and there is a scalar for each.
fn check_ranks<S>(assignment: &PackedAssignment<'_, S>, words: Range<usize>) -> Result<(), MsmError> {
    let (Some(first), Some(last)) = (words.clone().next(), words.last()) else { return Ok(()) };
    let (wide, rank) = (assignment.wide.words, assignment.rank);
    let end = |word: usize| rank[word] as usize + wide[word].count_ones() as usize;
    for word in first..last {
        if rank[word + 1] as usize != end(word) {
            return Err(MsmError::Rank { word: word + 1, expected: end(word), actual: rank[word + 1] as usize });
        }
    }
    if end(last) > assignment.wide_scalars.len() {
        return Err(MsmError::Length {
            what: "wide scalars",
            expected: end(last),
            actual: assignment.wide_scalars.len(),
        });
    }
    Ok(())
}

/// The numbers of the bits that are set, ascending.
fn set_bits(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = bits.trailing_zeros();
        (bits != 0).then(|| {
            bits &= bits - 1;
            bit
        })
    })
}

/// How many bits are set below this one.
fn rank(bits: u64, bit: u32) -> usize {
    (bits & ((1 << bit) - 1)).count_ones() as usize
}

/// The sum of the bases whose bit is set.
pub(super) fn sum_selected<F: Lanes, A: AffineRepr>(bases: &[A], selected: Bits<'_>) -> A::Curve {
    let workspaces = Workspaces::<F>::new();
    selected
        .words
        .par_chunks(TASK_WORDS)
        .zip(bases.par_chunks(64 * TASK_WORDS))
        .map(|(words, bases)| {
            let set = words.iter().enumerate().flat_map(|(w, &bits)| set_bits(bits).map(move |b| 64 * w + b as usize));
            workspaces.with(|w| w.sum_stream(set.map_while(|i| bases.get(i))))
        })
        .reduce(A::Curve::identity, |a, b| a + b)
}

/// The sum over the ones, and the MSM over the wide variables.
pub(super) fn msm_packed<F: Lanes, A: AffineRepr<Scalar: ScalarRepr>>(
    bases: &[A],
    variables: &Variables<'_, A::Scalar>,
) -> A::Curve {
    let workspaces = Workspaces::<F>::new();
    let ones = || {
        variables
            .tasks()
            .enumerate()
            .map(|(task, words)| workspaces.with(|w| w.sum_stream(variables.ones(task, words).map(|i| &bases[i]))))
            .reduce(A::Curve::identity, |a, b| a + b)
    };
    let wide = || {
        let parts: Vec<Vec<(usize, usize)>> =
            variables.tasks().enumerate().map(|(task, words)| variables.wide(task, words).collect()).collect();
        let numbers = parts.concat();
        let scalars = variables.assignment.wide_scalars;
        buckets::msm::<F, A>(numbers.len(), |i| &bases[numbers[i].0], |i| &scalars[numbers[i].1])
    };
    let (ones, wide) = rayon::join(ones, wide);
    ones + wide
}
