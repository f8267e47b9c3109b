#include "ipc/region/node_memory.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "ipc/region/memory_object.hpp"
#include "tests/support/required.hpp"

namespace leasehold::node_memory_test {
namespace {

using testing::required;

constexpr std::uint64_t kMiB = 1 << 20;

MemoryObject object_of(std::uint64_t size_bytes) {
  return required(MemoryObject::create({.name = "region", .size_bytes = size_bytes}));
}

/// The policy of the page at an address.
int policy_at(std::byte* at) {
  int mode = -1;
  REQUIRE(::syscall(SYS_get_mempolicy, &mode, nullptr, 0UL, at, MPOL_F_ADDR) == 0);
  return mode;
}

}  // namespace

TEST_CASE("node memory: each range is preferred once, at its place, and no page is made") {
  const MemoryObject object = object_of(6 * kMiB);
  const std::vector<NodeRange> ranges{{0, 2 * kMiB, 3}, {2 * kMiB, 6 * kMiB, 1}};
  std::vector<std::span<std::byte>> pages;
  std::vector<std::uint32_t> nodes;
  const Result<void> placed =
      prefer_nodes(object.fd(), 6 * kMiB, ranges, [&](auto range, std::uint32_t node) {
        pages.push_back(range);
        nodes.push_back(node);
        return Result<void>();
      });
  REQUIRE(placed);
  CHECK(nodes == std::vector<std::uint32_t>{3, 1});
  REQUIRE(pages.size() == 2);
  CHECK(pages[0].size() == 2 * kMiB);
  CHECK(pages[1].data() == pages[0].data() + pages[0].size());
  CHECK(pages[1].size() == 4 * kMiB);
  CHECK(reinterpret_cast<std::uintptr_t>(pages[0].data()) % placement_page_bytes(6 * kMiB) == 0);
  CHECK(required(object.allocated_bytes()) == 0);
}

TEST_CASE("node memory: the first failure is returned, and nothing is called after it") {
  const MemoryObject object = object_of(6 * kMiB);
  const std::vector<NodeRange> ranges{{0, 2 * kMiB, 0}, {2 * kMiB, 6 * kMiB, 1}};
  int calls = 0;
  const Result<void> placed =
      prefer_nodes(object.fd(), 6 * kMiB, ranges, [&](auto, std::uint32_t) -> Result<void> {
        ++calls;
        return fail(Errc::SystemError, "refused");
      });
  REQUIRE_FALSE(placed);
  CHECK(placed.error().detail == "refused");
  CHECK(calls == 1);
}

TEST_CASE("node memory: without ranges nothing is mapped or called") {
  CHECK(prefer_nodes(UniqueFd(), 6 * kMiB, {}));
}

TEST_CASE("node memory: the system's preference belongs to the object, for later mappings too") {
  const MemoryObject object = object_of(4 * kMiB);
  const Result<void> placed =
      prefer_nodes(object.fd(), 4 * kMiB, std::vector<NodeRange>{{0, 2 * kMiB, 0}});
  if (!placed && placed.error().detail.find("not permitted") != std::string::npos) {
    WARN("this process may not choose nodes: " << placed.error().detail);
    return;
  }
  REQUIRE(placed);
  const Mapping later = required(Mapping::map(object.fd(), 4 * kMiB, MapAccess::ReadWrite));
  CHECK(policy_at(later.data()) == MPOL_PREFERRED);
  CHECK(policy_at(later.data() + 2 * kMiB - 1) == MPOL_PREFERRED);
  CHECK(policy_at(later.data() + 2 * kMiB) == MPOL_DEFAULT);
}

TEST_CASE("node memory: a node that does not exist is an error that names it") {
  const MemoryObject object = object_of(4096);
  const Result<void> placed =
      prefer_nodes(object.fd(), 4096, std::vector<NodeRange>{{0, 4096, 1000}});
  REQUIRE_FALSE(placed);
  CHECK(placed.error().code == Errc::SystemError);
  CHECK(placed.error().detail.find("node 1000") != std::string::npos);
}

TEST_CASE("node memory: memory that can have huge pages is placed in huge pages") {
  CHECK(placement_page_bytes(2 * kMiB) == 2 * kMiB);
  CHECK(placement_page_bytes(2 * kMiB - 1) == static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace leasehold::node_memory_test
