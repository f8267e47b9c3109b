/// Lets the thread that computes and threads that map memory call the driver in turns.
///
/// The driver has locks of its own, and mapping, unmapping or registering memory may keep them for
/// milliseconds. A thread that polls lease words must not wait there: it tries to take the turn,
/// and continues to poll while another thread has it. Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace leasehold::cuda {

class DriverTurn {
 public:
  /// `gives_way`: how long a long call waits at most for a polling thread to take the turn first.
  explicit DriverTurn(std::chrono::microseconds gives_way = std::chrono::milliseconds(1))
      : gives_way_(gives_way) {}

  /// The turn of a thread that polls; owns no lock if the thread did not get it.
  using Short = std::unique_lock<std::mutex>;

  /// Never waits. Fails while a long call runs or waits, so that a thread that tries all the time
  /// does not keep long calls out.
  Short try_take() {
    Short turn;
    if (long_calls_.load(std::memory_order_relaxed) == 0) turn = Short(mutex_, std::try_to_lock);
    is_wanted_.store(!turn, std::memory_order_relaxed);
    return turn;
  }

  /// The turn of a call that may take long. The constructor waits for the turn, and the destructor
  /// ends it. Before that, the constructor gives way to a polling thread, so that a thread that
  /// maps one object after another leaves gaps. Precondition: this thread does not have the turn.
  class Long {
   public:
    explicit Long(DriverTurn& turn) : count_(&turn.long_calls_) {
      turn.give_way();
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
  void give_way() const {
    constexpr std::chrono::microseconds kPause{20};
    for (auto left = gives_way_; left > kPause && is_wanted_.load(std::memory_order_relaxed);
         left -= kPause)
      std::this_thread::sleep_for(kPause);
  }

  const std::chrono::microseconds gives_way_;
  std::mutex mutex_;
  std::atomic<int> long_calls_{0};
  std::atomic<bool> is_wanted_{false};  // the last try_take failed
};

}  // namespace leasehold::cuda
