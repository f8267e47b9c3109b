#include "ipc/region/mapping.hpp"

#include <catch2/catch.hpp>
#include <type_traits>

#include "ipc/region/memory_object.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/leased_memory.hpp"

using namespace leasehold;
using testing::required;

static_assert(!std::is_copy_constructible_v<Mapping> &&
              !std::is_copy_constructible_v<LeasedMapping>);

namespace {

constexpr std::size_t kSize_bytes = 64 * 1024;

template <class M>
concept ShowsItsBytes = requires(M mapping) { mapping.data(); };
static_assert(ShowsItsBytes<Mapping>);
static_assert(!ShowsItsBytes<LeasedMapping>, "leased bytes are had through a permit only");

MemoryObject new_object() {
  return required(MemoryObject::create({.name = "test", .size_bytes = kSize_bytes}));
}

}  // namespace

TEST_CASE("mapping: two mappings of one object show the same bytes") {
  const MemoryObject object = new_object();
  const auto one = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  const auto other = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadOnly));
  one.data()[100] = std::byte{42};
  CHECK(other.data()[100] == std::byte{42});
  CHECK(one.size_bytes() == kSize_bytes);
}

TEST_CASE("mapping: mapping takes no memory, prefaulting takes all of it") {
  const MemoryObject object = new_object();
  const auto mapping = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  CHECK(required(object.allocated_bytes()) == 0);
  REQUIRE(mapping.prefault(MapAccess::ReadWrite));
  CHECK(required(object.allocated_bytes()) == kSize_bytes);
}

TEST_CASE("mapping: it outlives the descriptor it was made from") {
  auto object = std::make_optional(new_object());
  const auto mapping = required(Mapping::map(object->fd(), kSize_bytes, MapAccess::ReadWrite));
  object.reset();
  mapping.data()[0] = std::byte{1};
  CHECK(mapping.data()[0] == std::byte{1});
}

TEST_CASE("mapping: a forked child does not inherit it") {
  const MemoryObject object = new_object();
  const auto mapping = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  const auto end = testing::run_in_child(
      [&] { return std::to_integer<int>(*static_cast<volatile std::byte*>(mapping.data())); });
  CHECK(end.killed_by == SIGSEGV);
}

TEST_CASE("mapping: what cannot be mapped is an error, not an exception") {
  CHECK(Mapping::map(UniqueFd(), kSize_bytes, MapAccess::ReadOnly).error().code ==
        Errc::SystemError);
}

TEST_CASE("leased mapping: read-only memory has no writable handle") {
  const MemoryObject object = new_object();
  const UniqueFd reader = required(object.open_read_only());
  const auto mapping = required(LeasedMapping::map(reader, kSize_bytes, MapAccess::ReadOnly));
  CHECK(mapping.base());
  CHECK_FALSE(mapping.writable_base());
}

TEST_CASE("leased mapping: writable memory has both handles, to the same bytes") {
  const MemoryObject object = new_object();
  const auto mapping = required(LeasedMapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  REQUIRE(mapping.writable_base());
  CHECK(Leased<const std::byte>(mapping.writable_base()) == mapping.base());
  REQUIRE(mapping.prefault());
  CHECK(required(object.allocated_bytes()) == kSize_bytes);
}

TEST_CASE("leased mapping: a permit opens the handle at its offset") {
  const testing::LeasedMemory memory(kSize_bytes);
  testing::FakeTable table;
  const auto set = table.step(1);
  memory.bytes()[32] = std::byte{9};
  std::byte seen{};
  table.gate().run(*set, {LaunchSite::AttentionScores, 0, Touches::TenantMemory},
                   [&](const LaunchPermit& permit) { seen = *permit.open(memory.at(32)); });
  CHECK(seen == std::byte{9});
}
