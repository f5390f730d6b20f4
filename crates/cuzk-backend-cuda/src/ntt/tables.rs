//! Tables of powers of roots of unity and of coset shifts, made on the device when first asked for and kept while
//! there is room.

use std::sync::{Arc, Mutex};

use cuzk_backend::Result;
use cuzk_curve::{CurveId, ScalarRepr, repr};

use crate::{
    device::Shared,
    driver::{Event, Stream, launch},
    kernels::Ntt,
    memory::{DeviceMemory, lock},
};

/// What a table holds; see `ntt_pass_t` of the kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Butterfly factors of nodes below 2^levels with g = 1; independent of n.
    Plain { levels: u32 },
    /// Butterfly factors for a coset of n = 2^log_n.
    Coset { log_n: u32, levels: u32, g: [u64; 4] },
    /// Powers of ω_n in two levels: those of e below 2^⌈log_n/2⌉, then f·2^32 times the higher ones.
    Roots { log_n: u32, f: [u64; 4] },
    /// g^u for u below 2^log_span.
    Shift { g: [u64; 4], log_span: u32 },
    /// ω_2m^(j bit-reversed) for j below m = 2^k, as factors.
    Results { k: u32 },
    /// Powers of g in two levels, for exponents below 2^log_n.
    Powers { log_n: u32, g: [u64; 4] },
}

/// log2 of the bytes of a factor in a table, w_0 to w_3 of kernels/cuda/ntt/factor.h.
const LOG_FACTOR: u32 = 7;

impl Kind {
    /// Bytes of a table.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Self::Plain { levels } | Self::Coset { levels, .. } => 1 << (LOG_FACTOR + levels),
            Self::Results { k } => 1 << (LOG_FACTOR + k),
            Self::Roots { log_n, .. } | Self::Powers { log_n, .. } => (32 << log_n.div_ceil(2)) + (32 << (log_n / 2)),
            Self::Shift { log_span, .. } => 32 << log_span,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    curve: CurveId,
    inverse: bool,
    kind: Kind,
}

/// A table on the device.
pub(super) struct Table {
    memory: DeviceMemory,
    ready: Event,
}

impl Table {
    /// Its address, to be used on `stream` from now on.
    pub(super) fn on(&self, stream: &Arc<Stream>) -> Result<u64> {
        stream.wait(&self.ready)?;
        Ok(self.memory.on(stream))
    }
}

/// Tables kept, the latest used last.
#[derive(Default)]
pub(crate) struct Tables(Mutex<Vec<(Key, Arc<Table>)>>);

/// More than any mix of circuits uses at a time.
const KEPT: usize = 48;

impl Tables {
    /// Gives up all of them that are not being used by a call.
    pub(crate) fn clear(&self) {
        lock(&self.0).retain(|(_, table)| Arc::strong_count(table) > 1);
    }

    pub(super) fn get<F: ScalarRepr>(
        &self,
        device: &Shared,
        stream: &Arc<Stream>,
        kernels: &Ntt,
        inverse: bool,
        kind: Kind,
    ) -> Result<Arc<Table>> {
        let key = Key { curve: F::CURVE, inverse, kind };
        let mut kept = lock(&self.0);
        let serves = |k: &Key| match (k.kind, kind) {
            // A longer table begins with a shorter one.
            (Kind::Plain { levels: have }, Kind::Plain { levels }) => {
                k.curve == key.curve && k.inverse == inverse && have >= levels
            }
            _ => *k == key,
        };
        if let Some(at) = kept.iter().position(|(k, _)| serves(k)) {
            let entry = kept.remove(at);
            let table = entry.1.clone();
            kept.push(entry);
            return Ok(table);
        }
        drop(kept);
        let table =
            Arc::new(Maker::<F> { device, stream, kernels, inverse, field: std::marker::PhantomData }.make(kind)?);
        kept = lock(&self.0);
        kept.push((key, table.clone()));
        if kept.len() > KEPT {
            kept.remove(0);
        }
        Ok(table)
    }
}

struct Maker<'a, F> {
    device: &'a Shared,
    stream: &'a Arc<Stream>,
    kernels: &'a Ntt,
    inverse: bool,
    field: std::marker::PhantomData<F>,
}

/// Threads of the kernels that make tables.
const BLOCK: u32 = 128;

