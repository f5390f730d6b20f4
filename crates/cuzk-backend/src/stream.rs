//! A queue of work: every operation that executes in order.

use std::sync::Arc;

use cuzk_curve::{AffineRepr, repr};

use crate::{
    Device, Result,
    objects::{Bases, Buffer, DeviceAssignment, Event, HostBuffer, Matrix, Owned, Pending},
    ops::{MsmOperands, StreamId},
    plan::{AssignmentView, FixedBasePlan, MsmScalars, NttPlan, QuotientPlan},
    validate,
};

/// A queue of work on one device. Work of one stream executes in the order in which it was enqueued.
#[derive(Debug)]
pub struct Stream {
    pub(crate) owned: Owned<StreamId>,
}

impl Stream {
    /// The device that it works on.
    pub fn device(&self) -> Device {
        Device { ops: self.owned.device.clone() }
    }

    /// Marks the work enqueued so far.
    ///
    /// # Errors
    /// The device is lost.
    pub fn record(&self) -> Result<Event> {
        let ops = &self.owned.device;
        Ok(Event(Arc::new(Owned::new(ops, ops.event_record(self.owned.id)?))))
    }

    /// Lets later work of this stream wait for an event of another one.
    ///
    /// # Errors
    /// The event is another device's.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.same("stream_wait", &event.0)?;
        self.owned.device.stream_wait(self.owned.id, event.0.id)
    }

    /// Waits until all work enqueued so far is done.
    ///
    /// # Errors
    /// What went wrong in that work.
    pub fn synchronize(&self) -> Result<()> {
        self.record()?.wait()
    }

    /// Enqueues a copy from pinned memory to a buffer; offsets and sizes in bytes.
    ///
    /// # Errors
    /// A range outside of its memory; memory of another device.
    pub fn upload(
        &self,
        source: &mut HostBuffer,
        source_offset: u64,
        target: &Buffer,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        const OP: &str = "upload";
        self.same(OP, &source.owned)?;
        self.same(OP, &target.owned)?;
        validate::range(OP, "the source", source_offset, bytes, source.len() as u64)?;
        validate::range(OP, "the target", target_offset, bytes, target.bytes)?;
        source.memory.lend();
        self.owned.device.upload(
            self.owned.id,
            source.owned.id,
            source_offset,
            target.owned.id,
            target_offset,
            bytes,
        )?;
        source.transfer_enqueued(self)
    }

    /// Enqueues a copy from a buffer to pinned memory; offsets and sizes in bytes.
    ///
    /// # Errors
    /// A range outside of its memory; memory of another device.
    pub fn download(
        &self,
        source: &Buffer,
        source_offset: u64,
        target: &mut HostBuffer,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        const OP: &str = "download";
        self.same(OP, &source.owned)?;
        self.same(OP, &target.owned)?;
        validate::range(OP, "the source", source_offset, bytes, source.bytes)?;
        validate::range(OP, "the target", target_offset, bytes, target.len() as u64)?;
        target.memory.lend();
        self.owned.device.download(
            self.owned.id,
            source.owned.id,
            source_offset,
            target.owned.id,
            target_offset,
            bytes,
        )?;
        target.transfer_enqueued(self)
    }

    /// Copies from ordinary memory to a buffer. The bytes have been read when the call returns.
    ///
    /// # Errors
    /// A range outside of the buffer; a buffer of another device.
    pub fn upload_bytes(&self, source: &[u8], target: &Buffer, offset: u64) -> Result<()> {
        self.same("upload_bytes", &target.owned)?;
        validate::range("upload_bytes", "the target", offset, source.len() as u64, target.bytes)?;
        self.owned.device.upload_bytes(self.owned.id, source, target.owned.id, offset)
    }

    /// Copies from a buffer to ordinary memory, when all work enqueued before is done.
    ///
    /// # Errors
    /// A range outside of the buffer; what went wrong in that work.
    pub fn download_bytes(&self, source: &Buffer, offset: u64, target: &mut [u8]) -> Result<()> {
        self.same("download_bytes", &source.owned)?;
        validate::range("download_bytes", "the source", offset, target.len() as u64, source.bytes)?;
        self.owned.device.download_bytes(self.owned.id, source.owned.id, offset, target)
    }

    /// Sets bytes of a buffer to zero.
    ///
    /// # Errors
    /// A range outside of the buffer.
    pub fn fill_zero(&self, buffer: &Buffer, offset: u64, bytes: u64) -> Result<()> {
        self.same("fill_zero", &buffer.owned)?;
        validate::range("fill_zero", "the buffer", offset, bytes, buffer.bytes)?;
        self.owned.device.fill_zero(self.owned.id, buffer.owned.id, offset, bytes)
    }

    /// Enqueues a transform of the first 2^log_n scalars of a buffer, in place.
    ///
    /// # Errors
    /// A domain that the field does not have; a buffer that is too small; a coset shift that is zero or not canonical.
    pub fn ntt(&self, plan: &NttPlan, buffer: &Buffer) -> Result<()> {
        self.same("ntt", &buffer.owned)?;
        validate::ntt(plan, buffer)?;
        self.owned.device.ntt(self.owned.id, plan, buffer.owned.id)
    }

    /// Enqueues the quotient polynomial: evaluations `a` and `b` become its coefficients in `a`; `b` is left undefined.
    /// See [`QuotientPlan`].
    ///
    /// # Errors
    /// A domain that the field does not have twice over; buffers that are too small or the same.
    pub fn quotient(&self, plan: &QuotientPlan, a: &Buffer, b: &Buffer) -> Result<()> {
        self.same("quotient", &a.owned)?;
        self.same("quotient", &b.owned)?;
        validate::quotient(plan, a, b)?;
        self.owned.device.quotient(self.owned.id, plan, a.owned.id, b.owned.id)
    }

    /// Copies a packed assignment to the device. The view has been read when the call returns.
    ///
    /// # Errors
    /// The view contradicts itself; out of memory.
    pub fn upload_assignment(&self, view: &AssignmentView<'_>) -> Result<DeviceAssignment> {
        validate::assignment(view)?;
        let ops = &self.owned.device;
        Ok(DeviceAssignment {
            owned: Arc::new(Owned::new(ops, ops.assignment_create(self.owned.id, view)?)),
            curve: view.curve,
            n_variables: view.n_variables,
        })
    }

    /// Enqueues matrix times assignment: row i to scalar i of `out`, zeros behind the last row up to `out_len` scalars.
    ///
    /// # Errors
    /// Numbers of variables that differ; an `out_len` below the number of rows or above the buffer's size.
    pub fn evaluate(&self, matrix: &Matrix, assignment: &DeviceAssignment, out: &Buffer, out_len: u64) -> Result<()> {
        self.same("evaluate", &matrix.owned)?;
        self.same("evaluate", &assignment.owned)?;
        self.same("evaluate", &out.owned)?;
        validate::evaluate(matrix, assignment, out, out_len)?;
        self.owned.device.evaluate(self.owned.id, matrix.owned.id, assignment.owned.id, out.owned.id, out_len)
    }

    /// Enqueues a multi-scalar multiplication: `Σ scalar[i] · base[i]`.
    ///
    /// # Errors
    /// A number of scalars with a base that is not the number of bases; curves that differ; ranges outside of their objects.
    pub fn msm(&self, bases: &Bases, scalars: &MsmScalars<'_>) -> Result<Pending> {
        self.same("msm", &bases.owned)?;
        let operands = match scalars {
            MsmScalars::Dense { buffer, first, len } => {
                self.same("msm", &buffer.owned)?;
                MsmOperands::Dense { buffer: buffer.owned.id, first: *first, len: *len }
            }
            MsmScalars::Assignment { assignment, variables, density } => {
                self.same("msm", &assignment.owned)?;
                if let Some(density) = density {
                    self.same("msm", &density.owned)?;
                }
                MsmOperands::Assignment {
                    assignment: assignment.owned.id,
                    first: variables.start,
                    len: variables.end.saturating_sub(variables.start),
                    density: density.map(|d| d.owned.id),
                }
            }
        };
        validate::msm(bases, scalars)?;
        let ops = &self.owned.device;
        Ok(Pending {
            owned: Owned::new(ops, ops.msm(self.owned.id, bases.owned.id, &operands)?),
            curve: bases.spec.curve,
            group: bases.spec.group,
        })
    }

    /// Enqueues multiples of one point: `base · scalar[i]` to point i of `out`, affine.
    ///
    /// # Errors
    /// Buffers that are too small or the same; a base whose size is not that of a point.
    pub fn fixed_base_mul(&self, plan: &FixedBasePlan, scalars: &Buffer, out: &Buffer) -> Result<()> {
        self.same("fixed_base_mul", &scalars.owned)?;
        self.same("fixed_base_mul", &out.owned)?;
        validate::fixed_base(plan, scalars, out)?;
        self.owned.device.fixed_base_mul(self.owned.id, plan, scalars.owned.id, out.owned.id)
    }

    /// The multiples of one point by scalars in ordinary memory, back in ordinary memory; bounded device memory
    /// whatever their number.
    ///
    /// # Errors
    /// Out of memory for one part; what went wrong on the device.
    pub fn fixed_base_mul_slice<G: AffineRepr>(&self, base: &G, scalars: &[G::Scalar], out: &mut [G]) -> Result<()> {
        validate::equal("fixed_base_mul", "the number of points", scalars.len() as u64, out.len() as u64)?;
        /// Scalars in flight: 2^20 of them and their points are at most 224 MiB on the device.
        const CHUNK: usize = 1 << 20;
        if scalars.is_empty() {
            return Ok(());
        }
        let device = self.device();
        let largest = scalars.len().min(CHUNK) as u64;
        let (device_scalars, device_points) =
            (device.alloc_for::<G::Scalar>(largest)?, device.alloc_for::<G>(largest)?);
        for (scalars, out) in scalars.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            let base = repr::as_bytes(std::slice::from_ref(base)).to_vec();
            let plan = FixedBasePlan { curve: G::CURVE, group: G::GROUP, base, count: scalars.len() as u64 };
            self.upload_bytes(repr::as_bytes(scalars), &device_scalars, 0)?;
            self.fixed_base_mul(&plan, &device_scalars, &device_points)?;
            self.download_bytes(&device_points, 0, repr::as_bytes_mut(out))?;
        }
        Ok(())
    }

    fn same<H: Copy + Into<crate::Handle>>(&self, operation: &str, object: &Owned<H>) -> Result<()> {
        validate::same_device(operation, &self.owned.device, &object.device)
    }
}
