/// The card for tests of CUDA backends: the driver's first, on the fake driver if that is loaded.
///
/// Lifetime: the context lives until the process ends. Threads: each thread makes the context
/// current for itself. Errors: exceptions, as in every test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ipc/cuda/context.hpp"
#include "ipc/segment/leased.hpp"
#include "tests/support/host_mappings.hpp"

namespace leasehold::testing {

/// Loads the driver on the first call.
const cuda::Context& test_card();

/// What to do with memory that a test has protected: a card cannot register it.
enum class ProtectedMemory : std::uint8_t {
  Refuse,
  Skip,  ///< The test promises that the card does not touch it.
};

/// Host memory that kernels and copies may use while this object lives. Kernels of the fake driver
/// reach any memory of the process; a card reaches only registered memory.
///
/// The mapping that holds a range is registered as a whole, once for all objects that name it.
/// Lifetime: the memory stays mapped until this object is destroyed; the destructor ends the
/// process if the driver cannot unregister it. Threads: any, one at a time.
class DeviceRegistration {
 public:
  DeviceRegistration() = default;
  DeviceRegistration(const DeviceRegistration&) = delete;
  DeviceRegistration& operator=(const DeviceRegistration&) = delete;
  ~DeviceRegistration();

  /// Throws if no single mapping holds the range.
  void add(Leased<const std::byte> at, std::size_t size_bytes,
           ProtectedMemory protected_memory = ProtectedMemory::Refuse);
  /// Registers all added ranges. Throws if the driver refuses one.
  void open();

 private:
  std::vector<HostMapping> added_;
  std::vector<std::uintptr_t> registered_;  // where the mappings begin
};

}  // namespace leasehold::testing
