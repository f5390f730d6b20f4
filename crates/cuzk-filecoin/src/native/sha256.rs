//! SHA-256 as the gadget of `bellpepper` allocates it: the intermediate bits of every block.
//!
//! FIPS 180-4. A block of 512 variables is 26,087 variables more, which is what nearly all of a PoRep's witness consists
//! of. Here they are 32 at a time: a block takes microseconds.

use super::bits::{Aux, Word};

const ROUNDS: usize = 64;
const K: [u32; ROUNDS] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];
const IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Words that a number is in a message: its 32 little-endian bytes, of which the highest bit is no variable.
pub(super) fn number(bytes: &[u8; 32]) -> [Word; 8] {
    std::array::from_fn(|i| {
        let word = u32::from_be_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        if i < 7 { Word::allocated(word) } else { Word::partly(word, !(1 << 7)) }
    })
}

/// The digest of a message of words, and what the gadget allocates for it.
pub(super) fn sha256(message: impl ExactSizeIterator<Item = Word>, aux: &mut Aux) -> [u8; 32] {
    let words = message.len();
    // A one, zeros, and the length in bits as a word of 64 bits end a multiple of 16 words.
    let zeros = (16 - (words + 3) % 16) % 16;
    let length = 32 * words as u64;
    let mut padded = message
        .chain([Word::constant(1 << 31)])
        .chain(std::iter::repeat_n(Word::constant(0), zeros))
        .chain([Word::constant((length >> 32) as u32), Word::constant(length as u32)]);
    let mut state = IV.map(Word::constant);
    for _ in 0..(words + 3 + zeros) / 16 {
        let block = std::array::from_fn(|_| padded.next().unwrap_or_default());
        state = compress(&state, &block, aux);
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.value().to_be_bytes());
    }
    digest
}

/// One block. The order of allocation is the gadget's: the message schedule; then in each round e, Σ₁, ch, a, Σ₀, maj,
/// where e and a are those of the round before, as the sums that they are.
fn compress(state: &[Word; 8], block: &[Word; 16], aux: &mut Aux) -> [Word; 8] {
    let mut w = [Word::default(); ROUNDS];
    w[..16].copy_from_slice(block);
    for i in 16..ROUNDS {
        let (x, y) = (w[i - 15], w[i - 2]);
        let s0 = x.rotr(7).xor(x.rotr(18), aux).xor(x.shr(3), aux);
        let s1 = y.rotr(17).xor(y.rotr(19), aux).xor(y.shr(10), aux);
        w[i] = Sum::of([w[i - 16], s0, w[i - 7], s1]).allocate(aux);
    }

    let (mut a, mut b, mut c, mut d) = (Deferred::Is(state[0]), state[1], state[2], state[3]);
    let (mut e, mut f, mut g, mut h) = (Deferred::Is(state[4]), state[5], state[6], state[7]);
    for (k, w) in K.iter().zip(&w) {
        let new_e = e.allocate(aux);
        let s1 = new_e.rotr(6).xor(new_e.rotr(11), aux).xor(new_e.rotr(25), aux);
        let ch = Word::ch(new_e, f, g, aux);
        let temp1 = Sum::of([h, s1, ch, Word::constant(*k), *w]);
        let new_a = a.allocate(aux);
        let s0 = new_a.rotr(2).xor(new_a.rotr(13), aux).xor(new_a.rotr(22), aux);
        let maj = Word::maj(new_a, b, c, aux);
        (h, g, f, e) = (g, f, new_e, Deferred::Sum(temp1.plus(d)));
        (d, c, b, a) = (c, b, new_a, Deferred::Sum(temp1.plus(s0).plus(maj)));
    }
    [
        a.plus(state[0]).allocate(aux),
        Sum::of([state[1], b]).allocate(aux),
        Sum::of([state[2], c]).allocate(aux),
        Sum::of([state[3], d]).allocate(aux),
        e.plus(state[4]).allocate(aux),
        Sum::of([state[5], f]).allocate(aux),
        Sum::of([state[6], g]).allocate(aux),
        Sum::of([state[7], h]).allocate(aux),
    ]
}

/// Operands of `UInt32::addmany`, which allocates every bit that their sum can have and goes on with 32 of them.
#[derive(Clone, Copy)]
struct Sum {
    value: u64,
    operands: u32,
    constant: bool,
}

impl Sum {
    const NONE: Self = Self { value: 0, operands: 0, constant: true };

    fn of<const N: usize>(operands: [Word; N]) -> Self {
        operands.into_iter().fold(Self::NONE, Self::plus)
    }

    const fn plus(self, operand: Word) -> Self {
        Self {
            value: self.value + operand.value() as u64,
            operands: self.operands + 1,
            constant: self.constant & operand.is_constant(),
        }
    }

    fn allocate(self, aux: &mut Aux) -> Word {
        if self.constant {
            return Word::constant(self.value as u32);
        }
        let greatest = u64::from(self.operands) * u64::from(u32::MAX);
        aux.push_bits(self.value, u64::BITS - greatest.leading_zeros());
        Word::allocated(self.value as u32)
    }
}

/// A word of the state before the round that allocates it; what a block begins with is there already.
#[derive(Clone, Copy)]
enum Deferred {
    Is(Word),
    Sum(Sum),
}

impl Deferred {
    fn allocate(self, aux: &mut Aux) -> Word {
        match self {
            Self::Is(word) => word,
            Self::Sum(sum) => sum.allocate(aux),
        }
    }

    const fn plus(self, operand: Word) -> Sum {
        match self {
            Self::Is(word) => Sum::NONE.plus(word).plus(operand),
            Self::Sum(sum) => sum.plus(operand),
        }
    }
}
