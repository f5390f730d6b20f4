//! A growable vector of field elements that stores zeros and ones as bits.

use ff::PrimeField;

use crate::assignment::Assignment;

/// A vector of field elements in packed form: one bit in `ones` for a 1, one bit in `wide` for a value that
/// is neither 0 nor 1, and those values densely in `scalars`. A 0 is neither bit.
///
/// Witness generators append to it, a value, a word of bits or another vector at a time, at any
/// bit offset. An index of wide positions (`rank`) is kept along, so that reading is constant time at any moment.
///
/// ```
/// use cuzk_r1cs::PackedScalars;
/// use ff::Field;
/// use blstrs::Scalar;
///
/// let mut values = PackedScalars::new();
/// values.push(Scalar::from(7));
/// values.push_bits(0b101, 3);
/// assert_eq!(values.len(), 4);
/// assert_eq!(values.get(0), Some(Scalar::from(7)));
/// assert_eq!(values.get(2), Some(Scalar::ZERO));
/// assert_eq!(values.get(3), Some(Scalar::ONE));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedScalars<F> {
    /// Complete words.
    ones: Vec<u64>,
    wide: Vec<u64>,
    /// `rank[k]`: wide positions before word `k`.
    rank: Vec<u32>,
    /// The word being filled; bits from `len % 64` on are 0.
    ones_word: u64,
    wide_word: u64,
    /// Wide positions before the word being filled.
    wide_before: u32,
    len: usize,
    scalars: Vec<F>,
}

/// Entries that arrays keep room for, although they are not used: what they had room for before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) words: usize,
    pub(crate) scalars: usize,
}

/// The arrays of a finished [`PackedScalars`].
#[derive(Debug)]
pub(crate) struct PackedParts<F> {
    pub(crate) ones: Vec<u64>,
    pub(crate) wide: Vec<u64>,
    pub(crate) rank: Vec<u32>,
    pub(crate) scalars: Vec<F>,
}

impl<F: PrimeField> Default for PackedScalars<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F: PrimeField> PackedScalars<F> {
    /// No values.
    pub fn new() -> Self {
        Self {
            ones: Vec::new(),
            wide: Vec::new(),
            rank: Vec::new(),
            ones_word: 0,
            wide_word: 0,
            wide_before: 0,
            len: 0,
            scalars: Vec::new(),
        }
    }

    /// No values, in the memory of an assignment that is not needed any more: as long as its arrays are long enough,
    /// nothing is allocated.
    pub fn reusing(used: Assignment<F>) -> Self {
        let PackedParts { mut ones, mut wide, mut rank, mut scalars } = used.into_parts();
        ones.clear();
        wide.clear();
        rank.clear();
        scalars.clear();
        Self { ones, wide, rank, scalars, ..Self::new() }
    }

