//! Which instructions the arithmetic is written in.

use std::fmt;

/// A way to compute, chosen by what the processor has. All of them give the same bytes.
///
/// Values exist only for what this processor can run: that is what makes the functions that take one safe.
///
/// ```
/// use cuzk_backend_cpu::CodePath;
/// assert!(CodePath::available().any(|path| path == CodePath::detect()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePath(Kind);

/// What [`CodePath`] wraps, so that nobody else can make one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One element at a time.
    Scalar,
    /// AVX-512 with 52-bit multiply-adds, eight elements at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512Ifma,
}

impl CodePath {
    /// The fastest one.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma") {
            return Self(Kind::Avx512Ifma);
        }
        Self::scalar()
    }

    /// The one that every processor has.
    pub fn scalar() -> Self {
        Self(Kind::Scalar)
    }

    /// All that this processor can run.
    pub fn available() -> impl Iterator<Item = Self> {
        let best = Self::detect();
        std::iter::once(Self::scalar()).chain((best != Self::scalar()).then_some(best))
    }

    pub(crate) fn kind(self) -> Kind {
        self.0
    }
}

/// `avx512ifma`, or what the scalar arithmetic relies on: `adx` (blst's assembly with two carry chains) or `portable`.
impl fmt::Display for CodePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Ifma => "avx512ifma",
            #[cfg(target_arch = "x86_64")]
            Kind::Scalar if is_x86_feature_detected!("adx") && is_x86_feature_detected!("bmi2") => "adx",
            Kind::Scalar => "portable",
        })
    }
}
