//! What a slot's trainer computes on.

use std::path::PathBuf;

/// A processor that trains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Device {
    /// The machine's cores.
    #[default]
    Cpu,
    /// A GPU of NVIDIA's.
    Cuda {
        /// Its UUID, as `nvidia-smi` lists it. CUDA's numbers depend on the order in which it counts;
        /// the trainer sees this one alone.
        uuid: String,
        /// The `libtorch_cuda.so` of a full installation of PyTorch. The trainer links the CPU's part
        /// of libtorch alone; this is loaded with it into the same process.
        library: PathBuf,
    },
}
