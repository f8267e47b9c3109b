/// Hands the newest value of one thread to another one, without waiting.
///
/// Source: triple buffering. The writer fills its own buffer and exchanges it for the shared one;
/// the reader exchanges its own for the shared one when that is newer.
/// Threads: one writes, one reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace leasehold::metrics {

template <class T>
class Latest {
 public:
  void publish(T value) {
    buffers_[mine_] = std::move(value);
    // Releases the buffer to `read`, and acquires the one that `read` gave back.
    mine_ = shared_.exchange(mine_ | kIsNew, std::memory_order_acq_rel) & kIndex;
  }

  /// Stays valid until the next call.
  const T& read() {
    if ((shared_.load(std::memory_order_relaxed) & kIsNew) != 0)
      // Pairs with `publish`.
      theirs_ = shared_.exchange(theirs_, std::memory_order_acq_rel) & kIndex;
    return buffers_[theirs_];
  }

 private:
  static constexpr std::uint32_t kIsNew = 4;
  static constexpr std::uint32_t kIndex = 3;

  std::array<T, 3> buffers_{};
  std::atomic<std::uint32_t> shared_{1};
  std::uint32_t mine_ = 0;    // index of the writer's buffer
  std::uint32_t theirs_ = 2;  // index of the reader's buffer
};

}  // namespace leasehold::metrics
