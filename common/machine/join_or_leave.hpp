/// Ends a thread that may hang in the kernel, in a call to a disk or to a full pipe: its owner
/// waits a bounded time and then leaves it behind.
///
/// Lifetime: the thread shares the ownership of its state, and refers to nothing that the owner
/// destroys.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace leasehold {

/// What owner and thread share.
struct ThreadState {
  std::mutex mutex;  ///< Guards all that they share.
  std::condition_variable changed;
  bool is_stopping = false;
  bool has_ended = false;

  /// Called by the thread as the last thing that it does, with the mutex locked.
  void note_end() {
    has_ended = true;
    changed.notify_all();
  }
};

/// Asks the thread to stop, and joins it if it ends within `timeout`; otherwise detaches it.
inline void join_or_leave(std::thread& thread, ThreadState& state,
                          std::chrono::milliseconds timeout) {
  std::unique_lock lock(state.mutex);
  state.is_stopping = true;
  state.changed.notify_all();
  const bool ended = state.changed.wait_for(lock, timeout, [&] { return state.has_ended; });
  lock.unlock();
  ended ? thread.join() : thread.detach();
}

}  // namespace leasehold