impl<F: ScalarRepr> Maker<'_, F> {
    /// base^(2^b) for b below 32.
    fn squares(base: F) -> Vec<F> {
        std::iter::successors(Some(base), |x| Some(x.square())).take(32).collect()
    }

    fn upload(&self, values: &[F]) -> Result<DeviceMemory> {
        let memory = self.device.alloc(size_of_val(values) as u64)?;
        memory.fill(0, repr::as_bytes(values))?;
        Ok(memory)
    }

    /// first · base^i for i below `count`, to `out`.
    fn powers(&self, out: u64, base: F, first: F, count: u32) -> Result<()> {
        let (squares, first) = (self.upload(&Self::squares(base))?, self.upload(&[first])?);
        // SAFETY: `out` has room for `count` scalars by the sizes below; the kernel's signature.
        unsafe {
            launch!(self.stream, self.kernels.powers, (count.div_ceil(BLOCK), 1, 1), BLOCK, 0;
                out, squares.on(self.stream), first.on(self.stream), count)
        }
    }

    /// Powers of `base` in two levels for exponents below 2^log_n, the higher ones times `factor`.
    fn two_levels(&self, out: u64, base: F, log_n: u32, factor: F) -> Result<()> {
        let log_low = log_n.div_ceil(2);
        let high = Self::squares(base)[log_low as usize];
        self.powers(out, base, F::ONE, 1 << log_low)?;
        self.powers(out + (32 << log_low), high, factor, 1 << (log_n - log_low))
    }

    fn heap(&self, out: u64, shift: Option<F>, log_n: u32, levels: u32) -> Result<()> {
        let root = self.upload(&Self::squares(root::<F>(log_n, self.inverse)))?;
        let shift = shift.map(|g| self.upload(&Self::squares(g))).transpose()?;
        let at = shift.as_ref().map_or(0, |s| s.on(self.stream));
        // SAFETY: `out` has room for 2^levels factors; the kernel's signature.
        unsafe {
            launch!(self.stream, self.kernels.heap, ((1u32 << levels).div_ceil(BLOCK), 1, 1), BLOCK, 0;
                out, root.on(self.stream), at, log_n, levels)
        }
    }

    fn make(&self, kind: Kind) -> Result<Table> {
        let memory = self.device.alloc_cached(kind.bytes())?;
        let out = memory.on(self.stream);
        match kind {
            Kind::Plain { levels } => self.heap(out, None, levels, levels)?,
            Kind::Coset { log_n, levels, g } => self.heap(out, Some(scalar(g)), log_n, levels)?,
            Kind::Roots { log_n, f } => {
                let f = scalar::<F>(f) * F::from(1 << 32);
                self.two_levels(out, root::<F>(log_n, self.inverse), log_n, f)?;
            }
            Kind::Shift { g, log_span } => self.powers(out, scalar(g), F::ONE, 1 << log_span)?,
            Kind::Results { k } => {
                let step = self.upload(&Self::squares(root::<F>(k + 1, self.inverse)))?;
                // SAFETY: `out` has room for 2^k factors; the kernel's signature.
                unsafe {
                    launch!(self.stream, self.kernels.results, ((1u32 << k).div_ceil(BLOCK), 1, 1), BLOCK, 0;
                        out, step.on(self.stream), k)
                }?;
            }
            Kind::Powers { log_n, g } => self.two_levels(out, scalar(g), log_n, F::ONE)?,
        }
        Ok(Table { memory, ready: self.stream.record()? })
    }
}

/// ω_n or its inverse. Plans have been checked, so the field has the root.
pub(super) fn root<F: ScalarRepr>(log_n: u32, inverse: bool) -> F {
    let omega = F::root_of_unity(log_n).unwrap_or(F::ONE);
    if inverse { omega.invert().unwrap_or(F::ONE) } else { omega }
}

/// The scalar of Montgomery limbs.
pub(super) fn scalar<F: ScalarRepr>(limbs: [u64; 4]) -> F {
    let mut value = [F::ZERO];
    repr::as_limbs_mut(&mut value).copy_from_slice(&limbs);
    value[0]
}

/// The Montgomery limbs of a scalar.
pub(super) fn limbs<F: ScalarRepr>(value: F) -> [u64; 4] {
    let mut limbs = [0; 4];
    limbs.copy_from_slice(repr::as_limbs(&[value]));
    limbs
}
