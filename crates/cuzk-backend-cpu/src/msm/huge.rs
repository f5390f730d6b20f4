//! Large arrays on huge pages.
//!
//! Points are gathered in the order of their buckets, which is random: with pages of 4 KiB nearly every access would miss the
//! translation buffer, and that costs as much as the addition itself.

use std::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};

use memmap2::MmapMut;

use super::{digits::SignedScalar, point::Point};
use crate::field::Lanes;

/// From this many bytes on an array is mapped on its own.
const MAPPED_BYTES: usize = 4 << 20;

/// A value that may be made of zero bits.
///
/// # Safety
/// * Bytes of zero are a valid value, and there is no drop glue.
/// * The alignment is at most 4096.
pub(crate) unsafe trait Zero: Copy {
    const ZERO: Self;
}

// SAFETY: an integer.
unsafe impl Zero for u32 {
    const ZERO: u32 = 0;
}

// SAFETY: an integer.
unsafe impl Zero for u64 {
    const ZERO: u64 = 0;
}

// SAFETY: bytes.
unsafe impl Zero for SignedScalar {
    const ZERO: Self = Self::ZERO;
}

// SAFETY: two coordinates, which are arrays of integers (a contract of `Lanes::Stored`); aligned to 64.
unsafe impl<F: Lanes> Zero for Point<F> {
    const ZERO: Self = Self::INFINITY;
}

/// A boxed slice that is zero at first: on huge pages where it is large and the system has them.
pub(crate) enum HugeBox<T> {
    Mapped(MmapMut, usize, PhantomData<T>),
    Allocated(Vec<T>),
}

impl<T: Zero> HugeBox<T> {
    pub(crate) fn zeroed(len: usize) -> Self {
        let bytes = len.saturating_mul(size_of::<T>());
        if bytes >= MAPPED_BYTES
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            #[cfg(target_os = "linux")]
            if let Err(reason) = map.advise(memmap2::Advice::HugePage) {
                tracing::debug!(%reason, bytes, "no huge pages for the points of an MSM");
            }
            return Self::Mapped(map, len, PhantomData);
        }
        // Where mapping fails so will this, with the error handling that allocations have.
        Self::Allocated(vec![T::ZERO; len])
    }
}

impl<T> Deref for HugeBox<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            // SAFETY: the map has the bytes of `len` elements, page-aligned, and zero bytes are elements (`zeroed` makes it).
            Self::Mapped(map, len, _) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), *len) },
            Self::Allocated(elements) => elements,
        }
    }
}

impl<T> DerefMut for HugeBox<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            // SAFETY: as in `deref`.
            Self::Mapped(map, len, _) => unsafe { std::slice::from_raw_parts_mut(map.as_mut_ptr().cast(), *len) },
            Self::Allocated(elements) => elements,
        }
    }
}
