/// Regions in the machine's memory, mapped by a mapper of the test's choice.
#pragma once

#include "ipc/region/memory_object.hpp"
#include "tests/contract/region/region_kind.hpp"

namespace leasehold::testing {

/// The mapper outlives it.
class HostMemoryKind final : public RegionKind {
 public:
  explicit HostMemoryKind(const RegionMapper& mapper) : mapper_(mapper) {}

  const RegionMapper& mapper() const override { return mapper_; }
  UniqueFd make(std::size_t size_bytes) override {
    return required(MemoryObject::create({.name = "region", .size_bytes = size_bytes})).release();
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from, to.size());
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }

 private:
  const RegionMapper& mapper_;
};

}  // namespace leasehold::testing
