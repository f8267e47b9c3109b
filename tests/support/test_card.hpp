/// The card that a test's CUDA backends compute on: the first the driver has, which is the fake
/// driver's where that is the one found.
///
/// Lifetime: the context is kept until the process ends. Threads: each makes the context current
/// for itself. Errors: exceptions, as for every test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "ipc/cuda/context.hpp"
#include "ipc/segment/leased.hpp"

namespace leasehold::testing {

/// Loads the driver at the first call.
const cuda::Context& test_card();

/// The address behind a handle, for tests that play the driver. Nobody's gate is asked.
std::byte* address_behind(Leased<const std::byte> handle);

/// Host memory that kernels and copies may use, as long as this lives. In the fake driver's process
/// kernels reach any memory; a card reaches what is registered.
class DeviceRegistration {
 public:
  DeviceRegistration() = default;
  DeviceRegistration(const DeviceRegistration&) = delete;
  DeviceRegistration& operator=(const DeviceRegistration&) = delete;
  ~DeviceRegistration();

  void add(Leased<const std::byte> at, std::size_t size_bytes);
  /// Registers all that was added, pages that several share once. What cannot be registered, such
  /// as pages that nobody may touch, is left out.
  void open();

 private:
  std::map<std::uintptr_t, std::uintptr_t> pages_;  // begin → end, apart from each other
  std::vector<void*> registered_;
};

}  // namespace leasehold::testing
