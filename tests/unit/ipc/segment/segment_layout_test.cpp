#include "ipc/segment/segment_layout.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <string_view>
#include <type_traits>

using namespace leasehold;

// These numbers are an agreement between processes: change kSegmentAbiVersion with them.
static_assert(kSegmentAbiVersion == 2);
static_assert(offsetof(TableHeader, magic) == 0);
static_assert(offsetof(TableHeader, size_bytes) == 8);
static_assert(offsetof(TableHeader, slot_count) == 16);
static_assert(offsetof(TableHeader, worker_count) == 20);
static_assert(offsetof(TableHeader, abi_version) == 24);
static_assert(offsetof(WorkerCounter, revocations) == 0);
static_assert(offsetof(LeaseSlot, word) == 0);
static_assert(offsetof(LeaseSlot, deadline_boottime_ns) == 8);
static_assert(offsetof(LeaseSlot, drain_deadline_boottime_ns) == 16);
static_assert(offsetof(LeaseSlot, word_stored_boottime_ns) == 24);
static_assert(offsetof(WorkerSegmentHeader, magic) == 0);
static_assert(offsetof(WorkerSegmentHeader, size_bytes) == 8);
static_assert(offsetof(WorkerSegmentHeader, abi_version) == 16);
static_assert(offsetof(AnnounceSlot, announce) == 0);
static_assert(kMaxWorkers == 64 && kMaxGateThreads == 64);

// A reader's view returns atomics that cannot be stored to.
static_assert(
    std::is_const_v<std::remove_reference_t<decltype(TableView<const std::byte>{}.slot(0))>>);
static_assert(
    std::is_const_v<std::remove_reference_t<decltype(TableView<const std::byte>{}.counter(0))>>);
static_assert(std::is_const_v<
              std::remove_reference_t<decltype(WorkerSegmentView<const std::byte>{}.thread(0))>>);

namespace {

std::ptrdiff_t distance(const std::byte* base, const void* part) {
  return static_cast<const std::byte*>(part) - base;
}

std::string_view first_bytes(const std::uint64_t& magic) {
  return {reinterpret_cast<const char*>(&magic), sizeof(magic)};
}

}  // namespace

TEST_CASE("segment: sizes are header, counters and slots of one cache line each") {
  CHECK(table_size_bytes(0) == 4'160);
  CHECK(table_size_bytes(1) == 4'224);
  CHECK(table_size_bytes(1'024) == 69'696);
  CHECK(table_size_bytes(~0u) == 4'160 + 64 * 4'294'967'295ull);  // no wrap
  CHECK(worker_segment_size_bytes() == 4'160);
}

TEST_CASE("segment: the views find the parts where the sizes put them") {
  alignas(kCacheLineBytes) std::array<std::byte, 8'192> memory{};
  const TableView<std::byte> table{memory.data()};
  CHECK(distance(memory.data(), &table.header()) == 0);
  CHECK(distance(memory.data(), &table.counter(0)) == 64);
  CHECK(distance(memory.data(), &table.counter(63)) == 64 * 64);
  CHECK(distance(memory.data(), &table.slot(0)) == 4'160);
  CHECK(distance(memory.data(), &table.slot(3)) == 4'160 + 3 * 64);
  const WorkerSegmentView<std::byte> line{memory.data()};
  CHECK(distance(memory.data(), &line.header()) == 0);
  CHECK(distance(memory.data(), &line.thread(0)) == 64);
  CHECK(distance(memory.data(), &line.thread(63)) == 64 * 64);
}

TEST_CASE("segment: the magic numbers read as text in a dump") {
  CHECK(first_bytes(kTableMagic) == "1LSLDTBL");
  CHECK(first_bytes(kWorkerSegmentMagic) == "1LSLDSEG");
}
