//! What a device is, how it is opened, and how full its memory is.

/// A device as its backend describes it before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Position among the backend's devices, from 0.
    pub index: u32,
    /// A name that stays with the hardware (`GPU-…`), or one made of backend and index where there is none.
    pub uuid: String,
    /// What the vendor calls it.
    pub name: String,
    /// Driver and version.
    pub driver: String,
    /// Cores, multiprocessors, compute units: what the vendor counts.
    pub compute_units: u32,
    /// Bytes of memory in all.
    pub memory_bytes: u64,
    /// What the chosen code path relies on ("avx512ifma", "sm_90", …), comma-separated.
    pub features: String,
    /// Why the device cannot be used; empty if it can.
    pub unusable: String,
}

/// How a device is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceOptions {
    /// Cap of the device pool in bytes; 0: what is free, less a margin that the backend documents.
    pub device_memory_limit: u64,
    /// Bytes of pinned host memory, allocated when the device is opened and never grown; 0: the backend's default.
    /// Bases that are streamed lie there, too, so a residency plan says how many are needed.
    pub pinned_bytes: u64,
    /// Threads that the device may use on the host; 0: all that there are.
    pub threads: u32,
}

/// How full one pool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes that live objects hold.
    pub in_use: u64,
    /// Bytes that the pool holds from the system, in use or kept for the next allocation.
    pub reserved: u64,
    /// Bytes that the pool may hold.
    pub capacity: u64,
    /// The most bytes that have been taken at a time since the device was opened: by live objects, workspaces, and
    /// tables kept for later.
    pub peak: u64,
}

/// How full a device's memory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// The device's own memory.
    pub device: PoolUsage,
    /// Host memory that the device reads and writes directly.
    pub pinned: PoolUsage,
    /// Free bytes as the driver sees them, other processes counted in.
    pub driver_free: u64,
    /// Bytes copied from the host to the device's memory since it was opened.
    pub uploaded: u64,
}
