//! A circuit of any size with bits, wide values, long rows and several public inputs.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use bellpepper_core::{
    Circuit, ConstraintSystem, LinearCombination, SynthesisError, boolean::AllocatedBit, num::AllocatedNum,
};
use cuzk_backend::{Device, DeviceOptions};
use cuzk_backend_cpu::CpuBackend;
use ff::PrimeField;

/// The bits of a number are allocated, packed by a long row, and the packed number is squared again and again; every squaring's result
/// at a multiple of `steps / n_public` is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Squarings {
    pub(crate) seed: u64,
    pub(crate) bits: usize,
    pub(crate) steps: usize,
    pub(crate) n_public: usize,
    /// A wrong witness: the last square is off by this.
    pub(crate) error: u64,
}

impl Squarings {
    pub(crate) fn new(seed: u64, steps: usize) -> Self {
        Self { seed, bits: 64, steps, n_public: 2, error: 0 }
    }

    /// The public inputs, by plain arithmetic.
    pub(crate) fn public_inputs<F: PrimeField>(&self) -> Vec<F> {
        let mut x = F::from(self.seed);
        let mut out = Vec::new();
        for step in 0..self.steps {
            x = x.square();
            if self.is_public(step) {
                out.push(x);
            }
        }
        out
    }

    fn is_public(&self, step: usize) -> bool {
        self.n_public > 0 && (step + 1).is_multiple_of(self.steps / self.n_public)
    }
}

impl<F: PrimeField> Circuit<F> for Squarings {
    fn synthesize<CS: ConstraintSystem<F>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let mut packed = LinearCombination::zero();
        let mut power = F::ONE;
        for i in 0..self.bits {
            let bit = self.seed >> i & 1 == 1;
            let bit = AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), Some(bit))?;
            packed = packed + (power, bit.get_variable());
            power = power.double();
        }
        let mut x = AllocatedNum::alloc(cs.namespace(|| "number"), || Ok(F::from(self.seed)))?;
        cs.enforce(|| "packing", |_| packed, |lc| lc + CS::one(), |lc| lc + x.get_variable());
        for step in 0..self.steps {
            let mut cs = cs.namespace(|| format!("step {step}"));
            let value = x.get_value().map(|v| {
                let square = v.square();
                if step + 1 == self.steps { square + F::from(self.error) } else { square }
            });
            let square =
                AllocatedNum::alloc(cs.namespace(|| "square"), || value.ok_or(SynthesisError::AssignmentMissing))?;
            let (a, b) = (x.get_variable(), square.get_variable());
            cs.enforce(|| "x·x", |lc| lc + a, |lc| lc + a, |lc| lc + b);
            if self.is_public(step) {
                square.inputize(cs.namespace(|| "public"))?;
            }
            x = square;
        }
        Ok(())
    }
}

pub(crate) fn device() -> Device {
    Device::open(&CpuBackend, 0, &DeviceOptions::default()).unwrap()
}
