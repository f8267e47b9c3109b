/// The card for tests of CUDA backends: the driver's first, on the fake driver if that is loaded.
///
/// Lifetime: the context lives until the process ends. Threads: each thread makes the context
/// current for itself. Errors: exceptions, as in every test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ipc/cuda/context.hpp"
#include "ipc/segment/leased.hpp"

namespace leasehold::testing {

/// Loads the driver on the first call.
const cuda::Context& test_card();

/// Host memory that kernels and copies may use while this object lives. Kernels of the fake driver
/// reach any memory of the process; a card reaches only registered memory.
class DeviceRegistration {
 public:
  DeviceRegistration() = default;
  DeviceRegistration(const DeviceRegistration&) = delete;
  DeviceRegistration& operator=(const DeviceRegistration&) = delete;
  ~DeviceRegistration();

  void add(Leased<const std::byte> at, std::size_t size_bytes);
  /// Registers all added ranges; a page that several ranges share is registered once. It skips
  /// pages that cannot be registered, for example protected ones.
  void open();

 private:
  std::map<std::uintptr_t, std::uintptr_t> pages_;  // begin → end, not adjacent
  std::vector<void*> registered_;
};

}  // namespace leasehold::testing
