//! The host's side: the table of a plugin as a [`Backend`], and its devices as [`DeviceOps`].

use std::{
    collections::HashMap,
    ffi::c_void,
    fmt,
    path::{Path, PathBuf},
    ptr::{self, NonNull},
    sync::{Arc, Mutex, PoisonError},
};

use cuzk_backend::{
    AssignmentId, AssignmentView, Backend, BackendError, BasesId, BasesSpec, BufferId, DensityId, DeviceInfo,
    DeviceOps, DeviceOptions, EventId, FixedBasePlan, Handle, HostId, HostMemory, MatrixId, MatrixView, MemoryUsage,
    MsmOperands, NttPlan, Operation, PendingId, QuotientPlan, Result, StreamId, Workspace,
};

use crate::{
    LoadError,
    abi::{self, AbiVersion},
    failure,
    plans::split,
    vtable::{Entry, Functions, Header, Vtable},
};

/// A backend in a shared library. The library stays loaded for the life of the process; see [`crate::Loader`].
pub struct PluginBackend {
    file: PathBuf,
    abi: AbiVersion,
    name: String,
    version: String,
    context: *const c_void,
    functions: Functions,
}

// SAFETY: all functions of a table may be called from any thread (rules of `Vtable`), and the context is only passed
// to them.
unsafe impl Send for PluginBackend {}
// SAFETY: as above.
unsafe impl Sync for PluginBackend {}

impl fmt::Debug for PluginBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, abi, name, version, .. } = self;
        write!(f, "PluginBackend({name} {version}, boundary {abi}, {})", file.display())
    }
}

impl PluginBackend {
    /// The file that it was loaded from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The version of the boundary that the plugin was built with.
    pub fn abi(&self) -> AbiVersion {
        self.abi
    }

    /// Asks an entry for its table and checks that.
    ///
    /// # Safety
    /// * The entry, and the functions of its table if that is one, keep the rules of [`Entry`] and [`Vtable`].
    /// * Their code is never unloaded.
    pub(crate) unsafe fn enter(file: &Path, entry: Entry) -> Result<Self, LoadError> {
        let file = file.to_owned();
        let mut table: *const Vtable = ptr::null();
        // SAFETY: both pointers are to live values, and the entry keeps its rules.
        if let Err(source) = unsafe { failure::call("load", |error| entry(&mut table, error)) } {
            return Err(LoadError::Entry { file, source });
        }
        if table.is_null() || !table.is_aligned() {
            return Err(LoadError::NoTable { file, address: table.addr() });
        }
        // SAFETY: every table begins with a header, whatever its version.
        let header = unsafe { table.cast::<Header>().read() };
        if header.magic != abi::MAGIC {
            return Err(LoadError::Magic { file, expected: abi::MAGIC, actual: header.magic });
        }
        if header.version.major != abi::VERSION.major {
            return Err(LoadError::Version { file, expected: abi::VERSION, actual: header.version });
        }
        let needed = size_of::<Vtable>() as u64;
        if header.size < needed {
            return Err(LoadError::TooSmall { file, needed, actual: header.size });
        }
        // SAFETY: it has this major version's layout and at least the size of what is read; nobody writes it.
        let table = unsafe { &*table };
        let functions = match Functions::of(table) {
            Ok(functions) => functions,
            Err(function) => return Err(LoadError::NullFunction { file, function }),
        };
        // SAFETY: the texts of a table are valid as long as it.
        let (name, version) = unsafe { (table.name.to_text(), table.version.to_text()) };
        Ok(Self { file, abi: header.version, name, version, context: table.context, functions })
    }
}

/// Collects what a plugin describes.
///
/// # Safety
/// `sink_context` is a `Vec<DeviceInfo>` that nobody else uses; the description is valid.
unsafe extern "C" fn collect(sink_context: *mut c_void, info: *const abi::DeviceInfo) {
    // SAFETY: the caller's promise. Nothing here panics: a lack of memory aborts, everywhere.
    unsafe { (*sink_context.cast::<Vec<DeviceInfo>>()).push((*info).decode()) }
}

