/// One card as the stages use it beside a backend: our kernels by name, copies, and what it is.
///
/// Every call waits until the card is done, so a fault is told by the call that brought it. After
/// one the context is of no use: a stage that provokes one does so in a process of its own.
///
/// Lifetime: whatever was made with the context ends before it. Threads: the one that opened it.
/// Errors: those of cuda::load_driver and cuda::check.
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

  /// For the parameters of a launch. `is_stopped`: of a gate that lets nothing through.
  device::KernelGate gate(bool is_stopped = false) const;

  Result<void> run(cuda::KernelLaunch launch);
  Result<void> run(const cuda::StepGraph& graph);
  /// In the card's memory, `times` one after the other.
  Result<void> copy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, int times = 1);
  Result<void> clear(CUdeviceptr at, std::size_t size_bytes);
  Result<void> fetch(std::span<std::byte> to, CUdeviceptr from);
  Result<void> store(CUdeviceptr to, std::span<const std::byte> from);

  /// Random words of which only the bits in `keep` stay, with the bits in `set` added; whole words
  /// of 8 bytes.
  struct Filling {
    std::uint64_t keep;
    std::uint64_t set;
    std::uint64_t seed;
  };
  Result<void> fill(CUdeviceptr to, std::size_t size_bytes, const Filling& filling);

  /// Products of [64 × 16] by [16 × 128] in that many blocks; `sums` has room for 128 floats each.
  Result<void> multiply(CUdeviceptr sums, std::uint32_t blocks, std::uint32_t rounds);

  /// One thread's looks at an open gate, one after the other; `seen` has room for 4 bytes.
  Result<void> poll_gate(CUdeviceptr seen, std::uint32_t n_polls);

  Result<int> attribute(CUdevice_attribute which) const;

 private:
  struct Resources;
  explicit Card(Resources parts);
  Result<void> wait(CUresult begun, std::string_view doing);

  std::unique_ptr<cuda::Context> context_;  // the others hold its address
  cuda::KernelLibrary library_;
  cuda::Stream stream_;
  cuda::DeviceBuffer
      mirrors_;  // [2] device::GateMirror: one that lets everything through, and none
};

}  // namespace leasehold::gpu_check
