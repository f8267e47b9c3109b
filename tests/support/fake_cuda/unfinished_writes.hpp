/// What kernels have written that may still run when the next launch starts early.
///
/// A launch with a programmatic edge may start before the launch before it, which may itself have
/// started early; so nothing is finished that any kernel wrote since the last launch that waited
/// for everything. Copies from the host are not kernels: what they write is finished.
///
/// Lifetime: never destroyed. Threads: one at a time runs work of the card; any sets `enabled`.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "tests/support/simt/predecessor.hpp"

namespace leasehold::fake_cuda {

class UnfinishedWrites {
 public:
  static UnfinishedWrites& get();

  /// Comparing all memory of the card takes time, so a test asks for it.
  void set_enabled(bool enabled) { enabled_ = enabled; }

  /// A launch begins that waits for everything before it.
  void finish_all();
  /// A copy or memset wrote these bytes.
  void finish(const void* at, std::size_t size_bytes);
  /// The words of device memory that kernels have changed since.
  std::vector<simt::UnfinishedMemory> changes() const;

 private:
  struct Range {
    std::span<std::byte> memory;
    std::vector<std::byte> finished;  ///< Its content when all was finished.
  };

  std::atomic<bool> enabled_ = false;
  std::vector<Range> ranges_;
};

}  // namespace leasehold::fake_cuda
