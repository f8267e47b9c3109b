/// The layout of the two shared-memory segments.
///
/// Lease table (one per broker; the broker writes, workers map it read-only):
///
///   TableHeader | WorkerCounter[kMaxWorkers] | LeaseSlot[slot_count]
///
///     broker: words of slot s    Closed → Live (grant) → Revoked (revoke) → Fenced (fence)
///     broker: counter of w       += 1 after every store that revokes or fences a word of worker w
///
/// Worker segment (one per worker; the worker writes, the broker reads it and never trusts it):
///
///   WorkerSegmentHeader | AnnounceSlot[kMaxGateThreads]
///
///     worker thread t: announce  = seq << 2 | touches, around every unit (launch_gate.hpp)
///
/// Every entry has 64 bytes. Both segments are memfds of fixed size, sealed against shrinking and
/// growing. Everything a reader finds here is input: attach checks magic, version and sizes before
/// use.
///
/// Units: times are boot-time nanoseconds; 0 means "none". C++20-clean.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace leasehold {

inline constexpr std::uint64_t kTableMagic = 0x4c42'5444'4c53'4c31;  // "1LSLDTBL" read as bytes
inline constexpr std::uint64_t kWorkerSegmentMagic = 0x4745'5344'4c53'4c31;
inline constexpr std::uint64_t kSegmentAbiVersion = 2;
inline constexpr std::uint32_t kMaxWorkers = 64;
inline constexpr std::uint32_t kMaxGateThreads = 64;
inline constexpr std::size_t kCacheLineBytes = 64;

struct alignas(kCacheLineBytes) TableHeader {
  std::uint64_t magic;
  std::uint64_t size_bytes;
  std::uint32_t slot_count;
  std::uint32_t worker_count;
  std::atomic<std::uint64_t> abi_version;  ///< Stored last: a reader that sees it sees the rest.
};

struct alignas(kCacheLineBytes) WorkerCounter {
  std::atomic<std::uint64_t> revocations;  ///< Starts at 1, only grows, never 0.
};

struct alignas(kCacheLineBytes) LeaseSlot {
  std::atomic<std::uint64_t> word;
  std::atomic<std::int64_t> deadline_boottime_ns;        ///< TTL; moves with every renewal.
  std::atomic<std::int64_t> drain_deadline_boottime_ns;  ///< Soft revoke: admit no new work.
  std::atomic<std::int64_t> word_stored_boottime_ns;     ///< When the word left Live.
};

struct alignas(kCacheLineBytes) WorkerSegmentHeader {
  std::uint64_t magic;
  std::uint64_t size_bytes;
  std::atomic<std::uint64_t> abi_version;
};

struct alignas(kCacheLineBytes) AnnounceSlot {
  std::atomic<std::uint64_t> announce;
};

static_assert(sizeof(TableHeader) == kCacheLineBytes && sizeof(WorkerCounter) == kCacheLineBytes);
static_assert(sizeof(LeaseSlot) == kCacheLineBytes && sizeof(AnnounceSlot) == kCacheLineBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// The kinds of table entries. A FreeSlot is a slot without a lease.
enum class TablePart : std::uint8_t { Header, Counter, Slot, FreeSlot };

struct TableEntry {
  TablePart part = TablePart::Header;
  std::uint32_t index = 0;
  constexpr bool operator==(const TableEntry&) const = default;
};

/// "header", "counter", "slot", "free_slot"
constexpr std::string_view name(TablePart part) {
  constexpr std::string_view kNames[] = {"header", "counter", "slot", "free_slot"};
  return kNames[static_cast<unsigned>(part)];
}

constexpr std::size_t table_size_bytes(std::uint32_t slot_count) {
  return sizeof(TableHeader) + kMaxWorkers * sizeof(WorkerCounter) +
         std::size_t{slot_count} * sizeof(LeaseSlot);
}

constexpr std::size_t worker_segment_size_bytes() {
  return sizeof(WorkerSegmentHeader) + kMaxGateThreads * sizeof(AnnounceSlot);
}

/// The parts of a mapped table. `Byte` is `std::byte` for the broker and `const std::byte` for
/// readers, which therefore get const atomics that they cannot store to.
template <class Byte>
struct TableView {
  template <class T>
  using Like = std::conditional_t<std::is_const_v<Byte>, const T, T>;

  Byte* base;

  Like<TableHeader>& header() const { return *reinterpret_cast<Like<TableHeader>*>(base); }
  Like<WorkerCounter>& counter(std::uint32_t worker) const {
    return reinterpret_cast<Like<WorkerCounter>*>(base + sizeof(TableHeader))[worker];
  }
  Like<LeaseSlot>& slot(std::uint32_t index) const {
    return reinterpret_cast<Like<LeaseSlot>*>(base + table_size_bytes(0))[index];
  }
};

template <class Byte>
struct WorkerSegmentView {
  template <class T>
  using Like = std::conditional_t<std::is_const_v<Byte>, const T, T>;

  Byte* base;

  Like<WorkerSegmentHeader>& header() const {
    return *reinterpret_cast<Like<WorkerSegmentHeader>*>(base);
  }
  Like<AnnounceSlot>& thread(std::uint32_t index) const {
    return reinterpret_cast<Like<AnnounceSlot>*>(base + sizeof(WorkerSegmentHeader))[index];
  }
};

}  // namespace leasehold
