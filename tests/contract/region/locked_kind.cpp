#include "ipc/region/locked_mapper.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/contract/region/region_kind.hpp"

namespace leasehold::testing {
namespace {

class LockedKind final : public RegionKind {
 public:
  const RegionMapper& mapper() const override { return locked_mapper(); }
  UniqueFd make(std::size_t size_bytes) override {
    return required(MemoryObject::create({.name = "region", .size_bytes = size_bytes})).release();
  }
  void read(const std::byte* from, std::span<std::byte> to) override {
    std::memcpy(to.data(), from, to.size());
  }
  void write(std::byte* to, std::span<const std::byte> from) override {
    std::memcpy(to, from.data(), from.size());
  }
};

}  // namespace

std::unique_ptr<RegionKind> make_region_kind() {
  return std::make_unique<LockedKind>();
}

}  // namespace leasehold::testing
