/// The mirror on the card that every kernel reads when it begins: the live sequences of the step.
///
/// Writes use a separate stream, so they reach kernels that are already queued.
///
/// Lifetime: the context outlives it. Threads: the launcher's. Errors: create() reports missing
/// resources.
#pragma once

#include <utility>

#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device_objects.hpp"

namespace leasehold::cuda {

class LauncherMirror {
 public:
  /// `stream` zeroes the mirror.
  static Result<LauncherMirror> create(const Context& context, CUstream stream);

  const device::GateMirror* address() const {
    return reinterpret_cast<const device::GateMirror*>(mirror_.data());
  }
  SequenceMask live() const { return live_; }     ///< The value written last.
  std::uint32_t epoch() const { return epoch_; }  ///< The epoch of the last write.
  /// Whether the mirror stopped all kernels since the last call. Some blocks of a kernel may then
  /// have run and others not.
  bool take_stopped() { return std::exchange(was_stopped_, false); }

  /// Writes the live sequences; the next launch of `stream` waits for the write. One stream writes
  /// all values, so that no value overtakes a newer one.
  CUresult write(SequenceMask live, CUstream stream);
  /// Counts epochs from 0 again. Call while the card is idle.
  void restart_epochs() { epoch_ = 0; }

 private:
  explicit LauncherMirror(const Context& context) : context_(&context) {}

  const Context* context_;
  Stream stream_;
  DeviceBuffer mirror_;
  PinnedBuffer values_;  // [kValues] mirror values; the copies read them later
  Event written_;        // recorded after the newest write
  std::uint32_t epoch_ = 0;
  std::uint32_t next_value_ = 0;
  SequenceMask live_ = 0;
  bool was_stopped_ = false;
};

}  // namespace leasehold::cuda
