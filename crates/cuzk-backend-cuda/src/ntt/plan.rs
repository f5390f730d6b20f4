//! How a transform is divided into passes, and what a pass tells its kernel.

/// Stages of each pass, from the highest bits of the index down; the last pass is the contiguous one. For 2^16, 2^20,
/// 2^22, 2^24 and 2^26 these were the fastest of several, or within 2 % of it; the others are alike. The larger the
/// last pass, the smaller the tables.
pub(super) fn passes(log_n: u32) -> &'static [u32] {
    match log_n {
        11 => &[5, 6],
        12 => &[6, 6],
        13 => &[6, 7],
        14 => &[6, 8],
        15 => &[6, 9],
        16 => &[7, 9],
        17 => &[8, 9],
        18 => &[9, 9],
        19 => &[5, 6, 8],
        20 => &[6, 6, 8],
        21 => &[7, 6, 8],
        22 => &[8, 6, 8],
        23 => &[8, 7, 8],
        24 => &[8, 8, 8],
        25 => &[8, 8, 9],
        26 => &[8, 9, 9],
        27 => &[9, 9, 9],
        28 => &[10, 9, 9],
        _ => ONE_PASS[log_n.min(10) as usize],
    }
}

const ONE_PASS: [&[u32]; 11] = [&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9], &[10]];

/// The sizes that the passes can do: below, a kernel works by the definition; above, the tables would not be small.
pub(super) const SMALLEST: u32 = 3;
/// See [`SMALLEST`].
pub(super) const LARGEST: u32 = 28;

/// log2 of the elements of a thread, `NTT_LOG_RADIX` of the kernels.
pub(super) const LOG_RADIX: u32 = 3;

/// log2 of the elements of a tile: small ones fill the device better, large ones read longer rows. 2^10 were the
/// fastest for all sizes that were measured, up to 2^27; with a pass of ten stages their rows would be single
/// elements.
pub(super) fn log_tile(log_n: u32) -> u32 {
    if log_n <= 27 { log_n.min(10) } else { 11 }
}

/// Elements are read, or written, as if all of them were bit-reversed.
pub(super) const BIT_REVERSED: u32 = 1;
/// Elements are multiplied by those of `operand` first: in time, if there are several passes.
pub(super) const PRODUCT: u32 = 2;
/// Results are subtracted from `operand`: in time.
pub(super) const DIFFERENCE: u32 = 4;
/// Results are fully reduced: in frequency; in time they always are.
pub(super) const CANONICAL: u32 = 8;
/// No coset, first stages.
pub(super) const UNIT: u32 = 16;
/// Element j is multiplied by ω_2n^j: in time.
pub(super) const ODD_ELEMENTS: u32 = 32;
/// Result i is multiplied by ω_2n^i: in time.
pub(super) const ODD_RESULTS: u32 = 64;

/// `ntt_pass_t` of kernels/cuda/ntt/pass.h, which documents the fields.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Pass {
    pub(super) src: u64,
    pub(super) dst: u64,
    pub(super) operand: u64,
    pub(super) heap: u64,
    pub(super) plain: u64,
    pub(super) roots_low: u64,
    pub(super) roots_high: u64,
    pub(super) shift: u64,
    pub(super) results: u64,
    pub(super) log_n: u32,
    pub(super) stage: u32,
    pub(super) k: u32,
    pub(super) log_c: u32,
    pub(super) log_low: u32,
    pub(super) flags: u32,
}

const _: () = assert!(size_of::<Pass>() == 96);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_all_stages_in_tiles_that_exist() {
        for log_n in SMALLEST..=LARGEST {
            let (passes, tile) = (passes(log_n), log_tile(log_n));
            assert_eq!(passes.iter().sum::<u32>(), log_n);
            let mut stage = 0;
            for (i, &k) in passes.iter().enumerate() {
                assert!((3..=tile).contains(&k), "2^{log_n}: a pass of {k} stages in tiles of 2^{tile}");
                let (log_c, log_s) = (tile - k, log_n - stage - k);
                if i + 1 < passes.len() {
                    assert!(log_s >= log_c, "2^{log_n}: 2^{log_c} columns of 2^{log_s}");
                } else {
                    assert!(log_s == 0 && stage >= log_c, "2^{log_n}: 2^{log_c} blocks of 2^{stage}");
                }
                stage += k;
            }
        }
    }
}
