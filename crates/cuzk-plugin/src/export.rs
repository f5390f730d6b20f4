//! The plugin's side: a [`Backend`] as a table of C functions.

use std::{
    ffi::c_void,
    sync::{Arc, OnceLock},
};

use cuzk_backend::{
    AssignmentId, Backend, BasesId, BufferId, DeviceInfo, DeviceOps, EventId, HostId, MatrixId, PendingId, StreamId,
};

use crate::{
    abi::{self, DeviceInfoSink, ErrorRecord, Slice, Status},
    failure::guard,
    plans::{bytes_at, join, place, pointee, slice},
    vtable::{Header, Vtable},
};

/// Exports a backend from a shared library: `export_backend!(MyBackend::new());` once, at the top of its crate.
///
/// The expression is evaluated when the host first asks, and its value lives as long as the process. If it panics,
/// the host gets an error.
///
/// The macro defines the symbol `cuzk_backend_plugin`, with C linkage, in whatever the crate is linked into. A
/// program that uses two crates with it has the symbol twice and does not link, so a crate that is a library for
/// others must not use it: put it in a package of its own, with `crate-type = ["cdylib"]` only, that contains nothing
/// else.
///
/// ```toml
/// [package]
/// name = "cuzk-backend-my-plugin"
///
/// [lib]
/// name = "cuzk_backend_my"     # the file is libcuzk_backend_my.so, and the backend's name is "my"
/// crate-type = ["cdylib"]
/// doc = false
/// test = false
///
/// [dependencies]
/// backend = { package = "cuzk-backend-my", path = "../cuzk-backend-my" }
/// cuzk-plugin = { path = "../cuzk-plugin" }
/// ```
#[macro_export]
macro_rules! export_backend {
    ($backend:expr $(,)?) => {
        #[cfg(panic = "abort")]
        ::core::compile_error!("a plugin must unwind: with panic = \"abort\" a panic of the plugin ends its host");

        /// The entry of the plugin.
        ///
        /// # Safety
        /// * `table` and `error` may be written.
        // SAFETY: the name is this boundary's; the macro's documentation says that it is to be defined once.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn cuzk_backend_plugin(
            table: *mut *const $crate::vtable::Vtable,
            error: *mut $crate::abi::ErrorRecord,
        ) -> $crate::abi::Status {
            static PLUGIN: $crate::export::Exported = $crate::export::Exported::new();
            // SAFETY: the caller's promise.
            unsafe { PLUGIN.enter(|| $backend, table, error) }
        }

        // That the signature is the one which hosts look for.
        const _: $crate::vtable::Entry = cuzk_backend_plugin;
    };
}

/// What an exported backend keeps for the life of the process. For [`export_backend!`].
pub struct Exported {
    context: OnceLock<Context>,
    table: OnceLock<Vtable>,
}

impl Exported {
    /// Nothing yet.
    #[expect(clippy::new_without_default, reason = "made in a static only, where Default cannot be called")]
    pub const fn new() -> Self {
        Self { context: OnceLock::new(), table: OnceLock::new() }
    }

    /// The body of the entry.
    ///
    /// # Safety
    /// * `table` is null or may be written.
    /// * `error` is null or may be written.
    pub unsafe fn enter<B: Backend + 'static>(
        &'static self,
        backend: impl FnOnce() -> B,
        table: *mut *const Vtable,
        error: *mut ErrorRecord,
    ) -> Status {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            guard("load", error, || {
                let place = place("load", table)?;
                let context = self.context.get_or_init(|| Context(Box::new(backend())));
                place.write(self.table.get_or_init(|| describe(context)));
                Ok(())
            })
        }
    }
}

/// What the table's context points to.
struct Context(Box<dyn Backend>);

/// A device as `open` gives it out.
struct Opened(Arc<dyn DeviceOps>);

fn describe(context: &'static Context) -> Vtable {
    Vtable {
        header: Header { magic: abi::MAGIC, version: abi::VERSION, size: size_of::<Vtable>() as u64 },
        name: Slice::new(context.0.name().as_bytes()),
        version: Slice::new(context.0.version().as_bytes()),
        context: std::ptr::from_ref(context).cast(),
        devices: Some(devices),
        open: Some(open),
        close: Some(close),
        info: Some(info),
        memory: Some(memory),
        release: Some(release),
        workspace: Some(workspace),
        buffer_create: Some(buffer_create),
        host_create: Some(host_create),
        stream_create: Some(stream_create),
        event_record: Some(event_record),
        stream_wait: Some(stream_wait),
        event_query: Some(event_query),
        event_wait: Some(event_wait),
        event_elapsed: Some(event_elapsed),
        upload: Some(upload),
        download: Some(download),
        upload_bytes: Some(upload_bytes),
        download_bytes: Some(download_bytes),
        fill_zero: Some(fill_zero),
        ntt: Some(ntt),
        quotient: Some(quotient),
        matrix_create: Some(matrix_create),
        density_create: Some(density_create),
        assignment_create: Some(assignment_create),
        evaluate: Some(evaluate),
        bases_create: Some(bases_create),
        bases_write: Some(bases_write),
        bases_finish: Some(bases_finish),
        msm: Some(msm),
        pending_query: Some(pending_query),
        pending_wait: Some(pending_wait),
        fixed_base_mul: Some(fixed_base_mul),
    }
}

