//! The field constants of the device code, from one table.

use std::{fmt::Write, fs};

use crate::command::root;

/// A curve: its name, its file, the moduli of its scalars and coordinates, and the coordinates of its groups' generators, most
/// significant digit first.
struct Curve {
    title: &'static str,
    file: &'static str,
    scalars: &'static str,
    coordinates: &'static str,
    g1: [&'static str; 2],
    /// x.c0, x.c1, y.c0, y.c1.
    g2: [&'static str; 4],
}

const TABLE: [Curve; 2] = [
    Curve {
        title: "BLS12-381",
        file: "bls12_381",
        scalars: "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001",
        coordinates: "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab",
        g1: [
            "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
            "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1",
        ],
        g2: [
            "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8",
            "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e",
            "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801",
            "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be",
        ],
    },
    Curve {
        title: "BN254",
        file: "bn254",
        scalars: "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001",
        coordinates: "30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47",
        g1: [
            "0000000000000000000000000000000000000000000000000000000000000001",
            "0000000000000000000000000000000000000000000000000000000000000002",
        ],
        g2: [
            "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed",
            "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2",
            "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa",
            "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b",
        ],
    },
];

/// Writes the generated headers, or with `--check` only says whether they are what would be written.
///
/// # Errors
/// A file that cannot be read or written; with `--check`, one that differs.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("codegen takes nothing, or --check".into()),
    };
    for curve in &TABLE {
        let file = root().join(format!("kernels/common/ff/constants_{}.h", curve.file));
        let text = header(curve);
        if check {
            let found = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            if found != text {
                return Err(format!("{} is not what `cargo xtask codegen` writes", file.display()));
            }
        } else {
            fs::write(&file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
    }
    Ok(())
}

fn header(curve: &Curve) -> String {
    let guard = format!("CUZK_COMMON_FF_CONSTANTS_{}_H", curve.file.to_uppercase());
    let p = Integer::parse(curve.coordinates);
    format!(
        "// Field constants of {}. Generated from one table: do not edit.\n#ifndef {guard}\n#define {guard}\n\n{}\n{}\n\
         #define G1_GENERATOR {}\n#define G2_GENERATOR {}\n\n#endif\n",
        curve.title,
        field("FR", &Integer::parse(curve.scalars)),
        field("FP", &p),
        generator(&p, &curve.g1),
        generator(&p, &curve.g2),
    )
}

/// The definitions of one field; kernels/common/ff/field.inc.h says what they are.
fn field(prefix: &str, p: &Integer) -> String {
    let n = p.0.len();
    let mut out = String::new();
    let mut define = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "#define {prefix}_{name} {value}");
    };
    define("LIMBS", n.to_string());
    define("BITS", p.bits().to_string());
    define("MODULUS", p.list());
    define("ONE", p.power_of_two_mod(32 * n).list());
    define("R2", p.power_of_two_mod(64 * n).list());
    define("INV", format!("{:#010x}u", p.minus_inverse(1).0[0]));
    define("LOW_IS_ONE", u32::from(p.0[0] == 1 && p.0[1] == u32::MAX).to_string());
    out
}

/// Coordinates in Montgomery form, one after the other.
fn generator(p: &Integer, coordinates: &[&str]) -> String {
    let montgomery = |digits: &&str| p.times_power_of_two(&Integer::parse(digits), 32 * p.0.len()).0;
    Integer(coordinates.iter().flat_map(montgomery).collect()).list()
}

/// An integer of 32-bit limbs, least significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Integer(Vec<u32>);

impl Integer {
    /// Hexadecimal digits in whole limbs.
    fn parse(digits: &str) -> Self {
        let limb = |i: usize| u32::from_str_radix(&digits[digits.len() - 8 * (i + 1)..digits.len() - 8 * i], 16);
        Self((0..digits.len() / 8).map(|i| limb(i).expect("the table holds hexadecimal digits")).collect())
    }

    fn list(&self) -> String {
        let limbs: Vec<String> = self.0.iter().map(|l| format!("{l:#010x}u")).collect();
        format!("{{ {} }}", limbs.join(", "))
    }

    fn bits(&self) -> u32 {
        let top = self.0.iter().rposition(|l| *l != 0).unwrap_or(0);
        32 * (top as u32 + 1) - self.0[top].leading_zeros()
    }

    /// self − other, and whether that is negative.
    fn sub(&self, other: &Self) -> (Self, bool) {
        let mut borrow = false;
        let limbs = self.0.iter().zip(&other.0).map(|(a, b)| {
            let (d, first) = a.overflowing_sub(*b);
            let (d, second) = d.overflowing_sub(u32::from(borrow));
            borrow = first || second;
            d
        });
        (Self(limbs.collect()), borrow)
    }

    /// 2^e modulo self.
    fn power_of_two_mod(&self, e: usize) -> Self {
        let mut one = vec![0; self.0.len()];
        one[0] = 1;
        self.times_power_of_two(&Self(one), e)
    }

    /// x·2^e modulo self, whose highest bit is clear, for x below it.
    fn times_power_of_two(&self, x: &Self, e: usize) -> Self {
        let mut x = x.clone();
        for _ in 0..e {
            let mut carry = 0;
            for limb in &mut x.0 {
                (*limb, carry) = (*limb << 1 | carry, *limb >> 31);
            }
            if let (reduced, false) = x.sub(self) {
                x = reduced;
            }
        }
        x
    }

    /// self · other modulo 2^(32·n).
    fn mul_low(&self, other: &Self, n: usize) -> Self {
        let mut out = vec![0u32; n];
        for (i, a) in self.0.iter().enumerate().take(n) {
            let mut carry = 0u64;
            for (j, b) in other.0.iter().enumerate().take(n - i) {
                let t = u64::from(*a) * u64::from(*b) + u64::from(out[i + j]) + carry;
                (out[i + j], carry) = (t as u32, t >> 32);
            }
        }
        Self(out)
    }

    /// −self⁻¹ modulo 2^(32·n), self being odd, by Newton's iteration x ← x·(2 + self·x) for the negated inverse.
    fn minus_inverse(&self, n: usize) -> Self {
        let mut x = vec![0; n];
        x[0] = u32::MAX;
        x.iter_mut().for_each(|l| *l = u32::MAX);
        let mut x = Self(x);
        for _ in 0..(32 * n).ilog2() + 1 {
            let mut t = self.mul_low(&x, n);
            let mut carry = 2u64;
            for limb in &mut t.0 {
                carry += u64::from(*limb);
                (*limb, carry) = (carry as u32, carry >> 32);
            }
            x = x.mul_low(&t, n);
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_moduli_have_constants_that_are_easy_to_check() {
        // 2^31 − 1: 2^32 = 2, 2^64 = 4.
        let p = Integer(vec![0x7fff_ffff]);
        assert_eq!(p.power_of_two_mod(32), Integer(vec![2]));
        assert_eq!(p.power_of_two_mod(64), Integer(vec![4]));
        assert_eq!(p.bits(), 31);
        let wide = Integer::parse(TABLE[0].scalars);
        let product = wide.mul_low(&wide.minus_inverse(8), 8);
        assert_eq!(product, Integer(vec![u32::MAX; 8]), "p times its negated inverse is −1");
    }

    #[test]
    fn the_tree_holds_what_is_generated() {
        run(&["--check".into()]).unwrap();
    }
}
