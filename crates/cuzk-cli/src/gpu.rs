//! NVIDIA devices that are described, not present.

use std::str::FromStr;

use crate::limits::at_least_one_byte;

/// An NVIDIA device that is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    pub(crate) multiprocessors: u32,
    /// Bytes of memory that are free on an idle one.
    pub(crate) memory: u64,
}

/// Multiprocessors and MiB of memory, as the vendor states the former and drivers report the latter.
const GPUS: [(&str, u32, u64); 8] = [
    ("h200", 132, 143_771),
    ("h100", 132, 81_559),
    ("a100", 108, 81_920),
    ("l40s", 142, 46_068),
    ("rtx5090", 170, 32_607),
    ("rtx4090", 128, 24_564),
    ("rtx3090", 82, 24_576),
    ("rtx5070ti", 70, 16_303),
];

impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        if let Some((_, multiprocessors, mib)) = GPUS.into_iter().find(|(known, ..)| *known == name) {
            return Ok(Self { name, multiprocessors, memory: mib << 20 });
        }
        let known = GPUS.map(|(name, ..)| name).join(", ");
        let (units, memory) = name.split_once('x').ok_or(format!("one of {known}, or NxSIZE"))?;
        let multiprocessors = units
            .parse()
            .ok()
            .filter(|n| (1..=1024).contains(n))
            .ok_or(format!("{units} multiprocessors: a number from 1 to 1024, or the name of a device: {known}"))?;
        Ok(Self { multiprocessors, memory: at_least_one_byte(memory)?, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_described_by_name_or_numbers() {
        let gpu = |text: &str| text.parse::<Gpu>().map(|g| (g.multiprocessors, g.memory));
        assert_eq!(gpu("H200"), Ok((132, 143_771 << 20)));
        assert_eq!(gpu("70x15.5GiB"), Ok((70, 31 << 29)));
        for wrong in ["h300", "x1GiB", "70x", "70xmuch", "0x8GiB", "4000x8GiB"] {
            assert!(gpu(wrong).is_err(), "{wrong}");
        }
    }
}
