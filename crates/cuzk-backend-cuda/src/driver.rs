//! The driver API with owners: a context, streams, events, modules, launches.
//!
//! Every call first makes the context current, so that any thread may call. A failure that the driver keeps reporting
//! from then on (a fault in a kernel, a fallen card) marks the context as lost; from then on every call fails with the cause
//! that was seen first.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    ptr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use cudarc::driver::sys::{self, CUresult};
use cuzk_backend::{BackendError, Result};

/// The name of a driver error and what it means.
pub(crate) fn describe(code: CUresult) -> String {
    let text = |get: unsafe fn(CUresult, *mut *const std::ffi::c_char) -> CUresult| {
        let mut text = ptr::null();
        // SAFETY: the driver writes a pointer to a string that lives as long as the library, or leaves null.
        unsafe {
            (get(code, &mut text) == CUresult::CUDA_SUCCESS && !text.is_null())
                .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
        }
    };
    match (text(sys::cuGetErrorName), text(sys::cuGetErrorString)) {
        (Some(name), Some(meaning)) => format!("{name}: {meaning}"),
        _ => format!("driver error {}", code as u32),
    }
}

/// Whether an error means that the context is gone, so that the driver will answer every later call with it or with
/// another of these.
fn is_sticky(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
            | CUresult::CUDA_ERROR_INVALID_CONTEXT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}

/// Bytes of shared memory that a kernel gets without asking.
const DEFAULT_SHARED: u32 = 48 << 10;

/// The primary context of a device.
pub(crate) struct Context {
    raw: sys::CUcontext,
    device: sys::CUdevice,
    /// The device's UUID, for messages.
    name: String,
    /// Bytes of shared memory that a block may have.
    max_shared: u32,
    lost: OnceLock<String>,
    /// Bytes copied from the host.
    uploaded: AtomicU64,
}