impl Backend for PluginBackend {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let mut devices = Vec::<DeviceInfo>::new();
        let sink_context = ptr::from_mut(&mut devices).cast();
        // SAFETY: rules of `Vtable`; the context is that of `collect`, and lives until the call returns.
        unsafe {
            failure::call("devices", |error| (self.functions.devices)(self.context, collect, sink_context, error))?;
        }
        Ok(devices)
    }

    fn open(&self, index: u32, options: &DeviceOptions) -> Result<Arc<dyn DeviceOps>> {
        let options = abi::DeviceOptions::new(options);
        let mut device = ptr::null_mut();
        // SAFETY: rules of `Vtable`; the pointers are to live values.
        unsafe {
            failure::call("open", |error| (self.functions.open)(self.context, index, &options, &mut device, error))?;
        }
        let Some(device) = NonNull::new(device) else {
            return Err(broken_promise("open", "a null device"));
        };
        let opened = Opened { functions: self.functions, device };
        let mut infos = Vec::<DeviceInfo>::new();
        let sink_context = ptr::from_mut(&mut infos).cast();
        opened.call("info", |f, device, error| {
            // SAFETY: as in `devices`.
            unsafe { (f.info)(device, collect, sink_context, error) }
        })?;
        let info = infos.pop().ok_or_else(|| broken_promise("info", "no description of the device"))?;
        Ok(Arc::new(PluginDevice { opened: Arc::new(opened), info, pinned: Mutex::default() }))
    }
}

/// What to say of a plugin that reports success and delivers something else.
fn broken_promise(operation: &str, delivered: impl fmt::Display) -> BackendError {
    let message = format!("the plugin reported success and delivered {delivered}");
    BackendError::Driver { operation: operation.to_owned(), message }
}

/// A device of a plugin, closed when the last owner is gone.
struct Opened {
    functions: Functions,
    device: NonNull<c_void>,
}

// SAFETY: all functions of a table may be called from any thread (rules of `Vtable`), and the device is only passed
// to them.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

impl Opened {
    fn call(
        &self,
        operation: &str,
        call: impl FnOnce(&Functions, *mut c_void, *mut abi::ErrorRecord) -> abi::Status,
    ) -> Result<()> {
        // SAFETY: every caller in this module passes the record to a function of the plugin's table.
        unsafe { failure::call(operation, |error| call(&self.functions, self.device.as_ptr(), error)) }
    }

    fn release(&self, handle: Handle) {
        let (kind, id) = split(handle);
        let released = self.call("release", |f, device, error| {
            // SAFETY: rules of `Vtable`; the device is open.
            unsafe { (f.release)(device, kind as u32, id, error) }
        });
        if let Err(error) = released {
            tracing::error!(%error, ?handle, "an object of a plugin was not released");
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let closed = self.call("close", |f, device, error| {
            // SAFETY: the last call for this device, because its last owner is being dropped.
            unsafe { (f.close)(device, error) }
        });
        if let Err(error) = closed {
            tracing::error!(%error, "a device of a plugin was not closed");
        }
    }
}

/// Pinned memory of a plugin. It is released when neither the contract (see [`PluginDevice::pinned`]) nor the host's
/// view needs it.
struct Region {
    opened: Arc<Opened>,
    id: HostId,
    data: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its bytes as a `Box<[u8]>` does; `opened` is Send and Sync.
unsafe impl Send for Region {}
// SAFETY: as above; only `View` gives out references.
unsafe impl Sync for Region {}

impl Drop for Region {
    fn drop(&mut self) {
        self.opened.release(self.id.into());
    }
}

/// The host's view of pinned memory: there is one for each region.
struct View(Arc<Region>);

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes", self.0.id, self.0.len)
    }
}

impl HostMemory for View {
    fn id(&self) -> HostId {
        self.0.id
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the region is live and initialized, and its only view is borrowed; that no work on it is pending is
        // what `HostMemory` demands of its caller.
        unsafe { std::slice::from_raw_parts(self.0.data.as_ptr(), self.0.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.data.as_ptr(), self.0.len) }
    }
}

