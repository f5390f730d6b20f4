//! Number-theoretic transforms and the quotient. docs/kernels.md explains the passes.

mod plan;
mod sizes;
mod tables;

use std::sync::Arc;

use cuzk_backend::{BackendError, Coset, Direction, NttPlan, Order, QuotientPlan, Result};
use cuzk_curve::{Curve, ScalarRepr, pairing::Engine, repr, with_curve};

use crate::{
    device::Shared,
    driver::{Stream, launch},
    kernels::{CurveKernels, Ntt},
};
use plan::{BIT_REVERSED, CANONICAL, DIFFERENCE, ODD_ELEMENTS, ODD_RESULTS, PRODUCT, Pass, UNIT};
use sizes::{Along, Needed, needed};
pub(crate) use sizes::{quotient_workspace, transform_workspace};
pub(crate) use tables::Tables;
use tables::{Kind, Table, limbs, root, scalar};

/// Threads of the kernels that treat elements one by one.
const BLOCK: u32 = 256;

/// Transforms the first 2^log_n scalars at `at` in place.
///
/// # Safety
/// * `at` is memory of this device for 2^log_n scalars that stays until the stream's work is done.
pub(crate) unsafe fn transform(device: &Shared, stream: &Arc<Stream>, plan: &NttPlan, at: u64) -> Result<()> {
    if plan.log_n == 0 {
        // One element: its power of g is g^0.
        return Ok(());
    }
    supported("ntt", plan.log_n)?;
    let kernels = device.kernels(plan.curve)?;
    with_curve!(plan.curve, C => {
        let on = On { device, stream, kernels: &kernels };
        // SAFETY: the caller's promise.
        unsafe { on.transform::<<C as Engine>::Fr>(plan, at) }
    })
}

/// Turns `a` into the coefficients of the quotient; `b` is left undefined.
///
/// # Safety
/// * `a` and `b` are different memory of this device for 2^log_n scalars each, which stays until the stream's work is
///   done.
pub(crate) unsafe fn quotient(
    device: &Shared,
    stream: &Arc<Stream>,
    plan: &QuotientPlan,
    a: u64,
    b: u64,
) -> Result<()> {
    supported("quotient", plan.log_n)?;
    let kernels = device.kernels(plan.curve)?;
    with_curve!(plan.curve, C => {
        let on = On { device, stream, kernels: &kernels };
        // SAFETY: the caller's promise.
        unsafe { on.quotient::<C>(plan, a, b) }
    })
}

fn supported(operation: &str, log_n: u32) -> Result<()> {
    if log_n <= plan::LARGEST {
        return Ok(());
    }
    Err(BackendError::Unsupported {
        operation: operation.to_owned(),
        reason: format!("2^{log_n} elements; this device transforms up to 2^{}", plan::LARGEST),
    })
}

/// The tables of a transform with ω_n or its inverse, all results times f.
struct Transform {
    log_n: u32,
    along: Along,
    heap: Option<Arc<Table>>,
    plain: Arc<Table>,
    roots: Arc<Table>,
    log_roots: u32,
    shift: Option<Arc<Table>>,
    results: Option<Arc<Table>>,
}

impl Transform {
    fn passes(&self) -> &'static [u32] {
        plan::passes(self.log_n)
    }

    /// Whether its vectors need others between its passes to keep their order.
    fn has_several_passes(&self) -> bool {
        self.passes().len() > 1
    }
}

/// A device, a stream and the kernels of a curve.
#[derive(Clone, Copy)]
struct On<'a> {
    device: &'a Shared,
    stream: &'a Arc<Stream>,
    kernels: &'a CurveKernels,
}

