//! Words of boolean variables, 32 at a time, as the bits gadgets of `bellpepper` would allocate them.

use blstrs::Scalar as Fr;
use cuzk_r1cs::PackedScalars;
use ff::PrimeField;

/// Values of auxiliary variables in the order of their allocation.
pub(super) type Aux = PackedScalars<Fr>;

/// 32 operands of a gadget. Bit `i` is a constant or it is a variable, perhaps negated: `Boolean::Constant`, `Is` and
/// `Not` of `bellpepper`. Which of these is a matter of the circuit alone, the same for every witness.
///
/// The value of a bit is `allocated ^ negated`. For a constant `allocated` is 0 and `negated` its value, so that an
/// exclusive or is one of each mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Bits that are variables.
    pub(super) variable: u32,
    /// What was allocated for them.
    allocated: u32,
    negated: u32,
}

impl Word {
    pub(super) const fn constant(value: u32) -> Self {
        Self { variable: 0, allocated: 0, negated: value }
    }

    /// 32 variables.
    pub(super) const fn allocated(value: u32) -> Self {
        Self { variable: u32::MAX, allocated: value, negated: 0 }
    }

    /// The bits of `variable` are variables, the others the constants that `value` has there.
    pub(super) const fn partly(value: u32, variable: u32) -> Self {
        Self { variable, allocated: value & variable, negated: value & !variable }
    }

    pub(super) const fn value(self) -> u32 {
        self.allocated ^ self.negated
    }

    pub(super) const fn is_constant(self) -> bool {
        self.variable == 0
    }

    pub(super) const fn rotr(self, by: u32) -> Self {
        Self {
            variable: self.variable.rotate_right(by),
            allocated: self.allocated.rotate_right(by),
            negated: self.negated.rotate_right(by),
        }
    }

    /// The bits that are shifted in are constants.
    pub(super) const fn shr(self, by: u32) -> Self {
        Self { variable: self.variable >> by, allocated: self.allocated >> by, negated: self.negated >> by }
    }

    /// `Boolean::xor` of each bit: a variable where both operands are, the lowest first.
    #[inline]
    pub(super) fn xor(self, other: Self, aux: &mut Aux) -> Self {
        let allocated = self.allocated ^ other.allocated;
        push_masked(allocated, self.variable & other.variable, aux);
        Self { variable: self.variable | other.variable, allocated, negated: self.negated ^ other.negated }
    }

    /// `Boolean::sha256_ch` of each bit: `(a & b) ^ (!a & c)`.
    #[inline]
    pub(super) fn ch(a: Self, b: Self, c: Self, aux: &mut Aux) -> Self {
        if a.variable & b.variable & c.variable == u32::MAX {
            let (a, b, c) = (a.value(), b.value(), c.value());
            let ch = (a & b) ^ (!a & c);
            aux.push_bits(u64::from(ch), 32);
            return Self::allocated(ch);
        }
        Self::by_bits(|i| Bit::ch(a.bit(i), b.bit(i), c.bit(i), aux))
    }

    /// `Boolean::sha256_maj` of each bit: `(a & b) ^ (a & c) ^ (b & c)`. Where all are variables it allocates `b & c`
    /// after the result.
    #[inline]
    pub(super) fn maj(a: Self, b: Self, c: Self, aux: &mut Aux) -> Self {
        if a.variable & b.variable & c.variable == u32::MAX {
            let (a, b, c) = (a.value(), b.value(), c.value());
            let maj = (a & b) ^ (a & c) ^ (b & c);
            aux.push_bits(spread(maj) | spread(b & c) << 1, 64);
            return Self::allocated(maj);
        }
        Self::by_bits(|i| Bit::maj(a.bit(i), b.bit(i), c.bit(i), aux))
    }

    const fn bit(self, i: u32) -> Bit {
        Bit { variable: self.variable >> i & 1 == 1, value: self.value() >> i & 1 == 1 }
    }