// SAFETY: a context handle may be made current in any thread, and the driver locks what it shares.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of device number `ordinal`.
    pub(crate) fn open(ordinal: c_int, name: String) -> Result<Arc<Self>> {
        let (mut device, mut raw) = (0, ptr::null_mut());
        // SAFETY: both calls write one handle each; the library has been found and initialised by the caller.
        let code = unsafe {
            match sys::cuDeviceGet(&mut device, ordinal) {
                CUresult::CUDA_SUCCESS => sys::cuDevicePrimaryCtxRetain(&mut raw, device),
                code => code,
            }
        };
        if code != CUresult::CUDA_SUCCESS {
            return Err(BackendError::Driver { operation: "open".to_owned(), message: describe(code) });
        }
        let which = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let max_shared = attribute(device, which).unwrap_or(DEFAULT_SHARED);
        Ok(Arc::new(Self { raw, device, name, max_shared, lost: OnceLock::new(), uploaded: AtomicU64::new(0) }))
    }

    /// So many bytes of shared memory, or what a block may have if that is less.
    pub(crate) fn shared(&self, wanted: u32) -> u32 {
        wanted.min(self.max_shared)
    }

    fn lost(&self, cause: &str) -> BackendError {
        BackendError::DeviceLost { device: self.name.clone(), cause: cause.to_owned() }
    }

    /// # Errors
    /// The device is lost, with the cause that was seen first.
    pub(crate) fn check_live(&self) -> Result<()> {
        self.lost.get().map_or(Ok(()), |cause| Err(self.lost(cause)))
    }

    /// Makes the context current in this thread, unless the device is lost.
    pub(crate) fn enter(&self) -> Result<()> {
        self.check_live()?;
        // SAFETY: the context is retained until drop.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.raw) })
    }

    /// Turns a result of the driver into one of the contract; remembers a loss.
    pub(crate) fn check(&self, operation: &str, code: CUresult) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        let message = describe(code);
        if is_sticky(code) {
            let cause = format!("{operation}: {message}");
            if self.lost.set(cause.clone()).is_ok() {
                tracing::error!(device = %self.name, %cause, "device lost");
            }
            return Err(self.lost(self.lost.get().map_or(cause.as_str(), String::as_str)));
        }
        Err(BackendError::Driver { operation: operation.to_owned(), message })
    }

    /// Bytes copied from the host to the device so far.
    pub(crate) fn uploaded(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    /// Whether the driver knows the memory of these bytes, pinned by whomever, so that a copy from it may return before it has been read.
    pub(crate) fn knows(&self, bytes: &[u8]) -> Result<bool> {
        self.enter()?;
        for byte in [bytes.first(), bytes.last()].into_iter().flatten() {
            let mut kind = 0u32;
            let mut which = [sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE];
            let mut data: [*mut c_void; 1] = [ptr::from_mut(&mut kind).cast()];
            let address = ptr::from_ref(byte).addr() as u64;
            // The call for several attributes answers nothing for memory that it does not know, where the one for a
            // single attribute fails, which debuggers report.
            // SAFETY: one attribute, a number, is written to where the one pointer points; any address may be asked
            // about.
            let code = unsafe { sys::cuPointerGetAttributes(1, which.as_mut_ptr(), data.as_mut_ptr(), address) };
            self.check("cuPointerGetAttributes", code)?;
            if kind != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Free and total bytes as the driver sees them.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: two numbers are written.
        self.check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained in `open`, and everything made in it holds an `Arc` of it, so is gone.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// An attribute of a device that need not be open.
pub(crate) fn attribute(device: sys::CUdevice, which: sys::CUdevice_attribute) -> Option<u32> {
    let mut value = 0;
    // SAFETY: one number is written.
    let code = unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) };
    (code == CUresult::CUDA_SUCCESS).then(|| u32::try_from(value).ok()).flatten()
}

/// A queue of work.
pub(crate) struct Stream {
    pub(crate) context: Arc<Context>,
    raw: sys::CUstream,
    abandoned: AtomicBool,
}

// SAFETY: the driver accepts a stream from any thread and locks it.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Arc<Self>> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: one handle is written.
        context.check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut raw, flags) })?;
        Ok(Arc::new(Self { context: context.clone(), raw, abandoned: AtomicBool::new(false) }))
    }

    /// Nothing more will be enqueued.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    pub(crate) fn raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Whether nothing is enqueued any more. A lost device counts as idle: nothing will run on it.
    pub(crate) fn is_idle(&self) -> bool {
        if self.context.enter().is_err() {
            return true;
        }
        // SAFETY: a live stream.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => false,
            // A fault is remembered, and told by the next call that can fail.
            code => self.context.check("cuStreamQuery", code).map_or(true, |()| true),
        }
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: a live stream.
        self.context.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }

    /// Marks the work enqueued so far.
    pub(crate) fn record(&self) -> Result<Event> {
        self.mark(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    /// As `record`; the device notes the time, too.
    pub(crate) fn record_timed(&self) -> Result<Event> {
        self.mark(sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    fn mark(&self, flags: sys::CUevent_flags) -> Result<Event> {
        let event = Event::new(&self.context, flags)?;
        // SAFETY: both are live and of one context.
        self.context.check("cuEventRecord", unsafe { sys::cuEventRecord(event.raw, self.raw) })?;
        Ok(event)
    }

    pub(crate) fn wait(&self, event: &Event) -> Result<()> {
        self.context.enter()?;
        // SAFETY: both are live and of one context.
        self.context.check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.raw, event.raw, 0) })
    }

    /// Copies bytes to the device. The source has been read when this returns, unless it is pinned.
    ///
    /// # Safety
    /// * `target .. target + source.len()` is device memory of this context.
    /// * A pinned source is not written until the copy is done.
    pub(crate) unsafe fn upload(&self, target: u64, source: &[u8]) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise, and a slice.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(target, source.as_ptr().cast(), source.len(), self.raw) };
        self.context.check("cuMemcpyHtoDAsync", code)?;
        self.context.uploaded.fetch_add(source.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Copies bytes from the device.
    ///
    /// # Safety
    /// * `source .. source + bytes` is device memory of this context.
    /// * `target .. target + bytes` is host memory that stays, untouched, until the copy is done.
    pub(crate) unsafe fn download(&self, target: *mut u8, source: u64, bytes: usize) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(target.cast(), source, bytes, self.raw) };
        self.context.check("cuMemcpyDtoHAsync", code)
    }

    /// Sets bytes to zero.
    ///
    /// # Safety
    /// * `at .. at + bytes` is device memory of this context.
    pub(crate) unsafe fn zero(&self, at: u64, bytes: usize) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise.
        self.context.check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(at, 0, bytes, self.raw) })
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// * `arguments` points to values of the types of the kernel's parameters, in their order.
    /// * The device memory that these point to is of this context, and large enough for what the kernel does.
    pub(crate) unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: (u32, u32, u32),
        block: u32,
        shared: u32,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the caller's promise; the kernel belongs to a module that is loaded for the life of the context.
        let code = unsafe {
            sys::cuLaunchKernel(
                kernel.0,
                grid.0,
                grid.1,
                grid.2,
                block,
                1,
                1,
                shared,
                self.raw,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.context.check("cuLaunchKernel", code)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the last owner; the driver keeps the stream until its work is done.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A point in a stream.
pub(crate) struct Event {
    context: Arc<Context>,
    raw: sys::CUevent,
}

// SAFETY: the driver accepts an event from any thread and locks it.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    fn new(context: &Arc<Context>, flags: sys::CUevent_flags) -> Result<Self> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: one handle is written.
        context.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut raw, flags as u32) })?;
        Ok(Self { context: context.clone(), raw })
    }

    pub(crate) fn wait(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: a live event.
        self.context.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    pub(crate) fn is_done(&self) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: a live event.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.context.check("cuEventQuery", code).map(|()| true),
        }
    }
}