/// A device of a plugin.
struct PluginDevice {
    opened: Arc<Opened>,
    info: DeviceInfo,
    /// Pinned memory that has not been released. The view keeps the region too, so that its bytes do not vanish under
    /// a caller who releases first and reads then.
    pinned: Mutex<HashMap<HostId, Arc<Region>>>,
}

impl PluginDevice {
    /// # Safety
    /// The plugin has just given out this memory, and keeps the rules of [`abi::HostMemory`] if the checks here
    /// succeed.
    unsafe fn adopt(&self, memory: abi::HostMemory, wanted: u64) -> Result<View> {
        let id = HostId(memory.id);
        let (Some(data), true) = (NonNull::new(memory.data), memory.len == wanted) else {
            self.opened.release(id.into());
            let delivered = format_args!("{} bytes at {:?} for {wanted}", memory.len, memory.data).to_string();
            return Err(broken_promise("host_create", delivered));
        };
        let region = Arc::new(Region { opened: self.opened.clone(), id, data, len: memory.len as usize });
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).insert(id, region.clone());
        Ok(View(region))
    }
}

/// One call of the device's table; the record is passed as the last argument.
macro_rules! call {
    ($self:ident.$name:ident($($argument:expr),* $(,)?)) => {
        $self.opened.call(stringify!($name), |functions, device, error| {
            // SAFETY: rules of `Vtable`: the device is open, the pointers are to live values, and they are what the
            // function's parameters say.
            unsafe { (functions.$name)(device, $($argument,)* error) }
        })
    };
}

/// One call that stores a result.
macro_rules! call_for {
    ($self:ident.$name:ident($($argument:expr),* $(,)?)) => {{
        let mut result = 0;
        call!($self.$name($($argument,)* &mut result)).map(|()| result)
    }};
}

