/// Who waits for launches that were begun before a moment to be over, and how far they are.
///
/// Launches are counted as they are put into the stream and as they end there. A graph counts as
/// one, however long it is; so whoever waits may also be callback once a gate inside the graph has
/// seen the mirror of that moment: all before it is over, all behind it reads the new mirror.
///
/// Threads: `when_drained` any; the rest the launching thread's. Lifetime: whoever still waits when
/// this goes is never callback: his process ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace leasehold::cuda {

class DrainWatch {
 public:
  using Callback = std::move_only_function<void()>;

  /// Calls `callback` when everything begun before this call is over; at once when it is already.
  void when_drained(Callback callback);

  void issued() { issued_.fetch_add(1, std::memory_order_seq_cst); }
  /// The first `count` launches are over.
  void finished(std::uint64_t count);
  /// A gate inside the running graph has seen this state of the mirror.
  void seen(std::uint32_t epoch);
  /// Up to which waiter there are some whose moment has no epoch yet, or 0. Ask, look at the words,
  /// write the mirror, then `stamp` what it says now: whoever came after the question may know of a
  /// word that was looked at too early.
  std::uint64_t unstamped() const { return unstamped_.load(std::memory_order_seq_cst); }
  void stamp(std::uint64_t newest, std::uint32_t epoch);
  /// The device failed: nobody is callback any more, for what still runs there nobody knows.
  void mark_lost() { lost_.store(true, std::memory_order_seq_cst); }

  std::uint64_t issued_count() const { return issued_.load(std::memory_order_relaxed); }
  std::uint64_t finished_count() const { return finished_.load(std::memory_order_relaxed); }

 private:
  struct Waiter {
    std::uint64_t number;  // 1 …, as they came
    std::uint64_t launches;
    std::optional<std::uint32_t> epoch;
    Callback callback;
  };
  template <class IsDone>
  void notify(IsDone&& is_done);

  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<std::uint64_t> unstamped_{0};
  std::atomic<bool> lost_{false};
  std::atomic<std::size_t> waiting_{0};
  std::mutex mutex_;
  std::uint64_t newest_ = 0;
  std::vector<Waiter> waiters_;
};

}  // namespace leasehold::cuda
