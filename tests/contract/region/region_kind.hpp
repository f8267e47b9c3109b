/// One kind of memory that travels by descriptor, as the contract asks for it.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "ipc/region/region_mapper.hpp"
#include "tests/support/leased_memory.hpp"

namespace leasehold::testing {

class RegionKind {
 public:
  virtual ~RegionKind() = default;
  virtual const RegionMapper& mapper() const = 0;
  /// New memory of this kind, as its owner sends it.
  virtual UniqueFd make(std::size_t size_bytes) = 0;
  /// From and to the memory behind addresses that the mapping gave out.
  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
};

/// Throws where this machine has no such memory.
std::unique_ptr<RegionKind> make_region_kind();

/// Even a test gets the address through a gate: one of its own, always open.
template <class T>
T* address_of(Leased<T> handle) {
  FakeTable open;
  const auto set = open.step(1);
  T* address = nullptr;
  open.gate().run(*set, {LaunchSite::Commit, 0, Touches::TenantMemory},
                  [&](const LaunchPermit& permit) { address = permit.open(handle); });
  return address;
}

}  // namespace leasehold::testing
