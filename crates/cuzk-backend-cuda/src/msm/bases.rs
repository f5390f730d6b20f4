//! Points on the device, with multiples of them if there is room, or in pinned memory.

use std::sync::Arc;

use cuzk_backend::{BasesSpec, Pool, Residency, Result, Workspace};

use super::layout::{affine_bytes, levels, table_points};
use crate::{
    device::Shared,
    driver::{Stream, launch},
    memory::{DeviceMemory, PAGE, PinnedMemory},
};

/// Points on the device or in pinned memory.
pub(crate) struct Bases {
    pub(crate) spec: BasesSpec,
    pub(super) points: Points,
}

pub(super) enum Points {
    /// One level after the other, the points themselves first.
    Resident(DeviceMemory),
    Streamed(PinnedMemory),
    None,
}

/// What a list of points takes.
///
/// # Errors
/// More points than can be numbered.
pub(crate) fn bases_workspace(spec: &BasesSpec) -> Result<Workspace> {
    let bytes = table_points(spec)? * affine_bytes(spec);
    Ok(match spec.residency {
        Residency::Device => Workspace::fixed(bytes, 0),
        Residency::Pinned => Workspace::fixed(0, bytes.next_multiple_of(PAGE)),
    })
}

impl Bases {
    pub(crate) fn new(device: &Shared, spec: &BasesSpec) -> Result<Self> {
        let bytes = spec.count.saturating_mul(affine_bytes(spec));
        // Out of memory before unsupported: that is what a caller can do something about.
        let pool = if spec.residency == Residency::Device { Pool::Device } else { Pool::Pinned };
        if bytes > device.usage(pool).capacity {
            return Err(device.out_of_memory(pool, bytes));
        }
        let Workspace { taken, .. } = bases_workspace(spec)?;
        let points = match spec.residency {
            _ if bytes == 0 => Points::None,
            Residency::Device => Points::Resident(device.alloc(taken)?),
            Residency::Pinned => Points::Streamed(device.pinned.alloc(bytes)?),
        };
        Ok(Self { spec: *spec, points })
    }

    /// Copies whole points to their place; done when this returns.
    pub(crate) fn write(&self, device: &Shared, first: u64, bytes: &[u8]) -> Result<()> {
        let offset = first * affine_bytes(&self.spec);
        match &self.points {
            Points::Resident(memory) => memory.fill(offset, bytes),
            Points::Streamed(memory) => {
                assert!(offset + bytes.len() as u64 <= memory.bytes() as u64, "{} bytes at {offset}", bytes.len());
                // SAFETY: within the range, which nothing reads before all points are written.
                unsafe {
                    memory.on(&device.copies).add(offset as usize).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
                };
                Ok(())
            }
            Points::None => Ok(()),
        }
    }

    /// Computes the multiples, level by level: each is 2^(c·sets) times the one before. Done when this returns.
    pub(crate) fn finish(&self, device: &Shared) -> Result<()> {
        let (Points::Resident(memory), Some(levels)) = (&self.points, levels(&self.spec)) else { return Ok(()) };
        let kernels = device.kernels(self.spec.curve)?;
        let stream: Arc<Stream> = Stream::new(&device.context)?;
        // The table has at most 2^31 points.
        let n = self.spec.count as u32;
        let level_bytes = self.spec.count * affine_bytes(&self.spec);
        for level in 1..u64::from(levels.levels) {
            let from = memory.on(&stream) + (level - 1) * level_bytes;
            let (kernel, blocks) = (kernels.group(self.spec.group).double_bases, n.div_ceil(8).div_ceil(128));
            // SAFETY: both levels lie in the memory that was sized for all of them; the kernel's signature.
            unsafe {
                launch!(&stream, kernel, (blocks, 1, 1), 128, 0; n, levels.c * levels.sets, from, from + level_bytes)?;
            }
        }
        stream.synchronize()
    }
}