    fn by_bits(mut bit: impl FnMut(u32) -> Bit) -> Self {
        (0..32).fold(Self::default(), |word, i| {
            let Bit { variable, value } = bit(i);
            let Self { variable: variables, allocated, negated } = word;
            // Only sums are made of it, in which a negation does not matter.
            Self {
                variable: variables | u32::from(variable) << i,
                allocated: allocated | u32::from(value & variable) << i,
                negated: negated | u32::from(value & !variable) << i,
            }
        })
    }
}

/// One operand: a variable (or its negation) or a constant.
#[derive(Clone, Copy)]
struct Bit {
    variable: bool,
    value: bool,
}

impl Bit {
    /// Whether it is the constant of this value.
    const fn is(self, value: bool) -> bool {
        !self.variable && self.value == value
    }

    const fn not(self) -> Self {
        Self { value: !self.value, ..self }
    }

    /// `Boolean::and`.
    fn and(a: Self, b: Self, aux: &mut Aux) -> Self {
        match (a.variable, b.variable) {
            (true, true) => Self::allocate(a.value & b.value, aux),
            (false, _) => Self { variable: a.value & b.variable, value: a.value & b.value },
            (true, false) => Self { variable: b.value, value: a.value & b.value },
        }
    }

    fn allocate(value: bool, aux: &mut Aux) -> Self {
        aux.push_bit(value);
        Self { variable: true, value }
    }

    /// The constant operands in the order in which the gadget looks at them.
    fn ch(a: Self, b: Self, c: Self, aux: &mut Aux) -> Self {
        let value = if a.value { b.value } else { c.value };
        if !a.variable && !b.variable && !c.variable {
            Self { variable: false, value }
        } else if a.is(false) {
            c
        } else if b.is(false) {
            Self::and(a.not(), c, aux)
        } else if c.is(false) {
            Self::and(a, b, aux)
        } else if c.is(true) {
            Self::and(a, b.not(), aux).not()
        } else if b.is(true) {
            Self::and(a.not(), c.not(), aux).not()
        } else {
            Self::allocate(value, aux)
        }
    }

    /// As [`ch`](Self::ch).
    fn maj(a: Self, b: Self, c: Self, aux: &mut Aux) -> Self {
        let value = (a.value & b.value) ^ (a.value & c.value) ^ (b.value & c.value);
        if !a.variable && !b.variable && !c.variable {
            Self { variable: false, value }
        } else if a.is(false) {
            Self::and(b, c, aux)
        } else if b.is(false) {
            Self::and(a, c, aux)
        } else if c.is(false) {
            Self::and(a, b, aux)
        } else if c.is(true) {
            Self::and(a.not(), b.not(), aux).not()
        } else if b.is(true) {
            Self::and(a.not(), c.not(), aux).not()
        } else if a.is(true) {
            Self::and(b.not(), c.not(), aux).not()
        } else {
            let maj = Self::allocate(value, aux);
            Self::and(b, c, aux);
            maj
        }
    }
}

/// Appends the bits of `word` that `mask` names, the lowest first.
#[inline]
fn push_masked(word: u32, mask: u32, aux: &mut Aux) {
    let (mut word, mut mask) = (u64::from(word), u64::from(mask));
    while mask != 0 {
        let skip = mask.trailing_zeros();
        (word, mask) = (word >> skip, mask >> skip);
        let run = mask.trailing_ones();
        aux.push_bits(word, run);
        (word, mask) = (word >> run, mask >> run);
    }
}

/// Bit `i` of a word at bit `2i`.
const fn spread(word: u32) -> u64 {
    let mut x = word as u64;
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

/// `AllocatedNum::to_bits_le`: the 255 bits of a number, the lowest first. The bytes are little-endian.
pub(super) fn push_bits_of(number: &[u8; 32], aux: &mut Aux) {
    for (i, bytes) in number.chunks_exact(8).enumerate() {
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        aux.push_bits(word, if i < 3 { 64 } else { Fr::NUM_BITS - 192 });
    }
}
