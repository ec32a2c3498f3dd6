//! Functions of libtorch that `tch` doesn't offer: deterministic algorithms, and the peak of a GPU's memory.
//!
//! The only package of the workspace with `unsafe` code: calls of the three functions of `context.cpp`.

// Links libtorch, in the order that a linker needs: this package's C++ before the library that it calls.
use torch_sys as _;

unsafe extern "C" {
    safe fn sojourn_use_deterministic_algorithms(required: bool) -> bool;
    safe fn sojourn_gpu_memory_reset_peak(gpu: i8) -> bool;
    safe fn sojourn_gpu_memory_peak(gpu: i8) -> i64;
}

/// The treatment of operations that have no deterministic algorithm on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Determinism {
    /// The operations fail, with a message that names them.
    Required,
    /// The operations are computed, with a warning on standard error.
    Preferred,
}

/// From now on this process computes by algorithms that give the same bytes each time, wherever libtorch and cuDNN
/// have one: `torch.use_deterministic_algorithms` of Python. Returns whether libtorch could set it.
///
/// With [`Determinism::Required`] cuBLAS wants `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment of the process.
#[must_use]
pub fn use_deterministic_algorithms(determinism: Determinism) -> bool {
    sojourn_use_deterministic_algorithms(determinism == Determinism::Required)
}

/// Counts the most memory that libtorch takes of a GPU, in bytes, from its beginning on.
#[derive(Debug)]
pub struct GpuMemoryPeak {
    gpu: i8,
}

impl GpuMemoryPeak {
    /// Gives cached memory back to the driver and counts anew; nothing where libtorch has no such GPU.
    #[must_use]
    pub fn count(gpu: usize) -> Option<Self> {
        let gpu = i8::try_from(gpu).ok()?;
        sojourn_gpu_memory_reset_peak(gpu).then_some(Self { gpu })
    }

    /// The most bytes that were reserved at once since then, with what is cached for later tensors.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        u64::try_from(sojourn_gpu_memory_peak(self.gpu)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Tensor;

    #[test]
    fn operations_without_a_deterministic_algorithm_fail_only_where_one_is_required() {
        // `put` of libtorch has none, on the CPU either.
        let put = || {
            let indices = Tensor::from_slice(&[0_i64, 0]);
            Tensor::zeros([2], tch::kind::FLOAT_CPU).f_put(
                &indices,
                &Tensor::from_slice(&[1_f32, 2.0]),
                false,
            )
        };
        assert!(use_deterministic_algorithms(Determinism::Preferred));
        drop(put().expect("it is computed"));
        assert!(use_deterministic_algorithms(Determinism::Required));
        let error = put().expect_err("there is none").to_string();
        assert!(error.contains("does not have a deterministic implementation"), "{error}");
    }

    #[test]
    fn a_gpu_that_is_not_there_has_no_peak() {
        assert!(GpuMemoryPeak::count(0).is_none());
        assert!(GpuMemoryPeak::count(1000).is_none());
    }
}