impl DeviceOps for PluginDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryUsage> {
        let mut usage = abi::MemoryUsage::default();
        call!(self.memory(&mut usage))?;
        Ok(usage.decode())
    }

    fn release(&self, handle: Handle) {
        match handle {
            Handle::Host(id) => drop(self.pinned.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)),
            handle => self.opened.release(handle),
        }
    }

    fn workspace(&self, operation: &Operation, room: u64) -> Result<Workspace> {
        let mut workspace = abi::Workspace::default();
        call!(self.workspace(&abi::Operation::new(operation), room, &mut workspace))?;
        Ok(workspace.decode())
    }

    fn buffer_create(&self, bytes: u64) -> Result<BufferId> {
        call_for!(self.buffer_create(bytes)).map(BufferId)
    }

    fn host_create(&self, bytes: u64) -> Result<Box<dyn HostMemory>> {
        let mut memory = abi::HostMemory { id: 0, data: ptr::null_mut(), len: 0 };
        call!(self.host_create(bytes, &mut memory))?;
        // SAFETY: the plugin has just filled it.
        Ok(Box::new(unsafe { self.adopt(memory, bytes) }?))
    }

    fn stream_create(&self) -> Result<StreamId> {
        call_for!(self.stream_create()).map(StreamId)
    }

    fn event_record(&self, stream: StreamId) -> Result<EventId> {
        call_for!(self.event_record(stream.0)).map(EventId)
    }

    fn stream_wait(&self, stream: StreamId, event: EventId) -> Result<()> {
        call!(self.stream_wait(stream.0, event.0))
    }

    fn event_query(&self, event: EventId) -> Result<bool> {
        call_for!(self.event_query(event.0)).map(|done| done != 0)
    }

    fn event_wait(&self, event: EventId) -> Result<()> {
        call!(self.event_wait(event.0))
    }

    fn event_elapsed(&self, from: EventId, to: EventId) -> Result<u64> {
        call_for!(self.event_elapsed(from.0, to.0))
    }

    fn upload(
        &self,
        stream: StreamId,
        source: HostId,
        source_offset: u64,
        target: BufferId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        call!(self.upload(stream.0, source.0, source_offset, target.0, target_offset, bytes))
    }

    fn download(
        &self,
        stream: StreamId,
        source: BufferId,
        source_offset: u64,
        target: HostId,
        target_offset: u64,
        bytes: u64,
    ) -> Result<()> {
        call!(self.download(stream.0, source.0, source_offset, target.0, target_offset, bytes))
    }

    fn upload_bytes(&self, stream: StreamId, source: &[u8], target: BufferId, offset: u64) -> Result<()> {
        call!(self.upload_bytes(stream.0, source.as_ptr(), source.len() as u64, target.0, offset))
    }

    fn download_bytes(&self, stream: StreamId, source: BufferId, offset: u64, target: &mut [u8]) -> Result<()> {
        call!(self.download_bytes(stream.0, source.0, offset, target.as_mut_ptr(), target.len() as u64))
    }

    fn fill_zero(&self, stream: StreamId, buffer: BufferId, offset: u64, bytes: u64) -> Result<()> {
        call!(self.fill_zero(stream.0, buffer.0, offset, bytes))
    }

    fn ntt(&self, stream: StreamId, plan: &NttPlan, buffer: BufferId) -> Result<()> {
        call!(self.ntt(stream.0, &abi::NttPlan::new(plan), buffer.0))
    }

    fn quotient(&self, stream: StreamId, plan: &QuotientPlan, a: BufferId, b: BufferId) -> Result<()> {
        call!(self.quotient(stream.0, &abi::QuotientPlan::new(plan), a.0, b.0))
    }

    fn matrix_create(&self, matrix: &MatrixView<'_>) -> Result<MatrixId> {
        call_for!(self.matrix_create(&abi::MatrixView::new(matrix))).map(MatrixId)
    }

    fn density_create(&self, bits: &[u64], len: u64) -> Result<DensityId> {
        // The number of words crosses the boundary only as the number of bits.
        if bits.len() as u64 != len.div_ceil(64) {
            return Err(BackendError::Precondition {
                operation: "density_create".to_owned(),
                what: "the number of words of the bitmap".to_owned(),
                expected: len.div_ceil(64).to_string(),
                actual: bits.len().to_string(),
            });
        }
        call_for!(self.density_create(bits.as_ptr(), len)).map(DensityId)
    }

    fn assignment_create(&self, stream: StreamId, assignment: &AssignmentView<'_>) -> Result<AssignmentId> {
        call_for!(self.assignment_create(stream.0, &abi::AssignmentView::new(assignment))).map(AssignmentId)
    }

    fn evaluate(
        &self,
        stream: StreamId,
        matrix: MatrixId,
        assignment: AssignmentId,
        out: BufferId,
        out_len: u64,
    ) -> Result<()> {
        call!(self.evaluate(stream.0, matrix.0, assignment.0, out.0, out_len))
    }

    fn bases_create(&self, spec: &BasesSpec) -> Result<BasesId> {
        call_for!(self.bases_create(&abi::BasesSpec::new(spec))).map(BasesId)
    }

    fn bases_write(&self, bases: BasesId, first: u64, points: &[u8]) -> Result<()> {
        call!(self.bases_write(bases.0, first, points.as_ptr(), points.len() as u64))
    }

    fn bases_finish(&self, bases: BasesId) -> Result<()> {
        call!(self.bases_finish(bases.0))
    }

    fn msm(&self, stream: StreamId, bases: BasesId, scalars: &MsmOperands) -> Result<PendingId> {
        call_for!(self.msm(stream.0, bases.0, &abi::MsmOperands::new(scalars))).map(PendingId)
    }

    fn pending_query(&self, pending: PendingId) -> Result<bool> {
        call_for!(self.pending_query(pending.0)).map(|done| done != 0)
    }

    fn pending_wait(&self, pending: PendingId, out: &mut [u8]) -> Result<()> {
        call!(self.pending_wait(pending.0, out.as_mut_ptr(), out.len() as u64))
    }

    fn fixed_base_mul(&self, stream: StreamId, plan: &FixedBasePlan, scalars: BufferId, out: BufferId) -> Result<()> {
        call!(self.fixed_base_mul(stream.0, &abi::FixedBasePlan::new(plan), scalars.0, out.0))
    }
}
