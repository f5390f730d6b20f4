//! sppark on device 0, as `sppark.cu` wraps it: memory, multi-scalar multiplication, transforms.
//!
//! Elements lie in memory as `cuzk_curve::repr` says, which is what sppark computes with, too.

use std::{
    ffi::c_void,
    marker::PhantomData,
    ptr::{self, NonNull},
};

use blstrs::{G1Affine, G2Affine, Scalar};
use cuzk_curve::{AffineRepr, MontgomeryRepr, repr};

/// sppark and its version.
pub(crate) const NAME: &str = concat!("sppark ", env!("SPPARK_VERSION"));

type MsmCreate = unsafe extern "C" fn(usize, *mut *mut c_void) -> sppark::Error;
type MsmFree = unsafe extern "C" fn(*mut c_void);
type MsmRun = unsafe extern "C" fn(*mut c_void, *const c_void, *const c_void, usize, *mut c_void) -> sppark::Error;

unsafe extern "C" {
    fn peer_open() -> sppark::Error;
    fn peer_upload(host: *const c_void, bytes: usize, out: *mut *mut c_void) -> sppark::Error;
    fn peer_download(host: *mut c_void, memory: *const c_void, bytes: usize) -> sppark::Error;
    fn peer_free(memory: *mut c_void);
    fn peer_msm_create_g1(n: usize, out: *mut *mut c_void) -> sppark::Error;
    fn peer_msm_create_g2(n: usize, out: *mut *mut c_void) -> sppark::Error;
    fn peer_msm_free_g1(msm: *mut c_void);
    fn peer_msm_free_g2(msm: *mut c_void);
    fn peer_msm_g1(
        msm: *mut c_void,
        points: *const c_void,
        scalars: *const c_void,
        n: usize,
        out: *mut c_void,
    ) -> sppark::Error;
    fn peer_msm_g2(
        msm: *mut c_void,
        points: *const c_void,
        scalars: *const c_void,
        n: usize,
        out: *mut c_void,
    ) -> sppark::Error;
    fn peer_ntt(data: *mut c_void, log_n: u32) -> sppark::Error;
    fn peer_quotient(a: *mut c_void, b: *mut c_void, c: *mut c_void, z: *const c_void, log_n: u32) -> sppark::Error;
    fn peer_synchronize() -> sppark::Error;
}

/// What sppark or the CUDA runtime below it refused.
#[derive(Debug, thiserror::Error)]
#[error("sppark: {message} (code {code})")]
pub(crate) struct PeerError {
    code: i32,
    message: String,
}

fn check(error: sppark::Error) -> Result<(), PeerError> {
    match error.code {
        0 => Ok(()),
        code => Err(PeerError { code, message: String::from(error) }),
    }
}

/// sppark's device, ready for use.
pub(crate) struct Peer(());

impl Peer {
    /// Starts sppark.
    pub(crate) fn open() -> Result<Self, PeerError> {
        // SAFETY: takes nothing, and may be called any number of times.
        check(unsafe { peer_open() })?;
        Ok(Self(()))
    }

    /// Copies values to new memory of the device.
    pub(crate) fn upload<T: MontgomeryRepr>(&self, values: &[T]) -> Result<Array<T>, PeerError> {
        let mut memory = ptr::null_mut();
        // SAFETY: the bytes of a slice, and a place for one address.
        let error = unsafe { peer_upload(values.as_ptr().cast(), size_of_val(values), &mut memory) };
        // Made before the check, so that what was allocated is freed if the copy failed.
        let array = Array { memory: NonNull::new(memory), len: values.len(), kind: PhantomData };
        check(error)?;
        Ok(array)
    }

    /// Makes the buckets of a multi-scalar multiplication of `n` points.
    pub(crate) fn msm<G: PeerGroup>(&self, n: usize) -> Result<Msm<G>, PeerError> {
        let mut handle = ptr::null_mut();
        // SAFETY: a place for one handle.
        check(unsafe { (G::CREATE)(n, &mut handle) })?;
        Ok(Msm { handle, n, kind: PhantomData })
    }

    /// Enqueues a forward transform of all elements, natural order in and out.
    pub(crate) fn ntt(&self, data: &mut Array<Scalar>) -> Result<(), PeerError> {
        let log_n = data.log_len()?;
        // SAFETY: live memory of 2^log_n scalars.
        check(unsafe { peer_ntt(data.pointer(), log_n) })
    }

