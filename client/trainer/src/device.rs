//! The processor that everything is computed on.
//!
//! The program links the CPU's part of libtorch alone. Who starts it for a GPU preloads
//! `libtorch_cuda.so` (`sojourn-slot` does, by `LD_PRELOAD`): libtorch then finds CUDA by itself.

use crate::error::TrainError;
use sojourn_libtorch::{Determinism, use_deterministic_algorithms};
use std::{fmt, str::FromStr};
use tch::{Cuda, Device};

/// The device that `--device` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The machine's cores.
    #[default]
    Cpu,
    /// The GPU of this number, as CUDA counts them.
    Cuda(u32),
}

impl DeviceChoice {
    /// The device, if it is there. On a GPU this process computes by deterministic algorithms from now on; those of
    /// a CPU are deterministic with the same threads.
    pub(crate) fn open(self, determinism: Determinism) -> Result<Device, TrainError> {
        let DeviceChoice::Cuda(index) = self else { return Ok(Device::Cpu) };
        let refuse = |why: String| Err(TrainError::Device(format!("can't use `{self}`: {why}")));
        if !Cuda::is_available() {
            return refuse(
                "libtorch finds no CUDA (no driver, or `libtorch_cuda.so` wasn't preloaded)".into(),
            );
        }
        let count = Cuda::device_count();
        let index = usize::try_from(index)?;
        if i64::try_from(index)? >= count {
            return refuse(format!("there are {count} GPUs, counted from 0"));
        }
        // The benchmark may choose another algorithm in each run.
        Cuda::cudnn_set_benchmark(false);
        if !use_deterministic_algorithms(determinism) {
            return refuse("libtorch can't be set to deterministic algorithms".into());
        }
        Ok(Device::Cuda(index))
    }
}

/// Waits until a GPU has done what it was given; a CPU has.
pub(crate) fn finish(device: Device) {
    if let Device::Cuda(index) = device
        && let Ok(index) = i64::try_from(index)
    {
        Cuda::synchronize(index);
    }
}

impl FromStr for DeviceChoice {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.strip_prefix("cuda:") {
            Some(index) => index.parse().map(DeviceChoice::Cuda).map_err(|_| ()),
            None if text == "cpu" => Ok(DeviceChoice::Cpu),
            None => Err(()),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceChoice::Cpu => f.write_str("cpu"),
            DeviceChoice::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_is_refused_by_name() {
        let open = |choice: DeviceChoice| choice.open(Determinism::Preferred);
        assert_eq!(open(DeviceChoice::Cpu).unwrap(), Device::Cpu);
        let error = open(DeviceChoice::Cuda(99)).unwrap_err().to_string();
        assert!(error.starts_with("can't use `cuda:99`: "), "{error}");
    }
}
