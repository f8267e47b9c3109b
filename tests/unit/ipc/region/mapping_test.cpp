#include "ipc/region/mapping.hpp"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <optional>
#include <string>
#include <type_traits>

#include "ipc/region/memory_object.hpp"
#include "ipc/region/region_mapper.hpp"
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
static_assert(!ShowsItsBytes<LeasedMapping>, "leased bytes need a permit");

MemoryObject new_object() {
  return required(MemoryObject::create({.name = "test", .size_bytes = kSize_bytes}));
}

/// Source: mincore(2), ENOMEM where nothing is mapped.
bool is_mapped(const std::byte* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) & ~std::uintptr_t{4095};
  unsigned char resident = 0;
  return ::mincore(reinterpret_cast<void*>(page), 1, &resident) == 0;
}

/// Shared memory that this process has mapped as huge pages. Source:
/// Documentation/ABI/testing/procfs-smaps_rollup.
std::size_t mapped_huge_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string field; rollup >> field;)
    if (std::size_t kib = 0; field == "ShmemPmdMapped:" && rollup >> kib) return kib << 10;
  return 0;
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

TEST_CASE("mapping: mapping allocates no memory, prefaulting allocates all of it") {
  const MemoryObject object = new_object();
  const auto mapping = required(Mapping::map(object.fd(), kSize_bytes, MapAccess::ReadWrite));
  CHECK(required(object.allocated_bytes()) == 0);
  REQUIRE(mapping.prefault(MapAccess::ReadWrite));
  CHECK(required(object.allocated_bytes()) == kSize_bytes);
}

TEST_CASE("mapping: a mapping that may use huge pages is aligned to one and grows no larger") {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t size_bytes = GENERATE(std::size_t{2} << 20, (std::size_t{4} << 20) + 4096);
  const MemoryObject object = required(MemoryObject::create({.size_bytes = size_bytes}));
  std::optional mapping = required(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  std::byte* const begin = mapping->data();
  CHECK(reinterpret_cast<std::uintptr_t>(begin) % kHuge == 0);
  CHECK(is_mapped(begin + size_bytes - 1));
  CHECK_FALSE(is_mapped(begin + size_bytes));
  mapping.reset();
  CHECK_FALSE(is_mapped(begin));
}

TEST_CASE("mapping: prefaulting keeps the bytes, and a punch frees all memory") {
  constexpr std::size_t kSizeOfTwo = std::size_t{4} << 20;
  MemoryObject object = required(MemoryObject::create({.size_bytes = kSizeOfTwo}));
  const auto mapping = required(Mapping::map(object.fd(), kSizeOfTwo, MapAccess::ReadWrite));
  mapping.data()[5'000] = std::byte{42};
  REQUIRE(mapping.prefault(MapAccess::ReadWrite));
  CHECK(mapping.data()[5'000] == std::byte{42});
  CHECK(required(object.allocated_bytes()) == kSizeOfTwo);
  REQUIRE(object.punch());
  CHECK(required(object.allocated_bytes()) == 0);
  mapping.data()[5'000] = std::byte{1};  // a write after the fence is found
  CHECK(required(object.allocated_bytes()) > 0);
}

TEST_CASE("mapping: a large object is prefaulted in huge pages where a small one is") {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const auto huge_bytes = [](std::size_t size_bytes) {
    const MemoryObject object = required(MemoryObject::create({.size_bytes = size_bytes}));
    const auto mapping = required(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
    REQUIRE(mapping.prefault(MapAccess::ReadWrite));
    CHECK(required(object.allocated_bytes()) == size_bytes);
    return mapped_huge_bytes();
  };
  if (huge_bytes(kHuge) < kHuge) {
    WARN("not run: this kernel makes no huge pages of memory objects");
    return;
  }
  constexpr std::size_t kLarge = 70 * kHuge;
  CHECK(huge_bytes(kLarge) > kLarge / 4 * 3);  // a page that the kernel uses stays small
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

TEST_CASE("mapping: a failed mapping is an error, not an exception") {
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
  const auto mapping = required(
      host_mapper().map(required(object.fd().duplicate()), kSize_bytes, MapAccess::ReadWrite));
  REQUIRE(mapping.writable_base());
  CHECK(Leased<const std::byte>(mapping.writable_base()) == mapping.base());
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