    /// Enqueues the quotient (a·b − c)/(Xⁿ − 1): evaluations become its coefficients in `a`, natural order; `b` and `c`
    /// are overwritten. `z` is 1/(gⁿ − 1), g = 7.
    pub(crate) fn quotient(&self, [a, b, c]: [&mut Array<Scalar>; 3], z: &Scalar) -> Result<(), PeerError> {
        let log_n = a.log_len()?;
        for other in [&*b, &*c] {
            if other.len != a.len {
                return Err(invalid(format!("a quotient of {} and {} evaluations", a.len, other.len)));
            }
        }
        // SAFETY: live memory of 2^log_n scalars each, not shared as the references are exclusive; `z` is read in the
        // call.
        check(unsafe { peer_quotient(a.pointer(), b.pointer(), c.pointer(), ptr::from_ref(z).cast(), log_n) })
    }

    /// Waits for the transforms enqueued.
    pub(crate) fn synchronize(&self) -> Result<(), PeerError> {
        // SAFETY: takes nothing.
        check(unsafe { peer_synchronize() })
    }
}

fn invalid(message: String) -> PeerError {
    PeerError { code: -1, message }
}

/// Values in device memory that sppark works on.
pub(crate) struct Array<T> {
    memory: Option<NonNull<c_void>>,
    len: usize,
    kind: PhantomData<T>,
}

impl<T: MontgomeryRepr> Array<T> {
    /// Copies values from number `first` on back. Transforms enqueued on them have been waited for before.
    pub(crate) fn download(&self, first: usize, values: &mut [T]) -> Result<(), PeerError> {
        if first.checked_add(values.len()).is_none_or(|end| end > self.len) {
            return Err(invalid(format!("{} values from {first} on of {}", values.len(), self.len)));
        }
        let bytes = size_of_val(values);
        // SAFETY: a range of live memory, as checked, and as many bytes of a slice; any limbs are a value by the
        // contract of `MontgomeryRepr`.
        check(unsafe {
            let source = self.pointer().byte_add(first * size_of::<T>());
            peer_download(values.as_mut_ptr().cast(), source, bytes)
        })
    }
}

impl<T> Array<T> {
    fn pointer(&self) -> *mut c_void {
        self.memory.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    fn log_len(&self) -> Result<u32, PeerError> {
        if self.len.is_power_of_two() {
            Ok(self.len.ilog2())
        } else {
            Err(invalid(format!("a transform of {} elements", self.len)))
        }
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        // SAFETY: allocated by `upload`, or null, which is allowed; freeing waits for the work of the device.
        unsafe { peer_free(self.pointer()) };
    }
}

/// A group that sppark was instantiated for.
pub(crate) trait PeerGroup: AffineRepr<Scalar = Scalar> {
    /// Makes a multiplication for so many points.
    const CREATE: MsmCreate;
    /// Runs it.
    const RUN: MsmRun;
    /// Gives it up.
    const FREE: MsmFree;
}

impl PeerGroup for G1Affine {
    const CREATE: MsmCreate = peer_msm_create_g1;
    const RUN: MsmRun = peer_msm_g1;
    const FREE: MsmFree = peer_msm_free_g1;
}

impl PeerGroup for G2Affine {
    const CREATE: MsmCreate = peer_msm_create_g2;
    const RUN: MsmRun = peer_msm_g2;
    const FREE: MsmFree = peer_msm_free_g2;
}

/// A multi-scalar multiplication with its buckets on the device.
pub(crate) struct Msm<G: PeerGroup> {
    handle: *mut c_void,
    n: usize,
    kind: PhantomData<G>,
}

impl<G: PeerGroup> Msm<G> {
    /// Σ scalarᵢ·pointᵢ over the first `n` of each, with `n` as the buckets were made for. Returns when the sum is
    /// there.
    pub(crate) fn run(&mut self, points: &Array<G>, scalars: &Array<Scalar>) -> Result<G, PeerError> {
        if points.len < self.n || scalars.len < self.n {
            let (points, scalars, n) = (points.len, scalars.len, self.n);
            return Err(invalid(format!("{points} points and {scalars} scalars for a sum of {n}")));
        }
        let mut sum = [G::identity()];
        // SAFETY: a live handle of this group, live memory of at least `n` elements each, and a place for one point.
        check(unsafe {
            let out = repr::as_bytes_mut(&mut sum).as_mut_ptr().cast();
            (G::RUN)(self.handle, points.pointer(), scalars.pointer(), self.n, out)
        })?;
        Ok(sum[0])
    }
}

impl<G: PeerGroup> Drop for Msm<G> {
    fn drop(&mut self) {
        // SAFETY: made by `CREATE` of this group.
        unsafe { (G::FREE)(self.handle) };
    }
}
