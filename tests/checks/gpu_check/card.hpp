/// One GPU, used by the stages without a backend: kernels by name, copies and properties.
///
/// Every call waits for the GPU, so the call that causes a fault returns the error. The context is
/// unusable after a fault, so a stage that provokes a fault does so in a separate process.
///
/// Lifetime: outlives everything made with its context. Threads: the one that opened it. Errors:
/// those of cuda::load_driver and cuda::check.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "ipc/cuda/context.hpp"
#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device_objects.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/cuda/kernel_library.hpp"
#include "kernels/cuda/step_graph.hpp"

namespace leasehold::gpu_check {

class Card {
 public:
  static Result<std::unique_ptr<Card>> open(int ordinal);

  const cuda::Context& context() const { return *context_; }
  cuda::KernelLibrary& library() { return library_; }

  /// A gate for launch parameters. If `is_stopped`, the gate refuses every unit.
  device::KernelGate gate(bool is_stopped = false) const;

  Result<void> run(cuda::KernelLaunch launch);
  /// Like `run`, without waiting for the end.
  Result<void> begin(cuda::KernelLaunch launch);
  Result<void> run(const cuda::StepGraph& graph);
  /// Copies device memory `times` times in sequence.
  Result<void> copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, int times = 1);
  Result<void> clear(CUdeviceptr at, std::size_t size_bytes);
  Result<void> fetch(std::span<std::byte> to, CUdeviceptr from);
  Result<void> store(CUdeviceptr to, std::span<const std::byte> from);

  /// Random 8-byte words, masked with `keep`, then or-ed with `set`.
  struct Filling {
    std::uint64_t keep;
    std::uint64_t set;
    std::uint64_t seed;
  };
  Result<void> fill(CUdeviceptr to, std::size_t size_bytes, const Filling& filling);

  /// Multiplies [64 × 16] by [16 × 128] in each block; `sums` has 128 floats per block.
  Result<void> multiply(CUdeviceptr sums, std::uint32_t blocks, std::uint32_t rounds);

  /// One thread polls an open gate `n_polls` times; `seen` has 4 bytes.
  Result<void> poll_gate(CUdeviceptr seen, std::uint32_t n_polls);

  Result<int> attribute(CUdevice_attribute which) const;

 private:
  Card(std::unique_ptr<cuda::Context> context, cuda::KernelLibrary library, cuda::Stream stream,
       cuda::DeviceBuffer mirrors)
      : context_(std::move(context)),
        library_(std::move(library)),
        stream_(std::move(stream)),
        mirrors_(std::move(mirrors)) {}
  Result<void> wait(CUresult begun, std::string_view doing);

  std::unique_ptr<cuda::Context> context_;  // the other members hold its address
  cuda::KernelLibrary library_;
  cuda::Stream stream_;
  cuda::DeviceBuffer
      mirrors_;  // [2] device::GateMirror: the first lets every unit pass, the second none
};

}  // namespace leasehold::gpu_check
