//! The device of a slot's trainer.

use sojourn_protocol::quantity::{SaturatingFrom as _, mul_div};
use std::{fmt, path::PathBuf};

/// A processor that trains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Device {
    /// The machine's cores.
    #[default]
    Cpu,
    /// A GPU of NVIDIA's.
    Cuda {
        /// The GPU's UUID, as `nvidia-smi` lists it. CUDA's numbers depend on the order in which it counts;
        /// the trainer sees this one alone.
        uuid: String,
        /// The `libtorch_cuda.so` of a full installation of PyTorch. The trainer links the CPU's part
        /// of libtorch alone; this is loaded with it into the same process.
        library: PathBuf,
    },
}

/// A ratio of a GPU's memory, in parts of 10,000, so that a byte limit of a large GPU is met closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryRatio(u16);

/// The whole.
const WHOLE: u16 = 10_000;

impl MemoryRatio {
    /// `bytes` of `total`, rounded down: at least one part, at most the whole.
    #[must_use]
    pub fn of(bytes: u64, total: u64) -> Self {
        let parts = mul_div(bytes, WHOLE.into(), total.max(1));
        Self(u16::saturating_from(parts).clamp(1, WHOLE))
    }

    /// So much of `total` bytes.
    #[must_use]
    pub fn bytes(self, total: u64) -> u64 {
        mul_div(total, self.0.into(), WHOLE.into())
    }
}

impl fmt::Display for MemoryRatio {
    /// As libtorch reads it: `0.5000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04}", self.0 / WHOLE, self.0 % WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_down_and_never_none() {
        for (bytes, total, shown) in [
            (10, 40, "0.2500"),
            (2, 3, "0.6666"),
            (0, 80, "0.0001"),
            (90, 80, "1.0000"),
            (u64::MAX, 1, "1.0000"),
            (5, 0, "1.0000"),
        ] {
            assert_eq!(MemoryRatio::of(bytes, total).to_string(), shown);
        }
        assert_eq!(MemoryRatio::of(10, 40).bytes(80), 20);
    }
}
