// Host memory, and that it is cleared ahead of grants. What a grant costs its worker is the pages
// that are made while it maps, so the tests count those.
#include "broker/memory/host_memory.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "ipc/region/region_mapper.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kExtentBytes = std::size_t{2} << 20;

struct stat status_of(const UniqueFd& fd) {
  struct stat status{};
  REQUIRE(::fstat(fd.get(), &status) == 0);
  return status;
}

std::uint64_t allocated_bytes(const UniqueFd& fd) {
  return static_cast<std::uint64_t>(status_of(fd).st_blocks) * 512;
}

std::set<ino_t> inodes(const std::vector<UniqueFd>& fds) {
  std::set<ino_t> numbers;
  for (const UniqueFd& fd : fds) numbers.insert(status_of(fd).st_ino);
  return numbers;
}

bool is_zero(const UniqueFd& fd) {
  const Mapping mapping = Mapping::map(fd, kExtentBytes, MapAccess::ReadWrite).value();
  return std::all_of(mapping.data(), mapping.data() + kExtentBytes,
                     [](std::byte byte) { return byte == std::byte{0}; });
}

struct Memory {
  template <class Holds>
  void wait_for(Holds holds) {
    io.restart();  // stopped once it had no work
    const auto work = boost::asio::make_work_guard(io);
    while (!holds()) io.run_one();
  }

  void clear_ahead(std::uint32_t count, std::size_t size_bytes = kExtentBytes) {
    host.clear_ahead(count, size_bytes);
    wait_for([&] { return store.cleared_objects() == count; });
  }

  std::vector<UniqueFd> lend(std::vector<ExtentId> extents, std::size_t size_bytes = kExtentBytes) {
    std::vector<UniqueFd> lent;
    for (const ExtentId id : extents) host.create_extent(id, size_bytes).value();
    host.lend(std::move(extents), size_bytes, [&](auto fds) { lent = std::move(fds).value(); });
    return lent;
  }

  /// Ends the extent as after a fence: punched, verified and closed.
  void give_back(ExtentId extent) {
    bool is_verified = false;
    host.punch(std::vector{extent});
    host.verify({.extents = {extent}}, [&](const ExtentsVerified& verified) {
      is_verified = verified.entries.front().closed;
    });
    wait_for([&] { return is_verified; });
  }

  boost::asio::io_context io;
  MemoryStore store;
  HostMemory host{io, store};
};

std::vector<ExtentId> extents(std::uint64_t count) {
  std::vector<ExtentId> ids;
  for (std::uint64_t i = 1; i <= count; ++i) ids.push_back(ExtentId{i});
  return ids;
}

/// Bytes that the worker makes present by mapping memory of this many extents.
std::uint64_t bytes_made_by_mapping(Memory& memory, std::uint64_t count) {
  std::uint64_t made = 0;
  for (UniqueFd& fd : memory.lend(extents(count))) {
    const std::uint64_t before = allocated_bytes(fd);
    const UniqueFd kept = fd.duplicate().value();
    (void)host_mapper().map(std::move(fd), kExtentBytes, MapAccess::ReadWrite).value();
    made += allocated_bytes(kept) - before;
  }
  return made;
}

}  // namespace

TEST_CASE("host memory: an extent that cannot be punched is reported as not cleared") {
  Memory memory;
  (void)memory.lend(extents(1));
  // A punch of memory that is sealed against writing fails.
  MemoryObject sealed =
      MemoryObject::create({.size_bytes = kExtentBytes, .final_seals = false}).value();
  sealed.seal_against_writing().value();
  memory.store.expect(ExtentId{2}, sealed.identity().value());
  memory.store.redeliver(ExtentId{2}, std::move(sealed).release()).value();

  std::optional<ExtentsCleared> cleared;
  memory.host.clear(extents(2), [&](ExtentsCleared entries) { cleared = std::move(entries); });
  memory.wait_for([&] { return cleared.has_value(); });

  REQUIRE(cleared->entries.size() == 2);
  CHECK_FALSE(cleared->entries[0].refused);
  REQUIRE(cleared->entries[1].refused);
  CHECK(cleared->entries[1].refused->code == Errc::SystemError);
}

TEST_CASE("host memory: counting the pages in use does not wait for memory that is being cleared") {
  Memory memory;
  (void)memory.lend(extents(1));
  memory.host.clear_ahead(1, std::size_t{256} << 20);
  bool is_counted = false;
  memory.host.count_touched([&] { is_counted = true; });
  memory.wait_for([&] { return is_counted; });
  CHECK(memory.store.cleared_objects() == 0);
  memory.wait_for([&] { return memory.store.cleared_objects() == 1; });
}

