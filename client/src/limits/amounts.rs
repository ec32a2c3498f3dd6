//! Amounts of memory as people write them, of the machine and of its GPUs.

use super::{
    Percent,
    units::{bytes, write_bytes},
};
use sojourn_protocol::quantity::mul_div;
use sojourn_slot::MemoryRatio;
use std::{fmt, str::FromStr};

/// An amount of memory in which a trainer has room: `8GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory(u64);

/// Less than this no trainer does with.
const MIN_MEMORY: u64 = 100_000_000;

impl Memory {
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Memory {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = bytes(text).filter(|bytes| *bytes >= MIN_MEMORY);
        let wanted = "100MB or more are wanted, e.g. `8GiB`; a trainer takes about 200MB";
        bytes.map(Self).ok_or_else(|| wanted.to_owned())
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(f, self.0)
    }
}

/// Memory of a GPU, all of its slots together: `10GiB`, or `50%`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuMemory {
    /// So many bytes of each.
    Bytes(u64),
    /// So much of each.
    Ratio(Percent),
}

impl GpuMemory {
    /// The bytes that each of `slots` may take of a GPU that has `total` bytes.
    #[must_use]
    pub fn of_slot(self, total: u64, slots: u32) -> MemoryRatio {
        let bytes = match self {
            Self::Bytes(bytes) => bytes.min(total),
            Self::Ratio(ratio) => mul_div(total, ratio.get().into(), 100),
        };
        MemoryRatio::of(bytes / u64::from(slots.max(1)), total)
    }
}

impl FromStr for GpuMemory {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.ends_with('%') {
            return text.parse().map(Self::Ratio);
        }
        // A number alone could be either.
        let has_unit = text.ends_with(['B', 'b']);
        let bytes = bytes(text).filter(|bytes| has_unit && *bytes > 0);
        bytes.map(Self::Bytes).ok_or_else(|| "`10GiB` or `50%` is wanted, say".to_owned())
    }
}

impl fmt::Display for GpuMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write_bytes(f, *bytes),
            Self::Ratio(ratio) => write!(f, "{ratio}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::units::tests::{refuses, shows},
        *,
    };

    #[test]
    fn memory_is_enough_for_a_trainer_and_a_gpus_is_shared_by_its_slots() {
        shows::<Memory>(&[("8 GiB", "8GiB"), ("100000000", "100MB")]);
        refuses::<Memory>(&["8", "99MB", "", "50%"], "100MB or more are wanted");
        shows::<GpuMemory>(&[("10GiB", "10GiB"), ("50 %", "50%")]);
        refuses::<GpuMemory>(&["50", "0GiB", "", "half"], "`10GiB` or `50%`");
        refuses::<GpuMemory>(&["0%", "101%"], "1 to 100 percent");
        for (text, total, slots, ratio) in [
            ("10GiB", 80 << 30, 1, "0.1250"),
            ("10GiB", 80 << 30, 2, "0.0625"),
            ("90GiB", 80 << 30, 1, "1.0000"),
            ("50%", 80 << 30, 1, "0.5000"),
            ("50%", 80_000_000_000, 5, "0.1000"),
        ] {
            let memory: GpuMemory = text.parse().unwrap();
            assert_eq!(memory.of_slot(total, slots).to_string(), ratio, "{text} {total} {slots}");
        }
    }
}
