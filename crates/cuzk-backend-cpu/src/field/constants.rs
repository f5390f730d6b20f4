//! Constants derived from a modulus at compile time, so that none can be mistyped.

/// BLS12-381's base field modulus, little-endian 64-bit limbs.
pub(crate) const BLS12_381: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// BN254's base field modulus, little-endian 64-bit limbs.
pub(crate) const BN254: [u64; 4] =
    [0x3c20_8c16_d87c_fd47, 0x9781_6a91_6871_ca8d, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];

/// 2^exponent mod p.
pub(crate) const fn pow2<const W: usize>(p: &[u64; W], exponent: usize) -> [u64; W] {
    let mut value = [0; W];
    value[0] = 1;
    let mut i = 0;
    while i < exponent {
        let mut doubled = [0; W];
        let mut carry = 0;
        let mut w = 0;
        while w < W {
            doubled[w] = value[w] << 1 | carry;
            carry = value[w] >> 63;
            w += 1;
        }
        // The moduli leave the highest bit free, so doubling a reduced value never carries out.
        value = reduce_once(&doubled, p);
        i += 1;
    }
    value
}

/// `value - p` if that is not negative, else `value`.
pub(crate) const fn reduce_once<const W: usize>(value: &[u64; W], p: &[u64; W]) -> [u64; W] {
    let mut difference = [0; W];
    let mut borrow = false;
    let mut w = 0;
    while w < W {
        let (d, b1) = value[w].overflowing_sub(p[w]);
        let (d, b2) = d.overflowing_sub(borrow as u64);
        difference[w] = d;
        borrow = b1 | b2;
        w += 1;
    }
    if borrow { *value } else { difference }
}

/// `multiple · value` in limbs of 52 bits. The result must fit into them.
pub(crate) const fn limbs52<const W: usize, const N: usize>(value: &[u64; W], multiple: u64) -> [u64; N] {
    let mut limbs = [0; N];
    let mut carry = 0u128;
    let mut i = 0;
    while i < N {
        let (word, shift) = (i * 52 / 64, i * 52 % 64);
        let mut limb = if word < W { value[word] >> shift } else { 0 };
        if shift > 12 && word + 1 < W {
            limb |= value[word + 1] << (64 - shift);
        }
        limb &= (1 << 52) - 1;
        carry += limb as u128 * multiple as u128;
        limbs[i] = carry as u64 & ((1 << 52) - 1);
        carry >>= 52;
        i += 1;
    }
    assert!(carry == 0);
    limbs
}

/// The inverse of an odd number modulo 2^64.
pub(crate) const fn inverse_mod_2_64(odd: u64) -> u64 {
    let mut inverse = odd; // right modulo 2^3; each Newton step doubles the bits
    let mut i = 0;
    while i < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

/// The inverse of [`limbs52`] with multiple 1.
pub(crate) const fn words64<const N: usize, const W: usize>(limbs: &[u64; N]) -> [u64; W] {
    let mut words = [0; W];
    let mut i = 0;
    while i < N {
        let (word, shift) = (i * 52 / 64, i * 52 % 64);
        words[word] |= limbs[i] << shift;
        if shift > 12 && word + 1 < W {
            words[word + 1] |= limbs[i] >> (64 - shift);
        }
        i += 1;
    }
    words
}