TEST_CASE("host memory: punches of one turn come before the unmaps and checks that follow them") {
  Memory memory;
  const std::vector<UniqueFd> had = memory.lend(extents(2));
  for (const UniqueFd& fd : had)
    *Mapping::map(fd, kExtentBytes, MapAccess::ReadWrite).value().data() = std::byte{1};
  for (const ExtentId extent : extents(2)) memory.host.punch(std::vector{extent});
  std::optional<ExtentsVerified> verified;
  memory.host.verify({.extents = extents(2)}, [&](auto entries) { verified = std::move(entries); });
  std::optional<std::uint64_t> seen_bytes;
  memory.host.after_punches(
      [&] { seen_bytes = allocated_bytes(had[0]) + allocated_bytes(had[1]); });
  memory.wait_for([&] { return verified && seen_bytes; });
  CHECK(seen_bytes == 0);
  CHECK(std::ranges::all_of(verified->entries, [](const auto& each) { return each.closed; }));
}

TEST_CASE("clear ahead: mapping a grant makes no page, however many extents it has") {
  for (const std::uint32_t count : {1u, 25u}) {
    Memory memory;
    memory.clear_ahead(count);
    CHECK(bytes_made_by_mapping(memory, count) == 0);
    CHECK(memory.store.cleared_objects() == 0);
  }
}

TEST_CASE("clear ahead: memory that may stay idle has no pages, and leaves the cleared to others") {
  Memory memory;
  memory.clear_ahead(1);
  memory.host.create_extent(ExtentId{1}, kExtentBytes, ExtentPages::Absent).value();
  CHECK(memory.store.cleared_objects() == 1);
  CHECK(touched_bytes(memory.store.objects()) == 0);
}

TEST_CASE("clear ahead: without it, mapping a grant makes every page") {
  Memory memory;
  CHECK(bytes_made_by_mapping(memory, 3) == 3 * kExtentBytes);
}

TEST_CASE("clear ahead: cleared memory is zero, and each extent has an object of its own") {
  Memory memory;
  memory.clear_ahead(2);
  const std::vector<UniqueFd> fds = memory.lend(extents(3));  // one more than is cleared
  CHECK(inodes(fds).size() == 3);
  CHECK(allocated_bytes(fds[1]) == kExtentBytes);
  CHECK(allocated_bytes(fds[2]) == 0);
  for (const UniqueFd& fd : fds) CHECK(is_zero(fd));
}

TEST_CASE("clear ahead: memory that a lease has had is never lent again") {
  Memory memory;
  memory.clear_ahead(1);
  const std::vector<UniqueFd> had = memory.lend(extents(1));
  *Mapping::map(had[0], kExtentBytes, MapAccess::ReadWrite).value().data() = std::byte{1};
  memory.give_back(ExtentId{1});
  CHECK(allocated_bytes(had[0]) == 0);

  memory.clear_ahead(2);

  const std::vector<UniqueFd> next = memory.lend({ExtentId{2}, ExtentId{3}});
  CHECK_FALSE(inodes(next).contains(status_of(had[0]).st_ino));
  for (const UniqueFd& fd : next) CHECK(is_zero(fd));
}

TEST_CASE("host memory: the object that the journal names is the one that is lent") {
  Memory memory;
  CHECK(memory.host.identity(ExtentId{1}) == MemoryIdentity{});
  const std::vector<UniqueFd> lent = memory.lend(extents(1));
  CHECK(inodes(lent) == std::set<ino_t>{memory.host.identity(ExtentId{1}).inode});
}

TEST_CASE("host memory: an extent without memory is not lent") {
  Memory memory;
  std::optional<Errc> refused;
  memory.host.lend(extents(1), kExtentBytes, [&](auto fds) { refused = fds.error().code; });
  CHECK(refused == Errc::UnknownLease);
}

TEST_CASE("clear ahead: a lower limit ends the clearing under way") {
  Memory memory;
  memory.host.clear_ahead(3, kExtentBytes);
  memory.host.clear_at_most(1);
  memory.wait_for([&] { return memory.store.cleared_objects() == 1; });
  while (memory.io.poll() > 0) {
  }
  CHECK(memory.store.cleared_objects() == 1);
}

TEST_CASE("clear ahead: what exceeds the wanted memory, or has another size, is closed") {
  Memory memory;
  memory.clear_ahead(3);
  memory.clear_ahead(1);
  CHECK(memory.store.cleared_objects() == 1);
  CHECK(allocated_bytes(memory.lend(extents(1), 2 * kExtentBytes)[0]) == 0);
  CHECK(memory.store.cleared_objects() == 1);  // too small for that extent

  memory.clear_ahead(1, 2 * kExtentBytes);

  CHECK(allocated_bytes(memory.lend({ExtentId{2}}, 2 * kExtentBytes)[0]) == 2 * kExtentBytes);
  memory.clear_ahead(0);
  CHECK(memory.store.cleared_objects() == 0);
}

}  // namespace leasehold::testing
