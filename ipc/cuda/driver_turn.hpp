/// Turns at the driver, between the thread that computes and threads that map memory.
///
/// The driver has locks of its own, and mapping, unmapping or registering memory may keep them for
/// milliseconds. A thread that polls lease words must not wait there: it tries for a turn, and
/// polls while another thread has it. Threads: any.
#pragma once

#include <atomic>
#include <mutex>

namespace leasehold::cuda {

class DriverTurn {
 public:
  /// The turn of a thread that polls; false without it.
  using Short = std::unique_lock<std::mutex>;

  /// Never waits. Does not get the turn while a long call runs or waits, so that a thread that
  /// tries all the time does not keep long calls out.
  Short try_take() {
    if (long_calls_.load(std::memory_order_relaxed) != 0) return {};
    return Short(mutex_, std::try_to_lock);
  }

  /// The turn of a call that may take long: waits for it, and has it for its lifetime.
  /// Precondition: this thread has no turn.
  class Long {
   public:
    explicit Long(DriverTurn& turn) : count_(&turn.long_calls_) {
      count_->fetch_add(1, std::memory_order_relaxed);
      lock_ = std::unique_lock(turn.mutex_);
    }
    Long(const Long&) = delete;
    Long& operator=(const Long&) = delete;
    ~Long() { count_->fetch_sub(1, std::memory_order_relaxed); }

   private:
    std::atomic<int>* count_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  std::mutex mutex_;
  std::atomic<int> long_calls_{0};
};

}  // namespace leasehold::cuda
