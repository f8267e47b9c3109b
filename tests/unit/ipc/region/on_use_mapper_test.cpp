#include "ipc/region/on_use_mapper.hpp"

#include <catch2/catch.hpp>

#include "ipc/region/memory_object.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;

namespace {

constexpr std::size_t kExtentBytes = std::size_t{2} << 20;
constexpr MemoryObject::Spec kExtentSpec{.name = "test", .size_bytes = kExtentBytes};

LeasedMapping mapped_on_use(const MemoryObject& object) {
  return on_use_mapper()
      .map(object.fd().duplicate().value(), kExtentBytes, MapAccess::ReadWrite)
      .value();
}

}  // namespace

TEST_CASE("on use: memory that is mapped costs nothing, and used memory costs what is used") {
  const MemoryObject object = MemoryObject::create(kExtentSpec).value();
  const LeasedMapping mapping = mapped_on_use(object);
  CHECK(object.allocated_bytes().value() == 0);
  *testing::address_of(mapping.writable_base()) = std::byte{1};
  const std::size_t used_bytes = object.allocated_bytes().value();
  CHECK(used_bytes > 0);
  CHECK(used_bytes < kExtentBytes);
}

TEST_CASE("on use: memory that has all its pages keeps them and its bytes") {
  const MemoryObject object = create_present(kExtentSpec).value();
  const LeasedMapping mapping = mapped_on_use(object);
  CHECK(object.allocated_bytes().value() == kExtentBytes);
  CHECK(*testing::address_of(mapping.base()) == std::byte{0});
}
