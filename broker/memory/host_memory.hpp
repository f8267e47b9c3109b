/// Host memory, lent as memfds of the MemoryStore.
///
/// A scrubber thread punches and verifies returned memory in the order of the calls. The kernel
/// needs about 0.25 ms to free 2 MiB that a worker still maps, and much longer for weights. On the
/// event loop, this work would delay revocations.
///
/// Another thread clears memory ahead of grants: the kernel needs 0.1 ms for 2 MiB of new memory,
/// and several ms on a virtual machine whose host must allocate the memory first. A third one
/// counts pages, so that no caller of `count_touched` waits for these two.
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "broker/memory/lent_memory.hpp"
#include "broker/memory/memory_store.hpp"

namespace leasehold {

class HostMemory final : public LentMemory {
 public:
  HostMemory(boost::asio::io_context& io, MemoryStore& store);
  /// Finishes all queued punches first, because a worker may keep its mappings after the broker
  /// ends.
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// See MemoryStore::create_extent.
  Result<void> create_extent(ExtentId extent, std::size_t size_bytes,
                             ExtentPages pages = ExtentPages::ClearedIfReady) {
    return store_.create_extent(extent, size_bytes, pages);
  }
  MemoryIdentity identity(ExtentId extent) const { return store_.identity(extent); }
  /// Keeps `count` cleared objects ready for extents created later, and closes surplus ones.
  /// Returns at once; a later call replaces an earlier one. An error is logged and stops the
  /// clearing until the next call.
  void clear_ahead(std::uint32_t count, std::size_t size_bytes);
  /// Lowers the number of objects to keep to at most `count`, until the next call of clear_ahead.
  void clear_at_most(std::uint32_t count) { clear_count_ = std::min(clear_count_, count); }
  /// Counts the pages of all extents, then calls back; see MemoryStore::touched_bytes. The kernel
  /// needs 0.2 µs for each extent.
  void count_touched(std::move_only_function<void()> then);
  void lend(std::vector<ExtentId> extents, std::size_t size_bytes, OnFds on_fds) override;
  /// The punches of one turn of the io_context share a task of the scrubber.
  void punch(std::span<const ExtentId> extents) override;
  /// Calls back when all earlier punches are done.
  void after_punches(std::move_only_function<void()> then);
  void clear(std::vector<ExtentId> extents, OnCleared on_cleared) override;
  void verify(Verification request, OnVerified on_verified) override;
  void create_region(RegionId region, std::size_t size_bytes, OnDone on_done) override;
  Result<void> seal_region(RegionId region) override { return store_.seal_region(region); }
  void scrub_region(RegionId region, OnScrubbed on_scrubbed) override;
  void close_region(RegionId region) override;
  Result<UniqueFd> region_fd(RegionId region, bool writable) const override {
    return store_.region_fd(region, writable);
  }
  const UniqueFd* keepable_fd(RegionId region) const override;

 private:
  void punch_collected();
  /// Runs `task` on the scrubber thread, after all earlier punches.
  template <class Task>
  void scrub_in_order(Task task);
  void clear_next();
  void add_cleared(Result<MemoryObject> object);

  boost::asio::io_context& io_;
  MemoryStore& store_;
  std::uint32_t clear_count_ = 0;
  std::size_t clear_size_bytes_ = 0;
  bool is_clearing_ = false;
  ExtentObjects to_punch_;
  boost::asio::thread_pool scrubber_{1};
  boost::asio::thread_pool clearer_{1};
  boost::asio::thread_pool counter_{1};
};

}  // namespace leasehold
