/// Leased memory for tests: a real memory object, mapped as a worker maps it.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <span>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/support/fake_table.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {

/// Opens the handle through a gate of its own that is always open.
template <class T>
T* address_of(Leased<T> handle) {
  FakeTable open;
  const auto set = open.step(1);
  T* address = nullptr;
  open.gate().run(*set, {LaunchSite::Commit, 0, Touches::TenantMemory},
                  [&](const LaunchPermit& permit) { address = permit.open(handle); });
  return address;
}

class LeasedMemory {
 public:
  explicit LeasedMemory(std::size_t size_bytes)
      : object_(required(MemoryObject::create({.name = "test", .size_bytes = size_bytes}))),
        mapping_(required(LeasedMapping::map(object_.fd(), size_bytes, MapAccess::ReadWrite))) {}

  Leased<std::byte> at(std::size_t offset_bytes = 0) const {
    return mapping_.writable_base() + static_cast<std::ptrdiff_t>(offset_bytes);
  }

  std::byte* bytes() const { return address_of(at()); }

  template <class T>
  void fill(std::span<const T> values, std::size_t offset_bytes = 0) {
    std::ranges::copy(std::as_bytes(values), bytes() + offset_bytes);
  }

  /// After this call a read of these pages is a SIGSEGV.
  void forbid_access() { ::mprotect(bytes(), mapping_.size_bytes(), PROT_NONE); }

 private:
  MemoryObject object_;
  LeasedMapping mapping_;
};

}  // namespace leasehold::testing
