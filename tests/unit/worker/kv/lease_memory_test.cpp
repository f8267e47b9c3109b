#include "worker/kv/lease_memory.hpp"

#include <catch2/catch.hpp>

#include "ipc/region/memory_object.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kBlock = 4096;
constexpr LeaseId kMine{1, 1};
constexpr LeaseId kTheirs{2, 1};

LeasedMapping extent_of(std::size_t blocks) {
  const MemoryObject object =
      *MemoryObject::create({.name = "test-extent", .size_bytes = blocks * kBlock});
  return *LeasedMapping::map(object.fd(), blocks * kBlock, MapAccess::ReadWrite);
}

Errc refusal(const LeaseMemory& memory, LeaseId lease, BlockId block) {
  const auto address = memory.address(lease, block);
  REQUIRE_FALSE(address.has_value());
  return address.error().code;
}

}  // namespace

TEST_CASE("lease memory: a block of the lease's own extent has an address") {
  LeaseMemory memory(kBlock);
  memory.add(kMine, ExtentId{7}, extent_of(3));
  const auto first = memory.address(kMine, {ExtentId{7}, 0});
  const auto last = memory.address(kMine, {ExtentId{7}, 2});
  REQUIRE(first.has_value());
  REQUIRE(*last == *first + 2 * kBlock);
}

TEST_CASE("lease memory: the extents of a lease are in the order of their ids") {
  LeaseMemory memory(kBlock);
  for (const std::uint64_t id : {9u, 7u, 8u}) memory.add(kMine, ExtentId{id}, extent_of(1));
  memory.add(kTheirs, ExtentId{6}, extent_of(1));
  const auto extents = memory.extents(kMine);
  REQUIRE(extents.size() == 3);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    REQUIRE(extents[i].base == *memory.address(kMine, {ExtentId{7 + i}, 0}));
    REQUIRE(extents[i].size_bytes == kBlock);
  }
  memory.drop(kMine);
  REQUIRE(memory.extents(kMine).empty());
}

TEST_CASE("lease memory: a block outside the lease is LeaseFenced") {
  LeaseMemory memory(kBlock);
  memory.add(kMine, ExtentId{7}, extent_of(3));
  memory.add(kTheirs, ExtentId{8}, extent_of(3));
  REQUIRE(refusal(memory, kMine, {ExtentId{8}, 0}) == Errc::LeaseFenced);
  REQUIRE(refusal(memory, {1, 2}, {ExtentId{7}, 0}) == Errc::LeaseFenced);  // a later generation
  REQUIRE(refusal(memory, kMine, {ExtentId{7}, 3}) ==
          Errc::LeaseFenced);  // beyond the extent's end
  REQUIRE(refusal(memory, kMine, {ExtentId{7}, ~0u}) == Errc::LeaseFenced);
  memory.remove(kTheirs, std::array{ExtentId{8}});
  REQUIRE(refusal(memory, kTheirs, {ExtentId{8}, 0}) == Errc::LeaseFenced);
  REQUIRE_FALSE(memory.has(kTheirs, ExtentId{8}));
  memory.drop(kMine);
  REQUIRE(refusal(memory, kMine, {ExtentId{7}, 0}) == Errc::LeaseFenced);
}

TEST_CASE("lease memory: addresses of a dropped lease stay reserved until they are released") {
  std::vector<std::string> freed;
  const auto note = [&](const char* what) {
    return std::shared_ptr<const void>(
        what, [&freed](const void* gone) { freed.emplace_back(static_cast<const char*>(gone)); });
  };
  std::array<std::byte, kBlock> bytes{};
  LeaseMemory memory(kBlock);
  memory.add(kMine, ExtentId{7},
             LeasedMapping(note("memory"), bytes, MapAccess::ReadWrite, note("addresses")));
  memory.add(kTheirs, ExtentId{8}, extent_of(1));
  REQUIRE(memory.drop(kMine));
  REQUIRE(freed == std::vector<std::string>{"memory"});
  memory.release_addresses(kTheirs);
  REQUIRE_FALSE(memory.drop(kMine));
  REQUIRE(freed.size() == 1);
  memory.release_addresses(kMine);
  REQUIRE(freed.back() == "addresses");
}

}  // namespace leasehold
