// Settings and figures of libtorch that have no function in tch. No exception leaves a function.

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstdint>

namespace {

c10::DeviceAllocator& gpu_allocator() {
  return *c10::getDeviceAllocator(c10::DeviceType::CUDA);
}

constexpr auto ALL = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

} // namespace

extern "C" bool sojourn_use_deterministic_algorithms(bool required) {
  try {
    at::Context& context = at::globalContext();
    context.setDeterministicAlgorithms(true, /*warn_only=*/!required);
    context.setDeterministicCuDNN(true);
    // Memory is filled for programs that read what they never wrote.
    context.setDeterministicFillUninitializedMemory(false);
    return true;
  } catch (...) {
    return false;
  }
}

extern "C" bool sojourn_gpu_memory_reset_peak(std::int8_t gpu) {
  try {
    gpu_allocator().emptyCache();
    gpu_allocator().resetPeakStats(gpu);
    return true;
  } catch (...) {
    return false;
  }
}

extern "C" std::int64_t sojourn_gpu_memory_peak(std::int8_t gpu) {
  try {
    return gpu_allocator().getDeviceStats(gpu).reserved_bytes[ALL].peak;
  } catch (...) {
    return -1;
  }
}
