//! Which variables a query has bases for.

use std::sync::Arc;

use crate::{objects::Owned, ops::DensityId};

/// Words for which the bits before them are counted once.
const BLOCK: usize = 64;

/// A bitmap over the variables on a device: which of them a query has a base for.
#[derive(Clone, Debug)]
pub struct Density {
    pub(crate) owned: Arc<Owned<DensityId>>,
    pub(crate) bits: Bitmap,
}

impl Density {
    /// Number of variables.
    pub fn len(&self) -> u64 {
        self.bits.len
    }

    /// Whether it ranges over no variable.
    pub fn is_empty(&self) -> bool {
        self.bits.len == 0
    }

    /// How many of the variables `first .. first + len` have a base. Takes no longer for many than for few: it is asked
    /// before every multiplication, while the device waits, and counting 130 million bits takes some ten milliseconds.
    pub fn count(&self, first: u64, len: u64) -> u64 {
        self.bits.count(first, len)
    }
}

/// Bits in the host's memory, with the numbers of ones before every block.
#[derive(Clone, Debug)]
pub(crate) struct Bitmap {
    words: Arc<[u64]>,
    /// Before each block of [`BLOCK`] words, and after the last.
    before: Arc<[u64]>,
    len: u64,
}

impl Bitmap {
    pub(crate) fn new(words: &[u64], len: u64) -> Self {
        let mut total = 0;
        let blocks = words.chunks(BLOCK).map(|block| {
            total += ones(block);
            total
        });
        let before = std::iter::once(0).chain(blocks).collect();
        Self { words: words.into(), before, len }
    }

    fn count(&self, first: u64, len: u64) -> u64 {
        let end = first.saturating_add(len).min(self.len);
        self.below(end).saturating_sub(self.below(first.min(end)))
    }

    /// Ones below bit `end`, which is not past the last one.
    fn below(&self, end: u64) -> u64 {
        let (word, bits) = ((end / 64) as usize, end % 64);
        let block = word / BLOCK;
        let last = if bits == 0 { 0 } else { self.words[word] & ((1 << bits) - 1) };
        self.before[block] + ones(&self.words[block * BLOCK..word]) + u64::from(last.count_ones())
    }
}

fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_bit_after_bit() {
        // An odd multiplier gives words of all densities.
        let words: Vec<u64> =
            (0..200u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (u64::MAX >> (i % 64))).collect();
        let bit = |i: u64| words[(i / 64) as usize] >> (i % 64) & 1;
        for len in [0, 1, 63, 64, 65, 4095, 4096, 4097, 12_799, 12_800] {
            let bitmap = Bitmap::new(&words[..(len as usize).div_ceil(64)], len);
            for first in [0, 1, 63, 64, 100, 4095, 4096, 5000, 12_800, u64::MAX] {
                for n in [0, 1, 2, 64, 4096, 9000, u64::MAX] {
                    let expected = (first..first.saturating_add(n).min(len)).map(bit).sum::<u64>();
                    assert_eq!(bitmap.count(first, n), expected, "{n} from {first} of {len}");
                }
            }
        }
    }
}
