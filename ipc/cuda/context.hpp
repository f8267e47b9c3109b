/// The primary context of one card, retained while this object lives.
///
/// Lifetime: outlives memory and mappings made with it. Threads: any; a context is current per
/// thread, so every function here that needs one makes it current first. Errors: those of
/// cuda::check. Source: CUDA Driver API reference, primary contexts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "ipc/cuda/driver.hpp"
#include "ipc/cuda/driver_turn.hpp"

namespace leasehold::cuda {

/// The memory of a card, summed over all processes, as the driver reports it.
struct DeviceMemoryInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// The UUID as `nvidia-smi -L` prints it: "GPU-" and the bytes in groups of 4, 2, 2, 2 and 6. For a
/// MIG slice the bytes are the slice's own, in the same form. Needs no context.
Result<std::string> uuid_of(const Driver& driver, int ordinal);

class Context {
 public:
  /// Errors: NoDevice when the card does not exist; DeviceUnsupported when its compute mode
  /// excludes this process, or when MPS serves it; those of cuda::check.
  static Result<Context> retain(const Driver& driver, int ordinal);

  Context(Context&& other) noexcept
      : driver_(std::exchange(other.driver_, nullptr)),
        device_(other.device_),
        handle_(other.handle_),
        ordinal_(other.ordinal_),
        turn_(std::move(other.turn_)) {}
  Context& operator=(Context&&) = delete;
  ~Context();

  /// Makes the context current for the calling thread.
  Result<void> make_current() const;

  const Driver& driver() const { return *driver_; }
  CUdevice device() const { return device_; }
  CUcontext handle() const { return handle_; }
  int ordinal() const { return ordinal_; }
  DriverTurn& turn() const { return *turn_; }

  Result<std::string> uuid() const { return uuid_of(*driver_, ordinal_); }

  /// The card's name: "NVIDIA H100 80GB HBM3".
  Result<std::string> name() const;

  Result<DeviceMemoryInfo> memory() const;

 private:
  Context(const Driver& driver, CUdevice device, CUcontext handle, int ordinal)
      : driver_(&driver), device_(device), handle_(handle), ordinal_(ordinal) {}

  const Driver* driver_;
  CUdevice device_;
  CUcontext handle_;
  int ordinal_;
  std::unique_ptr<DriverTurn> turn_ = std::make_unique<DriverTurn>();
};

}  // namespace leasehold::cuda