impl Event {
    /// Nanoseconds from another timed event to this one, both done; 0 if this one came first.
    pub(crate) fn nanoseconds_since(&self, earlier: &Self) -> Result<u64> {
        self.context.enter()?;
        let mut milliseconds = 0.0;
        // SAFETY: two live events of one context; one number is written.
        let code = unsafe { sys::cuEventElapsedTime(&mut milliseconds, earlier.raw, self.raw) };
        self.context.check("cuEventElapsedTime", code)?;
        // Below zero becomes 0.
        Ok((f64::from(milliseconds) * 1e6).round() as u64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the last owner.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// A kernel of a module that stays loaded as long as its context.
#[derive(Clone, Copy)]
pub(crate) struct Kernel(sys::CUfunction);

// SAFETY: a kernel handle may be launched from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// Loaded code. It is not unloaded: the context takes it along.
pub(crate) struct Module {
    context: Arc<Context>,
    raw: sys::CUmodule,
}

// SAFETY: a module handle may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a fat binary. What has no code for this device is `Unsupported`.
    pub(crate) fn load(context: &Arc<Context>, unit: &str, image: &'static [u8]) -> Result<Self> {
        context.enter()?;
        let mut raw = ptr::null_mut();
        // SAFETY: a whole fat binary, whose header has its length; one handle is written.
        match unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) } {
            code @ (CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | CUresult::CUDA_ERROR_INVALID_PTX) => Err(BackendError::Unsupported {
                operation: format!("loading the kernels of {unit}"),
                reason: format!("none of them runs on this device with this driver ({})", describe(code)),
            }),
            code => context.check("cuModuleLoadData", code).map(|()| Self { context: context.clone(), raw }),
        }
    }

    /// A kernel by name, allowed so many bytes of dynamic shared memory, or what the device lets a block have.
    pub(crate) fn kernel(&self, name: &str, shared: u32) -> Result<Kernel> {
        self.context.enter()?;
        let mut raw = ptr::null_mut();
        let symbol = CString::new(name).map_err(|_| BackendError::Driver {
            operation: name.to_owned(),
            message: "a name with a zero byte".to_owned(),
        })?;
        // SAFETY: a live module and a string that ends with zero; one handle is written.
        self.context.check(name, unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, symbol.as_ptr()) })?;
        let shared = self.context.shared(shared);
        if shared > DEFAULT_SHARED {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a live function.
            self.context.check(name, unsafe { sys::cuFuncSetAttribute(raw, which, shared as c_int) })?;
        }
        Ok(Kernel(raw))
    }
}

/// Launches a kernel with the arguments given, each a plain value of the size that the kernel expects.
macro_rules! launch {
    ($stream:expr, $kernel:expr, $grid:expr, $block:expr, $shared:expr; $($argument:expr),* $(,)?) => {{
        let mut values = ($($argument,)*);
        let mut pointers = $crate::driver::Arguments::pointers(&mut values);
        $stream.launch($kernel, $grid, $block, $shared, &mut pointers)
    }};
}
pub(crate) use launch;

/// A tuple of kernel arguments.
pub(crate) trait Arguments {
    /// The address of each.
    fn pointers(&mut self) -> Vec<*mut c_void>;
}

macro_rules! arguments {
    ($($name:ident)+) => {
        impl<$($name: Copy),+> Arguments for ($($name,)+) {
            #[allow(non_snake_case, reason = "the type parameters name the variables, too")]
            fn pointers(&mut self) -> Vec<*mut c_void> {
                let ($($name,)+) = self;
                vec![$(ptr::from_mut($name).cast()),+]
            }
        }
    };
}
arguments!(A);
arguments!(A B);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H);
arguments!(A B C D E F G H I);
arguments!(A B C D E F G H I J);
arguments!(A B C D E F G H I J K);
arguments!(A B C D E F G H I J K L);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_lose_the_device_and_refusals_do_not() {
        for code in [
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            CUresult::CUDA_ERROR_ASSERT,
            CUresult::CUDA_ERROR_LAUNCH_FAILED,
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
            CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
            CUresult::CUDA_ERROR_UNKNOWN,
        ] {
            assert!(is_sticky(code), "{code:?}");
        }
        for code in [
            CUresult::CUDA_SUCCESS,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CUresult::CUDA_ERROR_INVALID_VALUE,
            CUresult::CUDA_ERROR_NOT_READY,
            CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
        ] {
            assert!(!is_sticky(code), "{code:?}");
        }
    }
}
