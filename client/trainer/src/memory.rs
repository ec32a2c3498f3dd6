//! How much memory a unit takes of its device: the machine's as the kernel counts it, a GPU's as libtorch does.

use sojourn_libtorch::GpuMemoryPeak;
use std::fs;
use tch::Device;

/// Counts from its beginning on.
#[derive(Debug)]
pub(crate) enum PeakMemory {
    /// The most that was resident, of the whole process.
    Resident,
    /// The most that was reserved of a GPU.
    Gpu(GpuMemoryPeak),
}

impl PeakMemory {
    /// Counts anew; nothing where the kernel or libtorch can't.
    pub(crate) fn of_unit(device: Device) -> Option<Self> {
        match device {
            Device::Cuda(gpu) => GpuMemoryPeak::count(gpu).map(Self::Gpu),
            // Linux: "5" takes what is resident now for the most that was.
            Device::Cpu => {
                fs::write("/proc/self/clear_refs", "5").is_ok().then_some(Self::Resident)
            }
            _ => None,
        }
    }

    /// The most bytes that were taken at once since then.
    pub(crate) fn bytes(self) -> Option<u64> {
        if let Self::Gpu(peak) = self {
            return peak.bytes();
        }
        let text = fs::read_to_string("/proc/self/status").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    const LARGE: usize = 256 << 20;

    #[test]
    fn memory_of_earlier_units_does_not_count() {
        drop(black_box(vec![1u8; 2 * LARGE]));
        let unit = PeakMemory::of_unit(Device::Cpu).unwrap();
        drop(black_box(vec![1u8; LARGE]));
        let peak = usize::try_from(unit.bytes().unwrap()).unwrap();
        let nothing = PeakMemory::of_unit(Device::Cpu).unwrap().bytes().unwrap();
        let nothing = usize::try_from(nothing).unwrap();
        assert!(peak >= LARGE && peak >= nothing + LARGE / 2, "{peak} and {nothing}");
    }
}
