//! A circuit of any size whose matrices and values are distributed like those of a sector's proof: words of bits that are combined by
//! exclusive or, conjunction and addition, as in SHA-256, and now and then a fifth power, as in Poseidon.

use bellpepper_core::{Circuit, ConstraintSystem, LinearCombination, SynthesisError, Variable};
use ff::PrimeField;

/// Bits of a word.
const WORD: usize = 32;

/// At least `constraints − 200` and at most `constraints` constraints, rows of inputs included. About half of the variables are 1, about 1.6 % are
/// field elements of full size, and the rest are 0.
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    /// Upper bound of the number of constraints.
    pub constraints: usize,
    /// Decides the values; the matrices are the same for all seeds.
    pub seed: u64,
}

#[derive(Clone, Copy)]
struct Bit {
    variable: Variable,
    value: bool,
}

type Word = [Bit; WORD];

struct Builder<'a, F, CS> {
    cs: &'a mut CS,
    constraints: usize,
    /// xorshift64*
    state: u64,
    field: std::marker::PhantomData<F>,
}

impl<F: PrimeField, CS: ConstraintSystem<F>> Builder<'_, F, CS> {
    fn random_bit(&mut self) -> bool {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 63 == 1
    }

    fn enforce(&mut self, a: LinearCombination<F>, b: LinearCombination<F>, c: LinearCombination<F>) {
        self.constraints += 1;
        self.cs.enforce(|| "row", |_| a, |_| b, |_| c);
    }

    fn alloc(&mut self, value: F) -> Result<Variable, SynthesisError> {
        self.cs.alloc(|| "aux", || Ok(value))
    }

    fn bit(&mut self, value: bool) -> Result<Bit, SynthesisError> {
        Ok(Bit { variable: self.alloc(if value { F::ONE } else { F::ZERO })?, value })
    }

    fn boolean(&mut self, value: bool) -> Result<Bit, SynthesisError> {
        let bit = self.bit(value)?;
        let zero = LinearCombination::zero();
        self.enforce(zero.clone() + CS::one() - bit.variable, zero.clone() + bit.variable, zero);
        Ok(bit)
    }

    fn word(
        &mut self,
        mut bit: impl FnMut(&mut Self, usize) -> Result<Bit, SynthesisError>,
    ) -> Result<Word, SynthesisError> {
        let mut word = [Bit { variable: CS::one(), value: true }; WORD];
        for (i, place) in word.iter_mut().enumerate() {
            *place = bit(self, i)?;
        }
        Ok(word)
    }

    fn random_word(&mut self) -> Result<Word, SynthesisError> {
        self.word(|this, _| {
            let value = this.random_bit();
            this.boolean(value)
        })
    }

    fn xor(&mut self, x: &Word, y: &Word) -> Result<Word, SynthesisError> {
        self.word(|this, i| {
            let (x, y) = (x[i], y[(i + 7) % WORD]);
            let z = this.bit(x.value ^ y.value)?;
            let zero = LinearCombination::zero();
            this.enforce(
                zero.clone() + x.variable + x.variable,
                zero.clone() + y.variable,
                zero + x.variable + y.variable - z.variable,
            );
            Ok(z)
        })
    }

    fn and(&mut self, x: &Word, y: &Word) -> Result<Word, SynthesisError> {
        self.word(|this, i| {
            let (x, y) = (x[i], y[(i + 18) % WORD]);
            let z = this.bit(x.value & y.value)?;
            let zero = LinearCombination::zero();
            this.enforce(zero.clone() + x.variable, zero.clone() + y.variable, zero + z.variable);
            Ok(z)
        })
    }

    /// The sum modulo 2^32; the bit above is a variable of its own.
    fn add(&mut self, x: &Word, y: &Word) -> Result<Word, SynthesisError> {
        let number = |word: &Word| word.iter().rev().fold(0u64, |all, bit| 2 * all + u64::from(bit.value));
        let sum = number(x) + number(y);
        let low = self.word(|this, i| this.boolean(sum >> i & 1 == 1))?;
        let carry = self.boolean(sum >> WORD == 1)?;
        let top = F::from(1 << WORD);
        let zero = LinearCombination::zero();
        let packed = pack(pack(zero.clone(), x), y);
        self.enforce(packed, zero.clone() + CS::one(), pack(zero, &low) + (top, carry.variable));
        Ok(low)
    }

    /// (x + word + k)⁵, and its value.
    fn fifth_power(&mut self, x: (Variable, F), word: &Word, k: F) -> Result<(Variable, F), SynthesisError> {
        let value = word.iter().rev().fold(F::ZERO, |all, bit| all.double() + F::from(u64::from(bit.value))) + x.1 + k;
        let zero = LinearCombination::zero();
        let base = pack(zero.clone() + x.0 + (k, CS::one()), word);
        let square = self.alloc(value.square())?;
        self.enforce(base.clone(), base.clone(), zero.clone() + square);
        let fourth = self.alloc(value.square().square())?;
        self.enforce(zero.clone() + square, zero.clone() + square, zero.clone() + fourth);
        let fifth = self.alloc(value.square().square() * value)?;
        self.enforce(zero.clone() + fourth, base, zero + fifth);
        Ok((fifth, value.square().square() * value))
    }
}