    /// What its arrays have room for.
    pub(crate) fn room(&self) -> Room {
        let words = self.ones.capacity().min(self.wide.capacity()).min(self.rank.capacity());
        Room { words, scalars: self.scalars.capacity() }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of values that are neither 0 nor 1.
    pub fn n_wide(&self) -> usize {
        self.scalars.len()
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: F) {
        // No branch on 0 or 1: the bits of hash circuits are random, and each wrong guess would cost
        // as much as the rest of the function.
        let is_one = value == F::ONE;
        let is_wide = !is_one & (value != F::ZERO);
        let shift = self.len % 64;
        self.ones_word |= u64::from(is_one) << shift;
        if is_wide {
            self.wide_word |= 1 << shift;
            self.scalars.push(value);
        }
        self.len += 1;
        if shift == 63 {
            self.finish_word(0, 0);
        }
    }

    /// Appends one value that is 0 or 1.
    #[inline]
    pub fn push_bit(&mut self, bit: bool) {
        self.append_word(u64::from(bit), 0, 1);
    }

    /// Appends `n ≤ 64` values that are 0 or 1: the low `n` bits of `bits`, least significant first.
    ///
    /// # Panics
    /// If `n > 64`.
    #[inline]
    pub fn push_bits(&mut self, bits: u64, n: u32) {
        assert!(n <= 64, "{n} bits of a 64-bit word");
        let mask = if n == 64 { u64::MAX } else { (1 << n) - 1 };
        self.append_word(bits & mask, 0, n as usize);
    }

    /// Appends all values of `other`.
    pub fn append(&mut self, other: &Self) {
        self.append_bitmaps(other);
        self.scalars.extend_from_slice(&other.scalars);
    }

    /// The values of `head` followed by those of `self`, in the memory of `self`: the bitmaps are shifted in place,
    /// from their ends on.
    pub(crate) fn prepend(mut self, head: &Self) -> Self {
        if head.is_empty() {
            return self;
        }
        let len = head.len + self.len;
        self.close();
        let (skip, shift) = (head.len / 64, head.len % 64);
        let words = len.div_ceil(64);
        for (bitmap, first, last) in
            [(&mut self.ones, &head.ones, head.ones_word), (&mut self.wide, &head.wide, head.wide_word)]
        {
            let before = bitmap.len();
            bitmap.resize(words, 0);
            for word in (0..words - skip).rev() {
                let of = |word: usize| if word < before { bitmap[word] } else { 0 };
                let carried = match (shift, word) {
                    (0, _) | (_, 0) => 0,
                    _ => of(word - 1) >> (64 - shift),
                };
                bitmap[word + skip] = of(word) << shift | carried;
            }
            bitmap[..skip].copy_from_slice(first);
            // Its bits from the head's length on are 0, and so are the shifted ones below it. There is no such word if
            // the head's length is a multiple of 64 and nothing follows.
            if let Some(word) = bitmap.get_mut(skip) {
                *word |= last;
            }
        }
        let mut before = 0u32;
        self.rank.clear();
        self.rank.extend(self.wide.iter().map(|word| {
            let rank = before;
            before = before.wrapping_add(word.count_ones());
            rank
        }));
        self.scalars.splice(0..0, head.scalars.iter().copied());
        (self.len, self.wide_before) = (len, before);
        self.reopen();
        self
    }

    /// Stores the word being filled, if there is one.
    fn close(&mut self) {
        if !self.len.is_multiple_of(64) {
            self.finish_word(0, 0);
        }
    }

    /// Goes on filling the last word, if it is not full.
    fn reopen(&mut self) {
        if !self.len.is_multiple_of(64)
            && let (Some(ones), Some(wide), Some(rank)) = (self.ones.pop(), self.wide.pop(), self.rank.pop())
        {
            (self.ones_word, self.wide_word, self.wide_before) = (ones, wide, rank);
        }
    }

    fn append_bitmaps(&mut self, other: &Self) {
        let words = self.ones.len() + other.ones.len() + 1;
        for bitmap in [&mut self.ones, &mut self.wide] {
            bitmap.reserve(words - bitmap.len());
        }
        self.rank.reserve(words - self.rank.len());
        for (&ones, &wide) in other.ones.iter().zip(&other.wide) {
            self.append_word(ones, wide, 64);
        }
        self.append_word(other.ones_word, other.wide_word, other.len % 64);
    }

    /// Appends `n ≤ 64` positions; bits from `n` on must be 0.
    #[inline]
    fn append_word(&mut self, ones: u64, wide: u64, n: usize) {
        let shift = self.len % 64;
        self.ones_word |= ones << shift;
        self.wide_word |= wide << shift;
        self.len += n;
        if shift + n >= 64 {
            // Of the n bits the first 64 - shift are placed; a shift by 64 places all of them.
            let placed = (64 - shift) as u32;
            self.finish_word(ones.checked_shr(placed).unwrap_or(0), wide.checked_shr(placed).unwrap_or(0));
        }
    }

    /// Stores the filled word and starts the next one with the given bits.
    #[inline]
    fn finish_word(&mut self, next_ones: u64, next_wide: u64) {
        self.ones.push(self.ones_word);
        self.wide.push(self.wide_word);
        self.rank.push(self.wide_before);
        // More than 2³² wide values wrap here; an assignment of that size is refused as a whole.
        self.wide_before = self.wide_before.wrapping_add(self.wide_word.count_ones());
        self.ones_word = next_ones;
        self.wide_word = next_wide;
    }

    /// Value `i`, or `None` past the end.
    #[inline]
    pub fn get(&self, i: usize) -> Option<F> {
        if i >= self.len {
            return None;
        }
        let (word, bit) = (i / 64, 1u64 << (i % 64));
        let (ones, wide, rank) = if word < self.ones.len() {
            (self.ones[word], self.wide[word], self.rank[word])
        } else {
            (self.ones_word, self.wide_word, self.wide_before)
        };
        Some(if ones & bit != 0 {
            F::ONE
        } else if wide & bit != 0 {
            self.scalars[rank as usize + (wide & (bit - 1)).count_ones() as usize]
        } else {
            F::ZERO
        })
    }

    /// The arrays, with the last word padded by zeros. They hold on to no more memory than they need, or `keep` says.
    pub(crate) fn into_parts(mut self, keep: Room) -> PackedParts<F> {
        self.close();
        self.ones.shrink_to(keep.words);
        self.wide.shrink_to(keep.words);
        self.rank.shrink_to(keep.words);
        self.scalars.shrink_to(keep.scalars);
        PackedParts { ones: self.ones, wide: self.wide, rank: self.rank, scalars: self.scalars }
    }
}

impl<F: PrimeField> Extend<F> for PackedScalars<F> {
    fn extend<T: IntoIterator<Item = F>>(&mut self, values: T) {
        for value in values {
            self.push(value);
        }
    }
}

impl<F: PrimeField> FromIterator<F> for PackedScalars<F> {
    fn from_iter<T: IntoIterator<Item = F>>(values: T) -> Self {
        let mut packed = Self::new();
        packed.extend(values);
        packed
    }
}
