//! Objects on a device. Each owns its handle and frees it when dropped; pending work keeps what it needs.

use std::{fmt, sync::Arc, time::Duration};

use cuzk_curve::{AffineRepr, CurveId, GroupId, repr};

use crate::{
    DeviceOps, Result, Stream,
    ops::{AssignmentId, BasesId, BufferId, EventId, Handle, HostId, HostMemory, MatrixId, PendingId},
    plan::BasesSpec,
    validate,
};

/// A handle that is released when it is dropped.
pub(crate) struct Owned<H: Copy + Into<Handle>> {
    pub(crate) device: Arc<dyn DeviceOps>,
    pub(crate) id: H,
}

impl<H: Copy + Into<Handle>> Owned<H> {
    pub(crate) fn new(device: &Arc<dyn DeviceOps>, id: H) -> Self {
        Self { device: device.clone(), id }
    }
}

impl<H: Copy + Into<Handle>> Drop for Owned<H> {
    fn drop(&mut self) {
        self.device.release(self.id.into());
    }
}

impl<H: Copy + Into<Handle> + fmt::Debug> fmt::Debug for Owned<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.id, self.device.info().uuid)
    }
}

/// Bytes in device memory.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) owned: Owned<BufferId>,
    pub(crate) bytes: u64,
}

impl Buffer {
    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Bytes in pinned host memory, which a device reads and writes directly.
#[derive(Debug)]
pub struct HostBuffer {
    pub(crate) memory: Box<dyn HostMemory>,
    pub(crate) owned: Owned<HostId>,
    pub(crate) len: usize,
    /// The transfers enqueued since the host last used the bytes, on whatever streams.
    pub(crate) in_flight: Vec<Event>,
}

impl HostBuffer {
    /// Its size.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: there are no empty buffers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, once the transfers enqueued on them are done.
    ///
    /// # Errors
    /// What went wrong in the work that was waited for.
    pub fn read(&mut self) -> Result<&[u8]> {
        self.settle()?;
        Ok(self.memory.bytes())
    }

    /// The bytes to be overwritten, once the transfers enqueued on them are done.
    ///
    /// # Errors
    /// What went wrong in the work that was waited for.
    pub fn write(&mut self) -> Result<&mut [u8]> {
        self.settle()?;
        Ok(self.memory.bytes_mut())
    }

    fn settle(&mut self) -> Result<()> {
        // All of them, even if one fails: no transfer may be left running on bytes that the caller gets.
        self.in_flight.drain(..).map(|event| event.wait()).fold(Ok(()), Result::and)?;
        self.memory.reclaim();
        Ok(())
    }

    pub(crate) fn transfer_enqueued(&mut self, stream: &Stream) -> Result<()> {
        self.in_flight.push(stream.record()?);
        Ok(())
    }
}

/// A point in a stream's queue of work.
#[derive(Clone, Debug)]
pub struct Event(pub(crate) Arc<Owned<EventId>>);

impl Event {
    /// Waits until the work before it is done.
    ///
    /// # Errors
    /// What went wrong in that work.
    pub fn wait(&self) -> Result<()> {
        self.0.device.event_wait(self.0.id)
    }

    /// Whether the work before it is done.
    ///
    /// # Errors
    /// What went wrong in that work.
    pub fn is_done(&self) -> Result<bool> {
        self.0.device.event_query(self.0.id)
    }

    /// How long after another event of the device this one was reached, by the device's own clock: what the work between the two took, if
    /// they are marks in one stream. Zero if it was reached first. Waits for both.
    ///
    /// # Errors
    /// The other event is another device's; what went wrong in the work that was waited for.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration> {
        validate::same_device("event_elapsed", &self.0.device, &earlier.0.device)?;
        earlier.wait()?;
        self.wait()?;
        self.0.device.event_elapsed(earlier.0.id, self.0.id).map(Duration::from_nanos)
    }
}

/// A sparse matrix on a device.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub(crate) owned: Arc<Owned<MatrixId>>,
    pub(crate) curve: CurveId,
    pub(crate) n_rows: u64,
    pub(crate) n_columns: u64,
}

impl Matrix {
    /// Number of constraints.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Number of variables.
    pub fn n_columns(&self) -> u64 {
        self.n_columns
    }
}

/// A packed assignment on a device.
#[derive(Clone, Debug)]
pub struct DeviceAssignment {
    pub(crate) owned: Arc<Owned<AssignmentId>>,
    pub(crate) curve: CurveId,
    pub(crate) n_variables: u64,
}

impl DeviceAssignment {
    /// Number of variables.
    pub fn n_variables(&self) -> u64 {
        self.n_variables
    }
}

/// A list of points on a device.
#[derive(Clone, Debug)]
pub struct Bases {
    pub(crate) owned: Arc<Owned<BasesId>>,
    pub(crate) spec: BasesSpec,
}

impl Bases {
    /// What it holds.
    pub fn spec(&self) -> &BasesSpec {
        &self.spec
    }
}

/// The result of a multi-scalar multiplication, finished or not.
#[derive(Debug)]
pub struct Pending {
    pub(crate) owned: Owned<PendingId>,
    pub(crate) curve: CurveId,
    pub(crate) group: GroupId,
}

impl Pending {
    /// Whether the result can be had without waiting.
    ///
    /// # Errors
    /// What went wrong in the work.
    pub fn is_done(&self) -> Result<bool> {
        self.owned.device.pending_query(self.owned.id)
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What went wrong in the work; a point type that is not of this curve and group.
    pub fn wait<G: AffineRepr>(self) -> Result<G> {
        validate::equal("pending_wait", "the curve of the point type", self.curve, G::CURVE)?;
        validate::equal("pending_wait", "the group of the point type", self.group, G::GROUP)?;
        let mut point = [G::identity()];
        self.owned.device.pending_wait(self.owned.id, repr::as_bytes_mut(&mut point))?;
        Ok(point[0])
    }
}