impl On<'_> {
    fn ntt(&self) -> &Ntt {
        &self.kernels.ntt
    }

    fn table<F: ScalarRepr>(&self, inverse: bool, kind: Kind) -> Result<Arc<Table>> {
        self.device.with_room(|| self.device.tables.get::<F>(self.device, self.stream, self.ntt(), inverse, kind))
    }

    fn tables<F: ScalarRepr>(&self, log_n: u32, inverse: bool, along: Along, f: F) -> Result<Transform> {
        let Needed { heap, plain, roots, shift, results } = needed(log_n, along, limbs(f));
        let odd = matches!(along, Along::OddElements(_) | Along::OddResults);
        Ok(Transform {
            log_n,
            along,
            heap: heap.map(|kind| self.table::<F>(inverse, kind)).transpose()?,
            plain: self.table::<F>(inverse, plain)?,
            roots: self.table::<F>(inverse, roots)?,
            log_roots: log_n + u32::from(odd),
            shift: shift.map(|kind| self.table::<F>(false, kind)).transpose()?,
            results: results.map(|kind| self.table::<F>(inverse, kind)).transpose()?,
        })
    }

    fn pass(&self, t: &Transform, stage: u32, k: u32) -> Result<Pass> {
        let on = |table: &Arc<Table>| table.on(self.stream);
        let (roots, plain) = (on(&t.roots)?, on(&t.plain)?);
        let log_low = t.log_roots.div_ceil(2);
        let contiguous = stage + k == t.log_n;
        let flags = match t.along {
            Along::OddElements(_) if contiguous => ODD_ELEMENTS,
            Along::OddResults if contiguous => ODD_RESULTS,
            Along::Nothing | Along::OddResults if stage == 0 => UNIT,
            _ => 0,
        };
        Ok(Pass {
            heap: t.heap.as_ref().map_or(Ok(plain), on)?,
            plain,
            roots_low: roots,
            roots_high: roots + (32 << log_low),
            shift: t.shift.as_ref().map_or(Ok(0), on)?,
            results: t.results.as_ref().map_or(Ok(0), on)?,
            log_n: t.log_n,
            stage,
            k,
            log_c: plan::log_tile(t.log_n) - k,
            log_low,
            flags,
            ..Pass::default()
        })
    }

    /// # Safety
    /// * `src`, `dst` and `operand` of the pass are memory of this device for 2^log_n scalars (or `operand` is not
    ///   used).
    unsafe fn launch(&self, kernel: crate::driver::Kernel, pass: Pass) -> Result<()> {
        let log_tile = pass.k + pass.log_c;
        // SAFETY: the caller's promise; the tables have the sizes of their kinds.
        unsafe {
            launch!(self.stream, kernel, (1 << (pass.log_n - log_tile), 1, 1), 1 << (log_tile - plan::LOG_RADIX),
                32 << log_tile; pass)
        }
    }

    /// Natural to bit-reversed order, or natural if `natural`; then `middle` must not be `dst` when there are several
    /// passes.
    ///
    /// # Safety
    /// * All operands are memory of this device for 2^log_n scalars.
    unsafe fn time(&self, t: &Transform, operands: Operands, natural: bool) -> Result<()> {
        let Operands { mut src, middle, dst, factor, minuend } = operands;
        let passes = t.passes();
        if let ([_], Some(factor)) = (passes, factor) {
            // SAFETY: the caller's promise.
            unsafe { self.product(dst, src, factor, 1 << t.log_n)? };
            src = dst;
        }
        let mut stage = 0;
        for (i, &k) in passes.iter().enumerate() {
            let (first, last) = (i == 0, i + 1 == passes.len());
            let mut pass = self.pass(t, stage, k)?;
            pass.src = if first { src } else { middle };
            pass.dst = if last { dst } else { middle };
            let kernel = if last {
                pass.flags |= if natural { BIT_REVERSED } else { 0 };
                if let Some(minuend) = minuend {
                    pass.operand = minuend;
                    pass.flags |= DIFFERENCE;
                }
                self.ntt().time_contiguous
            } else {
                if let (true, Some(factor)) = (first, factor) {
                    pass.operand = factor;
                    pass.flags |= PRODUCT;
                }
                self.ntt().time_strided
            };
            // SAFETY: the caller's promise.
            unsafe { self.launch(kernel, pass)? };
            stage += k;
        }
        Ok(())
    }

    /// Bit-reversed (with `natural`: natural) to natural order.
    ///
    /// # Safety
    /// * All are memory of this device for 2^log_n scalars.
    unsafe fn frequency(&self, t: &Transform, src: u64, middle: u64, dst: u64, natural: bool) -> Result<()> {
        let passes = t.passes();
        let mut stage = t.log_n;
        for (i, &k) in passes.iter().enumerate().rev() {
            stage -= k;
            let (first, last) = (i + 1 == passes.len(), i == 0);
            let mut pass = self.pass(t, stage, k)?;
            pass.src = if first { src } else { middle };
            pass.dst = if last { dst } else { middle };
            pass.flags |= if last { CANONICAL } else { 0 };
            let kernel = if first {
                pass.flags |= if natural { BIT_REVERSED } else { 0 };
                self.ntt().frequency_contiguous
            } else {
                self.ntt().frequency_strided
            };
            // SAFETY: the caller's promise.
            unsafe { self.launch(kernel, pass)? };
        }
        Ok(())
    }

    /// # Safety
    /// * `at` is memory of this device for 2^log_n scalars.
    unsafe fn transform<F: ScalarRepr>(&self, plan: &NttPlan, at: u64) -> Result<()> {
        let (log_n, inverse) = (plan.log_n, plan.direction == Direction::Inverse);
        let g: F = match plan.coset {
            Coset::One => F::ONE,
            Coset::Shift(g) => scalar(g),
        };
        let n_inverse = F::from(1 << log_n).invert().unwrap_or(F::ONE);
        let (g, f) = if inverse { (g.invert().unwrap_or(F::ONE), n_inverse) } else { (g, F::ONE) };
        if log_n < plan::SMALLEST {
            // SAFETY: the caller's promise.
            return unsafe { self.small(log_n, inverse, g, f, plan.order, at) };
        }
        // The passes take a coset along where the powers of g belong to the natural order of their own direction.
        let along = match (inverse, plan.order) {
            (false, Order::Natural | Order::NaturalToBitReversed)
            | (true, Order::Natural | Order::BitReversedToNatural) => g,
            _ => F::ONE,
        };
        // All that may not fit is there before the first launch: a refusal leaves the elements as they are.
        let apart = (along != g).then(|| self.table::<F>(false, Kind::Powers { log_n, g: limbs(g) })).transpose()?;
        let along = if along == F::ONE { Along::Nothing } else { Along::Coset(limbs(along)) };
        let t = self.tables(log_n, inverse, along, f)?;
        // SAFETY: the caller's promise, and memory of that size for what lies between.
        unsafe {
            match plan.order {
                Order::Natural => self.natural(&t, inverse, at),
                Order::NaturalToBitReversed => {
                    self.time(&t, Operands::in_place(at), false)?;
                    apart.map_or(Ok(()), |powers| self.scale(log_n, &powers, at))
                }
                Order::BitReversedToNatural => {
                    apart.map_or(Ok(()), |powers| self.scale(log_n, &powers, at))?;
                    self.frequency(&t, at, at, at, false)
                }
            }
        }
    }

    /// Natural to natural: through other memory where there is room, or else with a reversal in place.
    ///
    /// # Safety
    /// * `at` is memory of this device for 2^log_n scalars.
    unsafe fn natural(&self, t: &Transform, inverse: bool, at: u64) -> Result<()> {
        let several = t.has_several_passes();
        let between = if several { self.device.try_alloc_on(self.stream, 32 << t.log_n)? } else { None };
        let middle = between.as_ref().map_or(at, |m| m.on(self.stream));
        let direct = !several || between.is_some();
        // SAFETY: the caller's promise.
        unsafe {
            if inverse && t.along != Along::Nothing {
                // The powers of g belong to the results.
                if !direct {
                    self.reverse(t.log_n, at)?;
                }
                self.frequency(t, at, middle, at, direct)
            } else {
                self.time(t, Operands { middle, ..Operands::in_place(at) }, direct)?;
                if direct { Ok(()) } else { self.reverse(t.log_n, at) }
            }
        }
    }

    /// # Safety
    /// * `at` is memory of this device for 2^log_n scalars, log_n at least 8.
    unsafe fn reverse(&self, log_n: u32, at: u64) -> Result<()> {
        // SAFETY: the caller's promise; the kernel's signature.
        unsafe { launch!(self.stream, self.ntt().reverse, (1 << (log_n - 8), 1, 1), 256, 0; at, log_n) }
    }

    /// Multiplies the element at each place by g to the power of the place, bit-reversed.
    ///
    /// # Safety
    /// * `at` is memory of this device for 2^log_n scalars.
    unsafe fn scale(&self, log_n: u32, powers: &Table, at: u64) -> Result<()> {
        let (low, log_low) = (powers.on(self.stream)?, log_n.div_ceil(2));
        // SAFETY: the caller's promise; the kernel's signature.
        unsafe {
            launch!(self.stream, self.ntt().scale, ((1u32 << log_n).div_ceil(BLOCK), 1, 1), BLOCK, 0;
                at, low, low + (32 << log_low), log_n, log_low)
        }
    }

    /// By the definition, for up to four elements. Forward, element j is multiplied by f·g^j before; inverse, after.
    ///
    /// # Safety
    /// * `at` is memory of this device for 2^log_n scalars.
    unsafe fn small<F: ScalarRepr>(&self, log_n: u32, inverse: bool, g: F, f: F, order: Order, at: u64) -> Result<()> {
        let n = 1usize << log_n;
        let powers = |base: F, first: F| std::iter::successors(Some(first), move |x| Some(*x * base)).take(n);
        let values: Vec<F> = powers(root(log_n, inverse), F::ONE).chain(powers(g, f)).collect();
        let memory = self.device.alloc(size_of_val(&values[..]) as u64)?;
        memory.fill(0, repr::as_bytes(&values))?;
        let table = memory.on(self.stream);
        let factors = table + 32 * n as u64;
        let (before, after) = if inverse { (0, factors) } else { (factors, 0) };
        let reversed_in = u32::from(order == Order::BitReversedToNatural);
        let reversed_out = u32::from(order == Order::NaturalToBitReversed);
        // SAFETY: the caller's promise; the kernel's signature.
        unsafe {
            launch!(self.stream, self.ntt().small, (1, 1, 1), n as u32, 0;
                at, table, before, after, log_n, reversed_in, reversed_out)
        }
    }

    /// `out[i] = a[i]·b[i]` for i below n.
    ///
    /// # Safety
    /// * All are memory of this device for n scalars.
    unsafe fn product(&self, out: u64, a: u64, b: u64, n: u64) -> Result<()> {
        let blocks = n.div_ceil(u64::from(BLOCK)) as u32;
        // SAFETY: the caller's promise; the kernel's signature.
        unsafe { launch!(self.stream, self.ntt().product, (blocks, 1, 1), BLOCK, 0; out, a, b, n) }
    }

    /// With c the interpolation of a·b on the domain and u that on the coset g·⟨ω⟩, g = ω_2n, hence gⁿ = −1: h = (c −
    /// u)/2. c and u are computed halved, so that the last pass only subtracts.
    ///
    /// # Safety
    /// * `a` and `b` are different memory of this device for 2^log_n scalars each.
    unsafe fn quotient<C: Curve>(&self, plan: &QuotientPlan, a: u64, b: u64) -> Result<()> {
        let log_n = plan.log_n;
        let (n_inverse, half) = (inverse_of::<C::Fr>(1 << log_n), inverse_of::<C::Fr>(2));
        let one = <C::Fr as ff::Field>::ONE;
        let c_memory = self.device.alloc_on(self.stream, 32 << log_n)?;
        let c = c_memory.on(self.stream);
        if log_n < plan::SMALLEST {
            // SAFETY: the caller's promise.
            return unsafe { self.small_quotient::<C::Fr>(log_n, a, b, c) };
        }
        let g = Along::OddElements(limbs(root::<C::Fr>(log_n + 1, false)));
        let halved = self.tables(log_n, true, Along::Nothing, n_inverse * half)?;
        let inverse = self.tables(log_n, true, Along::Nothing, n_inverse)?;
        let forward = self.tables(log_n, false, g, one)?;
        let back = self.tables(log_n, true, Along::OddResults, n_inverse * half)?;
        let t_memory = self.device.try_alloc_on(self.stream, 32 << log_n)?;
        let t = t_memory.as_ref().map(|t| t.on(self.stream));
        // Without a vector between the passes, results come in bit-reversed order, and are reversed in place where
        // that matters: products and differences element by element do not care.
        let reversing = t.is_none() && halved.has_several_passes();
        // SAFETY: the caller's promise, and memory of that size for what lies between.
        unsafe {
            let run = |transform: &Transform, operands: Operands| {
                self.time(transform, Operands { middle: t.unwrap_or(operands.dst), ..operands }, !reversing)
            };
            let reverse = |at| if reversing { self.reverse(log_n, at) } else { Ok(()) };
            run(&halved, Operands { src: a, dst: c, factor: Some(b), ..Operands::in_place(c) })?;
            for at in [a, b] {
                run(&inverse, Operands::in_place(at))?;
                reverse(at)?;
                run(&forward, Operands::in_place(at))?;
                reverse(at)?;
            }
            run(&back, Operands { factor: Some(b), minuend: Some(c), ..Operands::in_place(a) })?;
            reverse(a)
        }
    }

    /// # Safety
    /// * `a`, `b` and `c` are different memory of this device for 2^log_n scalars each.
    unsafe fn small_quotient<F: ScalarRepr>(&self, log_n: u32, a: u64, b: u64, c: u64) -> Result<()> {
        let n = 1u64 << log_n;
        let plan = |direction, coset| NttPlan { curve: F::CURVE, log_n, direction, coset, order: Order::Natural };
        let coset = Coset::Shift(limbs(root::<F>(log_n + 1, false)));
        let half = self.device.alloc(32)?;
        half.fill(0, repr::as_bytes(&[inverse_of::<F>(2)]))?;
        // SAFETY: the caller's promise.
        unsafe {
            let transform = |direction, coset, at| match log_n {
                0 => Ok(()),
                _ => self.transform::<F>(&plan(direction, coset), at),
            };
            self.product(c, a, b, n)?;
            transform(Direction::Inverse, Coset::One, c)?;
            for at in [a, b] {
                transform(Direction::Inverse, Coset::One, at)?;
                transform(Direction::Forward, coset, at)?;
            }
            self.product(a, a, b, n)?;
            transform(Direction::Inverse, coset, a)?;
            launch!(self.stream, self.ntt().difference, (1, 1, 1), BLOCK, 0; a, c, a, half.on(self.stream), n)
        }
    }
}

/// What a transform in time reads and writes. `factor`: what `src` is multiplied by first. `minuend`: what the result
/// is subtracted from.
#[derive(Clone, Copy)]
struct Operands {
    src: u64,
    middle: u64,
    dst: u64,
    factor: Option<u64>,
    minuend: Option<u64>,
}

impl Operands {
    fn in_place(at: u64) -> Self {
        Self { src: at, middle: at, dst: at, factor: None, minuend: None }
    }
}

fn inverse_of<F: ScalarRepr>(n: u64) -> F {
    F::from(n).invert().unwrap_or(F::ONE)
}