/// Hands one description to the host's sink.
///
/// # Safety
/// The sink and its context belong together.
unsafe fn describe_to(sink: DeviceInfoSink, sink_context: *mut c_void, info: &DeviceInfo) {
    let info = abi::DeviceInfo::new(info);
    // SAFETY: the caller's promise; the description outlives the call.
    unsafe { sink(sink_context, &info) }
}

/// Defines functions of the table. Their bodies stand in an unsafe block: what they may rely on are the rules of
/// [`Vtable`], which the host promises to keep.
macro_rules! functions {
    (context; $($(#[$attribute:meta])* fn $name:ident($backend:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {
        $(
            $(#[$attribute])*
            /// # Safety
            /// The rules of [`Vtable`].
            unsafe extern "C" fn $name(context: *const c_void $(, $argument: $type)*, error: *mut ErrorRecord) -> Status {
                // SAFETY: the context is what `describe` put into the table; the rest is the host's promise.
                unsafe {
                    guard(stringify!($name), error, || {
                        let $backend = &*pointee(stringify!($name), context.cast::<Context>())?.0;
                        $body
                    })
                }
            }
        )*
    };
    (device; $(fn $name:ident($ops:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block)*) => {
        $(
            /// # Safety
            /// The rules of [`Vtable`].
            unsafe extern "C" fn $name(device: *mut c_void $(, $argument: $type)*, error: *mut ErrorRecord) -> Status {
                // SAFETY: the device is what `open` made, not closed yet; the rest is the host's promise.
                unsafe {
                    guard(stringify!($name), error, || {
                        let $ops = &*pointee(stringify!($name), device.cast_const().cast::<Opened>())?.0;
                        $body
                    })
                }
            }
        )*
    };
}

functions! { context;
    fn devices(backend, sink: DeviceInfoSink, sink_context: *mut c_void) {
        for info in backend.devices()? {
            describe_to(sink, sink_context, &info);
        }
        Ok(())
    }

    fn open(backend, index: u32, options: *const abi::DeviceOptions, device: *mut *mut c_void) {
        let place = place("open", device)?;
        let ops = backend.open(index, &pointee("open", options)?.decode())?;
        place.write(Box::into_raw(Box::new(Opened(ops))).cast());
        Ok(())
    }
}

/// # Safety
/// The rules of [`Vtable`].
unsafe extern "C" fn close(device: *mut c_void, error: *mut ErrorRecord) -> Status {
    // SAFETY: the device is what `open` made by `Box::into_raw`, and this is its last call.
    unsafe {
        guard("close", error, || {
            drop(Box::from_raw(device.cast::<Opened>()));
            Ok(())
        })
    }
}

functions! { device;
    fn info(ops, sink: DeviceInfoSink, sink_context: *mut c_void) {
        describe_to(sink, sink_context, ops.info());
        Ok(())
    }

    fn memory(ops, usage: *mut abi::MemoryUsage) {
        place("memory", usage)?.write(abi::MemoryUsage::new(&ops.memory()?));
        Ok(())
    }

    fn release(ops, kind: u32, id: u64) {
        ops.release(join(kind, id)?);
        Ok(())
    }

    fn workspace(ops, operation: *const abi::Operation, room: u64, workspace: *mut abi::Workspace) {
        let place = place("workspace", workspace)?;
        let operation = pointee("workspace", operation)?.decode()?;
        place.write(abi::Workspace::new(&ops.workspace(&operation, room)?));
        Ok(())
    }

    fn buffer_create(ops, bytes: u64, id: *mut u64) {
        let place = place("buffer_create", id)?;
        place.write(ops.buffer_create(bytes)?.0);
        Ok(())
    }

    fn host_create(ops, bytes: u64, memory: *mut abi::HostMemory) {
        let place = place("host_create", memory)?;
        let mut memory = ops.host_create(bytes)?;
        let id = memory.id().0;
        let bytes = memory.bytes_mut();
        place.write(abi::HostMemory { id, data: bytes.as_mut_ptr(), len: bytes.len() as u64 });
        // The host goes by the pointer and keeps out while work is pending; to the device they stay lent until they are
        // released, and they stay in place.
        memory.lend();
        Ok(())
    }

    fn stream_create(ops, id: *mut u64) {
        let place = place("stream_create", id)?;
        place.write(ops.stream_create()?.0);
        Ok(())
    }

    fn event_record(ops, stream: u64, id: *mut u64) {
        let place = place("event_record", id)?;
        place.write(ops.event_record(StreamId(stream))?.0);
        Ok(())
    }

    fn stream_wait(ops, stream: u64, event: u64) {
        ops.stream_wait(StreamId(stream), EventId(event))
    }

    fn event_query(ops, event: u64, done: *mut u32) {
        place("event_query", done)?.write(ops.event_query(EventId(event))?.into());
        Ok(())
    }

    fn event_wait(ops, event: u64) {
        ops.event_wait(EventId(event))
    }

    fn event_elapsed(ops, from: u64, to: u64, nanoseconds: *mut u64) {
        place("event_elapsed", nanoseconds)?.write(ops.event_elapsed(EventId(from), EventId(to))?);
        Ok(())
    }

    fn upload(
        ops,
        stream: u64,
        source: u64,
        source_offset: u64,
        target: u64,
        target_offset: u64,
        bytes: u64,
    ) {
        ops.upload(StreamId(stream), HostId(source), source_offset, BufferId(target), target_offset, bytes)
    }

    fn download(
        ops,
        stream: u64,
        source: u64,
        source_offset: u64,
        target: u64,
        target_offset: u64,
        bytes: u64,
    ) {
        ops.download(StreamId(stream), BufferId(source), source_offset, HostId(target), target_offset, bytes)
    }

    fn upload_bytes(ops, stream: u64, source: *const u8, bytes: u64, target: u64, offset: u64) {
        let source = slice(source, bytes).elements("upload_bytes", "the source")?;
        ops.upload_bytes(StreamId(stream), source, BufferId(target), offset)
    }

    fn download_bytes(ops, stream: u64, source: u64, offset: u64, target: *mut u8, bytes: u64) {
        let target = bytes_at("download_bytes", target, bytes)?;
        ops.download_bytes(StreamId(stream), BufferId(source), offset, target)
    }

    fn fill_zero(ops, stream: u64, buffer: u64, offset: u64, bytes: u64) {
        ops.fill_zero(StreamId(stream), BufferId(buffer), offset, bytes)
    }

    fn ntt(ops, stream: u64, plan: *const abi::NttPlan, buffer: u64) {
        ops.ntt(StreamId(stream), &pointee("ntt", plan)?.decode()?, BufferId(buffer))
    }

    fn quotient(ops, stream: u64, plan: *const abi::QuotientPlan, a: u64, b: u64) {
        ops.quotient(StreamId(stream), &pointee("quotient", plan)?.decode()?, BufferId(a), BufferId(b))
    }

    fn matrix_create(ops, matrix: *const abi::MatrixView, id: *mut u64) {
        let place = place("matrix_create", id)?;
        place.write(ops.matrix_create(&pointee("matrix_create", matrix)?.decode()?)?.0);
        Ok(())
    }

    fn density_create(ops, bits: *const u64, len: u64, id: *mut u64) {
        let place = place("density_create", id)?;
        let bits = slice(bits, len.div_ceil(64)).elements("density_create", "the bitmap")?;
        place.write(ops.density_create(bits, len)?.0);
        Ok(())
    }

    fn assignment_create(ops, stream: u64, assignment: *const abi::AssignmentView, id: *mut u64) {
        let place = place("assignment_create", id)?;
        let view = pointee("assignment_create", assignment)?.decode()?;
        place.write(ops.assignment_create(StreamId(stream), &view)?.0);
        Ok(())
    }

    fn evaluate(ops, stream: u64, matrix: u64, assignment: u64, out: u64, out_len: u64) {
        ops.evaluate(StreamId(stream), MatrixId(matrix), AssignmentId(assignment), BufferId(out), out_len)
    }

    fn bases_create(ops, spec: *const abi::BasesSpec, id: *mut u64) {
        let place = place("bases_create", id)?;
        place.write(ops.bases_create(&pointee("bases_create", spec)?.decode()?)?.0);
        Ok(())
    }

    fn bases_write(ops, bases: u64, first: u64, points: *const u8, bytes: u64) {
        ops.bases_write(BasesId(bases), first, slice(points, bytes).elements("bases_write", "the points")?)
    }

    fn bases_finish(ops, bases: u64) {
        ops.bases_finish(BasesId(bases))
    }

    fn msm(ops, stream: u64, bases: u64, scalars: *const abi::MsmOperands, id: *mut u64) {
        let place = place("msm", id)?;
        place.write(ops.msm(StreamId(stream), BasesId(bases), &pointee("msm", scalars)?.decode()?)?.0);
        Ok(())
    }

    fn pending_query(ops, pending: u64, done: *mut u32) {
        place("pending_query", done)?.write(ops.pending_query(PendingId(pending))?.into());
        Ok(())
    }

    fn pending_wait(ops, pending: u64, out: *mut u8, bytes: u64) {
        ops.pending_wait(PendingId(pending), bytes_at("pending_wait", out, bytes)?)
    }

    fn fixed_base_mul(ops, stream: u64, plan: *const abi::FixedBasePlan, scalars: u64, out: u64) {
        let plan = pointee("fixed_base_mul", plan)?.decode()?;
        ops.fixed_base_mul(StreamId(stream), &plan, BufferId(scalars), BufferId(out))
    }
}
