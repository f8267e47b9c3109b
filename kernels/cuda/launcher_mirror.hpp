/// The mirror on the card that holds the live sequences, and the stream that writes it.
///
/// One stream writes all values, so that no value overtakes a newer one. Threads: one at a time,
/// with the context current. Lifetime: the context outlives this object.
#pragma once

#include <utility>

#include "ipc/segment/gate_set.hpp"
#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device_objects.hpp"

namespace leasehold::cuda {

class LauncherMirror {
 public:
  static Result<LauncherMirror> create(const Context& context);

  /// On the card; not initialised.
  const device::GateMirror* mirror() const;

  /// Writes the live sequences under the next epoch; `stream` waits for the write.
  CUresult write(SequenceMask live, CUstream stream);
  /// The next write has epoch 1. Precondition: no kernel reads an earlier epoch.
  void restart_epochs() { epoch_ = 0; }

  std::uint32_t epoch() const { return epoch_; }  ///< Of the newest write.
  SequenceMask live() const { return live_; }     ///< Of the newest write.
  /// Whether a write since the last call stopped all kernels.
  bool take_stopped() { return std::exchange(was_stopped_, false); }

 private:
  LauncherMirror(const Context& context, Stream stream, DeviceBuffer mirror, PinnedBuffer values,
                 Event written)
      : context_(&context),
        stream_(std::move(stream)),
        mirror_(std::move(mirror)),
        values_(std::move(values)),
        written_(std::move(written)) {}

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
