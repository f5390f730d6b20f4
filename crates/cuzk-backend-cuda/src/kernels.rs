//! The embedded kernels, loaded when a curve is first used.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use cuzk_backend::{BackendError, Result};
use cuzk_curve::{CurveId, GroupId};

use crate::{
    driver::{Context, Kernel, Module},
    memory::lock,
};

/// A fat binary: the kernels of one source file for one curve and all architectures.
pub(crate) struct Image {
    pub(crate) unit: &'static str,
    pub(crate) curve: CurveId,
    pub(crate) bytes: &'static [u8],
}

/// What the images have code for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    /// 90 is compute capability 9.0.
    pub(crate) architecture: u32,
    /// PTX, which the driver compiles for this and any later architecture; else machine code, which runs on its own and later minor
    /// versions of the same major one.
    pub(crate) ptx: bool,
}

impl Code {
    fn runs_on(self, architecture: u32) -> bool {
        self.architecture <= architecture && (self.ptx || self.architecture / 10 == architecture / 10)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", if self.ptx { "compute" } else { "sm" }, self.architecture)
    }
}

include!(concat!(env!("OUT_DIR"), "/images.rs"));

/// Why there are no kernels, if there are none.
pub(crate) fn missing() -> Option<&'static str> {
    IMAGES.is_empty().then_some("built without kernels: cargo xtask build --backend cuda")
}

/// Why nothing of what was embedded runs on an architecture, if so.
pub(crate) fn no_code_for(architecture: u32) -> Option<String> {
    lacking(CODES, architecture)
}

fn lacking(codes: &[Code], architecture: u32) -> Option<String> {
    if codes.iter().any(|code| code.runs_on(architecture)) {
        return None;
    }
    let have = codes.iter().map(Code::to_string).collect::<Vec<_>>().join(", ");
    Some(format!(
        "compute capability {}.{}, for which there is no code here (but for {have}): cargo xtask build --backend cuda",
        architecture / 10,
        architecture % 10
    ))
}

macro_rules! kernels {
    ($(#[$doc:meta])* $set:ident { $($field:ident = $name:expr, $shared:expr;)* }) => {
        $(#[$doc])*
        pub(crate) struct $set {
            $(pub(crate) $field: Kernel,)*
        }

        impl $set {
            fn load(module: &Module, suffix: &str) -> Result<Self> {
                Ok(Self { $($field: module.kernel(&format!("{}{suffix}", $name), $shared)?,)* })
            }
        }
    };
}

/// Dynamic shared memory of the largest tile of a transform: 2^11 scalars.
pub(crate) const TILE: u32 = 32 << 11;
/// `MSM_SORT_SHARED` of the kernels, which do with less.
pub(crate) const SORT_SHARED: u32 = 98_304;

kernels! {
    /// Transforms.
    Ntt {
        time_strided = "ntt_time_strided", TILE;
        time_contiguous = "ntt_time_contiguous", TILE;
        frequency_strided = "ntt_frequency_strided", TILE;
        frequency_contiguous = "ntt_frequency_contiguous", TILE;
        powers = "ntt_powers", 0;
        heap = "ntt_heap", 0;
        results = "ntt_results", 0;
        scale = "ntt_scale", 0;
        reverse = "ntt_reverse", 0;
        small = "ntt_small", 0;
        product = "ntt_product", 0;
        difference = "ntt_difference", 0;
    }
}

kernels! {
    /// Sparse matrices.
    Sparse {
        rows = "r1cs_rows", 0;
        long_rows = "r1cs_long_rows", 0;
    }
}

kernels! {
    /// The part of a multi-scalar multiplication that knows no group.
    Sort {
        digits = "msm_digits", 0;
        scan_small = "msm_scan_small", 0;
        partition = "msm_partition", SORT_SHARED;
        fine_count = "msm_fine_count", 0;
        scan_local = "msm_scan_local", 0;
        scatter = "msm_scatter", SORT_SHARED;
        packed_count = "msm_packed_count", 0;
        packed_scan = "msm_packed_scan", 0;
        packed_emit = "msm_packed_emit", 0;
    }
}

kernels! {
    /// Additions in one group.
    Group {
        pair = "msm_pair_", 0;
        invert = "msm_invert_", 0;
        halve = "msm_halve_", 0;
        accumulate = "msm_accumulate_", 0;
        merge = "msm_merge_", 0;
        reduce = "msm_reduce_", 0;
        bits = "msm_bits_", 0;
        double_bases = "msm_double_bases_", 0;
        fixed_base_table = "fixed_base_table_", 0;
        fixed_base_mul = "fixed_base_mul_", 0;
    }
}

/// All kernels of a curve.
pub(crate) struct CurveKernels {
    pub(crate) ntt: Ntt,
    pub(crate) sparse: Sparse,
    pub(crate) sort: Sort,
    g1: Group,
    g2: Group,
}

impl CurveKernels {
    pub(crate) fn group(&self, group: GroupId) -> &Group {
        match group {
            GroupId::G1 => &self.g1,
            GroupId::G2 => &self.g2,
        }
    }

    fn load(context: &Arc<Context>, curve: CurveId) -> Result<Self> {
        let module = |unit: &str| match IMAGES.iter().find(|i| i.unit == unit && i.curve == curve) {
            Some(image) => Module::load(context, unit, image.bytes),
            None => Err(BackendError::Unsupported {
                operation: format!("loading the kernels of {unit}"),
                reason: missing().unwrap_or("they are not among those that were embedded").to_owned(),
            }),
        };
        Ok(Self {
            ntt: Ntt::load(&module("ntt")?, "")?,
            sparse: Sparse::load(&module("r1cs")?, "")?,
            sort: Sort::load(&module("msm")?, "")?,
            g1: Group::load(&module("msm_g1")?, "g1")?,
            g2: Group::load(&module("msm_g2")?, "g2")?,
        })
    }
}

/// The kernels of all curves, each loaded once.
#[derive(Default)]
pub(crate) struct Kernels(Mutex<Vec<(CurveId, Arc<CurveKernels>)>>);

impl Kernels {
    pub(crate) fn get(&self, context: &Arc<Context>, curve: CurveId) -> Result<Arc<CurveKernels>> {
        let mut loaded = lock(&self.0);
        if let Some((_, kernels)) = loaded.iter().find(|(c, _)| *c == curve) {
            return Ok(kernels.clone());
        }
        let kernels = Arc::new(CurveKernels::load(context, curve)?);
        loaded.push((curve, kernels.clone()));
        Ok(kernels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_where_nvidia_says_it_does() {
        let code = |architecture, ptx| Code { architecture, ptx };
        let machine = [code(80, false), code(90, false)];
        for (architecture, runs) in [(75, false), (80, true), (86, true), (89, true), (90, true), (100, false)] {
            assert_eq!(lacking(&machine, architecture).is_none(), runs, "{architecture}");
        }
        let newest = [code(86, false), code(120, true)];
        for (architecture, runs) in [(80, false), (86, true), (90, false), (120, true), (121, true), (130, true)] {
            assert_eq!(lacking(&newest, architecture).is_none(), runs, "{architecture}");
        }
        let reason = lacking(&newest, 90).unwrap_or_default();
        assert!(reason.contains("9.0") && reason.contains("sm_86, compute_120"), "{reason}");
    }
}