/// lc + Σ 2^i · word[i]
fn pack<F: PrimeField>(lc: LinearCombination<F>, word: &Word) -> LinearCombination<F> {
    let mut weight = F::ONE;
    word.iter().fold(lc, |lc, bit| {
        let lc = lc + (weight, bit.variable);
        weight = weight.double();
        lc
    })
}

impl<F: PrimeField> Circuit<F> for Synthetic {
    fn synthesize<CS: ConstraintSystem<F>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        // What a round may take: four words and a carry with their rows, one sum, one power; and the rows of the inputs.
        const ROUND: usize = 4 * WORD + 1 + 1 + 3;
        let mut builder = Builder { cs, constraints: 0, state: self.seed | 1, field: std::marker::PhantomData };
        let (mut x, mut y) = (builder.random_word()?, builder.random_word()?);
        let first = F::from(self.seed).square() + F::from(7);
        let mut power = (builder.alloc(first)?, first);
        power = builder.fifth_power(power, &x, F::from(1))?;
        let mut round = 0u64;
        while builder.constraints + ROUND + 3 <= self.constraints {
            let fresh = builder.random_word()?;
            let mixed = builder.xor(&x, &fresh)?;
            let met = builder.and(&mixed, &y)?;
            let sum = builder.add(&met, &fresh)?;
            if round % 4 != 3 {
                power = builder.fifth_power(power, &sum, F::from(round))?;
            }
            (x, y) = (sum, mixed);
            round += 1;
        }
        let value = power.1;
        let output = builder.cs.alloc_input(|| "output", || Ok(value))?;
        let zero = LinearCombination::zero();
        builder.enforce(zero.clone() + power.0, zero.clone() + CS::one(), zero + output);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use blstrs::Scalar;
    use cuzk_r1cs::{RecordingCs, WitnessCs, check};

    use super::*;

    #[test]
    fn it_is_satisfied_and_of_the_size_that_was_asked_for() {
        for (constraints, seed) in [(1 << 10, 1), (5000, 2), (1 << 14, u64::MAX)] {
            let circuit = Synthetic { constraints, seed };
            let r1cs = RecordingCs::<Scalar>::record(Synthetic { seed: 0, ..circuit }).unwrap();
            assert!((constraints - 200..=constraints).contains(&r1cs.n_constraints()), "{}", r1cs.n_constraints());
            let assignment = WitnessCs::<Scalar>::generate(circuit).unwrap();
            check(&r1cs, &assignment).unwrap();
            let (wide, all) = (assignment.wide_scalars().len(), assignment.n_variables());
            assert!((all / 100..all / 40).contains(&wide), "{wide} of {all}");
        }
    }
}
